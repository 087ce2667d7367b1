//! The document stages: HTML, SVG and XML, then the manifest.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek};

use crate::accepted::File;
use crate::deadline::Deadline;
use crate::error::CheckError;
use crate::finding::Findings;
use crate::manifest::{self, Manifest};
use crate::markup::{self, MarkupKind, Notes};
use crate::names::MANIFEST;

/// Reads all documents; returns each page's script hashes by path.
pub(crate) fn read(
    archive: &mut (impl std::io::Read + Seek),
    files: &[File],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
    notes: &mut Notes,
) -> Result<BTreeMap<String, Vec<String>>, CheckError> {
    let mut hashes = BTreeMap::new();
    for file in files {
        let Some(kind) = MarkupKind::from_path(&file.path) else { continue };
        deadline.check()?;
        if !markup::is_readable(&file.path, file.size, findings) {
            continue;
        }
        let mut bytes = Vec::new();
        file.open(archive)?.read_to_end(&mut bytes)?;
        let scripts = markup::read(&file.path, kind, &bytes, deadline, findings, notes)?;
        if kind == MarkupKind::Html {
            hashes.insert(file.path.clone(), scripts);
        }
    }
    Ok(hashes)
}

/// Reads the manifest, if the bundle has one.
pub(crate) fn manifest(
    archive: &mut (impl std::io::Read + Seek),
    files: &[File],
    deadline: &Deadline<'_>,
    findings: &mut Findings,
) -> Result<Option<Manifest>, CheckError> {
    deadline.check()?;
    let Some(file) = files.iter().find(|file| file.path == MANIFEST) else { return Ok(None) };
    if !manifest::is_readable(file.size, findings) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.open(archive)?.read_to_end(&mut bytes)?;
    manifest::read(&bytes, deadline, findings)
}
