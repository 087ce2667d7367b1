//! Parses server-sent events from a body that arrives in pieces of any size.
//!
//! Implemented here because comments matter: `: reconnect` asks for a new connection, and `eventsource-stream` drops
//! comments.
//!
//! Source: HTML Standard, section 9.2.6 "Interpreting an event stream".

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use kernel::Clock;

use crate::error::Cause;
use crate::{ClientError, TransportFault};

/// Maximum event bytes; the service sends no larger event.
const MAX_EVENT: usize = 16 * 1024 * 1024;

/// The bytes of a response as they arrive.
pub(crate) type Body = BoxStream<'static, Result<Bytes, Cause>>;

/// A block between two empty lines, or a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Event { id: Option<String>, data: String },
    Comment(String),
}

/// Parses the frames of a body.
pub(crate) struct Frames {
    body: Body,
    decoder: Decoder,
    clock: Arc<dyn Clock>,
    idle_limit: Duration,
}

impl Frames {
    pub(crate) fn new(body: Body, clock: Arc<dyn Clock>, idle_limit: Duration) -> Self {
        Self { body, decoder: Decoder::default(), clock, idle_limit }
    }

    /// The next frame; `None` at the end of a complete body.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, ClientError> {
        loop {
            if let Some(frame) = self.decoder.frames.pop_front() {
                return Ok(Some(frame));
            }
            let piece = kernel::timeout(&*self.clock, self.idle_limit, self.body.next()).await;
            match piece.ok_or_else(|| ClientError::fault(TransportFault::Timeout))? {
                Some(Ok(bytes)) => self.decoder.feed(&bytes)?,
                Some(Err(cause)) => return Err(ClientError::cut(cause)),
                None if self.decoder.is_inside() => return Err(ClientError::fault(TransportFault::Cut)),
                None => return Ok(None),
            }
        }
    }
}

#[derive(Default)]
struct Decoder {
    frames: VecDeque<Frame>,
    line: Vec<u8>,
    /// Whether the last piece ended with a carriage return; a line feed that follows belongs to it.
    after_return: bool,
    begun: bool,
    id: Option<String>,
    data: Option<String>,
}

impl Decoder {
    /// Whether an event has begun but not ended.
    fn is_inside(&self) -> bool {
        !self.line.is_empty() || self.data.is_some() || self.id.is_some()
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_return = false;
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, tail) = rest.split_at(end);
            self.line.extend_from_slice(line);
            self.end_line()?;
            rest = match tail {
                [b'\r', b'\n', more @ ..] => more,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, more @ ..] => more,
                [] => &[],
            };
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > MAX_EVENT {
            return Err(ClientError::protocol("a line of the stream is too long"));
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), ClientError> {
        let line = String::from_utf8(std::mem::take(&mut self.line))
            .map_err(|_| ClientError::protocol("the stream is not UTF-8"))?;
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first { line.strip_prefix('\u{feff}').unwrap_or(&line) } else { &line };
        if line.is_empty() {
            let id = self.id.take();
            if let Some(data) = self.data.take() {
                self.frames.push_back(Frame::Event { id, data });
            }
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => self.frames.push_back(Frame::Comment(value.to_owned())),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "data" => self.add_data(value)?,
            // The service does not send `event` or `retry`; the standard ignores other fields.
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: &str) -> Result<(), ClientError> {
        match &mut self.data {
            None => self.data = Some(value.to_owned()),
            Some(data) if data.len().saturating_add(value.len()) < MAX_EVENT => {
                data.push('\n');
                data.push_str(value);
            }
            Some(_) => return Err(ClientError::protocol("an event of the stream is too long")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, data: &str) -> Frame {
        Frame::Event { id: Some(id.to_owned()), data: data.to_owned() }
    }

    fn decode(pieces: &[&[u8]]) -> Result<Vec<Frame>, ClientError> {
        let mut decoder = Decoder::default();
        for piece in pieces {
            decoder.feed(piece)?;
        }
        assert!(!decoder.is_inside());
        Ok(decoder.frames.into())
    }

    #[test]
    fn frames_are_the_same_wherever_the_body_is_split() {
        let comment = Frame::Comment("ping".to_owned());
        let expected = [
            event("s.1", "{\"t\":\"hé🦀\"}"),
            comment,
            event("s.2", "a\nb"),
            event("s.3", ""),
            event("s.4", "x"),
        ];
        let text = "id: s.1\ndata: {\"t\":\"hé🦀\"}\n\n: ping\n\nevent: e\nid:s.2\ndata:a\ndata: b\nnonsense\n\nid: s.3\ndata\n\nid: s.4\ndata: x\n\n";
        for text in [text.to_owned(), text.replace('\n', "\r\n"), text.replace('\n', "\r")] {
            let bytes = text.as_bytes();
            for first in 0..=bytes.len() {
                for second in [first, (first + 1).min(bytes.len()), bytes.len()] {
                    let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                    assert_eq!(
                        decode(&pieces).unwrap(),
                        expected,
                        "split at {first} and {second} of {text:?}"
                    );
                }
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode(&single).unwrap(), expected);
        }
    }

    #[test]
    fn a_leading_bom_and_a_lone_id_are_skipped() {
        assert_eq!(
            decode(&["\u{feff}data: a\n\n".as_bytes()]).unwrap(),
            [Frame::Event { id: None, data: "a".into() }]
        );
        assert_eq!(decode(&[b"id: s.1\n\nid: s.2\ndata: a\n\n\n\n"]).unwrap(), [event("s.2", "a")]);
    }

    #[test]
    fn invalid_utf8_and_endless_lines_are_rejected() {
        assert!(matches!(decode(&[b"data: \xff\n\n"]), Err(ClientError::Protocol { .. })));
        let mut decoder = Decoder::default();
        let piece = vec![b'x'; MAX_EVENT];
        assert!(decoder.feed(&piece).is_ok());
        assert!(decoder.feed(b"x").is_err());
    }
}
