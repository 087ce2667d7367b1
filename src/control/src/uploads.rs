//! Uploads: checks files and stores them with their metadata.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use kernel::{AttachmentId, Clock, Ids};
use media::{Detector, Media};
use sandbox::{ImageFacts, ImageKind, ImageLimits, Sandbox, SandboxError};
use store::{
    BlobWriter, ImageLook, Kept, NewAttachment, NotKept, OwnerKind, Preview, Store, StoreError,
    StoredAttachment, UploadOfDay, WrittenBlob,
};
use tokio::sync::Semaphore;
use uuid::Uuid;
use wire::ErrorCode;

use crate::refusal::{Decision, Refusal};

/// The daily limit of a network, as a multiple of a session's limit.
const NETWORK_SESSIONS: u64 = 10;
/// Maximum wait of an image for its turn.
const IMAGE_WAIT: Duration = Duration::from_secs(20);
/// Maximum images in memory at once.
const IMAGES_AT_ONCE: usize = 1;

/// The media type of an announced file whose declared type says nothing about its content.
const UNKNOWN: &str = "application/octet-stream";

/// Limits for uploads.
#[derive(Debug, Clone, Copy)]
pub struct UploadLimits {
    /// Maximum bytes per file.
    pub file: Option<NonZeroU64>,
    /// Maximum bytes per session and UTC day.
    pub day: Option<NonZeroU64>,
}

/// The owner of an upload.
#[derive(Debug, Clone)]
pub struct Uploader {
    /// The workspace to which its bytes count.
    pub workspace: Uuid,
    /// The workflow, if the request names one.
    pub workflow: Option<Uuid>,
    /// Kind of the owner.
    pub owner_kind: OwnerKind,
    /// The owner's id, if the kind has one.
    pub owner_id: Option<String>,
    /// The key for counting bytes.
    pub session: String,
    /// The client's network; all its sessions share ten times one session's limit.
    pub network: String,
}

/// Accepts files. Cheap to clone.
#[derive(Clone)]
pub struct Uploads {
    store: Store,
    sandbox: Sandbox,
    clock: Arc<dyn Clock>,
    ids: Ids,
    limits: UploadLimits,
    images: Arc<Semaphore>,
}

impl Uploads {
    /// Stores uploads in this store and decodes images in this sandbox.
    #[must_use]
    pub fn new(
        store: Store,
        sandbox: Sandbox,
        clock: Arc<dyn Clock>,
        ids: Ids,
        limits: UploadLimits,
    ) -> Self {
        Self { store, sandbox, clock, ids, limits, images: Arc::new(Semaphore::new(IMAGES_AT_ONCE)) }
    }

    /// Stores an attachment whose bytes follow later.
    ///
    /// # Errors
    /// [`Refusal`]: the size or the type is not accepted, or the session has reached its daily limit.
    pub async fn announce(
        &self,
        uploader: Uploader,
        name: &str,
        mime_type: &str,
        size: u64,
    ) -> Decision<StoredAttachment> {
        self.check_size(size)?;
        // The content decides later.
        let mime_type =
            Media::of_mime(&mime_type.to_ascii_lowercase()).map_or(UNKNOWN, Media::mime).to_owned();
        let (id, now) = (self.id()?, self.clock.now());
        let today = self.today(now, &uploader.session, &uploader.network);
        let new = new_attachment(uploader, id, media::file_name(name), mime_type, size);
        match self.store.announce_attachment(&new, &today).await {
            Ok(()) => {}
            Err(NotKept::Store(error)) => return Err(error.into()),
            Err(_) => return Err(enough_today(now)),
        }
        self.named(id).await?.ok_or_else(|| Refusal::new(ErrorCode::AttachmentNotFound))
    }

