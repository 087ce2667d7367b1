//! Files of a chat's thread, as nodes read them.

use std::any::Any;

use async_trait::async_trait;
use wire::ErrorCode;

use crate::NodeError;

/// A file that a message of the run's thread contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// `atc_…`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its media type, detected from its content.
    pub mime_type: String,
    /// Bytes.
    pub size: u64,
    /// Of images alone.
    pub look: Option<Look>,
}

/// What an image looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Its main colour, in a word.
    pub colour: String,
}

/// An image that a node makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImage {
    /// PNG, JPEG, GIF or WebP.
    pub mime_type: &'static str,
    /// What it looks like.
    pub look: Look,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Room for bytes in memory; dropping it gives it back.
pub type Room = Box<dyn Any + Send>;

/// The attachments of the run's own thread.
#[async_trait]
pub trait Attachments: Send + Sync {
    /// The attachments with these ids, in their order.
    ///
    /// # Errors
    /// [`ErrorCode::AttachmentNotFound`] if the run has no thread, or one of them does not belong to it.
    async fn find(&self, ids: &[&str]) -> Result<Vec<AttachedFile>, NodeError>;

    /// The first `most` bytes.
    ///
    /// # Errors
    /// [`NodeError`] if they cannot be read now.
    async fn bytes(&self, file: &AttachedFile, most: u64) -> Result<Vec<u8>, NodeError>;

    /// The text that [`Self::keep_text`] stored.
    ///
    /// # Errors
    /// [`NodeError`] if it cannot be read now.
    async fn text(&self, file: &AttachedFile) -> Result<Option<String>, NodeError>;

    /// Stores the first part of a document's text for later requests; empty if it has none.
    ///
    /// # Errors
    /// [`NodeError`] if it cannot be stored now.
    async fn keep_text(&self, file: &AttachedFile, text: &str) -> Result<(), NodeError>;

    /// Stores an image for the thread, equal bytes once. Returns its id, `atc_…`; `None` if the run shows no items.
    ///
    /// # Errors
    /// [`ErrorCode::WorkspaceFull`]; [`ErrorCode::ThreadNotFound`] if the thread was deleted; [`NodeError`] if it cannot be stored now.
    async fn keep_image(&self, image: NewImage) -> Result<Option<String>, NodeError>;

    /// Waits for room for this many bytes in memory. All requests of a workspace share the room, for images and for documents that are being read.
    async fn room(&self, bytes: u64) -> Room;
}

/// The attachments of a run without a thread: none.
pub struct NoAttachments;

/// Attachment not found in the run's thread.
#[must_use]
pub fn attachment_not_found(id: &str) -> NodeError {
    let id: String = id.chars().filter(|letter| !letter.is_control()).take(100).collect();
    NodeError::new(ErrorCode::AttachmentNotFound, format!("the run's thread has no attachment '{id}'"))
}

#[async_trait]
impl Attachments for NoAttachments {
    async fn find(&self, ids: &[&str]) -> Result<Vec<AttachedFile>, NodeError> {
        ids.first().map_or_else(|| Ok(Vec::new()), |id| Err(attachment_not_found(id)))
    }

    async fn bytes(&self, file: &AttachedFile, _most: u64) -> Result<Vec<u8>, NodeError> {
        Err(attachment_not_found(&file.id))
    }

    async fn text(&self, file: &AttachedFile) -> Result<Option<String>, NodeError> {
        Err(attachment_not_found(&file.id))
    }

    async fn keep_text(&self, file: &AttachedFile, _text: &str) -> Result<(), NodeError> {
        Err(attachment_not_found(&file.id))
    }

    async fn keep_image(&self, _image: NewImage) -> Result<Option<String>, NodeError> {
        Ok(None)
    }

    async fn room(&self, _bytes: u64) -> Room {
        Box::new(())
    }
}
