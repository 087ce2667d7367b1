//! A folder as a bundle: packed in memory, so that the check reads what an upload would have.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bundle::{Limits, Packer};

/// Packs all files of a folder. Links are packed as links, and are not followed. What is above a limit is cut just above it,
/// so that the check refuses it and memory stays bounded.
pub(super) fn pack(root: &Path) -> io::Result<Vec<u8>> {
    let mut files = files(root)?;
    files.sort_unstable_by(|one, other| path_in(root, one).cmp(path_in(root, other)));
    let mut packer = Packer::default();
    let mut expanded = 0_u64;
    for file in files {
        if expanded > Limits::DEFAULT.expanded {
            break;
        }
        let metadata = fs::symlink_metadata(&file).map_err(|error| named(&file, &error))?;
        let content = content(&file, &metadata).map_err(|error| named(&file, &error))?;
        expanded = expanded.saturating_add(u64::try_from(content.len()).unwrap_or(u64::MAX));
        let mode = u16::try_from(metadata.mode() & 0xffff).unwrap_or_default();
        packer.add(path_in(root, &file), mode, &content)?;
    }
    packer.finish()
}

/// Everything in a folder and its folders that is not a folder.
fn files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| named(&folder, &error))? {
            let entry = entry.map_err(|error| named(&folder, &error))?;
            let list = if entry.file_type()?.is_dir() { &mut folders } else { &mut files };
            list.push(entry.path());
        }
        if files.len() + folders.len() >= usize::from(u16::MAX) {
            return Err(io::Error::other("it has more files than an archive can have"));
        }
    }
    Ok(files)
}

/// At most one byte more than a file may have.
fn content(file: &Path, metadata: &Metadata) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if metadata.is_file() {
        fs::File::open(file)?.take(Limits::DEFAULT.file.saturating_add(1)).read_to_end(&mut content)?;
    } else if metadata.is_symlink() {
        content.extend(fs::read_link(file)?.as_os_str().as_bytes());
    }
    Ok(content)
}

fn path_in<'p>(root: &Path, file: &'p Path) -> &'p [u8] {
    file.strip_prefix(root).map(Path::as_os_str).map(OsStr::as_bytes).unwrap_or_default()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use bundle::{Code, Finding, Verdict};
    use kernel::SystemClock;

    use super::*;

    fn check(root: &Path) -> Verdict {
        let archive = pack(root).unwrap();
        assert_eq!(archive, pack(root).unwrap(), "the same folder has the same archive");
        bundle::check(&mut Cursor::new(archive), &Limits::DEFAULT, &SystemClock::new(), bundle::TIME).unwrap()
    }

    #[test]
    fn a_folder_is_checked_like_its_archive() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("js/inner")).unwrap();
        for (name, text) in [("index.html", "<p>Hi"), ("js/inner/a.js", "a()"), ("js.txt", "x")] {
            fs::write(root.join(name), text).unwrap();
        }
        let Verdict::Accepted(accepted) = check(root) else { panic!("refused") };
        let paths: Vec<&str> = accepted.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["index.html", "js.txt", "js/inner/a.js"]);
    }

    #[test]
    fn findings_of_a_folder_name_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("index.html"), "<p onclick=x>").unwrap();
        let found = |verdict| match verdict {
            Verdict::Refused(findings) => findings
                .into_iter()
                .map(|Finding { code, path, .. }| (code, path.unwrap_or_default()))
                .collect::<Vec<_>>(),
            Verdict::Accepted(_) => Vec::new(),
        };
        assert_eq!(found(check(root)), [(Code::InlineEventHandler, "index.html".to_owned())]);
        fs::create_dir(root.join("sub")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("sub/a.txt")).unwrap();
        fs::write(root.join(OsStr::from_bytes(b"b\xff")), "").unwrap();
        assert_eq!(
            found(check(root)),
            [(Code::NameNotUtf8, "b\\xff".to_owned()), (Code::Symlink, "sub/a.txt".to_owned())]
        );
    }

    #[test]
    fn a_large_file_is_refused_by_the_check() {
        let folder = tempfile::tempdir().unwrap();
        let large = fs::File::create(folder.path().join("a.bin")).unwrap();
        large.set_len(Limits::DEFAULT.file * 1_000).unwrap();
        let Verdict::Refused(findings) = check(folder.path()) else { panic!("accepted") };
        assert_eq!((findings[0].code, findings[0].path.as_deref()), (Code::FileTooLarge, Some("a.bin")));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let error = pack(Path::new("/nonexistent/folder")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/folder: "), "{error}");
    }
}
