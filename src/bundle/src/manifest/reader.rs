//! Reads manifest members; problems become findings with line numbers.

use serde_json::{Map, Value};
use wire::{Lines, escape};

use crate::code::Code;
use crate::deadline::Deadline;
use crate::finding::{Findings, printable};
use crate::names::MANIFEST;

/// The manifest's text and its findings.
pub(super) struct ManifestReader<'a> {
    text: &'a str,
    /// Computed at the first finding.
    lines: Option<Lines>,
    pub(super) deadline: &'a Deadline<'a>,
    pub(super) findings: &'a mut Findings,
    /// Schema patterns so far.
    pub(super) patterns: usize,
    /// Their estimated bytes when compiled.
    pub(super) pattern_bytes: usize,
}

impl<'a> ManifestReader<'a> {
    pub(super) fn new(text: &'a str, deadline: &'a Deadline<'a>, findings: &'a mut Findings) -> Self {
        Self { text, lines: None, deadline, findings, patterns: 0, pattern_bytes: 0 }
    }

    /// Reports a problem at a pointer.
    pub(super) fn wrong(&mut self, code: Code, pointer: &str, detail: impl AsRef<str>) {
        let line = self.lines.get_or_insert_with(|| Lines::read(self.text)).line(pointer);
        let line = u32::try_from(line).ok();
        let place = if pointer.is_empty() { String::new() } else { format!("`{pointer}` ") };
        let detail = printable(format!("{place}{}", detail.as_ref()).as_bytes());
        self.findings.line(code, MANIFEST, line, detail);
    }

    pub(super) fn invalid(&mut self, pointer: &str, detail: impl AsRef<str>) {
        self.wrong(Code::ManifestInvalid, pointer, detail);
    }

    /// Reads an object with only these members.
    pub(super) fn object<'v>(
        &mut self,
        value: &'v Value,
        pointer: &str,
        known: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let members = self.map(value, pointer)?;
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.invalid(&below(pointer, name), format!("is not known; use {}.", known.join(", ")));
        }
        Some(members)
    }

    /// Reads an object with any members.
    pub(super) fn map<'v>(&mut self, value: &'v Value, pointer: &str) -> Option<&'v Map<String, Value>> {
        let members = value.as_object();
        if members.is_none() {
            self.invalid(pointer, "must be an object.");
        }
        members
    }

    /// Reads a required member.
    pub(super) fn needed<'v>(
        &mut self,
        members: &'v Map<String, Value>,
        pointer: &str,
        name: &str,
    ) -> Option<&'v Value> {
        let member = members.get(name);
        if member.is_none() {
            self.invalid(pointer, format!("needs the member `{name}`."));
        }
        member
    }

    pub(super) fn bool(&mut self, members: &Map<String, Value>, pointer: &str, name: &str) -> bool {
        let Some(value) = members.get(name) else { return false };
        if !value.is_boolean() {
            self.invalid(&below(pointer, name), "must be true or false.");
        }
        value.as_bool().unwrap_or_default()
    }

    /// Reads an integer within bounds.
    pub(super) fn integer(&mut self, value: &Value, pointer: &str, least: u32, most: u32) -> Option<u32> {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.invalid(pointer, format!("must be an integer from {least} to {most}."));
        }
        number
    }

    /// Reads a list of at most `most` distinct strings.
    pub(super) fn strings(&mut self, value: &Value, pointer: &str, most: usize) -> Vec<String> {
        let list = value.as_array().filter(|list| list.iter().all(Value::is_string));
        let Some(list) = list else {
            self.invalid(pointer, "must be a list of strings.");
            return Vec::new();
        };
        let list: Vec<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let mut sorted = list.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < list.len() {
            self.invalid(pointer, "has an entry twice.");
        }
        if list.len() > most {
            self.invalid(pointer, format!("has more than {most} entries."));
            return Vec::new();
        }
        list
    }

    /// Reads one of these texts.
    pub(super) fn choice<T: Copy>(
        &mut self,
        value: &Value,
        pointer: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let chosen = value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        if chosen.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.invalid(pointer, format!("must be one of {}.", names.join(", ")));
        }
        chosen.map(|(_, value)| *value)
    }
}

/// The pointer to a member.
pub(super) fn below(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", escape(name))
}
