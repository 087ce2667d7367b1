//! HTTP by hand: broken requests, cut connections, a body's exact bytes.

use std::net::{IpAddr, SocketAddr};

use bytes::{Bytes, BytesMut};
use client::{Answer, HeaderMap};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::within;

/// A connection.
pub struct Raw {
    stream: TcpStream,
    unread: BytesMut,
    slow: bool,
}

impl Raw {
    /// Connects.
    ///
    /// # Panics
    /// When the connection is refused.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.expect("the service listens"))
    }

    /// Connects from another address of this machine, as another caller.
    ///
    /// # Panics
    /// When the connection is refused.
    pub async fn connect_from(from: IpAddr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((from, 0).into()).expect("an address of this machine");
        Self::over(socket.connect(address).await.expect("the service listens"))
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket");
        Self { stream, unread: BytesMut::new(), slow: false }
    }

    /// Sends raw bytes; returns whether it succeeded. The service may have closed the connection, which is not a
    /// failure.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Sends a request with a body, which may be empty, and reads the response head.
    ///
    /// # Panics
    /// Without a response head.
    pub async fn request(
        mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> RawAnswer {
        let body = body.as_ref();
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            let address = self.stream.peer_addr().expect("a peer");
            head.push_str(&format!("Host: {address}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.write(bytes).await;
        self.answer().await
    }

    /// Reads a response head.
    ///
    /// # Panics
    /// Without a response head.
    pub async fn answer(mut self) -> RawAnswer {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            assert!(within("the head of an answer", self.fill()).await, "closed without an answer");
        };
        let head = self.unread.split_to(end + 4);
        let head = std::str::from_utf8(&head).expect("a head is ASCII").to_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|s| s.parse().ok());
        let parsed = lines.filter(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':').expect("a header line");
            (name.parse().expect("a header name"), value.trim().parse().expect("a header value"))
        });
        let headers: HeaderMap = parsed.collect();
        let is = |name: &str, wanted: &str| {
            headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(wanted.as_bytes()))
        };
        let length = headers.get("content-length").and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
        let framing = if is("transfer-encoding", "chunked") {
            Framing::Chunked
        } else {
            Framing::Length(length.unwrap_or(0))
        };
        RawAnswer {
            status: status.expect("a status line"),
            headers,
            connection: self,
            framing,
            over: false,
            behind: Bytes::new(),
        }
    }

    /// Reads until the service closes the connection.
    pub async fn rest(mut self) -> Vec<u8> {
        within("the service to close", async { while self.fill().await {} }).await;
        self.unread.to_vec()
    }

    /// Makes every later read take one byte.
    #[must_use]
    pub fn one_byte_at_a_time(mut self) -> Self {
        self.slow = true;
        self
    }

    /// Reads more bytes; false at the end.
    async fn fill(&mut self) -> bool {
        if self.slow {
            let byte = self.stream.read_u8().await;
            self.unread.extend(byte.iter());
            return byte.is_ok();
        }
        matches!(self.stream.read_buf(&mut self.unread).await, Ok(more) if more > 0)
    }
}

enum Framing {
    Length(usize),
    Chunked,
}

/// A response whose body is read piece by piece.
pub struct RawAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    connection: Raw,
    framing: Framing,
    over: bool,
    /// Bytes that arrived in the same piece as the awaited text, but after it.
    behind: Bytes,
}

impl RawAnswer {
    /// Asserts the status.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status);
        self
    }

    /// Returns a header's first value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Panics
    /// When the connection breaks before the end.
    pub async fn piece(&mut self) -> Option<Bytes> {
        let piece = self.try_piece().await;
        assert!(piece.is_some() || self.over, "the connection broke inside the body");
        piece
    }

    /// The next piece of the body; `None` at its end and when the connection breaks.
    pub async fn try_piece(&mut self) -> Option<Bytes> {
        if !self.behind.is_empty() {
            return Some(std::mem::take(&mut self.behind));
        }
        let wanted = match self.framing {
            _ if self.over => return None,
            Framing::Length(0) => {
                self.over = true;
                return None;
            }
            Framing::Length(left) => {
                if self.connection.unread.is_empty() && !self.connection.fill().await {
                    return None;
                }
                let taken = left.min(self.connection.unread.len());
                self.framing = Framing::Length(left - taken);
                return Some(self.connection.unread.split_to(taken).freeze());
            }
            Framing::Chunked => self.chunk_length().await?,
        };
        while self.connection.unread.len() < wanted + 2 {
            if !self.connection.fill().await {
                return None;
            }
        }
        let piece = self.connection.unread.split_to(wanted).freeze();
        let _ = self.connection.unread.split_to(2);
        if wanted == 0 {
            self.over = true;
            return None;
        }
        Some(piece)
    }

    async fn chunk_length(&mut self) -> Option<usize> {
        loop {
            let unread = &mut self.connection.unread;
            if let Some(end) = unread.windows(2).position(|bytes| bytes == b"\r\n") {
                let line = unread.split_to(end + 2);
                let text = std::str::from_utf8(&line[..end]).expect("a chunk's length");
                return Some(usize::from_str_radix(text.trim(), 16).expect("a chunk's length"));
            }
            if !self.connection.fill().await {
                return None;
            }
        }
    }

    /// Reads the rest of the body.
    ///
    /// # Panics
    /// When the connection breaks first, or on a timeout.
    pub async fn rest(&mut self) -> String {
        String::from_utf8(self.rest_bytes().await).expect("UTF-8")
    }

    async fn rest_bytes(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        let reading = async {
            while let Some(piece) = self.piece().await {
                body.extend_from_slice(&piece);
            }
        };
        within("the end of a body", reading).await;
        body
    }

    /// The body up to and including the first event with `text`. Later bytes are kept: a slow reader gets several
    /// events in one piece.
    ///
    /// # Panics
    /// When the body ends without it.
    pub async fn until(&mut self, text: &str) -> String {
        let mut body = String::new();
        let reading = async {
            while !body.contains(text) {
                let piece = self.piece().await.unwrap_or_else(|| panic!("{text:?} never came: {body:?}"));
                body.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
            }
        };
        within(text, reading).await;
        let event = body.find(text).and_then(|at| Some(at + body[at..].find("\n\n")? + 2));
        self.behind = event.map_or_else(String::new, |end| body.split_off(end)).into();
        body
    }

    /// Closes the client's writing side.
    pub async fn close_writing(&mut self) -> bool {
        self.connection.stream.shutdown().await.is_ok()
    }

    /// Whether no data arrives during this time.
    pub async fn is_silent_for(&mut self, millis: u64) -> bool {
        tokio::select! {
            biased;
            _ = self.try_piece() => false,
            () = crate::pause(millis) => true,
        }
    }

    /// Reads the rest and returns the connection, for another request.
    ///
    /// # Panics
    /// As [`RawAnswer::rest`].
    pub async fn finish(mut self) -> Raw {
        self.rest().await;
        self.connection
    }

    /// The complete response.
    ///
    /// # Panics
    /// As [`RawAnswer::rest`].
    pub async fn whole(mut self) -> Answer {
        let body = self.rest_bytes().await;
        Answer { status: self.status, headers: self.headers, body: body.into() }
    }
}
