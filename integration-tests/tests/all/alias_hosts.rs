//! Hosts below the app domain belong to publishers: the central host serves nothing there.

use integration_tests::{AnswerExt, RawAnswer, TestService};
use wire::operations;

use crate::websocket::HANDSHAKE;

/// Headers with their values that every response on an alias has.
const HEADERS: [(&str, &str); 12] = [
    (
        "content-security-policy",
        "default-src 'none'; worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("origin-agent-cluster", "?1"),
    ("x-frame-options", "DENY"),
    ("x-dns-prefetch-control", "off"),
    ("x-content-type-options", "nosniff"),
    ("cache-control", "private, no-store"),
    ("content-type", "text/html; charset=utf-8"),
    (
        "permissions-policy",
        "browsing-topics=(), bluetooth=(), camera=(), cross-origin-isolated=(), display-capture=(), geolocation=(), hid=(), \
         microphone=(), midi=(), payment=(), publickey-credentials-get=(), serial=(), usb=()",
    ),
    ("strict-transport-security", ""),
];

async fn ask(t: &TestService, method: &str, path: &str, headers: &[(&str, &str)]) -> RawAnswer {
    t.raw().await.request(method, path, headers, "").await
}

fn assert_headers(answer: &RawAnswer, over_https: bool, request: &str) {
    for (name, value) in HEADERS {
        let expected = match name {
            "strict-transport-security" if over_https => Some("max-age=31536000; includeSubDomains"),
            "strict-transport-security" => None,
            _ => Some(value),
        };
        assert_eq!(answer.header(name), expected, "{request}: {name}");
    }
    assert!(answer.header("x-request-id").is_some_and(|id| id.len() == 32), "{request}");
    for absent in ["server", "access-control-allow-origin", "set-cookie", "cross-origin-embedder-policy"] {
        assert_eq!(answer.header(absent), None, "{request}: {absent}");
    }
}

/// The path of each operation, with a value for each parameter.
fn paths() -> Vec<String> {
    let value = |one: &'static str| if one.starts_with('{') { "x" } else { one };
    let paths = operations::all().map(|one| one.path.split('/').map(value).collect::<Vec<_>>().join("/"));
    let more = ["/", "/index.html", "/__service/config", "/__service/client.js", "/%2e%2e/api", "//", "/api"];
    paths.chain(more.map(str::to_owned)).collect()
}

#[tokio::test]
async fn an_alias_returns_the_same_page_and_headers_for_every_path_and_method() {
    let t = TestService::builder().set("SERVICE_CORS_ALLOW_ORIGINS", r#"["*"]"#).start().await;
    let alias = ("host", "notes.apps.localhost");
    let page = ask(&t, "GET", "/", &[alias]).await.whole().await.text();
    assert!(page.contains("<h1>Not found</h1>"), "{page}");
    for path in paths() {
        for method in ["GET", "POST", "OPTIONS"] {
            let request = format!("{method} {path}");
            let foreign =
                [alias, ("origin", "http://notes.apps.localhost"), ("access-control-request-method", "POST")];
            let answer = ask(&t, method, &path, &foreign).await;
            assert_eq!(answer.status, 404, "{request}");
            assert_headers(&answer, false, &request);
            assert_eq!(answer.whole().await.text(), page, "{request}");
        }
    }
    let answer = ask(&t, "OPTIONS", "*", &[alias]).await.expect(404);
    assert_headers(&answer, false, "OPTIONS *");
    assert_eq!(answer.whole().await.text(), page);
    for method in ["HEAD", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"] {
        let answer = ask(&t, method, "/api/workflows", &[alias]).await;
        assert_eq!(answer.status, 404, "{method}");
        assert_headers(&answer, false, method);
    }
}

#[tokio::test]
async fn only_the_host_determines_whether_a_request_is_for_an_alias() {
    let t = TestService::start().await;
    let port = t.address().port();
    let port_of = |host: &str| format!("{host}:{port}");
    for host in [
        "apps.localhost",
        "notes.apps.localhost",
        "NOTES.Apps.LocalHost",
        "notes.apps.localhost.",
        "a.b.apps.localhost",
        &port_of("notes.apps.localhost"),
        &port_of("notes.apps.localhost."),
    ] {
        let answer = ask(&t, "GET", "/healthz", &[("host", host)]).await;
        assert_eq!(answer.status, 404, "{host}");
        assert_headers(&answer, false, host);
    }
    // Other headers from a proxy or a caller change nothing.
    let headers = [("x-forwarded-host", "notes.apps.localhost"), ("forwarded", "host=notes.apps.localhost")];
    ask(&t, "GET", "/healthz", &headers).await.expect(200);
    let local = port_of("localhost");
    let headers = [("host", "notes.apps.localhost"), ("x-forwarded-host", local.as_str())];
    assert_eq!(ask(&t, "GET", "/healthz", &headers).await.status, 404);
    for other in ["notapps.localhost", "apps.localhost.example.org", "localhost"] {
        let answer = ask(&t, "GET", "/healthz", &[("host", other)]).await;
        assert_eq!(answer.status, 200, "{other}");
        assert_eq!(answer.header("origin-agent-cluster"), None, "{other}");
    }
    let twice = [("host", "notes.apps.localhost"), ("host", "localhost")];
    assert_eq!(ask(&t, "GET", "/", &twice).await.status, 400);
    // The request target names a host, too.
    let mut raw = t.raw().await;
    raw.write("GET http://notes.apps.localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(raw.answer().await.status, 400);
    // Websocket upgrades fail as well.
    let upgrade = [&[("host", "notes.apps.localhost")][..], &HANDSHAKE].concat();
    assert_eq!(ask(&t, "GET", "/ws/workflow/x", &upgrade).await.status, 404);
}

#[tokio::test]
async fn the_central_host_serves_no_alias_paths() {
    let t = TestService::start().await;
    for path in ["/__service/config", "/__service/client.js", "/__service/workflows/x/runs"] {
        assert_eq!(t.get(path).await.refusal(), "404 request.not_found", "{path}");
    }
}

#[tokio::test]
async fn only_trusted_proxies_can_declare_https() {
    let t = TestService::builder().set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#).start().await;
    let alias = ("host", "notes.apps.localhost");
    for (scheme, over_https) in [("https", true), ("http", false), ("HTTPS, http", false)] {
        let answer = ask(&t, "GET", "/", &[alias, ("x-forwarded-proto", scheme)]).await;
        assert_headers(&answer, over_https, scheme);
    }
    let t = TestService::start().await;
    let answer = ask(&t, "GET", "/", &[alias, ("x-forwarded-proto", "https")]).await;
    assert_headers(&answer, false, "not trusted");
}

#[tokio::test]
async fn the_base_url_cannot_be_below_the_app_domain() {
    for base in
        ["https://apps.example.org", "https://desk.apps.example.org", "https://apps.example.org.:8443"]
    {
        let started = TestService::builder()
            .set("SERVICE_APPS_DOMAIN", "apps.example.org")
            .set("SERVICE_PUBLIC_BASE_URL", base)
            .try_start()
            .await;
        let refused = started.err().unwrap_or_default();
        assert!(
            refused.contains("SERVICE_APPS_DOMAIN") && refused.contains("SERVICE_PUBLIC_BASE_URL"),
            "{refused}"
        );
    }
}
