//! Subjects of commits: one imperative sentence of at most 72 characters.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

const MAX_SUBJECT: usize = 72;
/// The rule holds for commits written since then, in seconds since 1970.
const SINCE: u64 = 1_795_860_000;
/// First words of a subject that states a fact.
const FACTS: &[&str] =
    &["A", "An", "The", "What", "Each", "Every", "It", "Its", "That", "This", "Such", "All", "Of", "No"];
const HOOK: &str = "#!/bin/sh\nexec cargo xtask hooks --message \"$1\"\n";

/// Options of `cargo xtask hooks`.
#[derive(Args)]
pub(crate) struct Hooks {
    /// Check the commit message in this file instead of installing the hook.
    #[arg(long, value_name = "FILE")]
    message: Option<PathBuf>,
}

impl Hooks {
    /// Installs the commit-msg hook, or checks a message.
    ///
    /// # Errors
    /// The message breaks the rule, or a file cannot be read or written.
    pub(crate) fn run(&self, root: &Path) -> Result<()> {
        if let Some(message) = &self.message {
            let text = fs::read_to_string(message).with_context(|| message.display().to_string())?;
            return check_message(text.lines().next().unwrap_or_default());
        }
        let folder = git(root, &["rev-parse", "--git-path", "hooks"])?;
        let hook = root.join(folder.trim()).join("commit-msg");
        fs::create_dir_all(root.join(folder.trim()))?;
        fs::write(&hook, HOOK).with_context(|| hook.display().to_string())?;
        executable(&hook)?;
        println!("installed {}", hook.display());
        Ok(())
    }
}

#[cfg(unix)]
fn executable(file: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn executable(_: &Path) -> Result<()> {
    Ok(())
}

/// Findings of the commits written since the rule holds. None outside of a repository.
pub(crate) fn check_new_commits(root: &Path) -> Vec<String> {
    let Ok(log) = git(root, &["log", "-500", "--no-merges", "--format=%at %h %s"]) else { return Vec::new() };
    let findings = log.lines().filter_map(|line| {
        let (time, rest) = line.split_once(' ')?;
        let (commit, subject) = rest.split_once(' ')?;
        let is_new = time.parse::<u64>().is_ok_and(|time| time >= SINCE);
        let problem = is_new.then(|| check_message(subject).err()).flatten()?;
        Some(format!("{commit}: {problem}"))
    });
    findings.collect()
}

/// # Errors
/// The subject breaks the rule.
fn check_message(subject: &str) -> Result<()> {
    let length = subject.chars().count();
    let first = subject.split(' ').next().unwrap_or_default();
    ensure!(length <= MAX_SUBJECT, "\"{subject}\" has {length} characters; a subject may have {MAX_SUBJECT}");
    ensure!(
        first.starts_with(char::is_uppercase) && !FACTS.contains(&first),
        "\"{subject}\" begins with \"{first}\"; begin with an imperative such as \"Add\""
    );
    ensure!(
        !subject.contains("; ") && !subject.trim_end().ends_with('.') && !subject.contains(". "),
        "\"{subject}\" has a second sentence; a commit makes one change, the body has the reasons"
    );
    Ok(())
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().context("git")?;
    ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_one_short_imperative() {
        assert!(check_message("Keep the connection open after an unread body").is_ok());
        for bad in [
            "A body that nothing reads does not stop its connection",
            "keep it",
            "Keep the connection open; drop the body",
            "Keep the connection open. Drop the body",
            "Keep the connection open.",
            &"Keep ".repeat(15),
            "",
        ] {
            assert!(check_message(bad).is_err(), "{bad}");
        }
    }
}
