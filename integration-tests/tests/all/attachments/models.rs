//! Attachments as models receive them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{Endpoint, TestService, graphs};
use serde_json::{Value, json};

use super::{answer_text, id_of, message, red, send_message, uploaded};

fn model_graph(model: &str) -> Value {
    let ask = json!({"name": "answer", "type": "llm", "model": model, "messages": "{{ messages }}", "stream": true});
    graphs::chain(&[ask], None)
}

/// A short WAV file.
fn sound() -> Vec<u8> {
    let mut bytes =
        b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x08\0\0\0"
            .to_vec();
    bytes.extend([0; 8]);
    bytes
}

#[tokio::test]
async fn the_practice_model_names_colour_and_size() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(model_graph("practice/assistant")).published().create().await;
    let image = id_of(&uploaded(&t, &workflow, "flag.png", &red()).await);
    let (thread, events) =
        send_message(&t, &message(&workflow, None, "What is in the picture?", &[&image])).await;
    let answer = answer_text(&events);
    for word in ["flag.png", "red", "64", "48"] {
        assert!(answer.contains(word), "{answer}");
    }
    let (_, later) =
        send_message(&t, &message(&workflow, Some(&thread), "Which colour was the picture?", &[])).await;
    assert!(answer_text(&later).contains("red"), "{}", answer_text(&later));
    let text = id_of(&uploaded(&t, &workflow, "order.txt", b"Order 7 left on Monday.").await);
    let (_, read) =
        send_message(&t, &message(&workflow, Some(&thread), "When did order 7 leave?", &[&text])).await;
    assert!(answer_text(&read).contains("Monday"), "{}", answer_text(&read));
}

#[tokio::test]
async fn an_endpoint_receives_images_and_texts() {
    let endpoint = Endpoint::quick().await;
    let t = endpoint.service().await;
    let workflow = t.workflow().graph(model_graph("openai/test")).published().create().await;
    let image = id_of(&uploaded(&t, &workflow, "flag.png", &red()).await);
    let text = id_of(&uploaded(&t, &workflow, "notes.md", b"# Notes").await);
    send_message(&t, &message(&workflow, None, "Look", &[&image, &text])).await;
    let request = endpoint.requests().await.pop().unwrap();
    let url = format!("data:image/png;base64,{}", STANDARD.encode(red()));
    let expected = json!([{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": url}},
                          {"type": "text", "text": "notes.md\n\n# Notes"}]);
    assert_eq!(request["messages"][0]["content"], expected);
    let journal = t.scalar("SELECT string_agg(coalesce(result, ''), '') FROM run_steps").await;
    assert!(!journal.contains("base64"), "bytes stay out of the journal");
}

#[tokio::test]
async fn a_notice_names_each_file_the_model_cannot_read() {
    let endpoint = Endpoint::quick().await;
    let t = endpoint.service().await;
    let ask = |name: &str| json!({"name": name, "type": "llm", "model": "openai/test", "messages": "{{ messages }}"});
    let say = json!({"name": "say", "type": "reply", "text": "{{ results.second.unseen | tojson }}"});
    let graph = graphs::chain(&[ask("first"), ask("second"), say], None);
    let workflow = t.workflow().graph(graph).published().create().await;
    let sound = id_of(&uploaded(&t, &workflow, "voice.wav", &sound()).await);
    let broken = id_of(&uploaded(&t, &workflow, "plan.pdf", b"%PDF-1.7\nbroken").await);
    let (_, events) = send_message(&t, &message(&workflow, None, "Look", &[&sound, &broken])).await;
    let unseen: Value = serde_json::from_str(&answer_text(&events)).unwrap();
    let expected = json!([{"attachment": sound, "name": "voice.wav", "reason": "type"},
                          {"attachment": broken, "name": "plan.pdf", "reason": "damaged"}]);
    assert_eq!(unseen, expected);
    let notices: Vec<&Value> = events.iter().filter(|event| event["type"] == "notice").collect();
    assert_eq!(notices.len(), 2, "one for each attachment and turn: {notices:?}");
    assert!(
        notices[0]["message"].as_str().unwrap().contains("voice.wav") && notices[0]["level"] == "warning"
    );
    let content = endpoint.requests().await[0]["messages"][0]["content"].clone();
    assert_eq!(content[1]["text"], "[voice.wav: not shown]");
    assert_eq!(content[2]["text"], "[plan.pdf: not shown]");
}

#[tokio::test]
async fn documents_are_read_from_attachments_of_the_same_thread() {
    let t = TestService::start().await;
    let read = json!({"name": "text", "type": "for_each", "items": "{{ inputs.attachments }}",
                      "body": {"type": "document_read", "attachment": "{{ item.id }}"}});
    let say = json!({"name": "say", "type": "reply", "text": "{{ results.text['items'] | tojson }}"});
    let workflow = t.workflow().graph(graphs::chain(&[read, say], None)).published().create().await;
    let text = id_of(&uploaded(&t, &workflow, "a.csv", b"a,b\n1,2\n").await);
    let (_, events) = send_message(&t, &message(&workflow, None, "", &[&text])).await;
    let documents: Value = serde_json::from_str(&answer_text(&events)).unwrap();
    assert_eq!(documents[0], json!({"text": "a,b\n1,2\n", "name": "a.csv"}), "{documents}");
    // The attachment's id, used from another thread.
    let read = json!({"name": "text", "type": "document_read", "attachment": "{{ inputs.message }}"});
    let spy = t.workflow().graph(graphs::chain(&[read], None)).published().create().await;
    let answer = t.chat(&message(&spy, None, &text, &[])).await;
    let error = self::events(&answer).pop().unwrap();
    assert_eq!(
        (&error["type"], &error["error_code"]),
        (&json!("error"), &json!("attachment.not_found")),
        "{error}"
    );
}

fn events(answer: &integration_tests::Answer) -> Vec<Value> {
    integration_tests::events(&answer.text())
}
