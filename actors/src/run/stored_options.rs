//! Request options stored in a run's row.

use serde_json::Value;

use crate::text::stored_json;

/// Options of a chat run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredOptions {
    /// The session whose limits apply to its models; `None` if its workflow uses no models.
    pub(crate) session: Option<String>,
    /// The public base URL as seen by the client; `None` if it is configured, or the workflow shows no images.
    pub(crate) base: Option<String>,
}

impl StoredOptions {
    /// Parses the row's JSON; invalid members are omitted.
    pub(crate) fn read(options: Option<&str>) -> Self {
        let Some(options) = options.and_then(|options| stored_json(options).ok()) else {
            return Self::default();
        };
        let text = |name| options.get(name).and_then(Value::as_str).map(str::to_owned);
        Self { session: text("session"), base: text("base") }
    }
}
