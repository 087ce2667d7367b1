//! Finds where requests begin and end on a connection, and refuses bytes that two parsers could read differently.
//!
//! The HTTP library accepts lines that end in a bare LF, and chunk lines of any length. A proxy in front may parse such
//! a connection differently (request smuggling), so it is refused (RFC 9112, sections 2.2, 7.1 and 11.2). The library
//! closes a connection with malformed chunks without a response, so chunks are checked here too. Other errors in a head
//! are left to the library.

/// Bytes kept per head line: the maximum length of a header that determines framing.
const MAX_LINE: usize = 256;
/// Maximum bytes of the line before a chunk's data, with size and extension.
const MAX_CHUNK_LINE: usize = 1024;
/// Maximum bytes of a body's chunk lines and trailer together, without the size digits.
const MAX_OVERHEAD: usize = 16 * 1024;

/// Follows the bytes of one connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    state: FramingState,
    line: Vec<u8>,
    /// Whether the last byte was CR.
    after_cr: bool,
    overhead: usize,
    head: Head,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum FramingState {
    #[default]
    Head,
    /// Remaining bytes of a body.
    Length(u64),
    ChunkSize,
    /// Remaining bytes of a chunk's data.
    Chunk(u64),
    /// The line end after a chunk's data.
    ChunkEnd,
    Trailer,
    /// A WebSocket or tunnel, after which no requests follow.
    Opaque,
}

/// The kind and number of the next bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FramedBytes {
    /// An incomplete head, or an incomplete line in a chunked body.
    Begun(usize),
    /// The end of a head.
    Head(usize),
    /// Part of a body; in a chunked body, whole lines.
    Body(usize),
}

/// The parsed part of the current head.
#[derive(Debug, Default)]
struct Head {
    begun: bool,
    connect: bool,
    chunked: bool,
    websocket: bool,
    length: Option<u64>,
}

impl Framing {
    /// Processes the next bytes, of which there is at least one: all of them or fewer.
    ///
    /// # Errors
    /// The index of the first byte that must not reach the parser.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<FramedBytes, usize> {
        Ok(match self.state {
            FramingState::Opaque => FramedBytes::Body(bytes.len()),
            FramingState::Length(left) => {
                FramedBytes::Body(self.skip(bytes.len(), left, FramingState::Length, FramingState::Head))
            }
            FramingState::Chunk(left) => {
                FramedBytes::Body(self.skip(bytes.len(), left, FramingState::Chunk, FramingState::ChunkEnd))
            }
            FramingState::Head => {
                let had_begun = self.head.begun;
                let read = self.line_part(bytes)?;
                if had_begun && !self.head.begun { FramedBytes::Head(read) } else { FramedBytes::Begun(read) }
            }
            FramingState::ChunkSize | FramingState::ChunkEnd | FramingState::Trailer => {
                let read = self.line_part(bytes)?;
                let is_whole = read.checked_sub(1).and_then(|last| bytes.get(last)) == Some(&b'\n');
                if is_whole { FramedBytes::Body(read) } else { FramedBytes::Begun(read) }
            }
        })
    }

    /// Whether the next byte, or the refused one, belongs to a head.
    pub(super) fn is_in_head(&self) -> bool {
        self.state == FramingState::Head
    }

    fn skip(&mut self, here: usize, left: u64, more: fn(u64) -> FramingState, then: FramingState) -> usize {
        let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(here);
        let left = left.saturating_sub(u64::try_from(skipped).unwrap_or(u64::MAX));
        self.state = if left == 0 { then } else { more(left) };
        skipped
    }

    /// Reads up to the end of a line or of the bytes. Returns the number of bytes read.
    fn line_part(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let cr = part.last().map_or(self.after_cr, |last| *last == b'\r');
        let room = MAX_LINE.max(MAX_CHUNK_LINE).saturating_sub(self.line.len());
        self.line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        self.overhead = self.overhead.saturating_add(part.len());
        if self.state != FramingState::Head && (self.overhead > MAX_OVERHEAD || part.len() > room) {
            return Err(0);
        }
        if self.state == FramingState::ChunkEnd && !matches!(self.line.as_slice(), b"" | b"\r") {
            return Err(0);
        }
        let Some(end) = end else {
            self.after_cr = cr;
            return Ok(part.len());
        };
        self.after_cr = false;
        if !cr {
            return Err(end);
        }
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let verdict = self.line(&line);
        line.clear();
        self.line = line;
        if verdict { Ok(end + 1) } else { Err(end) }
    }

    /// Processes a whole line without its end. Returns `false` if the line must be refused.
    fn line(&mut self, line: &[u8]) -> bool {
        match self.state {
            FramingState::Head => self.head_line(line),
            FramingState::ChunkSize => {
                let Some((digits, size)) = chunk_size(line) else { return false };
                // Sizes do not count as overhead: many small chunks are allowed.
                self.overhead = self.overhead.saturating_sub(digits + 1);
                self.state = if size == 0 { FramingState::Trailer } else { FramingState::Chunk(size) };
                line.len() <= MAX_CHUNK_LINE
            }
            FramingState::ChunkEnd => {
                self.overhead = self.overhead.saturating_sub(1);
                self.state = FramingState::ChunkSize;
                line.is_empty()
            }
            FramingState::Trailer if line.is_empty() => {
                self.state = FramingState::Head;
                self.overhead = 0;
                true
            }
            FramingState::Trailer => !line.contains(&b'\r'),
            FramingState::Length(_) | FramingState::Chunk(_) | FramingState::Opaque => true,
        }
    }

    fn head_line(&mut self, line: &[u8]) -> bool {
        if line.is_empty() {
            // Empty lines before a request are skipped.
            if self.head.begun {
                let head = std::mem::take(&mut self.head);
                self.overhead = 0;
                self.state = match (head.chunked, head.websocket, head.length) {
                    (true, _, _) => FramingState::ChunkSize,
                    (false, true, _) => FramingState::Opaque,
                    (false, false, Some(length)) if length > 0 => FramingState::Length(length),
                    (false, false, _) if head.connect => FramingState::Opaque,
                    _ => FramingState::Head,
                };
            }
            return true;
        }
        if !self.head.begun {
            self.head.begun = true;
            self.head.connect = line.starts_with(b"CONNECT ");
            return true;
        }
        self.header(line)
    }

    fn header(&mut self, line: &[u8]) -> bool {
        let name_end = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(name_end);
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        if !is("content-length") && !is("transfer-encoding") && !is("upgrade") {
            return true;
        }
        if line.len() > MAX_LINE {
            return false;
        }
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if is("content-length") {
            let length = str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            self.head.length = length;
            length.is_some()
        } else if is("transfer-encoding") {
            self.head.chunked = value.eq_ignore_ascii_case(b"chunked");
            self.head.chunked
        } else {
            self.head.websocket |= value.eq_ignore_ascii_case(b"websocket");
            true
        }
    }
}

