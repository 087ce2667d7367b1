//! The stream of a thread's running turn.

use integration_tests::{
    AnswerExt, JSON, RawAnswer, TestService, chat, events, graphs, thread_of, without_mark,
};
use wire::PublishRequest;

const CHATKIT: (&str, &str) = ("chatkit-frame-instance-id", "f");

async fn open(t: &TestService, thread: &str, headers: &[(&str, &str)]) -> RawAnswer {
    t.open("GET", &format!("/api/chat/threads/{thread}/stream"), headers, "").await
}

#[tokio::test]
async fn a_running_turn_is_joined_at_its_start_or_after_an_event() {
    for headers in [&[JSON][..], &[JSON, CHATKIT][..]] {
        let t = TestService::with_manual_clock().await;
        let workflow =
            t.workflow().graph(graphs::interrupted("so far", 5.0, " and done")).published().create().await;
        let body = chat::create(&workflow, "hi").to_string();
        let mut first = t.open("POST", "/api/chat", headers, &body).await;
        let stream = first.header("x-chat-stream-id").unwrap().to_owned();
        let begun = first.until("so far").await;
        let thread = thread_of(&begun);
        // Without the header that chose the dialect: the stream remembers it.
        let mut whole = open(&t, &thread, &[]).await;
        assert_eq!((whole.status, whole.header("x-chat-stream-id")), (200, Some(stream.as_str())));
        assert_eq!(whole.header("content-type"), Some("text/event-stream"));
        let joined = whole.until("so far").await;
        let mut resumed = open(&t, &thread, &[("last-event-id", &format!("{stream}.3"))]).await;
        let path = format!("/api/chat/threads/{thread}/stream?after=3");
        let mut query = t.open("GET", &path, &[], "").await;
        let rest = async {
            let first = begun + &first.rest().await;
            (first, joined + &whole.rest().await, resumed.rest().await, query.rest().await)
        };
        let (first, whole, resumed, query) = t.while_time_passes(rest).await;
        assert_eq!(first, without_mark(&whole));
        let (resumed, query) = (without_mark(&resumed), without_mark(&query));
        assert_eq!(resumed, query);
        let place = first.find(&format!("id: {stream}.4\n")).unwrap();
        assert_eq!(resumed, first[place..]);
        let over = open(&t, &thread, &[]).await;
        assert_eq!((over.status, over.header("x-chat-stream-id")), (204, None), "no turn is running");
    }
}

#[tokio::test]
async fn the_stream_of_a_thread_is_that_of_its_running_turn() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("{{ inputs.message }}", 600.0, "")).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "first")).await;
    let begun = first.until("content_part_added").await;
    let thread = thread_of(&begun);
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "second")).await;
    second.until("stream_options").await;
    let (one, two) = (
        first.header("x-chat-stream-id").unwrap().to_owned(),
        second.header("x-chat-stream-id").unwrap().to_owned(),
    );
    let joined = open(&t, &thread, &[]).await;
    assert_eq!(joined.header("x-chat-stream-id"), Some(one.as_str()));
    t.stop_turn(&one).await;
    // A reader of the previous turn has seen nothing of this one.
    let mut joined = open(&t, &thread, &[("last-event-id", &format!("{one}.5"))]).await;
    assert_eq!(joined.header("x-chat-stream-id"), Some(two.as_str()));
    let begun = joined.until("second").await;
    assert!(begun.starts_with(&format!("id: {two}.1\n")), "{begun}");
    for (place, code) in [("x", "/Last-Event-ID format"), (&format!("{two}.99"), "/Last-Event-ID range")] {
        let answer = open(&t, &thread, &[("last-event-id", place)]).await.whole().await;
        assert_eq!(
            (answer.refusal().as_str(), answer.problems()),
            ("422 request.invalid", vec![code.to_owned()])
        );
    }
    t.stop_turn(&two).await;
    assert_eq!(open(&t, &thread, &[("last-event-id", &format!("{two}.1"))]).await.status, 204);
    assert_eq!(open(&t, &thread, &[("last-event-id", "nonsense")]).await.status, 204);
}

