//! Hosted apps.

use wire::operations::apps;
use wire::{AppRecord, CreateApp, Listed, UpdateApp};

use crate::client::Client;
use crate::{ClientError, Part};

/// Every call takes an app's id or alias, and fails as [`crate::Answer::ok`] does.
impl Client {
    /// `GET /api/apps`: part of the list, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn apps(&self, part: &Part) -> Result<Listed<AppRecord>, ClientError> {
        self.read(&apps::LIST, &[], &part.query()).await?.ok()
    }

    /// `POST /api/apps`: creates one.
    ///
    /// # Errors
    /// See above.
    pub async fn create_app(&self, new: &CreateApp) -> Result<AppRecord, ClientError> {
        self.change(&apps::CREATE, &[], Some(new)).await?.ok()
    }

    /// `GET /api/apps/{app}`: one app.
    ///
    /// # Errors
    /// See above.
    pub async fn app(&self, app: &str) -> Result<AppRecord, ClientError> {
        self.read(&apps::READ, &[app], &[]).await?.ok()
    }

    /// `PATCH /api/apps/{app}`: changes its name, or who can open it.
    ///
    /// # Errors
    /// See above.
    pub async fn update_app(&self, app: &str, change: &UpdateApp) -> Result<AppRecord, ClientError> {
        self.change(&apps::UPDATE, &[app], Some(change)).await?.ok()
    }

    /// `DELETE /api/apps/{app}`: deletes one with its deployments.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_app(&self, app: &str) -> Result<(), ClientError> {
        self.change(&apps::DELETE, &[app], None::<&()>).await?.done()
    }
}
