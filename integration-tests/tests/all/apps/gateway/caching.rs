//! Caching by clients and proxies, and revalidation.

use integration_tests::TestService;

use super::super::sha256;
use super::{ask, code, deploy, get, public_app, publish};

#[tokio::test]
async fn revalidation_returns_304_with_the_same_headers() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    publish(&t, "desk", &[("index.html", b"<script>1</script>"), ("app.js", b"let a"), ("empty.txt", b"")])
        .await;
    for path in ["/", "/app.js", "/empty.txt"] {
        let whole = get(&t, "desk", path, &[]).await;
        let tag = whole.header("etag").unwrap().to_owned();
        assert_eq!(tag.len(), 45, "{tag}");
        assert_eq!(whole.header("cache-control"), Some("no-cache"));
        assert_eq!(whole.header("vary"), Some("Accept-Encoding"));
        for tags in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            for method in ["GET", "HEAD"] {
                let answer = ask(&t, method, "desk", path, &[("if-none-match", &tags)]).await;
                assert_eq!(answer.status, 304, "{path} {tags}");
                for name in ["etag", "cache-control", "content-security-policy", "vary", "x-frame-options"] {
                    assert_eq!(answer.header(name), whole.header(name), "{path} {name}");
                }
            }
        }
        assert_eq!(get(&t, "desk", path, &[("if-none-match", "\"other\"")]).await.status, 200);
        let head = ask(&t, "HEAD", "desk", path, &[]).await;
        for name in ["etag", "content-length", "content-type", "accept-ranges", "content-security-policy"] {
            assert_eq!(head.header(name), whole.header(name), "{path} {name}");
        }
    }
}

#[tokio::test]
async fn a_single_range_of_a_file_is_served() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    publish(&t, "desk", &[("index.html", b"<p>0"), ("ten.txt", b"0123456789"), ("empty.txt", b"")]).await;
    let tag = get(&t, "desk", "/ten.txt", &[]).await.header("etag").unwrap().to_owned();
    for (range, body, named) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-5", "2345", "bytes 2-5/10"),
        ("bytes=8-99", "89", "bytes 8-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
    ] {
        let answer = get(&t, "desk", "/ten.txt", &[("range", range)]).await;
        assert_eq!((answer.status, answer.text().as_str()), (206, body), "{range}");
        assert_eq!(answer.header("content-range"), Some(named));
        assert_eq!(answer.header("etag"), Some(tag.as_str()));
        let answer = get(&t, "desk", "/ten.txt", &[("range", range), ("if-range", &tag)]).await;
        assert_eq!(answer.status, 206, "{range}");
        for other in ["\"other\"", &format!("W/{tag}"), "Fri, 27 Nov 2026 11:00:00 GMT"] {
            let answer = get(&t, "desk", "/ten.txt", &[("range", range), ("if-range", other)]).await;
            assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"), "{other}");
        }
    }
    for range in ["bytes=10-", "bytes=-0"] {
        let answer = get(&t, "desk", "/ten.txt", &[("range", range)]).await;
        assert_eq!((answer.status, answer.header("content-range")), (416, Some("bytes */10")), "{range}");
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
    }
    assert_eq!(get(&t, "desk", "/empty.txt", &[("range", "bytes=0-")]).await.status, 416);
    for range in ["bytes=0-1,3-4", "bytes=5-2", "items=0-1", "x"] {
        assert_eq!(get(&t, "desk", "/ten.txt", &[("range", range)]).await.status, 200, "{range}");
    }
    let twice = [("range", "bytes=0-1"), ("range", "bytes=3-4")];
    assert_eq!(get(&t, "desk", "/ten.txt", &twice).await.status, 200);
    // A comma in quotes is part of the tag.
    for other in ["\"a, *, b\"".to_owned(), format!("\"a, {tag}"), format!("W/W/{tag}")] {
        assert_eq!(get(&t, "desk", "/ten.txt", &[("if-none-match", &other)]).await.status, 200, "{other}");
    }
    // HEAD has no ranges; conditions take precedence over ranges.
    assert_eq!(ask(&t, "HEAD", "desk", "/ten.txt", &[("range", "bytes=0-0")]).await.status, 200);
    let both = [("range", "bytes=0-0"), ("if-none-match", tag.as_str())];
    assert_eq!(get(&t, "desk", "/ten.txt", &both).await.status, 304);
}

