//! `callboard chat`.

use integration_tests::{TestService, graphs, until};
use serde_json::{Value, json};
use wire::chat::ChatEvent;

use super::proxy::{Fault, Proxy};
use super::slow_echo;
use super::terminal::Terminal;

/// The conversation as models receive it.
const HISTORY: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}|{% endfor %}";

async fn stored_reply(t: &TestService) -> String {
    let items = "SELECT content::json->'content'->0->>'text' FROM thread_items
        WHERE content::json->>'type' = 'assistant_message'";
    t.scalar(items).await
}

#[tokio::test]
async fn a_reply_goes_to_standard_output_and_the_thread_can_be_continued() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply(HISTORY)).published().create().await;
    let terminal = Terminal::for_service(&t);
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
    assert!(!other.err.contains("To continue"), "no thread can be continued: {}", other.err);
}

#[tokio::test]
async fn progress_and_notices_go_to_standard_error() {
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
    let ran = Terminal::for_service(&t).run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!(ran.out, "Done.\n");
    assert!(ran.err.starts_with("… Looking …\n! Mind: It is late.\nTo continue: "), "{}", ran.err);
}

#[tokio::test]
async fn json_output_is_one_event_per_line() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let ran = Terminal::for_service(&t).run(&["chat", &workflow.handle, "hi", "--output", "json"]).await;
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let events: Vec<ChatEvent> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(matches!(events.first(), Some(ChatEvent::ThreadCreated { .. })), "{events:?}");
    let Some(ChatEvent::ItemDone { item }) = events.last() else { panic!("{events:?}") };
    assert_eq!(item.as_message().unwrap().1, "You said: hi");
}

#[tokio::test]
async fn a_denied_chat_prints_the_remedy_and_has_status_3() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
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
async fn a_failed_turn_keeps_its_text_and_has_status_1() {
    let t = TestService::start().await;
    let graph = graphs::chain(
        &[
            json!({"name": "say", "type": "reply", "text": "So far. "}),
            json!({"name": "fail", "type": "assert", "when": "false", "message": "It cannot be."}),
        ],
        None,
    );
    let workflow = t.workflow().graph(graph).published().create().await;
    let terminal = Terminal::for_service(&t);
    let failed = terminal.run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!((failed.status, failed.out.as_str()), (Some(1), "So far. \n"), "{}", failed.err);
    assert!(failed.err.contains("error: ") && failed.err.contains("(node.failed)"), "{}", failed.err);
    let failed = terminal.run(&["chat", &workflow.handle, "hi", "--output", "json"]).await;
    let error: Value = serde_json::from_str(&failed.err).unwrap();
    assert_eq!((failed.status, &error["detail"]["code"]), (Some(1), &json!("node.failed")));
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_and_keeps_its_text() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::words(&"word ".repeat(400), 50)).published().create().await;
    let mut chat = Terminal::for_service(&t).start(&["chat", &workflow.handle, "go"]);
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
    assert_eq!(stored_reply(&t).await.trim_end(), ran.out.trim_end(), "the printed text is the stored text");
    assert!(ran.out.len() < 1_000, "{}", ran.out);
}

#[tokio::test]
async fn a_second_ctrl_c_exits_when_the_stop_request_hangs() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::words(&"word ".repeat(150), 40)).published().create().await;
    let proxy = Proxy::to(t.address(), Fault::Swallows("POST /api/chat/streams/")).await;
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
async fn broken_connections_lose_and_repeat_nothing() {
    let t = TestService::start().await;
    let words: Vec<String> = (1..=40).map(|number| format!("w{number}")).collect();
    let workflow = t.workflow().graph(slow_echo(60)).published().create().await;
    let proxy = Proxy::to(t.address(), Fault::StreamsAfter(2_500)).await;
    let message = words.join(" ");
    let ran = Terminal::at(&proxy.base()).run(&["chat", &workflow.handle, &message]).await;
    assert_eq!((ran.status, ran.out), (Some(0), format!("You said: {message}\n")), "{}", ran.err);
    assert!(proxy.broken() >= 1, "only {} connections broke", proxy.broken());
    assert!(ran.err.contains("The connection was lost; resuming.\n"), "{}", ran.err);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn a_message_with_a_lost_response_is_sent_once() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let proxy = Proxy::to(t.address(), Fault::FirstAnswerTo("POST /api/chat ")).await;
    let ran = Terminal::at(&proxy.base()).run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "You said: hi\n"), "{}", ran.err);
    assert_eq!((proxy.broken(), t.scalar("SELECT count(*) FROM runs").await.as_str()), (1, "1"));
}

