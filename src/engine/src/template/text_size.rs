//! Measures the texts that filters make from values without keeping them. Escapes, numbers and names of macros can make
//! a text many times larger than its value.

use std::borrow::Cow;
use std::{fmt, io};

use minijinja::value::ValueKind;
use minijinja::{Error, Value as View};

use super::functions::invalid;
use crate::meter;

/// Maximum bytes of an escaped byte.
pub(super) const ESCAPE: usize = 6;

/// Returns the bytes that a part of a text needs.
type Cost = fn(&[u8]) -> usize;

/// Counts what is written to it; fails above the bytes that the work may still create.
struct Count {
    bytes: usize,
    most: usize,
    cost: Cost,
}

impl Count {
    fn new(cost: Cost) -> Self {
        Self { bytes: 0, most: meter::room(), cost }
    }

    fn add(&mut self, part: &[u8]) -> bool {
        self.bytes = self.bytes.saturating_add((self.cost)(part));
        self.bytes <= self.most
    }
}

impl fmt::Write for Count {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.add(part.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}

impl io::Write for Count {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.add(part) { Ok(part.len()) } else { Err(io::Error::other("too large")) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn unescaped(part: &[u8]) -> usize {
    part.len()
}

/// HTML; control characters as in JSON, which `autoescape` can select.
fn escaped(part: &[u8]) -> usize {
    let cost = |byte: &u8| match byte {
        b'\n' | b'\r' | b'\t' => 2,
        b'<' | b'>' | b'&' | b'"' | b'\'' | b'/' | 0..=0x1f => ESCAPE,
        _ => 1,
    };
    part.iter().map(cost).sum()
}

/// The filter `tojson` escapes HTML and writes blanks after separators; serde does not.
fn spaced_json(part: &[u8]) -> usize {
    let cost = |byte: &u8| match byte {
        b'<' | b'>' | b'&' | b'\'' => ESCAPE,
        b',' | b':' => 2,
        _ => 1,
    };
    part.iter().map(cost).sum()
}

/// Returns a value's bytes as text.
///
/// # Errors
/// The value or its text is too large or too deep, or the work was stopped.
pub(super) fn text_size(value: &View) -> Result<usize, Error> {
    match value.as_str() {
        Some(text) => Ok(text.len()),
        None => formatted(value, format_args!("{value}"), unescaped),
    }
}

/// Returns a value's bytes as escaped text.
///
/// # Errors
/// As [`text_size`].
pub(super) fn escaped_size(value: &View) -> Result<usize, Error> {
    if value.is_safe() { text_size(value) } else { formatted(value, format_args!("{value}"), escaped) }
}

/// Returns a value's bytes as `pprint` writes it.
///
/// # Errors
/// As [`text_size`].
pub(super) fn debug_size(value: &View) -> Result<usize, Error> {
    formatted(value, format_args!("{value:#?}"), unescaped)
}

/// Returns a value's bytes as `tojson` writes it without indentation.
///
/// # Errors
/// As [`text_size`], or the value has no JSON.
pub(super) fn json_size(value: &View) -> Result<usize, Error> {
    check_parts(value)?;
    let mut count = Count::new(spaced_json);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => Ok(count.bytes),
        Err(error) if error.is_io() => Err(too_long()),
        Err(_) => Err(invalid("cannot serialize to JSON")),
    }
}

/// Returns a value as text.
pub(super) fn text_of(value: &View) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

/// The error for a text that is longer than the work allows.
pub(super) fn too_long() -> Error {
    meter::fits(usize::MAX).err().unwrap_or_else(|| invalid("the text is too long"))
}

/// Checks depth and size of a value with parts.
fn check_parts(value: &View) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => meter::size(value).map(drop),
        _ => Ok(()),
    }
}

fn formatted(value: &View, text: fmt::Arguments<'_>, cost: Cost) -> Result<usize, Error> {
    check_parts(value)?;
    let mut count = Count::new(cost);
    fmt::Write::write_fmt(&mut count, text).map_err(|_| too_long())?;
    Ok(count.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::ENVIRONMENT;

    type Size = fn(&View) -> Result<usize, Error>;

    const FILTERS: [(&str, Size); 4] =
        [("string", text_size), ("escape", escaped_size), ("pprint", debug_size), ("tojson", json_size)];

    #[test]
    fn a_text_is_not_longer_than_its_estimate() {
        let marks = "\u{0}\u{1f}\u{7f}\n\t\"'\\<>&/é".repeat(9);
        let list =
            View::from(vec![View::from(&*marks), View::from(1e300), View::from(i128::MIN), View::from(())]);
        let map = View::from_pairs([(&*marks, list.clone()), ("x", View::from(false))]);
        for value in [View::from(&*marks), View::from(1e300), View::from(true), list, map] {
            for (filter, size) in FILTERS {
                let text =
                    ENVIRONMENT.empty_state().apply_filter(filter, std::slice::from_ref(&value)).unwrap();
                let length = text.as_str().unwrap().len();
                assert!(length <= size(&value).unwrap(), "{filter}: {value}");
            }
        }
    }

    #[test]
    fn a_text_that_grows_by_escapes_is_refused_before_it_is_made() {
        let value = View::from(vec![View::from("\u{1}<".repeat(2 << 20))]);
        for (filter, size) in FILTERS {
            assert!(size(&value).is_err(), "{filter}");
        }
        let numbers = View::from(vec![View::from(1e300); 30_000]);
        let joined = ENVIRONMENT.empty_state().apply_filter("join", &[numbers]);
        assert!(joined.unwrap_err().to_string().contains("too long"));
    }
}
