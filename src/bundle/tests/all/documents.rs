//! Accepted documents, the text of findings, and the time limit of a check.

use bundle::Code;

use crate::build::{Zip, accepted, refused};
use crate::markup::{document, page, svg};

#[test]
fn ordinary_documents_are_accepted() {
    for body in [
        "<base href='/'><a href='/x?y#z'>x</a>",
        "<base target=_blank>",
        "<base href='./'>",
        "<meta charset=utf-8><meta name=viewport content=width=device-width>",
        "<meta charset=' UTF8 '>",
        "<meta http-equiv=content-type content='text/html; charset=utf-8'>",
        "<meta http-equiv=X-UA-Compatible content=IE=edge><meta http-equiv=refresh content='5;url=/next'>",
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">",
        "<link rel=icon href='data:image/svg+xml,<svg/>'><link rel=stylesheet href=a.css>",
        "<img src='data:image/svg+xml,x' alt><img src=data:image/png;base64,x>",
        "<a href=https://other.example>x</a><a href=mailto:a@example.com>x</a><a href=tel:1>x</a>",
        "<script src=a.js></script><script type=module crossorigin src=/assets/a.js>\n</script>",
        "<script src='./a.js' defer> </script><link rel=modulepreload href=/a.js>",
        "<script type=application/json>{\"a\":\"<p onclick=x>\"}</script>",
        "<script type=text/x-handlebars-template><p onclick=x></script>",
        "<script type=importmap>{\"imports\":{\"a\":\"./a.js\",\"b\":\"/b.js\",\"c\":null}}</script>",
        "<textarea><script>x</script><p onclick=x></textarea>",
        "<!-- <p onclick=x><script src=https://cdn.example/a.js></script> -->",
        "<title><p onclick=x></title><xmp><p onclick=x></xmp>",
        "<noscript><p>Scripts are needed.</noscript>",
        "<template shadowrootmode=open><slot></slot></template>",
        "<svg viewBox='0 0 1 1'><path d='M0 0'/><use href=#a /></svg><math><mi>x</mi></math>",
        "<svg><animate attributeName=opacity to=1></svg>",
        "<p data-on=x @click=x (click)=x :on=x>",
        "<form action=/send><input name=a><button>Go</button></form>",
        "<iframe src=/page.html></iframe>",
        "<p>java script: <code>javascript:x</code>",
        "<style>p{background:url(a.png)}</style><p style='color:red'>",
        &"<script>x()</script>".repeat(1000),
        &"<div>".repeat(500),
    ] {
        let bundle = accepted(&page(body));
        assert_eq!(bundle.files.len(), 1, "{body}");
    }
}

#[test]
fn ordinary_pictures_and_feeds_are_accepted() {
    let illustrator = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \
        \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\">\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
        xmlns:xlink=\"http://www.w3.org/1999/xlink\"><style type=\"text/css\">.a{fill:red}</style>\
        <image xlink:href=\"data:image/png;base64,x\"/><use xlink:href=\"#a\"/></svg>";
    let feed = "<rss><item><description><![CDATA[<script src='https://cdn.example/a.js'></script>]]></description>\
        <content>&lt;p onclick=x></content></item></rss>";
    for (name, content) in [
        ("a.svg", illustrator),
        (
            "b.svg",
            "\u{feff}<svg xmlns='http://www.w3.org/2000/svg'><style><![CDATA[ a > b { } ]]></style></svg>",
        ),
        ("feed.xml", feed),
        ("feed.rss", feed),
        ("sitemap.xml", "<?xml version='1.0'?><urlset><url><loc>https://a.example/</loc></url></urlset>"),
        ("a.xhtml", "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>x</p></body></html>"),
        ("data.xml", "<a once='true'><object/></a>"),
        ("a.txt", "<script>x</script>"),
        ("a.js", "document.write('<p onclick=x>')"),
    ] {
        accepted(&document(name, content));
    }
}

