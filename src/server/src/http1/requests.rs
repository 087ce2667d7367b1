//! Tracks one connection's requests: which bytes the HTTP library may read, and when.

use actix_http::error::ParseError;
use actix_http::h1::{Codec, Message};
use actix_http::{ConnectionType, Request, ServiceConfig};
use bytes::BytesMut;
use tokio_util::codec::Decoder;

use super::framing::{FramedBytes, Framing};
use crate::http::{Interim, Unreadable};

/// Maximum head bytes, limited by the library's buffer.
pub(super) const MAX_HEAD: usize = 128 * 1024 - 1;

/// The reason why these and all following bytes must not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The head is unreadable.
    Unreadable(Unreadable),
    /// The body is broken.
    Broken,
    /// The bytes follow the connection's last request.
    Over,
}

/// The readable part of received bytes.
pub(super) struct ReadableBytes {
    /// Bytes that the library may read.
    pub(super) passed: usize,
    /// Bytes examined. Those after the passed ones are incomplete.
    pub(super) judged: usize,
    /// The reason to stop reading.
    pub(super) stop: Option<Stop>,
}

/// The requests on one connection.
pub(super) struct Requests {
    framing: Framing,
    config: ServiceConfig,
    /// Whether the connection ends with the current request.
    is_last: bool,
    /// Whether the response to the last request has not been flushed yet.
    is_open: bool,
    /// Bytes of that request's body so far.
    body: u64,
}

impl Requests {
    pub(super) fn new(config: ServiceConfig) -> Self {
        Self { framing: Framing::default(), config, is_last: false, is_open: false, body: 0 }
    }

    /// Whether the next byte belongs to a head.
    pub(super) fn is_in_head(&self) -> bool {
        self.framing.is_in_head()
    }

    /// Bytes of the last request's body so far.
    pub(super) fn body(&self) -> u64 {
        self.body
    }

    /// Whether the next head waits for a response.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_open && self.framing.is_in_head()
    }

    /// Records that the response to the last request was flushed.
    pub(super) fn answered(&mut self) {
        self.is_open = false;
    }

    /// Examines bytes. The first `judged` were already examined by the previous call and are incomplete.
    pub(super) fn judge(&mut self, bytes: &mut [u8], judged: usize) -> ReadableBytes {
        let (mut passed, mut at) = (0, judged);
        let mut stop = None;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.is_last && self.framing.is_in_head() {
                stop = Some(Stop::Over);
                break;
            }
            if self.is_waiting() {
                break;
            }
            let Ok(part) = self.framing.next(rest) else {
                let is_head = self.framing.is_in_head();
                stop = Some(if is_head { Stop::Unreadable(Unreadable::Malformed) } else { Stop::Broken });
                break;
            };
            match part {
                FramedBytes::Begun(read) => at += read,
                FramedBytes::Body(read) => {
                    at += read;
                    passed = at;
                    self.body = self.body.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
                }
                FramedBytes::Head(read) => {
                    at += read;
                    if let Err(unreadable) = self.head(bytes.get_mut(passed..at).unwrap_or_default()) {
                        stop = Some(Stop::Unreadable(unreadable));
                        break;
                    }
                    passed = at;
                }
            }
            if at - passed > MAX_HEAD {
                stop = Some(Stop::Unreadable(Unreadable::TooLarge));
                break;
            }
        }
        ReadableBytes { passed, judged: at, stop }
    }

    /// Starts a request.
    fn head(&mut self, head: &mut [u8]) -> Result<(), Unreadable> {
        let request = self.read(head)?;
        self.body = 0;
        self.is_open = true;
        self.is_last = request.head().connection_type() == ConnectionType::Close;
        if request.head().expect() {
            hide_expectation(head);
        }
        Ok(())
    }

    /// Parses a head with the library's own code.
    fn read(&self, head: &[u8]) -> Result<Request, Unreadable> {
        if head.len() > MAX_HEAD {
            return Err(Unreadable::TooLarge);
        }
        match Codec::new(self.config.clone()).decode(&mut BytesMut::from(head)) {
            Ok(Some(Message::Item(request))) => Ok(request),
            Err(ParseError::TooLarge) => Err(Unreadable::TooLarge),
            Ok(_) | Err(_) => Err(Unreadable::Malformed),
        }
    }
}

/// Renames the `Expect` headers in a head.
fn hide_expectation(head: &mut [u8]) {
    for line in head.split_inclusive_mut(|byte| *byte == b'\n') {
        if let Some((name, [b':', ..])) = line.split_first_chunk_mut::<{ Interim::HEADER.len() }>()
            && name.eq_ignore_ascii_case(b"expect")
        {
            *name = *Interim::HEADER;
        }
    }
}
