//! Retries a message, without the items after it.

use insta::assert_snapshot;
use integration_tests::{
    AnswerExt, Client, JSON, RawAnswer, TestService, Workflow, chat, events, graphs, shown_alike, thread_of,
    tidy, until,
};
use serde_json::{Value, json};
use wire::chat::{FeedbackKind, Order, PageRequest};

use crate::parked_turns::items_without_question;

const CHATKIT: (&str, &str) = ("chatkit-frame-instance-id", "f");
/// Prints the model's input.
const HISTORY: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}; {% endfor %}";

pub(crate) fn retry_request(workflow: &Workflow, thread: &str, item: &str) -> Value {
    chat::ask(workflow, "threads.retry_after_item", json!({"thread_id": thread, "item_id": item}))
}

/// Ids and texts of a thread's items.
pub(crate) async fn items(client: &Client, workflow: &Workflow, thread: &str) -> (Vec<String>, Vec<String>) {
    let items = client.thread(&workflow.id, thread).await.unwrap().items.data;
    items.iter().map(|item| (item.id().to_owned(), item.as_message().unwrap().1)).unzip()
}

pub(crate) async fn texts(client: &Client, workflow: &Workflow, thread: &str) -> Vec<String> {
    items(client, workflow, thread).await.1
}

/// A running turn and its thread.
pub(crate) async fn running(t: &TestService, workflow: &Workflow, text: &str) -> (RawAnswer, String) {
    let mut first = t.open_chat(&chat::create(workflow, text)).await;
    let beginning = first.until("stream_options").await;
    let thread = thread_of(&beginning);
    (first, thread)
}

