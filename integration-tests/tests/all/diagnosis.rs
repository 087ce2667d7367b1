//! The diagnostic stream.

use integration_tests::{AnswerExt, TestService, shown};

#[tokio::test]
async fn numbered_events_arrive_at_their_pace_and_are_not_stored() {
    let t = TestService::with_manual_clock().await;
    let mut answer = t.open("GET", "/api/system/stream?events=3", &[], "").await;
    assert_eq!((answer.status, answer.header("x-accel-buffering")), (200, Some("no")));
    let first = answer.until("\n\n").await;
    assert_eq!(first, "data: {\"event\":1,\"of\":3}\n\n");
    assert!(answer.is_silent_for(100).await, "the clock is stopped");
    let rest = t.while_time_passes(answer.rest()).await;
    assert_eq!(rest, "data: {\"event\":2,\"of\":3}\n\ndata: {\"event\":3,\"of\":3}\n\n");
    t.assert_no_rows("streams").await;
}

#[tokio::test]
async fn long_and_excessive_streams_are_rejected() {
    let t = TestService::with_manual_clock().await;
    for query in ["events=0", "events=21", "events=x", "pause=1"] {
        let answer = t.get(&format!("/api/system/stream?{query}")).await;
        assert_eq!(answer.status, 422, "{query}: {}", shown(&answer));
    }
    assert_eq!(t.post("/api/system/stream", "").await.status, 405);
    let mut open = Vec::new();
    for _ in 0..16 {
        let mut answer = t.open("GET", "/api/system/stream", &[], "").await;
        answer.until("\n\n").await;
        open.push(answer);
    }
    t.get("/api/system/stream").await.expect(503);
    let mut last = open.pop().unwrap();
    t.while_time_passes(last.rest()).await;
    assert_eq!(t.while_time_passes(t.get("/api/system/stream?events=1")).await.status, 200);
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_diagnostic_stream() {
    let mut t = TestService::with_manual_clock().await;
    let mut answer = t.open("GET", "/api/system/stream?events=20", &[], "").await;
    answer.until("\n\n").await;
    // The next event would need time, and the clock is stopped.
    let stopping = t.begin_stop();
    assert_eq!(answer.rest().await, "");
    t.while_time_passes(stopping.done()).await;
}
