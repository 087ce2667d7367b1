//! What can go wrong with the database, sorted by what a caller can do about it.

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use wire::ErrorCode;

/// The unique key of handles.
pub(crate) const HANDLE_KEY: &str = "workflows_workspace_id_handle_key";
/// Name of the constraint that keeps slugs of workspaces apart.
const SLUG_KEY: &str = "workspaces_slug_key";

/// A query did not do what was asked.
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
    /// The workflow is archived, so nothing about it changes.
    #[error("the workflow is archived")]
    Archived,
    /// The settings of the database would lose acknowledged writes.
    #[error("the database has {0}, so an acknowledged write could be lost; set it back")]
    Unsafe(String),
    /// The service cannot work in the database; the text says what to change.
    #[error("{0}")]
    Unfit(String),
    /// A stored value is not what this version writes.
    #[error("stored data cannot be read: {0}")]
    Corrupt(String),
    /// A stored secret cannot be opened.
    #[error(transparent)]
    Key(#[from] auth::keyring::KeyringError),
    /// No random bytes.
    #[error(transparent)]
    Random(#[from] kernel::RandomError),
    /// The migrations did not apply.
    #[error("the migrations did not apply: {0}")]
    Migration(String),
    /// Anything else the database said.
    #[error("the database refused a query: {0}")]
    Query(#[source] DieselError),
}

impl StoreError {
    /// The code a client is answered with.
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

/// The constraint that keeps names of credentials unique in a workspace.
const CREDENTIAL_NAME: &str = "credentials_workspace_id_name_key";
/// The index that keeps aliases of apps unique in the installation.
const ALIAS_KEY: &str = "apps_alias_key";
/// The index that keeps names of collections unique in an app.
const COLLECTION_NAME: &str = "app_collections_name_key";
/// How PostgreSQL words the causes that diesel gives no kind for.
const FULL: [&str; 2] = ["No space left on device", "could not extend file"];
const UNAVAILABLE: [&str; 7] = [
    // The other transaction goes through, and so does the next try.
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
                // A server that is a standby by now refuses writes.
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

/// A stored JSON text that does not parse.
pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {error}"))
}
