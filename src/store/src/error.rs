//! Database errors, grouped by the caller's possible reaction.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use wire::ErrorCode;

/// The unique constraint on workflow handles.
pub(crate) const HANDLE_KEY: &str = "workflows_workspace_id_handle_key";
/// The unique constraint on workspace slugs.
const SLUG_KEY: &str = "workspaces_slug_key";

/// A failed query.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No connection in time, or the connection broke: the same call may succeed later.
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    /// The database has no space left.
    #[error("the database has no space left: {0}")]
    Full(String),
    /// A unique key is taken; the text is the constraint's name.
    #[error("the unique key {0} is taken")]
    Taken(String),
    /// The workflow is archived and therefore read-only.
    #[error("the workflow is archived")]
    Archived,
    /// The database settings allow the loss of acknowledged writes.
    #[error("the database has {0}, so an acknowledged write could be lost; set it back")]
    Unsafe(String),
    /// The database is unsuitable for the service; the text says how to fix it.
    #[error("{0}")]
    Unfit(String),
    /// A stored value has an unknown format.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
    /// A stored secret cannot be decrypted.
    #[error(transparent)]
    Key(#[from] auth::keyring::KeyringError),
    /// The random source failed.
    #[error(transparent)]
    Random(#[from] kernel::RandomError),
    /// The migrations failed.
    #[error("the migrations did not apply: {0}")]
    Migration(String),
    /// Any other database error.
    #[error("the database refused a query: {0}")]
    Query(#[source] DieselError),
}

impl StoreError {
    /// The error code for the client.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable(_) => ErrorCode::DatabaseUnavailable,
            Self::Full(_) => ErrorCode::StorageFull,
            Self::Archived => ErrorCode::WorkflowArchived,
            Self::Taken(key) if key == HANDLE_KEY => ErrorCode::WorkflowHandleTaken,
            Self::Taken(key) if key == SLUG_KEY => ErrorCode::WorkspaceSlugTaken,
            Self::Taken(key) if key == ALIAS_KEY => ErrorCode::AliasTaken,
            Self::Taken(key) if key == COLLECTION_NAME => ErrorCode::CollectionTaken,
            Self::Taken(key) if key == CREDENTIAL_NAME => ErrorCode::CredentialNameTaken,
            _ => ErrorCode::Internal,
        }
    }
}

/// The unique constraint on credential names in a workspace.
const CREDENTIAL_NAME: &str = "credentials_workspace_id_name_key";
/// The unique index on app aliases in the installation.
const ALIAS_KEY: &str = "apps_alias_key";
/// The unique index on collection names in an app.
const COLLECTION_NAME: &str = "app_collections_name_key";
/// PostgreSQL's messages for the errors that diesel does not classify.
const FULL: [&str; 2] = ["No space left on device", "could not extend file"];
const UNAVAILABLE: [&str; 7] = [
    // The other transaction succeeds, and so does a retry.
    "deadlock detected",
    "terminating connection",
    "the database system is",
    "too many clients",
    "connection closed",
    "error communicating with the server",
    "remaining connection slots",
];

impl From<DieselError> for StoreError {
    fn from(error: DieselError) -> Self {
        let text = error.to_string();
        let says = |texts: &[&str]| texts.iter().any(|known| text.contains(known));
        match &error {
            DieselError::DatabaseError(
                // A server that has become a standby rejects writes.
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::ReadOnlyTransaction,
                _,
            )
            | DieselError::BrokenTransactionManager => Self::Unavailable(text),
            DieselError::DatabaseError(DatabaseErrorKind::UniqueViolation, info) => {
                Self::Taken(info.constraint_name().unwrap_or_default().to_owned())
            }
            _ if says(&FULL) => Self::Full(text),
            _ if says(&UNAVAILABLE) => Self::Unavailable(text),
            _ => Self::Query(error),
        }
    }
}

impl From<diesel::ConnectionError> for StoreError {
    fn from(error: diesel::ConnectionError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// A stored JSON text that cannot be parsed.
pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {error}"))
}
