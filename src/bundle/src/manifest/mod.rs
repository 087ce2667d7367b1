//! The manifest `service.app.json`: the workflows and collections of an app.

mod binding;
mod collection;
mod json;
mod reader;

use std::collections::BTreeMap;

use schema::Schema;
use serde_json::Value;
use wire::{AppBinding, AppCollection, MAX_BINDINGS, MAX_COLLECTIONS};

use crate::code::Code;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::Findings;
use crate::names::MANIFEST;
use binding::{MAX_PATTERN_BYTES, MAX_PATTERNS};
use reader::{ManifestReader, below};

/// Maximum manifest bytes.
pub(crate) const MAX_BYTES: u64 = 256 * 1024;
const NAME_CHARS: usize = 64;
/// Maximum bytes of an invalid name whose members are still checked: each finding repeats the name in its pointer.
const POINTER_NAME_BYTES: usize = 4 * NAME_CHARS;
const MAX_ANCESTORS: usize = 10;

/// A valid manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The bindings by name.
    pub bindings: BTreeMap<String, AppBinding>,
    /// The collections by name; `None` if the manifest has no member for them.
    pub collections: Option<BTreeMap<String, AppCollection>>,
    /// Whether unknown page paths show the index.
    pub spa: bool,
    /// Origins that may embed the app in a frame.
    pub frame_ancestors: Vec<String>,
}

/// Reports a manifest that is too large to read.
pub(crate) fn is_readable(size: u64, findings: &mut Findings) -> bool {
    if size > MAX_BYTES {
        let detail = format!("The manifest has more than {MAX_BYTES} bytes.");
        findings.line(Code::ManifestInvalid, MANIFEST, None, detail);
    }
    size <= MAX_BYTES
}

/// Reports bindings and collections that together exceed the limits of a manifest.
pub(crate) fn check_together(
    bindings: &BTreeMap<String, AppBinding>,
    collections: &BTreeMap<String, AppCollection>,
    findings: &mut Findings,
) {
    let size = |text: serde_json::Result<Vec<u8>>| {
        text.map_or(u64::MAX, |text| text.len().try_into().unwrap_or(u64::MAX))
    };
    let size = size(serde_json::to_vec(bindings)).saturating_add(size(serde_json::to_vec(collections)));
    if size > MAX_BYTES {
        let detail = format!(
            "The bindings and collections have {size} bytes together; at most {MAX_BYTES} are allowed."
        );
        findings.line(Code::ManifestInvalid, MANIFEST, None, detail);
    }
    let schemas = bindings.values().filter_map(|binding| binding.input_schema.as_ref());
    let schemas = schemas.chain(collections.values().filter_map(|collection| collection.schema.as_ref()));
    let (mut patterns, mut bytes) = (0_usize, 0_usize);
    for schema in schemas {
        patterns = patterns.saturating_add(schema::patterns(schema));
        if patterns > MAX_PATTERNS {
            break;
        }
        // Each was accepted alone.
        bytes = bytes.saturating_add(Schema::read(schema).map_or(0, |schema| schema.pattern_bytes()));
    }
    if patterns > MAX_PATTERNS {
        let detail = format!("The schemas have more than {MAX_PATTERNS} patterns together.");
        findings.line(Code::SchemaInvalid, MANIFEST, None, detail);
    } else if bytes > MAX_PATTERN_BYTES {
        let detail = format!(
            "The compiled patterns of the schemas take more than {} MiB together.",
            MAX_PATTERN_BYTES >> 20
        );
        findings.line(Code::SchemaInvalid, MANIFEST, None, detail);
    }
}

