//! A cut stream resumes exactly where it was.

use insta::assert_snapshot;
use integration_tests::{AnswerExt, JSON, TestService, chat, graphs, shown, without_mark};

/// The end of each event in a body, 0 first.
fn boundaries(body: &str) -> Vec<usize> {
    std::iter::once(0).chain(body.match_indices("\n\n").map(|(at, _)| at + 2)).collect()
}

/// The id of the last complete event in a part of a body.
fn last_id(part: &str) -> Option<&str> {
    let whole = &part[..part.rfind("\n\n").map_or(0, |at| at + 2)];
    whole.lines().filter_map(|line| line.strip_prefix("id: ")).next_back()
}

#[tokio::test]
async fn a_stream_cut_after_any_byte_resumes_exactly() {
    let t = TestService::start().await;
    let text = "Ein Satz – mit \u{1F600} – und noch einer.\n\n".repeat(8);
    let workflow = t.workflow().graph(graphs::words(&text, 8)).published().create().await;
    for headers in [&[][..], &[("chatkit-frame-instance-id", "f")][..]] {
        let body = chat::create(&workflow, "hi").to_string();
        let mut answer = t.open("POST", "/api/chat", headers, &body).await;
        let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
        let body = answer.rest().await;
        let boundaries = boundaries(&body);
        assert!(boundaries.len() > 6, "{body}");
        // Only the received part of a cut body matters: the position after its last complete event.
        for (index, end) in boundaries.iter().enumerate() {
            let next = boundaries.get(index + 1).copied().unwrap_or(body.len());
            let after = last_id(&body[..*end]);
            for cut in *end..next {
                if body.is_char_boundary(cut) {
                    assert_eq!(last_id(&body[..cut]), after);
                }
            }
            let rest = t.resume(&stream, after).await.whole().await;
            // A reader that has to wait gets a comment that the stream is live.
            let events = rest.text().replace(": live\n\n", "");
            assert_eq!(events, body[*end..], "after {after:?}");
            assert_eq!(rest.status, if *end == body.len() { 204 } else { 200 });
        }
    }
}

#[tokio::test]
async fn a_connection_cut_inside_an_event_resumes_after_the_last_complete_one() {
    let t = TestService::start().await;
    let text = "one two three four five six seven eight nine ten ".repeat(3);
    let workflow = t.workflow().graph(graphs::words(&text, 20)).published().create().await;
    let whole = {
        let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
        answer.rest().await.len()
    };
    for cut in [1, 17, 60, whole / 4, whole / 3, whole / 2, whole * 3 / 4] {
        let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
        let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
        let mut seen = Vec::new();
        while seen.len() < cut {
            seen.extend_from_slice(&answer.piece().await.unwrap());
        }
        seen.truncate(cut);
        drop(answer);
        let seen = String::from_utf8_lossy(&seen).into_owned();
        let after = last_id(&seen).map(str::to_owned);
        let complete = seen.rfind("\n\n").map_or("", |at| &seen[..at + 2]).to_owned();
        let rest = t.resume(&stream, after.as_deref()).await.rest().await;
        let all = t.resume(&stream, None).await.rest().await;
        assert_eq!(complete + &without_mark(&rest), without_mark(&all), "cut after {cut} bytes");
        assert!(all.contains("\"thread.item.done\",\"item\":{\"type\":\"assistant_message\""), "{all}");
    }
}

#[tokio::test]
async fn the_client_receives_each_event_once_over_many_cuts() {
    let t = TestService::start().await;
    let text = "a few words that take their time ".repeat(6);
    let workflow = t.workflow().graph(graphs::words(&text, 10)).published().create().await;
    let answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    drop(answer);
    let mut seqs = Vec::new();
    let mut after: Option<String> = None;
    // One event per connection.
    while let Some(mut reading) = t.client().resume(&stream, after.as_deref()).await.unwrap() {
        if let Some(event) = reading.next().await.unwrap() {
            seqs.push(event.seq);
            after = Some(event.id);
        }
    }
    let count = u64::try_from(seqs.len()).unwrap();
    assert_eq!(seqs, (1..=count).collect::<Vec<_>>());
    assert!(count > 6);
}

