//! The service's data folder: locked by one process, with a few small files.

mod look;

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::Secret;
use uuid::Uuid;

pub use look::{Looked, look};

/// The lock file of the process that uses the folder.
const LOCK_FILE: &str = "callboard.lock";
/// The vault's keys.
const VAULT_FILE: &str = "vault.key";

/// The reason why the data folder is not usable.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another service holds the folder.
    #[error(
        "the data folder {} is in use by another service{}: stop it, or set SERVICE_DATA_DIR to another folder",
        path.display(), pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
        /// The process id in the lock file.
        pid: Option<u32>,
    },
    /// The folder cannot be created or written.
    #[error("the data folder {} cannot be used: {reason}; set SERVICE_DATA_DIR to a folder that this user may write to", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// The obstacle.
        reason: String,
    },
    /// One of the service's files has unexpected content.
    #[error("{} does not contain {expected}: restore it from a backup, or remove it to create a new one", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
    },
    /// Key generation failed.
    #[error("cannot generate a key for {}", path.display())]
    Key {
        /// The file for the key.
        path: PathBuf,
        /// The generator's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An operating system call failed.
    #[error(
        "cannot {doing} {}: {source}; fix the cause, or set SERVICE_DATA_DIR to another folder", path.display()
    )]
    Io {
        /// The attempted operation.
        doing: &'static str,
        /// The path concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl DataDirError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// The data folder, locked by this process until it is dropped. The kernel releases the lock after a `kill -9`.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Never read: the open file holds the lock.
    _lock: File,
}

impl DataDir {
    /// Creates the folder if it is missing, and locks it.
    ///
    /// # Errors
    /// [`DataDirError::InUse`] when another service holds the lock; [`DataDirError::Unusable`] when the folder
    /// cannot be created or written.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        // For root the database runs as another user, who must be able to traverse this folder.
        let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let made = make(&path, mode).and_then(|()| path.canonicalize());
        let path = made.map_err(|error| unusable(&path, &path, &error))?;
        let lock = lock(&path)?;
        Ok(Self { path, _lock: lock })
    }

    /// The folder as an absolute path without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// This instance's id, the same at every start. Calls `make` only the first time.
    ///
    /// # Errors
    /// [`DataDirError::Malformed`] when the file contains no id; [`DataDirError::Io`].
    pub fn instance_id(&self, make: impl FnOnce() -> Uuid) -> Result<Uuid, DataDirError> {
        let path = self.path.join("instance-id");
        if let Some(text) = read(&path)? {
            return Uuid::parse_str(text.trim())
                .map_err(|_| DataDirError::Malformed { path, expected: "an instance id" });
        }
        let id = make();
        write_atomically(&path, format!("{id}\n").as_bytes(), 0o644)?;
        Ok(id)
    }

    /// The vault's keys, as JSON text in the `SERVICE_VAULT_KEYS` format. Calls `make` only the first time.
    ///
    /// # Errors
    /// [`DataDirError::Malformed`] when the file is not such JSON (never replaced: its sealed data would be
    /// lost); [`DataDirError::Key`] when `make` failed; [`DataDirError::Io`].
    pub fn vault_key_file<E>(
        &self,
        make: impl FnOnce() -> Result<[u8; 32], E>,
    ) -> Result<Secret, DataDirError>
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = self.path.join(VAULT_FILE);
        if let Some(text) = vault_keys(&path)? {
            // A restore or a copy may have widened the permissions.
            std::fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(DataDirError::io("protect", &path))?;
            return Ok(text.into());
        }
        let key = make().map_err(|error| DataDirError::Key { path: path.clone(), source: error.into() })?;
        let text =
            serde_json::json!({ "active": "local", "keys": { "local": STANDARD.encode(key) } }).to_string();
        write_atomically(&path, text.as_bytes(), 0o600)?;
        Ok(text.into())
    }
}

fn make(path: &Path, mode: u32) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if path.metadata()?.is_dir() {
                Ok(())
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
        made => made,
    }
}

/// Names the obstacle: `failed` itself, or its nearest existing ancestor.
fn unusable(folder: &Path, failed: &Path, error: &io::Error) -> DataDirError {
    let there = failed.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(failed);
    let shown = there.display();
    let reason = match error.kind() {
        _ if there.metadata().is_err() => format!("{shown} is a dangling symbolic link"),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            format!("{shown} is a file, not a folder")
        }
        io::ErrorKind::PermissionDenied => {
            let uid = rustix::process::geteuid().as_raw();
            format!("the user with the id {uid} may not write to {shown}")
        }
        io::ErrorKind::ReadOnlyFilesystem => format!("{shown} is on a file system that is read-only"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("the disk of {shown} is full")
        }
        _ => format!("{shown}: {error}"),
    };
    DataDirError::Unusable { path: folder.to_owned(), reason }
}