#[tokio::test]
async fn a_retry_streams_a_new_answer_without_the_message() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "one").await.unwrap().thread_id;
    client.say_in(&workflow.id, &thread, "two").await.unwrap();
    let (before, _) = items(&client, &workflow, &thread).await;
    let body = retry_request(&workflow, &thread, &before[0]).to_string();
    let plain = t.open("POST", "/api/chat", &[JSON], &body).await.rest().await;
    assert_snapshot!(tidy(&plain), @r#"
    {"stream_options":{"allow_cancel":true},"type":"stream_options"}
    {"item":{"content":[],"created_at":"[time]","id":"msg-1","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.added"}
    {"item_id":"msg-1","type":"thread.item.updated","update":{"part":{"text":"You said: one","type":"output_text"},"type":"content_part_added"}}
    {"item":{"content":[{"annotations":[],"text":"You said: one","type":"output_text"}],"created_at":"[time]","id":"msg-1","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.done"}
    "#);
    let (after, item_texts) = items(&client, &workflow, &thread).await;
    assert_eq!((item_texts, &after[0]), (vec!["one".to_owned(), "You said: one".to_owned()], &before[0]));
    assert!(!before.contains(&after[1]), "a new item");
    assert_eq!(items_without_question(&t).await, "0");
    let chatkit = t.open("POST", "/api/chat", &[JSON, CHATKIT], &body).await.rest().await;
    assert_snapshot!(tidy(&chatkit), @r#"
    {"stream_options":{"allow_cancel":true},"type":"stream_options"}
    {"item":{"content":[],"created_at":"[time]","id":"msg-1","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.added"}
    {"item_id":"msg-1","type":"thread.item.updated","update":{"content":{"annotations":[],"text":"","type":"output_text"},"content_index":0,"type":"assistant_message.content_part.added"}}
    {"item_id":"msg-1","type":"thread.item.updated","update":{"content_index":0,"delta":"You said: one","type":"assistant_message.content_part.text_delta"}}
    {"item_id":"msg-1","type":"thread.item.updated","update":{"content":{"annotations":[],"text":"You said: one","type":"output_text"},"content_index":0,"type":"assistant_message.content_part.done"}}
    {"item":{"content":[{"annotations":[],"text":"You said: one","type":"output_text"}],"created_at":"[time]","id":"msg-1","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.done"}
    "#);
    assert_eq!(texts(&client, &workflow, &thread).await, ["one", "You said: one"]);
    // Removed items stay stored, but are not readable.
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, "6");
    for gone in before[1..].iter().chain(&after[1..]) {
        let error = client.say_again(&workflow.id, &thread, gone).await.err().unwrap();
        assert_eq!(error.code(), Some("item.not_found"));
        let named = std::slice::from_ref(gone);
        let error = client.feedback(&workflow.id, &thread, named, FeedbackKind::Positive, None).await;
        assert_eq!(error.err().unwrap().code(), Some("item.not_found"));
    }
    let turn = client.say_in(&workflow.id, &thread, "three").await.unwrap();
    assert_eq!(turn.text, "You said: three");
    let all = texts(&client, &workflow, &thread).await;
    assert_eq!(all, ["one", "You said: one", "three", "You said: three"]);
}

#[tokio::test]
async fn the_models_history_omits_removed_items() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply(HISTORY)).published().create().await;
    let client = t.visitor();
    let thread = client.say(&workflow.id, "a").await.unwrap().thread_id;
    for text in ["b", "c"] {
        client.say_in(&workflow.id, &thread, text).await.unwrap();
    }
    let (ids, _) = items(&client, &workflow, &thread).await;
    let turn = client.say_again(&workflow.id, &thread, &ids[2]).await.unwrap();
    assert_eq!(turn.text, "user: a; assistant: user: a; ; user: b; ");
    let turn = client.say_in(&workflow.id, &thread, "d").await.unwrap();
    let expected = "user: a; assistant: user: a; ; user: b; assistant: user: a; assistant: user: a; ; user: b; ; \
                    user: d; ";
    assert_eq!(turn.text, expected);
    let turn = client.say_again(&workflow.id, &thread, &ids[0]).await.unwrap();
    assert_eq!(turn.text, "user: a; ");
    assert_eq!(texts(&client, &workflow, &thread).await, ["a", "user: a; "]);
}

#[tokio::test]
async fn a_retry_keeps_the_message_options_and_takes_new_metadata() {
    let t = TestService::start().await;
    let text = "{{ inputs.message }} {{ inputs.quoted_text }} {{ inputs.inference_options.model }} \
                {{ inputs.metadata.page }} {{ inputs.thread_id == run.thread_id }}";
    let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
    let mut body = chat::create(&workflow, "hi");
    body["params"]["input"]["quoted_text"] = json!("that");
    body["params"]["input"]["inference_options"] = json!({"model": "m"});
    body["metadata"] = json!({"page": "first"});
    let first = events(&t.open_chat(&body).await.rest().await);
    let (thread, item) = (&first[0]["thread"]["id"], &first[1]["item"]["id"]);
    assert_eq!(first.last().unwrap()["item"]["content"][0]["text"], "hi that m first true");
    let mut body = retry_request(&workflow, thread.as_str().unwrap(), item.as_str().unwrap());
    body["metadata"] = json!({"page": "second"});
    let second = events(&t.open_chat(&body).await.rest().await);
    assert_eq!(second.last().unwrap()["item"]["content"][0]["text"], "hi that m second true");
}

/// A running or waiting turn goes first; its replies follow the message and are removed with the rest.
#[tokio::test]
async fn a_retry_waits_for_earlier_turns() {
    let t = TestService::with_manual_clock().await;
    let text = format!("({HISTORY})");
    let workflow = t.workflow().graph(graphs::delayed(5.0, &text)).published().create().await;
    let client = t.anonymous();
    let (mut first, thread) = running(&t, &workflow, "first").await;
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "second")).await;
    second.until("stream_options").await;
    let (ids, _) = items(&client, &workflow, &thread).await;
    let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[0])).await.expect(200);
    retry.until("stream_options").await;
    assert_eq!(
        texts(&client, &workflow, &thread).await,
        ["first"],
        "the second message is removed immediately"
    );
    let mut third = t.open_chat(&chat::add(&workflow, &thread, "third")).await;
    third.until("stream_options").await;
    assert_eq!(texts(&client, &workflow, &thread).await, ["first", "third"]);
    assert!(retry.is_silent_for(100).await);
    until("the first to run", async || {
        t.scalar("SELECT string_agg(status, ' ' ORDER BY id) FROM runs").await
            == "running queued queued queued"
    })
    .await;
    t.while_time_passes_in(std::time::Duration::from_millis(100), async {
        first.rest().await;
        second.rest().await;
        let answered = events(&retry.rest().await).pop().unwrap();
        assert_eq!(answered["item"]["content"][0]["text"], "(user: first; )");
        third.rest().await;
    })
    .await;
    let overlap = "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id WHERE b.started_at < a.finished_at";
    assert_eq!(t.scalar(overlap).await, "0");
    assert_eq!(
        texts(&client, &workflow, &thread).await,
        ["first", "third", "(user: first; )", "(user: first; assistant: (user: first; ); user: third; )"]
    );
}

