//! Files in a run's thread, as nodes read them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{AttachedFile, Attachments, Look, NewImage, Room, attachment_not_found};
use kernel::{AttachmentId, ThreadId};
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use store::{ImageLook, ShownImage, Store, StoreError, StoredAttachment};
use tokio::sync::Semaphore;
use uuid::Uuid;
use wire::ErrorCode;

use super::quota::{Quota, WorkspaceFull};
use super::shares::WorkspaceShare;

/// Maximum KiB of files that concurrent requests of one workspace hold in memory.
const MAX_HELD_KIB: u32 = 64 << 10;

/// Memory permits for files, by workspace. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct FileRoom {
    rooms: Arc<Mutex<HashMap<Uuid, Weak<Semaphore>>>>,
}

impl FileRoom {
    /// Returns a workspace's permits, which are dropped with their last holder.
    pub(super) fn for_workspace(&self, workspace: Uuid) -> Arc<Semaphore> {
        let mut rooms = self.rooms.lock();
        if let Some(room) = rooms.get(&workspace).and_then(Weak::upgrade) {
            return room;
        }
        rooms.retain(|_, room| room.strong_count() > 0);
        let room = Arc::new(Semaphore::new(usize::try_from(MAX_HELD_KIB).unwrap_or(usize::MAX)));
        rooms.insert(workspace, Arc::downgrade(&room));
        room
    }
}

/// Files in one run's thread.
pub(super) struct AttachmentsOf<'a> {
    pub(super) thread: Option<ThreadId>,
    pub(super) workspace: Uuid,
    pub(super) workflow: Uuid,
    pub(super) store: &'a Store,
    pub(super) quota: &'a Quota,
    pub(super) shows_items: bool,
    pub(super) reads: WorkspaceShare,
    pub(super) room: Arc<Semaphore>,
}

impl AttachmentsOf<'_> {
    /// Returns the thread's attachments with these ids, by id.
    async fn of_thread(&self, ids: &[&str]) -> Result<HashMap<String, StoredAttachment>, NodeError> {
        let Some(thread) = self.thread else { return Ok(HashMap::new()) };
        let named: Vec<AttachmentId> = ids.iter().filter_map(|id| AttachmentId::parse(id).ok()).collect();
        let _permit = self.reads.permit().await;
        let found = self.store.attachments_named(&named).await.map_err(|error| unreadable(&error))?;
        let own = found.into_iter().filter(|stored| stored.thread == Some(thread));
        Ok(own.map(|stored| (stored.id.to_string(), stored)).collect())
    }

    async fn stored(&self, id: &str) -> Result<StoredAttachment, NodeError> {
        self.of_thread(&[id]).await?.remove(id).ok_or_else(|| attachment_not_found(id))
    }
}

#[async_trait]
impl Attachments for AttachmentsOf<'_> {
    async fn find(&self, ids: &[&str]) -> Result<Vec<AttachedFile>, NodeError> {
        let found = self.of_thread(ids).await?;
        let file = |id: &&str| found.get(*id).map(attached).ok_or_else(|| attachment_not_found(id));
        ids.iter().map(file).collect()
    }

    async fn bytes(&self, file: &AttachedFile, most: u64) -> Result<Vec<u8>, NodeError> {
        let digest = self.stored(&file.id).await?.digest.ok_or_else(|| attachment_not_found(&file.id))?;
        let _permit = self.reads.permit().await;
        let reader = self.store.read_blob(digest).await.map_err(|error| unreadable(&error))?;
        let mut reader = reader.ok_or_else(|| attachment_not_found(&file.id))?;
        let most = usize::try_from(most.min(reader.size())).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(most);
        while bytes.len() < most {
            let Some(chunk) = reader.next().await.map_err(|error| unreadable(&error))? else { break };
            bytes.extend(chunk);
        }
        bytes.truncate(most);
        Ok(bytes)
    }

    async fn text(&self, file: &AttachedFile) -> Result<Option<String>, NodeError> {
        let id = self.stored(&file.id).await?.id;
        self.store.attachment_text(id).await.map_err(|error| unreadable(&error))
    }

    async fn keep_text(&self, file: &AttachedFile, text: &str) -> Result<(), NodeError> {
        let id = self.stored(&file.id).await?.id;
        self.store.set_attachment_text(id, text).await.map_err(|error| unreadable(&error))
    }

    async fn keep_image(&self, image: NewImage) -> Result<Option<String>, NodeError> {
        let Some(thread) = self.thread.filter(|_| self.shows_items) else { return Ok(None) };
        let full = |full: WorkspaceFull| NodeError::new(ErrorCode::WorkspaceFull, full.to_string());
        self.quota.room(self.workspace).map_err(full)?;
        let NewImage { mime_type, look: Look { width, height, colour }, bytes } = image;
        let shown = ShownImage {
            id: image_id(thread, &bytes),
            workspace: self.workspace,
            workflow: self.workflow,
            thread,
            name: mime_type.replace("image/", "image."),
            mime_type: mime_type.to_owned(),
            look: ImageLook { width, height, colour },
        };
        let _permit = self.reads.permit().await;
        let is_kept = self.store.keep_image(&shown, &bytes).await.map_err(|error| unreadable(&error))?;
        if is_kept {
            Ok(Some(shown.id.to_string()))
        } else {
            Err(NodeError::new(ErrorCode::ThreadNotFound, ErrorCode::ThreadNotFound.message()))
        }
    }

    async fn room(&self, bytes: u64) -> Room {
        let wanted = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).clamp(1, MAX_HELD_KIB);
        Box::new(Arc::clone(&self.room).acquire_many_owned(wanted).await.ok())
    }
}

/// Derives the id from the thread and the bytes, so a node that is executed again stores no duplicate.
fn image_id(thread: ThreadId, bytes: &[u8]) -> AttachmentId {
    let mut context = Context::new(&SHA256);
    context.update(b"callboard image|");
    context.update(thread.0.as_bytes());
    context.update(bytes);
    let mut id = [0; 16];
    id.iter_mut().zip(context.finish().as_ref()).for_each(|(to, from)| *to = *from);
    AttachmentId(Uuid::from_bytes(id))
}

fn attached(stored: &StoredAttachment) -> AttachedFile {
    let StoredAttachment { id, name, mime_type, size, look, .. } = stored;
    let look = look.as_ref().map(|look| Look {
        width: look.width,
        height: look.height,
        colour: look.colour.clone(),
    });
    AttachedFile { id: id.to_string(), name: name.clone(), mime_type: mime_type.clone(), size: *size, look }
}

fn unreadable(error: &StoreError) -> NodeError {
    tracing::warn!(%error, "failed to read or store an attachment");
    NodeError::retryable(error.code(), error.code().message())
}
