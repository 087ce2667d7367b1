//! Server-sent events in Callboard's format: `id: <stream>.<seq>`, `data: <json>`, an empty line.
//!
//! Frames are stored as the sent text, so a reader resumes by cutting a stored text at an event.

use std::fmt::{Display, Write as _};

/// The comment that keeps an idle connection open.
pub const PING: &str = ": ping\n\n";

/// Marks the start of a stream's live events for readers with the dialect `chatkit`.
pub const LIVE_COMMENT: &str = ": live\n\n";

/// The same for readers with the dialect `interface`: a frame without an id, with [`LIVE_DATA`].
pub const LIVE_FRAME: &str = "data: {\"type\":\"stream.live\"}\n\n";

/// The data of [`LIVE_FRAME`].
pub const LIVE_DATA: &str = r#"{"type":"stream.live"}"#;

/// Appends one event. `json` must be a single line, such as compact JSON.
pub fn push_event(frame: &mut String, stream: impl Display, seq: u64, json: &str) {
    // Writing into a String cannot fail.
    let _ = write!(frame, "id: {stream}.{seq}\ndata: ");
    frame.push_str(json);
    frame.push_str("\n\n");
}

/// The sequence number in an event id `<stream>.<seq>`, if it names this stream.
#[must_use]
pub fn parse_event_id(id: &str, stream: &str) -> Option<u64> {
    let (named, seq) = id.trim().rsplit_once('.')?;
    let digits = !seq.is_empty() && seq.bytes().all(|b| b.is_ascii_digit());
    (named == stream && digits).then(|| seq.parse().ok()).flatten()
}

/// The part of `frame` after event `after`. `first` is the sequence number of its first event.
#[must_use]
pub fn split_after(frame: &str, first: u64, after: u64) -> &str {
    let mut rest = frame;
    let mut seq = first;
    while seq <= after {
        match rest.split_once("\n\n") {
            Some((_, tail)) => rest = tail,
            None => return "",
        }
        seq += 1;
    }
    rest
}

/// The `data` of every event in `frame`.
pub fn data(frame: &str) -> impl Iterator<Item = &str> {
    frame.split("\n\n").filter_map(|event| event.lines().find_map(|line| line.strip_prefix("data: ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> String {
        let mut frame = String::new();
        for seq in 3..=5 {
            push_event(&mut frame, "s", seq, &format!("{{\"n\":{seq}}}"));
        }
        frame
    }

    #[test]
    fn frames_are_split_exactly() {
        assert_eq!(split_after(&frame(), 3, 2), frame());
        assert_eq!(split_after(&frame(), 3, 4), "id: s.5\ndata: {\"n\":5}\n\n");
        assert_eq!(split_after(&frame(), 3, 5), "");
        assert_eq!(split_after(&frame(), 3, 9), "");
        assert_eq!(data(&frame()).collect::<Vec<_>>(), ["{\"n\":3}", "{\"n\":4}", "{\"n\":5}"]);
    }

    #[test]
    fn event_ids_are_read_strictly() {
        assert_eq!(parse_event_id("abc.12", "abc"), Some(12));
        for bad in
            ["", "abc", "abc.", ".1", "abd.12", "abc.-1", "abc.+1", "abc.1x", "abc.99999999999999999999"]
        {
            assert_eq!(parse_event_id(bad, "abc"), None, "{bad}");
        }
    }
}
