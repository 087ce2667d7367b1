//! Bindings and collections declared outside a manifest, under the same rules.

use std::collections::BTreeMap;

use kernel::Clock;
use wire::{AppBinding, AppCollection};

use crate::check::TIME;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::{Finding, Findings};
use crate::manifest;

/// The declared value, or 1 to [`MAX_FINDINGS`](crate::MAX_FINDINGS) findings.
pub type Declared<T> = Result<T, Vec<Finding>>;

/// Reads a binding with this name.
///
/// # Errors
/// [`CheckError::Overdue`] if it takes longer than [`TIME`].
pub fn binding(name: &str, text: &[u8], clock: &dyn Clock) -> Result<Declared<AppBinding>, CheckError> {
    declared(text, clock, |deadline, findings| manifest::read_binding(name, text, deadline, findings))
}

/// Reads a collection; its member `name` contains its name.
///
/// # Errors
/// [`CheckError::Overdue`] if it takes longer than [`TIME`].
pub fn collection(text: &[u8], clock: &dyn Clock) -> Result<Declared<(String, AppCollection)>, CheckError> {
    declared(text, clock, |deadline, findings| manifest::read_collection(text, deadline, findings))
}

/// Checks bindings and collections together against the limits of a whole manifest.
#[must_use]
pub fn together(
    bindings: &BTreeMap<String, AppBinding>,
    collections: &BTreeMap<String, AppCollection>,
) -> Vec<Finding> {
    let mut findings = Findings::default();
    manifest::check_together(bindings, collections, &mut findings);
    findings.into_vec()
}

fn declared<T>(
    text: &[u8],
    clock: &dyn Clock,
    read: impl FnOnce(&Deadline<'_>, &mut Findings) -> Result<Option<T>, CheckError>,
) -> Result<Declared<T>, CheckError> {
    let mut findings = Findings::default();
    let size = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if !manifest::is_readable(size, &mut findings) {
        return Ok(Err(findings.into_vec()));
    }
    let read = read(&Deadline::after(clock, TIME), &mut findings)?;
    Ok(read.ok_or_else(|| findings.into_vec()))
}
