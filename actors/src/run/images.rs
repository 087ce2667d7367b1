//! Addresses of images that runs show.

use std::sync::Arc;

use auth::link::LinkKey;
use chrono::{DateTime, Utc};
use kernel::AttachmentId;

/// Makes addresses of images. Cheap to clone.
#[derive(Clone)]
pub struct ImageLinks {
    /// Signs them.
    pub key: Arc<LinkKey>,
    /// Where clients reach the service, if it is configured: an address without a slash at its end.
    pub base: Option<Arc<str>>,
}

impl ImageLinks {
    /// The address of an image. `base`: where the client of the run reaches the service.
    pub(crate) fn of(&self, id: AttachmentId, base: &str, now: DateTime<Utc>) -> String {
        self.key.preview(self.base.as_deref().unwrap_or(base), id, now)
    }
}
