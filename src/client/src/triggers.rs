//! What begins runs of a workflow by itself.

use wire::operations::triggers;
use wire::{CronConfig, CronRecord, SetWebhook, WebhookRecord};

use crate::{Client, ClientError};

/// Every call takes a workflow's id or handle, and fails as [`crate::Answer::ok`] does. No answer holds a secret.
impl Client {
    /// `GET /api/workflows/{ref}/triggers/cron`: the schedule.
    ///
    /// # Errors
    /// See above.
    pub async fn cron(&self, workflow: &str) -> Result<CronRecord, ClientError> {
        self.read(&triggers::READ_CRON, &[workflow], &[]).await?.ok()
    }

    /// `PUT /api/workflows/{ref}/triggers/cron`: sets the schedule, whatever it was before.
    ///
    /// # Errors
    /// See above.
    pub async fn set_cron(&self, workflow: &str, cron: &CronConfig) -> Result<CronRecord, ClientError> {
        self.change(&triggers::SET_CRON, &[workflow], Some(cron)).await?.ok()
    }

    /// `DELETE /api/workflows/{ref}/triggers/cron`: removes the schedule; its runs go on.
    ///
    /// # Errors
    /// See above.
    pub async fn remove_cron(&self, workflow: &str) -> Result<(), ClientError> {
        self.change(&triggers::DELETE_CRON, &[workflow], None::<&()>).await?.done()
    }

    /// `GET /api/workflows/{ref}/triggers/webhook/config`: what the webhook asks of its callers.
    ///
    /// # Errors
    /// See above.
    pub async fn webhook(&self, workflow: &str) -> Result<WebhookRecord, ClientError> {
        self.read(&triggers::READ_WEBHOOK, &[workflow], &[]).await?.ok()
    }

    /// `PUT /api/workflows/{ref}/triggers/webhook/config`: sets the webhook; a secret that is not given stays.
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

    /// `DELETE /api/workflows/{ref}/triggers/webhook/config`: its address no longer answers.
    ///
    /// # Errors
    /// See above.
    pub async fn remove_webhook(&self, workflow: &str) -> Result<(), ClientError> {
        self.change(&triggers::DELETE_WEBHOOK, &[workflow], None::<&()>).await?.done()
    }
}
