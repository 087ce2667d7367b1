//! Certificate and key files.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::output::CommandError;

/// Creates a private folder (mode 0700) unless it exists.
pub(super) fn folder(path: &Path) -> Result<(), CommandError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| failed(path, &error))
}

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>, CommandError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Writes a world-readable file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    put(path, text, 0o644)
}

/// Writes a private file (mode 0600).
pub(super) fn write_secret(path: &Path, text: &str) -> Result<(), CommandError> {
    put(path, text, 0o600)
}

/// Replaces a file atomically: a service that reads it meanwhile gets the old or the new file.
fn put(path: &Path, text: &str, mode: u32) -> Result<(), CommandError> {
    let fresh = path.with_extension("pem.new");
    let written = || -> io::Result<()> {
        // An earlier attempt may have left a file with another mode.
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)
    };
    written().map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> CommandError {
    format!("{}: {error}", path.display()).into()
}
