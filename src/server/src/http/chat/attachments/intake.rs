//! Transfers an upload's bytes to the store: charged on arrival, stored in turns.

use actix_web::web::Payload;
use control::uploads::Upload;

use super::permits::{PER_PARTY, PER_SESSION, UploadPermit, busy};
use super::receive::Pace;
use crate::body_budget::{PER_SENDER, Reservation, Sender};
use crate::http::App;
use crate::http::body::{ArrivingBody, rejoined};
use crate::http::error::ApiResult;

/// Maximum bytes charged per upload, so that a network's uploads fit into the budget per sender.
const MAX_COUNTED: usize = PER_SENDER / PER_PARTY;

/// Waits for the first bytes of a body, so that a client that only announces a file occupies no resources.
pub(super) async fn arriving(mut body: Payload, pace: &mut Pace<'_>) -> ApiResult<ArrivingBody> {
    let first = pace.next(&mut body).await?;
    Ok(rejoined(first, body))
}

/// The resources of an upload in progress.
pub(super) struct Intake<'a> {
    app: &'a App,
    is_stranger: bool,
    reservation: Reservation,
    size: usize,
    _permit: UploadPermit,
}

impl<'a> Intake<'a> {
    /// Starts an upload in a session.
    ///
    /// # Errors
    /// 429 if the session or its network has too many uploads in progress.
    pub(super) fn begin(app: &'a App, sender: Sender, session: &str, network: &str) -> ApiResult<Self> {
        let is_stranger = sender.is_stranger();
        let standing = if is_stranger { "stranger" } else { "known" };
        let permit = app.upload_permits().acquire(vec![
            (format!("session:{session}"), PER_SESSION),
            (format!("{standing}:{network}"), PER_PARTY),
        ])?;
        let reservation = app.body_budget().begin(sender);
        Ok(Self { app, is_stranger, reservation, size: 0, _permit: permit })
    }

    /// Stores the next bytes.
    ///
    /// # Errors
    /// 429 if too many unfinished body bytes are charged; also the errors of [`Upload::write`].
    pub(super) async fn store(&mut self, upload: &mut Upload, bytes: &[u8]) -> ApiResult<()> {
        self.size = MAX_COUNTED.min(self.size + bytes.len());
        self.reservation.grow(self.size).map_err(|full| busy().with_cause(full))?;
        let _turn = self.app.store_turns().next(self.is_stranger).await?;
        Ok(upload.write(bytes).await?)
    }
}
