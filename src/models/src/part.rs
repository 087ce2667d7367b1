//! A message's files: their description in the journal, and their content in a request.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// An image.
    Image,
    /// A document or text.
    File,
    /// A recording.
    Audio,
}

/// A file that a message refers to: its description, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// The kind.
    #[serde(rename = "type")]
    pub kind: FileKind,
    /// The attachment's id.
    pub attachment: String,
    /// The file name.
    pub name: String,
    /// The media type, without parameters.
    pub mime_type: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the content.
    pub digest: String,
}

/// A part of a user's message, as sent to a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A text. A file's text begins with a line that contains the file name, followed by an empty line.
    Text(String),
    /// An image.
    Image(Image),
}

impl Part {
    /// Whether it is an image.
    pub(crate) const fn is_image(&self) -> bool {
        matches!(self, Self::Image(_))
    }
}

/// An image for a model.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// The file name.
    pub name: String,
    /// The media type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub mime_type: String,
    /// The file's content.
    pub data: Arc<[u8]>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The main colour in words, for a model that cannot see the image; may be empty.
    pub colour: String,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("name", &self.name)
            .field("mime_type", &self.mime_type)
            .field("bytes", &self.data.len())
            .field("width", &self.width)
            .field("height", &self.height)
            .field("colour", &self.colour)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Message, Role};

    #[test]
    fn the_journal_contains_files_but_not_parts() {
        let file = json!({"type": "image", "attachment": "atc_1", "name": "a.png", "mime_type": "image/png",
                          "size": 3, "digest": "00"});
        let image = Image {
            name: "a.png".into(),
            mime_type: "image/png".into(),
            data: Arc::from([1, 222, 33]),
            width: 1,
            height: 2,
            colour: "red".into(),
        };
        let written = json!({"role": "user", "content": "see", "files": [file]});
        let message: Message = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(message.files[0].kind, FileKind::Image);
        let message = Message { parts: vec![Part::Image(image)], ..message };
        assert_eq!(serde_json::to_value(&message).unwrap(), written);
        let shown = format!("{message:?}");
        assert!(shown.contains("bytes: 3") && !shown.contains("222"), "{shown}");
    }

    #[test]
    fn a_message_without_files_keeps_its_serialized_form() {
        let before = json!({"role": "user", "content": "hi"});
        let message: Message = serde_json::from_value(before.clone()).unwrap();
        assert_eq!(message, Message::text(Role::User, "hi"));
        assert_eq!(serde_json::to_value(&message).unwrap(), before);
    }
}