#[tokio::test]
async fn a_terminal_chat_prompts_until_the_user_leaves() {
    let t = TestService::start().await;
    let graph = graphs::words(
        "{{ messages | length }} {{ 'word ' * 200 if inputs.message == 'long' else 'short' }}",
        40,
    );
    let workflow = t.workflow().named("Desk").graph(graph).published().create().await;
    let mut chat = Terminal::for_service(&t).start_at_a_terminal("chat desk");
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
async fn workflow_output_cannot_control_the_terminal() {
    let t = TestService::start().await;
    let evil = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc";
    let workflow = t.workflow().named("Evil").graph(graphs::reply(evil)).published().create().await;
    let terminal = Terminal::for_service(&t);
    let seen = terminal.start_at_a_terminal("chat evil hi").end().await;
    assert!(seen.out.contains("a]0;titleb[2Jc") && !seen.out.contains("\u{1b}[2J"), "{:?}", seen.out);
    let piped = terminal.output_of(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!(piped, format!("{evil}\n"), "piped output is unfiltered");
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
    let terminal = Terminal::for_service(&t);
    let with_text =
        terminal.run(&["chat", &workflow.handle, "Which colour is it?", "--attach", &path("red.png")]).await;
    assert!(
        with_text.status == Some(0) && with_text.out.contains("red"),
        "{} {}",
        with_text.out,
        with_text.err
    );
    let without_text = terminal.run(&["chat", &workflow.handle, "--attach", &path("red.png")]).await;
    assert!(
        without_text.status == Some(0) && without_text.out.contains("red"),
        "{} {}",
        without_text.out,
        without_text.err
    );
    let refused = terminal.run(&["chat", &workflow.handle, "x", "--attach", &path("page.html")]).await;
    assert!(
        refused.status == Some(1) && refused.err.contains("(attachment.type_not_allowed)"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("page.html"), "{}", refused.err);
    let missing_file = terminal.run(&["chat", &workflow.handle, "x", "--attach", &path("none.txt")]).await;
    assert!(missing_file.status == Some(2) && missing_file.err.contains("none.txt"), "{}", missing_file.err);
    assert_eq!(t.scalar("SELECT count(*) FROM attachments WHERE contained").await, "2");
}

#[tokio::test]
async fn questions_are_answered_with_arguments_and_at_a_terminal() {
    let t = TestService::start().await;
    let graph =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/refund.json")).unwrap();
    let graph: Value = serde_json::from_str(&graph).unwrap();
    let workflow = t.workflow().named("Refund").graph(graph).published().create().await;
    let terminal = Terminal::for_service(&t);
    let question = terminal.run(&["chat", &workflow.handle, "hi"]).await;
    assert_eq!(
        (question.status, question.out.as_str()),
        (Some(0), "Order 7 is a tea pot for 40 €.\n"),
        "{}",
        question.err
    );
    for part in [
        "Send it back?",
        "1. Yes, send it back",
        "Why?",
        "One line is enough.",
        "--answer ok=… --answer why=…",
    ] {
        assert!(question.err.contains(part), "{part}: {}", question.err);
    }
    let thread =
        question.err.trim_end().rsplit(' ').find(|word| word.starts_with("thr_")).unwrap().to_owned();
    let chat = ["chat", &workflow.handle, "--thread", &thread];
    let answer = async |more: &[&str]| terminal.run(&[&chat[..], more].concat()).await;
    let wrong = answer(&["--answer", "other=1"]).await;
    assert!(wrong.status == Some(2) && wrong.err.contains("the questions are ok, why"), "{}", wrong.err);
    let answered = answer(&["--answer", "ok=1", "--answer", "why=broken"]).await;
    assert_eq!(answered.out, "A label is on its way. Reason: broken.\n", "{}", answered.err);
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
    let terminal = Terminal::for_service(&t);
    let answering = async {
        let waits = "SELECT count(*) FROM runs WHERE status = 'waiting'";
        t.until_scalar("the turn to wait", waits, "1").await;
        let run = t.scalar("SELECT id FROM runs").await;
        terminal.output_of(&["answer", &run, "yes"]).await;
        run
    };
    let chat = ["chat", workflow.handle.as_str(), "refund"];
    let (ran, run) = tokio::join!(terminal.run(&chat), answering);
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "yes\n"), "{}", ran.err);
    assert!(ran.err.contains("… Refund 40?\n"), "{}", ran.err);
    assert!(ran.err.contains(&format!("To answer: callboard answer {run} <answer>\n")), "{}", ran.err);
}