/// Reads a manifest. Returns `None` if it has findings.
pub(crate) fn read(
    bytes: &[u8],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<Option<Manifest>, CheckError> {
    read_as(bytes, deadline, findings, root)
}

/// Reads a binding whose name is given separately. Returns `None` if it has findings.
pub(crate) fn read_binding(
    name: &str,
    bytes: &[u8],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<Option<AppBinding>, CheckError> {
    read_as(bytes, deadline, findings, |value, reader| {
        check_name(name, "", reader);
        binding::read(value, "", reader)
    })
}

/// Reads a collection with its `name`. Returns `None` if it has findings.
pub(crate) fn read_collection(
    bytes: &[u8],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<Option<(String, AppCollection)>, CheckError> {
    read_as(bytes, deadline, findings, |value, reader| {
        let mut members = reader.map(value, "")?.clone();
        let name =
            reader.needed(&members, "", "name").map(|name| name.as_str().unwrap_or_default().to_owned());
        if let Some(name) = &name {
            check_name(name, "/name", reader);
        }
        members.shift_remove("name");
        let collection = collection::read(&Value::Object(members), "", reader);
        name.zip(collection)
    })
}

fn read_as<T>(
    bytes: &[u8],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
    root: impl FnOnce(&Value, &mut ManifestReader<'_>) -> Option<T>,
) -> Result<Option<T>, CheckError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        findings.line(Code::NotUtf8, MANIFEST, None, "The manifest has bytes that are not UTF-8.");
        return Ok(None);
    };
    if text.starts_with('\u{feff}') {
        let detail = "The manifest begins with a byte order mark; save it as UTF-8 without one.";
        findings.line(Code::ManifestInvalid, MANIFEST, Some(1), detail);
        return Ok(None);
    }
    let value = match json::parse(text) {
        Ok(value) => value,
        Err(wrong) => {
            let line = u32::try_from(wrong.line).ok();
            let detail = crate::finding::printable(wrong.detail.as_bytes());
            findings.line(Code::ManifestInvalid, MANIFEST, line, detail);
            return Ok(None);
        }
    };
    let mut reader = ManifestReader::new(text, deadline, findings);
    let read = root(&value, &mut reader);
    // After the deadline, members are omitted.
    deadline.check()?;
    Ok(read.filter(|_| reader.findings.is_empty()))
}

fn root(value: &Value, reader: &mut ManifestReader<'_>) -> Option<Manifest> {
    let known = ["schema_version", "bindings", "collections", "spa", "csp"];
    let members = reader.object(value, "", &known)?;
    if let Some(version) = reader.needed(members, "", "schema_version") {
        reader.integer(version, "/schema_version", 1, 1);
    }
    let bindings = reader.needed(members, "", "bindings");
    let bindings = bindings.map(|value| named(value, "/bindings", MAX_BINDINGS, reader, binding::read));
    let collections = members.get("collections");
    let collections =
        collections.map(|value| named(value, "/collections", MAX_COLLECTIONS, reader, collection::read));
    let spa = reader.bool(members, "", "spa");
    let frame_ancestors = members.get("csp").map(|value| ancestors(value, reader)).unwrap_or_default();
    Some(Manifest { bindings: bindings?, collections, spa, frame_ancestors })
}

/// Reads an object whose member names the publisher chooses.
fn named<T>(
    value: &Value,
    pointer: &str,
    most: usize,
    reader: &mut ManifestReader<'_>,
    read: impl Fn(&Value, &str, &mut ManifestReader<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    let Some(members) = reader.map(value, pointer) else { return BTreeMap::new() };
    if members.len() > most {
        reader.invalid(pointer, format!("has more than {most} members."));
        return BTreeMap::new();
    }
    let mut named = BTreeMap::new();
    for (name, value) in members {
        if reader.deadline.has_passed() {
            break;
        }
        let place = below(pointer, name);
        check_name(name, &place, reader);
        if name.len() > POINTER_NAME_BYTES {
            continue;
        }
        if let Some(value) = read(value, &place, reader) {
            named.insert(name.clone(), value);
        }
    }
    named
}

/// Reports an invalid binding or collection name.
fn check_name(name: &str, pointer: &str, reader: &mut ManifestReader<'_>) {
    if !is_name(name) {
        let detail = "must have a name of 1 to 64 lowercase letters, digits, hyphens and underscores.";
        reader.invalid(pointer, detail);
    }
}

/// Whether a text is a valid binding or collection name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let rest = |byte: u8| plain(byte) || matches!(byte, b'-' | b'_');
    name.bytes().next().is_some_and(plain) && name.bytes().all(rest) && name.len() <= NAME_CHARS
}

fn ancestors(value: &Value, reader: &mut ManifestReader<'_>) -> Vec<String> {
    let Some(members) = reader.object(value, "/csp", &["frame_ancestors"]) else { return Vec::new() };
    let Some(value) = reader.needed(members, "/csp", "frame_ancestors") else { return Vec::new() };
    let origins = reader.strings(value, "/csp/frame_ancestors", MAX_ANCESTORS);
    for (number, origin) in origins.iter().enumerate() {
        if !is_origin(origin) {
            let place = below("/csp/frame_ancestors", &number.to_string());
            reader.invalid(&place, "must be `https://host` or `https://host:port`, without a wildcard.");
        }
    }
    origins
}

fn is_origin(origin: &str) -> bool {
    let Some(host) = origin.strip_prefix("https://") else { return false };
    let (host, port) = match host.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host, None),
    };
    let label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = |port: &str| digits(port) && port.parse::<u16>().is_ok_and(|port| port > 0);
    host.len() <= 253 && host.split('.').all(label) && port.is_none_or(is_port)
}
