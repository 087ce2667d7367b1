//! Serving pages and their files.

use insta::{allow_duplicates, assert_snapshot};
use integration_tests::{AnswerExt, TestService};

const FILES: [(&str, &str); 4] = [
    ("base.css", "text/css; charset=utf-8"),
    ("icon.svg", "image/svg+xml"),
    ("dom.js", "text/javascript; charset=utf-8"),
    ("chat/element.js", "text/javascript; charset=utf-8"),
];

#[tokio::test]
async fn pages_have_security_headers() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("A & B").echo().published().create().await;
    for path in ["/".to_owned(), format!("/chat/{}", workflow.id), "/chat/nonsense".to_owned()] {
        let answer = t.get(&path).await;
        let header = |name: &str| answer.header(name).unwrap_or_default().to_owned();
        assert_eq!(header("content-type"), "text/html; charset=utf-8", "{path}");
        // Widgets show images from other hosts.
        let policy = match path == format!("/chat/{}", workflow.id) {
            true => {
                header("content-security-policy").replace("img-src 'self' data: https:;", "img-src 'self';")
            }
            false => header("content-security-policy"),
        };
        assert_eq!(policy == header("content-security-policy"), !path.contains(&workflow.id));
        allow_duplicates!(
            assert_snapshot!(policy, @"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(header("cache-control"), "no-cache");
        assert!(answer.header("set-cookie").is_none(), "opening a page creates no visitor");
        let text = answer.text();
        assert!(
            !text.contains("<style") && !text.contains(" style=") && !text.contains("<script>"),
            "{path}"
        );
        let head = t.open("HEAD", &path, &[], "").await;
        assert_eq!(head.status, answer.status);
    }
    let page = t.get(&format!("/chat/{}", workflow.id)).await.text();
    assert!(page.contains("<title>A &amp; B</title>"), "{page}");
}

#[tokio::test]
async fn an_unavailable_chat_page_has_the_status_of_the_api() {
    let t = TestService::start().await;
    let private = t.workflow().echo().create().await;
    let archived = t.workflow().echo().published().create().await;
    t.client().archive(&archived.id).await.unwrap();
    let unknown = "0198c2e7-3a10-7b52-8c0d-5e4f6a7b8c9d".to_owned();
    for (id, status, code) in [
        (&private.id, 403, "chat.not_published"),
        (&archived.id, 404, "workflow.not_found"),
        (&unknown, 404, "workflow.not_found"),
        (&private.handle, 404, "workflow.not_found"),
    ] {
        let answer = t.get(&format!("/chat/{id}")).await;
        assert_eq!(answer.status, status, "{id}");
        assert!(answer.text().contains(code), "{}", answer.text());
    }
    let answer = t.send("POST", &format!("/chat/{unknown}"), &[], "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
}

#[tokio::test]
async fn assets_are_revalidated_by_their_etags() {
    let t = TestService::start().await;
    for (file, kind) in FILES {
        let path = format!("/assets/{file}");
        let answer = t.get(&path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{file}");
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let tag = answer.header("etag").unwrap().to_owned();
        let again = t.send("GET", &path, &[("if-none-match", &tag)], "").await;
        assert_eq!(
            (again.status, again.text().as_str(), again.header("etag")),
            (304, "", Some(tag.as_str()))
        );
        t.send("GET", &path, &[("if-none-match", "\"other\"")], "").await.expect(200);
    }
    for path in [
        "/assets/",
        "/assets/chat",
        "/assets/nothing.js",
        "/assets/../chat.html",
        "/assets/%2e%2e/chat.html",
        "/assets/..%2fchat.html",
        "/assets/../package.json",
        "/assets//etc/passwd",
        "/assets/chat.html",
    ] {
        let answer = t.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.code(), "request.not_found", "{path}");
    }
}

#[tokio::test]
async fn database_errors_have_an_error_page() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    t.execute("ALTER TABLE workflows RENAME TO elsewhere").await;
    let answer = t.get(&format!("/chat/{}", workflow.id)).await;
    let text = answer.text();
    assert_eq!(answer.status, 500, "{text}");
    assert!(
        text.contains("The chat is not available right now") && text.contains("service.internal"),
        "{text}"
    );
    let id = answer.header("x-request-id").unwrap();
    assert!(text.contains(id), "the request's id: {text}");
    assert!(!text.contains("elsewhere") && !text.contains("relation"), "no inner text: {text}");
    t.execute("ALTER TABLE elsewhere RENAME TO workflows").await;
}
