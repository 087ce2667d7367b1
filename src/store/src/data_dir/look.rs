//! Inspects a data folder without locking it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};

use super::{DataDirError, LOCK_FILE, VAULT_FILE, holder, unusable, vault_keys};

/// The state of a data folder before a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// The folder's absolute path.
    pub path: PathBuf,
    /// Whether it exists; otherwise a start creates it.
    pub exists: bool,
    /// Set if a service holds the lock; contains the process id if known.
    pub holder: Option<Option<u32>>,
    /// The vault keys' file and its mode, if other users may read it.
    pub open_keys: Option<(PathBuf, u32)>,
    /// Bytes available to this user.
    pub free: u64,
}

/// Checks a folder by the rules of [`super::DataDir::open`]. Leaves nothing changed: removes its trial file.
///
/// # Errors
/// [`DataDirError`], as at a start.
pub fn look(path: &Path) -> Result<Looked, DataDirError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let exists = path.is_dir();
    let there = nearest(&path)?;
    let lock = path.join(LOCK_FILE);
    let holder = if exists { held_by(&path, &lock)? } else { None };
    if exists {
        write_on_trial(&path).map_err(|error| unusable(&path, &there, &error))?;
    } else {
        let may = access(&there, Access::WRITE_OK | Access::EXEC_OK);
        may.map_err(|error| unusable(&path, &there, &error.into()))?;
    }
    let free = statvfs(&there).map_err(|error| unusable(&path, &there, &error.into()))?;
    Ok(Looked {
        open_keys: open_keys(&path.join(VAULT_FILE))?,
        free: free.f_bavail.saturating_mul(free.f_frsize),
        path,
        exists,
        holder,
    })
}

/// The folder itself, or its nearest existing ancestor.
fn nearest(path: &Path) -> Result<PathBuf, DataDirError> {
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(path);
    match there.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(there.to_owned()),
        Ok(_) => Err(unusable(path, there, &io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(unusable(path, there, &error)),
    }
}

/// Writes and removes a file with a name that the service does not use.
fn write_on_trial(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".on-trial-{}", std::process::id()));
    let written =
        OpenOptions::new().write(true).create_new(true).open(&path).and_then(|file| file.sync_all());
    let removed = std::fs::remove_file(&path);
    written.and(removed)
}

/// Returns the lock's holder. Tries a shared lock and releases it at once.
fn held_by(folder: &Path, lock: &Path) -> Result<Option<Option<u32>>, DataDirError> {
    let mut file = match OpenOptions::new().read(true).write(true).open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(folder, lock, &error)),
    };
    match File::try_lock_shared(&file) {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(DataDirError::io("lock", lock)(error)),
    }
}

fn open_keys(path: &Path) -> Result<Option<(PathBuf, u32)>, DataDirError> {
    if vault_keys(path)?.is_none() {
        return Ok(None);
    }
    let metadata = path.metadata().map_err(DataDirError::io("read", path))?;
    let mode = metadata.permissions().mode() & 0o777;
    Ok((mode & 0o077 != 0).then(|| (path.to_owned(), mode)))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::super::DataDir;
    use super::*;

    #[test]
    fn a_missing_folder_is_not_created() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("deep/data");
        let looked = look(&path).unwrap();
        assert!(!looked.exists && looked.holder.is_none() && looked.free > 0, "{looked:?}");
        assert!(!temp.path().join("deep").exists());
    }

    #[test]
    fn a_holder_is_named_and_keeps_the_folder() {
        let temp = tempfile::tempdir().unwrap();
        let held = DataDir::open(temp.path()).unwrap();
        assert_eq!(look(temp.path()).unwrap().holder, Some(Some(std::process::id())));
        assert!(matches!(DataDir::open(temp.path()), Err(DataDirError::InUse { .. })));
        drop(held);
        assert_eq!(look(temp.path()).unwrap().holder, None);
        DataDir::open(temp.path()).unwrap();
    }

    #[test]
    fn an_inspection_reports_the_same_errors_as_a_start() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().canonicalize().unwrap().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("deep/data")] {
            let start = DataDir::open(&path).unwrap_err().to_string();
            assert_eq!(look(&path).unwrap_err().to_string(), start);
        }
    }

    #[test]
    fn readable_key_files_are_reported_and_malformed_ones_rejected() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join(VAULT_FILE);
        std::fs::write(&file, r#"{"active": "a", "keys": {"a": "x"}}"#).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(look(temp.path()).unwrap().open_keys, Some((file.clone(), 0o644)));
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(look(temp.path()).unwrap().open_keys, None);
        std::fs::write(&file, "{}").unwrap();
        assert!(matches!(look(temp.path()), Err(DataDirError::Malformed { .. })));
    }
}
