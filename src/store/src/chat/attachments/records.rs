//! Attachment rows.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::{AttachmentId, ThreadId};
use uuid::Uuid;
use wire::chat::{Attachment, AttachmentKind};

use super::claims::CLAIM_LIMIT;
use super::uploads::{NotKept, UploadOfDay, count};
use crate::blobs::uses;
use crate::chat::owner::OwnerKind;
use crate::schema::attachments;
use crate::{Store, StoreError};

/// An image's appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLook {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// The name of its main colour.
    pub colour: String,
}

/// An attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAttachment {
    /// Its id.
    pub id: AttachmentId,
    /// The workspace whose storage its bytes count toward.
    pub workspace: Uuid,
    /// The workflow; `None` until a message names an attachment that was uploaded without one.
    pub workflow: Option<Uuid>,
    /// The owner kind.
    pub owner_kind: OwnerKind,
    /// The owner's id, if the kind has one.
    pub owner_id: Option<String>,
    /// The session whose upload quota its bytes count toward.
    pub session: String,
    /// The file's name.
    pub name: String,
    /// Its media type.
    pub mime_type: String,
    /// Its size in bytes; the announced size until there is a digest.
    pub size: u64,
    /// SHA-256 of its bytes; `None` until they are uploaded.
    pub digest: Option<[u8; 32]>,
    /// The blob with a smaller image to show instead.
    pub preview: Option<[u8; 32]>,
    /// Set for images.
    pub look: Option<ImageLook>,
    /// The thread that has claimed it.
    pub thread: Option<ThreadId>,
    /// Whether a stored message in the thread contains it.
    pub contained: bool,
    /// When it was announced or uploaded.
    pub created_at: DateTime<Utc>,
}

/// An attachment to store.
#[derive(Debug, Clone)]
pub struct NewAttachment {
    /// Its id.
    pub id: AttachmentId,
    /// The workspace whose storage its bytes count toward.
    pub workspace: Uuid,
    /// The workflow, if the upload names one.
    pub workflow: Option<Uuid>,
    /// The owner kind.
    pub owner_kind: OwnerKind,
    /// The owner's id, if the kind has one.
    pub owner_id: Option<String>,
    /// The session whose upload quota its bytes count toward.
    pub session: String,
    /// The file's name.
    pub name: String,
    /// Its media type.
    pub mime_type: String,
    /// Its size in bytes.
    pub size: u64,
}

impl StoredAttachment {
    /// Whether it is an image.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.mime_type.starts_with("image/")
    }
}

