//! A user message's files in each dialect's requests.

use models::{Dialect, FileKind, FileRef, Image, Message, ModelRequest, NoPieces, Part, Role};
use serde_json::{Value, json};

use crate::dialects::whole;
use crate::endpoint::{DONE, Endpoint, ends, request, says};

fn image() -> Part {
    Part::Image(Image {
        name: "a.png".into(),
        mime_type: "image/png".into(),
        data: b"abcd".as_slice().into(),
        width: 3,
        height: 2,
        colour: "red".into(),
    })
}

fn file() -> FileRef {
    FileRef {
        kind: FileKind::Image,
        attachment: "atc_1".into(),
        name: "a.png".into(),
        mime_type: "image/png".into(),
        size: 4,
        digest: "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589".into(),
    }
}

fn with_parts(role: Role, content: &str) -> Message {
    let parts = vec![Part::Text("b.txt\n\nIt is late.".into()), Part::Text(" ".into()), image()];
    Message { files: vec![file()], parts, ..Message::text(role, content) }
}

/// The request body for these messages.
async fn sent(dialect: Dialect, messages: Vec<Message>) -> Value {
    let answer = match dialect {
        Dialect::OpenAi => format!("{}{}{DONE}", says("hi"), ends("stop")),
        _ => whole(dialect),
    };
    let endpoint = Endpoint::streaming(&answer).await;
    let sent = ModelRequest { messages, ..request() };
    endpoint.model_in(dialect).call(&sent, &NoPieces).await.unwrap();
    let body = endpoint.request_body();
    assert!(!body.to_string().contains("atc_1"), "a file's description is not sent: {body}");
    body
}

#[tokio::test]
async fn each_dialect_has_its_image_format() {
    let texts = |form: fn(&str) -> Value| ["see", "b.txt\n\nIt is late."].map(form).to_vec();
    let typed = |text: &str| json!({"type": "text", "text": text});
    for (dialect, place, mut expected, image) in [
        (
            Dialect::OpenAi,
            "/messages/0/content",
            texts(typed),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJjZA=="}}),
        ),
        (
            Dialect::Anthropic,
            "/messages/0/content",
            texts(typed),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "YWJjZA=="}}),
        ),
        (
            Dialect::Gemini,
            "/contents/0/parts",
            texts(|text| json!({"text": text})),
            json!({"inlineData": {"mimeType": "image/png", "data": "YWJjZA=="}}),
        ),
    ] {
        expected.push(image);
        let body = sent(dialect, vec![with_parts(Role::User, "see")]).await;
        assert_eq!(body.pointer(place), Some(&Value::Array(expected.clone())), "{dialect:?}");
        // Without text, the message begins with its parts.
        let body = sent(dialect, vec![with_parts(Role::User, "")]).await;
        assert_eq!(body.pointer(place), Some(&json!(expected[1..])), "{dialect:?}");
    }
}

#[tokio::test]
async fn only_user_messages_have_parts() {
    for (_, dialect) in Dialect::ALL {
        let message = |role: Role| with_parts(role, "so");
        let body = sent(
            dialect,
            vec![message(Role::System), Message::text(Role::User, "hi"), message(Role::Assistant)],
        );
        let body = body.await.to_string();
        assert!(!body.contains("YWJjZA") && !body.contains("b.txt"), "{body}");
    }
    let blank = Message { parts: vec![Part::Text("\n".into())], ..Message::text(Role::User, "hi") };
    assert_eq!(sent(Dialect::OpenAi, vec![blank]).await["messages"][0]["content"], "hi");
}

#[test]
fn a_request_is_serialised_with_its_files_and_without_their_bytes() {
    let whole = ModelRequest { messages: vec![with_parts(Role::User, "see")], ..request() };
    let written = serde_json::to_value(&whole).unwrap();
    assert_eq!(
        written["messages"],
        json!([{"role": "user", "content": "see", "files": [{"type": "image", "attachment": "atc_1", "name": "a.png",
                "mime_type": "image/png", "size": 4, "digest": file().digest}]}])
    );
}
