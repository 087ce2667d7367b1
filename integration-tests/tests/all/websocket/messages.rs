//! Valid messages over a socket, and invalid ones.

use integration_tests::{Socket, TestService};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// A message without its time, which is checked.
fn timeless(mut message: Value) -> Value {
    let at = message.as_object_mut().unwrap().remove("at").unwrap();
    assert!(at.as_str().unwrap().ends_with('Z'), "{at}");
    message
}

async fn answer(socket: &mut Socket, message: Message) -> Value {
    socket.send(message).await.unwrap();
    timeless(socket.next().await)
}

#[tokio::test]
async fn a_pong_repeats_the_request_id_of_its_ping() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    let pong = answer(&mut socket, Message::text(r#"{"type": "ping", "request_id": "é\"1"}"#)).await;
    let expected = json!({"type": "pong", "run_id": null, "seq": 0, "payload": {}, "request_id": "é\"1"});
    assert_eq!(pong, expected);
    let pong = answer(&mut socket, Message::text(r#"{"type": "ping"}"#)).await;
    assert_eq!(pong, json!({"type": "pong", "run_id": null, "seq": 0, "payload": {}}));
    // In several frames, with another message's frames in between.
    socket.send_part(br#"{"type": "pi"#, true, false).await.unwrap();
    socket.send(Message::Ping("x".into())).await.unwrap();
    socket.send_part(b"", false, false).await.unwrap();
    socket.send_part(br#"ng", "request_id": "parts"}"#, false, true).await.unwrap();
    assert_eq!(socket.next().await["request_id"], "parts");
    // Many at once all get responses, in order.
    for number in 0..200 {
        socket.say(&json!({"type": "ping", "request_id": number.to_string()})).await;
    }
    for number in 0..200 {
        assert_eq!(socket.next().await["request_id"], number.to_string());
    }
    socket.close().await;
}

#[tokio::test]
async fn invalid_messages_are_rejected_and_the_socket_stays_open() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (text, code, problems) in [
        ("", "request.invalid_json", vec![]),
        ("hello", "request.invalid_json", vec![]),
        (r#"{"type":"ping""#, "request.invalid_json", vec![]),
        (deep.as_str(), "request.invalid_json", vec![]),
        ("[]", "request.invalid", vec![""]),
        ("{}", "request.invalid", vec!["/type"]),
        (r#"{"type":null,"request_id":"r"}"#, "request.invalid", vec!["/type"]),
        (r#"{"type":"shout"}"#, "ws.type_unknown", vec![]),
        (r#"{"type":"ping","more":1,"request_id":"r"}"#, "request.invalid", vec!["/more"]),
        (r#"{"type":"subscribe"}"#, "request.invalid", vec!["/run_id"]),
        (r#"{"type":"subscribe","run_id":"x","after_seq":"1"}"#, "request.invalid", vec!["/after_seq"]),
        (r#"{"type":"subscribe","run_id":"x"}"#, "run.not_found", vec![]),
        (r#"{"type":"cancel","run_id":"01890000-0000-7000-8000-000000000000"}"#, "run.not_found", vec![]),
        (r#"{"type":"train_workflow","graph_config":{},"inputs":{}}"#, "request.invalid", vec!["/training"]),
        (r#"{"type":"evaluate_workflow","request_id":"r"}"#, "request.invalid", vec!["/evaluation"]),
        (r#"{"type":"run_workflow","inputs":[]}"#, "request.invalid", vec!["/inputs"]),
    ] {
        let response = answer(&mut socket, Message::text(text)).await;
        assert_eq!((&response["type"], &response["seq"]), (&json!("error"), &json!(0)));
        // A rejected control names its run.
        let sent: Value = serde_json::from_str(text).unwrap_or_default();
        let run = if sent["type"] == "cancel" { &sent["run_id"] } else { &Value::Null };
        assert_eq!(&response["run_id"], run, "{text}");
        let payload = &response["payload"];
        assert_eq!(payload["code"], code, "{text}");
        assert!(payload["message"].as_str().is_some_and(|message| message.len() > 10), "{text}");
        let pointers: Vec<&str> = payload["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["pointer"].as_str().unwrap())
            .collect();
        assert_eq!(pointers, problems, "{text}");
        assert_eq!(response.get("request_id").is_some(), text.contains("request_id"), "{text}");
    }
    let binary = answer(&mut socket, Message::binary(b"\x00\x01".as_slice())).await;
    assert_eq!(binary["payload"]["code"], "ws.binary_unsupported");
    assert!(socket.settle().await.is_empty());
    socket.close().await;
}
