//! Thread changes: titles, deletion, feedback; and unsupported operations.

use integration_tests::{AnswerExt, Client, JSON, TestService, Workflow, chat, events, graphs, thread_of};
use serde_json::{Value, json};
use wire::chat::{FeedbackKind, PageRequest};

async fn titles(client: &Client, workflow: &Workflow) -> Vec<Option<String>> {
    let page = client.threads(&workflow.id, &PageRequest::default()).await.unwrap();
    page.data.into_iter().map(|thread| thread.title).collect()
}

async fn refused(client: &Client, workflow: &Workflow, thread: &str) -> Option<String> {
    let answer = client.thread(&workflow.id, thread).await;
    answer.err().and_then(|error| error.code().map(str::to_owned))
}

#[tokio::test]
async fn a_thread_has_the_title_of_its_first_message_until_it_is_renamed() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let long = format!("\n  Where is {}\nIt is number 7.", "my order ".repeat(20));
    let title = "Where is my order my order my order my order my order my";
    let turn = client.say(&workflow.id, &long).await.unwrap();
    let received: Vec<Value> = turn.events.iter().map(|e| serde_json::to_value(&e.event).unwrap()).collect();
    assert_eq!(received[3]["type"], "thread.updated", "after the user's message and the options");
    assert_eq!(
        (&received[3]["thread"]["title"], &received[0]["thread"]["title"]),
        (&json!(title), &json!(null))
    );
    client.say_in(&workflow.id, &turn.thread_id, "Another line").await.unwrap();
    assert_eq!(titles(&client, &workflow).await, [Some(title.to_owned())]);
    let renamed = client.rename_thread(&workflow.id, &turn.thread_id, "  My\norder\u{0} ").await.unwrap();
    assert_eq!((renamed.title.as_deref(), renamed.items.data.len()), (Some("My order"), 0));
    assert_eq!(titles(&client, &workflow).await, [Some("My order".to_owned())]);
    assert_eq!(client.thread(&workflow.id, &turn.thread_id).await.unwrap().title, renamed.title);
    // One commit more or less would create another row.
    assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
}

#[tokio::test]
async fn a_deleted_thread_is_not_found_by_any_caller() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let kept = client.say(&workflow.id, "kept").await.unwrap();
    let body = chat::create(&workflow, "gone").to_string();
    let cookie = format!("callboard_visitor={}", client.cookie("callboard_visitor").unwrap());
    let headers = [JSON, ("cookie", cookie.as_str()), ("idempotency-key", "k")];
    let mut begun = t.open("POST", "/api/chat", &headers, &body).await;
    let stream = begun.header("x-chat-stream-id").unwrap().to_owned();
    let thread = thread_of(&begun.rest().await);
    let item = client.thread(&workflow.id, &thread).await.unwrap().items.data[0].id().to_owned();
    let delete = chat::ask(&workflow, "threads.delete", json!({"thread_id": thread})).to_string();
    let answer = t.send("POST", "/api/chat", &headers[..2], &delete).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "{}"));
    for _ in 0..2 {
        for client in [&client, &t.anonymous()] {
            assert_eq!(refused(client, &workflow, &thread).await.as_deref(), Some("thread.not_found"));
            let error = client.say_in(&workflow.id, &thread, "more").await.err().unwrap();
            assert_eq!(error.code(), Some("thread.not_found"));
            let error = client.delete_thread(&workflow.id, &thread).await.err().unwrap();
            assert_eq!((error.status(), error.code()), (Some(404), Some("thread.not_found")), "twice");
            let error = client.rename_thread(&workflow.id, &thread, "T").await.err().unwrap();
            assert_eq!(error.code(), Some("thread.not_found"));
            let items = std::slice::from_ref(&item);
            let error = client.feedback(&workflow.id, &thread, items, FeedbackKind::Positive, None).await;
            assert_eq!(error.err().unwrap().code(), Some("thread.not_found"));
            let error = client.resume(&stream, None).await.err().unwrap();
            assert_eq!(error.code(), Some("stream.not_found"));
            let error = client.running_stream(&thread, None).await.err().unwrap();
            assert_eq!(error.code(), Some("thread.not_found"));
        }
        // Repeating the creating request does not return it either.
        let again = t.send("POST", "/api/chat", &headers, &body).await;
        assert_eq!(again.refusal(), "404 thread.not_found");
        assert_eq!(titles(&client, &workflow).await, [Some("kept".to_owned())]);
        t.restart().await;
    }
    // Its position is still known: a client that has just deleted a page's last thread can continue after it.
    let page = PageRequest { after: Some(thread.clone()), ..PageRequest::default() };
    let rest = client.threads(&workflow.id, &page).await.unwrap();
    assert_eq!(rest.data.iter().map(|thread| &thread.id).collect::<Vec<_>>(), [&kept.thread_id]);
    assert_eq!(t.scalar("SELECT count(*) FROM threads WHERE deleted_at IS NOT NULL").await, "1");
}

