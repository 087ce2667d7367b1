//! Hosted apps.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use wire::operations::{apps, releases};
use wire::{
    AcknowledgePermissions, AcknowledgementRecord, AppRecord, AppRunRecord, AppRunState, BindingRecord,
    CollectionRecord, CreateApp, CreateCollection, DeploymentRecord, DeploymentSummary, Listed,
    PermissionsRecord, ReleaseRecord, ReleaseSummary, RollBack, UpdateApp,
};

use crate::client::{Bearer, Client};
use crate::{ClientError, Part};

/// Added to the response timeout: the time that the service takes to accept and check an upload.
const UPLOAD_ALLOWANCE: Duration = Duration::from_secs(640);

/// A bundle for upload.
#[derive(Debug)]
pub struct Archive<C> {
    /// Total bytes of all chunks.
    pub size: u64,
    /// The bytes in order; read while they are sent.
    pub chunks: C,
}

/// A filter for app runs. A run must match every field that is set.
#[derive(Debug, Clone, Default)]
pub struct AppRunsFilter {
    /// One of these states; empty: any.
    pub states: Vec<AppRunState>,
    /// The binding's name.
    pub binding: Option<String>,
}

/// Each call takes an app's id or alias, and fails as [`crate::Answer::ok`] does.
impl Client {
    /// `GET /api/apps`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn apps(&self, part: &Part) -> Result<Listed<AppRecord>, ClientError> {
        self.read(&apps::LIST, &[], &part.query()).await?.ok()
    }

    /// `POST /api/apps`: creates an app.
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

    /// `PATCH /api/apps/{app}`: changes an app's name or access.
    ///
    /// # Errors
    /// See above.
    pub async fn update_app(&self, app: &str, change: &UpdateApp) -> Result<AppRecord, ClientError> {
        self.change(&apps::UPDATE, &[app], Some(change)).await?.ok()
    }

    /// `DELETE /api/apps/{app}`: deletes an app with its deployments.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_app(&self, app: &str) -> Result<(), ClientError> {
        self.change(&apps::DELETE, &[app], None::<&()>).await?.done()
    }

    /// `GET /api/apps/{app}/deployments`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn deployments(
        &self,
        app: &str,
        part: &Part,
    ) -> Result<Listed<DeploymentSummary>, ClientError> {
        self.read(&apps::LIST_DEPLOYMENTS, &[app], &part.query()).await?.ok()
    }

    /// `DELETE /api/apps/{app}/deployments/{deployment}`: deletes a deployment that was never published.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_deployment(&self, app: &str, deployment: &str) -> Result<(), ClientError> {
        self.change(&apps::DELETE_DEPLOYMENT, &[app, deployment], None::<&()>).await?.done()
    }

    /// `POST /api/apps/{app}/deployments`: uploads a bundle. Repeating it with the same key uploads nothing more.
    ///
    /// # Errors
    /// See above.
    pub async fn deploy<C>(
        &self,
        app: &str,
        key: &str,
        archive: Archive<C>,
    ) -> Result<DeploymentRecord, ClientError>
    where
        C: Iterator<Item = io::Result<Vec<u8>>> + Send + 'static,
    {
        let chunks = archive.chunks.map(|chunk| chunk.map(Bytes::from));
        let request = self
            .operation(&apps::DEPLOY, &[app], Bearer::Service)?
            .header(CONTENT_TYPE, "application/zip")
            .header(CONTENT_LENGTH, archive.size)
            .header("idempotency-key", key)
            .body(Body::wrap_stream(stream::iter(chunks)));
        self.answer_after(request, UPLOAD_ALLOWANCE).await?.ok()
    }

    /// `GET /api/apps/{app}/deployments/{deployment}`: one deployment.
    ///
    /// # Errors
    /// See above.
    pub async fn deployment(&self, app: &str, deployment: &str) -> Result<DeploymentRecord, ClientError> {
        self.read(&apps::READ_DEPLOYMENT, &[app, deployment], &[]).await?.ok()
    }

    /// `GET /api/apps/{app}/deployments/{deployment}/permissions`: the permissions that the deployment would have if
    /// published now.
    ///
    /// # Errors
    /// See above.
    pub async fn permissions(&self, app: &str, deployment: &str) -> Result<PermissionsRecord, ClientError> {
        self.read(&releases::PERMISSIONS, &[app, deployment], &[]).await?.ok()
    }

    /// `POST /api/apps/{app}/deployments/{deployment}/acknowledge`: acknowledges a permission revision.
    ///
    /// # Errors
    /// See above.
    pub async fn acknowledge(
        &self,
        app: &str,
        deployment: &str,
        revision: &str,
    ) -> Result<AcknowledgementRecord, ClientError> {
        let body = AcknowledgePermissions { permission_revision: revision.to_owned() };
        self.change(&releases::ACKNOWLEDGE, &[app, deployment], Some(&body)).await?.ok()
    }

    /// `POST /api/apps/{app}/deployments/{deployment}/publish`: publishes a deployment.
    ///
    /// # Errors
    /// See above.
    pub async fn publish_app(&self, app: &str, deployment: &str) -> Result<ReleaseRecord, ClientError> {
        self.change(&releases::PUBLISH, &[app, deployment], None::<&()>).await?.ok()
    }

    /// `POST /api/apps/{app}/rollback`: repeats a release.
    ///
    /// # Errors
    /// See above.
    pub async fn roll_back(&self, app: &str, release: &RollBack) -> Result<ReleaseRecord, ClientError> {
        self.change(&releases::ROLL_BACK, &[app], Some(release)).await?.ok()
    }

    /// `GET /api/apps/{app}/releases`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn releases(&self, app: &str, part: &Part) -> Result<Listed<ReleaseSummary>, ClientError> {
        self.read(&releases::LIST, &[app], &part.query()).await?.ok()
    }

    /// `GET /api/apps/{app}/runs`: a page of the runs that pages have started, newest first. An empty page may still
    /// have a cursor.
    ///
    /// # Errors
    /// See above.
    pub async fn app_runs(
        &self,
        app: &str,
        filter: &AppRunsFilter,
        part: &Part,
    ) -> Result<Listed<AppRunRecord>, ClientError> {
        let mut query = part.query();
        if !filter.states.is_empty() {
            let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
            query.push(("state", states.join(",")));
        }
        query.extend(filter.binding.clone().map(|binding| ("binding", binding)));
        self.read(&apps::LIST_RUNS, &[app], &query).await?.ok()
    }

    /// `GET /api/apps/{app}/bindings`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn app_bindings(&self, app: &str, part: &Part) -> Result<Listed<BindingRecord>, ClientError> {
        self.read(&apps::LIST_BINDINGS, &[app], &part.query()).await?.ok()
    }

    /// `GET /api/apps/{app}/collections`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn app_collections(
        &self,
        app: &str,
        part: &Part,
    ) -> Result<Listed<CollectionRecord>, ClientError> {
        self.read(&apps::LIST_COLLECTIONS, &[app], &part.query()).await?.ok()
    }

    /// `POST /api/apps/{app}/collections`: creates a collection.
    ///
    /// # Errors
    /// See above.
    pub async fn create_app_collection(
        &self,
        app: &str,
        new: &CreateCollection,
    ) -> Result<CollectionRecord, ClientError> {
        self.change(&apps::CREATE_COLLECTION, &[app], Some(new)).await?.ok()
    }

    /// `DELETE /api/apps/{app}/collections/{collection}`: deletes a collection with its records.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_app_collection(&self, app: &str, collection: &str) -> Result<(), ClientError> {
        self.change(&apps::DELETE_COLLECTION, &[app, collection], None::<&()>).await?.done()
    }
}