#[tokio::test]
async fn the_stream_of_a_thread_follows_the_rules_of_its_chat() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(600.0, "never")).published().create().await;
    let (owner, stranger) = (t.visitor(), t.visitor());
    let echo = t.workflow().echo().published().create().await;
    owner.say(&echo.id, "hi").await.unwrap();
    stranger.say(&echo.id, "hi").await.unwrap();
    let stream =
        owner.chat_raw(&chat::create(&workflow, "hi"), &client::ChatOptions::default()).await.unwrap();
    let page = wire::chat::PageRequest::default();
    let thread = owner.threads(&workflow.id, &page).await.unwrap().data[0].id.clone();
    let joined = owner.running_stream(&thread, None).await.unwrap().unwrap();
    assert_eq!(joined.stream_id(), stream.stream_id());
    for other in [&stranger, &t.anonymous()] {
        let error = other.running_stream(&thread, None).await.err().unwrap();
        assert_eq!((error.status(), error.code()), (Some(404), Some("thread.not_found")));
    }
    let nowhere = "thr_".to_owned() + &"0".repeat(32);
    for name in ["x", &nowhere, &thread[4..]] {
        let answer = open(&t, name, &[]).await.whole().await;
        assert_eq!(answer.refusal(), "404 thread.not_found", "{name}");
    }
    let bearer = open(&t, &thread, &[("authorization", "Bearer x")]).await.whole().await;
    assert_eq!(bearer.refusal(), "401 chat.session_invalid");
    t.while_time_passes(owner.stop(stream.stream_id())).await.unwrap();
    t.client().publish(&workflow.id, &PublishRequest { require_login: Some(true) }).await.unwrap();
    assert_eq!(open(&t, &thread, &[]).await.whole().await.refusal(), "401 chat.login_required");
    t.client().unpublish(&workflow.id).await.unwrap();
    assert_eq!(open(&t, &thread, &[]).await.whole().await.refusal(), "403 chat.not_published");
    t.client().archive(&workflow.id).await.unwrap();
    assert_eq!(open(&t, &thread, &[]).await.whole().await.refusal(), "404 workflow.not_found");
}

/// A reloaded page reads the thread and joins the running stream: each item appears once, and none is missing.
#[tokio::test]
async fn a_thread_and_its_running_stream_contain_each_item_once() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("half", 5.0, " done")).published().create().await;
    let client = t.anonymous();
    let mut first = t.open_chat(&chat::create(&workflow, "one")).await;
    let thread = thread_of(&first.until("half").await);
    let step = std::time::Duration::from_millis(100);
    t.while_time_passes_in(step, first.rest()).await;
    client.rename_thread(&workflow.id, &thread, "Renamed").await.unwrap();
    let shown = client.thread(&workflow.id, &thread).await.unwrap().items.data;
    let item = shown[0].id().to_owned();
    let params = serde_json::json!({"thread_id": thread, "item_id": item});
    let mut retry = t.open_chat(&chat::ask(&workflow, "threads.retry_after_item", params)).await;
    retry.until("half").await;
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "two")).await;
    second.until("stream_options").await;
    for expected in [&mut retry, &mut second] {
        let mut joined = open(&t, &thread, &[]).await;
        assert_eq!(joined.header("x-chat-stream-id"), expected.header("x-chat-stream-id"));
        let read = client.thread(&workflow.id, &thread).await.unwrap();
        assert_eq!(read.title.as_deref(), Some("Renamed"));
        let streamed = t.while_time_passes_in(step, joined.rest()).await;
        let mut ids: Vec<String> = read.items.data.iter().map(|item| item.id().to_owned()).collect();
        for event in events(&streamed) {
            if let Some(id) = event["item"]["id"].as_str().filter(|_| event["type"] == "thread.item.done")
                && !ids.iter().any(|known| known == id)
            {
                ids.push(id.to_owned());
            }
        }
        let now = client.thread(&workflow.id, &thread).await.unwrap().items.data;
        // The waiting message is stored from the start.
        let mut now: Vec<String> = now.iter().map(|item| item.id().to_owned()).collect();
        now.sort_unstable();
        ids.sort_unstable();
        assert_eq!(ids, now);
        t.while_time_passes_in(step, expected.rest()).await;
    }
    assert_eq!(open(&t, &thread, &[]).await.status, 204);
}
