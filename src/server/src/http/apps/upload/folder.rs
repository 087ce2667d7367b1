//! Temporary files for uploaded archives, in a folder that no other user can read. Files are removed with their
//! handles.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The folder's name below the data folder.
const NAME: &str = "uploads";

/// The upload folder. Only this process has files in it.
#[derive(Debug, Clone)]
pub(super) struct UploadFolder(PathBuf);

impl UploadFolder {
    /// Creates the folder, or removes files left by an earlier process.
    ///
    /// # Errors
    /// If it cannot be created or read.
    pub(super) fn open(data: &Path) -> io::Result<Self> {
        let path = data.join(NAME);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        for entry in path.read_dir()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                continue;
            }
            std::fs::remove_file(entry.path())?;
        }
        Ok(Self(path))
    }

    /// Creates an empty file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn create(&self, id: Uuid) -> io::Result<UploadFile> {
        let path = self.0.join(format!("{id}.zip"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(UploadFile { file, path })
    }
}

/// A file in the folder, removed on drop.
#[derive(Debug)]
pub(super) struct UploadFile {
    file: File,
    path: PathBuf,
}

impl UploadFile {
    /// Returns the open file. All handles share one position.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for UploadFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "failed to remove an uploaded archive; the next start removes it");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_private_and_removed_with_their_handles_and_at_the_start() {
        let data = tempfile::tempdir().unwrap();
        let folder = UploadFolder::open(data.path()).unwrap();
        let names = || data.path().join(NAME).read_dir().unwrap().count();
        let file = folder.create(Uuid::from_u128(1)).unwrap();
        file.handle().unwrap().write_all(b"PK").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file.path), mode(&data.path().join(NAME))), (0o600, 0o700));
        assert!(folder.create(Uuid::from_u128(1)).is_err(), "never another file");
        assert_eq!(names(), 1);
        drop(file);
        assert_eq!(names(), 0);
        std::mem::forget(folder.create(Uuid::from_u128(2)).unwrap());
        assert_eq!(names(), 1);
        UploadFolder::open(data.path()).unwrap();
        assert_eq!(names(), 0);
    }
}
