//! The data folder, and files that contain secrets.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use config::{Config, Origin, Source, variables};
use store::data_dir::{DataDirError, Looked, look};

use super::report::Finding;

const FOLDER: &str = "data folder";
const SPACE: &str = "disk space";
const SECRETS: &str = "secret files";

const MIB: u64 = 1024 * 1024;
/// Below this, a start may fail halfway.
const TOO_LITTLE: u64 = 200 * MIB;
/// Below this, a service will soon run out of space.
const LITTLE: u64 = 2048 * MIB;

pub(super) struct FolderProbe {
    folder: Result<Looked, DataDirError>,
    /// Secret files that others may read, with their modes.
    open: Vec<(PathBuf, u32)>,
}

pub(super) fn probe(source: &Source, config: &Config) -> FolderProbe {
    let folder = look(&config.data.dir);
    let mut open = Vec::new();
    if variables().iter().any(|one| one.secret && source.origin(&one.name) == Origin::EnvFile) {
        open.extend(readable_by_others(Path::new(".env")));
    }
    open.extend(config.http.tls.as_ref().and_then(|tls| readable_by_others(&tls.key)));
    open.extend(folder.as_ref().ok().and_then(|looked| looked.open_keys.clone()));
    FolderProbe { folder, open }
}

fn readable_by_others(path: &Path) -> Option<(PathBuf, u32)> {
    let mode = path.metadata().ok()?.permissions().mode() & 0o777;
    (mode & 0o044 != 0).then(|| (path.to_owned(), mode))
}

pub(super) fn judge(probed: &FolderProbe, service_answers: bool) -> Vec<Finding> {
    let mut findings = match &probed.folder {
        Ok(looked) => vec![folder(looked, service_answers), space(looked.free)],
        Err(error) => vec![Finding::refusal(FOLDER, &error.to_string())],
    };
    if probed.open.is_empty() {
        findings.push(Finding::ok(SECRETS, "no file with secrets is readable by others"));
    }
    findings.extend(probed.open.iter().map(|(path, mode)| {
        let shown = path.display();
        Finding::warning(
            SECRETS,
            format!("{shown} is readable by others (mode {mode:o})"),
            format!("chmod 600 {shown}"),
        )
    }));
    findings
}

fn folder(looked: &Looked, service_answers: bool) -> Finding {
    let path = looked.path.display();
    match looked.holder {
        Some(pid) => {
            let process = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
            if service_answers {
                return Finding::ok(FOLDER, format!("{path}, held by the running service{process}"));
            }
            Finding::warning(
                FOLDER,
                format!(
                    "{path} is held by a service{process} that does not answer at the configured address"
                ),
                "it is starting or stopping, hangs, or listens elsewhere; a second start waits until it ends",
            )
        }
        None if looked.exists => Finding::ok(FOLDER, format!("{path} is writable")),
        None => Finding::ok(FOLDER, format!("{path} does not exist yet and can be created")),
    }
}

fn space(free: u64) -> Finding {
    let message = format!("{} MiB are free on the data folder's disk", free / MIB);
    let remedy = "free some space, or set SERVICE_DATA_DIR to a folder on a larger disk";
    if free < TOO_LITTLE {
        Finding::problem(SPACE, message, remedy)
    } else if free < LITTLE {
        Finding::warning(SPACE, message, remedy)
    } else {
        Finding::ok(SPACE, message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    fn inspected(holder: Option<Option<u32>>) -> Looked {
        Looked { path: "/data".into(), exists: true, holder, open_keys: None, free: LITTLE }
    }

    #[test]
    fn low_disk_space_is_a_warning_and_then_a_problem() {
        let levels = [0, TOO_LITTLE, LITTLE].map(|free| space(free).level);
        assert_eq!(levels, [Level::Problem, Level::Warning, Level::Ok]);
    }

    #[test]
    fn an_unresponsive_folder_holder_causes_a_warning() {
        assert_eq!(folder(&inspected(Some(Some(7))), true).level, Level::Ok);
        let silent = folder(&inspected(Some(Some(7))), false);
        assert_eq!(silent.level, Level::Warning);
        assert!(silent.message.contains("(process 7)"), "{}", silent.message);
        assert_eq!(folder(&inspected(None), false).level, Level::Ok);
    }
}
