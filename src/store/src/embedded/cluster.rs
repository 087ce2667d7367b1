//! The cluster's folder: created once, completely or not at all.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use super::binaries::Binaries;
use super::process::command;
use super::user::RunAs;
use super::{DATABASE, EmbeddedError};

/// The prefix for an unfinished cluster's name, followed by the process id: a program from a killed service may
/// still be writing to one, and must not collide with ours.
const UNFINISHED: &str = "postgres.new-";

/// Returns the cluster's major version; `None` if the cluster must be created. Moves obstacles aside.
pub(super) fn major(cluster: &Path) -> Result<Option<u32>, EmbeddedError> {
    let version = version(cluster)?;
    if version.is_none() {
        move_aside(cluster)?;
    }
    Ok(version)
}

/// Returns the cluster's major version; `None` without a cluster.
pub(super) fn version(cluster: &Path) -> Result<Option<u32>, EmbeddedError> {
    let damaged = |reason| Err(EmbeddedError::Damaged { cluster: cluster.to_owned(), reason });
    match std::fs::read_to_string(cluster.join("PG_VERSION")) {
        Ok(text) => match text.trim().parse() {
            Ok(major) => Ok(Some(major)),
            Err(_) => damaged("its PG_VERSION contains no version"),
        },
        // There may be data, and a new cluster instead would look like a total loss.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && cluster.join("global/pg_control").exists() =>
        {
            damaged("its PG_VERSION is missing")
        }
        // A start moves aside a file at the folder's path.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(EmbeddedError::io("read", cluster)(error)),
    }
}

/// Frees the cluster's path. Deletes an empty folder; keeps anything else, because its owner is unknown.
fn move_aside(cluster: &Path) -> Result<(), EmbeddedError> {
    if cluster.symlink_metadata().is_err() || std::fs::remove_dir(cluster).is_ok() {
        return Ok(());
    }
    let free = (1_u32..)
        .map(|number| cluster.with_extension(format!("unusable-{number}")))
        .find(|path| path.symlink_metadata().is_err());
    let Some(free) = free else { return Ok(()) };
    tracing::warn!(from = %cluster.display(), to = %free.display(), "incomplete database moved aside");
    std::fs::rename(cluster, &free).map_err(EmbeddedError::io("move", cluster))
}

/// Creates the cluster with its database. It gets its final name only when it is complete.
pub(super) fn create(cluster: &Path, binaries: &Binaries, run_as: &RunAs) -> Result<(), EmbeddedError> {
    let Some(parent) = cluster.parent() else {
        return Err(EmbeddedError::Damaged { cluster: cluster.to_owned(), reason: "it is the root folder" });
    };
    remove_unfinished(parent);
    let new = parent.join(format!("{UNFINISHED}{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&new).map_err(EmbeddedError::io("create", &new))?;
    run_as.give(&new).map_err(EmbeddedError::io("change the owner of", &new))?;
    let fill = || {
        init(&new, binaries, run_as)?;
        create_database(&new, binaries, run_as)
    };
    let filled = fill().map_err(|reason| EmbeddedError::Create { cluster: cluster.to_owned(), reason });
    if filled.is_err() {
        let _ = std::fs::remove_dir_all(&new);
        return filled;
    }
    std::fs::rename(&new, cluster).map_err(EmbeddedError::io("create", cluster))?;
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(EmbeddedError::io("write", parent))
}

/// Removes the clusters that services left unfinished when they were killed.
fn remove_unfinished(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            // It blocks nothing: the next new cluster has another name.
            if let Err(error) = std::fs::remove_dir_all(entry.path()) {
                tracing::warn!(folder = %entry.path().display(), %error, "failed to delete an incomplete database");
            }
        }
    }
}

fn init(cluster: &Path, binaries: &Binaries, run_as: &RunAs) -> Result<(), String> {
    // Trusting every user is safe only because no other user can reach the socket: it is in a folder with mode
    // 0700 that belongs to the database's user (socket.rs ensures this), and nothing listens on the network.
    let output = command(&binaries.initdb(), run_as)
        .arg("-D")
        .arg(cluster)
        .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums", "--no-instructions"])
        .arg(format!("--username={DATABASE}"))
        .output()
        .map_err(|error| error.to_string())?;
    succeeded(&output)
}

fn create_database(cluster: &Path, binaries: &Binaries, run_as: &RunAs) -> Result<(), String> {
    // One backend without a server: no socket, no client, and a checkpoint at the end.
    let mut child = command(&binaries.postgres(), run_as)
        .args(["--single", "-j", "-D"])
        .arg(cluster)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        write!(input, "CREATE DATABASE {DATABASE};\n\n").map_err(|error| error.to_string())?;
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    // A failed statement does not change the exit status.
    if String::from_utf8_lossy(&output.stderr).contains("ERROR:") {
        return Err(last_words(&output));
    }
    succeeded(&output)
}

fn succeeded(output: &Output) -> Result<(), String> {
    if output.status.success() { Ok(()) } else { Err(format!("{}: {}", output.status, last_words(output))) }
}

fn last_words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(6)..).unwrap_or_default().join("; ")
}

/// The path of a data folder's cluster.
pub(super) fn place(data_dir: &Path) -> PathBuf {
    let cluster = data_dir.join("postgres");
    // It may have been moved to another disk; its process uses the real path.
    cluster.canonicalize().unwrap_or(cluster)
}