#[tokio::test]
async fn a_header_or_query_selects_the_stream_position() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let stream = t.visitor().say(&workflow.id, "hi").await.unwrap().stream_id;
    let other = t.visitor().say(&workflow.id, "hi").await.unwrap().stream_id;
    let path = format!("/api/chat/streams/{stream}");
    let all = t.get(&path).await.text();
    let behind_two = &all[boundaries(&all)[2]..];
    for query in ["after=2".to_owned(), format!("after={stream}.2"), "after=002".to_owned()] {
        assert_eq!(t.get(&format!("{path}?{query}")).await.text(), behind_two, "{query}");
    }
    let both =
        t.send("GET", &format!("{path}?after=1"), &[("last-event-id", &format!("{stream}.2"))], "").await;
    assert_eq!(both.text(), behind_two, "the header is what the browser itself has seen");
    assert_eq!(t.send("GET", &path, &[("last-event-id", "")], "").await.text(), all);
    assert_eq!(t.get(&format!("/api/chat/streams/{}", stream.to_uppercase())).await.text(), all);
    let of_another = t.send("GET", &path, &[("last-event-id", &format!("{other}.2"))], "").await;
    assert_eq!(of_another.refusal(), "422 request.invalid");
    assert_eq!(of_another.problems(), ["/Last-Event-ID other_stream"]);
    for bad in
        ["2", "x", ".2", &stream, &format!("{stream}."), &format!("{stream}.-1"), &format!("{stream}.2.3")]
    {
        assert_eq!(
            t.send("GET", &path, &[("last-event-id", bad)], "").await.refusal(),
            "422 request.invalid",
            "{bad}"
        );
    }
    assert_eq!(t.get(&format!("{path}?after={other}.2")).await.problems(), ["/after other_stream"]);
    // Both are checked, and an invalid value does not count as missing.
    let both = t.send("GET", &format!("{path}?after=x"), &[("last-event-id", "2")], "").await;
    assert_eq!(both.problems(), ["/Last-Event-ID format", "/after format"]);
    let good = format!("{stream}.2");
    let both = t.send("GET", &format!("{path}?after=x"), &[("last-event-id", &good)], "").await;
    assert_eq!(both.problems(), ["/after format"]);
    let twice = [("last-event-id", good.as_str()), ("last-event-id", good.as_str())];
    assert_eq!(t.send("GET", &path, &twice, "").await.problems(), ["/Last-Event-ID repeated"]);
    let mut raw = t.raw().await;
    raw.write(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nLast-Event-ID: ")).await;
    raw.write(b"\xff\xfe\r\n\r\n").await;
    assert_eq!(raw.answer().await.whole().await.problems(), ["/Last-Event-ID format"]);
}

#[tokio::test]
async fn a_completed_stream_has_no_content_after_its_last_event() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let stream = t.visitor().say(&workflow.id, "hi").await.unwrap().stream_id;
    let count = t.scalar("SELECT max(last_seq) FROM stream_events").await;
    let seen = t.resume(&stream, Some(&format!("{stream}.{count}"))).await.whole().await;
    assert_snapshot!(shown(&seen), @"204");
    for beyond in ["7", "999", "9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        let answer = t.resume(&stream, Some(&format!("{stream}.{beyond}"))).await.whole().await;
        assert_eq!(answer.status, 204, "{beyond}");
    }
}

/// A reader that claims a position beyond the stream would wait for the end and miss everything until then.
#[tokio::test]
async fn a_position_beyond_a_running_stream_is_rejected() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("so far", 5.0, " done")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    let seen = answer.until("so far").await;
    let last: u64 = last_id(&seen).unwrap().rsplit_once('.').unwrap().1.parse().unwrap();
    for beyond in [last + 1, 999, u64::try_from(i64::MAX).unwrap(), u64::MAX] {
        let refused = t.resume(&stream, Some(&format!("{stream}.{beyond}"))).await.whole().await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{beyond}");
        assert_eq!(refused.problems(), ["/Last-Event-ID range"], "{beyond}");
        let refused = t.get(&format!("/api/chat/streams/{stream}?after={beyond}")).await;
        assert_eq!(refused.problems(), ["/after range"], "{beyond}");
    }
    // After the last event, it waits for the next one.
    let mut reader = t.resume(&stream, Some(&format!("{stream}.{last}"))).await.expect(200);
    let (rest, read) = t.while_time_passes(async { (answer.rest().await, reader.rest().await) }).await;
    assert!(rest.contains("so far done"), "{rest}");
    assert_eq!(rest, without_mark(&read));
}