#[tokio::test]
async fn documents_of_inactive_deployments_cannot_be_framed() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    let framed =
        br#"{"schema_version": 1, "bindings": {}, "csp": {"frame_ancestors": ["https://www.example.com"]}}"#;
    let of = |page: &'static [u8]| [("index.html", page), ("service.app.json", framed.as_slice())];
    publish(&t, "desk", &of(b"<p>1")).await;
    let page = |content: &[u8]| format!("/__service/assets/{}/index.html", sha256(content));
    let frames = async |path: &str| {
        let answer = get(&t, "desk", path, &[]).await;
        let policy = answer.header("content-security-policy").unwrap();
        let (_, origins) = policy.split_once("frame-ancestors ").unwrap();
        (origins.to_owned(), answer.header("x-frame-options").map(str::to_owned))
    };
    let (shown, closed) =
        (("https://www.example.com".to_owned(), None), ("'none'".to_owned(), Some("DENY".to_owned())));
    assert_eq!((frames("/").await, frames(&page(b"<p>1")).await), (shown.clone(), shown.clone()));
    publish(&t, "desk", &of(b"<p>2")).await;
    assert_eq!((frames("/").await, frames(&page(b"<p>1")).await), (shown, closed.clone()));
    publish(&t, "desk", &[("index.html", b"<p>3")]).await;
    for path in ["/", &page(b"<p>1"), &page(b"<p>2"), &page(b"<p>3")] {
        assert_eq!(frames(path).await, closed, "{path}");
    }
}

#[tokio::test]
async fn content_addresses_serve_files_of_the_apps_retained_deployments() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    public_app(&t, "other").await;
    let by_digest = |content: &[u8], name: &str| format!("/__service/assets/{}/{name}", sha256(content));
    publish(&t, "desk", &[("index.html", b"<p>1"), ("js/old.js", b"old")]).await;
    publish(&t, "desk", &[("index.html", b"<p>2"), ("js/new.js", b"new"), ("new.xyz", b"new")]).await;
    publish(&t, "other", &[("index.html", b"<p>3"), ("theirs.js", b"theirs")]).await;
    for (content, name, kind) in [
        (b"new".as_slice(), "new.js", "text/javascript; charset=utf-8"),
        (b"new", "new.xyz", "application/octet-stream"),
        // Another name does not change the media type.
        (b"old", "old.js", "text/javascript; charset=utf-8"),
        (b"old", "page.html", "text/javascript; charset=utf-8"),
    ] {
        let answer = get(&t, "desk", &by_digest(content, name), &[]).await;
        assert_eq!((answer.status, answer.body.as_ref()), (200, content), "{name}");
        assert_eq!(answer.header("content-type"), Some(kind), "{name}");
        assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"), "{name}");
        let tag = answer.header("etag").unwrap().to_owned();
        let again = get(&t, "desk", &by_digest(content, name), &[("if-none-match", &tag)]).await;
        assert_eq!((again.status, again.header("cache-control")), (304, answer.header("cache-control")));
    }
    let page = get(&t, "desk", &by_digest(b"<p>1", "index.html"), &[]).await;
    assert_eq!((page.status, page.header("cache-control")), (200, Some("no-cache")));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'; script-src"));
    let digest = sha256(b"new");
    deploy(&t, "desk", &[("index.html", b"<script>1</script>"), ("js/draft.js", b"draft")]).await;
    for path in [
        by_digest(b"theirs", "theirs.js"),
        // A file from an unpublished deployment.
        by_digest(b"draft", "draft.js"),
        by_digest(b"<script>1</script>", "index.html"),
        by_digest(b"unknown", "a.js"),
        by_digest(b"new", ""),
        by_digest(b"new", "a/b"),
        format!("/__service/assets/{}/a.js", digest.to_uppercase()),
        format!("/__service/assets/{digest}"),
        format!("/__service/assets/{}/a.js", &digest[1..]),
    ] {
        assert_eq!(code(&get(&t, "desk", &path, &[]).await), "404 not_found", "{path}");
    }
    let posted = ask(&t, "POST", "desk", &by_digest(b"new", "new.js"), &[]).await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
}
