//! The headers of every app response, whatever its kind.

use integration_tests::{RawAnswer, TestService};

use super::{ask, public_app, publish};

const FILES: &str = "default-src 'none'; sandbox; worker-src 'none'; frame-ancestors 'none'";
const OURS: &str =
    "default-src 'none'; worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers with a constant value.
const HEADERS: [(&str, &str); 8] = [
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("origin-agent-cluster", "?1"),
    ("x-dns-prefetch-control", "off"),
    ("x-content-type-options", "nosniff"),
    (
        "permissions-policy",
        "browsing-topics=(), bluetooth=(), camera=(), cross-origin-isolated=(), display-capture=(), geolocation=(), hid=(), \
         microphone=(), midi=(), payment=(), publickey-credentials-get=(), serial=(), usb=()",
    ),
    ("x-frame-options", "DENY"),
];

fn assert_headers(answer: &RawAnswer, policy: &str, in_frames: bool, over_https: bool, request: &str) {
    for (name, value) in HEADERS {
        let expected = Some(value).filter(|_| name != "x-frame-options" || !in_frames);
        assert_eq!(answer.header(name), expected, "{request}: {name}");
    }
    let transport = over_https.then_some("max-age=31536000; includeSubDomains");
    assert_eq!(answer.header("strict-transport-security"), transport, "{request}");
    assert_eq!(answer.header("content-security-policy"), Some(policy), "{request}");
    assert!(answer.header("cache-control").is_some(), "{request}");
    assert!(answer.header("x-request-id").is_some_and(|id| id.len() == 32), "{request}");
    for absent in ["server", "access-control-allow-origin", "set-cookie", "cross-origin-embedder-policy"] {
        assert_eq!(answer.header(absent), None, "{request}: {absent}");
    }
}

#[tokio::test]
async fn every_app_response_has_the_security_headers() {
    let t = TestService::builder().set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#).start().await;
    public_app(&t, "desk").await;
    let manifest =
        br#"{"schema_version": 1, "bindings": {}, "csp": {"frame_ancestors": ["https://a.example"]}}"#;
    let plain: [(&str, &[u8]); 6] = [
        ("index.html", b"<script>1</script>"),
        ("404.html", b"<script>2</script>"),
        ("app.js", b"one"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("docs/index.html", b"<p>Docs"),
        ("m.wasm", b"\0asm\x01\0\0\0"),
    ];
    for frames in [false, true] {
        let mut files = plain.to_vec();
        if frames {
            files.push(("service.app.json", manifest));
        }
        let deployment = publish(&t, "desk", &files).await;
        for scheme in ["http", "https"] {
            let https = scheme == "https";
            for (method, path, header, status, document) in CASES {
                let mut headers = vec![("x-forwarded-proto", scheme)];
                headers.extend(header.iter().copied());
                let answer = ask(&t, method, "desk", path, &headers).await;
                let request = format!("{method} {path} {header:?} {scheme} {frames}");
                assert_eq!(answer.status, *status, "{request}");
                let stored = match document {
                    Some(name) => {
                        let sql = format!(
                            "SELECT policy FROM app_files WHERE deployment_id = '{deployment}' AND path = '{name}'"
                        );
                        let end = if https { "; upgrade-insecure-requests" } else { "" };
                        t.scalar(&sql).await + end
                    }
                    None => FILES.to_owned(),
                };
                assert_headers(&answer, &stored, frames && document.is_some(), https, &request);
            }
            let answer = ask(&t, "GET", "desk", "/service.app.json", &[("x-forwarded-proto", scheme)]).await;
            assert_headers(&answer, OURS, false, https, "the manifest");
        }
        let page = ask(&t, "GET", "desk", "/", &[]).await;
        let sent = page.header("content-security-policy").unwrap();
        assert_eq!(sent.contains("frame-ancestors https://a.example"), frames, "{sent}");
        assert!(sent.contains("'wasm-unsafe-eval'"), "{sent}");
    }
}

type Case = (&'static str, &'static str, Option<(&'static str, &'static str)>, u16, Option<&'static str>);

/// Method, path, request header, status, and the document whose policy applies.
const CASES: &[Case] = &[
    ("GET", "/", None, 200, Some("index.html")),
    ("HEAD", "/", None, 200, Some("index.html")),
    ("GET", "/", Some(("if-none-match", "*")), 304, Some("index.html")),
    ("GET", "/", Some(("range", "bytes=0-1")), 206, Some("index.html")),
    ("GET", "/", Some(("range", "bytes=99-")), 416, Some("index.html")),
    ("GET", "/docs/", None, 200, Some("docs/index.html")),
    ("GET", "/missing", None, 404, Some("404.html")),
    ("HEAD", "/missing", None, 404, Some("404.html")),
    ("GET", "/docs", None, 308, None),
    ("GET", "/app.js", None, 200, None),
    ("HEAD", "/app.js", None, 200, None),
    ("GET", "/app.js", Some(("if-none-match", "*")), 304, None),
    ("GET", "/app.js", Some(("range", "bytes=0-0")), 206, None),
    ("GET", "/app.js", Some(("range", "bytes=9-")), 416, None),
    ("GET", "/a.svg", None, 200, None),
    ("GET", "/m.wasm", None, 200, None),
    ("GET", "/%00", None, 400, None),
    ("GET", "/app.js", Some(("service-worker", "script")), 403, None),
    ("POST", "/", None, 405, None),
    ("TRACE", "/", None, 405, None),
    ("OPTIONS", "/app.js", None, 405, None),
    ("GET", "/__service", None, 404, None),
    ("GET", "/__service/x", None, 404, None),
    ("POST", "/__service/assets/x/y", None, 405, None),
    ("GET", "/__service/assets/x/y", None, 404, None),
    (
        "GET",
        "/__service/assets/92e2ac2d5b3ae9d8ecfbf1a2e7d8d3f7ef0f0f9ac6e2ac7fa4a3f1bc0a0b0c0d/y",
        None,
        404,
        None,
    ),
];
