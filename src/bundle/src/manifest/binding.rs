//! A binding: a workflow that the app may run, and its options.

use schema::{Bounds, Schema};
use serde_json::{Map, Value};
use wire::{AppBinding, BindingAccess, BindingLimits, OutputProjection};

use super::reader::{ManifestReader, below};
use crate::code::Code;

/// Maximum schema bytes.
const SCHEMA_BYTES: usize = 64 * 1024;
/// Maximum compiled pattern bytes, all schemas together.
pub(super) const MAX_PATTERN_BYTES: usize = 8 << 20;
const BOUNDS: Bounds = Bounds { patterns: 32, pattern_bytes: MAX_PATTERN_BYTES };
/// Maximum patterns, all schemas together: compiling one takes up to a few milliseconds.
pub(super) const MAX_PATTERNS: usize = 256;
/// Maximum run output fields.
const MAX_FIELDS: usize = 100;
const FIELD_CHARS: usize = 128;
const HANDLE_CHARS: usize = 64;

const MEMBERS: [&str; 7] = [
    "workflow",
    "version",
    "access_mode",
    "input_schema",
    "output_projection",
    "visitor_can_read_output",
    "limits",
];
const LIMITS: [&str; 4] = ["timeout_seconds", "output_max_bytes", "max_concurrent", "per_visitor_per_minute"];
const ACCESS_MODES: [(&str, BindingAccess); 2] =
    [("anonymous", BindingAccess::Anonymous), ("authenticated", BindingAccess::Authenticated)];

pub(super) fn read(value: &Value, pointer: &str, reader: &mut ManifestReader<'_>) -> Option<AppBinding> {
    let members = reader.object(value, pointer, &MEMBERS)?;
    let workflow = reader.needed(members, pointer, "workflow").and_then(|value| {
        let name = value.as_str().filter(|name| is_reference(name));
        if name.is_none() {
            reader.invalid(&below(pointer, "workflow"), "must be the handle or the id of a workflow.");
        }
        name.map(str::to_owned)
    });
    let version = reader.needed(members, pointer, "version");
    let most = i32::MAX.unsigned_abs();
    let version = version.and_then(|value| reader.integer(value, &below(pointer, "version"), 1, most));
    let access_mode = reader.needed(members, pointer, "access_mode");
    let access_mode =
        access_mode.and_then(|value| reader.choice(value, &below(pointer, "access_mode"), &ACCESS_MODES));
    Some(AppBinding {
        input_schema: schema(members, pointer, "input_schema", reader),
        output_projection: OutputProjection { fields: fields(members, pointer, reader) },
        visitor_can_read_output: reader.bool(members, pointer, "visitor_can_read_output"),
        limits: limits(members, pointer, reader),
        workflow: workflow?,
        version: version?,
        access_mode: access_mode?,
    })
}

/// Whether the text can be a handle or an id.
fn is_reference(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let lower = name.to_ascii_lowercase();
    let is_id = name.len() == 36 && lower.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id || !name.is_empty() && name.len() <= HANDLE_CHARS && name.bytes().all(plain)
}

/// Reads a schema, which must be valid and within its size limit. Keeps it as written; `null` means no schema.
pub(super) fn schema(
    members: &Map<String, Value>,
    pointer: &str,
    name: &str,
    reader: &mut ManifestReader<'_>,
) -> Option<Value> {
    let value = members.get(name).filter(|value| !value.is_null())?;
    let pointer = below(pointer, name);
    reader.map(value, &pointer)?;
    let bytes = value.to_string().len();
    if bytes > SCHEMA_BYTES {
        let detail = format!("has {bytes} bytes; at most {SCHEMA_BYTES} are allowed.");
        reader.wrong(Code::SchemaInvalid, &pointer, detail);
        return None;
    }
    reader.patterns = reader.patterns.saturating_add(schema::patterns(value));
    if reader.patterns > MAX_PATTERNS {
        let detail = format!("raises the manifest above {MAX_PATTERNS} patterns.");
        reader.wrong(Code::SchemaInvalid, &pointer, detail);
        return None;
    }
    match Schema::read_within(value, &BOUNDS) {
        Ok(schema) => reader.pattern_bytes = reader.pattern_bytes.saturating_add(schema.pattern_bytes()),
        Err(why) => {
            reader.wrong(Code::SchemaInvalid, &pointer, format!("is not a valid JSON Schema: {why}."));
            return None;
        }
    }
    if reader.pattern_bytes > MAX_PATTERN_BYTES {
        let detail =
            format!("raises the compiled patterns of the manifest above {} MiB.", MAX_PATTERN_BYTES >> 20);
        reader.wrong(Code::SchemaInvalid, &pointer, detail);
        return None;
    }
    Some(value.clone())
}

fn fields(members: &Map<String, Value>, pointer: &str, reader: &mut ManifestReader<'_>) -> Vec<String> {
    let Some(value) = members.get("output_projection") else { return Vec::new() };
    let pointer = below(pointer, "output_projection");
    let Some(projection) = reader.object(value, &pointer, &["fields"]) else { return Vec::new() };
    let Some(value) = reader.needed(projection, &pointer, "fields") else { return Vec::new() };
    let pointer = below(&pointer, "fields");
    let fields = reader.strings(value, &pointer, MAX_FIELDS);
    if fields.iter().any(|field| field.is_empty() || field.chars().count() > FIELD_CHARS) {
        reader.invalid(&pointer, format!("must have names of 1 to {FIELD_CHARS} characters."));
    }
    fields
}

fn limits(members: &Map<String, Value>, pointer: &str, reader: &mut ManifestReader<'_>) -> BindingLimits {
    let default = BindingLimits::default();
    let Some(value) = members.get("limits") else { return default };
    let pointer = below(pointer, "limits");
    let Some(limits) = reader.object(value, &pointer, &LIMITS) else { return default };
    let mut limit = |name: &str, most: u32, default: u32| {
        let value = limits.get(name);
        value.and_then(|value| reader.integer(value, &below(&pointer, name), 1, most)).unwrap_or(default)
    };
    BindingLimits {
        timeout_seconds: limit("timeout_seconds", 3_600, default.timeout_seconds),
        output_max_bytes: limit("output_max_bytes", 1_048_576, default.output_max_bytes),
        max_concurrent: limit("max_concurrent", 10_000, default.max_concurrent),
        per_visitor_per_minute: limit("per_visitor_per_minute", 1_000_000, default.per_visitor_per_minute),
    }
}
