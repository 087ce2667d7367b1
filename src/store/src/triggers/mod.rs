//! Cron and webhook triggers.

mod clock;
mod cron;
mod webhook;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::schema::workflows;
use crate::{Changes, StoreError};

pub use clock::*;
pub use cron::*;
pub use webhook::*;
pub use wire::MissedFires;

/// Locks the workflow against archiving until the commit.
async fn hold_unarchived(changes: &mut Changes, workflow: Uuid) -> Result<(), StoreError> {
    let archived: Option<DateTime<Utc>> = workflows::table
        .find(workflow)
        .select(workflows::archived_at)
        .for_share()
        .first(&mut *changes.connection)
        .await?;
    if archived.is_some() { Err(StoreError::Archived) } else { Ok(()) }
}
