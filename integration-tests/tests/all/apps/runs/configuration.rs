//! An app's configuration and bindings, and the module that pages import.

use integration_tests::{AnswerExt, TestService};
use serde_json::json;

use super::{Published, answers, cookie, frozen};

#[tokio::test]
async fn the_configuration_contains_page_settings_without_workflow_details() {
    let t = TestService::start().await;
    let schema = json!({"type": "object", "required": ["text"]});
    let open = frozen(&t, answers(), json!({"input_schema": schema})).await;
    let app = Published::new(&t, "notes", &[("form", open.clone())]).await;
    let answer = app.get("/__service/config").await;
    let mut body = answer.value();
    let release = body["release"].take();
    assert!(release["id"].is_string() && release["created_at"].as_str().unwrap().ends_with('Z'), "{release}");
    let expected = json!({
        "app": {"alias": "notes", "name": "notes"}, "release": null,
        "auth": {"mode": "none", "login_url": "/__service/auth/login", "session_url": "/__service/auth/session",
                 "logout_url": "/__service/auth/logout"},
        "bindings": {"form": {"access_mode": "anonymous", "input_schema": schema}}, "collections": {},
    });
    assert_eq!(body, expected);
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    let closed = frozen(&t, answers(), json!({"access_mode": "authenticated"})).await;
    app.release(2, &[("form", open), ("mine", closed)]).await;
    let body = app.get("/__service/config").await.value();
    assert_eq!(body["auth"]["mode"], "optional");
    assert_eq!(body["bindings"]["mine"], json!({"access_mode": "authenticated", "input_schema": null}));
    let head = t.open("HEAD", "/__service/config", &[("host", app.host.as_str())], "").await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")));
}

#[tokio::test]
async fn visitors_keep_the_cookie_set_with_the_configuration() {
    let t = TestService::start().await;
    let app = Published::new(&t, "notes", &[]).await;
    let answer = app.get("/__service/config").await;
    let set = answer.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-svc_anon="), "{set}");
    for part in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/", "Max-Age=34560000"] {
        assert!(set.split("; ").any(|attribute| attribute == part), "{part}: {set}");
    }
    let issued = cookie(&answer).unwrap();
    let again = app.send("GET", "/__service/config", &[("cookie", &issued)], "").await;
    assert_eq!(again.header("set-cookie"), None);
    let other = Published::new(&t, "other", &[]).await;
    let twice = format!("{issued}; {issued}");
    let (start, last) = issued.split_at(issued.len() - 1);
    let forged = format!("{start}{}", if last == "A" { "E" } else { "A" });
    for (app, bad) in [
        (&other, issued.as_str()),
        (&app, twice.as_str()),
        (&app, forged.as_str()),
        (&app, "__Host-svc_anon="),
    ] {
        let answer = app.send("GET", "/__service/config", &[("cookie", bad)], "").await;
        assert_ne!(cookie(&answer), None, "{bad}");
    }
}

#[tokio::test]
async fn a_members_only_app_serves_strangers_only_the_client_script() {
    let t = TestService::start().await;
    let app = Published::new(&t, "notes", &[]).await;
    let script = app.get("/__service/client.js").await;
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(script.header("cache-control"), Some("private, no-store"));
    assert!(script.text().contains("export const start ="));
    let types = app.get("/__service/client.d.ts").await;
    assert!(types.status == 200 && types.text().contains("export declare function start("));
    t.execute("UPDATE apps SET access = 'members'").await;
    let refused = async || app.get("/__service/config").await.refusal() == "401 login_required";
    integration_tests::until("the access change to take effect", refused).await;
    assert_eq!(app.get("/__service/client.js").await.status, 200);
    assert_eq!(app.get("/__service/runs/run_x").await.refusal(), "401 login_required");
}
