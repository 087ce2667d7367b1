//! `practice/<skill>`: behavior on written instructions. The tables are those in `docs/PRACTICE_MODEL.md`.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kernel::{ManualClock, SystemClock};
use models::{Message, Model as _, ModelAnswer, ModelErrorKind, ModelRequest, NoPieces, Role};
use models::{Tool, Usage};
use practice::Practice;
use serde_json::{Value, json};

use crate::endpoint::CollectedPieces;

pub(crate) fn skill_request(skill: &str, system: &str, user: &str) -> ModelRequest {
    let system = (!system.is_empty()).then(|| Message::text(Role::System, system));
    let messages = system.into_iter().chain([Message::text(Role::User, user)]).collect();
    ModelRequest { model: skill.into(), messages, ..ModelRequest::default() }
}

pub(crate) async fn call(request: &ModelRequest) -> ModelAnswer {
    Practice::new(Arc::new(SystemClock::new())).call(request, &NoPieces).await.unwrap()
}

pub(crate) async fn answer_text(skill: &str, system: &str, user: &str) -> String {
    call(&skill_request(skill, system, user)).await.text
}

#[tokio::test]
async fn instructions_of_form_are_followed() {
    let text = "The shop is open! You don't need a ticket. Parking is free.";
    for (instruction, expected) in [
        ("", text),
        ("Read it well.", text),
        ("Answer in one sentence.", "The shop is open!"),
        ("Use at most 2 sentences.", "The shop is open! You don't need a ticket."),
        ("At most five words.", "The shop is open! You"),
        ("Use no more than 3 words.", "The shop is"),
        ("Write in capital letters.", "THE SHOP IS OPEN! YOU DON'T NEED A TICKET. PARKING IS FREE."),
        ("Use lower case.", "the shop is open! you don't need a ticket. parking is free."),
        ("Answer as a bulleted list.", "- The shop is open!\n- You don't need a ticket.\n- Parking is free."),
        ("Use 2 bullets.", "- The shop is open!\n- You don't need a ticket."),
        ("Write a numbered list.", "1. The shop is open!\n2. You don't need a ticket.\n3. Parking is free."),
        ("Begin with \"Note:\".", "Note: The shop is open! You don't need a ticket. Parking is free."),
        (
            "The answer must start with \"Note:\".",
            "Note: The shop is open! You don't need a ticket. Parking is free.",
        ),
        ("End with \"Bye.\"", "The shop is open! You don't need a ticket. Parking is free. Bye."),
        (
            "Always mention \"toilets\".",
            "The shop is open! You don't need a ticket. Parking is free. toilets",
        ),
        ("Include \"parking\".", text),
        ("Never say \"free\".", "The shop is open! You don't need a ticket. Parking is."),
        ("Remove \"you\".", "The shop is open! don't need a ticket. Parking is free."),
        ("Replace \"shop\" with \"store\".", "The store is open! You don't need a ticket. Parking is free."),
        (
            "Write \"store\" instead of \"shop\".",
            "The store is open! You don't need a ticket. Parking is free.",
        ),
        ("Be formal.", "The shop is open. You do not need a ticket. Parking is free."),
        (
            "Answer politely.",
            "Thank you for your message. The shop is open! You don't need a ticket. Parking is free.",
        ),
        ("Answer \"no\".", "no"),
        ("- In one sentence.\n2. Begin with \"A:\".\n* Use upper case!", "A: THE SHOP IS OPEN!"),
    ] {
        assert_eq!(answer_text("rewrite", instruction, text).await, expected, "{instruction}");
    }
}

