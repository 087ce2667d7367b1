//! Thread attachments in memory.

use std::sync::Arc;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{AttachedFile, Attachments, Look, NewImage, Room, attachment_not_found};
use parking_lot::Mutex;

/// A file with its bytes, and the text that a node has stored.
struct StoredFile {
    file: AttachedFile,
    bytes: Vec<u8>,
    text: Option<String>,
}

/// The attachments of the run's thread.
#[derive(Clone, Default)]
pub(crate) struct MemoryAttachments(Arc<Mutex<Vec<StoredFile>>>);

impl MemoryAttachments {
    /// Adds a file; returns its message part.
    pub(crate) fn add(&self, name: &str, mime_type: &str, bytes: &[u8]) -> serde_json::Value {
        let mut files = self.0.lock();
        let id = format!("atc_{}", files.len() + 1);
        let kind = mime_type.split('/').next().filter(|kind| ["image", "audio"].contains(kind));
        let look = (kind == Some("image")).then(|| Look { width: 64, height: 48, colour: "red".to_owned() });
        let file = AttachedFile {
            id: id.clone(),
            name: name.to_owned(),
            mime_type: mime_type.to_owned(),
            size: u64::try_from(bytes.len()).unwrap(),
            look,
        };
        files.push(StoredFile { file, bytes: bytes.to_vec(), text: None });
        serde_json::json!({"type": kind.unwrap_or("file"), "attachment": id, "name": name, "mime_type": mime_type,
                           "size": bytes.len(), "digest": "00"})
    }

    /// Returns the texts that nodes have stored, in file order.
    pub(crate) fn texts(&self) -> Vec<Option<String>> {
        self.0.lock().iter().map(|stored| stored.text.clone()).collect()
    }

    fn with<T>(&self, id: &str, read: impl FnOnce(&mut StoredFile) -> T) -> Result<T, NodeError> {
        let mut files = self.0.lock();
        let found = files.iter_mut().find(|stored| stored.file.id == id);
        found.map(read).ok_or_else(|| attachment_not_found(id))
    }
}

#[async_trait]
impl Attachments for MemoryAttachments {
    async fn find(&self, ids: &[&str]) -> Result<Vec<AttachedFile>, NodeError> {
        ids.iter().map(|id| self.with(id, |stored| stored.file.clone())).collect()
    }

    async fn bytes(&self, file: &AttachedFile, most: u64) -> Result<Vec<u8>, NodeError> {
        self.with(&file.id, |stored| {
            stored.bytes.iter().copied().take(usize::try_from(most).unwrap()).collect()
        })
    }

    async fn text(&self, file: &AttachedFile) -> Result<Option<String>, NodeError> {
        self.with(&file.id, |stored| stored.text.clone())
    }

    async fn keep_text(&self, file: &AttachedFile, text: &str) -> Result<(), NodeError> {
        self.with(&file.id, |stored| stored.text = Some(text.to_owned()))
    }

    async fn keep_image(&self, image: NewImage) -> Result<Option<String>, NodeError> {
        let mut files = self.0.lock();
        let id = format!("kept-{}", files.len());
        let NewImage { mime_type, look, bytes } = image;
        let file = AttachedFile {
            id: id.clone(),
            name: id.clone(),
            mime_type: mime_type.to_owned(),
            size: u64::try_from(bytes.len()).unwrap(),
            look: Some(look),
        };
        files.push(StoredFile { file, bytes, text: None });
        Ok(Some(id))
    }

    async fn room(&self, _bytes: u64) -> Room {
        Box::new(())
    }
}