/// Locks the folder, and writes this process id into the lock file for other processes to report.
fn lock(folder: &Path) -> Result<File, DataDirError> {
    let path = folder.join(LOCK_FILE);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| unusable(folder, &path, &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(DataDirError::InUse { path: folder.to_owned(), pid: holder(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(DataDirError::io("lock", &path)(error)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(|error| unusable(folder, &path, &error))?;
    Ok(file)
}

/// The process id in the lock file.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok())
}

/// The vault file's text; `None` if the file is missing.
fn vault_keys(path: &Path) -> Result<Option<String>, DataDirError> {
    let text = read(path)?;
    if text.as_deref().is_some_and(|text| !holds_active_key(text)) {
        return Err(DataDirError::Malformed { path: path.to_owned(), expected: "vault keys" });
    }
    Ok(text)
}

fn holds_active_key(text: &str) -> bool {
    let Ok(json) = serde_json::from_str::<serde_json::Value>(text) else { return false };
    let Some(active) = json.get("active").and_then(serde_json::Value::as_str) else { return false };
    json.get("keys").and_then(|keys| keys.get(active)).is_some_and(serde_json::Value::is_string)
}

fn read(path: &Path) -> Result<Option<String>, DataDirError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DataDirError::io("read", path)(error)),
    }
}

/// Writes the whole file or nothing, even across a power failure.
fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> Result<(), DataDirError> {
    let new = path.with_extension("new");
    let write = || {
        // A leftover may have other permissions.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().map_err(DataDirError::io("write", path))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kernel::{Random, SystemRandom};
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_second_lock_is_rejected_and_names_the_holder() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("deep/data");
        let held = DataDir::open(&path).unwrap();
        let text = DataDir::open(&path).unwrap_err().to_string();
        assert!(text.contains("deep/data"), "{text}");
        assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
        drop(held);
        DataDir::open(&path).unwrap();
    }

    #[test]
    fn an_unusable_data_folder_has_a_precise_error() {
        let temp = tempfile::tempdir().unwrap();
        let temp = temp.path().canonicalize().unwrap();
        let error_text = |path: &Path| DataDir::open(path).unwrap_err().to_string();
        let file = temp.join("file");
        std::fs::write(&file, "").unwrap();
        let shown = file.display();
        assert_eq!(
            error_text(&file),
            format!(
                "the data folder {shown} cannot be used: {shown} is a file, not a folder; set SERVICE_DATA_DIR to a \
                 folder that this user may write to"
            )
        );
        let below = error_text(&file.join("deep/data"));
        assert!(
            below.contains(&format!("deep/data cannot be used: {shown} is a file, not a folder;")),
            "{below}"
        );
        let link = temp.join("link");
        std::os::unix::fs::symlink(temp.join("nowhere"), &link).unwrap();
        assert!(error_text(&link).contains(&format!("{} is a dangling symbolic link", link.display())));
        let closed = temp.join("closed");
        std::fs::create_dir(&closed).unwrap();
        for (kind, expected) in [
            (io::ErrorKind::PermissionDenied, "may not write to "),
            (io::ErrorKind::ReadOnlyFilesystem, "is on a file system that is read-only"),
            (io::ErrorKind::StorageFull, "the disk of "),
        ] {
            let text = unusable(&closed, &closed.join("callboard.lock"), &kind.into()).to_string();
            assert!(text.contains(expected) && text.contains("SERVICE_DATA_DIR"), "{text}");
        }
        std::fs::set_permissions(&closed, Permissions::from_mode(0o500)).unwrap();
        if !rustix::process::geteuid().is_root() {
            let text = error_text(&closed.join("data"));
            assert!(text.contains(&format!("may not write to {};", closed.display())), "{text}");
        }
    }

    #[test]
    fn the_data_folder_is_private_but_traversable_if_root_owns_it() {
        let temp = tempfile::tempdir().unwrap();
        let folder = DataDir::open(&temp.path().join("data")).unwrap();
        let mode = folder.path().metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 });
    }

    #[test]
    fn the_instance_id_is_created_once() {
        let temp = tempfile::tempdir().unwrap();
        let folder = DataDir::open(temp.path()).unwrap();
        let first = folder.instance_id(|| Uuid::from_u128(7)).unwrap();
        assert_eq!(folder.instance_id(|| Uuid::from_u128(8)).unwrap(), first);
        std::fs::write(folder.path().join("instance-id"), "nonsense").unwrap();
        assert!(matches!(folder.instance_id(|| Uuid::from_u128(9)), Err(DataDirError::Malformed { .. })));
    }

    #[test]
    fn the_vault_key_is_created_once_with_private_permissions() {
        let temp = tempfile::tempdir().unwrap();
        let folder = DataDir::open(temp.path()).unwrap();
        let make = || {
            let mut key = [0; 32];
            SystemRandom::new().fill(&mut key).map(|()| key)
        };
        let first = folder.vault_key_file(make).unwrap();
        let file = folder.path().join("vault.key");
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let second = folder.vault_key_file(|| Err::<[u8; 32], _>("must not be asked")).unwrap();
        assert_eq!(first.expose_secret(), second.expose_secret());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let json: serde_json::Value = serde_json::from_str(first.expose_secret()).unwrap();
        let key = json["keys"][json["active"].as_str().unwrap()].as_str().unwrap();
        assert_eq!(STANDARD.decode(key).unwrap().len(), 32);
    }

    #[test]
    fn a_broken_vault_key_is_never_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let folder = DataDir::open(temp.path()).unwrap();
        let file = folder.path().join("vault.key");
        std::fs::write(&file, "{}").unwrap();
        // The generator's error is converted, so even an impossible one needs a type that fits.
        let answer = folder.vault_key_file(|| Ok::<_, Infallible>([1; 32]));
        assert!(matches!(answer, Err(DataDirError::Malformed { .. })));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}");
    }
}