#[tokio::test]
async fn conditions_decide_if_an_instruction_applies() {
    let input = "I want my money back for order 17!";
    for (condition, holds) in [
        ("the message mentions \"money\"", true),
        ("the message mentions \"refund\" or \"money back\"", true),
        ("the text contains \"money\" and \"orders\"", true),
        ("the message mentions \"money\" and \"parcel\"", false),
        ("it mentions money", true),
        ("the customer asks for refunds, parcels or orders", true),
        ("the message does not mention \"parcel\"", true),
        ("the message does not mention \"money\"", false),
        ("the message starts with \"I want\"", true),
        ("the message begins with \"Hello\"", false),
        ("the message ends with \"!\"", true),
        ("the message is a question", false),
        ("the message contains a number", true),
        ("the message is longer than 5 words", true),
        ("the message is longer than 8 words", false),
        ("the message is shorter than twelve words", true),
    ] {
        let expected = if holds { "yes" } else { input };
        for instruction in [
            format!("If {condition}, answer \"yes\"."),
            format!("When {condition} then answer \"yes\"."),
            format!("Answer \"yes\" if {condition}."),
            format!("If {condition}, reply with yes."),
        ] {
            assert_eq!(answer_text("rewrite", &instruction, input).await, expected, "{instruction}");
        }
    }
}

#[tokio::test]
async fn other_sentences_are_not_instructions() {
    let input = "My parcel is late.";
    for sentence in [
        "Answer the question.",
        "Answer questions about parcels politely and with care for the customer's feelings at all times.",
        "Be concise and answer quickly.",
        "We answer every message.",
        "A parcel takes two days.",
        "You are a careful writer.",
        "If in doubt, think again.",
    ] {
        assert_eq!(answer_text("rewrite", sentence, input).await, input, "{sentence}");
    }
}

#[tokio::test]
async fn a_label_is_derived_from_rules_labels_or_examples() {
    let labels = "Labels: billing, shipping, other.";
    let rules = "If the message mentions \"invoice\", answer \"billing\".\nOtherwise answer \"other\".";
    let demo = "Input: my parcel never came\nOutput: shipping";
    for (prompt, input, expected) in [
        (format!("{labels}\n{rules}"), "The invoices are wrong", "billing"),
        (format!("{labels}\n{rules}"), "Nice weather", "other"),
        (labels.to_owned(), "a shipping problem", "shipping"),
        ("Classify the message as billing, shipping or other.".to_owned(), "a SHIPPING problem", "shipping"),
        (
            "Answer with one of these labels: \"Billing\", \"Shipping\".".to_owned(),
            "billing please",
            "Billing",
        ),
        (format!("{labels}\n{demo}"), "where is my parcel, it never came", "shipping"),
        (
            format!("{labels}\n{{\"input\": \"my parcel never came\", \"output\": \"shipping\"}}"),
            "the parcel",
            "shipping",
        ),
        (
            format!(
                "{labels}\n{{\"input\": \"my parcel never came\", \"output\": {{\"label\": \"shipping\", \"reason\": \"\"}}}}"
            ),
            "the parcel",
            "shipping",
        ),
        (format!("{rules} Begin with \"Label:\"."), "invoice", "Label: billing"),
        (String::new(), "anything", "unknown"),
    ] {
        assert_eq!(answer_text("classify", &prompt, input).await, expected, "{prompt} / {input}");
    }
    // Examples may also be in the conversation.
    let mut request = skill_request("classify", labels, "my parcel never came");
    request.messages.push(Message::text(Role::Assistant, "shipping"));
    request.messages.push(Message::text(Role::User, "and where is my other parcel that never came"));
    assert_eq!(call(&request).await.text, "shipping");
}

