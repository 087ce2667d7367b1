//! File names in a bundle.

mod collisions;
mod modes;
mod rules;

pub use rules::MANIFEST;

use crate::archive::ArchiveEntry;
use crate::code::Code;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::{Findings, printable};
use crate::hints;
use crate::limits::Limits;

const INDEX: &str = "index.html";
/// Files and folders that desktop systems add to archives.
const JUNK_FOLDER: &str = "__MACOSX";
const JUNK_FILES: [&str; 2] = [".DS_Store", "Thumbs.db"];
/// Maximum dropped files to list.
const MAX_DROPPED: usize = 100;

/// The checked names of the entries.
#[derive(Debug, Default)]
pub(crate) struct EntryNames {
    /// File paths, each with its entry number.
    pub(crate) files: Vec<(String, usize)>,
    /// The first dropped files, then a line with the number of others.
    pub(crate) dropped: Vec<String>,
    /// Findings about exceeded limits.
    pub(crate) limits: Findings,
    /// Findings about refused names.
    pub(crate) names: Findings,
}

impl EntryNames {
    /// Checks all entry names. Names are compared only if all are within the limits, because the work per name grows
    /// with its length and depth.
    pub(crate) fn read(
        entries: &[ArchiveEntry],
        limits: &Limits,
        deadline: &Deadline<'_>,
    ) -> Result<Self, CheckError> {
        let mut names = Self::default();
        let (mut folders, mut dropped) = (Vec::new(), Vec::new());
        let (mut count, mut junk) = (0_usize, 0_usize);
        for (number, entry) in entries.iter().enumerate() {
            deadline.check()?;
            let is_junk = std::str::from_utf8(&entry.name).is_ok_and(is_junk);
            *(if is_junk { &mut junk } else { &mut count }) += usize::from(!entry.is_folder());
            let path = entry.name.strip_suffix(b"/").unwrap_or(&entry.name);
            if let Some((code, detail)) = rules::too_large(path, limits.depth) {
                names.limits.file(code, &entry.name, detail);
                continue;
            }
            let Some(path) = names.entry(entry, is_junk) else { continue };
            if entry.is_folder() {
                folders.push(path);
            } else if !is_junk {
                names.files.push((path.to_owned(), number));
            } else if junk <= limits.files {
                dropped.push(path);
                names.dropped.push(printable(&entry.name));
            }
        }
        names.dropped.sort_unstable();
        names.dropped.truncate(MAX_DROPPED);
        if junk > MAX_DROPPED {
            names.dropped.push(format!("and {} more", junk - MAX_DROPPED));
        }
        names.files.sort_unstable();
        if count > limits.files {
            let detail = format!("The bundle has {count} files; at most {} are allowed.", limits.files);
            names.limits.archive(Code::TooManyFiles, detail);
        }
        if junk > limits.files {
            let most = limits.files;
            let detail =
                format!("The bundle has {junk} files of desktop systems; at most {most} are allowed.");
            names.limits.archive(Code::TooManyFiles, detail);
        }
        if !names.limits.is_empty() {
            return Ok(names);
        }
        let files: Vec<&str> = names.files.iter().map(|(path, _)| path.as_str()).collect();
        dropped.extend(&files);
        collisions::find(&dropped, &folders, deadline, &mut names.names)?;
        if !files.contains(&INDEX) {
            names.names.archive(Code::IndexMissing, hint(&files));
        }
        Ok(names)
    }

    /// Checks one entry; returns its path without a trailing slash if it is UTF-8. Junk is dropped but still checked,
    /// because other readers of the archive see it.
    fn entry<'a>(&mut self, entry: &'a ArchiveEntry, is_junk: bool) -> Option<&'a str> {
        let mut note = |code, detail: String| self.names.file(code, &entry.name, detail);
        if let Some((code, detail)) = modes::refused(entry) {
            note(code, detail.to_owned());
        }
        let Ok(name) = std::str::from_utf8(&entry.name) else {
            note(Code::NameNotUtf8, "The name is not UTF-8.".to_owned());
            return None;
        };
        if !name.is_ascii() && !entry.is_utf8() {
            note(Code::NameNotUtf8, "The name is not ASCII and not marked as UTF-8.".to_owned());
        }
        if entry.extras.other_name {
            note(Code::UnsafePath, "An extra field gives the entry another name.".to_owned());
        }
        let path = name.strip_suffix('/').unwrap_or(name);
        if let Some((code, detail)) = rules::unsafe_path(path) {
            note(code, detail);
        } else if !is_junk {
            rules::other_rules(path, entry.is_folder(), note);
        }
        Some(path)
    }
}

fn is_junk(name: &str) -> bool {
    let path = name.strip_suffix('/').unwrap_or(name);
    path.split('/').next() == Some(JUNK_FOLDER)
        || !name.ends_with('/') && path.rsplit('/').next().is_some_and(|last| JUNK_FILES.contains(&last))
}

/// Suggests the index's actual location.
fn hint(files: &[&str]) -> String {
    if let Some(other) = files.iter().find(|file| file.eq_ignore_ascii_case(INDEX)) {
        return format!("`{}` must have the name `{INDEX}`.", printable(other.as_bytes()));
    }
    let top = files.first().and_then(|file| file.split_once('/')).map(|(top, _)| top);
    let only = top.filter(|top| files.iter().all(|file| file.split('/').next() == Some(top)));
    match only {
        Some(top) => {
            let top = printable(top.as_bytes());
            format!("All files are in the folder `{top}`; archive its content instead.")
        }
        None => inner_index(files).map_or_else(
            || format!("The bundle needs the file `{INDEX}`."),
            |folder| hints::inner_index(&folder),
        ),
    }
}

/// The index folder that is nearest to the root.
fn inner_index(files: &[&str]) -> Option<String> {
    let folders = files.iter().filter_map(|file| file.strip_suffix(INDEX)?.strip_suffix('/'));
    let nearest = folders.min_by_key(|folder| folder.matches('/').count())?;
    Some(printable(nearest.as_bytes()))
}
