//! Template functions and filters in addition to the language's own.

pub(crate) mod date;
pub(crate) mod ids;

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, Value as View};

/// This package's filters, by name.
pub(crate) const FILTERS: [&str; 5] = ["date_add", "date_format", "seconds_since", "sha256", "timestamp"];
/// This package's functions, by name.
pub(crate) const FUNCTIONS: [&str; 3] = ["now", "today", "uuid"];

/// SHA-256 of a text's UTF-8, lower-case hexadecimal.
pub(super) fn sha256(text: &View) -> Result<String, Error> {
    let text = text
        .as_str()
        .ok_or_else(|| invalid("sha256 requires a string; convert the value with tojson or string"))?;
    Ok(hex::encode(crate::canonical::sha256(&[text.as_bytes()])))
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// Returns the time zone that a call names, else UTC.
fn zone(options: &Kwargs) -> Result<chrono_tz::Tz, Error> {
    let name: Option<&str> = options.get("zone")?;
    let Some(name) = name else { return Ok(chrono_tz::UTC) };
    name.parse()
        .map_err(|_| invalid(format!("unknown time zone '{name}'; use a name such as 'Europe/Berlin'")))
}
