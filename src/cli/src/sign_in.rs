//! The tokens of a signed-in user: renewed before they expire.
//!
//! A refresh token can be used once, and the service ends a sign-in whose refresh token is used twice. So concurrent
//! commands renew it one after another, and each first checks whether another command already has.

use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use client::{Client, ErrorKind};
use kernel::{Clock, SystemClock};
use wire::SignedIn;

use crate::complaint::Complaint;
use crate::options::ServiceSession;
use crate::output::CommandError;
use crate::profile::{self, ProfileLock, SignIn};

/// Minimum remaining token lifetime at the start of a command.
const ENOUGH: TimeDelta = TimeDelta::minutes(5);

/// Time between two renewal attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the profile's sign-in, renewed if it expires soon.
pub(crate) async fn good(client: &Client, profile: &str, known: &SignIn) -> Result<SignIn, CommandError> {
    if lasts(known) {
        return Ok(known.clone());
    }
    let held = ProfileLock::lock()?;
    let Some(current) = profile::read_if_any(profile)?.sign_in else {
        return Err(Complaint::failed("The sign-in has ended.").coded("client.signed_out").refused().into());
    };
    if lasts(&current) {
        return Ok(current);
    }
    // After a renewal the old pair is useless, so the change is prepared first to be sure that it can be stored.
    let draft = held.draft(profile)?;
    match client.refresh(&current.refresh_token).await {
        Ok(answer) => {
            let fresh = kept(answer, now());
            draft.keep_sign_in(client.base(), &fresh)?;
            Ok(fresh)
        }
        Err(error) => {
            if error.kind() == ErrorKind::Refused {
                draft.keep_nothing()?;
            }
            Err(Complaint::from_client_error(error, client.base()).into())
        }
    }
}

/// Runs a command's work that may outlast its access token.
pub(crate) async fn renewing<T>(session: &ServiceSession, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let Some(mut sign_in) = session.sign_in.clone() else { return work.await };
    loop {
        let wait = (sign_in.access_expires - now() - ENOUGH).to_std().unwrap_or_default().max(PAUSE);
        let clock = SystemClock::new();
        tokio::select! {
            outcome = &mut work => return outcome,
            () = clock.sleep(wait) => {}
        }
        let before = sign_in.clone();
        let mut renewal = pin!(good(&session.client, &session.profile, &before));
        let renewed = tokio::select! {
            outcome = &mut work => {
                // A requested pair must be stored, because the previous one is now useless.
                let _ = renewal.await;
                return outcome;
            }
            renewed = &mut renewal => renewed,
        };
        // If the renewal fails, the service will report it to the work.
        if let Ok(renewed) = renewed {
            let _ = session.client.set_service_token(&renewed.access_token);
            sign_in = renewed;
        }
    }
}

/// The sign-in from a token response.
pub(crate) fn kept(answer: SignedIn, now: DateTime<Utc>) -> SignIn {
    let lasts = TimeDelta::try_seconds(answer.expires_in).unwrap_or_default();
    SignIn {
        access_token: answer.access_token.into(),
        access_expires: now.checked_add_signed(lasts).unwrap_or(now),
        refresh_token: answer.refresh_token.into(),
    }
}

pub(crate) fn now() -> DateTime<Utc> {
    SystemClock::new().now()
}

fn lasts(sign_in: &SignIn) -> bool {
    sign_in.access_expires - now() > ENOUGH
}
