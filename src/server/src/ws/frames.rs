//! Enforces limits on incoming frames byte by byte, before buffering anything.
//!
//! The codec after this stage checks a frame's length only once the whole frame has arrived, and does not limit
//! messages with several frames.
//!
//! Source: RFC 6455, section 5.2.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::mpsc;
use tokio_util::sync::PollSemaphore;

use super::intake::MessageIntake;
use super::{Heard, LastReceived, SocketFault};

/// Maximum bytes of a control frame.
const MOST_CONTROL: u64 = 125;

/// The state shared between the frames and their session.
pub(super) struct FrameState {
    pub(super) heard: mpsc::UnboundedSender<Heard>,
    /// Whether only the client's close frame is awaited.
    deaf: Cell<bool>,
    intake: MessageIntake,
}

impl FrameState {
    pub(super) fn new(heard: mpsc::UnboundedSender<Heard>, intake: MessageIntake) -> Self {
        Self { heard, deaf: Cell::new(false), intake }
    }

    /// Completes a message, whose bytes are charged until they are dropped.
    pub(super) fn hold(&self, message: Bytes) -> Bytes {
        self.intake.hold(message)
    }

    /// Ignores everything except the client's close.
    pub(super) fn stop_listening(&self) {
        self.deaf.set(true);
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.deaf.get()
    }

    /// Reports a fault and ignores all later frames.
    pub(super) fn fault(&self, fault: SocketFault) {
        if !self.is_deaf() {
            self.stop_listening();
            let _ = self.heard.send(Heard::Fault(fault));
        }
    }
}

/// Client bytes for the codec; a new message starts only when the previous one has been taken.
pub(super) struct Frames<S> {
    stream: S,
    shared: Rc<FrameState>,
    last_received: Arc<LastReceived>,
    place: PollSemaphore,
    chunk: Bytes,
    header: FrameHeader,
    /// Bytes of the frame's payload that have not arrived.
    left: u64,
    /// Whether these bytes go to the codec.
    passing: bool,
    /// Whether the frame is part of a message.
    is_data: bool,
    /// The message's bytes so far as declared by frame headers; `None` between messages.
    message: Option<u64>,
    /// The message's bytes that have arrived.
    arrived: usize,
    over: bool,
}

impl<S> Frames<S> {
    pub(super) fn new(
        stream: S,
        shared: Rc<FrameState>,
        last_received: Arc<LastReceived>,
        place: PollSemaphore,
    ) -> Self {
        Self {
            stream,
            shared,
            last_received,
            place,
            chunk: Bytes::new(),
            header: FrameHeader::default(),
            left: 0,
            passing: false,
            is_data: false,
            message: None,
            arrived: 0,
            over: false,
        }
    }

    /// Checks whether the frame may proceed; it may have to wait.
    fn judge(&mut self, frame: Frame, cx: &mut Context<'_>) -> Poll<Result<(), SocketFault>> {
        let begins = matches!(frame.opcode, 1 | 2);
        self.is_data = frame.opcode <= 2;
        let before = match (frame.opcode, self.message) {
            (1 | 2, None) => 0,
            (0, Some(before)) => before,
            (8..=10, _) if frame.length <= MOST_CONTROL => return Poll::Ready(Ok(())),
            _ => return Poll::Ready(Err(SocketFault::Protocol)),
        };
        let length = before.saturating_add(frame.length);
        if length > u64::try_from(self.shared.intake.limit()).unwrap_or(u64::MAX) {
            return Poll::Ready(Err(SocketFault::TooLarge));
        }
        if begins && let Some(place) = ready!(self.place.poll_acquire(cx)) {
            place.forget();
        }
        if begins {
            self.arrived = 0;
        }
        self.message = (!frame.last).then_some(length);
        Poll::Ready(Ok(()))
    }

    /// Charges the frame's next bytes.
    fn count(&mut self, bytes: usize) -> Result<(), SocketFault> {
        if !self.is_data {
            return Ok(());
        }
        self.arrived = self.arrived.saturating_add(bytes);
        self.shared.intake.grow(self.arrived)
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for Frames<S> {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.over {
                return Poll::Ready(None);
            }
            let frame = if this.left == 0 { this.header.read(&mut this.chunk) } else { None };
            if let Some(frame) = frame {
                this.passing = !this.shared.is_deaf();
                if this.passing
                    && let Err(fault) = ready!(this.judge(frame, cx))
                {
                    this.shared.fault(fault);
                    this.passing = false;
                }
                this.left = frame.length;
                let header = this.header.take();
                if this.passing {
                    return Poll::Ready(Some(Ok(header)));
                }
                this.over = frame.is_close();
                continue;
            }
            if this.chunk.is_empty() {
                match ready!(Pin::new(&mut this.stream).poll_next(cx)) {
                    Some(Ok(chunk)) => {
                        this.last_received.record();
                        this.chunk = chunk;
                    }
                    // A broken connection also means that the client has left.
                    Some(Err(_)) | None => this.over = true,
                }
                continue;
            }
            let here = usize::try_from(this.left).unwrap_or(usize::MAX).min(this.chunk.len());
            let piece = this.chunk.split_to(here);
            this.left = this.left.saturating_sub(u64::try_from(here).unwrap_or(u64::MAX));
            if this.passing && !this.shared.is_deaf() {
                if let Err(fault) = this.count(piece.len()) {
                    this.shared.fault(fault);
                    continue;
                }
                return Poll::Ready(Some(Ok(piece)));
            }
        }
    }
}

/// The parsed header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    opcode: u8,
    /// Whether the frame ends its message.
    last: bool,
    length: u64,
}

impl Frame {
    fn is_close(self) -> bool {
        self.opcode == 8
    }
}