/// Parses the line before a chunk's data; returns the number of size digits and the size. Source: RFC 9112, 7.1, as the
/// library reads it.
fn chunk_size(line: &[u8]) -> Option<(usize, u64)> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, rest) = line.split_at_checked(digits)?;
    let size = u64::from_str_radix(str::from_utf8(size).ok()?, 16).ok()?;
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let extension = rest.get(blanks..)?;
    let is_good = extension.first().is_none_or(|first| *first == b';')
        && extension.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    is_good.then_some((digits, size))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Framing {
        fn feed(&mut self, bytes: &[u8]) -> Result<(), usize> {
            let mut at = 0;
            while at < bytes.len() {
                let (FramedBytes::Begun(read) | FramedBytes::Head(read) | FramedBytes::Body(read)) =
                    self.next(&bytes[at..]).map_err(|index| at + index)?;
                at += read;
            }
            Ok(())
        }
    }

    /// Returns the index of the first refused byte, for all bytes at once.
    fn refused(bytes: &[u8]) -> Option<usize> {
        Framing::default().feed(bytes).err()
    }

    /// Whether the same bytes are refused one by one.
    fn refused_slowly(bytes: &[u8]) -> bool {
        let mut framing = Framing::default();
        bytes.iter().any(|byte| framing.feed(&[*byte]).is_err())
    }

    const GOOD: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{\n\"a\":\n1}GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\n\n\n\r\nA;x=y\r\n0123\n56789\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"GET /ws HTTP/1.1\r\nUpgrade: WebSocket\r\n\r\n\n\n\x81\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n\n\n",
    ];

    #[test]
    fn unambiguous_requests_pass() {
        for bytes in GOOD {
            assert_eq!(refused(bytes), None, "{}", bytes.escape_ascii());
            assert!(!refused_slowly(bytes), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_bare_lf_is_rejected_as_a_line_end() {
        let chunked: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let bad: [Vec<u8>; 9] = [
            b"GET / HTTP/1.1\nHost: a\r\n\r\n".to_vec(),
            b"GET / HTTP/1.1\r\nHost: a\n\r\n".to_vec(),
            b"GET / HTTP/1.1\r\nHost: a\r\n\n".to_vec(),
            b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\n".to_vec(),
            [chunked, b"3\nabc\r\n"].concat(),
            [chunked, b"3;x\nabc\r\n"].concat(),
            [chunked, b"0\r\nX: y\n\r\n"].concat(),
            [chunked, b"0\r\n\n"].concat(),
        ];
        for bytes in bad {
            let at = refused(&bytes).unwrap_or_else(|| panic!("{}", bytes.escape_ascii()));
            assert_eq!(bytes[at], b'\n', "{}", bytes.escape_ascii());
            assert!(refused_slowly(&bytes));
        }
    }

    #[test]
    fn malformed_chunks_are_rejected() {
        let chunked: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let bad: [&[u8]; 11] = [
            b"\r\n",
            b"zz\r\n",
            b"0x4\r\n",
            b"-1\r\n",
            b"3 4\r\n",
            b"3;\x01\r\n",
            b"10000000000000000\r\n",
            b"3\r\nabc\n",
            b"3\r\nabcd",
            b"3\r\nabc\r\r",
            b"0\r\nX: a\rb\r\n",
        ];
        for body in bad {
            let bytes = [chunked, body].concat();
            assert!(refused(&bytes).is_some() && refused_slowly(&bytes), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn heads_and_chunk_lines_are_complete_parts() {
        let mut framing = Framing::default();
        let head: &[u8] = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(framing.next(&head[..4]), Ok(FramedBytes::Begun(4)));
        assert_eq!(framing.next(&head[4..]), Ok(FramedBytes::Begun(13)));
        assert_eq!(framing.next(&head[17..]), Ok(FramedBytes::Begun(28)));
        assert!(framing.is_in_head());
        assert_eq!(framing.next(&head[45..]), Ok(FramedBytes::Head(2)));
        assert!(!framing.is_in_head());
        for (bytes, part) in [
            (b"3\r\nabc".as_slice(), FramedBytes::Body(3)),
            (b"ab", FramedBytes::Body(2)),
            (b"c\r\n", FramedBytes::Body(1)),
            (b"\r", FramedBytes::Begun(1)),
            (b"\n0", FramedBytes::Body(1)),
            (b"0", FramedBytes::Begun(1)),
            (b"\r\n", FramedBytes::Body(2)),
            (b"\r\n", FramedBytes::Body(2)),
        ] {
            assert_eq!(framing.next(bytes), Ok(part), "{}", bytes.escape_ascii());
        }
        assert!(framing.is_in_head());
    }

    #[test]
    fn chunk_lines_are_limited_each_and_in_total() {
        let body = |lines: &[usize]| {
            let mut bytes = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for line in lines {
                let extension = if *line > 0 { format!(";{}", "e".repeat(*line)) } else { String::new() };
                bytes.extend_from_slice(format!("1{extension}\r\nx\r\n").as_bytes());
            }
            bytes
        };
        assert_eq!(refused(&body(&[1000])), None);
        for long in [1100, 1_000_000] {
            assert!(refused(&body(&[long])).is_some() && refused_slowly(&body(&[long])), "{long}");
        }
        assert_eq!(refused(&body(&[900; 17])), None);
        assert!(refused(&body(&[900; 20])).is_some(), "many of them");
        assert_eq!(refused(&body(&[0; 100_000])), None, "many small chunks are accepted");
        let trailer = format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{}",
            "X: y\r\n".repeat(10_000)
        );
        assert!(refused(trailer.as_bytes()).is_some());
    }

    #[test]
    fn framing_headers_are_limited_and_validated() {
        let padded = format!("POST / HTTP/1.1\r\nContent-Length:{}4\r\n\r\n", " ".repeat(300));
        assert!(refused(padded.as_bytes()).is_some());
        let long = format!("GET / HTTP/1.1\r\nX-Long: {}\r\n\r\n", "y".repeat(100_000));
        assert_eq!(refused(long.as_bytes()), None);
        for line in ["Content-Length: x", "Content-Length: ", "Transfer-Encoding: gzip, chunked"] {
            assert!(refused(format!("POST / HTTP/1.1\r\n{line}\r\n\r\n").as_bytes()).is_some(), "{line}");
        }
    }

    proptest! {
        /// The result does not depend on how a connection is split into pieces.
        #[test]
        fn framing_does_not_depend_on_the_split(
            which in 0..GOOD.len(), cuts in prop::collection::vec(1_usize..40, 0..20), noise in any::<bool>(), at in 0_usize..200
        ) {
            let mut bytes = GOOD[which].to_vec();
            if noise && at < bytes.len() {
                bytes.insert(at, b'\n');
            }
            let whole = refused(&bytes).is_some();
            let (mut framing, mut rest, mut bad) = (Framing::default(), bytes.as_slice(), false);
            for cut in cuts {
                let (piece, more) = rest.split_at(cut.min(rest.len()));
                bad = bad || framing.feed(piece).is_err();
                rest = more;
            }
            bad = bad || framing.feed(rest).is_err();
            prop_assert_eq!(whole, bad);
        }
    }
}
