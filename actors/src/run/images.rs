//! URLs for images that runs show.

use std::sync::Arc;

use auth::link::LinkKey;
use chrono::{DateTime, Utc};
use kernel::AttachmentId;

/// Creates image URLs. Cheap to clone.
#[derive(Clone)]
pub struct ImageLinks {
    /// The signing key.
    pub key: Arc<LinkKey>,
    /// The configured public base URL, without a trailing slash.
    pub base: Option<Arc<str>>,
}

impl ImageLinks {
    /// An image's URL. `base`: the public base URL as seen by the run's client.
    pub(crate) fn url(&self, id: AttachmentId, base: &str, now: DateTime<Utc>) -> String {
        self.key.preview(self.base.as_deref().unwrap_or(base), id, now)
    }
}
