//! Inline script hashes, as a browser computes them, and the policies that contain them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bundle::{Code, File, policy};

use crate::build::{Zip, accepted, refused};

fn hash(script: &str) -> String {
    STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, script.as_bytes()))
}

fn index(page: impl AsRef<[u8]>) -> File {
    accepted(&Zip::default().file("index.html", page).bytes()).files.remove(0)
}

#[test]
fn scripts_are_hashed_as_a_browser_reads_them() {
    let large = "x();".repeat(256 * 1024);
    for (what, page, script) in [
        ("LF", "<script>\na()\n</script>".to_owned(), "\na()\n"),
        ("CRLF", "<script>\r\na()\r\n</script>".to_owned(), "\na()\n"),
        ("CR", "<script>\ra()\r</script>".to_owned(), "\na()\n"),
        ("NUL", "<script>a\0b</script>".to_owned(), "a\u{fffd}b"),
        ("a BOM inside", "<script>\u{feff}a()</script>".to_owned(), "\u{feff}a()"),
        ("a BOM at the beginning", "\u{feff}<script>a()</script>".to_owned(), "a()"),
        (
            "double-escaped",
            "<script><!--<script></script>--></script>".to_owned(),
            "<!--<script></script>-->",
        ),
        ("an entity in SVG", "<svg><script>a&lt;b</script></svg>".to_owned(), "a<b"),
        ("CDATA in SVG", "<svg><script><![CDATA[a<b]]></script></svg>".to_owned(), "a<b"),
        ("an entity in HTML", "<script>a&lt;b</script>".to_owned(), "a&lt;b"),
        ("an unclosed script", "<script>a()".to_owned(), "a()"),
        ("astral characters", "<script>'😀'</script>".to_owned(), "'😀'"),
        ("1 MiB", format!("<script>{large}</script>"), large.as_str()),
        ("blanks", "<script> </script>".to_owned(), " "),
        ("a type with blanks", "<script type=' text/JavaScript '>a()</script>".to_owned(), "a()"),
        ("an empty type", "<script type=''>a()</script>".to_owned(), "a()"),
        ("an old type", "<script type=text/javascript1.5>a()</script>".to_owned(), "a()"),
        ("a language", "<script language=JavaScript>a()</script>".to_owned(), "a()"),
        ("an empty language", "<script language=''>a()</script>".to_owned(), "a()"),
        ("a module", "<script type=module>a()</script>".to_owned(), "a()"),
        ("an import map", "<script type=importmap>{}</script>".to_owned(), "{}"),
        ("a template", "<template><script>a()</script></template>".to_owned(), "a()"),
        ("noscript", "<noscript><script>a()</script></noscript>".to_owned(), "a()"),
        (
            "a shadow root",
            "<p><template shadowrootmode=open><script>a()</script></template>".to_owned(),
            "a()",
        ),
        ("a table", "<table><script>a()</script></table>".to_owned(), "a()"),
        // Browsers ignore these attributes.
        ("href on a script of HTML", "<script href=https://cdn.example/a.js>a()</script>".to_owned(), "a()"),
        ("xlink:href on a script of HTML", "<script xlink:href=a.js>a()</script>".to_owned(), "a()"),
        (
            "src on a script of SVG",
            "<svg><script src=https://cdn.example/a.js>a()</script></svg>".to_owned(),
            "a()",
        ),
        // `<b>` ends the SVG and thus the script.
        ("elements in SVG", "<svg><script>a<b>x</b>c</script></svg>".to_owned(), "a"),
    ] {
        let file = index(&page);
        assert_eq!(file.script_hashes, [hash(script)], "{what}");
        assert!(
            file.policy.unwrap().contains(&format!("script-src 'self' 'sha256-{}';", hash(script))),
            "{what}"
        );
    }
}

#[test]
fn scripts_that_do_not_run_are_not_hashed() {
    for page in [
        "<textarea><script>a()</script></textarea>",
        "<script></script>",
        "<script src=a.js></script>",
        "<script src=a.js href=https://cdn.example/a.js></script>",
        "<svg><script href=a.js src=https://cdn.example/a.js></script></svg>",
        "<svg><script xlink:href=a.js></script></svg>",
        "<script type=application/json>{}</script>",
        "<script type=text/plain>x</script>",
        "<!-- <script>a()</script> -->",
        "<style>a</style>",
    ] {
        assert!(index(page).script_hashes.is_empty(), "{page}");
    }
}

