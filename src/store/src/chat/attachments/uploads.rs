//! Completes uploads: the bytes become a blob, and the blob an attachment, in one transaction.

use chrono::{DateTime, NaiveDate, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Date, Text};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::AttachmentId;

use super::records::{AttachmentRow, ImageLook, NewAttachment, StoredAttachment};
use crate::blobs::{BlobUse, WrittenBlob, records, uses};
use crate::database::scalar::Scalar;
use crate::schema::attachments;
use crate::{Store, StoreError};

/// The use kind for an attachment's bytes.
pub(crate) const ATTACHMENT: &str = "attachment";
/// The use kind for an image that is shown instead of a large one.
pub(crate) const PREVIEW: &str = "preview";

/// An image's preview.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The appearance.
    pub look: ImageLook,
    /// A smaller image; `None` if the image itself is small.
    pub smaller: Option<Vec<u8>>,
}

/// The result of a stored upload.
#[derive(Debug, Clone)]
pub enum Kept {
    /// Stored by this upload.
    Now(StoredAttachment),
    /// Stored by an earlier upload with the same bytes.
    Before(StoredAttachment),
}

/// The reason why an upload was not stored.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// The session has used up its upload quota for today.
    #[error("the session has reached its upload limit for today")]
    Quota,
    /// Other bytes were uploaded for the attachment.
    #[error("other bytes were uploaded for the attachment")]
    Other,
    /// The attachment was deleted in the meantime.
    #[error("the attachment was deleted")]
    Gone,
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<diesel::result::Error> for NotKept {
    fn from(error: diesel::result::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Upload quotas for one day.
#[derive(Debug, Clone)]
pub struct UploadOfDay {
    /// The UTC day.
    pub day: NaiveDate,
    /// The counters for the bytes, each with its limit; `None`: no limit.
    pub counters: Vec<(String, Option<u64>)>,
}

impl Store {
    /// Returns the bytes that a session or a network has uploaded on a UTC day.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn uploaded_on(&self, day: NaiveDate, session: &str) -> Result<u64, StoreError> {
        let found: Option<Scalar<i64>> =
            diesel::sql_query("SELECT bytes FROM upload_days WHERE day = $1 AND session = $2")
                .bind::<Date, _>(day)
                .bind::<Text, _>(session)
                .get_result(&mut *self.connection().await?)
                .await
                .optional()?;
        Ok(found.and_then(|found| u64::try_from(found.0).ok()).unwrap_or_default())
    }

    /// Assigns uploaded bytes to an attachment: to a new one, or to an announced one without bytes.
    ///
    /// # Errors
    /// [`NotKept`]; nothing has changed then.
    pub async fn keep_attachment(
        &self,
        new: &NewAttachment,
        announced: bool,
        written: WrittenBlob,
        preview: Option<Preview>,
        today: &UploadOfDay,
    ) -> Result<Kept, NotKept> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                if !announced {
                    count(connection, new, today).await?;
                } else if let Some(earlier) = earlier_upload(connection, new.id, &written).await? {
                    // The bytes of an announced attachment were counted when it was announced.
                    return Ok(Kept::Before(earlier));
                }
                let row = store(connection, new, announced, &written, preview, now).await?;
                Ok(Kept::Now(row.read()?))
            })
            .await
    }

    /// Deletes upload counters for days before this one.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_upload_days(&self, before: NaiveDate) -> Result<(), StoreError> {
        diesel::sql_query("DELETE FROM upload_days WHERE day < $1")
            .bind::<Date, _>(before)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}

/// Locks an announced attachment. Returns it if an earlier upload has stored the same bytes.
async fn earlier_upload(
    connection: &mut AsyncPgConnection,
    id: AttachmentId,
    written: &WrittenBlob,
) -> Result<Option<StoredAttachment>, NotKept> {
    let found: Option<AttachmentRow> = attachments::table
        .find(id.0)
        .for_update()
        .select(AttachmentRow::as_select())
        .first(connection)
        .await
        .optional()?;
    let found = found.ok_or(NotKept::Gone)?.read()?;
    match found.digest {
        Some(known) if known == written.digest() => Ok(Some(found)),
        Some(_) => Err(NotKept::Other),
        None => Ok(None),
    }
}

