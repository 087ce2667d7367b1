//! Starting the service, and settings that prevent it.

use insta::assert_snapshot;
use integration_tests::{Builder, TestService, chat};

async fn refusal(builder: Builder) -> String {
    match builder.try_start().await {
        Ok(_) => panic!("the service started"),
        Err(text) => text,
    }
}

#[tokio::test]
async fn a_reachable_address_requires_protection() {
    for host in ["0.0.0.0", "::"] {
        for mode in [None, Some("optional"), Some("disabled")] {
            let mut builder = TestService::builder().set("SERVICE_HOST", host);
            if let Some(mode) = mode {
                builder = builder.set("SERVICE_AUTH_MODE", mode);
            }
            let text = refusal(builder).await;
            assert!(text.contains("on an address that others can reach"), "{mode:?}: {text}");
            assert!(text.contains("SERVICE_ALLOW_INSECURE=true"), "{mode:?}: {text}");
        }
    }
    let disabled = TestService::builder()
        .set("SERVICE_HOST", "0.0.0.0")
        .set("SERVICE_AUTH_MODE", "disabled")
        .set("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", "0123456789abcdef0123456789abcdef");
    assert!(refusal(disabled).await.starts_with("SERVICE_AUTH_MODE=disabled"), "an ignored token");
}

#[tokio::test]
async fn a_protected_service_may_listen_on_all_addresses() {
    let protections = [
        ("SERVICE_AUTH_MODE", "required"),
        ("SERVICE_AUTH_JWT_SECRET", "0123456789abcdef0123456789abcdef"),
        ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", "0123456789abcdef0123456789abcdef"),
    ];
    for (variable, value) in protections {
        let t = TestService::builder().set("SERVICE_HOST", "0.0.0.0").set(variable, value).start().await;
        assert_eq!(t.get("/api/workflows").await.status, 401, "{variable}");
    }
    let insecure =
        TestService::builder().set("SERVICE_HOST", "0.0.0.0").set("SERVICE_ALLOW_INSECURE", "true");
    assert_eq!(insecure.start().await.get("/api/workflows").await.status, 200);
}

#[tokio::test]
async fn tokens_are_stored_in_the_database_alone() {
    let text = refusal(TestService::builder().set("SERVICE_AUTH_SERVICE_TOKEN_BACKEND", "sqlite")).await;
    assert!(text.contains("SERVICE_AUTH_SERVICE_TOKEN_BACKEND") && text.contains("postgres"), "{text}");
}

#[tokio::test]
async fn authentication_may_be_disabled_on_loopback() {
    let t = TestService::builder()
        .set("SERVICE_AUTH_MODE", "disabled")
        .set("SERVICE_AUTH_JWT_SECRET", "x".repeat(32))
        .start()
        .await;
    let workflow = t.workflow().create().await;
    let answer = t.chat(&chat::create(&workflow, "hi")).await;
    assert_eq!(answer.status, 403, "a private workflow stays private, whatever the mode");
}

#[tokio::test]
async fn all_bad_settings_are_reported_at_once() {
    let bad = TestService::builder()
        .set("SERVICE_CHAT_DISCONNECT_GRACE", "soon")
        .set("SERVICE_CORS_ALLOW_ORIGINS", "*")
        .set("SERVICE_AUTH_SERVICE_TOKEN_BACKEND", "sqlite")
        .set("SERVICE_CHAT_DIALECT", "klingon");
    let text = refusal(bad).await;
    for variable in [
        "SERVICE_CHAT_DISCONNECT_GRACE",
        "SERVICE_CORS_ALLOW_ORIGINS",
        "SERVICE_AUTH_SERVICE_TOKEN_BACKEND",
        "SERVICE_CHAT_DIALECT",
    ] {
        assert!(text.contains(variable), "{variable} in {text}");
    }
}

#[tokio::test]
async fn a_second_service_on_the_same_folder_or_port_is_refused() {
    let t = TestService::start().await;
    let folder = t.variables()["SERVICE_DATA_DIR"].clone();
    let text = refusal(TestService::builder().set("SERVICE_DATA_DIR", &folder)).await;
    assert!(
        text.contains(&folder)
            && text.contains("in use by another service")
            && text.contains("SERVICE_DATA_DIR"),
        "{text}"
    );
    let port = t.address().port().to_string();
    let text = refusal(TestService::builder().set("SERVICE_PORT", &port)).await;
    assert_eq!(
        text,
        format!(
            "cannot listen on 127.0.0.1:{port}: another program already listens on port {port}; stop it, or set \
             SERVICE_PORT to another port (0 picks a free one)"
        )
    );
    t.assert_healthy().await;
}