    /// The attachment with this id.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn named(&self, id: AttachmentId) -> Result<Option<StoredAttachment>, StoreError> {
        Ok(self.store.attachments_named(&[id]).await?.pop())
    }

    /// Begins to receive a new file. `size`: the number of expected bytes, if known.
    ///
    /// # Errors
    /// [`Refusal`]: it is too large, or the session has reached its daily limit.
    pub async fn begin(&self, uploader: Uploader, name: &str, size: Option<u64>) -> Decision<Upload> {
        let least = size.unwrap_or(1);
        self.check_size(least)?;
        let allowance = self.allowance(&uploader.session, &uploader.network, least).await?;
        let network = uploader.network.clone();
        let new = new_attachment(uploader, self.id()?, media::file_name(name), String::new(), 0);
        let writer = self.store.write_blob(self.upload_id()?);
        Ok(self.receive(new, network, None, allowance, writer))
    }

    /// Begins to receive the bytes of an announced attachment. The announcement already counted them for the day.
    ///
    /// # Errors
    /// [`Refusal`]: the random source fails.
    pub fn begin_announced(&self, announced: StoredAttachment, network: String) -> Decision<Upload> {
        let upload = self.upload_id()?;
        let writer = match announced.digest {
            // The bytes are only compared.
            Some(_) => self.store.hash_blob(upload),
            None => self.store.write_blob(upload),
        };
        let uploader = Uploader {
            workspace: announced.workspace,
            workflow: announced.workflow,
            owner_kind: announced.owner_kind,
            owner_id: announced.owner_id,
            session: announced.session,
            network: network.clone(),
        };
        let new = new_attachment(uploader, announced.id, announced.name, String::new(), 0);
        let known = Announced { size: announced.size, digest: announced.digest };
        Ok(self.receive(new, network, Some(known), None, writer))
    }

    /// The counters of a session and of its network, with their daily limits.
    fn today(&self, now: DateTime<Utc>, session: &str, network: &str) -> UploadOfDay {
        let most = self.limits.day.map(NonZeroU64::get);
        let all = most.map(|most| most.saturating_mul(NETWORK_SESSIONS));
        let counters = vec![(session.to_owned(), most), (network.to_owned(), all)];
        UploadOfDay { day: now.date_naive(), counters }
    }

    fn receive(
        &self,
        new: NewAttachment,
        network: String,
        announced: Option<Announced>,
        allowance: Option<u64>,
        writer: BlobWriter,
    ) -> Upload {
        let (uploads, detector) = (self.clone(), Detector::new());
        Upload { uploads, new, network, announced, allowance, writer, detector }
    }

    fn upload_id(&self) -> Decision<Uuid> {
        self.ids.uuid().map_err(random)
    }

    fn id(&self) -> Decision<AttachmentId> {
        self.ids.attachment().map_err(random)
    }

    fn check_size(&self, size: u64) -> Decision<()> {
        match self.limits.file {
            Some(most) if size > most.get() => {
                let message = format!("The file is too large: at most {most} bytes are accepted.");
                Err(Refusal::new(ErrorCode::AttachmentTooLarge).with_message(message))
            }
            _ => Ok(()),
        }
    }

    /// Bytes that the session and its network may upload today, at least `size`; `None`: no limit. Checked before any
    /// byte is stored, while the end of the upload counts them.
    async fn allowance(&self, session: &str, network: &str, size: u64) -> Decision<Option<u64>> {
        let Some(most) = self.limits.day else { return Ok(None) };
        let now = self.clock.now();
        let all = most.get().saturating_mul(NETWORK_SESSIONS);
        let mut left = u64::MAX;
        for (counter, most) in [(session, most.get()), (network, all)] {
            let used = self.store.uploaded_on(now.date_naive(), counter).await?;
            left = left.min(most.saturating_sub(used));
        }
        if size > left { Err(enough_today(now)) } else { Ok(Some(left)) }
    }
}

/// Metadata of an attachment whose bytes are being received.
#[derive(Debug, Clone, Copy)]
struct Announced {
    size: u64,
    /// Digest of the bytes that were uploaded before.
    digest: Option<[u8; 32]>,
}

/// A file that is being received. Dropping it deletes its bytes.
pub struct Upload {
    uploads: Uploads,
    new: NewAttachment,
    network: String,
    /// The announcement, if the attachment exists.
    announced: Option<Announced>,
    /// Bytes that may be uploaded, if the day has a limit.
    allowance: Option<u64>,
    writer: BlobWriter,
    detector: Detector,
}

