//! The check's stages. A stage runs only if the previous stage has no findings.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

use kernel::Clock;

use crate::accepted::{Accepted, File};
use crate::archive;
use crate::code::Code;
use crate::contents::Contents;
use crate::deadline::Deadline;
use crate::documents;
use crate::error::CheckError;
use crate::finding::{Finding, Findings};
use crate::kinds::{extension, media_type};
use crate::limits::Limits;
use crate::markup::Notes;
use crate::names::{EntryNames, MANIFEST};
use crate::policy::{Document, MAX_ALL_BYTES, MAX_BYTES, policy, sent_bytes};

/// The default time limit.
pub const TIME: Duration = Duration::from_secs(10);

/// The result of a check.
#[derive(Debug)]
pub enum Verdict {
    /// The bundle can be served.
    Accepted(Box<Accepted>),
    /// The bundle is refused for 1 to [`MAX_FINDINGS`](crate::MAX_FINDINGS) reasons, ordered by precedence.
    Refused(Vec<Finding>),
}

/// Checks a bundle. Files are inflated in pieces, except for documents (at most 5 MiB each, one at a time) and the
/// manifest. Memory grows with the entry count, the name lengths and a document's complexity, but not with other files'
/// sizes.
///
/// # Errors
/// [`CheckError::Io`] if the archive cannot be read, [`CheckError::Overdue`] after `time`.
pub fn check<R: Read + Seek>(
    archive: &mut R,
    limits: &Limits,
    clock: &dyn Clock,
    time: Duration,
) -> Result<Verdict, CheckError> {
    let deadline = Deadline::after(clock, time);
    match (Stages { archive, limits, deadline }).run() {
        Ok(accepted) => Ok(Verdict::Accepted(Box::new(accepted))),
        Err(StageError::Refused(findings)) => Ok(Verdict::Refused(findings.into_vec())),
        Err(StageError::Failed(error)) => Err(error),
    }
}

/// The reason that a stage ends the check.
enum StageError {
    Refused(Findings),
    Failed(CheckError),
}

impl From<CheckError> for StageError {
    fn from(error: CheckError) -> Self {
        Self::Failed(error)
    }
}

struct Stages<'a, R> {
    archive: &'a mut R,
    limits: &'a Limits,
    deadline: Deadline<'a>,
}

impl<R: Read + Seek> Stages<'_, R> {
    fn run(&mut self) -> Result<Accepted, StageError> {
        let mut accepted = self.read_entries()?;
        let (mut findings, mut notes) = (Findings::default(), Notes::default());
        let hashes =
            documents::read(self.archive, &accepted.files, &self.deadline, &mut findings, &mut notes)?;
        let mut findings = require_none(findings)?;
        accepted.manifest =
            documents::manifest(self.archive, &accepted.files, &self.deadline, &mut findings)?;
        require_none(findings)?;
        accepted.files.retain(|file| file.path != MANIFEST);
        for file in accepted.files.iter().filter(|file| extension(&file.path) == "wasm") {
            accepted.wasm = true;
            let detail = "The policy allows the app to compile WebAssembly.".to_owned();
            notes.add("wasm", &file.path, None, detail);
        }
        accepted.notes = notes.into_vec();
        require_none(add_policies(&mut accepted, hashes))?;
        Ok(accepted)
    }

    /// Reads the archive's entries and contents, but no documents: the manifest is still one of the files.
    fn read_entries(&mut self) -> Result<Accepted, StageError> {
        let size = self.archive.seek(SeekFrom::End(0)).map_err(CheckError::Io)?;
        let mut findings = Findings::default();
        if size > self.limits.compressed {
            let detail =
                format!("The archive has {size} bytes; at most {} are allowed.", self.limits.compressed);
            findings.archive(Code::BundleTooLarge, detail);
        }
        let mut findings = require_none(findings)?;
        let entries = archive::read(self.archive, &self.deadline, &mut findings)?;
        require_none(findings)?;
        let names = EntryNames::read(&entries, self.limits, &self.deadline)?;
        require_none(names.limits)?;
        let numbers = names.files.iter().map(|(_, number)| *number).collect();
        let contents = Contents::read(self.archive, &entries, &numbers, self.limits, &self.deadline)?;
        for findings in [contents.structure, contents.limits, names.names, contents.kinds] {
            require_none(findings)?;
        }
        let file = |(path, number): (String, usize)| {
            let (entry, digest) = (entries.get(number)?.clone(), *contents.digests.get(number)?);
            let (size, media_type) = (u64::from(entry.size), media_type(&path));
            let (script_hashes, policy) = (Vec::new(), None);
            Some(File { path, size, digest, media_type, script_hashes, policy, entry })
        };
        Ok(Accepted {
            files: names.files.into_iter().filter_map(file).collect(),
            dropped: names.dropped,
            manifest: None,
            notes: Vec::new(),
            size,
            expanded_size: contents.expanded,
            wasm: false,
        })
    }
}

/// Returns the empty findings, or ends the check with them.
fn require_none(findings: Findings) -> Result<Findings, StageError> {
    if findings.is_empty() { Ok(findings) } else { Err(StageError::Refused(findings)) }
}

/// Gives each document its script hashes and its policy.
fn add_policies(accepted: &mut Accepted, mut hashes: BTreeMap<String, Vec<String>>) -> Findings {
    let mut findings = Findings::default();
    let manifest = accepted.manifest.as_ref();
    let frame_ancestors = manifest.map(|manifest| manifest.frame_ancestors.as_slice()).unwrap_or_default();
    let (mut longest, mut all) = (0, 0_usize);
    for file in &mut accepted.files {
        let Some(hashes) = hashes.remove(&file.path) else { continue };
        let document = Document { hashes: &hashes, frame_ancestors, wasm: accepted.wasm };
        let own = sent_bytes(&policy(&Document { frame_ancestors: &[], ..document }));
        if own > MAX_BYTES {
            let detail = format!("The policy has {own} bytes; at most {MAX_BYTES} are allowed.");
            findings.file(Code::CspTooLarge, file.path.as_bytes(), detail);
        }
        let policy = policy(&document);
        longest = longest.max(sent_bytes(&policy));
        all = all.saturating_add(policy.len());
        file.policy = Some(policy);
        file.script_hashes = hashes;
    }
    // One finding for all documents.
    if longest > MAX_BYTES && findings.is_empty() {
        let detail = format!(
            "`/csp/frame_ancestors` extends a policy to {longest} bytes; at most {MAX_BYTES} are allowed."
        );
        findings.line(Code::CspTooLarge, MANIFEST, None, detail);
    }
    if all > MAX_ALL_BYTES && findings.is_empty() {
        let detail = format!(
            "The policies of all documents have {all} bytes; at most {MAX_ALL_BYTES} are allowed. Move inline scripts to files."
        );
        findings.archive(Code::CspTooLarge, detail);
    }
    findings
}
