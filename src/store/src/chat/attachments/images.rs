//! Images that runs show in their threads.

use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};
use kernel::{AttachmentId, ThreadId};
use uuid::Uuid;

use super::records::ImageLook;
use crate::blobs::{BlobUse, records, uses};
use crate::schema::{attachments, threads};
use crate::{Store, StoreError};

/// The use kind for an image's bytes.
const IMAGE: &str = "image";

/// An image that a run shows.
#[derive(Debug, Clone)]
pub struct ShownImage {
    /// Identical for equal bytes in one thread.
    pub id: AttachmentId,
    /// The workspace whose storage its bytes count toward.
    pub workspace: Uuid,
    /// The thread's workflow.
    pub workflow: Uuid,
    /// The thread.
    pub thread: ThreadId,
    /// The file's name.
    pub name: String,
    /// Its media type.
    pub mime_type: String,
    /// Its appearance.
    pub look: ImageLook,
}

impl Store {
    /// Stores an image for its thread, once. Until its item is stored, it counts as an attachment that no
    /// message contains. Returns false if the thread is not found.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn keep_image(&self, new: &ShownImage, bytes: &[u8]) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                // A concurrent deletion waits for this lock, and then deletes the image, too.
                let owner: Option<(String, Option<String>)> = threads::table
                    .find(new.thread.0)
                    .filter(threads::deleted_at.is_null())
                    .select((threads::owner_kind, threads::owner_id))
                    .for_share()
                    .first(connection)
                    .await
                    .optional()?;
                let Some((owner_kind, owner_id)) = owner else { return Ok(false) };
                let address = records::put(connection, bytes, now).await?;
                let side = |side: u32| i32::try_from(side).ok();
                let whose = (
                    attachments::id.eq(new.id.0),
                    attachments::workspace_id.eq(new.workspace),
                    attachments::workflow_id.eq(new.workflow),
                    attachments::owner_kind.eq(owner_kind),
                    attachments::owner_id.eq(owner_id),
                    attachments::session.eq(""),
                    attachments::thread_id.eq(new.thread.0),
                    attachments::created_at.eq(now),
                    attachments::attached_at.eq(now),
                );
                let what = (
                    attachments::name.eq(&new.name),
                    attachments::mime_type.eq(&new.mime_type),
                    attachments::size.eq(i64::try_from(bytes.len()).unwrap_or(i64::MAX)),
                    attachments::digest.eq(address.as_slice()),
                    attachments::width.eq(side(new.look.width)),
                    attachments::height.eq(side(new.look.height)),
                    attachments::colour.eq(&new.look.colour),
                );
                // Restarts the period after which it is deleted if no item contains it.
                diesel::insert_into(attachments::table)
                    .values((whose, what))
                    .on_conflict(attachments::id)
                    .do_update()
                    .set((attachments::created_at.eq(now), attachments::attached_at.eq(now)))
                    .execute(connection)
                    .await?;
                let kept = BlobUse { kind: IMAGE, owner: new.id.0, workspace: new.workspace };
                uses::insert(connection, &address, kept).await?;
                Ok(true)
            })
            .await
    }
}
