//! `callboard app check`.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use bundle::{CheckError, Limits, Verdict};
use clap::Args;
use kernel::SystemClock;

use super::archive::{self, Unopened};
use super::report;
use crate::options::ClientOptions;
use crate::output::{CommandError, Output, piece, pretty, say};
use crate::terminal::Paint;

#[derive(Debug, Args)]
pub(crate) struct CheckBundle {
    /// A ZIP archive, or a folder
    #[arg(value_name = "FILE|FOLDER")]
    file: PathBuf,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl CheckBundle {
    pub(super) fn run(&self, options: &ClientOptions) -> Result<(), CommandError> {
        options.without_service("app check")?;
        let name = self.file.display().to_string();
        let verdict = match archive::open(&self.file) {
            Ok(archive) => check(&name, archive)?,
            Err(Unopened::Refused(findings)) => Verdict::Refused(findings),
            Err(Unopened::Io(error)) => return Err(unreadable(&name, &error)),
        };
        match options.output() {
            Output::Json => say(pretty(&report::json(&verdict))?)?,
            Output::Human => piece(report::text(&name, &verdict, Paint::stdout()))?,
        }
        match verdict {
            Verdict::Accepted(_) => Ok(()),
            Verdict::Refused(_) => Err(CommandError::Said),
        }
    }
}

fn check(name: &str, mut archive: File) -> Result<Verdict, CommandError> {
    let verdict = bundle::check(&mut archive, &Limits::DEFAULT, &SystemClock::new(), bundle::TIME);
    verdict.map_err(|error| match error {
        CheckError::Io(error) => unreadable(name, &error),
        CheckError::Overdue => {
            let limit = bundle::TIME.as_secs();
            format!("{name} cannot be checked within {limit} s: its documents are too complex").into()
        }
    })
}

fn unreadable(name: &str, error: &io::Error) -> CommandError {
    CommandError::usage(format!("{name} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// An archive with a stored page: local header and content, directory, end record.
    const PAGE: [&[u8]; 3] = [
        b"PK\x03\x04\x14\0\0\0\0\0\0\0!\x5cm\xd6\xf7\xeb\x05\0\0\0\x05\0\0\0\x0a\0\0\0index.html<p>Hi",
        b"PK\x01\x02\x14\x03\x14\0\0\0\0\0\0\0!\x5cm\xd6\xf7\xeb\x05\0\0\0\x05\0\0\0\x0a\0\0\0\0\0\0\0\0\0\0\0\xa4\x81\0\0\0\0index.html",
        b"PK\x05\x06\0\0\0\0\x01\0\x01\08\0\0\0-\0\0\0\0\0",
    ];

    fn check(path: &Path) -> Result<(), CommandError> {
        let check = CheckBundle { file: path.to_owned(), options: ClientOptions::default() };
        check.run(&ClientOptions::default())
    }

    #[test]
    fn the_check_uses_the_configured_limits() {
        use config::{Config, Source};

        let home = Source::from_pairs([("HOME", "/home/ada")]);
        let variables = [
            ("SERVICE_APPS_MAX_COMPRESSED_BYTES", Limits::HIGHEST.compressed),
            ("SERVICE_APPS_MAX_EXPANDED_BYTES", Limits::HIGHEST.expanded),
            ("SERVICE_APPS_MAX_FILES", u64::try_from(Limits::HIGHEST.files).unwrap()),
            ("SERVICE_APPS_MAX_FILE_BYTES", Limits::HIGHEST.file),
            ("SERVICE_APPS_MAX_DEPTH", u64::try_from(Limits::HIGHEST.depth).unwrap()),
        ];
        for (name, highest) in variables {
            let load = |value: u64| {
                let home = ("HOME", "/home/ada".to_owned());
                Config::load(&Source::from_pairs([home, (name, value.to_string())]))
            };
            assert!(load(highest).is_ok() && load(highest + 1).is_err(), "{name}");
        }
        let apps = Config::load(&home).unwrap().apps;
        let default = Limits {
            compressed: apps.max_compressed_bytes,
            expanded: apps.max_expanded_bytes,
            files: usize::try_from(apps.max_files).unwrap(),
            file: apps.max_file_bytes,
            depth: usize::try_from(apps.max_depth).unwrap(),
        };
        assert_eq!(default, Limits::DEFAULT);
    }

    #[test]
    fn a_refused_bundle_and_an_unreadable_file_have_their_exit_codes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("app.zip");
        fs::write(&file, PAGE.concat()).unwrap();
        assert!(check(&file).is_ok());
        fs::write(&file, [b"x", PAGE.concat().as_slice()].concat()).unwrap();
        assert!(matches!(check(&file), Err(CommandError::Said)), "refused: status 1");
        assert!(
            matches!(check(folder.path()), Err(CommandError::Said)),
            "a folder without an index is checked, too"
        );
        std::os::unix::fs::symlink("app.zip", folder.path().join("link")).unwrap();
        assert!(matches!(check(folder.path()), Err(CommandError::Said)), "a folder with links: status 1");
        let missing = folder.path().join("missing.zip");
        assert!(matches!(check(&missing), Err(CommandError::Told(_))), "wrong usage: status 2");
    }
}
