//! Compressed file forms.

use integration_tests::TestService;

use super::{ask, get, public_app, publish};

#[tokio::test]
async fn text_files_are_served_compressed_after_the_compression_job() {
    let mut t = TestService::with_manual_clock().await;
    public_app(&t, "desk").await;
    let (script, page) =
        ("let a = 1;\n".repeat(400), format!("<script>1</script>{}", "<p>Text ".repeat(400)));
    let files: [(&str, &[u8]); 5] = [
        ("index.html", page.as_bytes()),
        ("app.js", script.as_bytes()),
        ("same/app.js", script.as_bytes()),
        ("short.js", b"let a = 1;"),
        ("text.xyz", script.as_bytes()),
    ];
    publish(&t, "desk", &files).await;
    let plain = get(&t, "desk", "/app.js", &[("accept-encoding", "br")]).await;
    assert_eq!((plain.text(), plain.header("content-encoding")), (script.clone(), None), "not prepared yet");
    // A new process compresses at once, and has no cached files.
    t.restart().await;
    let left =
        "SELECT count(*) FROM app_files WHERE br IS NULL AND size >= 1024 AND media_type LIKE 'text/%'";
    t.until_scalar("the texts are compressed", left, "0").await;
    assert_eq!(t.scalar("SELECT count(*) FROM app_files WHERE br IS NOT NULL").await, "3");
    t.restart().await;
    for path in ["/app.js", "/same/app.js", "/"] {
        let plain = get(&t, "desk", path, &[]).await;
        let tag = plain.header("etag").unwrap().to_owned();
        assert_eq!(plain.header("content-encoding"), None);
        for (accepts, encoding, end) in [("gzip, deflate, br", "br", "-br"), ("gzip", "gzip", "-gz")] {
            let answer = get(&t, "desk", path, &[("accept-encoding", accepts)]).await;
            assert_eq!(answer.header("content-encoding"), Some(encoding), "{path}");
            assert!(answer.body.len() * 4 < plain.body.len(), "{path} {encoding}");
            if encoding == "gzip" {
                assert_eq!(answer.body[..2], [0x1f, 0x8b]);
            }
            let encoded = format!("{}{end}\"", tag.trim_end_matches('"'));
            assert_eq!(answer.header("etag"), Some(encoded.as_str()));
            for name in ["content-type", "content-security-policy", "cache-control", "vary"] {
                assert_eq!(answer.header(name), plain.header(name), "{path} {name}");
            }
            let accepts = ("accept-encoding", accepts);
            let revalidated = get(&t, "desk", path, &[accepts, ("if-none-match", &encoded)]).await;
            assert_eq!((revalidated.status, revalidated.header("etag")), (304, Some(encoded.as_str())));
            assert_eq!(get(&t, "desk", path, &[accepts, ("if-none-match", &tag)]).await.status, 200);
            let head = ask(&t, "HEAD", "desk", path, &[accepts]).await;
            assert_eq!(head.header("content-length"), answer.header("content-length"));
            // A range refers to the uncompressed file.
            let part = get(&t, "desk", path, &[accepts, ("range", "bytes=0-3")]).await;
            assert_eq!(
                (part.status, part.header("content-encoding"), part.header("etag")),
                (206, None, Some(tag.as_str()))
            );
            assert_eq!(part.body, plain.body[..4]);
        }
    }
    for path in ["/short.js", "/text.xyz"] {
        let answer = get(&t, "desk", path, &[("accept-encoding", "br, gzip")]).await;
        assert_eq!(answer.header("content-encoding"), None, "{path}");
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"), "{path}");
    }
    let uses = "SELECT count(*) FROM blob_uses u WHERE u.digest IN (SELECT br FROM app_files UNION SELECT gzip FROM app_files)";
    assert_eq!(t.scalar(uses).await, "4");
}
