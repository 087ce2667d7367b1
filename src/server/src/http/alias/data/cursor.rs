//! Sealed cursors for record lists. A cursor opens only for the same collection, owner and order, and expires after a
//! day.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use store::RecordScope;
use uuid::Uuid;
use wire::ErrorCode;

use super::super::error::AliasResult;
use crate::http::App;
use crate::http::error::ApiError;

/// Cursor lifetime.
const KEPT: TimeDelta = TimeDelta::hours(24);

/// The list that a cursor belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordList {
    pub(super) scope: RecordScope,
    pub(super) descending: bool,
}

/// The last record's position in a page.
pub(super) type Position = (DateTime<Utc>, Uuid);

impl RecordList {
    fn context(&self) -> String {
        let RecordScope { app, collection, owner } = self.scope;
        let owner = owner.map(|owner| owner.to_string()).unwrap_or_default();
        let order = if self.descending { "-created_at" } else { "created_at" };
        format!("callboard|records|{app}|{collection}|{owner}|{order}")
    }

    /// Seals the cursor after a record.
    pub(super) fn seal(&self, app: &App, last: Position) -> AliasResult<String> {
        let (at, id) = last;
        let expires = app.clock().now() + KEPT;
        let (expires, at) = (expires.timestamp_millis().to_be_bytes(), at.timestamp_micros().to_be_bytes());
        let plain = [expires.as_slice(), at.as_slice(), id.as_bytes()].concat();
        let sealed = app.cursors().seal(&self.context(), &plain, app.random());
        let sealed = sealed.map_err(|error| ApiError::new(ErrorCode::AppInternal).with_cause(error))?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a cursor and returns the position after which the page begins.
    ///
    /// # Errors
    /// `cursor_invalid` for a cursor that was modified, belongs to another list or has expired.
    pub(super) fn open(&self, app: &App, cursor: &str) -> AliasResult<Position> {
        self.opened(app, cursor).ok_or_else(|| ErrorCode::CursorInvalid.into())
    }

    fn opened(&self, app: &App, cursor: &str) -> Option<Position> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let ring = app.cursors();
        let plain = ring.open(ring.active(), &self.context(), &sealed).ok()?;
        let (expires, rest) = plain.split_first_chunk::<8>()?;
        let (at, id) = rest.split_first_chunk::<8>()?;
        if i64::from_be_bytes(*expires) <= app.clock().now().timestamp_millis() {
            return None;
        }
        Some((DateTime::from_timestamp_micros(i64::from_be_bytes(*at))?, Uuid::from_slice(id).ok()?))
    }
}
