//! Creates partitions ahead and deletes expired data, once an hour.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::Clock;
use parking_lot::Mutex;
use store::{CONTENT_USE, ChatRetention, EVENTS_KEPT, Store, StoreError};

/// Pause between two parts of a large deletion.
const DELETE_PAUSE: Duration = Duration::from_millis(50);
/// Pause before a retry if the database does not answer.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Retention of unreferenced data, because a reader may still use it.
const GRACE: TimeDelta = TimeDelta::days(1);
/// Retention of upload chunks after the last one arrived.
const UPLOADS: TimeDelta = TimeDelta::hours(1);
/// Retention of delivery results.
const DELIVERIES: TimeDelta = TimeDelta::days(7);
/// Retention of chat model usage.
const CHAT_USAGE: TimeDelta = TimeDelta::days(35);

/// Keeps the database from filling up. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Retention {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    /// Retention of ended runs; `None` keeps them forever.
    pub(crate) keep_runs: Option<TimeDelta>,
    /// When age-based deletion may resume, in monotonic time.
    pub(crate) deletes_from: Arc<Mutex<Duration>>,
}

impl Retention {
    /// Creates partitions ahead, retrying until the database has them; then deletes expired data as far as possible.
    pub(crate) async fn round(&self) {
        // Partitions are created days ahead, so a temporary database failure must not end the job.
        while let Err(error) = self.needed().await {
            tracing::warn!(%error, "maintenance failed; retrying");
            self.clock.sleep(RETRY_PAUSE).await;
        }
        if self.clock.monotonic() < *self.deletes_from.lock() {
            tracing::info!("clock set ahead; age-based deletion paused for a day");
            return;
        }
        // A failure must not skip the other steps.
        let forgotten = [
            self.store.forget_old_leases().await.map(drop),
            self.forget_by_age().await,
            self.forget_events().await,
            self.forget_runs().await,
            self.forget_drafts().await,
            self.forget_attachments().await,
            self.forget_chats().await,
            self.erase_threads().await,
            self.erase_apps().await,
            self.forget_blobs().await,
            self.forget_cases().await,
            self.erase_indexes().await,
        ];
        for error in forgotten.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "failed to delete expired data; retrying in the next round");
        }
    }

    /// Suspends deletion for a day. After the clock was set ahead, everything seems old. The clock may be corrected,
    /// and stream events stay readable for the usual time.
    pub(crate) fn delete_nothing_for_now(&self) {
        let kept = EVENTS_KEPT.to_std().unwrap_or(Duration::MAX);
        *self.deletes_from.lock() = self.clock.monotonic().saturating_add(kept);
    }

    pub(crate) async fn make_partitions(&self) -> Result<(), StoreError> {
        self.store.ensure_partitions(self.clock.now().date_naive()).await
    }

    async fn needed(&self) -> Result<(), StoreError> {
        self.make_partitions().await?;
        self.store.tidy_run_queue().await?;
        self.store.wake_resumed_trainings().await?;
        // By the database clock.
        self.store.forget_old_readers().await?;
        Ok(())
    }

    async fn forget_by_age(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        self.store.forget_old_keys(now).await?;
        self.store.forget_old_sign_ins(now).await?;
        self.store.forget_old_invitations(now).await?;
        self.store.forget_old_webhook_calls(now).await?;
        self.store.forget_old_deliveries(now - DELIVERIES).await?;
        // The longest configurable window.
        self.store.forget_old_failures(now - TimeDelta::days(1)).await?;
        self.store.forget_upload_days(now.date_naive()).await?;
        self.store.forget_old_app_limits(now).await?;
        self.store.forget_unasked_questions(now).await?;
        self.store.forget_old_chat_usage(now - CHAT_USAGE).await?;
        while self.store.forget_old_app_sign_ins(now).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    async fn forget_events(&self) -> Result<(), StoreError> {
        for day in self.store.drop_old_events(self.clock.now()).await? {
            tracing::info!(%day, "dropped expired events");
        }
        Ok(())
    }

    async fn forget_runs(&self) -> Result<(), StoreError> {
        let Some(kept) = self.keep_runs else { return Ok(()) };
        while self.store.forget_old_runs(self.clock.now() - kept).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    async fn forget_drafts(&self) -> Result<(), StoreError> {
        while self.store.forget_old_drafts(self.clock.now()).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    async fn forget_attachments(&self) -> Result<(), StoreError> {
        while self.store.forget_old_attachments(self.clock.now() - GRACE).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    /// Applies each workflow's `retention_days`.
    async fn forget_chats(&self) -> Result<(), StoreError> {
        for kept in self.store.chat_retentions().await? {
            // A failure must not skip the other workflows.
            if let Err(error) = self.forget_chats_of(&kept).await {
                tracing::warn!(%error, workflow = %kept.workflow, "failed to delete old chats");
            }
        }
        Ok(())
    }

    async fn forget_chats_of(&self, kept: &ChatRetention) -> Result<(), StoreError> {
        let (store, workflow, now) = (&self.store, kept.workflow, self.clock.now());
        if kept.days == 0 {
            while store.erase_contents(workflow, now - CONTENT_USE).await? {
                self.clock.sleep(DELETE_PAUSE).await;
            }
            // Content that was stored after its thread was erased.
            while store.erase_late_contents(workflow, now - GRACE * 2).await? {
                self.clock.sleep(DELETE_PAUSE).await;
            }
            return Ok(());
        }
        let before = now - TimeDelta::days(kept.days.into());
        while store.delete_old_threads(workflow, before).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        while store.forget_old_turns(workflow, before).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    async fn erase_threads(&self) -> Result<(), StoreError> {
        while self.store.erase_deleted_threads(self.clock.now() - GRACE).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    async fn erase_indexes(&self) -> Result<(), StoreError> {
        while self.store.erase_deleted_indexes(self.clock.now()).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    /// Before blobs, whose references this removes.
    async fn erase_apps(&self) -> Result<(), StoreError> {
        while self.store.erase_records_of_deleted().await?
            || self.store.erase_records_of_absent_users().await?
            || self.store.forget_deleted_records().await?
        {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        while self.store.erase_deleted_apps().await?
            || self.store.forget_old_deployments().await?
            || self.store.forget_deleted_collections().await?
        {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    async fn forget_cases(&self) -> Result<(), StoreError> {
        while self.store.forget_old_cases(self.clock.now() - GRACE).await? {
            self.clock.sleep(DELETE_PAUSE).await;
        }
        Ok(())
    }

    async fn forget_blobs(&self) -> Result<(), StoreError> {
        self.store.forget_old_uploads(self.clock.now() - UPLOADS).await?;
        let before = self.clock.now() - GRACE;
        let mut looked = None;
        loop {
            looked = self.store.forget_old_blobs(before, looked).await?;
            if looked.is_none() {
                return Ok(());
            }
            self.clock.sleep(DELETE_PAUSE).await;
        }
    }
}
