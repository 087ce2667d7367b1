//! Edits the profile file: preserves other content and comments, and keeps the file private.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chrono::SecondsFormat;
use kernel::Secret;
use secrecy::ExposeSecret as _;
use tempfile::NamedTempFile;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};

use super::{ACCESS_EXPIRES, ACCESS_TOKEN, REFRESH_TOKEN, SignIn};
use crate::output::CommandError;

/// The locked profile file. Content must be read after the lock is taken.
pub(crate) struct ProfileLock {
    path: PathBuf,
    _lock: File,
}

/// A prepared change: every check that may fail has been done.
pub(crate) struct Draft {
    path: PathBuf,
    file: NamedTempFile,
    document: DocumentMut,
    name: String,
}

impl ProfileLock {
    /// Waits for the lock.
    pub(crate) fn lock() -> Result<Self, CommandError> {
        let path = super::own_path().ok_or_else(|| {
            CommandError::usage("cannot locate the profile file: neither XDG_CONFIG_HOME nor HOME is set")
        })?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let beside = path.with_extension("toml.lock");
        let lock = DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| {
            let mut options = OpenOptions::new();
            let file = options.create(true).write(true).truncate(false).mode(0o600).open(&beside)?;
            file.lock()?;
            Ok(file)
        });
        match lock {
            Ok(lock) => Ok(Self { path, _lock: lock }),
            Err(error) => Err(cannot_write(&path, &error)),
        }
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a change to the table `name`, which may not exist yet.
    pub(crate) fn draft(&self, name: &str) -> Result<Draft, CommandError> {
        // A symbolic link is kept: its target is changed.
        let path = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(CommandError::usage(format!("{} cannot be read: {error}", path.display())));
            }
        };
        let not_toml = |_| CommandError::usage(format!("{}: this is not TOML", path.display()));
        let document = text.parse().map_err(not_toml)?;
        let file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new("/")));
        let file = file.map_err(|error| cannot_write(&path, &error))?;
        Ok(Draft { path, file, document, name: name.to_owned() })
    }
}

impl Draft {
    /// Stores a sign-in for this address in the table, and replaces a sign-in or a token.
    pub(crate) fn keep_sign_in(self, api_url: &str, sign_in: &SignIn) -> Result<(), CommandError> {
        self.change(|table| {
            table.remove("service_token");
            if !table.contains_key("api_url") {
                table.insert("api_url", value(api_url));
            }
            let expires = sign_in.access_expires.to_rfc3339_opts(SecondsFormat::Secs, true);
            table.insert(ACCESS_TOKEN, value(sign_in.access_token.expose_secret()));
            table.insert(ACCESS_EXPIRES, value(expires));
            table.insert(REFRESH_TOKEN, value(sign_in.refresh_token.expose_secret()));
        })
    }

    /// Like [`Self::keep_sign_in`], with a service token.
    pub(crate) fn keep_token(self, api_url: &str, token: &Secret) -> Result<(), CommandError> {
        self.change(|table| {
            forget(table);
            if !table.contains_key("api_url") {
                table.insert("api_url", value(api_url));
            }
            table.insert("service_token", value(token.expose_secret()));
        })
    }

    /// Removes every token from the table.
    pub(crate) fn keep_nothing(self) -> Result<(), CommandError> {
        self.change(|table| {
            forget(table);
            table.remove("service_token");
        })
    }

    fn change(mut self, change: impl FnOnce(&mut dyn TableLike)) -> Result<(), CommandError> {
        let item = self.document.entry(&self.name).or_insert_with(|| Item::Table(Table::new()));
        let Some(table) = item.as_table_like_mut() else {
            return Err(CommandError::usage(format!(
                "{}: `{}` is not a table",
                self.path.display(),
                self.name
            )));
        };
        change(table);
        let text = self.document.to_string();
        write(self.file, &self.path, &text).map_err(|error| cannot_write(&self.path, &error))
    }
}

fn forget(table: &mut dyn TableLike) {
    for member in [ACCESS_TOKEN, ACCESS_EXPIRES, REFRESH_TOKEN] {
        table.remove(member);
    }
}

/// Writes atomically, even if the machine stops halfway. A temporary file has mode 0600.
fn write(mut file: NamedTempFile, path: &Path, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("{} cannot be written: {error}", path.display()))
}
