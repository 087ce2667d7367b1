//! Checks a received archive and stores its files in the database. Both read the archive on blocking threads, so that
//! no request waits.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

use bundle::{Accepted, CheckError, Finding, Limits, Verdict};
use config::Apps;
use kernel::Clock;
use store::{BLOB_CHUNK, BlobPart};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use wire::{BundleFinding, ErrorCode};

use super::{Upload, busy};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::RouteScope;

/// Maximum chunk bytes per insert.
const PART_BYTES: usize = 4 << 20;

/// An accepted bundle.
pub(in crate::http::apps) struct CheckedBundle(pub(in crate::http::apps) Arc<Accepted>);

/// Checks the archive.
///
/// # Errors
/// The findings; 503 if the check takes too long.
pub(in crate::http::apps) async fn check<S: RouteScope>(upload: &Upload<S>) -> ApiResult<CheckedBundle> {
    let app = upload.caller.app();
    let (received, limits) = (Arc::clone(&upload.received), limits(&app.config().apps));
    let clock: Arc<dyn Clock> = Arc::clone(app.clock());
    let checked = spawn_blocking(move || {
        let mut archive = received.file.handle()?;
        bundle::check(&mut archive, &limits, &*clock, bundle::TIME)
    });
    match checked.await.map_err(internal)? {
        Ok(Verdict::Accepted(accepted)) => Ok(CheckedBundle(Arc::from(accepted))),
        Ok(Verdict::Refused(findings)) => Err(refused(findings)),
        Err(CheckError::Overdue) => Err(busy()),
        Err(CheckError::Io(error)) => Err(internal(error)),
    }
}

fn limits(apps: &Apps) -> Limits {
    let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Limits {
        compressed: apps.max_compressed_bytes,
        expanded: apps.max_expanded_bytes,
        files: whole(apps.max_files),
        file: apps.max_file_bytes,
        depth: whole(apps.max_depth),
    }
}

fn refused(findings: Vec<Finding>) -> ApiError {
    let finding = |found: Finding| BundleFinding {
        code: found.code.as_str().to_owned(),
        path: found.path,
        line: found.line,
        detail: found.detail,
    };
    ApiError::found(findings.into_iter().map(finding).collect())
}

fn internal(error: impl std::fmt::Display) -> ApiError {
    ApiError::new(ErrorCode::Internal).with_cause(error)
}

impl CheckedBundle {
    /// Stores the files as blobs, except those already stored.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer or the archive cannot be read.
    pub(in crate::http::apps) async fn store_files<S: RouteScope>(
        &self,
        upload: &Upload<S>,
    ) -> ApiResult<()> {
        let store = upload.caller.store();
        // Each content once, ordered by digest.
        let mut wanted: BTreeMap<[u8; 32], usize> = BTreeMap::new();
        for (number, file) in self.0.files.iter().enumerate() {
            wanted.entry(file.digest).or_insert(number);
        }
        let digests: Vec<[u8; 32]> = wanted.keys().copied().collect();
        let known: HashSet<[u8; 32]> = store.used_blobs(&digests).await?;
        let numbers = wanted.into_iter().filter(|(digest, _)| !known.contains(digest));
        let numbers: Vec<usize> = numbers.map(|(_, number)| number).collect();
        let (accepted, received) = (Arc::clone(&self.0), Arc::clone(&upload.received));
        let (sender, mut parts) = mpsc::channel(1);
        let reading = spawn_blocking(move || {
            let mut archive = received.file.handle()?;
            read(&accepted, &numbers, &mut archive, &sender)
        });
        let mut stored = Ok(());
        while let Some(part) = parts.recv().await {
            stored = store.put_blob_parts(part).await;
            if stored.is_err() {
                break;
            }
        }
        // Dropping the receiver ends the reader.
        drop(parts);
        let read = reading.await.map_err(internal)?;
        stored?;
        read.map_err(internal)
    }
}

/// Sends the files' chunks.
fn read(
    accepted: &Accepted,
    numbers: &[usize],
    archive: &mut File,
    sender: &mpsc::Sender<Vec<BlobPart>>,
) -> io::Result<()> {
    let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    let (mut part, mut bytes) = (Vec::new(), 0);
    for file in numbers.iter().filter_map(|number| accepted.files.get(*number)) {
        let mut content = file.open(archive)?;
        let mut number = 0;
        loop {
            let mut chunk = Vec::new();
            content.by_ref().take(u64::try_from(BLOB_CHUNK).unwrap_or(u64::MAX)).read_to_end(&mut chunk)?;
            if chunk.is_empty() && number > 0 {
                break;
            }
            let ends = chunk.len() < BLOB_CHUNK;
            bytes += chunk.len();
            part.push(BlobPart { digest: file.digest, size: file.size, number, bytes: chunk });
            number += 1;
            if bytes >= PART_BYTES {
                sender.blocking_send(std::mem::take(&mut part)).map_err(gone)?;
                bytes = 0;
            }
            if ends {
                break;
            }
        }
    }
    if part.is_empty() { Ok(()) } else { sender.blocking_send(part).map_err(gone) }
}

#[cfg(test)]
mod tests {
    use bundle::Code;

    use super::*;

    #[test]
    fn every_bundle_code_has_the_same_texts_in_the_error_table() {
        for code in Code::ALL {
            let known = ErrorCode::from_code(code.as_str()).unwrap();
            assert_eq!((known.message(), known.help()), (code.message(), code.help()), "{}", code.as_str());
            let status = if *code == Code::BundleTooLarge { 413 } else { 422 };
            assert_eq!(known.status(), status, "{}", code.as_str());
        }
    }
}
