//! `kill -9` during a sign-in to an app.

use integration_tests::{AnswerExt, JSON, MailServer, until};
use serde_json::json;
use store::testing::TestDatabase;

use super::{ADA, parameter};
use crate::crash::folder;
use crate::crash::service::Service;

const APP: &str = "
    WITH release AS (INSERT INTO app_releases (id, app_id, workspace_id, number, deployment_id, permission_revision, permissions,
            bindings, collections, spa, frame_ancestors, wasm, created_at)
        SELECT gen_random_uuid(), gen_random_uuid(), id, 1, gen_random_uuid(), 'r', '{\"bindings\":{},\"collections\":{},\"frame_ancestors\":[],\"wasm\":false}', '{}', '{}', false, '[]', false, now()
        FROM workspaces WHERE slug = 'default' RETURNING id, app_id, workspace_id)
    INSERT INTO apps (id, workspace_id, alias, holds_alias, name, access, created_at, updated_at, active_release)
    SELECT app_id, workspace_id, 'notes', true, 'Notes', 'members', now(), now(), id FROM release";

/// A code issued before a crash opens a session after it, once, and no secret is logged.
#[tokio::test]
async fn a_code_survives_a_crash_of_its_process() {
    let database = TestDatabase::create().await;
    let mail = MailServer::start().await;
    let mut service = Service::new(&folder("app-sign-in"), Some(database.dsn()));
    service.set("SERVICE_SMTP_URL", mail.url());
    service.set("SERVICE_OWNER_EMAIL", ADA.to_owned());
    service.set("SERVICE_PUBLIC_BASE_URL", service.base());
    service.set("SERVICE_LOG", "trace".to_owned());
    service.start();
    let central = client::Client::new(&service.base()).unwrap();
    let ready = async || {
        until("the service to be ready", async || {
            central.ready().await.is_ok_and(|answer| answer.status == 200)
        })
        .await;
    };
    ready().await;
    database.execute(APP).await.unwrap();
    let base = service.base();
    let origin = [("origin", base.as_str()), JSON];
    let post = async |path: &str, body: serde_json::Value| {
        central.send("POST", path, &origin, body.to_string()).await.unwrap()
    };
    assert_eq!(post("/api/auth/email/start", json!({"email": ADA})).await.status, 202);
    let code = mail.mail(1).await.code();
    assert_eq!(post("/api/auth/email/verify", json!({"email": ADA, "code": code})).await.status, 200);

    let port = base.rsplit(':').next().unwrap().to_owned();
    let host = format!("notes.apps.localhost:{port}");
    let address = base.strip_prefix("http://").unwrap().parse().unwrap();
    let at_app = async |path: &str, cookie: &str| {
        let headers = [("host", host.as_str()), ("cookie", cookie), ("connection", "close")];
        integration_tests::Raw::connect(address).await.request("GET", path, &headers, "").await.whole().await
    };
    let started = at_app("/__service/auth/login", "a=b").await;
    let binding = started.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let authorize = started.header("location").unwrap().to_owned();
    service.kill();
    service.start();
    ready().await;
    let form = authorize.split_once('?').unwrap().1.to_owned();
    let headers = [("origin", base.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let answer = central.send("POST", "/authorize/approve", &headers, form).await.unwrap();
    let callback = answer.header("location").unwrap().to_owned();
    service.kill();
    service.start();
    ready().await;
    let path = callback.split_once(&host).unwrap().1.to_owned();
    let answer = at_app(&path, &binding).await.expect(303);
    let cookies: Vec<_> =
        answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap().to_owned()).collect();
    let session = cookies.iter().find(|cookie| cookie.starts_with("__Host-svc_app=")).unwrap();
    let session = session.split(';').next().unwrap().to_owned();
    service.kill();
    service.start();
    ready().await;
    let session_info = at_app("/__service/auth/session", &session).await;
    assert!(session_info.text().contains("\"authenticated\":true"), "{}", session_info.text());
    assert_eq!(at_app(&path, &binding).await.status, 400, "once");
    let logged = service.logged();
    let value = |cookie: &str| cookie.split_once('=').unwrap().1.to_owned();
    for secret in
        [value(&binding), value(&session), parameter(&callback, "code"), parameter(&authorize, "state")]
    {
        assert!(!logged.contains(&secret), "{secret} is in the log");
    }
    service.stop();
}
