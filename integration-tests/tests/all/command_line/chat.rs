//! `callboard chat`.

use integration_tests::{TestService, graphs, until};
use serde_json::{Value, json};
use wire::chat::ChatEvent;

use super::proxy::{Break, Proxy};
use super::slow_echo;
use super::terminal::Terminal;

/// The conversation as models receive it.
const HISTORY: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}|{% endfor %}";

async fn reply_of(t: &TestService) -> String {
    let items = "SELECT content::json->'content'->0->>'text' FROM thread_items
        WHERE content::json->>'type' = 'assistant_message'";
    t.scalar(items).await
}

#[tokio::test]
async fn a_reply_goes_to_standard_output_and_the_thread_goes_on() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply(HISTORY)).published().create().await;
    let terminal = Terminal::of(&t);
    let first = terminal.run(&["chat", &workflow.handle, "one"]).await;
    assert_eq!((first.status, first.out.as_str()), (Some(0), "user: one|\n"), "{}", first.err);
    let thread = first.err.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(first.err, format!("To continue: callboard chat {} --thread {thread}\n", workflow.handle));
    // With the workflow's id, too, and with a multi-line message on standard input.
    let more = ["chat", &workflow.id, "--thread", &thread];
    let second = terminal.type_in(&more, "two\n\nand more\n").await;
    assert_eq!(second.out, "user: one|assistant: user: one||user: two\n\nand more|\n", "{}", second.err);
    let dash = terminal.type_in(&["chat", &workflow.handle, "-"], "dash").await;
    assert_eq!(dash.out, "user: dash|\n");
    let other = terminal
        .run(&["chat", &workflow.handle, "x", "--thread", "thr_00000000000000000000000000000000"])
        .await;
    assert!(other.status == Some(1) && other.err.contains("(thread.not_found)"), "{}", other.err);
    assert!(!other.err.contains("To continue"), "there is nothing to go on with: {}", other.err);
}

#[tokio::test]
async fn what_is_said_beside_the_reply_goes_to_standard_error() {
    let t = TestService::start().await;
    let graph = graphs::chain(
        &[
            json!({"name": "begin", "type": "progress", "text": "Looking …"}),
            json!({"name": "warn", "type": "notice", "level": "warning", "title": "Mind", "message": "It is late."}),
            json!({"name": "say", "type": "reply", "text": "Done.\n"}),
        ],
        Some(json!({"reply": "{{ results.say.text }}"})),
    );
    let workflow = t.workflow().graph(graph).published().create().await;
    let said = Terminal::of(&t).run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!(said.out, "Done.\n");
    assert!(said.err.starts_with("… Looking …\n! Mind: It is late.\nTo continue: "), "{}", said.err);
}

#[tokio::test]
async fn json_is_the_events_one_a_line() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let said = Terminal::of(&t).run(&["chat", &workflow.handle, "hi", "--output", "json"]).await;
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let events: Vec<ChatEvent> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(matches!(events.first(), Some(ChatEvent::ThreadCreated { .. })), "{events:?}");
    let Some(ChatEvent::ItemDone { item }) = events.last() else { panic!("{events:?}") };
    assert_eq!(item.as_message().unwrap().1, "You said: hi");
}

#[tokio::test]
async fn who_may_not_chat_is_told_what_to_do_with_status_3() {
    let t = TestService::start().await;
    let terminal = Terminal::of(&t);
    let closed = t.workflow().named("Closed").echo().create().await;
    let ran = terminal.run(&["chat", "closed", "hi"]).await;
    assert_eq!((ran.status, ran.out.as_str()), (Some(3), ""));
    assert_eq!(
        ran.err,
        "error: \"Closed\" is not published. (chat.not_published)\n`callboard workflow publish closed` opens its chat.\n"
    );
    assert_eq!(terminal.run(&["chat", &closed.id, "hi", "--output", "json"]).await.status, Some(3));
    t.workflow().named("Members").echo().published().require_login().create().await;
    let login = terminal.run(&["chat", "members", "hi"]).await;
    assert!(login.status == Some(3) && login.err.contains("(chat.login_required)"), "{}", login.err);
    let nothing = terminal.run(&["chat", "nothing", "hi"]).await;
    assert!(
        nothing.status == Some(1) && nothing.err.contains("`callboard workflow list`"),
        "{}",
        nothing.err
    );
    t.workflow().named("Empty").without_version().published().create().await;
    let empty = terminal.run(&["chat", "empty", "hi"]).await;
    assert_eq!(empty.status, Some(1));
    assert!(empty.err.contains("`callboard workflow upload empty <file.json>`"), "{}", empty.err);
}

