//! Passes only readable requests from a connection to the HTTP library.
//!
//! The library answers unreadable requests itself, without the service's error headers and body. Heads and chunk lines
//! are therefore held back until they are complete. If a head is unreadable or late, the library gets a request of our
//! making instead, which the application answers ([`Refusal`]).
//!
//! The library gets a head only after the previous response was flushed. It encodes each response for the head read
//! last: if a HEAD was read too early, the response to a GET would have no body.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_http::ServiceConfig;
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::peer::now;
use super::requests::{Requests, Stop};
use crate::http::{Refusal, Unreadable};

/// Timeout for a head: the first one from connection start, later ones from their first byte.
const HEAD_LIMIT: Duration = Duration::from_secs(5);

/// An empty line, which the library skips but treats as the end of idleness.
const BEGUN: &[u8] = b"\r\n";

/// Body bytes that the library buffers for a reader. It reads no more until the reader takes some, and is not woken if
/// the reader is dropped instead.
const KEPT_BODY: u64 = 32 * 1024;

/// Bytes per read of discarded input.
const DISCARDED_AT_ONCE: usize = 8 * 1024;

/// Maximum bytes read past a request before its response was flushed. Reading ahead detects when the client closes. A
/// client that has sent more is not read until then: its close is detected by the next write, such as a stream's ping.
const READ_AHEAD: usize = 8 * 1024;

/// The incoming bytes of a connection.
pub(super) struct Inbound {
    requests: Requests,
    refusal: Refusal,
    /// Bytes that the library must not read yet: an incomplete head or line, or requests that wait for a response.
    held: BytesMut,
    /// The number of held bytes that were examined and are incomplete.
    judged: usize,
    /// The next bytes for the library.
    ready: BytesMut,
    /// Whether the last request was read. Further input is discarded until the client closes the connection (RFC 9112,
    /// 9.6).
    is_over: bool,
    /// Whether the client has closed its side. A broken body has the same effect for the library.
    is_closed: bool,
    /// Whether bytes arrived after the last request.
    has_more: bool,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Inbound {
    pub(super) fn new(config: ServiceConfig) -> Self {
        Self {
            requests: Requests::new(config),
            refusal: Refusal::default(),
            held: BytesMut::new(),
            judged: 0,
            ready: BytesMut::new(),
            is_over: false,
            is_closed: false,
            has_more: false,
            deadline: Some(now() + HEAD_LIMIT),
            timer: None,
        }
    }

    /// Tells the application why the last request is refused.
    pub(super) fn refusal(&self) -> &Refusal {
        &self.refusal
    }

    /// Whether the library may hold part of an abandoned body.
    pub(super) fn may_hold_body(&self) -> bool {
        !self.requests.is_in_head() || self.requests.body() > KEPT_BODY
    }

    /// Whether the client may still send unneeded input.
    pub(super) fn has_more(&self) -> bool {
        self.has_more || !self.held.is_empty()
    }

    /// Whether the library gets no more than the held bytes.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Releases the next request after the previous response was flushed. Returns whether bytes were waiting.
    pub(super) fn answered(&mut self) -> bool {
        self.requests.answered();
        let has_waited = !self.held.is_empty();
        self.judge_held();
        has_waited
    }

    pub(super) fn poll_read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            // Reading nothing would look like the client's end.
            return Poll::Ready(Ok(()));
        }
        loop {
            if !self.ready.is_empty() {
                let size = self.ready.len().min(buffer.remaining());
                buffer.put_slice(self.ready.get(..size).unwrap_or_default());
                self.ready.advance(size);
                return Poll::Ready(Ok(()));
            }
            if self.is_over {
                return self.poll_discard(stream, context);
            }
            let is_waiting = self.requests.is_waiting() && !self.held.is_empty();
            if is_waiting && (self.is_closed || self.held.len() >= READ_AHEAD) {
                // Flushing the response wakes the connection.
                return Poll::Pending;
            }
            if self.is_closed {
                return Poll::Ready(Ok(()));
            }
            let before = buffer.filled().len();
            if Pin::new(&mut *stream).poll_read(context, buffer)?.is_pending() {
                ready!(self.poll_late(context));
                self.stop(Stop::Unreadable(Unreadable::Late));
                continue;
            }
            let fresh = buffer.filled_mut().get_mut(before..).unwrap_or_default();
            self.is_closed = fresh.is_empty();
            let passed = self.take(fresh);
            buffer.set_filled(before + passed);
            if passed > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Adds received bytes. Returns the number of bytes that the library can read in place.
    fn take(&mut self, fresh: &mut [u8]) -> usize {
        if !self.held.is_empty() {
            self.held.extend_from_slice(fresh);
            self.judge_held();
            return 0;
        }
        let verdict = self.requests.judge(fresh, 0);
        self.held.extend_from_slice(fresh.get(verdict.passed..).unwrap_or_default());
        self.judged = verdict.judged.saturating_sub(verdict.passed);
        self.follow(verdict.stop, verdict.passed > 0);
        verdict.passed
    }

    /// Releases the readable part of the held bytes.
    fn judge_held(&mut self) {
        let verdict = self.requests.judge(&mut self.held, self.judged);
        self.ready.unsplit(self.held.split_to(verdict.passed));
        self.judged = verdict.judged.saturating_sub(verdict.passed);
        self.follow(verdict.stop, verdict.passed > 0);
    }

    /// Stops reading, or sets the deadline for the current head.
    fn follow(&mut self, stop: Option<Stop>, has_passed: bool) {
        if let Some(stop) = stop {
            self.stop(stop);
        } else if !self.requests.is_in_head() || self.judged == 0 {
            (self.deadline, self.timer) = (None, None);
        } else if has_passed || self.deadline.is_none() {
            (self.deadline, self.timer) = (Some(now() + HEAD_LIMIT), None);
            self.ready.extend_from_slice(BEGUN);
        }
    }

    /// Ready when the current head is late.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline))).as_mut().poll(context)
    }