#[test]
fn each_document_has_a_separate_policy() {
    let zip =
        Zip::default().file("index.html", "<script>b()</script><script>a()</script><script>b()</script>");
    let zip = zip.file("other.html", "<script>c()</script>").file("a.js", "d()").file("a.wasm", b"\0asm");
    let manifest =
        r#"{"schema_version": 1, "bindings": {}, "csp": {"frame_ancestors": ["https://a.example"]}}"#;
    let bundle = accepted(&zip.file("service.app.json", manifest).bytes());
    let paths: Vec<&str> = bundle.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a.js", "a.wasm", "index.html", "other.html"], "the manifest is not served");
    let mut both = vec![hash("a()"), hash("b()")];
    both.sort_unstable();
    assert_eq!(bundle.files[2].script_hashes, both);
    let origins = ["https://a.example".to_owned()];
    let document = bundle::Document { hashes: &both, frame_ancestors: &origins, wasm: true };
    assert_eq!(bundle.files[2].policy.as_deref(), Some(policy(&document).as_str()));
    assert_eq!(bundle.files[3].script_hashes, [hash("c()")]);
    assert!(bundle.files[0].policy.is_none() && bundle.files[1].policy.is_none());
}

#[test]
fn a_hundred_scripts_fit_into_a_policy() {
    let page: String = (0..100).map(|number| format!("<script>{number}</script>")).collect();
    let file = index(page);
    assert_eq!(file.script_hashes.len(), 100);
    assert!(file.policy.unwrap().len() < 8 * 1024);
}

#[test]
fn a_policy_above_8_kib_is_rejected() {
    let page: String = (0..100).map(|number| format!("<script>{number}</script>")).collect();
    let long = ["a".repeat(60), "b".repeat(60), "c".repeat(60), "d".repeat(60)].join(".");
    let with = |last: &str| {
        let origins: Vec<String> = (0..9)
            .map(|number| format!("\"https://{number}.{long}\""))
            .chain([format!("\"https://{last}\"")])
            .collect();
        let manifest = format!(
            r#"{{"schema_version": 1, "bindings": {{}}, "csp": {{"frame_ancestors": [{}]}}}}"#,
            origins.join(",")
        );
        let zip = Zip::default().file("index.html", &page).file("other.html", &page);
        zip.file("service.app.json", manifest).bytes()
    };
    let secure = bundle::OVER_HTTPS.len();
    let policy = accepted(&with("a")).files.remove(0).policy.unwrap();
    // A host name with several labels.
    let host =
        |length: usize| (0..length).map(|at| if at % 60 == 30 { '.' } else { 'a' }).collect::<String>();
    let room = 8 * 1024 - policy.len() - secure;
    assert_eq!(accepted(&with(&host(1 + room))).files[0].policy.as_ref().unwrap().len() + secure, 8 * 1024);
    let findings = refused(&with(&host(2 + room)));
    assert_eq!((findings.len(), findings[0].code), (1, Code::CspTooLarge));
    // One finding, at the member that can be changed.
    assert_eq!(findings[0].path.as_deref(), Some("service.app.json"));
    let detail = "`/csp/frame_ancestors` extends a policy to 8193 bytes; at most 8192 are allowed.";
    assert_eq!(findings[0].detail, detail);
}

#[test]
fn the_policies_of_a_bundle_have_at_most_16_mib_together() {
    // The maximum number of inline scripts per document.
    let page: String = (0..100).map(|n| format!("<script>{n}</script>")).collect();
    let one = index(&page).policy.unwrap().len();
    let with = |documents: usize| {
        (1..documents)
            .fold(Zip::default().file("index.html", &page), |zip, n| zip.file(format!("{n}.html"), &page))
            .bytes()
    };
    let most = (16 << 20) / one;
    assert_eq!(accepted(&with(most)).files.len(), most);
    let findings = refused(&with(most + 1));
    assert_eq!((findings.len(), findings[0].code, findings[0].path.as_deref()), (1, Code::CspTooLarge, None));
    let detail = format!(
        "The policies of all documents have {} bytes; at most 16777216 are allowed.",
        one * (most + 1)
    );
    assert!(findings[0].detail.starts_with(&detail), "{}", findings[0].detail);
}