#[tokio::test]
async fn a_turn_that_fails_keeps_its_text_and_has_status_1() {
    let t = TestService::start().await;
    let graph = graphs::chain(
        &[
            json!({"name": "say", "type": "reply", "text": "So far. "}),
            json!({"name": "fail", "type": "assert", "when": "false", "message": "It cannot be."}),
        ],
        None,
    );
    let workflow = t.workflow().graph(graph).published().create().await;
    let terminal = Terminal::of(&t);
    let failed = terminal.run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!((failed.status, failed.out.as_str()), (Some(1), "So far. \n"), "{}", failed.err);
    assert!(failed.err.contains("error: ") && failed.err.contains("(node.failed)"), "{}", failed.err);
    let failed = terminal.run(&["chat", &workflow.handle, "hi", "--output", "json"]).await;
    let told: Value = serde_json::from_str(&failed.err).unwrap();
    assert_eq!((failed.status, &told["detail"]["code"]), (Some(1), &json!("node.failed")));
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_for_good_and_keeps_what_was_said() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::words(&"word ".repeat(400), 50)).published().create().await;
    let mut chat = Terminal::of(&t).start(&["chat", &workflow.handle, "go"]);
    chat.until("word word word").await;
    chat.interrupt();
    let ran = chat.end().await;
    assert_eq!(ran.status, Some(130), "{}", ran.err);
    assert!(
        ran.err.starts_with("Stopped; the text so far is kept.\nTo continue: callboard chat "),
        "{}",
        ran.err
    );
    let stopped = "SELECT status || ' ' || (error::json->>'code') || ' ' || (cancel_requested_at IS NOT NULL) FROM runs";
    assert_eq!(t.scalar(stopped).await, "cancelled run.cancelled true");
    assert_eq!(reply_of(&t).await.trim_end(), ran.out.trim_end(), "what was shown is what is kept");
    assert!(ran.out.len() < 1_000, "{}", ran.out);
}

#[tokio::test]
async fn a_second_ctrl_c_leaves_although_the_stop_does_not_arrive() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::words(&"word ".repeat(150), 40)).published().create().await;
    let proxy = Proxy::to(t.address(), Break::Swallows("POST /api/chat/streams/")).await;
    let mut chat = Terminal::at(&proxy.base()).start(&["chat", &workflow.handle, "go"]);
    chat.until("word word").await;
    chat.interrupt();
    until("the stop is on its way", async || proxy.broken() == 1).await;
    chat.interrupt();
    let ran = chat.end().await;
    assert_eq!(ran.status, Some(130), "{}", ran.err);
    assert!(ran.err.starts_with("To continue: callboard chat "), "{}", ran.err);
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE cancel_requested_at IS NOT NULL").await, "0");
}

#[tokio::test]
async fn connections_that_break_lose_and_repeat_nothing() {
    let t = TestService::start().await;
    let words: Vec<String> = (1..=40).map(|number| format!("w{number}")).collect();
    let workflow = t.workflow().graph(slow_echo(60)).published().create().await;
    let proxy = Proxy::to(t.address(), Break::StreamsAfter(2_500)).await;
    let message = words.join(" ");
    let ran = Terminal::at(&proxy.base()).run(&["chat", &workflow.handle, &message]).await;
    assert_eq!((ran.status, ran.out), (Some(0), format!("You said: {message}\n")), "{}", ran.err);
    assert!(proxy.broken() >= 1, "only {} connections broke", proxy.broken());
    assert!(ran.err.contains("The connection was lost; resuming.\n"), "{}", ran.err);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_said_once() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let proxy = Proxy::to(t.address(), Break::FirstAnswerTo("POST /api/chat ")).await;
    let ran = Terminal::at(&proxy.base()).run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "You said: hi\n"), "{}", ran.err);
    assert_eq!((proxy.broken(), t.scalar("SELECT count(*) FROM runs").await.as_str()), (1, "1"));
}

#[tokio::test]
async fn at_a_terminal_one_is_asked_until_one_leaves() {
    let t = TestService::start().await;
    let graph = graphs::words(
        "{{ messages | length }} {{ 'word ' * 200 if inputs.message == 'long' else 'short' }}",
        40,
    );
    let workflow = t.workflow().named("Desk").graph(graph).published().create().await;
    let mut chat = Terminal::of(&t).start_at_a_terminal("chat desk");
    chat.until("Desk: enter a message.").await;
    chat.until("you ›").await;
    chat.press("first\r").await;
    chat.until("1 short").await;
    chat.until("you ›").await;
    chat.press("long\r").await;
    chat.until("3 word word").await;
    chat.press("\u{3}").await;
    chat.until("Stopped; the text so far is kept.").await;
    chat.until("you ›").await;
    // The thread continues after the stopped reply.
    chat.press("last\r").await;
    chat.until(" short").await;
    chat.until("you ›").await;
    chat.press("\u{4}").await;
    chat.until("To continue: callboard chat desk --thread thr_").await;
    let ran = chat.end().await;
    assert_eq!(ran.status, Some(0), "{}", ran.out);
    assert_eq!(
        t.scalar("SELECT string_agg(status, ' ' ORDER BY id) FROM runs").await,
        "succeeded cancelled succeeded"
    );
    assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
    assert_eq!(workflow.handle, "desk");
}

