//! File bodies, small and large, and clients that do not read.

use integration_tests::{TestService, within};

use super::{ask, get, public_app, publish};

/// Bytes that differ at every position.
fn bytes(length: usize) -> Vec<u8> {
    (0_u64..).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).take(length).collect()
}

const MIB: usize = 1 << 20;

#[tokio::test]
async fn files_of_any_size_arrive_complete() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    let sizes = [0, 1, 65_536, MIB - 1, MIB, MIB + 1, 4 * MIB, 4 * MIB + 1, 6 * MIB + 7];
    let files: Vec<(String, Vec<u8>)> =
        sizes.iter().map(|size| (format!("f{size}.xyz"), bytes(*size))).collect();
    let mut all: Vec<(&str, &[u8])> = vec![("index.html", b"<p>1")];
    all.extend(files.iter().map(|(name, content)| (name.as_str(), content.as_slice())));
    publish(&t, "desk", &all).await;
    for round in 0..2 {
        for (name, content) in &files {
            let answer = get(&t, "desk", &format!("/{name}"), &[]).await;
            assert!(answer.status == 200 && answer.body.as_ref() == content.as_slice(), "{name} {round}");
            assert_eq!(answer.header("content-length"), Some(content.len().to_string().as_str()));
        }
    }
    let large = &files[8].1;
    for range in [MIB - 3..MIB + 3, 5 * MIB..6 * MIB + 7, 3..4, 2 * MIB..4 * MIB] {
        let requested_range = format!("bytes={}-{}", range.start, range.end - 1);
        let name = format!("/{}", files[8].0);
        let answer = get(&t, "desk", &name, &[("range", &requested_range)]).await;
        assert!(answer.status == 206 && answer.body.as_ref() == &large[range], "{requested_range}");
    }
}

#[tokio::test]
async fn clients_that_do_not_read_hold_no_database_connection() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    let large = bytes(24 * MIB);
    publish(&t, "desk", &[("index.html", b"<p>1"), ("large.xyz", &large)]).await;
    // More responses than there are database connections.
    let mut waiting = Vec::new();
    for _ in 0..16 {
        let mut answer = ask(&t, "GET", "desk", "/large.xyz", &[]).await.expect(200);
        let first = answer.piece().await.unwrap();
        assert_eq!(first.as_ref(), &large[..first.len()]);
        waiting.push((answer, first.len()));
    }
    let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'
        AND pid <> pg_backend_pid()";
    t.until_scalar("no statement runs", busy, "0").await;
    within("another request", get(&t, "desk", "/", &[])).await;
    let (mut last, read) = waiting.pop().unwrap();
    drop(waiting);
    let mut rest = read;
    while let Some(piece) = last.piece().await {
        assert_eq!(piece.as_ref(), &large[rest..rest + piece.len()]);
        rest += piece.len();
    }
    assert_eq!(rest, large.len());
}
