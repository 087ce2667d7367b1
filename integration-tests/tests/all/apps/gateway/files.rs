//! Mapping paths to files.

use integration_tests::{AnswerExt, TestService};

use super::{NOT_FOUND, ask, code, get, host, public_app, publish};

const MANIFEST: &[u8] = br#"{"schema_version": 1, "bindings": {}, "spa": true}"#;

#[tokio::test]
async fn paths_match_file_names_exactly() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    let files: [(&str, &[u8]); 7] = [
        ("index.html", b"<p>Home"),
        ("docs/index.html", b"<p>Docs"),
        ("docs/page.html", b"<p>Page"),
        ("a b+c.js", b"1"),
        ("data.json", b"{}"),
        ("%20.txt", b"percent"),
        ("blob.xyz", b"?"),
    ];
    publish(&t, "desk", &files).await;
    for (path, body, kind) in [
        ("/", "<p>Home", "text/html; charset=utf-8"),
        ("/?x=1", "<p>Home", "text/html; charset=utf-8"),
        ("/index.html", "<p>Home", "text/html; charset=utf-8"),
        ("/docs/", "<p>Docs", "text/html; charset=utf-8"),
        ("/docs/page.html", "<p>Page", "text/html; charset=utf-8"),
        ("/a%20b+c.js", "1", "text/javascript; charset=utf-8"),
        ("/data.json", "{}", "application/json; charset=utf-8"),
        ("/%64%61ta.json", "{}", "application/json; charset=utf-8"),
        ("/blob.xyz", "?", "application/octet-stream"),
    ] {
        let answer = get(&t, "desk", path, &[]).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, body), "{path}");
        assert_eq!(answer.header("content-type"), Some(kind), "{path}");
        let attached = (path == "/blob.xyz").then_some("attachment");
        assert_eq!(answer.header("content-disposition"), attached, "{path}");
    }
    for path in [
        "/docs/page",
        "/Index.html",
        "//",
        "//index.html",
        "/docs//",
        "/index.html/",
        "/./index.html",
        "/docs/../index.html",
        "/service.app.json",
        "/api/apps",
        "/healthz",
        "/%2520.txt/",
    ] {
        let answer = get(&t, "desk", path, &[]).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains(NOT_FOUND), "{path}");
        assert_eq!(answer.header("cache-control"), Some("private, no-store"), "{path}");
    }
    for path in
        ["/%00", "/a%2fb", "/docs%2Findex.html", "/a%5cb", "/%", "/%zz", "/%ff", "/__service/assets/%2f/a"]
    {
        assert_eq!(code(&get(&t, "desk", path, &[]).await), "400 bad_request", "{path}");
    }
    let moved = get(&t, "desk", "/docs?a=b&c", &[]).await;
    assert_eq!((moved.status, moved.header("location")), (308, Some("/docs/?a=b&c")));
    assert_eq!(moved.header("cache-control"), Some("no-cache"));
    for path in ["/__service", "/__service/", "/__service/x", "/__service/assets/x/y", "/__servic%65/x"] {
        assert_eq!(code(&get(&t, "desk", path, &[("accept", "text/html")]).await), "404 not_found", "{path}");
    }
}

#[tokio::test]
async fn files_are_served_for_get_and_head_and_not_to_service_workers() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    publish(&t, "desk", &[("index.html", b"<p>Home"), ("sw.js", b"1")]).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"] {
        for path in ["/", "/missing", "/sw.js"] {
            let answer = ask(&t, method, "desk", path, &[]).await;
            assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method} {path}");
            assert_eq!(code(&answer.whole().await), "405 method_not_allowed");
        }
    }
    let head = ask(&t, "HEAD", "desk", "/sw.js", &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("1")));
    for header in
        [("service-worker", "script"), ("sec-fetch-dest", "serviceworker"), ("sec-fetch-dest", "worker")]
    {
        for path in ["/sw.js", "/missing.js"] {
            assert_eq!(
                code(&get(&t, "desk", path, &[header]).await),
                "403 worker_refused",
                "{header:?} {path}"
            );
        }
    }
    let twice = [("service-worker", "script"), ("service-worker", "script")];
    let two_destinations = [("sec-fetch-dest", "script"), ("sec-fetch-dest", "serviceworker")];
    for headers in [twice, two_destinations] {
        assert_eq!(code(&get(&t, "desk", "/sw.js", &headers).await), "403 worker_refused", "{headers:?}");
    }
    // An unpublished host.
    let unknown = host("unknown");
    let answer = t.raw().await.request("POST", "/", &[("host", unknown.as_str())], "").await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn single_page_apps_serve_their_index_for_unknown_pages() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    let files: [(&str, &[u8]); 3] =
        [("index.html", b"<script>1</script>"), ("app.js", b"1"), ("service.app.json", MANIFEST)];
    publish(&t, "desk", &files).await;
    let index = get(&t, "desk", "/", &[]).await;
    let html = ("accept", "text/html,application/xhtml+xml");
    for (path, headers) in [
        ("/users/7", [html]),
        ("/users/", [html]),
        ("/users", [("sec-fetch-dest", "document")]),
        ("/users", [("accept", "a/b, TEXT/html ;q=0.1")]),
    ] {
        let answer = get(&t, "desk", path, &headers).await;
        assert_eq!((answer.status, answer.text()), (200, index.text()), "{path}");
        for name in ["content-security-policy", "etag", "cache-control"] {
            assert_eq!(answer.header(name), index.header(name), "{path} {name}");
        }
    }
    for (path, header) in [
        ("/users/7", ("accept", "application/json")),
        ("/users/7", ("accept", "text/html;q=0, */*")),
        ("/users/7", ("accept", "text/htmlx, application/x; a=\"text/html\"")),
        ("/missing.js", html),
        ("/users/a.b", html),
        ("/service.app.json", html),
    ] {
        let answer = get(&t, "desk", path, &[header]).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains(NOT_FOUND), "{path}");
    }
    // A custom document for missing files takes precedence.
    let files: [(&str, &[u8]); 3] =
        [("index.html", b"<p>Home"), ("404.html", b"<script>2</script>"), ("service.app.json", MANIFEST)];
    publish(&t, "desk", &files).await;
    for path in ["/users/7", "/missing.js"] {
        let answer = get(&t, "desk", path, &[html]).await;
        assert_eq!((answer.status, answer.text().as_str()), (404, "<script>2</script>"), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("'sha256-"), "{policy}");
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
    }
    get(&t, "desk", "/missing", &[("if-none-match", "*")]).await.expect(404);
    let manifest = get(&t, "desk", "/service.app.json", &[html]).await;
    assert!(manifest.text().contains(NOT_FOUND));
}
