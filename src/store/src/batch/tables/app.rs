//! App runs.

use diesel::sql_types::{Bytea, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

/// App-specific data for a run; the same commit stores its [`RunRow`](super::RunRow).
#[derive(Debug, Clone)]
pub struct AppRunRow {
    /// The run.
    pub run_id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// The release that froze its binding.
    pub release_id: Uuid,
    /// The name of the binding.
    pub binding: String,
    /// SHA-256 of its handle.
    pub handle: Vec<u8>,
    /// SHA-256 of the visitor's cookie.
    pub visitor: Option<Vec<u8>>,
    /// The member who started it.
    pub user_id: Option<Uuid>,
    /// The key under which limits count an anonymous visitor.
    pub network: Option<String>,
}

lane_table! {
    AppRuns: "app_runs" from &'a AppRunRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        app_id: Uuid [SqlUuid] = row.app_id,
        release_id: Uuid [SqlUuid] = row.release_id,
        binding: &'a str [Text] = &row.binding,
        handle: &'a [u8] [Bytea] = &row.handle,
        visitor: Option<&'a [u8]> [Nullable<Bytea>] = row.visitor.as_deref(),
        user_id: Option<Uuid> [Nullable<SqlUuid>] = row.user_id,
        network: Option<&'a str> [Nullable<Text>] = row.network.as_deref(),
    }
}
