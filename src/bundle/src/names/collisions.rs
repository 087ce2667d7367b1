//! Paths that some systems treat as equal.

use std::collections::BTreeMap;

use ring::digest::{Context, SHA256};

use crate::code::Code;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::{Findings, printable};
use crate::unicode::key;

/// SHA-256 of the folded path, which can be eleven times as long as the path.
type PathKey = [u8; 32];

/// Finds files with equal keys, repeated folders, and files whose path is also a folder.
pub(super) fn find<'a>(
    files: &[&'a str],
    folders: &[&'a str],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<(), CheckError> {
    let mut by_key: BTreeMap<PathKey, &'a str> = BTreeMap::new();
    let mut inner: Vec<(PathKey, &'a str)> = Vec::new();
    let mut sorted = files.to_vec();
    sorted.sort_unstable();
    let mut keys = Keys::default();
    for file in sorted {
        deadline.check()?;
        let key = keys.next(file, |folder, key| inner.push((key, folder)));
        let other = by_key.entry(key).or_insert(file);
        // The first file has the key; each later one collides with it.
        if !std::ptr::eq(*other, file) {
            let detail = format!("Some systems take the path for `{}`.", printable(other.as_bytes()));
            findings.file(Code::PathCollision, file.as_bytes(), detail);
        }
    }
    let mut sorted = folders.to_vec();
    sorted.sort_unstable();
    let mut keys = Keys::default();
    for (number, folder) in sorted.iter().enumerate() {
        deadline.check()?;
        if number > 0 && sorted.get(number - 1) == Some(folder) {
            findings.file(Code::PathCollision, folder.as_bytes(), "The folder is in the archive twice.");
        }
        let key = keys.next(folder, |parent, key| inner.push((key, parent)));
        inner.push((key, folder));
    }
    for (key, folder) in inner {
        deadline.check()?;
        // A folder must not have a file's key.
        if let Some(file) = by_key.get(&key) {
            let detail = format!("Another path has the folder `{}`.", printable(folder.as_bytes()));
            findings.file(Code::PathCollision, file.as_bytes(), detail);
        }
    }
    Ok(())
}

/// Computes keys of sorted paths. All paths in a folder are adjacent, so a folder's name is folded once.
#[derive(Default)]
struct Keys<'a> {
    /// The folders of the previous path, each with its key so far.
    folders: Vec<(&'a str, Context)>,
}

impl<'a> Keys<'a> {
    /// Returns the key of the next path; `found` receives each folder that the previous path does not have.
    fn next(&mut self, path: &'a str, mut found: impl FnMut(&'a str, PathKey)) -> PathKey {
        let is_in = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        while self.folders.pop_if(|(folder, _)| !is_in(folder)).is_some() {}
        let known = self.folders.last().map_or(0, |(folder, _)| folder.len() + 1);
        let mut whole = self.folders.last().map_or_else(|| Context::new(&SHA256), |(_, key)| key.clone());
        let mut start = known;
        let rest = path.get(known..).unwrap_or_default();
        for (at, _) in rest.match_indices('/') {
            let Some(folder) = path.get(..known + at) else { continue };
            add(&mut whole, start > 0, path.get(start..known + at).unwrap_or_default());
            self.folders.push((folder, whole.clone()));
            found(folder, finished(whole.clone()));
            start = known + at + 1;
        }
        add(&mut whole, start > 0, path.get(start..).unwrap_or_default());
        finished(whole)
    }
}

/// Adds the next path segment.
fn add(whole: &mut Context, is_inner: bool, name: &str) {
    if is_inner {
        whole.update(b"/");
    }
    whole.update(key(name).as_bytes());
}

fn finished(whole: Context) -> PathKey {
    whole.finish().as_ref().try_into().unwrap_or_default()
}
