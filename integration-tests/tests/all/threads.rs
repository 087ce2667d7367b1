//! Reading threads: one thread with its items, a visitor's list, item pages.

use insta::assert_snapshot;
use integration_tests::{
    AnswerExt, Client, JSON, TestService, Workflow, chat, graphs, shown_alike, thread_of, tidy_json,
};
use serde_json::{Value, json};
use wire::PublishRequest;
use wire::chat::{Order, PageRequest, ThreadItem};

fn texts(items: &[ThreadItem]) -> Vec<String> {
    items.iter().map(|item| item.as_message().unwrap().1).collect()
}

/// The ids of a visitor's threads, read in pages of `limit`.
async fn listed(client: &Client, workflow: &Workflow, order: Order, limit: u32) -> Vec<String> {
    let mut page = PageRequest { limit: Some(limit), order: Some(order), after: None };
    let mut ids = Vec::new();
    loop {
        let part = client.threads(&workflow.id, &page).await.unwrap();
        assert!(part.data.iter().all(|thread| thread.items.data.is_empty() && !thread.items.has_more));
        let full = u32::try_from(part.data.len()) == Ok(limit);
        assert!(full || !part.has_more, "{part:?}");
        assert_eq!(part.after.is_some(), part.has_more);
        ids.extend(part.data.into_iter().map(|thread| thread.id));
        page.after = part.after;
        if !part.has_more {
            return ids;
        }
    }
}