#[tokio::test]
async fn an_address_of_another_machine_is_reported() {
    let elsewhere = TestService::builder()
        .set("SERVICE_HOST", "192.0.2.1")
        .set("SERVICE_AUTH_MODE", "disabled")
        .set("SERVICE_ALLOW_INSECURE", "true");
    assert_snapshot!(refusal(elsewhere).await, @"cannot listen on 192.0.2.1:0: this machine does not have this address; set SERVICE_HOST to one of its addresses, such as 127.0.0.1");
    let unknown = refusal(TestService::builder().set("SERVICE_HOST", "callboard.invalid")).await;
    assert_snapshot!(unknown, @"SERVICE_HOST: the name callboard.invalid does not resolve; use an address, such as 127.0.0.1");
}

#[tokio::test]
async fn a_data_folder_that_is_a_file_is_reported() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    let text = refusal(TestService::builder().set("SERVICE_DATA_DIR", &path)).await;
    assert!(text.starts_with(&format!("the data folder {path} cannot be used: {path} is a file")), "{text}");
    assert!(text.contains("SERVICE_DATA_DIR"), "{text}");
}

#[tokio::test]
async fn two_services_share_a_database_and_their_visitors() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let turn = client.say(&workflow.id, "here").await.unwrap();
    let there = other.visitor();
    there.set_cookie("callboard_visitor", &client.cookie("callboard_visitor").unwrap());
    let mut streams = Vec::new();
    for service in [&t, &other] {
        streams.push(service.resume(&turn.stream_id, None).await.rest().await);
    }
    assert_eq!(streams[0], streams[1]);
    let second = there.say_in(&workflow.id, &turn.thread_id, "there").await.unwrap();
    assert_eq!(second.text, "You said: there");
}

const KEYS: &str = r#"{"active": "blue", "keys": {"blue": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}}"#;
const OTHER: &str = r#"{"active": "red", "keys": {"red": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}}"#;
const BOTH: &str = r#"{"active": "red", "keys": {"red": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "blue": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}}"#;

#[tokio::test]
async fn a_missing_vault_key_is_reported() {
    let t = TestService::builder().set("SERVICE_VAULT_KEYS", KEYS).start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    assert_eq!(t.scalar("SELECT sealed_under FROM service_keys WHERE name = 'visitor'").await, "blue");
    let without = refusal(TestService::builder().set("SERVICE_POSTGRES_DSN", dsn)).await;
    assert!(without.contains("blue") && without.contains("SERVICE_VAULT_KEYS"), "{without}");
    let with_other =
        refusal(TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).set("SERVICE_VAULT_KEYS", OTHER))
            .await;
    assert!(with_other.contains("blue") && with_other.contains("SERVICE_VAULT_KEYS"), "{with_other}");
    let rotated =
        TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).set("SERVICE_VAULT_KEYS", BOTH).start().await;
    rotated.assert_healthy().await;
}

#[tokio::test]
async fn a_missing_database_is_reported_without_its_password() {
    let dsn = "host=127.0.0.1 port=1 user=x password=hunter2 dbname=x connect_timeout=2";
    let text = refusal(TestService::builder().set("SERVICE_POSTGRES_DSN", dsn)).await;
    assert!(text.contains("database cannot be reached"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn health_and_readiness_answer() {
    let t = TestService::start().await;
    assert_snapshot!(t.get("/healthz").await.text(), @r#"{"status":"ok"}"#);
    assert_snapshot!(t.get("/api/system/health").await.text(), @r#"{"status":"ok"}"#);
    assert_snapshot!(t.get("/readyz").await.text(), @r#"{"status":"ready","parts":{"database":{"ready":true},"vault":{"ready":true},"lanes":{"ready":true},"actors":{"ready":true},"lifecycle":{"ready":true},"login":{"ready":true}}}"#);
}
