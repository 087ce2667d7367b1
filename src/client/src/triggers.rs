//! A workflow's cron and webhook triggers.

use wire::operations::triggers;
use wire::{CronConfig, CronRecord, SetWebhook, WebhookRecord};

use crate::{Client, ClientError};

/// Each call takes a workflow's id or handle, and fails as [`crate::Answer::ok`] does. No response contains a secret.
impl Client {
    /// `GET /api/workflows/{ref}/triggers/cron`: the schedule.
    ///
    /// # Errors
    /// See above.
    pub async fn cron(&self, workflow: &str) -> Result<CronRecord, ClientError> {
        self.read(&triggers::READ_CRON, &[workflow], &[]).await?.ok()
    }

    /// `PUT /api/workflows/{ref}/triggers/cron`: sets or replaces the schedule.
    ///
    /// # Errors
    /// See above.
    pub async fn set_cron(&self, workflow: &str, cron: &CronConfig) -> Result<CronRecord, ClientError> {
        self.change(&triggers::SET_CRON, &[workflow], Some(cron)).await?.ok()
    }

    /// `DELETE /api/workflows/{ref}/triggers/cron`: removes the schedule; its runs continue.
    ///
    /// # Errors
    /// See above.
    pub async fn remove_cron(&self, workflow: &str) -> Result<(), ClientError> {
        self.change(&triggers::DELETE_CRON, &[workflow], None::<&()>).await?.done()
    }

    /// `GET /api/workflows/{ref}/triggers/webhook/config`: the webhook's settings.
    ///
    /// # Errors
    /// See above.
    pub async fn webhook(&self, workflow: &str) -> Result<WebhookRecord, ClientError> {
        self.read(&triggers::READ_WEBHOOK, &[workflow], &[]).await?.ok()
    }

    /// `PUT /api/workflows/{ref}/triggers/webhook/config`: sets the webhook; an absent secret stays unchanged.
    ///
    /// # Errors
    /// See above.
    pub async fn set_webhook(
        &self,
        workflow: &str,
        webhook: &SetWebhook,
    ) -> Result<WebhookRecord, ClientError> {
        self.change(&triggers::SET_WEBHOOK, &[workflow], Some(webhook)).await?.ok()
    }

    /// `DELETE /api/workflows/{ref}/triggers/webhook/config`: removes the webhook; its address stops responding.
    ///
    /// # Errors
    /// See above.
    pub async fn remove_webhook(&self, workflow: &str) -> Result<(), ClientError> {
        self.change(&triggers::DELETE_WEBHOOK, &[workflow], None::<&()>).await?.done()
    }
}