#[tokio::test]
async fn a_repeated_retry_request_is_replayed() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "hi").await.unwrap().thread_id;
    let (ids, _) = items(&client, &workflow, &thread).await;
    let body = retry_request(&workflow, &thread, &ids[0]).to_string();
    let send =
        async |t: &TestService| t.send("POST", "/api/chat", &[JSON, ("idempotency-key", "k")], &body).await;
    let first = send(&t).await;
    assert_eq!(first.header("idempotency-replayed"), None);
    for _ in 0..2 {
        let repeated = send(&t).await;
        assert_eq!(repeated.header("idempotency-replayed"), Some("true"));
        assert_eq!(repeated.text(), first.text());
        t.restart().await;
    }
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "2");
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi", "You said: hi"]);
}

#[tokio::test]
async fn a_retry_survives_a_restart_and_can_be_resumed_and_stopped() {
    let mut t = TestService::builder()
        .manual_clock()
        // No client reads during the stop.
        .set("SERVICE_CHAT_DISCONNECT_GRACE", "forever")
        .start()
        .await;
    let graph = graphs::interrupted(&format!("({HISTORY})"), 60.0, " done");
    let workflow = t.workflow().graph(graph).published().create().await;
    let client = t.anonymous();
    let (mut first, thread) = running(&t, &workflow, "hi").await;
    let step = std::time::Duration::from_millis(500);
    t.while_time_passes_in(step, first.rest()).await;
    let (ids, _) = items(&client, &workflow, &thread).await;
    let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[0])).await;
    let stream = retry.header("x-chat-stream-id").unwrap().to_owned();
    retry.until("(user: hi; )").await;
    drop(retry);
    t.restart().await;
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi"]);
    let mut resumed = t.resume(&stream, Some(&format!("{stream}.1"))).await;
    let rest = t.while_time_passes_in(step, resumed.rest()).await;
    assert_eq!(events(&rest).pop().unwrap()["item"]["content"][0]["text"], "(user: hi; ) done");
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi", "(user: hi; ) done"]);
    // The retry is queued after another turn at a restart, and the next process starts it.
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "second")).await;
    second.until("content_part_added").await;
    let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[0])).await;
    let stream = retry.header("x-chat-stream-id").unwrap().to_owned();
    retry.until("stream_options").await;
    drop((second, retry));
    t.restart().await;
    let mut resumed = t.resume(&stream, None).await;
    let beginning = t.while_time_passes_in(step, resumed.until("(user: hi; )")).await;
    assert!(beginning.contains("content_part_added"), "{beginning}");
    assert_eq!(
        texts(&client, &workflow, &thread).await,
        ["hi"],
        "the second message and its answer are removed"
    );
    t.stop_turn(&stream).await;
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi", "(user: hi; )"]);
    t.until_scalar("the turns to end", "SELECT count(*) FROM runs WHERE finished_at IS NULL", "0").await;
}

#[tokio::test]
async fn only_user_messages_in_the_callers_thread_can_be_retried() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let (owner, stranger) = (t.anonymous(), t.visitor());
    let thread = owner.say(&workflow.id, "hi").await.unwrap().thread_id;
    let other = owner.say(&workflow.id, "elsewhere").await.unwrap().thread_id;
    stranger.say(&workflow.id, "hello").await.unwrap();
    let (ids, _) = items(&owner, &workflow, &thread).await;
    let (away, _) = items(&owner, &workflow, &other).await;
    let error = stranger.say_again(&workflow.id, &thread, &ids[0]).await.err().unwrap();
    assert_eq!((error.status(), error.code()), (Some(404), Some("thread.not_found")));
    let mut refused = Vec::new();
    for item in ["", "x", "msg_00", &away[0], &ids[0].to_uppercase(), &ids[0].replace("msg_", "thr_")] {
        refused.push(t.chat(&retry_request(&workflow, &thread, item)).await);
    }
    assert_snapshot!(shown_alike(&refused), @r#"
    404
    content-type: application/json
    {"detail":{"message":"Item not found in the thread.","code":"item.not_found"}}
    "#);
    let answer = t.chat(&retry_request(&workflow, &thread, &ids[1])).await;
    assert_eq!(
        (answer.refusal().as_str(), answer.problems()),
        ("422 chat.invalid_request", vec!["/params/item_id kind".to_owned()])
    );
    let answer = t.chat(&chat::ask(&workflow, "threads.retry_after_item", json!({"item_id": 1}))).await;
    assert_eq!(answer.problems(), ["/params/thread_id required", "/params/item_id type"]);
    // None of these requests has removed anything.
    t.assert_no_rows("thread_cuts").await;
    assert_eq!(texts(&owner, &workflow, &thread).await, ["hi", "You said: hi"]);
    owner.delete_thread(&workflow.id, &thread).await.unwrap();
    let answer = t.chat(&retry_request(&workflow, &thread, &ids[0])).await;
    assert_eq!(answer.refusal(), "404 thread.not_found");
}

