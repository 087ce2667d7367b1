//! Splits the response body into documents: stream events, or one JSON document instead of a stream.

use std::fmt;
use std::pin::Pin;

use eventsource_stream::{EventStream, EventStreamError};
use futures_util::stream::unfold;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use net::{NetError, Response};

/// Maximum bytes per line; a longer line is not a model's event.
const MOST_LINE: usize = 1024 * 1024;
/// Some editors add a byte order mark at the start; the event reader cannot handle it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The next item of the body.
pub(super) enum BodyItem {
    /// A document.
    Data(String),
    /// The stream's end marker.
    Done,
    /// The body has ended.
    End,
    /// The body cannot be received.
    Fault(NetError),
    /// The body is not valid.
    Garbage(&'static str),
}

type Bodies = Pin<Box<dyn Stream<Item = Result<Vec<u8>, ReadStop>> + Send>>;

/// Reads documents from a body.
pub(super) enum Items {
    /// An event stream.
    Events(Pin<Box<EventStream<Bodies>>>),
    /// A single document.
    Document(Option<Result<String, ReadStop>>),
}

/// The reason that reading stopped.
#[derive(Debug)]
pub(super) enum ReadStop {
    Fault(NetError),
    LongLine,
    NoText,
}

impl fmt::Display for ReadStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is not read on")
    }
}

impl From<ReadStop> for BodyItem {
    fn from(stop: ReadStop) -> Self {
        match stop {
            ReadStop::Fault(fault) => Self::Fault(fault),
            ReadStop::LongLine => Self::Garbage("a line of the answer does not end"),
            ReadStop::NoText => Self::Garbage("the answer is not UTF-8"),
        }
    }
}

impl Items {
    /// Detects the format by the first byte: a document begins with a brace, an event stream never does. The content
    /// type is wrong too often.
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
            return Ok(Self::Document(Some(String::from_utf8(body).map_err(|_| ReadStop::NoText))));
        }
        let events: Bodies = Box::pin(pieces(answer, start));
        Ok(Self::Events(Box::pin(EventStream::new(events))))
    }

    pub(super) async fn next(&mut self) -> BodyItem {
        let events = match self {
            Self::Document(document) => {
                return match document.take() {
                    Some(Ok(text)) => BodyItem::Data(text),
                    Some(Err(stop)) => stop.into(),
                    None => BodyItem::Done,
                };
            }
            Self::Events(events) => events,
        };
        match events.next().await {
            Some(Ok(event)) if event.data.trim() == "[DONE]" => BodyItem::Done,
            Some(Ok(event)) => BodyItem::Data(event.data),
            Some(Err(EventStreamError::Transport(stop))) => stop.into(),
            Some(Err(EventStreamError::Utf8(_))) => ReadStop::NoText.into(),
            Some(Err(EventStreamError::Parser(_))) => BodyItem::Garbage("the answer is not an event stream"),
            None => BodyItem::End,
        }
    }
}

impl Items {
    /// Stops reading. If the body has already ended, the connection can be reused.
    pub(super) fn let_go(&mut self) {
        if let Self::Events(events) = self {
            let _ = events.next().now_or_never();
        }
    }
}

/// The body after its `start`; fails on a line without an end.
fn pieces(answer: Response, start: Vec<u8>) -> impl Stream<Item = Result<Vec<u8>, ReadStop>> + Send {
    unfold((Some(answer), Some(start), 0_usize), |(answer, start, line)| async move {
        let mut answer = answer?;
        let piece = match start {
            Some(start) => start,
            None => match answer.chunk().await {
                Ok(Some(piece)) => piece.to_vec(),
                Ok(None) => return None,
                Err(fault) => return Some((Err(ReadStop::Fault(fault)), (None, None, 0))),
            },
        };
        let last_end = piece.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
        let open = match last_end {
            Some(at) => piece.len().saturating_sub(at),
            None => line.saturating_add(piece.len()),
        };
        if open > MOST_LINE {
            return Some((Err(ReadStop::LongLine), (None, None, 0)));
        }
        Some((Ok(piece), (Some(answer), None, open)))
    })
}
