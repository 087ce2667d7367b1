//! Websocket limits, and the end of a socket.

use std::time::Duration;

use chrono::TimeDelta;
use integration_tests::{AnswerExt, BOOTSTRAP, Socket, TestService, graphs, until, within};
use kernel::Clock;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{HANDSHAKE, admin, bearer, begin, guarded, handshake, subscribe, token};

const TICK: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_message_that_is_too_large_closes_the_socket() {
    let t = TestService::builder().set("SERVICE_WS_MAX_MESSAGE_BYTES", "4096").start().await;
    let workflow = t.workflow().create().await;
    let fits = |length: usize| {
        let text = r#"{"type":"ping"}"#;
        format!("{text}{}", " ".repeat(length - text.len()))
    };
    let too_large = "1009 ws.message_too_large";
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.send(Message::text(fits(4096))).await.unwrap();
    assert_eq!(socket.next().await["type"], "pong");
    socket.send_part(&fits(4000).as_bytes()[..2000], true, false).await.unwrap();
    socket.send_part(&fits(4096).as_bytes()[2000..], false, true).await.unwrap();
    assert_eq!(socket.next().await["type"], "pong");
    let _ = socket.send(Message::text(fits(4097))).await;
    assert_eq!(socket.closed().await, too_large);
    // However many frames it consists of, and even if it never ends.
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    for part in 0..10_000 {
        if socket.send_part(&[b' '; 64], part == 0, false).await.is_err() {
            break;
        }
    }
    assert_eq!(socket.closed().await, too_large);
    // Megabytes are not read into memory, and the client still gets the reason.
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    let _ = socket.send(Message::text("x".repeat(8 << 20))).await;
    assert_eq!(socket.closed().await, too_large);
}

#[tokio::test]
async fn the_largest_message_by_default_is_8_mib() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    let text = r#"{"type":"ping","request_id":"large"}"#;
    socket.send(Message::text(format!("{text}{}", " ".repeat((8 << 20) - text.len())))).await.unwrap();
    assert_eq!(socket.next().await["request_id"], "large");
    let _ = socket.send(Message::text(" ".repeat((8 << 20) + 1))).await;
    assert_eq!(socket.closed().await, "1009 ws.message_too_large");
}

#[tokio::test]
async fn broken_frames_close_the_socket() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    let _ = socket.send_part(b"more", false, true).await;
    assert_eq!(socket.closed().await, "1002 ws.protocol_error");
    for parts in [vec![b"{\"\xff\"}".as_slice()], vec![b"{\"\xc3".as_slice(), b"\xff\"}".as_slice()]] {
        let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
        for (index, part) in parts.iter().enumerate() {
            let _ = socket.send_part(part, index == 0, index + 1 == parts.len()).await;
        }
        assert_eq!(socket.closed().await, "1007 ws.protocol_error");
    }
}

#[tokio::test]
async fn a_slow_reader_gets_every_event_and_does_not_delay_others() {
    let t = TestService::start().await;
    let text = "0123456789abcdef".repeat(3_000);
    let nodes: Vec<Value> = (0..40)
        .map(|index| json!({"name": format!("n{index}"), "type": "template", "template": text}))
        .collect();
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).create().await;
    let mut slow = Socket::for_workflow(&t, &workflow, &[]).await;
    let mut runs = Vec::new();
    for _ in 0..6 {
        let run = begin(&t, &workflow).await;
        slow.say(&subscribe(&run, 0)).await;
        runs.push(run);
    }
    // It has not read a byte, and all others continue.
    let mut quick = Socket::for_workflow(&t, &workflow, &[]).await;
    for run in &runs {
        quick.say(&subscribe(run, 0)).await;
        quick.until("run_completed").await;
    }
    quick.close().await;
    let mut last = vec![0; runs.len()];
    let mut open = runs.len();
    while open > 0 {
        let event = slow.next().await;
        let at = runs.iter().position(|run| event["run_id"] == **run).unwrap();
        last[at] += 1;
        assert_eq!(event["seq"], last[at]);
        open -= usize::from(event["type"] == "run_completed");
    }
    slow.close().await;
}

/// Reads until the socket is closed.
async fn stays(socket: &mut Socket) {
    while socket.try_next().await.is_ok() {}
}

