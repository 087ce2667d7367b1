//! Paths that some system takes for the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::Code;
use crate::finding::{Findings, printable};
use crate::unicode::key;

/// Finds files with the same key, repeated folders, and files where another path has a folder.
pub(super) fn find<'a>(files: &[&'a str], folders: &[&'a str], findings: &mut Findings) {
    let mut by_key: BTreeMap<String, &'a str> = BTreeMap::new();
    let mut sorted = files.to_vec();
    sorted.sort_unstable();
    for file in &sorted {
        let other = by_key.entry(path_key(file)).or_insert(file);
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
    let mut checked = BTreeSet::new();
    for path in sorted {
        for (folder, key) in parents(path) {
            if checked.insert(folder) {
                check_folder(folder, &key, &by_key, findings);
            }
        }
    }
    for folder in folders {
        check_folder(folder, &path_key(folder), &by_key, findings);
    }
}

/// A folder must not have the key of a file.
fn check_folder(folder: &str, key: &str, files: &BTreeMap<String, &str>, findings: &mut Findings) {
    if let Some(file) = files.get(key) {
        let detail = format!("Another path has the folder `{}`.", printable(folder.as_bytes()));
        findings.file(Code::PathCollision, file.as_bytes(), detail);
    }
}

fn path_key(path: &str) -> String {
    path.split('/').map(key).collect::<Vec<_>>().join("/")
}

/// The folders of a path with their keys. Each name is folded once: paths can be long, and deep.
fn parents(path: &str) -> Vec<(&str, String)> {
    let mut parents = Vec::new();
    let mut whole = String::new();
    for (at, _) in path.match_indices('/') {
        let Some(folder) = path.get(..at) else { continue };
        if !parents.is_empty() {
            whole.push('/');
        }
        whole.push_str(&key(folder.rsplit('/').next().unwrap_or_default()));
        parents.push((folder, whole.clone()));
    }
    parents
}