    fn stop(&mut self, stop: Stop) {
        self.held.clear();
        self.judged = 0;
        (self.deadline, self.timer) = (None, None);
        self.has_more = true;
        match stop {
            Stop::Unreadable(why) => {
                self.refusal.set(why);
                self.ready.extend_from_slice(Refusal::REQUEST.as_bytes());
                self.is_over = true;
            }
            Stop::Broken => {
                self.refusal.break_body();
                self.is_closed = true;
            }
            Stop::Over => self.is_over = true,
        }
    }

    /// Discards input until the client closes the connection.
    pub(super) fn poll_discard(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; DISCARDED_AT_ONCE];
        loop {
            let mut discarded = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut discarded))?;
            if discarded.filled().is_empty() {
                self.is_closed = true;
                return Poll::Ready(Ok(()));
            }
            self.has_more = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use actix_http::h1::{Codec, Message};
    use proptest::prelude::*;
    use tokio_util::codec::Decoder;

    use super::super::requests::MAX_HEAD;
    use super::*;

    /// Yields input piece by piece, then the end.
    struct Pieces(VecDeque<Vec<u8>>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some(mut piece) = self.0.pop_front() {
                let rest = piece.split_off(piece.len().min(buffer.remaining()));
                buffer.put_slice(&piece);
                if !rest.is_empty() {
                    self.0.push_front(rest);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    fn config() -> ServiceConfig {
        let tasks = tokio::task::LocalSet::new();
        let _current = tasks.enter();
        ServiceConfig::default()
    }

    /// The bytes passed to the library if each response is flushed as soon as the next request waits for it.
    fn read(pieces: impl IntoIterator<Item = Vec<u8>>) -> (Vec<u8>, Inbound) {
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        let (mut inbound, mut stream) = (Inbound::new(config()), Pieces(pieces.collect()));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let (mut all, mut bytes) = (Vec::new(), [0; 1024]);
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let Poll::Ready(read) = inbound.poll_read(&mut stream, &mut context, &mut buffer) else {
                assert!(inbound.answered());
                continue;
            };
            read.unwrap();
            if buffer.filled().is_empty() {
                return (all, inbound);
            }
            all.extend_from_slice(buffer.filled());
        }
    }

    fn bytewise(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        bytes.iter().map(|byte| vec![*byte])
    }

    /// The requests that the library reads, with their bodies; `None` if it cannot read all.
    fn requests(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
        let (mut codec, mut bytes) = (Codec::new(config()), BytesMut::from(bytes));
        let mut requests: Vec<(String, Vec<u8>)> = Vec::new();
        loop {
            match codec.decode(&mut bytes) {
                Ok(Some(Message::Item(request))) => {
                    let head = request.head();
                    let names = format!("{} {} {}", head.method, head.uri, head.headers.len());
                    requests.push((names, Vec::new()));
                }
                Ok(Some(Message::Chunk(chunk))) => {
                    requests.last_mut().unwrap().1.extend(chunk.unwrap_or_else(|| "end".into()));
                }
                Ok(None) => return Some(requests),
                Err(_) => return None,
            }
        }
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const SHUT: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    const CHUNKS: &[u8] =
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n";

    #[test]
    fn a_head_waits_for_the_previous_response() {
        let (mut inbound, mut context) =
            (Inbound::new(config()), Context::from_waker(std::task::Waker::noop()));
        let mut stream = Pieces([GET.repeat(5_000)].into());
        let mut bytes = [0; 1024];
        let mut next = |inbound: &mut Inbound| {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = inbound.poll_read(&mut stream, &mut context, &mut buffer);
            read.map(|read| read.map(|()| buffer.filled().to_vec()).unwrap())
        };
        for _ in 0..50 {
            assert_eq!(next(&mut inbound), Poll::Ready(GET.to_vec()));
            assert_eq!(next(&mut inbound), Poll::Pending);
            assert!(inbound.held.len() < READ_AHEAD + 1024 && inbound.deadline.is_none());
            assert!(inbound.answered());
        }
    }

    #[test]
    fn the_deadline_of_a_head_begins_after_the_previous_response() {
        let mut stream = Pieces([GET.to_vec(), GET[..9].to_vec()].into());
        let (mut inbound, mut context) =
            (Inbound::new(config()), Context::from_waker(std::task::Waker::noop()));
        let mut bytes = [0; 1024];
        for _ in 0..2 {
            let _ = inbound.poll_read(&mut stream, &mut context, &mut ReadBuf::new(&mut bytes));
        }
        assert!(inbound.is_closed() && inbound.deadline.is_none());
        assert!(inbound.answered() && inbound.deadline.is_some());
    }

    #[test]
    fn nothing_after_the_last_request_is_read() {
        let sent = [GET, CHUNKS, SHUT, GET].concat();
        for pieces in [vec![sent.clone()], bytewise(&sent).collect()] {
            let (read, inbound) = read(pieces);
            assert_eq!(requests(&read), requests(&[GET, CHUNKS, SHUT].concat()));
            assert!(inbound.has_more());
        }
        let (all, inbound) = read([[GET, SHUT].concat()]);
        assert_eq!(all, [GET, SHUT].concat());
        assert!(!inbound.has_more());
    }

    #[test]
    fn an_unreadable_request_is_replaced_by_an_internal_one() {
        let large = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(MAX_HEAD));
        for bad in
            [b"nonsense\r\n\r\n".as_slice(), b"GET / HTTP/1.1\n", b"GET / HTTP/1.1\r\n\r\n", large.as_bytes()]
        {
            let sent = [GET, bad, GET].concat();
            for pieces in [vec![sent.clone()], bytewise(&sent).collect()] {
                let (read, inbound) = read(pieces);
                let expected = [GET, Refusal::REQUEST.as_bytes()].concat();
                assert_eq!(
                    requests(&read),
                    requests(&expected),
                    "{}",
                    bad[..20.min(bad.len())].escape_ascii()
                );
                assert!(inbound.has_more());
            }
        }
        assert_eq!(requests(Refusal::REQUEST.as_bytes()).unwrap().len(), 1);
        let whole = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD - 32));
        assert_eq!(read([whole.clone().into_bytes()]).0, whole.as_bytes());
    }

    #[test]
    fn an_expectation_is_hidden_from_the_library() {
        let head = |name: &str| {
            format!(
                "POST /expect: HTTP/1.1\r\nHost: a\r\n{name}: 100-continue\r\nX-Expect: y\r\nContent-Length: 2\r\n\r\n{{}}"
            )
        };
        assert_eq!(read([head("eXpect").into_bytes()]).0, head("Awaits").as_bytes());
        assert_eq!(read(bytewise(head("Expect").as_bytes())).0, head("Awaits").as_bytes());
    }

    proptest! {
        /// The library accepts everything passed to it, and gets the same bytes however the input is split.
        #[test]
        fn passed_bytes_are_readable_by_the_library(
            order in prop::collection::vec(0..3_usize, 1..4),
            noise in prop::collection::vec((0..250_usize, any::<bool>(), prop::sample::select(b"\r\n\0 :;0aZ,\x7f\xff".as_slice())), 0..3),
            cuts in prop::collection::vec(1..60_usize, 0..20),
        ) {
            let mut sent: Vec<u8> = order.iter().flat_map(|which| [GET, CHUNKS, SHUT][*which]).copied().collect();
            for (at, is_more, byte) in noise {
                if at < sent.len() {
                    if is_more { sent.insert(at, byte) } else { sent[at] = byte }
                }
            }
            let (whole, _) = read([sent.clone()]);
            let expected = requests(&whole);
            prop_assert!(expected.is_some(), "{}", whole.escape_ascii());
            let (mut rest, mut pieces) = (sent.as_slice(), Vec::new());
            for cut in cuts {
                let (piece, more) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece.to_vec());
                rest = more;
            }
            pieces.push(rest.to_vec());
            prop_assert_eq!(requests(&read(pieces).0), expected);
        }
    }
}
