//! User identity: permanently the subject at the provider.

use integration_tests::{MailServer, Provider, TestService};
use serde_json::{Value, json};

use super::super::{SESSION, signed_in};
use super::{is_in, me, outcome, service, service_with};

async fn as_somebody(
    t: &TestService,
    provider: &Provider,
    subject: &str,
    email: &str,
) -> Result<Value, String> {
    provider.be(|knobs| knobs.claims = json!({"sub": subject, "email": email}));
    let browser = t.visitor();
    match outcome(&browser, provider).await.as_str() {
        "303" => {
            let mut me = me(&browser).await;
            assert!(me.as_object_mut().unwrap().remove("sessions").is_some());
            Ok(me)
        }
        refusal => {
            assert!(browser.cookie(SESSION).is_none() && !is_in(&browser).await);
            Err(refusal.to_owned())
        }
    }
}

#[tokio::test]
async fn the_subject_identifies_a_user_and_the_address_only_links_it_once() {
    let (t, provider) = service().await;
    let ada = as_somebody(&t, &provider, "ada-1", "ada@example.org").await.unwrap();
    let moved = as_somebody(&t, &provider, "ada-1", "ada@elsewhere.example").await.unwrap();
    assert_eq!(moved, ada, "a new address makes no new person");
    let bob = as_somebody(&t, &provider, "bob-1", "bob@example.org").await.unwrap();
    assert_ne!(bob["user"]["id"], ada["user"]["id"]);
    let stolen = as_somebody(&t, &provider, "ada-1", "bob@example.org").await.unwrap();
    assert_eq!(stolen, ada, "with any address");
    let before = t.scalar("SELECT string_agg(u::text, ' ' ORDER BY id) FROM users u").await;
    let recycled = as_somebody(&t, &provider, "new-hire", "ada@example.org").await;
    assert_eq!(recycled, Err("403 auth.oidc_refused".to_owned()), "the address belongs to another user now");
    assert_eq!(t.scalar("SELECT string_agg(u::text, ' ' ORDER BY id) FROM users u").await, before);
    assert_eq!(t.scalar("SELECT count(*) FROM user_identities").await, "2");
    // Subjects are case-sensitive.
    let other = as_somebody(&t, &provider, "ADA-1", "carol@example.org").await.unwrap();
    assert_ne!(other["user"]["id"], ada["user"]["id"]);

    t.execute("UPDATE users SET email = NULL WHERE email = 'bob@example.org'").await;
    let erased = as_somebody(&t, &provider, "bob-1", "bob@example.org").await;
    assert_eq!(erased, Err("403 auth.oidc_refused".to_owned()));
}

#[tokio::test]
async fn an_address_belongs_to_the_first_of_two_subjects() {
    let (t, provider) = service().await;
    let mut ways = Vec::new();
    for number in 0..6 {
        let browser = t.visitor();
        let way = super::way(&browser, &provider, "/api/auth/oidc/start").await;
        ways.push((number, browser, way));
    }
    // Each code is exchanged for the claims of that moment, so the subjects come one after another; concurrent subjects
    // are tested in the store.
    let mut answers = Vec::new();
    for pair in ways.chunks(3) {
        let subject = format!("subject-{}", pair[0].0);
        provider.be(|knobs| knobs.claims = json!({"sub": subject}));
        answers.extend(
            futures_util::future::join_all(
                pair.iter().map(|(_, browser, way)| super::get(browser, &way.back)),
            )
            .await,
        );
    }
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [303, 303, 303, 403, 403, 403]);
    assert_eq!(
        t.scalar("SELECT count(*) || ' ' || count(DISTINCT user_id) FROM user_identities").await,
        "1 1"
    );
    assert_eq!(t.scalar("SELECT count(*) FROM users").await, "1");
}

#[tokio::test]
async fn mail_and_provider_sign_ins_share_an_account() {
    let mail = MailServer::start().await;
    let (t, provider) = service_with(&[("SERVICE_SMTP_URL", &mail.url())]).await;
    let (_, by_mail) = signed_in(&t, &mail, "ada@example.org").await;
    let by_provider = as_somebody(&t, &provider, "ada-1", "ada@Example.ORG").await.unwrap();
    assert_eq!(by_provider["user"], by_mail["user"]);
}

#[tokio::test]
async fn the_sign_up_mode_applies_to_the_provider() {
    let (t, provider) =
        service_with(&[("SERVICE_SIGNUP", "members"), ("SERVICE_OWNER_EMAIL", "ada@example.org")]).await;
    let refused = as_somebody(&t, &provider, "bob-1", "bob@example.org").await;
    assert_eq!(refused, Err("403 auth.oidc_refused".to_owned()));
    t.assert_no_rows("users").await;
    t.assert_no_rows("user_identities").await;
    let owner = as_somebody(&t, &provider, "ada-1", "ada@example.org").await.unwrap();
    assert_eq!(owner["workspaces"][0]["role"], "owner");
    t.execute(
        "INSERT INTO users (id, email, created_at) VALUES (gen_random_uuid(), 'bob@example.org', now())",
    )
    .await;
    t.execute("INSERT INTO workspace_members SELECT w.id, u.id, 'viewer', now() FROM workspaces w, users u WHERE email LIKE 'bob%'").await;
    let invited = as_somebody(&t, &provider, "bob-1", "bob@example.org").await.unwrap();
    assert_eq!(invited["workspaces"][0]["role"], "viewer");
    t.execute("DELETE FROM workspace_members WHERE role = 'viewer'").await;
    assert!(as_somebody(&t, &provider, "bob-1", "bob@example.org").await.is_err(), "no longer a member");
    let posing = as_somebody(&t, &provider, "bob-1", "ada@example.org").await;
    assert!(posing.is_err(), "a subject cannot take over the owner's address: {posing:?}");
    assert!(as_somebody(&t, &provider, "mallory", "ada@example.org").await.is_err());
}