/// Stores the bytes and the preview, and names them in the attachment's row, which is new unless announced.
async fn store(
    connection: &mut AsyncPgConnection,
    new: &NewAttachment,
    announced: bool,
    written: &WrittenBlob,
    preview: Option<Preview>,
    now: DateTime<Utc>,
) -> Result<AttachmentRow, NotKept> {
    let digest = written.digest();
    let of = |kind| BlobUse { kind, owner: new.id.0, workspace: new.workspace };
    written.store(connection, now).await?;
    uses::insert(connection, &digest, of(ATTACHMENT)).await?;
    let (look, smaller) = preview.map_or((None, None), |shown| (Some(shown.look), shown.smaller));
    let mut preview = None;
    if let Some(smaller) = smaller {
        let address = records::put(connection, &smaller, now).await?;
        uses::insert(connection, &address, of(PREVIEW)).await?;
        preview = Some(address.to_vec());
    }
    let side = |side: u32| i32::try_from(side).ok();
    let content = (
        attachments::name.eq(&new.name),
        attachments::mime_type.eq(&new.mime_type),
        attachments::size.eq(i64::try_from(new.size).unwrap_or(i64::MAX)),
        attachments::digest.eq(digest.as_slice()),
        attachments::preview.eq(preview),
        attachments::width.eq(look.as_ref().and_then(|look| side(look.width))),
        attachments::height.eq(look.as_ref().and_then(|look| side(look.height))),
        attachments::colour.eq(look.map(|look| look.colour)),
    );
    let row: AttachmentRow = if announced {
        let update = diesel::update(attachments::table.find(new.id.0)).set(content);
        update.returning(AttachmentRow::as_returning()).get_result(connection).await?
    } else {
        let owner = (
            attachments::id.eq(new.id.0),
            attachments::workspace_id.eq(new.workspace),
            attachments::workflow_id.eq(new.workflow),
            attachments::owner_kind.eq(new.owner_kind.as_str()),
            attachments::owner_id.eq(new.owner_id.as_deref()),
            attachments::session.eq(&new.session),
            attachments::created_at.eq(now),
        );
        let insert = diesel::insert_into(attachments::table).values((owner, content));
        insert.returning(AttachmentRow::as_returning()).get_result(connection).await?
    };
    Ok(row)
}

/// Counts the bytes for the day, unless they exceed a limit.
pub(super) async fn count(
    connection: &mut AsyncPgConnection,
    new: &NewAttachment,
    today: &UploadOfDay,
) -> Result<(), NotKept> {
    for (counter, most) in &today.counters {
        let most = most.and_then(|most| i64::try_from(most).ok()).unwrap_or(i64::MAX);
        let size = i64::try_from(new.size).unwrap_or(i64::MAX);
        if size > most || !add(connection, today.day, counter, size, most).await? {
            return Err(NotKept::Quota);
        }
    }
    Ok(())
}

/// Adds `size` bytes to a counter, unless it would exceed `most`.
async fn add(
    connection: &mut AsyncPgConnection,
    day: NaiveDate,
    counter: &str,
    size: i64,
    most: i64,
) -> Result<bool, NotKept> {
    let counted = diesel::sql_query(
        "INSERT INTO upload_days AS d (day, session, bytes) VALUES ($1, $2, $3)
         ON CONFLICT (day, session) DO UPDATE SET bytes = d.bytes + excluded.bytes
         WHERE d.bytes <= $4 - excluded.bytes",
    )
    .bind::<Date, _>(day)
    .bind::<Text, _>(counter)
    .bind::<BigInt, _>(size)
    .bind::<BigInt, _>(most)
    .execute(connection)
    .await?;
    Ok(counted > 0)
}
