//! Attachments: claims by threads, and cleanup.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::{AttachmentId, Clock, ManualClock, ThreadId};
use store::batch::{Batch, ContainedRow};
use store::{AttachmentClaim, Kept, NewAttachment, NotKept, OwnerKind, StoredAttachment, UploadOfDay};
use uuid::Uuid;

use crate::support::World;

const MINUTE: Duration = Duration::from_secs(60);

/// A world whose clock the test controls.
async fn world() -> (Arc<ManualClock>, World) {
    let clock = Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH + TimeDelta::days(20_000)));
    (clock.clone(), World::at(clock).await)
}

fn new(id: AttachmentId, workspace: Uuid, workflow: Option<Uuid>) -> NewAttachment {
    NewAttachment {
        id,
        workspace,
        workflow,
        owner_kind: OwnerKind::Anyone,
        owner_id: None,
        session: "s".to_owned(),
        name: "a.txt".to_owned(),
        mime_type: "text/plain".to_owned(),
        size: 5,
    }
}

/// A session's daily limit.
fn today() -> UploadOfDay {
    let day = chrono::DateTime::UNIX_EPOCH.date_naive();
    UploadOfDay { day, counters: vec![("s".to_owned(), Some(12))] }
}

async fn keep(world: &World, new: &NewAttachment, announced: bool, bytes: &[u8]) -> Result<Kept, NotKept> {
    let mut writer = world.store.write_blob(world.uuid());
    writer.write(bytes).await.unwrap();
    let written = writer.end().await.unwrap();
    world.store.keep_attachment(new, announced, written, None, &today()).await
}

/// An uploaded file without a workflow.
async fn uploaded(world: &World) -> AttachmentId {
    let id = world.ids.attachment().unwrap();
    let kept = keep(world, &new(id, world.workspace().await, None), false, b"hello").await;
    assert!(matches!(kept, Ok(Kept::Now(_))), "{kept:?}");
    id
}

/// Stores that a thread's item contains an attachment.
async fn contain(world: &World, id: AttachmentId, thread_id: ThreadId) {
    let contained = vec![ContainedRow { attachment: id.0, thread_id }];
    world.commit(world.writer().await, &Batch { contained, ..Batch::default() }).await.unwrap();
}

async fn stored(world: &World, id: AttachmentId) -> Option<StoredAttachment> {
    world.store.attachments_named(&[id]).await.unwrap().pop()
}

async fn claim(world: &World, ids: &[AttachmentId], thread: ThreadId, owner: &str) -> AttachmentClaim {
    let workflow = Uuid::from_u128(9);
    world.store.claim_attachments(ids, thread, workflow, OwnerKind::Session, Some(owner)).await.unwrap()
}

#[tokio::test]
async fn an_attachment_is_claimed_by_one_thread_with_its_owner() {
    let (_, world) = world().await;
    let (id, thread, other) =
        (uploaded(&world).await, world.ids.thread().unwrap(), world.ids.thread().unwrap());
    assert_eq!(claim(&world, &[id], thread, "ada").await, AttachmentClaim::Claimed);
    assert_eq!(
        claim(&world, &[id], thread, "ada").await,
        AttachmentClaim::Claimed,
        "the same thread once more"
    );
    let both = [id, uploaded(&world).await];
    assert_eq!(claim(&world, &both, other, "bob").await, AttachmentClaim::InUse);
    let now = stored(&world, id).await.unwrap();
    assert_eq!(
        (now.owner_kind, now.owner_id.as_deref(), now.thread),
        (OwnerKind::Session, Some("ada"), Some(thread))
    );
    assert_eq!(now.workflow, Some(Uuid::from_u128(9)));
    assert_eq!(stored(&world, both[1]).await.unwrap().thread, None, "all or none");
    assert_eq!(
        claim(&world, &[both[1], world.ids.attachment().unwrap()], other, "bob").await,
        AttachmentClaim::Deleted
    );
}

/// Releases an attachment that belonged to Ada before its claim.
async fn release(world: &World, id: AttachmentId, thread: ThreadId) {
    let before = stored(world, id).await.unwrap();
    world.store.release_attachments(&[before], thread).await.unwrap();
}

