//! All problems in a request are reported at once, each with its pointer and, if there is one, the intended name.

use insta::assert_snapshot;
use integration_tests::{Answer, AnswerExt, JSON, TestService, chat, graphs};
use serde_json::{Value, json};

/// Pointer, code, message and suggestion of every problem.
fn problem_lines(answer: &Answer) -> String {
    let body = answer.value();
    let errors = body["detail"]["errors"].as_array().cloned().unwrap_or_default();
    let text = |error: &Value, member: &str| error[member].as_str().unwrap_or("-").to_owned();
    let line = |error: &Value| {
        let [pointer, code, message, suggestion] =
            ["pointer", "code", "message", "suggestion"].map(|member| text(error, member));
        format!("{pointer} | {code} | {message} | {suggestion}")
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn all_problems_of_a_body_are_reported() {
    let t = TestService::start().await;
    let wrong = json!({"name": "", "handle": "My Desk", "description": 7, "tags": ["ok", 3, ""], "nmae": "Desk",
                       "owner": "me", "a/b": 1});
    let answer = t.post("/api/workflows", &wrong.to_string()).await;
    assert_eq!(answer.refusal(), "422 request.invalid");
    assert_snapshot!(problem_lines(&answer), @r"
    /name | length | must have 1 to 200 characters; it has 0 | -
    /handle | format | is not a valid handle | for example 'my-desk'; use at most 64 lowercase letters, digits and single hyphens; not a UUID
    /description | type | must be a string | -
    /tags/1 | type | must be a string | -
    /tags/2 | length | must have 1 to 64 characters; it has 0 | -
    /nmae | unknown_field | unknown field 'nmae' | did you mean 'name'?
    /owner | unknown_field | unknown field 'owner' | allowed: name, handle, description, tags
    /a~1b | unknown_field | unknown field 'a/b' | allowed: name, handle, description, tags
    ");
    let workflow = t.workflow().without_version().create().await;
    let path = workflow.path("");
    let wrong = json!({"grpah": graphs::reply("x"), "runnable_config": "x", "metadata": [], "notes": 1});
    assert_snapshot!(problem_lines(&t.post(&format!("{path}/versions"), &wrong.to_string()).await), @r"
    /graph | required | is required | -
    /runnable_config | type | must be an object | -
    /metadata | type | must be an object | -
    /notes | type | must be a string | -
    /grpah | unknown_field | unknown field 'grpah' | did you mean 'graph'?
    ");
    let wrong = json!({"requireLogin": true, "require_login": "yes"});
    assert_snapshot!(problem_lines(&t.post(&format!("{path}/publish"), &wrong.to_string()).await), @r"
    /require_login | type | must be true or false | -
    /requireLogin | unknown_field | unknown field 'requireLogin' | did you mean 'require_login'?
    ");
    assert_snapshot!(problem_lines(&t.post("/api/workflows/check", r#"{"graph": 1, "config": {}, "runnable_config": 1}"#).await), @r"
    /runnable_config | type | must be an object | -
    /config | unknown_field | unknown field 'config' | allowed: graph, runnable_config
    ");
    assert_snapshot!(problem_lines(&t.post(&format!("{path}/publish/revoke"), r#"{"reason": "x"}"#).await), @"/reason | unknown_field | unknown field 'reason' | omit it; none is allowed here");
    assert_eq!(t.get(&path).await.value()["is_public"], false);
    t.assert_no_rows("workflow_versions").await;
}

#[tokio::test]
async fn all_problems_of_a_query_and_its_body_are_reported() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let path = workflow.path("");
    let answer = t.get("/api/workflows?include_archived=yes&include_archive=true&page=2").await;
    assert_eq!(answer.refusal(), "422 request.invalid");
    assert_snapshot!(problem_lines(&answer), @r"
    /include_archived | type | must be true or false | -
    /include_archive | unknown_parameter | unknown query parameter 'include_archive' | did you mean 'include_archived'?
    /page | unknown_parameter | unknown query parameter 'page' | allowed: include_archived, limit, cursor
    ");
    // A login requirement in the wrong place must not be ignored.
    let open = t.workflow().create().await;
    let publish = open.path("/publish?require_login=true");
    assert_snapshot!(problem_lines(&t.post(&publish, r#"{"require_login": 1}"#).await), @r"
    /require_login | unknown_parameter | unknown query parameter 'require_login' | omit it; none is allowed here
    /require_login | type | must be true or false | -
    ");
    assert_eq!(t.post(&publish, "").await.refusal(), "422 request.invalid");
    assert_eq!(t.get(&open.path("")).await.value()["is_public"], false);
    for path in [path.clone(), format!("{path}/public"), format!("{path}/versions/1")] {
        assert_eq!(t.get(&format!("{path}?x=1")).await.problems(), ["/x unknown_parameter"], "{path}");
    }
    for path in [format!("{path}/publish/revoke"), format!("{path}/versions"), "/api/workflows".to_owned()] {
        let answer = t.post(&format!("{path}?x=1"), "{}").await;
        assert_eq!(answer.problems().first().map(String::as_str), Some("/x unknown_parameter"), "{path}");
    }
    // Missing resources and missing rights are reported before invalid parameters.
    assert_eq!(t.get("/api/workflows/nobody?x=1").await.refusal(), "404 workflow.not_found");
}

#[tokio::test]
async fn an_unknown_chat_request_type_gets_a_suggestion() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let mut lines = Vec::new();
    for kind in
        ["thread.create", "threads.add_message", "threads.lists", "threads.add_structured", "hello", ""]
    {
        let mut body = chat::create(&workflow, "hi");
        body["type"] = json!(kind);
        let answer = t.chat(&body).await;
        assert_eq!(answer.refusal(), "422 chat.invalid_request");
        lines.push(format!("{kind}: {}", problem_lines(&answer)));
    }
    assert_snapshot!(lines.join("\n"), @r"
    thread.create: /type | unknown | is not a chat request type | did you mean `threads.create`?
    threads.add_message: /type | unknown | is not a chat request type | did you mean `threads.add_user_message`?
    threads.lists: /type | unknown | is not a chat request type | did you mean `threads.list`?
    threads.add_structured: /type | unknown | is not a chat request type | did you mean `threads.add_structured_input`?
    hello: /type | unknown | is not a chat request type | `threads.create` or `threads.add_user_message`
    : /type | unknown | is not a chat request type | `threads.create` or `threads.add_user_message`
    ");
    let mut body = chat::create(&workflow, "hi");
    body["params"]["input"]["content"] = json!([{"text": "hi"}, {"type": 1, "text": "hi"}, {"type": "text"}]);
    assert_snapshot!(problem_lines(&t.chat(&body).await), @r"
    /params/input/content/0/type | required | is required | `input_text` or `input_tag`
    /params/input/content/1/type | type | must be a string | -
    /params/input/content/2/type | unknown | is not a type of message content | `input_text` or `input_tag`
    ");
}

/// A request from someone who has read half of the protocol.
#[tokio::test]
async fn an_incomplete_chat_request_gets_the_missing_fields() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let id = &workflow.id;
    let mut lines = Vec::new();
    for body in [
        json!({"workflow_id": id}),
        json!({"workflow_id": id, "type": "threads.create", "input": "hi"}),
        json!({"workflow_id": id, "type": "threads.create", "params": {"message": "hi"}}),
        json!({"workflow_id": id, "type": "threads.create", "params": {"input": "hi"}}),
        json!({"workflow_id": id, "type": "threads.create", "params": {"input": {"content": "hi"}}}),
        json!({"workflow_id": id, "type": "threads.create", "params": {"input": {"text": "hi"}}}),
        json!({"workflow_id": id, "type": "threads.add_user_message",
               "params": {"thread": "x", "input": {"content": [{"type": "input_text", "txt": "hi"}]}}}),
    ] {
        let answer = t.chat(&body).await;
        assert_eq!(answer.refusal(), "422 chat.invalid_request");
        lines.push(problem_lines(&answer));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    /type | required | is required | `threads.create` or `threads.add_user_message`
    /params | required | is required | {"input": {"content": [{"type": "input_text", "text": "Hello"}]}}
    /params/input | required | is required | {"content": [{"type": "input_text", "text": "Hello"}]}
    /params/input | type | must be an object | {"content": [{"type": "input_text", "text": "Hello"}]}
    /params/input/content | type | must be an array | [{"type": "input_text", "text": "Hello"}]
    /params/input/content | required | is required | [{"type": "input_text", "text": "Hello"}]
    /params/thread_id | required | is required | did you mean `thread_id` by `thread`?
    /params/input/content/0/text | required | is required | did you mean `text` by `txt`?
    "#);
}

#[tokio::test]
async fn a_bare_graph_is_rejected_with_the_expected_member() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let bare = graphs::reply("x").to_string();
    for path in [workflow.path("/versions"), "/api/workflows/check".to_owned()] {
        let expected =
            r#"/graph | required | is required | put the graph inside: {"graph": {"format": "graph/1", …}}"#;
        assert_eq!(problem_lines(&t.post(&path, &bare).await), expected, "{path}");
    }
}

/// `curl -X POST` sends no body and no type; some clients send a type nevertheless, some an empty object.
#[tokio::test]
async fn a_missing_optional_body_equals_an_empty_object() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let publish = workflow.path("/publish");
    let revoke = format!("{publish}/revoke");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let length = ("content-length", "0");
    for path in [&publish, &revoke] {
        for (headers, body) in [
            (&[][..], ""),
            (&[length][..], ""),
            (&[JSON][..], ""),
            (&[JSON, length][..], ""),
            (&[form][..], ""),
            (&[JSON][..], "{}"),
            (&[JSON][..], " \r\n"),
            (&[][..], " \n"),
        ] {
            let answer = t.send("POST", path, headers, body).await;
            assert!(matches!(answer.status, 200 | 201), "{path} {headers:?} {body:?}: {}", answer.text());
        }
        for (headers, body, refusal) in [
            (&[JSON][..], "{", "400 request.invalid_json"),
            (&[JSON][..], "null", "422 request.invalid"),
            (&[JSON][..], "[]", "422 request.invalid"),
            (&[JSON][..], r#"{"x": 1}"#, "422 request.invalid"),
            (&[][..], "{}", "415 request.unsupported_media_type"),
            (&[form][..], "require_login=true", "415 request.unsupported_media_type"),
        ] {
            assert_eq!(
                t.send("POST", path, headers, body).await.refusal(),
                refusal,
                "{path} {headers:?} {body:?}"
            );
        }
    }
}

/// A stop must not fail because of its body.
#[tokio::test]
async fn a_stop_ignores_its_body() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let stream = t.visitor().say(&workflow.id, "hi").await.unwrap().stream_id;
    let path = format!("/api/chat/streams/{stream}/stop");
    for (headers, body) in [
        (&[][..], "".to_owned()),
        (&[JSON][..], "".to_owned()),
        (&[JSON][..], "{}".to_owned()),
        (&[JSON][..], "{".to_owned()),
        (&[("content-type", "text/plain")][..], "stop".to_owned()),
        (&[][..], "x".repeat(100_000)),
    ] {
        let answer = t.send("POST", &path, headers, &body).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, r#"{"status":"completed"}"#),
            "{headers:?}"
        );
    }
    // The connection still works for the next request.
    let raw = t.raw().await;
    let raw = raw.request("POST", &path, &[JSON], r#"{"why": "enough"}"#).await.finish().await;
    assert_eq!(raw.request("GET", "/healthz", &[], "").await.status, 200);
}