impl Upload {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`Refusal`]: they are too many, or the type is certainly not accepted.
    pub async fn write(&mut self, bytes: &[u8]) -> Decision<()> {
        let size = self.writer.size().saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.uploads.check_size(size)?;
        if self.announced.is_some_and(|announced| size > announced.size) {
            return Err(Refusal::new(ErrorCode::AttachmentSizeMismatch));
        }
        if self.allowance.is_some_and(|allowance| size > allowance) {
            return Err(enough_today(self.uploads.clock.now()));
        }
        self.detector.push(bytes);
        if self.detector.is_refused() {
            return Err(not_allowed());
        }
        Ok(self.writer.write(bytes).await?)
    }

    /// Stores the completely written file. Sending the same bytes again for an announced attachment changes nothing.
    ///
    /// # Errors
    /// [`Refusal`]: the file is empty, damaged, or has an unaccepted size or type; or the session has reached its daily
    /// limit.
    pub async fn finish(self) -> Decision<StoredAttachment> {
        let Self { uploads, mut new, network, announced, writer, detector, .. } = self;
        new.size = writer.size();
        if announced.is_some_and(|announced| announced.size != new.size) {
            return Err(Refusal::new(ErrorCode::AttachmentSizeMismatch));
        }
        if new.size == 0 {
            return Err(Refusal::new(ErrorCode::AttachmentSizeMismatch).with_message("The file is empty."));
        }
        let media = detector.finish(&new.name).ok_or_else(not_allowed)?;
        media.mime().clone_into(&mut new.mime_type);
        let written = writer.end().await?;
        if let Some(known) = announced.and_then(|announced| announced.digest) {
            if written.digest() != known {
                return Err(Refusal::new(ErrorCode::AttachmentInUse));
            }
            let stored = uploads.named(new.id).await?;
            return stored.ok_or_else(|| Refusal::new(ErrorCode::AttachmentNotFound));
        }
        let preview = match ImageKind::of_mime(media.mime()) {
            Some(kind) => Some(uploads.inspect_image(kind, &written).await?),
            None => None,
        };
        let now = uploads.clock.now();
        let today = uploads.today(now, &new.session, &network);
        let kept = uploads.store.keep_attachment(&new, announced.is_some(), written, preview, &today).await;
        match kept {
            Ok(Kept::Now(stored) | Kept::Before(stored)) => Ok(stored),
            Err(NotKept::Quota) => Err(enough_today(now)),
            Err(NotKept::Other) => Err(Refusal::new(ErrorCode::AttachmentInUse)),
            Err(NotKept::Gone) => Err(Refusal::new(ErrorCode::AttachmentNotFound)),
            Err(NotKept::Store(error)) => Err(error.into()),
        }
    }
}

impl Uploads {
    /// Decodes an image in a separate process.
    async fn inspect_image(&self, kind: ImageKind, written: &WrittenBlob) -> Decision<Preview> {
        if written.size() > u64::try_from(sandbox::LARGEST_IMAGE).unwrap_or(u64::MAX) {
            let most = sandbox::LARGEST_IMAGE >> 20;
            let message = format!("The image is too large: at most {most} MiB are accepted.");
            return Err(Refusal::new(ErrorCode::AttachmentTooLarge).with_message(message));
        }
        let permit = kernel::timeout(&*self.clock, IMAGE_WAIT, self.images.acquire()).await;
        if permit.is_none() {
            return Err(Refusal::new(ErrorCode::Overloaded));
        }
        let data = STANDARD.encode(written.read().await?);
        let facts = match self.sandbox.read_image(kind, data, ImageLimits::default()).await {
            Ok(Ok(facts)) => facts,
            Ok(Err(problem)) => return Err(damaged(&problem.to_string())),
            Err(
                busy @ (SandboxError::Busy { .. }
                | SandboxError::QueueFull { .. }
                | SandboxError::Unavailable(_)),
            ) => {
                return Err(Refusal { cause: Some(busy.to_string()), ..Refusal::new(ErrorCode::Overloaded) });
            }
            Err(error) => return Err(damaged(&error.to_string())),
        };
        let ImageFacts { width, height, colour, preview } = facts;
        let smaller = preview.map(|preview| STANDARD.decode(preview)).transpose();
        let smaller = smaller.map_err(|_| damaged("its preview did not arrive"))?;
        Ok(Preview { look: ImageLook { width, height, colour }, smaller })
    }
}

fn new_attachment(
    uploader: Uploader,
    id: AttachmentId,
    name: String,
    mime_type: String,
    size: u64,
) -> NewAttachment {
    let Uploader { workspace, workflow, owner_kind, owner_id, session, .. } = uploader;
    NewAttachment { id, workspace, workflow, owner_kind, owner_id, session, name, mime_type, size }
}

fn damaged(why: &str) -> Refusal {
    Refusal { cause: Some(why.to_owned()), ..Refusal::new(ErrorCode::AttachmentDamaged) }
}

fn not_allowed() -> Refusal {
    Refusal::new(ErrorCode::AttachmentTypeNotAllowed)
}

fn random(error: kernel::RandomError) -> Refusal {
    Refusal { cause: Some(error.to_string()), ..Refusal::new(ErrorCode::Internal) }
}

/// The session may upload again on the next day.
fn enough_today(now: DateTime<Utc>) -> Refusal {
    let midnight = (now + TimeDelta::days(1)).date_naive().and_time(NaiveTime::MIN).and_utc();
    Refusal::new(ErrorCode::ChatRateLimitedUploads)
        .with_message("The daily limit of uploads is reached.")
        .retry_after((midnight - now).num_seconds() + 1)
}