#[tokio::test]
async fn a_claim_without_a_message_is_void_after_five_minutes_or_released() {
    let (clock, world) = world().await;
    let (id, thread, other) =
        (uploaded(&world).await, world.ids.thread().unwrap(), world.ids.thread().unwrap());
    claim(&world, &[id], thread, "ada").await;
    clock.advance(4 * MINUTE);
    assert_eq!(claim(&world, &[id], other, "ada").await, AttachmentClaim::InUse);
    clock.advance(2 * MINUTE);
    assert_eq!(claim(&world, &[id], other, "ada").await, AttachmentClaim::Claimed);
    release(&world, id, thread).await;
    assert_eq!(stored(&world, id).await.unwrap().thread, Some(other), "another thread does not release it");
    release(&world, id, other).await;
    assert_eq!(claim(&world, &[id], thread, "ada").await, AttachmentClaim::Claimed);
    // Kept with its message.
    contain(&world, id, thread).await;
    clock.advance(10 * MINUTE);
    release(&world, id, thread).await;
    assert_eq!(claim(&world, &[id], other, "ada").await, AttachmentClaim::InUse);
    assert!(!world.store.delete_attachment(id).await.unwrap());
}

#[tokio::test]
async fn unused_attachments_are_deleted_unless_recently_claimed() {
    let (clock, world) = world().await;
    let (old, claimed) = (uploaded(&world).await, uploaded(&world).await);
    world.database.execute("DELETE FROM upload_days").await.unwrap();
    let kept = uploaded(&world).await;
    let thread = world.ids.thread().unwrap();
    claim(&world, &[kept], thread, "ada").await;
    contain(&world, kept, thread).await;
    clock.advance(25 * 60 * MINUTE);
    let young = uploaded_later(&world).await;
    claim(&world, &[claimed], thread, "ada").await;
    let forget = async || world.store.forget_old_attachments(clock.now() - TimeDelta::days(1)).await.unwrap();
    assert!(!forget().await);
    let left = async |id| stored(&world, id).await.is_some();
    assert_eq!(
        [left(old).await, left(claimed).await, left(kept).await, left(young).await],
        [false, true, true, true]
    );
    assert_eq!(world.count("blob_uses").await, "3");
    clock.advance(6 * MINUTE);
    forget().await;
    assert_eq!([left(claimed).await, left(kept).await], [false, true]);
}

/// Another file, uploaded on another day.
async fn uploaded_later(world: &World) -> AttachmentId {
    let id = world.ids.attachment().unwrap();
    world.store.announce_attachment(&new(id, world.workspace().await, None), &today()).await.unwrap();
    world.database.execute("DELETE FROM upload_days").await.unwrap();
    keep(world, &new(id, world.workspace().await, None), true, b"later").await.unwrap();
    id
}

#[tokio::test]
async fn two_uploads_to_one_url_store_one_file() {
    let (_, world) = world().await;
    let id = world.ids.attachment().unwrap();
    let new = new(id, world.workspace().await, None);
    world.store.announce_attachment(&new, &today()).await.unwrap();
    let (first, second) =
        tokio::join!(keep(&world, &new, true, b"hello"), keep(&world, &new, true, b"hello"));
    let is_now = |kept: &Result<Kept, NotKept>| matches!(kept, Ok(Kept::Now(_)));
    assert!(is_now(&first) != is_now(&second) && first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    assert!(matches!(keep(&world, &new, true, b"other").await, Err(NotKept::Other)));
    assert_eq!((world.count("blobs").await, world.count("blob_uses").await), ("1".into(), "1".into()));
    assert_eq!(world.database.scalar("SELECT bytes FROM upload_days").await, "5");
    world.store.delete_attachment(id).await.unwrap();
    assert!(matches!(keep(&world, &new, true, b"hello").await, Err(NotKept::Gone)));
}

#[tokio::test]
async fn an_upload_above_the_daily_limit_is_not_stored() {
    let (_, world) = world().await;
    uploaded(&world).await;
    uploaded(&world).await;
    let id = world.ids.attachment().unwrap();
    let full = keep(&world, &new(id, world.workspace().await, None), false, b"hello").await;
    assert!(matches!(full, Err(NotKept::Quota)), "{full:?}");
    assert_eq!(stored(&world, id).await, None);
    assert_eq!(world.database.scalar("SELECT bytes FROM upload_days").await, "10");
}

#[tokio::test]
async fn announced_bytes_count_for_the_day_once() {
    let (_, world) = world().await;
    let workspace = world.workspace().await;
    let announced = new(world.ids.attachment().unwrap(), workspace, None);
    world.store.announce_attachment(&announced, &today()).await.unwrap();
    keep(&world, &announced, true, b"hello").await.unwrap();
    assert_eq!(world.database.scalar("SELECT bytes FROM upload_days").await, "5");
    uploaded(&world).await;
    let late = new(world.ids.attachment().unwrap(), workspace, None);
    let full = world.store.announce_attachment(&late, &today()).await;
    assert!(matches!(full, Err(NotKept::Quota)), "{full:?}");
    assert_eq!(stored(&world, late.id).await, None);
}
