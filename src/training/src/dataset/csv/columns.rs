//! CSV dataset columns.

use std::collections::BTreeSet;

use kernel::json::{self, JsonError, Numbers};
use serde_json::{Number, Value};
use wire::{FieldError, escape};

use super::super::MAX_PROBLEMS;
use super::records::CsvRecord;

/// Maximum columns: each case stores all names.
const MOST: usize = 1_000;

/// The suffix for a column whose cells are JSON.
pub(super) const JSON: &str = ":json";

/// The case part to which a column belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ColumnTarget {
    /// `id` and `expected_output`.
    Case,
    Inputs,
    Metadata,
}

/// A column.
pub(super) struct Column {
    /// The header name without `:json`.
    pub(super) name: String,
    pub(super) part: ColumnTarget,
    /// The member name inside `part`.
    pub(super) member: String,
    pub(super) is_json: bool,
}

impl Column {
    /// `None` without a name.
    fn read(cell: &str) -> Option<Self> {
        let cell = cell.trim();
        let (name, is_json) = cell.strip_suffix(JSON).map_or((cell, false), |name| (name.trim_end(), true));
        let (part, member) = match (name, name.split_once('.')) {
            (_, Some(("inputs", member))) => (ColumnTarget::Inputs, member),
            (_, Some(("metadata", member))) => (ColumnTarget::Metadata, member),
            ("id" | "expected_output", _) => (ColumnTarget::Case, name),
            ("split", _) => (ColumnTarget::Metadata, name),
            _ => (ColumnTarget::Inputs, name),
        };
        if member.is_empty() {
            return None;
        }
        Some(Self { name: name.to_owned(), part, member: member.to_owned(), is_json })
    }

    /// A cell's value; `None` if absent.
    pub(super) fn value(&self, cell: &str) -> Result<Option<Value>, JsonError> {
        if self.is_json && !cell.is_empty() {
            return json::read(cell, Numbers::Values).map(Some);
        }
        if cell.is_empty() && (self.is_json || self.part != ColumnTarget::Inputs) {
            return Ok(None);
        }
        let is_weight = self.part == ColumnTarget::Metadata && self.member == "weight";
        let number = cell.trim().parse::<Number>().ok().filter(|_| is_weight);
        Ok(Some(number.map_or_else(|| Value::from(cell), Value::Number)))
    }

    /// The pointer to its cell in a record.
    pub(super) fn at(&self, record: &str) -> String {
        format!("{record}/{}", escape(&self.name))
    }
}

/// Reads a header's columns; `None` for a column with a problem.
pub(super) fn read_columns(header: &CsvRecord, problems: &mut Vec<FieldError>) -> Vec<Option<Column>> {
    if header.cells.len() > MOST {
        let message = format!("has {} columns; at most {MOST}", header.cells.len());
        problems.push(FieldError::new(&header.pointer, "size", message));
        return Vec::new();
    }
    let mut known = BTreeSet::new();
    let mut columns = Vec::new();
    for (place, cell) in header.cells.iter().enumerate() {
        if problems.len() >= MAX_PROBLEMS {
            break;
        }
        let mut column = Column::read(cell);
        match &column {
            None => {
                let pointer = format!("{}/{}", header.pointer, place + 1);
                problems.push(FieldError::new(pointer, "required", "the column needs a name"));
            }
            Some(named) if !known.insert((named.part, named.member.clone())) => {
                let message = format!("duplicate column '{}'", named.name);
                problems.push(FieldError::new(named.at(&header.pointer), "duplicate", message));
                column = None;
            }
            Some(_) => {}
        }
        columns.push(column);
    }
    columns
}
