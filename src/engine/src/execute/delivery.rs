//! Requests that are sent once the step that wants them is done.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// A mail that waits to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Who gets it.
    pub to: Vec<String>,
    /// Recipients of a copy.
    pub cc: Vec<String>,
    /// Where answers go.
    pub reply_to: Option<String>,
    /// One line.
    pub subject: String,
    /// As plain text.
    pub text: String,
    /// The same as HTML.
    pub html: Option<String>,
}

impl Mail {
    /// The mail that a delivery is, if it is one.
    #[must_use]
    pub fn of(request: &Value) -> Option<Self> {
        Self::deserialize(request.get("mail")?).ok()
    }
}

/// A request that waits to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Identifies one visit of a node, the same in every process that makes it.
    pub id: Uuid,
    /// What is sent; secrets by their names.
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
