//! The demo chats' answers: to every suggested button, and to a newcomer's questions.

use std::collections::BTreeSet;

use client::Client;
use futures_util::future::join_all;

use crate::support::{Running, callboard, folder};

/// Handle without `callboard-demo-`, message, and a text that the answer must contain.
const ANSWERS: [(&str, &str, &str); 53] = [
    ("summary", "Hello!", "Paste a text"),
    ("summary", "Good morning", "Paste a text"),
    ("summary", "Thanks!", "You are welcome"),
    ("summary", "What can you do?", "I make summaries"),
    ("summary", "Who are you?", "I make summaries"),
    ("summary", "How do I use this?", "Paste a text"),
    ("summary", "Can you summarise a PDF?", "I read text only"),
    ("summary", "https://example.org/article", "no addresses"),
    ("summary", "Can you make it shorter?", "Paste it again"),
    ("summary", "What is the capital of France?", "I only make summaries"),
    ("summary", "Bye", "Goodbye"),
    ("support", "I was charged twice for order 7 and want a refund.", "pay the second charge back"),
    ("support", "The app crashes whenever I open my orders. This is urgent!", "update the app"),
    ("support", "When are you open on Saturdays?", "Saturdays until 13"),
    ("support", "Hello!", "How can I help?"),
    ("support", "Thanks!", "You are welcome"),
    ("support", "What can you do?", "opening hours"),
    ("support", "Who are you?", "Cal"),
    ("support", "Are you a robot?", "program"),
    ("support", "Are you open on Sundays?", "closed"),
    ("support", "How long does a refund take?", "five days"),
    ("support", "How do I return my order?", "30 days"),
    ("support", "Can I cancel my order?", "until it is sent"),
    ("support", "When will my parcel arrive?", "four days"),
    ("support", "Do you ship to Germany?", "Europe"),
    ("support", "How can I pay?", "card"),
    ("support", "I want to talk to a human.", "hello@example.com"),
    ("support", "I forgot my password", "Forgot password"),
    ("support", "What is the weather in Paris?", "I do not know that"),
    ("support", "Goodbye", "Goodbye"),
    ("count", "Count, please.", "18 19 20"),
    ("count", "Count to 5", "1 2 3 4 5"),
    ("count", "Hello!", "I only count"),
    ("count", "What can you do?", "I only count"),
    ("count", "Thanks!", "I only count"),
    ("count", "How far can you count?", "I only count"),
    ("count", "Can you count to 2?", "1 2"),
    ("count", "Count backwards from 3", "3 2 1"),
    ("count", "4", "1 2 3 4"),
    ("count", "Tell me a joke.", "I only count"),
    ("count", "Who are you?", "I only count"),
    ("count", "I have 3 questions about my order", "I only count"),
    ("count", "What is 7 times 8?", "I only count"),
    ("echo", "Hello!", "You said: Hello!"),
    ("echo", "Thanks!", "You said: Thanks!"),
    ("echo", "What can you do?", "You said: What can you do?"),
    ("echo", "Who are you?", "You said: Who are you?"),
    ("echo", "Goodbye", "You said: Goodbye"),
    ("echo", "Guten Tag", "You said: Guten Tag"),
    ("echo", "1 + 1", "You said: 1 + 1"),
    ("echo", "{{ inputs.message }}", "You said: {{ inputs.message }}"),
    ("echo", "<b>bold</b>", "You said: <b>bold</b>"),
    ("echo", "Are you open on Sundays?", "You said: Are you open on Sundays?"),
];

#[test]
fn suggested_buttons_and_free_questions_get_fitting_answers() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["demo"], &[("SERVICE_CHAT_RATE_LIMIT_IP", "0")]));
    let printed = running.until_serving();
    let home = printed.lines().find(|line| line.starts_with("http://")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(home.strip_suffix('/').unwrap()).unwrap();
        let published = client.workflows().await.unwrap();
        let of =
            |name: &str| published.iter().find(|one| one.handle == format!("callboard-demo-{name}")).unwrap();
        let turns = ANSWERS.iter().map(async |(name, question, fits)| {
            let turn = client.say(&of(name).id, question).await.unwrap();
            assert!(turn.text.contains(fits), "{name}: {question} -> {}", turn.text);
            assert!(turn.text.len() < 1_000, "{name}: {question} -> {}", turn.text);
        });
        join_all(turns).await;
        // Every button has a row above; the summary's button is a whole text.
        let rows: BTreeSet<(&str, &str)> =
            ANSWERS.iter().map(|(name, question, _)| (*name, *question)).collect();
        for name in ["summary", "support", "count", "echo"] {
            let chat = client.workflow(&of(name).id).await.unwrap().chat;
            assert!(!chat.start_prompts.is_empty(), "{name}");
            for prompt in chat.start_prompts {
                let text = prompt["prompt"].as_str().unwrap();
                if name == "summary" {
                    let turn = client.say(&of(name).id, text).await.unwrap();
                    assert!(turn.text.contains("1873") && turn.text.contains("2027"), "{}", turn.text);
                } else {
                    assert!(rows.contains(&(name, text)), "{name}: the button '{text}' has no row");
                }
            }
        }
    });
    assert_eq!(running.stop().0, Some(0));
}