#[tokio::test]
async fn revoked_and_expired_callers_are_disconnected_within_a_minute() {
    let t = guarded().manual_clock().start().await;
    let workflow = t.workflow().by(admin(&t)).create().await;
    let scopes = json!({"scopes": ["workflows:execute"], "expires_in": 3_600});
    let ((revoked, first), (_, second)) = (token(&t, scopes.clone()).await, token(&t, scopes).await);
    let mut gone = Socket::for_workflow(&t, &workflow, &[("authorization", &bearer(&first))]).await;
    let mut expiring = Socket::for_workflow(&t, &workflow, &[("authorization", &bearer(&second))]).await;
    let mut staying = Socket::for_workflow(&t, &workflow, &[("authorization", &bearer(BOOTSTRAP))]).await;
    super::call(&t, "DELETE", &format!("/api/admin/service-tokens/{revoked}"), &json!({"reason": "lost"}))
        .await;
    let before = t.clock().now();
    // The others respond to their pings meanwhile.
    let put_out = async {
        tokio::select! {
            closed = gone.closed() => closed,
            () = stays(&mut expiring) => panic!("a socket with a valid token was closed"),
            () = stays(&mut staying) => panic!("a socket with a valid token was closed"),
        }
    };
    let closed = t.while_time_passes_in(Duration::from_millis(100), put_out).await;
    assert_eq!(closed, "4401 auth.invalid_token");
    assert!(t.clock().now() - before <= TimeDelta::minutes(1));
    // Every ping gets its response before the next tick, and before the clock jump, which therefore makes no socket
    // idle.
    for tick in [TICK, TICK, TICK, Duration::ZERO] {
        for socket in [&mut expiring, &mut staying] {
            assert!(socket.settle().await.is_empty(), "the callers still have access");
        }
        t.advance(tick);
    }
    t.advance(Duration::from_secs(3_600));
    let put_out = async {
        tokio::select! {
            closed = expiring.closed() => closed,
            () = stays(&mut staying) => panic!("the other socket was closed, too"),
        }
    };
    assert_eq!(t.while_time_passes_in(Duration::from_millis(100), put_out).await, "4401 auth.token_expired");
}

#[tokio::test]
async fn a_silent_client_is_disconnected_after_a_minute() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().create().await;
    // A client that reads responds to pings automatically.
    let mut alive = Socket::for_workflow(&t, &workflow, &[]).await;
    let path = format!("/ws/workflow/{}", workflow.id);
    let silent = t.raw().await.request("GET", &path, &HANDSHAKE, "").await.expect(101);
    let silent = silent.finish().await.rest();
    let living = async { while alive.try_next().await.is_ok() {} };
    let heard = t.while_time_passes_in(Duration::from_millis(100), async {
        tokio::select! {
            heard = silent => heard,
            () = living => panic!("the responding socket was closed"),
        }
    });
    let heard = heard.await;
    // First the pings, then the reason.
    assert!(heard.starts_with(&[0x89, 0]), "{heard:?}");
    let reason = b"ws.idle";
    assert!(heard.ends_with(reason), "{heard:?}");
    let code = &heard[heard.len() - reason.len() - 2..heard.len() - reason.len()];
    assert_eq!(u16::from_be_bytes([code[0], code[1]]), 4408);
    assert!(alive.settle().await.is_empty());
    alive.close().await;
}

#[tokio::test]
async fn a_shutdown_closes_every_socket_after_the_runs() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(0.5, "done")).create().await;
    let mut idle = Socket::for_workflow(&t, &workflow, &[]).await;
    let mut reading = Socket::for_workflow(&t, &workflow, &[]).await;
    let run = begin(&t, &workflow).await;
    reading.say(&subscribe(&run, 0)).await;
    reading.until("step_started").await;
    let stopping = t.begin_stop();
    reading.until("run_completed").await;
    assert_eq!(reading.closed().await, "1012 service.draining");
    assert_eq!(idle.closed().await, "1012 service.draining");
    within("the stop", stopping.done()).await;
}

#[tokio::test]
async fn sockets_leave_nothing_behind() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(30.0, "late")).create().await;
    let run = begin(&t, &workflow).await;
    for _ in 0..20 {
        let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
        socket.say(&subscribe(&run, 0)).await;
        socket.next().await;
        drop(socket);
    }
    handshake(&t, "/ws/workflow/none", &[]).await.expect(404);
    t.post(&format!("/api/runs/{run}/cancel"), "").await;
    until("no reader remains", async || t.load().await.streams == 0).await;
}
