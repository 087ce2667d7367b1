//! A bundle as a file: an archive as it is, or a folder that is archived. The same folder is always the same archive.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use bundle::Limits;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Bytes of the files of a folder. No service accepts more, and the archive needs as much disk at most.
const MAX_FOLDER_BYTES: u64 = Limits::HIGHEST.expanded;

/// Files of a folder. No service accepts more.
const MAX_FILES: usize = Limits::HIGHEST.files;

/// Opens a bundle for reading.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if !file.metadata()?.is_dir() {
        return Ok(file);
    }
    let mut paths = Vec::new();
    collect(path, &mut paths)?;
    let sizes = paths.iter().map(|file| Ok(file.metadata()?.len()));
    if sizes.sum::<io::Result<u64>>()? > MAX_FOLDER_BYTES {
        let message = format!("its files have more than {MAX_FOLDER_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut named =
        paths.into_iter().map(|file| Ok((name(path, &file)?, file))).collect::<io::Result<Vec<_>>>()?;
    named.sort_unstable();
    write(named.into_iter().map(|(name, file)| Ok((name, File::open(file)?))))
}

/// Archives files in this order.
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

/// The files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file() {
            if files.len() == MAX_FILES {
                let message = format!("it has more than {MAX_FILES} files");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            files.push(path);
        } else {
            let message = format!("{} is neither a file nor a folder", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    Ok(())
}

/// The path of a file in the archive.
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
    fn a_folder_of_too_many_files_is_not_walked_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MAX_FILES {
            File::create(folder.path().join(number.to_string())).unwrap();
        }
        let mut files = Vec::new();
        let error = collect(folder.path(), &mut files).unwrap_err();
        assert_eq!((error.to_string().as_str(), files.len()), ("it has more than 20000 files", MAX_FILES));
        std::fs::remove_file(folder.path().join("0")).unwrap();
        files.clear();
        collect(folder.path(), &mut files).unwrap();
        assert_eq!(files.len(), MAX_FILES);
    }

    #[test]
    fn a_folder_is_always_the_same_archive_and_is_accepted() {
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
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(index, &link).unwrap();
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        std::fs::remove_file(&link).unwrap();
        File::create(link).unwrap().set_len(MAX_FOLDER_BYTES + 1).unwrap();
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
