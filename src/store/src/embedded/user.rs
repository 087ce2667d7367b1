//! The user that runs PostgreSQL: the service's own, unless that is root, which PostgreSQL rejects.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::EmbeddedError;

/// A line in `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The user that runs PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunAs {
    /// The service's own, ordinary user.
    Ourselves,
    /// The account to use instead of root.
    Account(Account),
}

impl RunAs {
    /// Chooses the user for `cluster`, which may not exist yet.
    pub(super) fn choose(cluster: &Path) -> Result<Self, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let owner = cluster.metadata().ok().map(|cluster| cluster.uid());
        choose_account(&passwd, owner).map(Self::Account).ok_or(EmbeddedError::NoUser)
    }

    /// The user's id.
    pub(super) fn uid(&self) -> u32 {
        match self {
            Self::Ourselves => rustix::process::geteuid().as_raw(),
            Self::Account(account) => account.uid,
        }
    }

    /// Lets `command` run as this user. The standard library also drops root's other groups.
    pub(super) fn apply(&self, command: &mut Command) {
        if let Self::Account(account) = self {
            command.uid(account.uid).gid(account.gid);
        }
    }

    /// Makes this user the owner of the file or folder.
    pub(super) fn give(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Ourselves => Ok(()),
            Self::Account(account) => chown(path, Some(account.uid), Some(account.gid)),
        }
    }

    /// Makes this user the owner of the folder and everything below it, unless they already own it. Does not
    /// follow links.
    pub(super) fn give_all(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Account(account) if path.symlink_metadata()?.uid() != account.uid => {
                give_all(path, account)
            }
            _ => Ok(()),
        }
    }

    /// Checks that this user can reach `folder`, an absolute path.
    pub(super) fn check_way_above(&self, folder: &Path) -> Result<(), EmbeddedError> {
        let Self::Account(account) = self else { return Ok(()) };
        let blocked = folder.ancestors().skip(1).find(|folder| !may_pass(folder, account));
        blocked.map_or(Ok(()), |blocked| Err(unreachable(account, blocked)))
    }

    /// Ensures that this user can reach the contents of `data_dir`, an absolute path.
    pub(super) fn check_way_to(&self, data_dir: &Path) -> Result<(), EmbeddedError> {
        let Self::Account(account) = self else { return Ok(()) };
        self.check_way_above(data_dir)?;
        if !may_pass(data_dir, account) {
            // If root owns the data folder, it is opened for traversal, but not for listing.
            let metadata = data_dir.metadata().map_err(EmbeddedError::io("read", data_dir))?;
            if metadata.uid() != 0 {
                return Err(unreachable(account, data_dir));
            }
            let mut permissions = metadata.permissions();
            permissions.set_mode(permissions.mode() | 0o011);
            std::fs::set_permissions(data_dir, permissions).map_err(EmbeddedError::io("open", data_dir))?;
        }
        Ok(())
    }
}

fn unreachable(account: &Account, folder: &Path) -> EmbeddedError {
    EmbeddedError::Unreachable { user: account.name.clone(), folder: folder.to_owned() }
}

/// The cluster's owner continues to run it, if that user still exists; otherwise `postgres`, then `nobody`.
fn choose_account(passwd: &str, owner: Option<u32>) -> Option<Account> {
    let accounts: Vec<Account> =
        passwd.lines().filter_map(parse).filter(|account| account.uid != 0).collect();
    let by_name = |name: &str| accounts.iter().find(|account| account.name == name);
    owner
        .and_then(|owner| accounts.iter().find(|account| account.uid == owner))
        .or_else(|| by_name("postgres"))
        .or_else(|| by_name("nobody"))
        .cloned()
}

fn parse(line: &str) -> Option<Account> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
    let _password = fields.next()?;
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(Account { name, uid, gid })
}

/// Whether the mode lets the account traverse the folder. The account has only its primary group.
fn may_pass(folder: &Path, account: &Account) -> bool {
    let Ok(metadata) = folder.metadata() else { return false };
    let bit = if metadata.uid() == account.uid {
        0o100
    } else if metadata.gid() == account.gid {
        0o010
    } else {
        0o001
    };
    metadata.mode() & bit != 0
}

fn give_all(path: &Path, account: &Account) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_all(&entry?.path(), account)?;
        }
    }
    // The folder comes after its contents, so that an interrupted change is detected and repeated.
    lchown(path, Some(account.uid), Some(account.gid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nbroken line\nnobody:x:65534:65534::/:/bin/false\n\
                          alice:x:1000:1000::/home/alice:/bin/sh\n";

    fn chosen(passwd: &str, owner: Option<u32>) -> Option<String> {
        choose_account(passwd, owner).map(|account| account.name)
    }

    #[test]
    fn user_postgres_is_preferred_to_user_nobody() {
        let both =
            format!("{PASSWD}postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash");
        let expected = Account { name: "postgres".into(), uid: 101, gid: 104 };
        assert_eq!(choose_account(&both, None), Some(expected));
        assert_eq!(chosen(PASSWD, None).as_deref(), Some("nobody"));
        assert_eq!(chosen("root:x:0:0::/:/bin/sh", None), None);
    }

    #[test]
    fn the_owner_of_a_cluster_is_kept_unless_unknown_or_root() {
        assert_eq!(chosen(PASSWD, Some(1000)).as_deref(), Some("alice"));
        assert_eq!(chosen(PASSWD, Some(999)).as_deref(), Some("nobody"));
        assert_eq!(chosen(PASSWD, Some(0)).as_deref(), Some("nobody"));
    }

    #[test]
    fn a_closed_folder_above_the_data_folder_is_named() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::set_permissions(temp.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let data_dir = temp.path().canonicalize().unwrap().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        let stranger = RunAs::Account(Account { name: "nobody".into(), uid: 64_321, gid: 64_321 });
        let error = stranger.check_way_to(&data_dir).unwrap_err().to_string();
        assert!(error.contains("`nobody`") && error.contains("SERVICE_POSTGRES_DSN"), "{error}");
        assert!(error.contains(&format!("folder {}:", temp.path().display())), "{error}");
    }
}
