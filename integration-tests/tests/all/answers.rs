//! The graph's view of a thread, and the use of its output.

use std::time::Duration;

use insta::assert_snapshot;
use integration_tests::{TestService, Workflow, chat, events, graphs, last_event, pause, thread_of};
use serde_json::{Value, json};

pub(crate) async fn send_message(t: &TestService, workflow: &Workflow, text: &str) -> String {
    let mut answer = t.open_chat(&chat::create(workflow, text)).await.expect(200);
    answer.rest().await
}

fn kinds(body: &str) -> Vec<String> {
    events(body).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_users_input_is_stored_in_the_item_and_passed_to_the_graph() {
    let t = TestService::start().await;
    let text = "{{ inputs.message }}|{{ inputs.quoted_text }}|{{ inputs.inference_options.model }}|\
                {{ inputs.metadata.workflow_name }}|{{ inputs.attachments|length }}|{{ inputs.thread_id }}|\
                {{ run.trigger }}|{{ config.tone }}";
    let workflow =
        t.workflow().graph(graphs::reply(text)).config(json!({"tone": "dry"})).published().create().await;
    let mut body = chat::create(&workflow, "Ask ");
    body["metadata"] = json!({"workflow_id": workflow.id, "workflow_name": "Triage"});
    let input = &mut body["params"]["input"];
    input["content"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "input_tag", "id": "u1", "text": "ada", "group": "people"}));
    input["quoted_text"] = json!("earlier");
    input["inference_options"] = json!({"model": "small", "tool_choice": {"id": "search"}});
    let answer = t.open_chat(&body).await.rest().await;
    let user = &events(&answer)[1]["item"];
    assert_snapshot!(user["content"], @r#"[{"text":"Ask ","type":"input_text"},{"data":{},"group":"people","id":"u1","interactive":false,"text":"ada","type":"input_tag"}]"#);
    assert_eq!(user["quoted_text"], "earlier");
    assert_eq!(user["inference_options"], json!({"model": "small", "tool_choice": {"id": "search"}}));
    let thread = user["thread_id"].as_str().unwrap();
    let reply = last_event(&answer)["item"]["content"][0]["text"].clone();
    assert_eq!(reply, format!("Ask @ada|earlier|small|Triage|0|{thread}|chat|dry"));
}

#[tokio::test]
async fn the_history_contains_the_whole_thread_and_ends_with_the_current_turn() {
    let t = TestService::start().await;
    let text = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";
    let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
    let client = t.visitor();
    let first = client.say(&workflow.id, "one").await.unwrap();
    assert_snapshot!(first.text, @"user: one");
    let second = client.say_in(&workflow.id, &first.thread_id, "two").await.unwrap();
    assert_eq!(second.text, "user: one\nassistant: user: one\n\nuser: two\n");
}

/// Three messages at once: the third reply's graph knows which reply belongs to which message.
#[tokio::test]
async fn a_message_and_its_answer_are_adjacent_in_the_history() {
    let t = TestService::start().await;
    let text = "{% for m in messages %}{{ m.content }},{% endfor %}";
    let say = json!({"name": "say", "type": "reply",
                      "text": format!("{{% if inputs.message == 'three' %}}{text}{{% else %}}to {{{{ inputs.message }}}}{{% endif %}}")});
    let wait = json!({"name": "wait", "type": "delay", "seconds": 0.3});
    let graph = graphs::chain(&[wait, say], None);
    let workflow = t.workflow().graph(graph).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "one")).await;
    let thread = thread_of(&first.until("stream_options").await);
    let _second = t.open_chat(&chat::add(&workflow, &thread, "two")).await;
    let mut third = t.open_chat(&chat::add(&workflow, &thread, "three")).await;
    let answer = third.rest().await;
    assert_eq!(last_event(&answer)["item"]["content"][0]["text"], "one,to one,two,to two,three,");
}

