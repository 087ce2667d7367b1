//! A bundle as a file: an existing archive, or a folder to archive. The same folder always gives the same archive.

use std::collections::BTreeSet;
use std::fs::{File, FileType};
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use bundle::{Code, Finding, Limits, MAX_FINDINGS};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Maximum bytes of a folder's files. No service accepts more, and the archive needs at most as much disk space.
const MAX_FOLDER_BYTES: u64 = Limits::HIGHEST.expanded;

/// Maximum files in a folder. No service accepts more.
const MAX_FILES: usize = Limits::HIGHEST.files;

/// The reason that a bundle cannot be opened.
#[derive(Debug)]
pub(super) enum Unopened {
    /// The bundle cannot be read.
    Io(io::Error),
    /// The folder contains links or special files; the first ones by name.
    Refused(Vec<Finding>),
}

impl From<io::Error> for Unopened {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The contents of a folder.
#[derive(Default)]
struct Contents {
    files: Vec<PathBuf>,
    refused: BTreeSet<Finding>,
}

/// Opens a bundle for reading.
pub(super) fn open(path: &Path) -> Result<File, Unopened> {
    let file = File::open(path)?;
    if !file.metadata()?.is_dir() {
        return Ok(file);
    }
    let mut contents = Contents::default();
    contents.collect(path, path)?;
    let Contents { files: paths, refused } = contents;
    if !refused.is_empty() {
        return Err(Unopened::Refused(refused.into_iter().collect()));
    }
    let sizes = paths.iter().map(|file| Ok(file.metadata()?.len()));
    if sizes.sum::<io::Result<u64>>()? > MAX_FOLDER_BYTES {
        let message = format!("its files have more than {MAX_FOLDER_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message).into());
    }
    let mut named =
        paths.into_iter().map(|file| Ok((name(path, &file)?, file))).collect::<io::Result<Vec<_>>>()?;
    named.sort_unstable();
    Ok(write(named.into_iter().map(|(name, file)| Ok((name, File::open(file)?))))?)
}

/// Archives files in the given order.
pub(crate) fn write<R: io::Read>(files: impl Iterator<Item = io::Result<(String, R)>>) -> io::Result<File> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(tempfile::tempfile()?);
    for file in files {
        let (name, mut content) = file?;
        writer.start_file(name, options)?;
        io::copy(&mut content, &mut writer)?;
    }
    let mut archive = writer.finish()?;
    archive.seek(SeekFrom::Start(0))?;
    Ok(archive)
}

impl Contents {
    /// Adds the files below `folder` in the bundle at `root`.
    fn collect(&mut self, root: &Path, folder: &Path) -> io::Result<()> {
        for entry in folder.read_dir()? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                self.collect(root, &path)?;
            } else if kind.is_file() {
                if self.files.len() == MAX_FILES {
                    let message = format!("it has more than {MAX_FILES} files");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
                }
                self.files.push(path);
            } else {
                self.refuse(path.strip_prefix(root).unwrap_or(&path), kind);
            }
        }
        Ok(())
    }

    fn refuse(&mut self, path: &Path, kind: FileType) {
        let (code, detail) = match kind.is_symlink() {
            true => (Code::Symlink, "The entry is a symbolic link."),
            false => (Code::SpecialFile, "The entry is neither a file nor a folder."),
        };
        self.refused.insert(Finding::of_file(code, path.as_os_str().as_encoded_bytes(), detail));
        if self.refused.len() > MAX_FINDINGS {
            self.refused.pop_last();
        }
    }
}

/// The path of a file within the archive.
fn name(folder: &Path, file: &Path) -> io::Result<String> {
    let unreadable = || {
        let message = format!("the name of {} is not UTF-8", file.display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    let below = file.strip_prefix(folder).map_err(io::Error::other)?;
    let parts = below.iter().map(|part| part.to_str()).collect::<Option<Vec<_>>>();
    Ok(parts.ok_or_else(unreadable)?.join("/"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use bundle::Verdict;
    use kernel::SystemClock;

    use super::*;

    #[test]
    fn a_walk_stops_at_too_many_files() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MAX_FILES {
            File::create(folder.path().join(number.to_string())).unwrap();
        }
        let collect = || {
            let mut contents = Contents::default();
            let collected = contents.collect(folder.path(), folder.path());
            (contents.files.len(), collected.map_err(|error| error.to_string()))
        };
        assert_eq!(collect(), (MAX_FILES, Err("it has more than 20000 files".to_owned())));
        std::fs::remove_file(folder.path().join("0")).unwrap();
        assert_eq!(collect(), (MAX_FILES, Ok(())));
    }

    #[test]
    fn a_folder_has_a_reproducible_and_valid_archive() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("assets")).unwrap();
        std::fs::write(folder.path().join("index.html"), "<p>Hi</p>").unwrap();
        std::fs::write(folder.path().join("assets/app.js"), "let a = 1;\n".repeat(50)).unwrap();
        let bytes = || {
            let mut bytes = Vec::new();
            open(folder.path()).unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        };
        let first = bytes();
        let index = folder.path().join("index.html");
        File::options().write(true).open(&index).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(bytes(), first);
        let verdict = bundle::check(
            &mut open(folder.path()).unwrap(),
            &Limits::DEFAULT,
            &SystemClock::new(),
            bundle::TIME,
        );
        let Ok(Verdict::Accepted(accepted)) = verdict else { panic!("{verdict:?}") };
        let paths: Vec<&str> = accepted.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["assets/app.js", "index.html"]);
        File::create(folder.path().join("large")).unwrap().set_len(MAX_FOLDER_BYTES + 1).unwrap();
        let Err(Unopened::Io(error)) = open(folder.path()) else { panic!("a folder of too many bytes") };
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn links_and_special_files_are_findings() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("index.html"), "<p>Hi</p>").unwrap();
        std::fs::create_dir(at("assets")).unwrap();
        std::os::unix::fs::symlink(at("index.html"), at("b\n.html")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("assets/a")).unwrap();
        std::os::unix::fs::symlink("assets", at("more")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("s")).unwrap();
        let refused = || match open(folder.path()) {
            Err(Unopened::Refused(findings)) => findings,
            opened => panic!("{opened:?}"),
        };
        let found: Vec<_> =
            refused().into_iter().map(|one| format!("{} {}", one.code.as_str(), one.path.unwrap())).collect();
        assert_eq!(found, ["symlink assets/a", r"symlink b\u{a}.html", "symlink more", "special_file s"]);
        for number in 0..MAX_FINDINGS {
            std::os::unix::fs::symlink("nowhere", at(&format!("a{number:03}"))).unwrap();
        }
        let found = refused();
        assert_eq!((found.len(), found[49].path.as_deref()), (MAX_FINDINGS, Some("a049")));
    }
}