#[tokio::test]
async fn an_assistant_answers_from_its_prompt() {
    let system = "You are Cal, the assistant of a bicycle shop. We open at 9:00 and close at 18:00. \
                  A tune-up costs 60 euros. Rentals cost 20 euros a day. Answer in one sentence. \
                  If you do not know the answer, say \"Please call us.\" If the message mentions \"boss\", answer \"Ask Kim.\"";
    for (input, expected) in [
        ("Hi there!", "Hello!"),
        ("When do you open?", "We open at 9:00 and close at 18:00."),
        ("How much is a tune-up?", "A tune-up costs 60 euros."),
        ("what do rentals cost", "Rentals cost 20 euros a day."),
        ("Who are you?", "I am Cal, the assistant of a bicycle shop."),
        ("Is the boss there?", "Ask Kim."),
        ("Do you sell pizza?", "Please call us."),
        ("Thanks!", "You are welcome."),
        (
            "What can you do?",
            "I can tell what my instructions say, for example: We open at 9:00 and close at 18:00.",
        ),
    ] {
        assert_eq!(answer_text("assistant", system, input).await, expected, "{input}");
    }
    assert_eq!(answer_text("reply", system, "Bye").await, "Goodbye!");
    // It remembers earlier messages.
    let mut request = skill_request("assistant", "", "My name is Ada and I live in Graz.");
    assert_eq!(call(&request).await.text, "You say: Your name is Ada and you live in Graz.");
    request.messages.push(Message::text(Role::Assistant, "Nice."));
    request.messages.push(Message::text(Role::User, "What is my name?"));
    assert_eq!(call(&request).await.text, "Your name is Ada and you live in Graz.");
    assert!(answer_text("assistant", "", "Why is the sky blue?").await.contains("instructions"));
}

#[tokio::test]
async fn fields_are_extracted_as_the_prompt_describes() {
    let input = "Order 4711 from Graz on 2026-03-01: 12.50 EUR, code \"A7\". Mail ada@example.com, ship before Friday.";
    for (prompt, expected) in [
        ("order: the number after \"order\".", json!({"order": "4711"})),
        ("The city is the word after \"from\".", json!({"city": "Graz"})),
        (
            "day: the word after \"before\". amount: the number before \"EUR\"",
            json!({"day": "Friday", "amount": "12.50"}),
        ),
        ("what: the words between \"from\" and \":\"", json!({"what": "Graz on 2026-03-01"})),
        (
            "Answer as JSON with the keys email, date, price and colour.",
            json!({"email": "ada@example.com", "date": "2026-03-01", "price": "12.50", "colour": null}),
        ),
        ("Set source to \"mail\".", json!({"source": "mail"})),
        ("Find everything.", json!({})),
    ] {
        let text = answer_text("extract", prompt, input).await;
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{prompt}");
    }
}

#[tokio::test]
async fn a_summary_keeps_the_topic_of_the_text() {
    let text = "The bridge was closed on Monday. Birds sang. The bridge needs new cables, and the city pays for the \
                cables. Engineers said the bridge opens again in May.";
    let short = answer_text("summarize", "", text).await;
    assert_eq!(
        short,
        "The bridge needs new cables, and the city pays for the cables. Engineers said the bridge opens again in May."
    );
    let one = answer_text("summarize", "Summarise in one sentence. Begin with \"Summary:\".", text).await;
    assert_eq!(one, "Summary: The bridge needs new cables, and the city pays for the cables.");
    let with = answer_text("summarize", "In one sentence. Include \"birds\".", text).await;
    assert_eq!(with, "Birds sang.");
}

#[tokio::test]
async fn a_schema_is_filled() {
    let schema = json!({"type": "object", "required": ["kind", "order", "urgent", "reply", "tags", "left"], "properties": {
        "kind": {"enum": ["refund", "other"]}, "order": {"type": ["integer", "null"]}, "urgent": {"type": "boolean"},
        "reply": {"type": "string"}, "email": {"type": "string"}, "left": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"enum": ["order", "refund"]}}, "at": {"$ref": "#/$defs/at"}},
        "$defs": {"at": {"type": "object", "properties": {"date": {"type": "string"}}}}});
    let prompt = "If the message mentions \"money back\", answer \"refund\". order: the number after \"order\". \
                  If the message mentions \"now\", set urgent to true. Otherwise set urgent to false.";
    let ask = |input: &str| ModelRequest {
        response_schema: Some(schema.clone()),
        ..skill_request("classify", prompt, input)
    };
    let answer = call(&ask("I want my money back for order 12 NOW, since 2026-01-02")).await;
    assert_eq!(
        serde_json::from_str::<Value>(&answer.text).unwrap(),
        json!({"kind": "refund", "order": 12, "urgent": true, "reply": "refund", "tags": ["order"], "left": null,
               "at": {"date": "2026-01-02"}})
    );
    let value: Value = serde_json::from_str(&call(&ask("Nothing here")).await.text).unwrap();
    assert_eq!(
        (&value["urgent"], &value["order"], &value["tags"]),
        (&json!(false), &Value::Null, &json!([]))
    );
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value), "{value}");
}