#[tokio::test]
async fn a_terminal_is_not_driven_by_what_a_workflow_says() {
    let t = TestService::start().await;
    let evil = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc";
    let workflow = t.workflow().named("Evil").graph(graphs::reply(evil)).published().create().await;
    let terminal = Terminal::of(&t);
    let seen = terminal.start_at_a_terminal("chat evil hi").end().await;
    assert!(seen.out.contains("a]0;titleb[2Jc") && !seen.out.contains("\u{1b}[2J"), "{:?}", seen.out);
    let piped = terminal.does(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!(piped, format!("{evil}\n"), "a program gets it as it is");
}

#[tokio::test]
async fn files_are_attached_to_the_first_message() {
    let t = TestService::start().await;
    let ask =
        json!({"name": "answer", "type": "llm", "model": "practice/assistant", "messages": "{{ messages }}"});
    let say = json!({"name": "say", "type": "reply", "text": "{{ results.answer.text }}"});
    let workflow = t.workflow().graph(graphs::chain(&[ask, say], None)).published().create().await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("red.png"), crate::attachments::red()).unwrap();
    std::fs::write(path("page.html"), "<!doctype html>").unwrap();
    let terminal = Terminal::of(&t);
    let said =
        terminal.run(&["chat", &workflow.handle, "Which colour is it?", "--attach", &path("red.png")]).await;
    assert!(said.status == Some(0) && said.out.contains("red"), "{} {}", said.out, said.err);
    let alone = terminal.run(&["chat", &workflow.handle, "--attach", &path("red.png")]).await;
    assert!(alone.status == Some(0) && alone.out.contains("red"), "{} {}", alone.out, alone.err);
    let refused = terminal.run(&["chat", &workflow.handle, "x", "--attach", &path("page.html")]).await;
    assert!(
        refused.status == Some(1) && refused.err.contains("(attachment.type_not_allowed)"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("page.html"), "{}", refused.err);
    let gone = terminal.run(&["chat", &workflow.handle, "x", "--attach", &path("none.txt")]).await;
    assert!(gone.status == Some(2) && gone.err.contains("none.txt"), "{}", gone.err);
    assert_eq!(t.scalar("SELECT count(*) FROM attachments WHERE contained").await, "2");
}

#[tokio::test]
async fn questions_are_answered_with_arguments_and_at_a_terminal() {
    let t = TestService::start().await;
    let graph =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/refund.json")).unwrap();
    let graph: Value = serde_json::from_str(&graph).unwrap();
    let workflow = t.workflow().named("Refund").graph(graph).published().create().await;
    let terminal = Terminal::of(&t);
    let asked = terminal.run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!(
        (asked.status, asked.out.as_str()),
        (Some(0), "Order 7 is a tea pot for 40 €.\n"),
        "{}",
        asked.err
    );
    for part in [
        "Send it back?",
        "1. Yes, send it back",
        "Why?",
        "One line is enough.",
        "--answer ok=… --answer why=…",
    ] {
        assert!(asked.err.contains(part), "{part}: {}", asked.err);
    }
    let thread = asked.err.trim_end().rsplit(' ').find(|word| word.starts_with("thr_")).unwrap().to_owned();
    let chat = ["chat", &workflow.handle, "--thread", &thread];
    let answer = async |more: &[&str]| terminal.run(&[&chat[..], more].concat()).await;
    let wrong = answer(&["--answer", "other=1"]).await;
    assert!(wrong.status == Some(2) && wrong.err.contains("the questions are ok, why"), "{}", wrong.err);
    let said = answer(&["--answer", "ok=1", "--answer", "why=broken"]).await;
    assert_eq!(said.out, "A label is on its way. Reason: broken.\n", "{}", said.err);
    let again = answer(&["--answer", "ok=1"]).await;
    assert!(
        again.status == Some(2) && again.err.contains("no question of the thread waits"),
        "{}",
        again.err
    );
    let mut chat = terminal.start_at_a_terminal("chat refund");
    chat.until("you ›").await;
    chat.press("hi\r").await;
    chat.until("answer ›").await;
    chat.press("2\r").await;
    chat.until("answer ›").await;
    chat.press("\r").await;
    chat.until("Nothing changes. Enjoy the tea.").await;
    chat.until("you ›").await;
    chat.press("\u{4}").await;
    assert_eq!(chat.end().await.status, Some(0));
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_shows_how_to_answer() {
    let t = TestService::start().await;
    let nodes = [
        json!({"name": "ok", "type": "wait_for_input", "message": "Refund 40?"}),
        json!({"name": "said", "type": "reply", "text": "{{ results.ok.value }}"}),
    ];
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).published().create().await;
    let terminal = Terminal::of(&t);
    let answering = async {
        let waits = "SELECT count(*) FROM runs WHERE status = 'waiting'";
        until("the turn to wait", async || t.scalar(waits).await == "1").await;
        let run = t.scalar("SELECT id FROM runs").await;
        terminal.does(&["answer", &run, "yes"]).await;
        run
    };
    let chat = ["chat", workflow.handle.as_str(), "refund"];
    let (told, run) = tokio::join!(terminal.run(&chat), answering);
    assert_eq!((told.status, told.out.as_str()), (Some(0), "yes\n"), "{}", told.err);
    assert!(told.err.contains("… Refund 40?\n"), "{}", told.err);
    assert!(told.err.contains(&format!("To answer: callboard answer {run} <answer>\n")), "{}", told.err);
}