#[tokio::test]
async fn quoted_text_is_in_the_history_of_its_own_turn_only() {
    let t = TestService::start().await;
    let text = "{% for m in messages %}{{ m.role }}: {{ m.content }}|{% endfor %}";
    let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
    let mut body = chat::create(&workflow, "why?");
    body["params"]["input"]["quoted_text"] = json!("It rains.");
    let first = t.open_chat(&body).await.rest().await;
    let thread = thread_of(&first);
    assert_eq!(
        last_event(&first)["item"]["content"][0]["text"],
        "user: why?\n\nThe user is referring to this in particular:\nIt rains.|"
    );
    let second = t.open_chat(&chat::add(&workflow, &thread, "and now?")).await.rest().await;
    let history = last_event(&second)["item"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(history.starts_with("user: why?|") && history.ends_with("user: and now?|"), "{history}");
}

#[tokio::test]
async fn queued_messages_are_not_in_the_history_of_earlier_turns() {
    let t = TestService::with_manual_clock().await;
    let text = "[{% for m in messages %}{{ m.content }};{% endfor %}]";
    let workflow = t.workflow().graph(graphs::delayed(1.0, text)).published().create().await;
    let first = t.open_chat(&chat::create(&workflow, "a")).await;
    let mut first = first;
    let thread =
        events(&first.until("stream_options").await)[1]["item"]["thread_id"].as_str().unwrap().to_owned();
    let mut others = Vec::new();
    for text in ["b", "c"] {
        others.push(t.open_chat(&chat::add(&workflow, &thread, text)).await);
    }
    let answers = t
        .while_time_passes(async {
            let mut answers = vec![first.rest().await];
            for other in &mut others {
                answers.push(other.rest().await);
            }
            answers
        })
        .await;
    let texts: Vec<String> =
        answers.iter().map(|body| last_event(body)["item"]["content"][0]["text"].to_string()).collect();
    assert_eq!(texts, [r#""[a;]""#, r#""[a;[a;];b;]""#, r#""[a;[a;];b;[a;[a;];b;];c;]""#]);
}

#[tokio::test]
async fn the_output_is_the_reply_when_no_node_replies() {
    let t = TestService::start().await;
    let think = json!({"name": "think", "type": "template", "template": "thought of {{ inputs.message }}"});
    for output in
        [json!({"reply": "{{ results.think.text }}", "other": 1}), json!("{{ results.think.text }}")]
    {
        let graph = graphs::chain(std::slice::from_ref(&think), Some(output));
        let workflow = t.workflow().graph(graph).published().create().await;
        let body = send_message(&t, &workflow, "it").await;
        assert_eq!(kinds(&body)[..3], ["thread.created", "thread.item.done", "stream_options"]);
        assert_eq!(last_event(&body)["item"]["content"][0]["text"], "thought of it");
    }
    // The text of a node counts, whatever the output is.
    let graph = graphs::chain(
        &[json!({"name": "say", "type": "reply", "text": "said"})],
        Some(json!({"reply": "output"})),
    );
    let workflow = t.workflow().graph(graph).published().create().await;
    assert_eq!(last_event(&send_message(&t, &workflow, "it").await)["item"]["content"][0]["text"], "said");
}

#[tokio::test]
async fn a_workflow_without_a_reply_ends_with_an_error_event() {
    let t = TestService::start().await;
    let think = json!({"name": "think", "type": "template", "template": "x"});
    for (output, count) in
        [(None, 1), (Some(json!({"other": 1})), 2), (Some(json!(" ")), 3), (Some(json!({"reply": 7})), 4)]
    {
        let graph = graphs::chain(std::slice::from_ref(&think), output);
        let workflow = t.workflow().graph(graph).published().create().await;
        let body = send_message(&t, &workflow, "hi").await;
        assert_eq!(
            last_event(&body),
            json!({"type": "error", "code": "custom", "error_code": "chat.no_reply",
            "message": "The workflow ended without a reply.", "allow_retry": false})
        );
        let failed =
            "SELECT count(*) FROM runs WHERE status = 'failed' AND error::json->>'code' = 'chat.no_reply'";
        assert_eq!(t.scalar(failed).await, count.to_string());
        assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, count.to_string());
    }
}

#[tokio::test]
async fn a_transient_failure_allows_a_retry() {
    let t = TestService::start().await;
    let slow = json!({"name": "slow", "type": "delay", "seconds": 60, "timeout_seconds": 0.05});
    let workflow = t.workflow().graph(graphs::chain(&[slow], None)).published().create().await;
    let failure = last_event(&send_message(&t, &workflow, "hi").await);
    assert_eq!((&failure["error_code"], &failure["allow_retry"]), (&json!("node.timeout"), &json!(true)));
}

#[tokio::test]
async fn a_failing_node_ends_the_turn_with_an_error_event() {
    let t = TestService::start().await;
    let nodes = [
        json!({"name": "first", "type": "reply", "text": "so far "}),
        json!({"name": "broken", "type": "template", "template": "{{ inputs.message.no.such.member }}"}),
        json!({"name": "never", "type": "reply", "text": "never"}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let body = send_message(&t, &workflow, "hi").await;
    assert_snapshot!(last_event(&body), @r#"{"allow_retry":false,"code":"custom","error_code":"node.failed","message":"A step of the workflow failed.","type":"error"}"#);
    assert!(!body.contains("undefined"), "internal details do not reach a client: {body}");
    let error: Value =
        serde_json::from_str(&t.scalar("SELECT error FROM runs WHERE status = 'failed'").await).unwrap();
    assert_eq!((&error["code"], &error["node"]), (&json!("node.failed"), &json!("broken")));
    let steps = "SELECT string_agg(node || ' ' || status, ', ' ORDER BY step) FROM run_steps";
    assert_eq!(t.scalar(steps).await, "first succeeded, broken failed");
    // The next message is handled as if nothing had happened.
    let thread = thread_of(&body);
    let again = t.open_chat(&chat::add(&workflow, &thread, "again")).await.rest().await;
    assert_eq!(last_event(&again)["error_code"], "node.failed");
}

#[tokio::test]
async fn an_endless_loop_ends_at_the_recursion_limit() {
    let t = TestService::start().await;
    let graph = json!({"format": "graph/1",
        "nodes": [{"name": "round", "type": "template", "template": "x"}],
        "edges": [{"from": "START", "to": "round"},
                  {"from": "round", "cases": [{"when": "false", "to": "END"}], "else": "round"}]});
    let workflow = t.workflow().graph(graph).published().create().await;
    let failure = last_event(&send_message(&t, &workflow, "hi").await);
    assert_eq!(failure["error_code"], "run.recursion_limit");
    assert_eq!(failure["allow_retry"], false, "a retry would reach the same limit");
    assert_eq!(t.scalar("SELECT count(*) FROM run_steps").await, "50");
}

#[tokio::test]
async fn a_delay_lasts_for_its_configured_seconds() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("before ", 9.0, "after")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    answer.until("before ").await;
    t.until_scalar("the delay to begin", "SELECT count(*) FROM run_steps WHERE node = 'wait'", "1").await;
    t.advance(Duration::from_secs(8));
    pause(100).await;
    assert_eq!(t.scalar("SELECT status FROM runs").await, "running");
    t.advance(Duration::from_secs(1));
    let body = t.while_time_passes(answer.rest()).await;
    assert!(body.contains("before after"), "{body}");
}

#[tokio::test]
async fn a_turn_runs_the_latest_version_at_its_start() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(0.2, "first")).published().create().await;
    let mut running = t.open_chat(&chat::create(&workflow, "hi")).await;
    let version = json!({"graph": graphs::reply("second")}).to_string();
    assert_eq!(t.post(&workflow.path("/versions"), &version).await.status, 201);
    assert_eq!(last_event(&send_message(&t, &workflow, "hi").await)["item"]["content"][0]["text"], "second");
    assert_eq!(last_event(&running.rest().await)["item"]["content"][0]["text"], "first");
}
