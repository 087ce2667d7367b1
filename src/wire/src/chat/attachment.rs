//! Files in messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A file in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment {
    /// `atc_…`.
    pub id: String,
    /// The file's name.
    pub name: String,
    /// Its media type, detected from its content; the announced type before the upload.
    pub mime_type: String,
    /// `file` or `image`.
    #[serde(rename = "type")]
    pub kind: AttachmentKind,
    /// Opaque; never a server path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_path: Option<String>,
    /// Images only: an absolute image address, valid for at least 48 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview_url: Option<String>,
    /// Upload instructions; only in the answer to `attachments.create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_descriptor: Option<UploadDescriptor>,
    /// The thread whose message contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
}

/// An attachment's display form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AttachmentKind {
    /// With its name.
    File,
    /// With a preview.
    Image,
}

/// Upload instructions for an attachment's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UploadDescriptor {
    /// A signed address, valid for 15 minutes.
    pub url: String,
    /// `PUT`.
    pub method: String,
    /// Headers to send; none.
    #[serde(default)]
    pub headers: Map<String, Value>,
}

impl Attachment {
    /// An attachment's opaque path.
    #[must_use]
    pub fn path(id: &str, name: &str) -> String {
        format!("chat/attachments/{id}/{name}")
    }
}
