//! The Unix socket's private folder, and a probe of the socket.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::user::RunAs;
use super::{DATABASE, EmbeddedError};

/// The port in the socket's name. No process listens on the network.
pub(super) const PORT: u16 = 5432;
/// A socket address holds 108 bytes on Linux and 104 on macOS, including the final zero.
const LONGEST: usize = 103;

/// Creates the socket's folder for the data in `data_dir`: short, private to its user, the same at every start.
///
/// The cluster trusts every user who can reach the socket, so access depends on this folder alone.
pub(super) fn prepare(data_dir: &Path, run_as: &RunAs) -> Result<PathBuf, EmbeddedError> {
    let folder = choose(data_dir, run_as, std::env::var_os("XDG_RUNTIME_DIR"));
    make_private(&folder, run_as)?;
    Ok(folder)
}

fn choose(data_dir: &Path, run_as: &RunAs, runtime_dir: Option<OsString>) -> PathBuf {
    let hash = ring::digest::digest(&ring::digest::SHA256, data_dir.as_os_str().as_bytes());
    let short = hex::encode(hash.as_ref().get(..4).unwrap_or_default());
    if let (RunAs::Ourselves, Some(runtime_dir)) = (run_as, runtime_dir) {
        let folder = Path::new(&runtime_dir).join(format!("callboard-{short}"));
        let owned = Path::new(&runtime_dir)
            .metadata()
            .is_ok_and(|found| found.is_dir() && found.uid() == run_as.uid());
        // PostgreSQL reads a comma as two folders, the client reads a space as two parameters.
        let plain =
            folder.as_os_str().as_bytes().iter().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(b));
        if owned && plain && folder.is_absolute() && socket(&folder, PORT).as_os_str().len() <= LONGEST {
            return folder;
        }
    }
    // The database's user cannot enter root's runtime folder, so it uses /tmp as well.
    PathBuf::from(format!("/tmp/callboard-{}-{short}", run_as.uid()))
}

fn make_private(folder: &Path, run_as: &RunAs) -> Result<(), EmbeddedError> {
    let refuse = |reason: String| EmbeddedError::SocketFolder { folder: folder.to_owned(), reason };
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(refuse(error.to_string())),
        _ => {}
    }
    // In /tmp another user may have created this path before. The checks and changes apply to the opened
    // folder.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty())
        .map_err(|error| refuse(format!("it is not a folder that this user may open ({error})")))?;
    let opened = File::from(opened);
    let metadata = opened.metadata().map_err(|error| refuse(error.to_string()))?;
    let ourselves = rustix::process::geteuid().as_raw();
    if ![ourselves, run_as.uid()].contains(&metadata.uid()) {
        return Err(refuse(format!("it belongs to another user (number {})", metadata.uid())));
    }
    let close = || {
        opened.set_permissions(PermissionsExt::from_mode(0o700))?;
        match run_as {
            RunAs::Ourselves => Ok(()),
            RunAs::Account(account) => fchown(&opened, Some(account.uid), Some(account.gid)),
        }
    };
    close().map_err(|error| refuse(error.to_string()))
}

/// The socket file's path.
fn socket(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

/// The result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// It accepts connections.
    Welcome,
    /// It exists and refuses or stays silent: starting, stopping, busy.
    NotNow,
    /// No process listens.
    Nobody,
}

/// Connects, sends the startup message, and disconnects.
pub(super) fn knock(folder: &Path, port: u16) -> ProbeResult {
    let talk = || -> io::Result<ProbeResult> {
        let mut stream = UnixStream::connect(socket(folder, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.set_write_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(&startup_message())?;
        let mut kind = [0_u8];
        stream.read_exact(&mut kind)?;
        // `R` is the authentication response; the alternative is `E`, an error.
        if kind != *b"R" {
            return Ok(ProbeResult::NotNow);
        }
        // Terminate, without a body.
        stream.write_all(b"X\0\0\0\x04")?;
        Ok(ProbeResult::Welcome)
    };
    match talk() {
        Ok(answer) => answer,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ProbeResult::Nobody,
            _ => ProbeResult::NotNow,
        },
    }
}

/// Length, protocol 3.0, then names and values, each terminated by a zero, and a final zero.
fn startup_message() -> Vec<u8> {
    let mut body = vec![0, 3, 0, 0];
    for word in ["user", DATABASE, "database", DATABASE] {
        body.extend_from_slice(word.as_bytes());
        body.push(0);
    }
    body.push(0);
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [length.to_be_bytes().as_slice(), &body].concat()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_runtime_folder_is_used_if_it_is_owned_and_short_enough() {
        let data = Path::new("/some/data");
        let temp = tempfile::tempdir().unwrap();
        let ours = choose(data, &RunAs::Ourselves, Some(temp.path().into()));
        assert_eq!(ours.parent(), Some(temp.path()));
        let fallback = choose(data, &RunAs::Ourselves, None);
        assert!(fallback.to_str().unwrap().starts_with("/tmp/callboard-"));
        assert_eq!(fallback, choose(data, &RunAs::Ourselves, Some("relative".into())));
        for name in ["with space".to_owned(), "x".repeat(90)] {
            let odd = temp.path().join(name);
            std::fs::create_dir(&odd).unwrap();
            assert_eq!(fallback, choose(data, &RunAs::Ourselves, Some(odd.into())));
        }
        assert_ne!(fallback, choose(Path::new("/other/data"), &RunAs::Ourselves, None));
    }

    #[test]
    fn the_folder_is_created_private_and_a_foreign_one_is_rejected() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("callboard-1");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        make_private(&folder, &RunAs::Ourselves).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);

        let link = temp.path().join("callboard-2");
        symlink(&folder, &link).unwrap();
        assert!(matches!(make_private(&link, &RunAs::Ourselves), Err(EmbeddedError::SocketFolder { .. })));

        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&folder, Some(64_321), None).unwrap();
            let error = make_private(&folder, &RunAs::Ourselves).unwrap_err().to_string();
            assert!(error.contains("another user (number 64321)"), "{error}");
        }
    }

    #[test]
    fn a_knock_without_a_server_has_no_answer() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(knock(temp.path(), PORT), ProbeResult::Nobody);
    }
}