/// Pages show the same thread as a whole read, from every cursor.
#[tokio::test]
async fn pages_of_items_omit_removed_items() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "a").await.unwrap().thread_id;
    for text in ["b", "c", "d"] {
        client.say_in(&workflow.id, &thread, text).await.unwrap();
    }
    let (before, _) = items(&client, &workflow, &thread).await;
    client.say_again(&workflow.id, &thread, &before[4]).await.unwrap();
    client.say_in(&workflow.id, &thread, "e").await.unwrap();
    let (whole, item_texts) = items(&client, &workflow, &thread).await;
    assert_eq!(item_texts.iter().step_by(2).collect::<Vec<_>>(), ["a", "b", "c", "e"]);
    for order in [Order::Asc, Order::Desc] {
        let mut expected = whole.clone();
        if order == Order::Desc {
            expected.reverse();
        }
        for limit in 1..=3 {
            let mut page = PageRequest { limit: Some(limit), order: Some(order), after: None };
            let mut read = Vec::new();
            loop {
                let part = client.items(&workflow.id, &thread, &page).await.unwrap();
                assert!(!part.data.is_empty() || read.is_empty(), "an empty page");
                read.extend(part.data.iter().map(|item| item.id().to_owned()));
                page.after = part.after;
                if !part.has_more {
                    break;
                }
            }
            assert_eq!(read, expected, "{order:?} {limit}");
            // The position of a removed item is still known.
            for (gone, preceding) in [(&before[5], &whole[4]), (&before[7], &whole[4])] {
                let after = Some(gone.clone());
                let page = PageRequest { limit: Some(limit), order: Some(order), after };
                let first = client.items(&workflow.id, &thread, &page).await.unwrap().data;
                let next = expected.iter().position(|id| id == preceding).unwrap();
                let next = if order == Order::Asc { next + 1 } else { next };
                assert_eq!(first[0].id(), expected[next], "{order:?} {limit}");
            }
        }
    }
}

#[tokio::test]
async fn a_thread_returns_twenty_items_and_whether_more_exist() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "0").await.unwrap().thread_id;
    for n in 1..10 {
        client.say_in(&workflow.id, &thread, &n.to_string()).await.unwrap();
    }
    let page = client.thread(&workflow.id, &thread).await.unwrap().items;
    assert_eq!((page.data.len(), page.has_more, page.after), (20, false, None));
    let last = page.data[18].id().to_owned();
    client.say_in(&workflow.id, &thread, "more").await.unwrap();
    let page = client.thread(&workflow.id, &thread).await.unwrap().items;
    let end = Some(page.data[19].id().to_owned());
    assert_eq!((page.data.len(), page.has_more, page.after), (20, true, end));
    client.say_again(&workflow.id, &thread, &last).await.unwrap();
    let page = client.thread(&workflow.id, &thread).await.unwrap().items;
    assert_eq!((page.data.len(), page.has_more, page.after), (20, false, None));
}

#[tokio::test]
async fn failed_and_stopped_turns_can_be_retried() {
    let t = TestService::with_manual_clock().await;
    let broken = t.workflow().graph(graphs::reply("{{ inputs.nothing }}")).published().create().await;
    let client = t.anonymous();
    let failed = client.say(&broken.id, "hi").await.unwrap();
    let (ids, _) = items(&client, &broken, &failed.thread_id).await;
    let retry = client.say_again(&broken.id, &failed.thread_id, &ids[0]).await.unwrap();
    assert_eq!(retry.error, failed.error);
    assert!(retry.error.is_some());
    assert_eq!(retry.thread_id, failed.thread_id, "although no event contains the thread id");
    assert_eq!(texts(&client, &broken, &failed.thread_id).await, ["hi"]);

    let slow = graphs::interrupted(HISTORY, 5.0, "!");
    let slow = t.workflow().graph(slow).published().create().await;
    let (mut first, thread) = running(&t, &slow, "hi").await;
    first.until("user: hi").await;
    t.stop_turn(first.header("x-chat-stream-id").unwrap()).await;
    first.rest().await;
    let (ids, item_texts) = items(&client, &slow, &thread).await;
    assert_eq!(item_texts, ["hi", "user: hi; "]);
    let retry = client.say_again(&slow.id, &thread, &ids[0]);
    let turn = t.while_time_passes_in(std::time::Duration::from_millis(100), retry).await.unwrap();
    assert_eq!(turn.text, "user: hi; !", "the model does not see the stop either");
    assert_eq!(texts(&client, &slow, &thread).await, ["hi", "user: hi; !"]);
}
