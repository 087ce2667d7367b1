//! Sign-ins through the provider, and the identities there.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::{Clock, ManualClock, SystemClock};
use store::{NewIdentity, NewOidcSignIn, NewSession, OidcReturn, Store, StoredUser};

use crate::support::World;

fn good() -> OidcReturn {
    OidcReturn::Good { sealed: b"sealed".to_vec(), return_to: Some("/chat/x".to_owned()) }
}

async fn start(store: &Store, state: &[u8]) -> bool {
    let new = NewOidcSignIn {
        state_digest: state.to_vec(),
        binding_digest: b"browser".to_vec(),
        sealed: b"sealed".to_vec(),
        return_to: Some("/chat/x"),
        client: "192.0.2.1",
    };
    store.change(async |changes| changes.start_oidc(new).await).await.unwrap()
}

async fn signs_in(store: &Store, subject: &str, email: &str) -> Option<StoredUser> {
    let new = NewSession {
        email,
        identity: Some(NewIdentity { issuer: "https://id.example", subject }),
        owner_email: None,
        members_only: false,
        refresh_digest: None,
        cookie_digest: None,
        user_agent: None,
    };
    let opened = store.change(async |changes| changes.open_session(new).await).await.unwrap();
    opened.map(|opened| opened.user)
}

#[tokio::test]
async fn a_state_is_valid_once_for_one_browser_and_deleted_after_a_day() {
    let clock = ManualClock::new(SystemClock::new().now());
    let world = World::at(Arc::new(clock.clone())).await;
    let store = &world.store;
    assert!(start(store, b"one").await && start(store, b"two").await);
    assert_eq!(store.use_oidc(b"none", Some(b"browser")).await.unwrap(), OidcReturn::Over);
    for browser in [None, Some(b"other".as_slice()), Some(b"")] {
        assert_eq!(store.use_oidc(b"one", browser).await.unwrap(), OidcReturn::OtherBrowser);
    }
    let all = (0..20).map(|_| store.use_oidc(b"one", Some(b"browser")));
    let all = futures_util::future::join_all(all).await;
    assert_eq!(all.iter().filter(|used| *used.as_ref().unwrap() == good()).count(), 1);
    assert_eq!(store.use_oidc(b"one", Some(b"other")).await.unwrap(), OidcReturn::Over);
    let twice = store.change(async |changes| {
        let (state_digest, binding_digest) = (b"one".to_vec(), b"other".to_vec());
        let new =
            NewOidcSignIn { state_digest, binding_digest, sealed: Vec::new(), return_to: None, client: "x" };
        changes.start_oidc(new).await
    });
    assert!(twice.await.is_err(), "a state cannot be started twice");

    clock.advance(Duration::from_secs(600));
    assert_eq!(store.use_oidc(b"two", Some(b"browser")).await.unwrap(), OidcReturn::Over);
    let day = TimeDelta::hours(24);
    assert_eq!(store.forget_old_sign_ins(clock.now() + day).await.unwrap(), 0);
    assert_eq!(store.forget_old_sign_ins(clock.now() + day + TimeDelta::seconds(1)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_subject_has_one_account_and_an_account_one_subject() {
    let world = World::new().await;
    let store = &world.store;
    let ada = signs_in(store, "ada-1", "ada@example.org").await.unwrap();
    assert_eq!(signs_in(store, "ada-1", "ada@elsewhere.example").await.unwrap().id, ada.id);
    assert_eq!(signs_in(store, "ada-2", "ada@example.org").await, None);
    // Of several concurrent sign-ins, with any subject, one gets the account.
    let all = (0..8).map(|number| signs_in(store, ["bob-1", "bob-2"][number % 2], "bob@x.org"));
    let all = futures_util::future::join_all(all).await;
    let bobs: Vec<_> = all.into_iter().flatten().map(|user| user.id).collect();
    assert!(!bobs.is_empty() && bobs.iter().all(|bob| *bob == bobs[0] && *bob != ada.id), "{bobs:?}");
    let rows = "SELECT count(*) || ' ' || count(DISTINCT user_id) FROM user_identities";
    assert_eq!(world.database.scalar(rows).await, "2 2");
    assert_eq!(world.database.scalar("SELECT count(*) FROM users").await, "2");
}
