//! Paths that some system takes for the same.

use std::collections::{BTreeMap, BTreeSet};

use super::unicode::key;
use crate::code::Code;
use crate::finding::{Findings, printable};

/// Finds files with the same key, repeated folders, and files where another path has a folder.
pub(super) fn find<'a>(files: &[&'a str], folders: &[&'a str], findings: &mut Findings) {
    let mut by_key: BTreeMap<String, &'a str> = BTreeMap::new();
    let mut sorted = files.to_vec();
    sorted.sort_unstable();
    for file in &sorted {
        let other = by_key.entry(key(file)).or_insert(file);
        // The first of all files has the key; each later one collides with it.
        if !std::ptr::eq(*other, *file) {
            let detail = format!("Some systems take the path for `{}`.", printable(other.as_bytes()));
            findings.file(Code::PathCollision, file.as_bytes(), detail);
        }
    }
    let mut seen = BTreeSet::new();
    for folder in folders {
        if !seen.insert(*folder) {
            findings.file(Code::PathCollision, folder.as_bytes(), "The folder is in the archive twice.");
        }
    }
    let parents = sorted.iter().flat_map(|file| file.match_indices('/').filter_map(|(at, _)| file.get(..at)));
    let all: BTreeSet<&str> = parents.chain(folders.iter().copied()).collect();
    for folder in all {
        if let Some(file) = by_key.get(&key(folder)) {
            let detail = format!("Another path has the folder `{}`.", printable(folder.as_bytes()));
            findings.file(Code::PathCollision, file.as_bytes(), detail);
        }
    }
}
