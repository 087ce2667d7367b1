//! Finds PostgreSQL's programs.

use std::path::{Path, PathBuf};

use super::fetch::{self, Npm};
use super::process::{command, first_line};
use super::user::RunAs;
use super::{EmbeddedError, EmbeddedOptions, look};

/// The oldest supported major version.
pub(crate) const OLDEST: u32 = 14;

/// A probed folder with PostgreSQL's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    pub(super) folder: PathBuf,
    pub(super) major: u32,
}

impl Binaries {
    pub(super) fn postgres(&self) -> PathBuf {
        self.folder.join("postgres")
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.folder.join("initdb")
    }

    /// Runs `postgres --version` as the user who will run it, so that missing rights and libraries show here.
    fn probe(folder: &Path, run_as: &RunAs) -> Result<Self, String> {
        for program in ["postgres", "initdb"] {
            if !folder.join(program).is_file() {
                return Err(format!("it does not contain `{program}`"));
            }
        }
        let postgres = folder.join("postgres");
        let output = command(&postgres, run_as)
            .arg("--version")
            .output()
            .map_err(|error| format!("{} does not start: {error}", postgres.display()))?;
        if !output.status.success() {
            return Err(format!("{} does not run: {}", postgres.display(), first_line(&output.stderr)));
        }
        let version = String::from_utf8_lossy(&output.stdout);
        match parse_major(&version) {
            None => Err(format!("its `postgres --version` printed `{}`", version.trim())),
            Some(major) if major < OLDEST => {
                Err(format!("PostgreSQL {major} is too old; {OLDEST} or newer is required"))
            }
            Some(major) => Ok(Self { folder: folder.to_owned(), major }),
        }
    }
}

/// Parses the major version in `postgres (PostgreSQL) 15.18 (Debian …)`.
fn parse_major(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("(PostgreSQL) ")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The locations to search, in order.
#[derive(Debug, Clone)]
pub(super) struct SearchPath {
    /// `SERVICE_PG_BIN`. Must be usable if given.
    pub(super) explicit: Option<PathBuf>,
    /// Contains `<major>/bin`, as on Debian.
    pub(super) installed: PathBuf,
    /// The folders of `PATH`.
    pub(super) path: Vec<PathBuf>,
    /// Contains `<version>/bin`, fetched earlier or now.
    pub(super) cache: PathBuf,
    /// The npm client for the last resort.
    pub(super) npm: Npm,
}

impl SearchPath {
    /// The locations on this machine.
    pub(super) fn of_machine(options: &EmbeddedOptions, data_dir: &Path) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self {
            explicit: options.binaries.clone(),
            installed: PathBuf::from("/usr/lib/postgresql"),
            path: std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect(),
            cache: data_dir.join("postgresql"),
            npm: Npm::default(),
        }
    }

    /// Finds programs for a new cluster.
    pub(super) fn any(&self, run_as: &RunAs) -> Result<Binaries, EmbeddedError> {
        match self.installed(None, run_as)? {
            Ok(binaries) => Ok(binaries),
            Err(_) => self.fetch(run_as).map_err(|reason| EmbeddedError::NoBinaries { reason }),
        }
    }

    /// Finds programs for `cluster`, which only its own major version can open.
    pub(super) fn for_major(
        &self,
        needed: u32,
        cluster: &Path,
        run_as: &RunAs,
    ) -> Result<Binaries, EmbeddedError> {
        let mut found = match self.installed(Some(needed), run_as)? {
            Ok(binaries) => return Ok(binaries),
            Err(found) => found,
        };
        if needed == fetch::MAJOR {
            match self.fetch(run_as) {
                Ok(binaries) => return Ok(binaries),
                Err(reason) => found.push(format!("nothing to fetch ({reason})")),
            }
        }
        let found = look::listed(found);
        Err(EmbeddedError::WrongVersion { cluster: cluster.to_owned(), needed, found })
    }

    /// Returns installed programs, with the needed major version if given; otherwise the unsuitable ones that
    /// were found.
    pub(super) fn installed(
        &self,
        needed: Option<u32>,
        run_as: &RunAs,
    ) -> Result<Result<Binaries, Vec<String>>, EmbeddedError> {
        let mut found = Vec::new();
        let places = self.places().filter_map(|folder| probe_or_skip(&folder, run_as));
        for binaries in self.explicit(run_as)?.into_iter().chain(places) {
            if needed.is_none_or(|needed| binaries.major == needed) {
                return Ok(Ok(binaries));
            }
            found.push(format!("PostgreSQL {} in {}", binaries.major, binaries.folder.display()));
        }
        Ok(Err(found))
    }

    /// Returns the major version that can be fetched, if it is the needed one; otherwise the reason.
    pub(super) fn fetchable(&self, needed: Option<u32>) -> Result<u32, String> {
        if needed.is_some_and(|needed| needed != fetch::MAJOR) {
            return Err(format!("only PostgreSQL {} can be fetched", fetch::MAJOR));
        }
        fetch::possible(&self.npm).map(|()| fetch::MAJOR)
    }

    fn explicit(&self, run_as: &RunAs) -> Result<Option<Binaries>, EmbeddedError> {
        let Some(folder) = &self.explicit else { return Ok(None) };
        let absolute = std::path::absolute(folder).map_err(EmbeddedError::io("resolve", folder))?;
        Binaries::probe(&absolute, run_as)
            .map(Some)
            .map_err(|reason| EmbeddedError::BadBinaries { folder: absolute, reason })
    }

    fn places(&self) -> impl Iterator<Item = PathBuf> {
        newest_first(&self.installed).chain(self.path.iter().cloned()).chain(newest_first(&self.cache))
    }

    fn fetch(&self, run_as: &RunAs) -> Result<Binaries, String> {
        let folder = fetch::fetch(&self.npm, &self.cache)?;
        Binaries::probe(&folder, run_as)
            .map_err(|reason| format!("the downloaded archive is not usable ({reason})"))
    }
}

fn probe_or_skip(folder: &Path, run_as: &RunAs) -> Option<Binaries> {
    // Most PATH folders have no PostgreSQL and need no log line.
    if !folder.join("postgres").is_file() {
        return None;
    }
    Binaries::probe(folder, run_as)
        .inspect_err(
            |reason| tracing::debug!(folder = %folder.display(), reason, "PostgreSQL installation skipped"),
        )
        .ok()
}

/// The `bin` folders of the versions below `folder`, ordered by number: 9.6, 10, 18.4.0-beta.17.
fn newest_first(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let mut versions: Vec<(Vec<u32>, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let numbers: Vec<u32> = name.split(['.', '-']).filter_map(|number| number.parse().ok()).collect();
            name.starts_with(|c: char| c.is_ascii_digit()).then(|| (numbers, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by(|one, other| other.cmp(one));
    versions.into_iter().map(|(_, folder)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["9.6", "18.4.0-beta.17", "15", "18.10.0-beta.1", "not-a-version", ".new-12"] {
            std::fs::create_dir(temp.path().join(name)).unwrap();
        }
        let names: Vec<String> = newest_first(temp.path())
            .map(|bin| bin.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["18.10.0-beta.1", "18.4.0-beta.17", "15", "9.6"]);
    }

    #[test]
    fn the_major_version_is_read() {
        assert_eq!(parse_major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(parse_major("mysqld 8"), None);
    }
}