#[tokio::test]
async fn every_reader_gets_the_same_bytes() {
    let t = TestService::start().await;
    let text = "the same for everybody ".repeat(10);
    let workflow = t.workflow().graph(graphs::words(&text, 8)).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = first.header("x-chat-stream-id").unwrap().to_owned();
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(t.resume(&stream, None).await);
        integration_tests::pause(40).await;
    }
    let all = first.rest().await;
    for mut other in others {
        assert_eq!(without_mark(&other.rest().await), all);
    }
    assert_eq!(t.resume(&stream, None).await.rest().await, all);
}

#[tokio::test]
async fn a_resumed_stream_keeps_its_dialect() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let stream = t.visitor().say(&workflow.id, "hi").await.unwrap().stream_id;
    let path = format!("/api/chat/streams/{stream}");
    let plain = t.get(&path).await.text();
    let chatkit = [("chatkit-frame-instance-id", "f"), ("accept", "text/event-stream;dialect=chatkit")];
    assert_eq!(t.send("GET", &path, &chatkit, "").await.text(), plain);
}

#[tokio::test]
async fn a_stream_is_the_same_after_a_restart() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::words("before the restart", 5)).published().create().await;
    let client = t.visitor();
    let turn = client.say(&workflow.id, "hi").await.unwrap();
    let before = t.resume(&turn.stream_id, None).await.rest().await;
    let thread = turn.thread_id;
    t.restart().await;
    assert_eq!(t.resume(&turn.stream_id, None).await.rest().await, before);
    let boundary = boundaries(&before)[3];
    let after = last_id(&before[..boundary]).unwrap();
    assert_eq!(t.resume(&turn.stream_id, Some(after)).await.rest().await, before[boundary..]);
    // The visitor's cookie is still valid.
    client.say_in(&workflow.id, &thread, "again").await.unwrap();
    let stranger = t.visitor();
    stranger.say(&workflow.id, "hi").await.unwrap();
    let refused = stranger.say_in(&workflow.id, &thread, "mine now").await.unwrap_err();
    assert_eq!(refused.code(), Some("thread.not_found"));
}

#[tokio::test]
async fn a_replay_marks_the_start_of_live_events_once() {
    let t = TestService::start().await;
    let workflow =
        t.workflow().graph(graphs::words("one two three four five six ", 150)).published().create().await;
    for (headers, mark) in [
        (&[][..], "data: {\"type\":\"stream.live\"}\n\n"),
        (&[("chatkit-frame-instance-id", "f")][..], ": live\n\n"),
    ] {
        let body = chat::create(&workflow, "hi").to_string();
        let keyed: Vec<_> = [JSON, ("idempotency-key", "a-key-of-its-own")]
            .into_iter()
            .chain(headers.iter().copied())
            .collect();
        let mut first = t.open("POST", "/api/chat", &keyed, &body).await;
        let stream = first.header("x-chat-stream-id").unwrap().to_owned();
        first.until("two").await;
        let mut readers = vec![t.resume(&stream, None).await];
        readers.push(t.open("POST", "/api/chat", &keyed, &body).await);
        let whole = first.rest().await;
        assert!(!whole.contains(mark), "nothing was replayed: {whole}");
        for mut reader in readers {
            let read = reader.rest().await;
            assert_eq!(read.matches(mark).count(), 1, "{read}");
            let (replayed, live) = read.split_once(mark).unwrap();
            assert!(replayed.contains("two") && live.contains("six"), "{read}");
        }
        assert_eq!(t.resume(&stream, None).await.rest().await.matches(mark).count(), 0, "the turn has ended");
        t.execute("DELETE FROM idempotency_keys").await;
    }
}