#[tokio::test]
async fn tools_are_called_on_plain_requests() {
    let weather = Tool {
        name: "get_weather".into(),
        description: "The weather.".into(),
        parameters: json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}),
    };
    let ask = |system: &str, user: &str| ModelRequest {
        tools: vec![weather.clone()],
        ..skill_request("assistant", system, user)
    };
    let rule = "If the message mentions \"weather\", call the tool get_weather. city: the word after \"in\".";
    for (system, user, arguments) in [
        ("", "Please call get_weather with city=\"Graz\", days=3", json!({"city": "Graz", "days": 3})),
        ("", "Use the tool get_weather {\"city\": \"Linz\"}", json!({"city": "Linz"})),
        (rule, "What is the weather in Wien?", json!({"city": "Wien"})),
    ] {
        let answer = call(&ask(system, user)).await;
        assert_eq!(answer.tool_calls.len(), 1, "{user}");
        assert_eq!(
            (&*answer.tool_calls[0].name, &answer.tool_calls[0].arguments),
            ("get_weather", &arguments)
        );
        assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("", Some("tool_calls")));
    }
    assert!(call(&ask(rule, "Hello")).await.tool_calls.is_empty());
    // The tool's answer is reported, and no further tool is called.
    let mut request = ask(rule, "What is the weather in Wien?");
    let calls = call(&request).await.tool_calls;
    request.messages.push(Message { tool_calls: calls, ..Message::text(Role::Assistant, "") });
    request
        .messages
        .push(Message { tool_call_id: Some("call_1".into()), ..Message::text(Role::Tool, "sunny, 20 °C") });
    assert_eq!(call(&request).await.text, "The tool says: sunny, 20 °C");
}

#[tokio::test]
async fn words_are_streamed_at_a_fixed_pace_up_to_the_limit() {
    let received = CollectedPieces::default();
    let practice = Practice::new(Arc::new(SystemClock::new()));
    let request =
        ModelRequest { max_tokens: Some(3), ..skill_request("rewrite", "", "one two three four five") };
    let answer = practice.call(&request, &received).await.unwrap();
    assert_eq!(received.0.into_inner(), ["one ", "two ", "three"]);
    assert_eq!((answer.text.as_str(), answer.finish_reason.as_deref()), ("one two three", Some("length")));
    assert_eq!(answer.usage, Some(Usage { input_tokens: 9, output_tokens: 3, cached_tokens: 0 }));
    assert_eq!(answer.model.as_deref(), Some("practice/rewrite"));

    let clock = ManualClock::new(noon());
    let received = Arc::new(CollectedPieces::default());
    let (slow, pieces) = (Practice::new(Arc::new(clock.clone())), Arc::clone(&received));
    let request = skill_request("rewrite@40ms", "", "one two");
    let call = tokio::spawn(async move { slow.call(&request, &*pieces).await });
    for expected in [0, 1, 2] {
        settle().await;
        assert_eq!(received.0.lock().len(), expected);
        clock.advance(Duration::from_millis(40));
    }
    assert_eq!(call.await.unwrap().unwrap().finish_reason.as_deref(), Some("stop"));
}

#[tokio::test]
async fn an_unknown_skill_is_rejected_with_the_known_ones() {
    for model in ["poetry", "", "assistant@fast", "assistant@40", "Assistant"] {
        let practice = Practice::new(Arc::new(SystemClock::new()));
        let error = practice.call(&skill_request(model, "", "hi"), &NoPieces).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Rejected, "{model}");
        assert!(
            error.message.ends_with("assistant, classify, extract, summarize, rewrite, reflect, judge"),
            "{error}"
        );
    }
}

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// Lets every task run until it blocks (the test runtime has one thread).
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
