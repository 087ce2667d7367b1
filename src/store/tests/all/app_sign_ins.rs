//! Authorization codes and app sessions.

use futures_util::future::join_all;
use store::testing::TestDatabase;
use store::{AppSessionUse, NewAppCode, RedeemedCode, ShownAppCode, Store};
use uuid::Uuid;

const BACK: &str = "https://notes.apps.example.org/__service/auth/callback";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

struct SignIns {
    database: TestDatabase,
    store: Store,
    app: Uuid,
    workspace: Uuid,
    user: Uuid,
    central_session: Uuid,
}

impl SignIns {
    async fn create() -> Self {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let [app, user, central_session] = [1, 2, 3].map(Uuid::from_u128);
        let workspace =
            database.scalar("SELECT id FROM workspaces WHERE slug = 'default'").await.parse().unwrap();
        for sql in [
            format!("INSERT INTO users (id, email, created_at) VALUES ('{user}', 'ada@example.org', now())"),
            format!(
                "INSERT INTO sign_in_sessions (id, user_id, cookie_used_at, created_at, last_used_at, expires_at)
                 VALUES ('{central_session}', '{user}', now(), now(), now(), now() + interval '1 day')"
            ),
            format!(
                "INSERT INTO workspace_members (workspace_id, user_id, role, created_at)
                 VALUES ('{workspace}', '{user}', 'viewer', now())"
            ),
        ] {
            database.execute(&sql).await.unwrap();
        }
        Self { database, store, app, workspace, user, central_session }
    }

    async fn issue(&self, code: &[u8]) {
        let new = NewAppCode {
            digest: code,
            app: self.app,
            redirect_uri: BACK,
            challenge: CHALLENGE,
            user: self.user,
            central_session: self.central_session,
        };
        assert!(self.store.change(async |changes| changes.issue_app_code(new).await).await.unwrap());
    }

    fn shown<'a>(&self, code: &'a [u8], cookie: &'a [u8]) -> ShownAppCode<'a> {
        ShownAppCode {
            digest: code,
            app: self.app,
            workspace: self.workspace,
            redirect_uri: BACK,
            challenge: CHALLENGE,
            cookie_digest: cookie,
        }
    }

    async fn redeem(&self, shown: &ShownAppCode<'_>) -> RedeemedCode {
        self.store.redeem_app_code(shown, None).await.unwrap()
    }

    async fn is_open(&self, cookie: &[u8]) -> bool {
        let shown = AppSessionUse { app: self.app, workspace: self.workspace, digest: cookie };
        self.store.app_session(&shown).await.unwrap().is_some()
    }
}

#[tokio::test]
async fn one_of_fifty_redemptions_opens_a_session_and_the_replays_end_it() {
    let t = SignIns::create().await;
    t.issue(b"code").await;
    let cookies: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let redeemed = join_all(cookies.iter().map(async |cookie| {
        let shown = t.shown(b"code", cookie.as_bytes());
        t.redeem(&shown).await
    }))
    .await;
    let opened = redeemed.iter().filter(|one| matches!(one, RedeemedCode::Opened(_))).count();
    let replayed = redeemed.iter().filter(|one| **one == RedeemedCode::Replayed).count();
    assert_eq!((opened, replayed), (1, 49));
    assert_eq!(
        t.database.scalar("SELECT string_agg(revoked_reason, ' ') FROM app_sessions").await,
        "code_replayed"
    );
    for cookie in &cookies {
        assert!(!t.is_open(cookie.as_bytes()).await);
    }
}

#[tokio::test]
async fn a_code_is_bound_to_its_app_its_address_and_its_verifier() {
    let t = SignIns::create().await;
    t.issue(b"code").await;
    let good = t.shown(b"code", b"cookie");
    for bad in [
        ShownAppCode { digest: b"other", ..good },
        ShownAppCode { app: Uuid::from_u128(9), ..good },
        ShownAppCode { workspace: Uuid::from_u128(9), ..good },
        ShownAppCode { redirect_uri: "https://other.apps.example.org/__service/auth/callback", ..good },
        ShownAppCode { challenge: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", ..good },
    ] {
        assert_eq!(t.redeem(&bad).await, RedeemedCode::Refused);
    }
    assert!(matches!(t.redeem(&good).await, RedeemedCode::Opened(_)), "none of them consumed it");
    assert!(t.is_open(b"cookie").await);
    let elsewhere = ShownAppCode { app: Uuid::from_u128(9), ..good };
    assert_eq!(t.redeem(&elsewhere).await, RedeemedCode::Refused, "another app ends nothing");
    assert!(t.is_open(b"cookie").await);
    let thief = ShownAppCode { challenge: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", ..good };
    assert_eq!(t.redeem(&thief).await, RedeemedCode::Replayed, "the code was stolen");
    assert!(!t.is_open(b"cookie").await);
}

#[tokio::test]
async fn a_code_requires_a_valid_sign_in_and_a_membership() {
    for (at, end) in [
        "UPDATE sign_in_sessions SET revoked_at = now()",
        "DELETE FROM workspace_members",
        "UPDATE workspace_members SET invited_until = now() + interval '1 day'",
        "UPDATE users SET email = NULL",
        "UPDATE workspaces SET deleted_at = now()",
        "UPDATE sign_in_sessions SET expires_at = now() - interval '1 hour'",
    ]
    .into_iter()
    .enumerate()
    {
        let t = SignIns::create().await;
        t.issue(b"code").await;
        t.issue(b"open").await;
        assert!(matches!(t.redeem(&t.shown(b"open", b"cookie")).await, RedeemedCode::Opened(_)));
        assert!(t.is_open(b"cookie").await);
        t.database.execute(end).await.unwrap();
        assert_eq!(t.redeem(&t.shown(b"code", b"x")).await, RedeemedCode::Refused, "{at}: {end}");
        assert!(!t.is_open(b"cookie").await, "{at}: {end}");
    }
}

#[tokio::test]
async fn a_session_check_ignores_the_cookie_and_does_not_count_as_a_use() {
    let t = SignIns::create().await;
    t.issue(b"code").await;
    t.redeem(&t.shown(b"code", b"cookie")).await;
    let session = t.database.scalar("SELECT id FROM app_sessions").await.parse().unwrap();
    let lives = async || t.store.app_session_lives(t.app, t.workspace, session).await.unwrap();
    t.database
        .execute("UPDATE app_sessions SET digest = 'next', used_at = used_at - interval '59 min'")
        .await
        .unwrap();
    let used = t.database.scalar("SELECT used_at FROM app_sessions").await;
    assert!(lives().await && !t.is_open(b"cookie").await);
    assert_eq!(t.database.scalar("SELECT used_at FROM app_sessions").await, used);
    assert!(!t.store.app_session_lives(Uuid::from_u128(9), t.workspace, session).await.unwrap());
    t.database.execute("UPDATE app_sessions SET used_at = used_at - interval '2 min'").await.unwrap();
    assert!(!lives().await, "an hour without a request");
    t.database.execute("UPDATE app_sessions SET used_at = now()").await.unwrap();
    t.database.execute("DELETE FROM workspace_members").await.unwrap();
    assert!(!lives().await, "no member any more");
}
