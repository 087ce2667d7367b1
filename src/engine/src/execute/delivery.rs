//! Requests that are sent after their step is done.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// A mail to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Recipients.
    pub to: Vec<String>,
    /// Recipients of a copy.
    pub cc: Vec<String>,
    /// Address for replies.
    pub reply_to: Option<String>,
    /// Subject, one line.
    pub subject: String,
    /// Plain text body.
    pub text: String,
    /// The same body as HTML.
    pub html: Option<String>,
}

impl Mail {
    /// Returns the mail in a delivery, if it is one.
    #[must_use]
    pub fn from_request(request: &Value) -> Option<Self> {
        Self::deserialize(request.get("mail")?).ok()
    }
}

/// A request to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Identifies one visit to a node, across all processes.
    pub id: Uuid,
    /// The request, with secrets by name.
    pub request: Value,
}

impl Delivery {
    pub(crate) fn new(idempotency_key: &str, input: Value) -> Self {
        let digest = crate::canonical::sha256(&[b"callboard|delivery|", idempotency_key.as_bytes()]);
        let mut bytes = [0; 16];
        for (byte, of_digest) in bytes.iter_mut().zip(digest) {
            *byte = of_digest;
        }
        Self { id: uuid::Builder::from_custom_bytes(bytes).into_uuid(), request: input }
    }

    pub(crate) fn mail(idempotency_key: &str, mail: &Mail) -> Self {
        Self::new(idempotency_key, json!({"mail": mail}))
    }
}
