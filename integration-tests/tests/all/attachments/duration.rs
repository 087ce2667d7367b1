//! The total timeout of an upload.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, TestService, Workflow, until};

use super::{begin_upload, form};

/// Bytes per chunk; a complete chunk is stored at once.
const CHUNK: usize = 256 << 10;
/// Chunks, each followed by nine seconds: 594 seconds in total.
const CHUNKS: usize = 66;

/// Sends a file fast enough for 594 seconds, and its last chunk `later` seconds after that.
async fn upload(t: &TestService, workflow: &Workflow, later: u64) -> Answer {
    let body = form("a.txt", &vec![b'a'; CHUNK * (CHUNKS + 1)]);
    let mut connection = begin_upload(t, workflow, &body).await;
    let mut sent = 0;
    for number in 1..=CHUNKS {
        // The head of the part is shorter than 1,024 bytes.
        let end = number * CHUNK + 1_024;
        connection.write(&body[sent..end]).await;
        sent = end;
        let stored = async || t.scalar("SELECT count(*) FROM upload_chunks").await == number.to_string();
        until("the chunk is stored", stored).await;
        t.advance(Duration::from_secs(9));
    }
    t.advance(Duration::from_secs(later));
    connection.write(&body[sent..]).await;
    connection.answer().await.whole().await
}

#[tokio::test]
async fn uploads_time_out_after_ten_minutes() {
    let t = TestService::builder().manual_clock().set("SERVICE_CHAT_UPLOAD_MAX_BYTES", "0").start().await;
    let workflow = t.workflow().echo().published().create().await;
    upload(&t, &workflow, 5).await.expect(200);
    assert_eq!(t.scalar("SELECT size FROM attachments").await, (CHUNK * (CHUNKS + 1)).to_string());
    let late = upload(&t, &workflow, 7).await;
    assert_eq!(late.refusal(), "408 request.timeout");
    t.until_scalar("its chunks are deleted", "SELECT count(*) FROM upload_chunks", "0").await;
    assert_eq!(t.scalar("SELECT count(*) FROM attachments").await, "1");
}