#[tokio::test]
async fn the_turns_of_a_deleted_thread_are_stopped() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("half", 600.0, "never")).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "hi")).await;
    let begun = first.until("half").await;
    let thread = thread_of(&begun);
    let mut waiting = Vec::new();
    for text in ["one", "two"] {
        let mut answer = t.open_chat(&chat::add(&workflow, &thread, text)).await;
        answer.until("stream_options").await;
        waiting.push(answer);
    }
    let client = t.anonymous();
    t.while_time_passes(client.delete_thread(&workflow.id, &thread)).await.unwrap();
    let ended = "SELECT string_agg(status, ' ') FROM runs";
    assert_eq!(t.scalar(ended).await, "cancelled cancelled cancelled");
    let unstarted = "SELECT count(*) FROM run_steps WHERE run_id <> (SELECT min(id::text)::uuid FROM runs)";
    assert_eq!(t.scalar(unstarted).await, "0", "none of those that waited began");
    // Readers of the stream receive the end.
    assert!(events(&first.rest().await).pop().unwrap()["type"] == "thread.item.done");
    for mut answer in waiting {
        assert_eq!(events(&answer.rest().await).pop().unwrap()["type"], "notice");
    }
}

#[tokio::test]
async fn the_last_feedback_on_each_item_is_kept() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let thread = client.say(&workflow.id, "hi").await.unwrap().thread_id;
    let other = client.say(&workflow.id, "elsewhere").await.unwrap().thread_id;
    let anyone = t.anonymous();
    let ids = async |client: &Client, thread: &str| {
        let items = client.thread(&workflow.id, thread).await.unwrap().items.data;
        items.iter().map(|item| item.id().to_owned()).collect::<Vec<_>>()
    };
    let (mine, away) = (ids(&anyone, &thread).await, ids(&client, &other).await);
    let answer = mine[1].clone();
    let judge = async |client: &Client, items: &[String], kind| {
        let answer = client.feedback(&workflow.id, &thread, items, kind, None).await;
        answer.err().and_then(|error| error.code().map(str::to_owned))
    };
    let twice = [answer.clone(), answer.clone()];
    // The id gives access until the cookie is presented.
    assert_eq!(judge(&anyone, &twice[..1], FeedbackKind::Positive).await, None);
    assert_eq!(judge(&client, &twice, FeedbackKind::Positive).await, None);
    assert_eq!(judge(&client, &mine, FeedbackKind::Negative).await, None);
    let rows = "SELECT string_agg(concat_ws(' ', kind, author_kind, length(author_id),
        (SELECT count(*) FROM thread_items i WHERE i.thread_id = f.thread_id AND i.id = f.item_id)), ', '
        ORDER BY kind, author_kind) FROM item_feedback f";
    assert_eq!(t.scalar(rows).await, "negative visitor 22 1, negative visitor 22 1, positive anyone 0 1");
    // All items or none.
    let before = t.scalar("SELECT count(*) FROM item_feedback").await;
    for bad in [&away[1], "x", "", "msg_00", &answer.replace("msg_", "shcx_")] {
        let items = [answer.clone(), bad.to_owned()];
        let code = judge(&client, &items, FeedbackKind::Positive).await;
        assert_eq!(code.as_deref(), Some("item.not_found"), "{bad}");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM item_feedback").await, before);
    assert_eq!(t.scalar("SELECT count(*) FROM item_feedback WHERE kind = 'positive'").await, "1");
}
