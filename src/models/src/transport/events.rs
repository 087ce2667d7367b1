//! The answer's body as documents: the events of a stream, or the one document that stands there instead.

use std::fmt;
use std::pin::Pin;

use eventsource_stream::{EventStream, EventStreamError};
use futures_util::stream::unfold;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use net::{NetError, Response};

/// Bytes of one line; what is longer is no event of a model.
const MOST_LINE: usize = 1024 * 1024;
/// Some editors put it at the start; the reader of events does not survive it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The next of the answer.
pub(super) enum Item {
    /// A document.
    Data(String),
    /// The stream says that it is over.
    Done,
    /// The body is over.
    End,
    /// The body cannot be had.
    Fault(NetError),
    /// The body cannot be understood.
    Garbage(&'static str),
}

type Bodies = Pin<Box<dyn Stream<Item = Result<Vec<u8>, Stop>> + Send>>;

/// Reads documents.
pub(super) enum Items {
    /// Of a stream of events.
    Events(Pin<Box<EventStream<Bodies>>>),
    /// The only one.
    Document(Option<Result<String, Stop>>),
}

/// Why a body is not read on.
#[derive(Debug)]
pub(super) enum Stop {
    Fault(NetError),
    LongLine,
    NoText,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is not read on")
    }
}

impl From<Stop> for Item {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Fault(fault) => Self::Fault(fault),
            Stop::LongLine => Self::Garbage("a line of the answer does not end"),
            Stop::NoText => Self::Garbage("the answer is not UTF-8"),
        }
    }
}

impl Items {
    /// Looks at how the body begins: a document begins with a brace, a stream of events never does. What the head says
    /// of it is wrong too often.
    pub(super) async fn read(mut answer: Response) -> Result<Self, NetError> {
        let mut start = Vec::new();
        let mut ended = false;
        while !ended && (start.len() < BYTE_ORDER_MARK.len() || start.trim_ascii().is_empty()) {
            match answer.chunk().await? {
                Some(piece) => start.extend_from_slice(&piece),
                None => ended = true,
            }
        }
        let start = start.strip_prefix(BYTE_ORDER_MARK).map(<[u8]>::to_vec).unwrap_or(start);
        if start.trim_ascii_start().first() == Some(&b'{') {
            let mut body = start;
            while let Some(piece) = answer.chunk().await? {
                body.extend_from_slice(&piece);
            }
            return Ok(Self::Document(Some(String::from_utf8(body).map_err(|_| Stop::NoText))));
        }
        let events: Bodies = Box::pin(pieces(answer, start));
        Ok(Self::Events(Box::pin(EventStream::new(events))))
    }

    pub(super) async fn next(&mut self) -> Item {
        let events = match self {
            Self::Document(document) => {
                return match document.take() {
                    Some(Ok(text)) => Item::Data(text),
                    Some(Err(stop)) => stop.into(),
                    None => Item::Done,
                };
            }
            Self::Events(events) => events,
        };
        match events.next().await {
            Some(Ok(event)) if event.data.trim() == "[DONE]" => Item::Done,
            Some(Ok(event)) => Item::Data(event.data),
            Some(Err(EventStreamError::Transport(stop))) => stop.into(),
            Some(Err(EventStreamError::Utf8(_))) => Stop::NoText.into(),
            Some(Err(EventStreamError::Parser(_))) => Item::Garbage("the answer is not an event stream"),
            None => Item::End,
        }
    }
}

impl Items {
    /// Nothing more is wanted. Where the body's end is here already, the connection can be used again.
    pub(super) fn let_go(&mut self) {
        if let Self::Events(events) = self {
            let _ = events.next().now_or_never();
        }
    }
}

/// The rest of a body behind its start, as long as its lines end.
fn pieces(answer: Response, start: Vec<u8>) -> impl Stream<Item = Result<Vec<u8>, Stop>> + Send {
    unfold((Some(answer), Some(start), 0_usize), |(answer, start, line)| async move {
        let mut answer = answer?;
        let piece = match start {
            Some(start) => start,
            None => match answer.chunk().await {
                Ok(Some(piece)) => piece.to_vec(),
                Ok(None) => return None,
                Err(fault) => return Some((Err(Stop::Fault(fault)), (None, None, 0))),
            },
        };
        let last_end = piece.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
        let open = match last_end {
            Some(at) => piece.len().saturating_sub(at),
            None => line.saturating_add(piece.len()),
        };
        if open > MOST_LINE {
            return Some((Err(Stop::LongLine), (None, None, 0)));
        }
        Some((Ok(piece), (Some(answer), None, open)))
    })
}
