//! Chat thread files, as nodes read them.

use std::any::Any;

use async_trait::async_trait;
use wire::ErrorCode;

use crate::NodeError;

/// A file attached to a message in the run's thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// `atc_…`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its media type, detected from its content.
    pub mime_type: String,
    /// Size in bytes.
    pub size: u64,
    /// Set for images only.
    pub look: Option<Look>,
}

/// An image's appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Main colour, in one word.
    pub colour: String,
}

/// An image made by a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImage {
    /// PNG, JPEG, GIF or WebP.
    pub mime_type: &'static str,
    /// Its appearance.
    pub look: Look,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Reserved memory bytes, released on drop.
pub type Room = Box<dyn Any + Send>;

/// The attachments of the run's thread.
#[async_trait]
pub trait Attachments: Send + Sync {
    /// Returns the attachments with these ids, in the same order.
    ///
    /// # Errors
    /// [`ErrorCode::AttachmentNotFound`] if the run has no thread, or an attachment does not belong to it.
    async fn find(&self, ids: &[&str]) -> Result<Vec<AttachedFile>, NodeError>;

    /// Reads the first `most` bytes.
    ///
    /// # Errors
    /// [`NodeError`] if the bytes cannot be read now.
    async fn bytes(&self, file: &AttachedFile, most: u64) -> Result<Vec<u8>, NodeError>;

    /// Returns the text stored by [`Self::keep_text`].
    ///
    /// # Errors
    /// [`NodeError`] if the text cannot be read now.
    async fn text(&self, file: &AttachedFile) -> Result<Option<String>, NodeError>;

    /// Stores the first part of a document's text for later requests; empty if the document has no text.
    ///
    /// # Errors
    /// [`NodeError`] if the text cannot be stored now.
    async fn keep_text(&self, file: &AttachedFile, text: &str) -> Result<(), NodeError>;

    /// Stores an image for the thread; identical bytes are stored once. Returns its id, `atc_…`; `None` if the run
    /// shows no items.
    ///
    /// # Errors
    /// [`ErrorCode::WorkspaceFull`]; [`ErrorCode::ThreadNotFound`] if the thread was deleted; [`NodeError`] if the
    /// image cannot be stored now.
    async fn keep_image(&self, image: NewImage) -> Result<Option<String>, NodeError>;

    /// Waits until this many bytes fit in memory. A workspace's requests share the memory for images and for
    /// documents being read.
    async fn room(&self, bytes: u64) -> Room;
}

/// Empty attachments, for a run without a thread.
pub struct NoAttachments;

/// Returns the error for an attachment that the run's thread does not have.
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
