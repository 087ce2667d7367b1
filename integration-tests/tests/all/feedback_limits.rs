//! Limits on the feedback in one request.

use client::{Client, ClientError};
use integration_tests::{TestService, Workflow};
use wire::chat::FeedbackKind::{self, Negative, Positive};

use crate::visitor_data::{add_items, digits};

/// The ids of a thread's items.
async fn items(t: &TestService, thread: &str) -> Vec<String> {
    let ids = format!(
        "SELECT string_agg('msg_' || encode(id, 'hex'), ' ' ORDER BY id) FROM thread_items WHERE thread_id = '{}'",
        digits(thread)
    );
    t.scalar(&ids).await.split(' ').map(str::to_owned).collect()
}

/// A visitor with a thread.
async fn visitor(t: &TestService) -> (Client, Workflow, String) {
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let thread = client.say(&workflow.id, "hi").await.unwrap().thread_id;
    (client, workflow, thread)
}

#[tokio::test]
async fn a_comment_of_two_thousand_characters_is_stored_completely() {
    let t = TestService::start().await;
    let (client, workflow, thread) = visitor(&t).await;
    let items = items(&t, &thread).await;
    let comment = "ä".repeat(2_000);
    client.feedback(&workflow.id, &thread, &items[1..], Negative, Some(&comment)).await.unwrap();
    assert_eq!(t.scalar("SELECT comment FROM item_feedback").await, comment);
}

#[tokio::test]
async fn a_request_rates_at_most_a_hundred_items() {
    let t = TestService::start().await;
    let (client, workflow, thread) = visitor(&t).await;
    add_items(&t, &thread, 99, "false").await;
    let items = items(&t, &thread).await;
    assert_eq!(items.len(), 101);
    let rate = async |items: &[String], kind: FeedbackKind| {
        client.feedback(&workflow.id, &thread, items, kind, None).await
    };
    let stored =
        async || t.scalar("SELECT concat_ws(' ', count(*), min(kind), max(kind)) FROM item_feedback").await;
    let refused: ClientError = rate(&items, Positive).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(422), Some("chat.invalid_request")));
    t.assert_no_rows("item_feedback").await;
    rate(&items[..100], Positive).await.unwrap();
    assert_eq!(stored().await, "100 positive positive");
    // The latest rating of each item counts, one row each.
    rate(&items[..100], Negative).await.unwrap();
    rate(&items[100..], Positive).await.unwrap();
    assert_eq!(stored().await, "101 negative positive");
    assert_eq!(t.scalar("SELECT count(*) FROM feedback_turns").await, "1", "one copy of the turn");
}
