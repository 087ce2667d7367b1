//! Parsers of plain values: numbers, times, words, lists.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use crate::problem::Invalid;

/// A whole number within a range.
pub(crate) fn number<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, Invalid> {
    move |text| {
        let (low, high) = (range.start(), range.end());
        let instead = || format!("write a whole number from {low} to {high}");
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = match text.parse::<u64>() {
            Ok(number) if digits => number,
            // Only digits, but not a number: too many of them.
            Err(_) if digits => return Err(Invalid::new("is out of range", instead())),
            _ => return Err(Invalid::new("is not a whole number", instead())),
        };
        if !range.contains(&number) {
            return Err(Invalid::new("is out of range", instead()));
        }
        T::try_from(number).map_err(|_| Invalid::new("is out of range", instead()))
    }
}

/// A limit that 0 disables.
pub(crate) fn limit(text: &str) -> Result<Option<NonZeroU32>, Invalid> {
    number::<u32>(0..=u64::from(u32::MAX))(text).map(NonZeroU32::new)
}

/// Whole seconds within a range.
pub(crate) fn seconds(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<Duration, Invalid> {
    move |text| number(range.clone())(text).map(Duration::from_secs)
}

/// Seconds with decimals, within a range.
pub(crate) fn decimal_seconds(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<Duration, Invalid> {
    move |text| {
        let instead = || format!("write a number of seconds from {} to {}", range.start(), range.end());
        let number: f64 = text.parse().map_err(|_| Invalid::new("is not a number", instead()))?;
        if !range.contains(&number) {
            return Err(Invalid::new("is out of range", instead()));
        }
        Duration::try_from_secs_f64(number).map_err(|_| Invalid::new("is out of range", instead()))
    }
}

/// `true`, `false`, `1` or `0`.
pub(crate) fn boolean(text: &str) -> Result<bool, Invalid> {
    choice(&[("true", true), ("false", false), ("1", true), ("0", false)])(text)
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(choices: &[(&str, T)]) -> impl Fn(&str) -> Result<T, Invalid> {
    move |text| {
        choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let (wrong, instead) = match words.as_slice() {
                [only] => ("is not possible", format!("write {only}")),
                _ => ("is not an allowed value", format!("write one of {}", words.join(", "))),
            };
            Invalid::new(wrong, instead)
        })
    }
}

/// Any text on one line.
pub(crate) fn line(text: &str) -> Result<String, Invalid> {
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(
            "contains a line break or another control character",
            "write it on one line",
        ));
    }
    Ok(text.to_owned())
}

/// A path as the system interprets it; only a shell replaces `~`.
pub(crate) fn path(text: &str) -> Result<PathBuf, Invalid> {
    if text == "~" || text.starts_with("~/") {
        return Err(Invalid::new("begins with ~, which only a shell expands", "write the whole path"));
    }
    if text.contains("://") {
        return Err(Invalid::new("is a URL, not a path", "write the path of a file or folder"));
    }
    line(text).map(PathBuf::from)
}

/// A secret for a header: visible ASCII without spaces. Errors repeat none of it.
pub(crate) fn header_secret(text: &str) -> Result<(), Invalid> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Invalid::new(
        "contains a space, a line break or a non-ASCII character, which a header cannot contain",
        "use visible ASCII characters without spaces",
    ))
}

/// Any secret, used byte by byte.
pub(crate) fn any_secret(_: &str) -> Result<(), Invalid> {
    Ok(())
}

/// A list: JSON, or words separated by commas or blanks. Duplicates count once.
pub(crate) fn words(text: &str) -> Result<Vec<String>, Invalid> {
    list(text, |letter| letter == ',' || letter.is_whitespace())
}

/// A list: JSON, or comma-separated texts. Duplicates count once.
pub(crate) fn comma_list(text: &str) -> Result<Vec<String>, Invalid> {
    list(text, |letter| letter == ',')
}

fn list(text: &str, separator: impl Fn(char) -> bool) -> Result<Vec<String>, Invalid> {
    let given: Vec<String> = if text.starts_with('[') {
        json_list(text, r#"["one", "two"]"#)?
    } else {
        text.split(separator).map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    };
    if given.is_empty() {
        return Err(Invalid::new("is an empty list", "name at least one, or leave it unset"));
    }
    let mut unique = Vec::with_capacity(given.len());
    for word in given {
        if !unique.contains(&word) {
            unique.push(word);
        }
    }
    Ok(unique)
}

/// A JSON list of strings.
pub(crate) fn json_list(text: &str, example: &str) -> Result<Vec<String>, Invalid> {
    serde_json::from_str(text)
        .map_err(|_| Invalid::new("is not a JSON list of strings", format!("write JSON such as {example}")))
}

/// ISO 8601 (UTC without an offset), or seconds since 1970.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, Invalid> {
    /// A later number (the year 5138) means milliseconds, a mistake that would make a token immortal.
    const LATEST: f64 = 100_000_000_000.0;
    let instead = "write for example 2030-01-31T12:00:00Z, or seconds since 1970";
    if let Ok(number) = text.parse::<f64>() {
        if !(0.0..LATEST).contains(&number) {
            return Err(Invalid::new("is not a plausible number of seconds since 1970", instead));
        }
        let since =
            Duration::try_from_secs_f64(number).ok().and_then(|since| i64::try_from(since.as_secs()).ok());
        return since
            .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
            .ok_or_else(|| Invalid::new("is not a point in time", instead));
    }
    let zoned = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"];
    let naive = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    let rfc3339 = DateTime::parse_from_rfc3339(text).ok();
    rfc3339
        .or_else(|| zoned.iter().find_map(|format| DateTime::parse_from_str(text, format).ok()))
        .map(|instant| instant.to_utc())
        .or_else(|| {
            naive
                .iter()
                .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
                .map(|n| n.and_utc())
        })
        .or_else(|| {
            let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
            Some(date.and_time(NaiveTime::MIN).and_utc())
        })
        .ok_or_else(|| Invalid::new("is not a point in time", instead))
}

/// A mail address: checked just enough to catch a typing error; the mail server decides.
pub(crate) fn mail_address(text: &str) -> Result<String, Invalid> {
    let refused = || Invalid::new("is not an email address", "write for example someone@example.com");
    let (local, domain) = text.rsplit_once('@').ok_or_else(refused)?;
    let plain = |letter: char| !letter.is_whitespace() && !letter.is_control() && !"<>,;\"".contains(letter);
    let good = !local.is_empty() && !domain.is_empty() && text.len() <= 254 && text.chars().all(plain);
    let good = good && !local.contains('@') && !domain.starts_with('.') && !domain.ends_with('.');
    if good { Ok(format!("{local}@{}", domain.to_lowercase())) } else { Err(refused()) }
}

/// A sender: an address, or `Name <address>`.
pub(crate) fn mailbox(text: &str) -> Result<String, Invalid> {
    let text = line(text)?;
    match text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((name, address)) => {
            mail_address(address).map(|address| format!("{}<{address}>", name_part(name)))
        }
        None => mail_address(&text),
    }
}

fn name_part(name: &str) -> String {
    match name.trim() {
        "" => String::new(),
        name => format!("{name} "),
    }
}
