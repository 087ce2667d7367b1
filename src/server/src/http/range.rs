//! Parses a single byte range, `bytes=…`.

use std::ops::Range;

use actix_web::HttpRequest;
use actix_web::http::header::{IF_RANGE, RANGE};

/// The requested part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// The whole body: no range, several ranges, an unreadable range, or a range for another version.
    Whole,
    /// These bytes.
    Bytes(Range<usize>),
    /// A range past the end.
    Outside,
}

/// Returns the requested part of a body with `length` bytes and this ETag, quotes included.
pub(super) fn part(request: &HttpRequest, length: usize, tag: &str) -> Part {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    if text(IF_RANGE).is_some_and(|known| known != tag) {
        return Part::Whole;
    }
    if request.headers().get_all(RANGE).nth(1).is_some() {
        return Part::Whole;
    }
    text(RANGE).map_or(Part::Whole, |range| read(range, length))
}

fn read(range: &str, length: usize) -> Part {
    let Some((unit, range)) = range.split_once('=') else { return Part::Whole };
    let Some((first, last)) = range.trim().split_once('-') else { return Part::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
        return Part::Whole;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    // A number too long for `usize` is past the end in any case.
    let number = |text: &str| text.parse().unwrap_or(usize::MAX);
    let (first, last) = (first.trim(), last.trim());
    match (first, last) {
        ("", last) if is_number(last) => match number(last).min(length) {
            0 => Part::Outside,
            most => Part::Bytes(length - most..length),
        },
        (first, "") if is_number(first) && number(first) < length => Part::Bytes(number(first)..length),
        (first, "") if is_number(first) => Part::Outside,
        (first, last) if is_number(first) && is_number(last) && number(first) <= number(last) => {
            if number(first) < length {
                Part::Bytes(number(first)..number(last).saturating_add(1).min(length))
            } else {
                Part::Outside
            }
        }
        _ => Part::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_parsed_by_rfc_9110() {
        let huge = format!("bytes=0-{}", "9".repeat(40));
        for (range, part) in [
            ("bytes=0-0", Part::Bytes(0..1)),
            ("bytes=2-5", Part::Bytes(2..6)),
            ("BYTES = 2 - 5", Part::Bytes(2..6)),
            ("bytes=8-", Part::Bytes(8..10)),
            ("bytes=8-99", Part::Bytes(8..10)),
            (&huge, Part::Bytes(0..10)),
            ("bytes=-3", Part::Bytes(7..10)),
            ("bytes=-99", Part::Bytes(0..10)),
            ("bytes=-0", Part::Outside),
            ("bytes=10-", Part::Outside),
            ("bytes=10-12", Part::Outside),
            ("bytes=5-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=--1", Part::Whole),
            ("bytes=", Part::Whole),
            ("bytes", Part::Whole),
            ("items=0-1", Part::Whole),
        ] {
            assert_eq!(read(range, 10), part, "{range}");
        }
        assert_eq!(read("bytes=0-", 0), Part::Outside);
        assert_eq!(read("bytes=-1", 0), Part::Outside);
    }
}