#[test]
fn a_finding_has_its_location_and_text() {
    let findings = refused(&page("<p>\n<button\n  onclick=x>\n<a href='javascript:y'>"));
    let found: Vec<_> =
        findings.iter().map(|one| (one.code, one.line.unwrap(), one.detail.as_str())).collect();
    let expected = [
        (Code::InlineEventHandler, 5, "The attribute `onclick` of `<button>` contains a script."),
        (Code::JavascriptUrl, 6, "The attribute `href` of `<a>` has the address `javascript:y`."),
    ];
    assert_eq!(found, expected);
    let findings = refused(&page("a\nb\n<noscript>\n<p onclick=x>\n</noscript>"));
    assert_eq!(findings[0].line, Some(6));
    let findings = refused(&page(b"a\nb\xff"));
    assert_eq!(findings[0].line, Some(4));
    let findings = refused(&svg("\n<g>\n<script/></g>"));
    assert_eq!(findings[0].line, Some(3));
}

#[test]
fn all_documents_of_a_stage_are_read() {
    let zip = Zip::app()
        .file("b.html", "<p onclick=x>")
        .file("a.svg", "<svg onload='x'/>")
        .file("c.html", "<a href=javascript:x>");
    let zip = zip.file("service.app.json", "{}");
    let found: Vec<_> = refused(&zip.bytes()).into_iter().map(|one| (one.code, one.path.unwrap())).collect();
    let expected = [
        (Code::InlineEventHandler, "a.svg".to_owned()),
        (Code::InlineEventHandler, "b.html".to_owned()),
        (Code::JavascriptUrl, "c.html".to_owned()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn notes_do_not_reject_a_bundle() {
    let body = "<img src=https://cdn.example/a.png>\n<link rel=stylesheet href=//cdn.example/a.css>";
    let large = format!("<!doctype html><p>{}", "x".repeat(1024 * 1024));
    let page = format!("<!doctype html>{body}");
    let bytes =
        Zip::default().file("index.html", page).file("large.html", large).file("a.wasm", b"\0asm").bytes();
    let bundle = accepted(&bytes);
    let notes: Vec<_> = bundle.notes.iter().map(|note| (note.code, note.path.as_str(), note.line)).collect();
    let expected = [
        ("external_url", "index.html", Some(1)),
        ("external_url", "index.html", Some(2)),
        ("large_html", "large.html", None),
        ("wasm", "a.wasm", None),
    ];
    assert_eq!(notes, expected);
}

#[test]
fn content_blocked_by_the_policy_is_noted_for_same_origin_urls_too() {
    let noted = |body: &str| {
        let bundle = accepted(&page(body));
        bundle.notes.iter().map(|note| (note.code, note.detail.clone())).collect::<Vec<_>>()
    };
    for (body, address, what) in [
        ("<link rel=stylesheet href='data:text/css,p{}'>", "data:text/css,p{}", "<link>"),
        ("<link rel=manifest href='data:application/json,{}'>", "data:application/json,{}", "<link>"),
        ("<iframe src=/other.html></iframe>", "/other.html", "<iframe>"),
        ("<iframe src=https://video.example/></iframe>", "https://video.example/", "<iframe>"),
        (
            "<style>@import url(https://fonts.example/a.css);</style>",
            "https://fonts.example/a.css",
            "@import",
        ),
        ("<style>p{}\n@IMPORT '//fonts.example/b.css' screen</style>", "//fonts.example/b.css", "@import"),
        ("<noscript><style>@import \"data:text/css,p{}\"</style></noscript>", "data:text/css,p{}", "@import"),
    ] {
        let detail = format!("The policy of the app blocks the address `{address}` of `{what}`.");
        assert_eq!(noted(body), [("external_url", detail)], "{body}");
    }
    for (body, what) in [
        ("<style>p{background:url(https://cdn.example/a.png)}</style>", "a style sheet"),
        ("<p style='background:url(\"https://cdn.example/a.png\")'>", "`<p>`"),
    ] {
        let detail =
            format!("The policy of the app blocks the address `https://cdn.example/a.png` of {what}.");
        assert_eq!(noted(body), [("external_url", detail)], "{body}");
    }
    for body in [
        "<style>p{background:url(a.png)}</style>",
        "<link rel=icon href='data:image/png;base64,AA=='>",
        "<link rel=stylesheet href=a.css>",
        "<link rel=canonical href=https://a.example/>",
        "<iframe></iframe>",
        "<iframe src></iframe>",
        "<iframe src=about:blank></iframe>",
        "<style>@import 'a.css'; @import url(/b.css); p{background:url(data:image/png,x)}</style>",
        "<p>@import url(https://a.example/)",
    ] {
        assert_eq!(noted(body), [], "{body}");
    }
}

#[test]
fn findings_about_common_elements_have_advice() {
    for (body, code, change) in [
        (
            "<meta http-equiv=cache-control content=no-cache>",
            Code::UnsupportedElement,
            "`Cache-Control` itself",
        ),
        ("<meta http-equiv=Pragma content=no-cache>", Code::UnsupportedElement, "`Cache-Control` itself"),
        (
            "<meta http-equiv=Content-Language content=de>",
            Code::UnsupportedElement,
            "attribute `lang` of `<html>`",
        ),
        (
            "<meta http-equiv=x-dns-prefetch-control content=on>",
            Code::UnsupportedElement,
            "`X-DNS-Prefetch-Control`",
        ),
        ("<a href='javascript:void(0)'>", Code::JavascriptUrl, "`<button type=\"button\">`"),
        ("<a href=' JavaScript: void 0; '>", Code::JavascriptUrl, "`<button type=\"button\">`"),
        ("<a href='javascript:;'>", Code::JavascriptUrl, "`<button type=\"button\">`"),
    ] {
        let finding = &refused(&page(body))[0];
        assert_eq!(finding.code, code, "{body}");
        assert!(finding.detail.contains(change), "{body}: {}", finding.detail);
    }
    let detail = &refused(&page("<a href='javascript:go()'>"))[0].detail;
    assert_eq!(detail, "The attribute `href` of `<a>` has the address `javascript:go()`.");
}

/// A clock that advances 50 ms per reading.
struct Ticking(std::sync::atomic::AtomicU32);

impl kernel::Clock for Ticking {
    fn now(&self) -> chrono::DateTime<chrono::Utc> {
        chrono::DateTime::UNIX_EPOCH
    }

    fn monotonic(&self) -> std::time::Duration {
        std::time::Duration::from_millis(50) * self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    fn sleep(&self, _: std::time::Duration) -> kernel::Sleep {
        unreachable!("a check does not wait")
    }
}

pub(crate) fn ticking(bytes: &[u8], seconds: u64) -> Result<bundle::Verdict, bundle::CheckError> {
    ticking_for(bytes, std::time::Duration::from_secs(seconds))
}

pub(crate) fn ticking_for(
    bytes: &[u8],
    time: std::time::Duration,
) -> Result<bundle::Verdict, bundle::CheckError> {
    bundle::check(&mut std::io::Cursor::new(bytes), &bundle::Limits::DEFAULT, &Ticking(0.into()), time)
}

/// Parsing takes little processor time, whatever the clock shows.
#[test]
fn a_busy_machine_delays_a_check_but_rejects_no_document() {
    // More than 40 parts, with a clock reading after each.
    let html = document("a.html", format!("<!doctype html>{}", "<br>x\n".repeat(40_000)));
    let svg = document("a.svg", format!("<svg>{}</svg>", "<g/>".repeat(20_000)));
    for slow in [html, svg] {
        assert!(matches!(ticking(&slow, 1_000), Ok(bundle::Verdict::Accepted(_))));
        assert!(matches!(ticking(&slow, 3), Err(bundle::CheckError::Overdue)));
    }
}

#[test]
fn a_tag_with_very_many_attributes_does_not_delay_a_check() {
    // The parser compares each attribute with all earlier ones.
    let attributes: String = (0..500_000).map(|number| format!(" {number:x}")).collect();
    let bytes = page(format!("<p{attributes}>"));
    let clock = kernel::SystemClock::new();
    let time = std::time::Duration::from_secs(120);
    let result = bundle::check(&mut std::io::Cursor::new(&bytes), &bundle::Limits::DEFAULT, &clock, time);
    match result.unwrap() {
        bundle::Verdict::Refused(findings) => {
            assert_eq!(findings[0].code, Code::HtmlParseLimit, "{findings:?}")
        }
        bundle::Verdict::Accepted(_) => panic!("accepted"),
    }
}