/// The attachment in its stored item form, without addresses.
impl From<&StoredAttachment> for Attachment {
    fn from(stored: &StoredAttachment) -> Self {
        let id = stored.id.to_string();
        Self {
            storage_path: Some(Self::path(&id, &stored.name)),
            id,
            name: stored.name.clone(),
            mime_type: stored.mime_type.clone(),
            kind: if stored.is_image() { AttachmentKind::Image } else { AttachmentKind::File },
            preview_url: None,
            upload_descriptor: None,
            thread_id: stored.thread.filter(|_| stored.contained).map(|thread| thread.to_string()),
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = attachments)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(in crate::chat) struct AttachmentRow {
    id: Uuid,
    workspace_id: Uuid,
    workflow_id: Option<Uuid>,
    owner_kind: String,
    owner_id: Option<String>,
    session: String,
    name: String,
    mime_type: String,
    size: i64,
    digest: Option<Vec<u8>>,
    preview: Option<Vec<u8>>,
    width: Option<i32>,
    height: Option<i32>,
    colour: Option<String>,
    thread_id: Option<Uuid>,
    created_at: DateTime<Utc>,
    contained: bool,
}

impl AttachmentRow {
    pub(in crate::chat) fn read(self) -> Result<StoredAttachment, StoreError> {
        let side = |side: Option<i32>| side.and_then(|side| u32::try_from(side).ok());
        let look = match (side(self.width), side(self.height), self.colour) {
            (Some(width), Some(height), Some(colour)) => Some(ImageLook { width, height, colour }),
            _ => None,
        };
        Ok(StoredAttachment {
            id: AttachmentId(self.id),
            workspace: self.workspace_id,
            workflow: self.workflow_id,
            owner_kind: OwnerKind::read(&self.owner_kind)?,
            owner_id: self.owner_id,
            session: self.session,
            name: self.name,
            mime_type: self.mime_type,
            size: u64::try_from(self.size).unwrap_or_default(),
            digest: self.digest.map(address).transpose()?,
            preview: self.preview.map(address).transpose()?,
            look,
            thread: self.thread_id.map(ThreadId),
            created_at: self.created_at,
            contained: self.contained,
        })
    }
}

fn address(digest: Vec<u8>) -> Result<[u8; 32], StoreError> {
    digest.try_into().map_err(|_| StoreError::Corrupt("digest of an attachment".to_owned()))
}

impl Store {
    /// Returns the existing attachments with these ids, in any order.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn attachments_named(&self, ids: &[AttachmentId]) -> Result<Vec<StoredAttachment>, StoreError> {
        let rows: Vec<AttachmentRow> = attachments::table
            .filter(attachments::id.eq_any(ids.iter().map(|id| id.0)))
            .select(AttachmentRow::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(AttachmentRow::read).collect()
    }

    /// Returns the attachments in a thread's messages.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn attachments_of(&self, thread: ThreadId) -> Result<Vec<StoredAttachment>, StoreError> {
        let rows: Vec<AttachmentRow> = attachments::table
            .filter(attachments::thread_id.eq(thread.0))
            .select(AttachmentRow::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(AttachmentRow::read).collect()
    }

    /// Stores an attachment whose bytes will be uploaded later. They count toward today's quota now, so that a
    /// client cannot announce more than it may upload.
    ///
    /// # Errors
    /// [`NotKept`]; nothing has changed then.
    pub async fn announce_attachment(&self, new: &NewAttachment, today: &UploadOfDay) -> Result<(), NotKept> {
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                count(connection, new, today).await?;
                self.insert_announced(connection, new).await?;
                Ok(())
            })
            .await
    }

    async fn insert_announced(
        &self,
        connection: &mut AsyncPgConnection,
        new: &NewAttachment,
    ) -> QueryResult<usize> {
        diesel::insert_into(attachments::table)
            .values((
                attachments::id.eq(new.id.0),
                attachments::workspace_id.eq(new.workspace),
                attachments::workflow_id.eq(new.workflow),
                attachments::owner_kind.eq(new.owner_kind.as_str()),
                attachments::owner_id.eq(new.owner_id.as_deref()),
                attachments::session.eq(&new.session),
                attachments::name.eq(&new.name),
                attachments::mime_type.eq(&new.mime_type),
                attachments::size.eq(i64::try_from(new.size).unwrap_or(i64::MAX)),
                attachments::created_at.eq(self.now()),
            ))
            .execute(connection)
            .await
    }

    /// Deletes an attachment unless a message contains it or a start has claimed it. Returns true if it was deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_attachment(&self, id: AttachmentId) -> Result<bool, StoreError> {
        let void = self.now() - CLAIM_LIMIT;
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let deleted = diesel::delete(attachments::table.find(id.0))
                    .filter(attachments::contained.eq(false))
                    .filter(attachments::attached_at.is_null().or(attachments::attached_at.lt(void)))
                    .execute(connection)
                    .await?;
                if deleted > 0 {
                    uses::forget_all(connection, &[id.0]).await?;
                }
                Ok(deleted > 0)
            })
            .await
    }

    /// Returns a document's text for models, as stored by [`Store::set_attachment_text`]; `None` before that.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn attachment_text(&self, id: AttachmentId) -> Result<Option<String>, StoreError> {
        let text: Option<Option<String>> = attachments::table
            .find(id.0)
            .select(attachments::text)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(text.flatten())
    }

    /// Stores a document's text for models; empty if it has none.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn set_attachment_text(&self, id: AttachmentId, text: &str) -> Result<(), StoreError> {
        diesel::update(attachments::table.find(id.0))
            .set(attachments::text.eq(text))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}
