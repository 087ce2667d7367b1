//! The tokens of somebody who has signed in: sent while they are good, and changed for new ones in time.
//!
//! A refresh token is good once, and the service ends a sign-in whose token comes twice. So commands that run at the same
//! time change it one after the other, and each looks first whether another one has.

use std::pin::pin;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use client::{Client, ErrorKind};
use kernel::{Clock, SystemClock};
use wire::SignedIn;

use crate::complaint::Complaint;
use crate::options::Session;
use crate::output::Failure;
use crate::profile::{self, Held, SignIn};

/// A command is to end before its token does.
const ENOUGH: TimeDelta = TimeDelta::minutes(5);

/// Between two attempts to renew it.
const PAUSE: Duration = Duration::from_secs(1);

/// The sign-in that a profile holds, good for a while yet.
pub(crate) async fn good(client: &Client, profile: &str, known: &SignIn) -> Result<SignIn, Failure> {
    if lasts(known) {
        return Ok(known.clone());
    }
    let held = Held::lock()?;
    let Some(current) = profile::read_if_any(profile)?.sign_in else {
        return Err(Complaint::failed("The sign-in has ended.").coded("client.signed_out").refused().into());
    };
    if lasts(&current) {
        return Ok(current);
    }
    // The old pair is worth nothing any more once there is a new one, so it must be sure that this can be kept.
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
            Err(Complaint::of(error, client.base()).into())
        }
    }
}

/// Does the work of a command that may outlast its access token.
pub(crate) async fn renewing<T>(session: &Session, work: impl Future<Output = T>) -> T {
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
                // A pair that was asked for is to be kept: the one before is worth nothing.
                let _ = renewal.await;
                return outcome;
            }
            renewed = &mut renewal => renewed,
        };
        // Without a new one, the work is told by the service.
        if let Ok(renewed) = renewed {
            let _ = session.client.set_service_token(&renewed.access_token);
            sign_in = renewed;
        }
    }
}

/// What is kept of an answer that hands tokens out.
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
