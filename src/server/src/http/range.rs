//! Parses a single byte range, `bytes=…`.

use std::ops::Range;

use actix_web::HttpRequest;
use actix_web::http::header::{IF_RANGE, RANGE};

/// The requested part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyRange {
    /// The whole body: no range, several ranges, an unreadable range, or a range for another version.
    Whole,
    /// These bytes.
    Bytes(Range<usize>),
    /// A range past the end.
    Outside,
}

/// Returns the requested part of a body with `length` bytes and this ETag, quotes included.
pub(super) fn part(request: &HttpRequest, length: usize, tag: &str) -> BodyRange {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    if text(IF_RANGE).is_some_and(|known| known != tag) {
        return BodyRange::Whole;
    }
    if request.headers().get_all(RANGE).nth(1).is_some() {
        return BodyRange::Whole;
    }
    text(RANGE).map_or(BodyRange::Whole, |range| read(range, length))
}

fn read(range: &str, length: usize) -> BodyRange {
    let Some((unit, range)) = range.split_once('=') else { return BodyRange::Whole };
    let Some((first, last)) = range.trim().split_once('-') else { return BodyRange::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
        return BodyRange::Whole;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    // A number too long for `usize` is past the end in any case.
    let number = |text: &str| text.parse().unwrap_or(usize::MAX);
    let (first, last) = (first.trim(), last.trim());
    match (first, last) {
        ("", last) if is_number(last) => match number(last).min(length) {
            0 => BodyRange::Outside,
            most => BodyRange::Bytes(length - most..length),
        },
        (first, "") if is_number(first) && number(first) < length => BodyRange::Bytes(number(first)..length),
        (first, "") if is_number(first) => BodyRange::Outside,
        (first, last) if is_number(first) && is_number(last) && number(first) <= number(last) => {
            if number(first) < length {
                BodyRange::Bytes(number(first)..number(last).saturating_add(1).min(length))
            } else {
                BodyRange::Outside
            }
        }
        _ => BodyRange::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_parsed_by_rfc_9110() {
        let huge = format!("bytes=0-{}", "9".repeat(40));
        for (range, part) in [
            ("bytes=0-0", BodyRange::Bytes(0..1)),
            ("bytes=2-5", BodyRange::Bytes(2..6)),
            ("BYTES = 2 - 5", BodyRange::Bytes(2..6)),
            ("bytes=8-", BodyRange::Bytes(8..10)),
            ("bytes=8-99", BodyRange::Bytes(8..10)),
            (&huge, BodyRange::Bytes(0..10)),
            ("bytes=-3", BodyRange::Bytes(7..10)),
            ("bytes=-99", BodyRange::Bytes(0..10)),
            ("bytes=-0", BodyRange::Outside),
            ("bytes=10-", BodyRange::Outside),
            ("bytes=10-12", BodyRange::Outside),
            ("bytes=5-2", BodyRange::Whole),
            ("bytes=0-1,3-4", BodyRange::Whole),
            ("bytes=a-b", BodyRange::Whole),
            ("bytes=--1", BodyRange::Whole),
            ("bytes=", BodyRange::Whole),
            ("bytes", BodyRange::Whole),
            ("items=0-1", BodyRange::Whole),
        ] {
            assert_eq!(read(range, 10), part, "{range}");
        }
        assert_eq!(read("bytes=0-", 0), BodyRange::Outside);
        assert_eq!(read("bytes=-1", 0), BodyRange::Outside);
    }
}