/// A thread with a turn stopped in the middle: its items are a question, half a reply and a hidden note.
async fn with_a_stopped_turn(t: &TestService) -> (Workflow, String) {
    let workflow =
        t.workflow().graph(graphs::interrupted("so far", 600.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let begun = answer.until("so far").await;
    t.stop_turn(answer.header("x-chat-stream-id").unwrap()).await;
    answer.rest().await;
    (workflow, thread_of(&begun))
}

#[tokio::test]
async fn a_thread_contains_its_items_oldest_first() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "one").await.unwrap().thread_id;
    client.say_in(&workflow.id, &thread, "two").await.unwrap();
    let read = client.thread(&workflow.id, &thread).await.unwrap();
    assert_eq!(texts(&read.items.data), ["one", "You said: one", "two", "You said: two"]);
    let answer = t.chat(&chat::ask(&workflow, "threads.get_by_id", json!({"thread_id": thread}))).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let mut shown = answer.value();
    shown["items"]["data"].as_array_mut().unwrap().truncate(2);
    assert_snapshot!(tidy_json(&shown), @r#"{"created_at":"[time]","id":"thr-1","items":{"data":[{"attachments":[],"content":[{"text":"one","type":"input_text"}],"created_at":"[time]","id":"msg-1","inference_options":{},"thread_id":"thr-1","type":"user_message"},{"content":[{"annotations":[],"text":"You said: one","type":"output_text"}],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"}],"has_more":false},"metadata":{},"status":{"type":"active"},"title":"one"}"#);
}

#[tokio::test]
async fn stored_items_of_a_running_turn_can_be_read() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("half", 600.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let begun = answer.until("half").await;
    let thread = thread_of(&begun);
    let read = t.anonymous().thread(&workflow.id, &thread).await.unwrap();
    assert_eq!(texts(&read.items.data), ["hi"], "a partial answer is not an item yet");
    t.stop_turn(answer.header("x-chat-stream-id").unwrap()).await;
    let read = t.anonymous().thread(&workflow.id, &thread).await.unwrap();
    assert_eq!(texts(&read.items.data), ["hi", "half"]);
}

#[tokio::test]
async fn a_hidden_item_is_not_shown_but_counts_towards_its_page() {
    let t = TestService::with_manual_clock().await;
    let (workflow, thread) = with_a_stopped_turn(&t).await;
    let stored = "SELECT count(*) FROM thread_items WHERE content LIKE '%sdk_hidden_context%'";
    assert_eq!(t.scalar(stored).await, "1");
    let mut more = t.open_chat(&chat::add(&workflow, &thread, "more")).await;
    more.until("so far").await;
    t.stop_turn(more.header("x-chat-stream-id").unwrap()).await;
    more.rest().await;
    let mut sizes = Vec::new();
    let mut params = json!({"thread_id": thread, "limit": 2, "order": "asc"});
    let mut all = Vec::new();
    loop {
        let answer = t.chat(&chat::ask(&workflow, "items.list", params.clone())).await;
        assert!(!answer.text().contains("hidden"), "{}", answer.text());
        let page = answer.value();
        let data = page["data"].as_array().unwrap();
        sizes.push(data.len());
        all.extend(data.iter().map(|item| item["content"][0]["text"].as_str().unwrap().to_owned()));
        match page["after"].as_str() {
            Some(after) => params["after"] = json!(after),
            None => break,
        }
    }
    assert_eq!(sizes, [2, 1, 1], "the note was the third of six items");
    assert_eq!(all, ["hi", "so far", "more", "so far"]);
    let whole = t.chat(&chat::ask(&workflow, "threads.get_by_id", json!({"thread_id": thread}))).await;
    assert!(!whole.text().contains("hidden") && !whole.text().contains("user stopped"), "{}", whole.text());
    assert_eq!(whole.value()["items"]["data"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn items_are_read_page_by_page_in_both_orders() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let thread = client.say(&workflow.id, "0").await.unwrap().thread_id;
    for index in 1..13 {
        client.say_in(&workflow.id, &thread, &index.to_string()).await.unwrap();
    }
    let everything: Vec<String> =
        (0..13).flat_map(|index| [index.to_string(), format!("You said: {index}")]).collect();
    for limit in [1, 4, 13, 26, 100] {
        for order in [Order::Asc, Order::Desc] {
            let mut page = PageRequest { limit: Some(limit), order: Some(order), after: None };
            let mut seen = Vec::new();
            loop {
                let part = client.items(&workflow.id, &thread, &page).await.unwrap();
                assert!(u32::try_from(part.data.len()).unwrap() <= limit);
                let last = part.data.last().map(|item| item.id().to_owned());
                assert_eq!(part.after, last.filter(|_| part.has_more));
                seen.extend(texts(&part.data));
                page.after = part.after;
                if !part.has_more {
                    break;
                }
            }
            if order == Order::Desc {
                seen.reverse();
            }
            assert_eq!(seen, everything, "{limit} {order:?}");
        }
    }
    let usual = client.items(&workflow.id, &thread, &PageRequest::default()).await.unwrap();
    assert_eq!((usual.data.len(), usual.has_more), (20, true));
    assert_eq!(usual.data[0].as_message().unwrap().1, "You said: 12", "the newest first");
    let first = client.thread(&workflow.id, &thread).await.unwrap().items;
    assert_eq!((first.data.len(), first.has_more, texts(&first.data)[0].as_str()), (20, true, "0"));
    // Any item that the client has is a valid cursor.
    let after = Some(first.data[3].id().to_owned());
    let page = PageRequest { limit: Some(2), order: Some(Order::Asc), after };
    assert_eq!(texts(&client.items(&workflow.id, &thread, &page).await.unwrap().data), ["2", "You said: 2"]);
}

#[tokio::test]
async fn a_visitor_lists_their_own_threads_with_the_workflow() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let elsewhere = t.workflow().echo().published().create().await;
    let (client, other) = (t.visitor(), t.visitor());
    assert!(listed(&client, &workflow, Order::Desc, 5).await.is_empty(), "no threads yet");
    let mut mine = Vec::new();
    for index in 0..7 {
        mine.push(client.say(&workflow.id, &index.to_string()).await.unwrap().thread_id);
        other.say(&workflow.id, "not yours").await.unwrap();
    }
    let away = client.say(&elsewhere.id, "there").await.unwrap().thread_id;
    for limit in [1, 3, 7, 50] {
        assert_eq!(listed(&client, &workflow, Order::Asc, limit).await, mine);
        let newest_first: Vec<String> = mine.iter().rev().cloned().collect();
        assert_eq!(listed(&client, &workflow, Order::Desc, limit).await, newest_first);
    }
    assert_eq!(listed(&client, &elsewhere, Order::Desc, 5).await, std::slice::from_ref(&away));
    // Created at the same moment.
    t.execute("UPDATE threads SET created_at = '2026-01-01T00:00:00Z'").await;
    for order in [Order::Asc, Order::Desc] {
        let mut all = listed(&client, &workflow, order, 2).await;
        all.sort();
        let mut expected = mine.clone();
        expected.sort();
        assert_eq!(all, expected);
    }
    // A thread's id gives access, but does not identify the visitor.
    assert!(listed(&t.anonymous(), &workflow, Order::Desc, 5).await.is_empty());
    let theirs = other.threads(&workflow.id, &PageRequest::default()).await.unwrap().data[0].id.clone();
    for after in [theirs, away, "thr_".to_owned() + &"0".repeat(32), "x".to_owned()] {
        let page = PageRequest { after: Some(after.clone()), ..PageRequest::default() };
        let refused = client.threads(&workflow.id, &page).await.err().unwrap();
        assert_eq!((refused.status(), refused.code()), (Some(404), Some("thread.not_found")), "{after}");
    }
}

/// Each request that names a thread, for this thread and one of its items.
fn requests(workflow: &Workflow, thread: &str, item: &str) -> Vec<Value> {
    vec![
        chat::ask(workflow, "threads.get_by_id", json!({"thread_id": thread})),
        chat::ask(workflow, "items.list", json!({"thread_id": thread})),
        chat::ask(workflow, "threads.update", json!({"thread_id": thread, "title": "T"})),
        chat::ask(
            workflow,
            "items.feedback",
            json!({"thread_id": thread, "item_ids": [item], "kind": "positive"}),
        ),
        // Last, because the thread cannot be used afterwards.
        chat::ask(workflow, "threads.delete", json!({"thread_id": thread})),
    ]
}

async fn send_as(t: &TestService, client: Option<&Client>, body: &Value) -> integration_tests::Answer {
    let cookie = client.and_then(|client| client.cookie("callboard_visitor"));
    let cookie = cookie.map(|value| format!("callboard_visitor={value}"));
    let mut headers = vec![JSON];
    headers.extend(cookie.as_deref().map(|cookie| ("cookie", cookie)));
    t.send("POST", "/api/chat", &headers, body.to_string()).await
}

async fn first_item(client: &Client, workflow: &Workflow, thread: &str) -> String {
    client.thread(&workflow.id, thread).await.unwrap().items.data[0].id().to_owned()
}

#[tokio::test]
async fn a_thread_belongs_to_its_visitor_or_without_one_to_its_id_holders() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let elsewhere = t.workflow().echo().published().create().await;
    let (owner, stranger) = (t.visitor(), t.visitor());
    stranger.say(&workflow.id, "hello").await.unwrap();
    for caller in [&owner, &t.anonymous()] {
        let thread = caller.say(&workflow.id, "hi").await.unwrap().thread_id;
        let item = first_item(caller, &workflow, &thread).await;
        for body in requests(&workflow, &thread, &item) {
            let foreign = send_as(&t, Some(&stranger), &body).await;
            assert_eq!(foreign.refusal(), "404 thread.not_found", "{body}");
            assert_eq!(send_as(&t, Some(caller), &body).await.status, 200, "{body}");
        }
    }
    let thread = owner.say(&workflow.id, "hi").await.unwrap().thread_id;
    let item = first_item(&owner, &workflow, &thread).await;
    let nowhere = "thr_".to_owned() + &"0".repeat(32);
    let mut refused = Vec::new();
    for name in ["", "x", "thr_", &nowhere, &thread.to_uppercase(), &thread[4..]] {
        for body in requests(&workflow, name, &item) {
            refused.push(send_as(&t, Some(&owner), &body).await);
        }
    }
    for body in requests(&elsewhere, &thread, &item) {
        refused.push(send_as(&t, Some(&owner), &body).await);
    }
    assert_snapshot!(shown_alike(&refused), @r#"
    404
    content-type: application/json
    {"detail":{"message":"Thread not found.","code":"thread.not_found"}}
    "#);
    assert_eq!(owner.thread(&workflow.id, &thread).await.unwrap().title.as_deref(), Some("hi"));
}

#[tokio::test]
async fn the_chat_rules_apply_to_every_thread_request() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let owner = t.visitor();
    let thread = owner.say(&workflow.id, "hi").await.unwrap().thread_id;
    let item = first_item(&owner, &workflow, &thread).await;
    let mut bodies = requests(&workflow, &thread, &item);
    bodies.push(chat::ask(&workflow, "threads.list", json!({})));
    let each = async |expected: &str| {
        for body in &bodies {
            assert_eq!(send_as(&t, Some(&owner), body).await.refusal(), expected, "{body}");
        }
    };
    let cookie = format!("callboard_visitor={}", owner.cookie("callboard_visitor").unwrap());
    for body in &bodies {
        let body = body.to_string();
        let send =
            async |headers: &[(&str, &str)]| t.send("POST", "/api/chat", headers, &body).await.refusal();
        let foreign = ("origin", "https://evil.example");
        assert_eq!(send(&[JSON, ("cookie", &cookie), foreign]).await, "403 auth.origin_mismatch");
        let form = ("content-type", "text/plain");
        assert_eq!(send(&[form, ("cookie", &cookie)]).await, "415 request.unsupported_media_type");
        assert_eq!(send(&[JSON, ("authorization", "Bearer x")]).await, "401 chat.session_invalid");
    }
    t.client().publish(&workflow.id, &PublishRequest { require_login: Some(true) }).await.unwrap();
    t.noticed().await;
    each("401 chat.login_required").await;
    t.client().unpublish(&workflow.id).await.unwrap();
    t.noticed().await;
    each("403 chat.not_published").await;
    t.client().archive(&workflow.id).await.unwrap();
    t.noticed().await;
    each("404 workflow.not_found").await;
}

#[tokio::test]
async fn all_problems_of_a_page_request_are_reported() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let params = json!({"limit": -3, "order": "up", "after": 7});
    let answer = t.chat(&chat::ask(&workflow, "items.list", params)).await;
    assert_eq!(answer.refusal(), "422 chat.invalid_request");
    assert_eq!(
        answer.problems(),
        ["/params/thread_id required", "/params/limit range", "/params/order unknown", "/params/after type"]
    );
    let thread = t.visitor().say(&workflow.id, "hi").await.unwrap().thread_id;
    let params = json!({"thread_id": thread, "after": "nonsense"});
    let answer = t.chat(&chat::ask(&workflow, "items.list", params)).await;
    assert_eq!(answer.problems(), ["/params/after format"]);
    // Reading needs no version, creates no visitor and ignores keys.
    let empty = t.workflow().without_version().published().create().await;
    let body = chat::ask(&empty, "threads.list", json!({})).to_string();
    let answer = t.send("POST", "/api/chat", &[JSON, ("idempotency-key", "not a key")], &body).await;
    assert_eq!((answer.status, answer.header("set-cookie")), (200, None));
    assert_eq!(answer.text(), r#"{"data":[],"has_more":false}"#);
}