/// The bytes of a header, at most 14, in pieces of any size.
#[derive(Default)]
struct FrameHeader {
    bytes: Vec<u8>,
}

impl FrameHeader {
    /// Takes missing header bytes from the chunk; `None` until the header is complete.
    fn read(&mut self, chunk: &mut Bytes) -> Option<Frame> {
        loop {
            let needed = self.needed();
            let missing = needed.saturating_sub(self.bytes.len());
            if missing == 0 {
                return self.frame();
            }
            let here = chunk.split_to(missing.min(chunk.len()));
            if here.is_empty() {
                return None;
            }
            self.bytes.extend_from_slice(&here);
        }
    }

    /// The header length as far as known.
    fn needed(&self) -> usize {
        let Some(second) = self.bytes.get(1) else { return 2 };
        let length = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        2 + length + mask
    }

    fn frame(&self) -> Option<Frame> {
        let (first, second) = (*self.bytes.first()?, *self.bytes.get(1)?);
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
        let length = match second & 0x7f {
            126 => number(self.bytes.get(2..4)?),
            127 => number(self.bytes.get(2..10)?),
            short => u64::from(short),
        };
        Some(Frame { opcode: first & 0x0f, last: first & 0x80 != 0, length })
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream};
    use kernel::SystemClock;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::body_budget::{BodyBudget, Sender};

    /// A masked frame with this opcode byte, `0x80` for the last one in its message.
    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![first];
        match length {
            0..126 => frame.push(0x80 | u8::try_from(length).unwrap()),
            126..65_536 => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                frame.push(0x80 | 127);
                frame.extend(u64::try_from(length).unwrap().to_be_bytes());
            }
        }
        frame.extend([1, 2, 3, 4]);
        frame.extend(vec![b'x'; length]);
        frame
    }

    struct Run {
        passed: Vec<u8>,
        faults: Vec<Heard>,
        /// Whether it ended instead of waiting.
        ended: bool,
    }

    /// The bytes passed on from pieces of this length, with permits for `places` messages.
    fn run(bytes: &[u8], piece: usize, places: usize, limit: usize) -> Run {
        let (heard, mut faults) = mpsc::unbounded_channel();
        let place = PollSemaphore::new(Arc::new(Semaphore::new(places)));
        let last_received = Arc::new(LastReceived::new(Arc::new(SystemClock::new())));
        let pieces: Vec<_> = bytes.chunks(piece).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let intake = MessageIntake::new(BodyBudget::default(), Sender::Known("a".to_owned()), limit);
        let shared = Rc::new(FrameState::new(heard, intake));
        let mut frames = Frames::new(stream::iter(pieces), shared, last_received, place);
        let mut passed = Vec::new();
        let ended = loop {
            match frames.next().now_or_never() {
                Some(Some(piece)) => passed.extend(piece.unwrap()),
                Some(None) => break true,
                None => break false,
            }
        };
        Run { passed, faults: std::iter::from_fn(|| faults.try_recv().ok()).collect(), ended }
    }

    #[test]
    fn valid_frames_pass_unchanged_however_they_are_split() {
        let mut bytes = Vec::new();
        for (first, length) in
            [(0x81, 5), (0x89, 0), (0x01, 70_000), (0x8a, 125), (0x00, 0), (0x80, 300), (0x88, 2)]
        {
            bytes.extend(frame(first, length));
        }
        for piece in [1, 2, 3, 7, 1_000, usize::MAX >> 1] {
            let run = run(&bytes, piece, 2, 70_300);
            assert!(run.passed == bytes && run.ended, "{piece}");
            assert_eq!(run.faults, []);
        }
    }

    #[test]
    fn messages_wait_for_a_permit_and_pings_do_not() {
        let two = [frame(0x89, 1), frame(0x81, 5), frame(0x89, 1), frame(0x81, 5)].concat();
        let run = run(&two, 4, 1, 100);
        let expected = [frame(0x89, 1), frame(0x81, 5), frame(0x89, 1)].concat();
        assert!(run.passed == expected && !run.ended);
    }

    #[test]
    fn an_oversized_frame_is_rejected_by_its_header_and_not_buffered() {
        let mut huge = vec![0x82, 0xff];
        huge.extend(u64::MAX.to_be_bytes());
        huge.extend([0; 64]);
        assert_eq!(run(&huge, 3, 1, 100).faults, [Heard::Fault(SocketFault::TooLarge)]);
        assert_eq!(run(&frame(0x81, 101), 9, 1, 100).faults, [Heard::Fault(SocketFault::TooLarge)]);
        let mut many = frame(0x01, 50);
        for _ in 0..6 {
            many.extend(frame(0x00, 10));
        }
        let buffered = many[..56 + 5 * 16].to_vec();
        many.extend(frame(0x80, 1));
        many.extend(frame(0x88, 0));
        many.extend(frame(0x81, 1));
        let run = run(&many, 11, 1, 100);
        assert!(run.passed == buffered, "five of the six were within the limit");
        assert_eq!(run.faults, [Heard::Fault(SocketFault::TooLarge)], "reported once");
        assert!(run.ended, "with the client's closing frame");
    }

    #[test]
    fn frames_in_a_wrong_order_are_rejected() {
        for wrong in [
            frame(0x80, 1),
            [frame(0x01, 1), frame(0x81, 1)].concat(),
            [frame(0x81, 1), frame(0x80, 1)].concat(),
            frame(0x89, 126),
            frame(0x83, 1),
            frame(0x8f, 1),
        ] {
            assert_eq!(run(&wrong, 5, 2, 1_000).faults, [Heard::Fault(SocketFault::Protocol)], "{wrong:?}");
        }
    }
}
