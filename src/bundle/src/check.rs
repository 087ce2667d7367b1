//! The check's stages. A stage runs only if the previous stage has no findings.

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
use crate::names::{MANIFEST, Names};
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
    let stages = Stages { archive, limits, deadline };
    match stages.run()? {
        Ok(accepted) => Ok(Verdict::Accepted(Box::new(accepted))),
        Err(findings) => Ok(Verdict::Refused(findings.into_vec())),
    }
}

struct Stages<'a, R> {
    archive: &'a mut R,
    limits: &'a Limits,
    deadline: Deadline<'a>,
}

impl<R: Read + Seek> Stages<'_, R> {
    fn run(self) -> Result<Result<Accepted, Findings>, CheckError> {
        let Self { archive, limits, deadline } = self;
        let size = archive.seek(SeekFrom::End(0))?;
        let mut findings = Findings::default();
        if size > limits.compressed {
            let detail = format!("The archive has {size} bytes; at most {} are allowed.", limits.compressed);
            findings.archive(Code::BundleTooLarge, detail);
            return Ok(Err(findings));
        }
        let entries = archive::read(archive, &deadline, &mut findings)?;
        if !findings.is_empty() {
            return Ok(Err(findings));
        }
        let names = Names::read(&entries, limits, &deadline)?;
        if !names.limits.is_empty() {
            return Ok(Err(names.limits));
        }
        let numbers = names.files.iter().map(|(_, number)| *number).collect();
        let contents = Contents::read(archive, &entries, &numbers, limits, &deadline)?;
        let stages = [contents.structure, contents.limits, names.names, contents.kinds];
        if let Some(findings) = stages.into_iter().find(|findings| !findings.is_empty()) {
            return Ok(Err(findings));
        }
        let file = |(path, number): (String, usize)| {
            let (entry, digest) = (entries.get(number)?.clone(), *contents.digests.get(number)?);
            let (size, media_type) = (u64::from(entry.size), media_type(&path));
            let (script_hashes, policy) = (Vec::new(), None);
            Some(File { path, size, digest, media_type, script_hashes, policy, entry })
        };
        let mut files: Vec<File> = names.files.into_iter().filter_map(file).collect();
        drop(entries);
        let mut notes = Notes::default();
        let mut hashes = documents::read(archive, &files, &deadline, &mut findings, &mut notes)?;
        if !findings.is_empty() {
            return Ok(Err(findings));
        }
        let manifest = documents::manifest(archive, &files, &deadline, &mut findings)?;
        if !findings.is_empty() {
            return Ok(Err(findings));
        }
        files.retain(|file| file.path != MANIFEST);
        let wasm = files.iter().filter(|file| extension(&file.path) == "wasm");
        for file in wasm.clone() {
            notes.add(
                "wasm",
                &file.path,
                None,
                "The policy allows the app to compile WebAssembly.".to_owned(),
            );
        }
        let wasm = wasm.count() > 0;
        let frame_ancestors = manifest.as_ref().map(|manifest| manifest.frame_ancestors.as_slice());
        let frame_ancestors = frame_ancestors.unwrap_or_default();
        let (mut longest, mut all) = (0, 0_usize);
        for file in &mut files {
            let Some(hashes) = hashes.remove(&file.path) else { continue };
            let document = Document { hashes: &hashes, frame_ancestors, wasm };
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
        if !findings.is_empty() {
            return Ok(Err(findings));
        }
        Ok(Ok(Accepted {
            files,
            dropped: names.dropped,
            manifest,
            notes: notes.into_vec(),
            size,
            expanded_size: contents.expanded,
            wasm,
        }))
    }
}
