//! The profile file: a table per service.
//!
//! Messages never repeat its values, because it contains tokens.

mod edit;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use kernel::Secret;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use self::edit::{Draft, ProfileLock};
use crate::output::CommandError;

/// The default table.
pub(crate) const DEFAULT: &str = "default";

/// The members of a sign-in, written by `callboard login`.
const ACCESS_TOKEN: &str = "access_token";
const ACCESS_EXPIRES: &str = "access_expires";
const REFRESH_TOKEN: &str = "refresh_token";

/// The content of a table.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) api_url: Option<String>,
    pub(crate) service_token: Option<Secret>,
    pub(crate) sign_in: Option<SignIn>,
    /// Slug of the workspace that commands work in.
    pub(crate) workspace: Option<String>,
}

/// The tokens of a signed-in user.
#[derive(Debug, Clone)]
pub(crate) struct SignIn {
    pub(crate) access_token: Secret,
    pub(crate) access_expires: DateTime<Utc>,
    pub(crate) refresh_token: Secret,
}

/// Reads a profile; without a name, the table `default` if it exists.
pub(crate) fn read(name: Option<&str>) -> Result<Profile, CommandError> {
    let Some(path) = own_path() else {
        return match name {
            Some(name) => Err(CommandError::usage(format!(
                "profile `{name}` not found: neither XDG_CONFIG_HOME nor HOME is set"
            ))),
            None => Ok(Profile::default()),
        };
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => choose(&text, name)
            .map_err(|(line, wrong)| CommandError::usage(format!("{}{line}: {wrong}", path.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => match name {
            Some(name) => Err(CommandError::usage(format!(
                "profile `{name}` not found: the file {} does not exist",
                path.display()
            ))),
            None => Ok(Profile::default()),
        },
        Err(error) => Err(CommandError::usage(format!("{} cannot be read: {error}", path.display()))),
    }
}

/// Reads a profile that may not exist yet.
pub(crate) fn read_if_any(name: &str) -> Result<Profile, CommandError> {
    let Some(path) = own_path() else { return Ok(Profile::default()) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Profile::default()),
        Err(error) => return Err(CommandError::usage(format!("{} cannot be read: {error}", path.display()))),
    };
    let chosen = tables(&text).map(|tables| tables.into_iter().find(|(other, _)| other == name));
    match chosen {
        Ok(chosen) => Ok(chosen.map(|(_, profile)| profile).unwrap_or_default()),
        Err((line, wrong)) => Err(CommandError::usage(format!("{}{line}: {wrong}", path.display()))),
    }
}

fn own_path() -> Option<PathBuf> {
    path(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"))
}

/// `$XDG_CONFIG_HOME/callboard/config.toml`, else the same path in `~/.config`. A relative folder counts as unset.
fn path(config_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |folder: OsString| Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    let config = config_home.and_then(absolute);
    let config = config.or_else(|| home.and_then(absolute).map(|home| home.join(".config")))?;
    Some(config.join(Path::new("callboard/config.toml")))
}

/// The location (`, line 3`, or empty if no line is at fault), and the error.
type LocatedError = (String, String);

fn choose(text: &str, name: Option<&str>) -> Result<Profile, LocatedError> {
    let tables = tables(text)?;
    let names: Vec<String> = tables.iter().map(|(name, _)| format!("`{name}`")).collect();
    let wanted = name.unwrap_or(DEFAULT);
    match (tables.into_iter().find(|(other, _)| other == wanted), name) {
        (Some((_, profile)), _) => Ok(profile),
        (None, None) => Ok(Profile::default()),
        (None, Some(name)) => {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err((String::new(), format!("profile `{name}` not found; existing profiles: {there}")))
        }
    }
}

/// Reads every table; an error in one table makes the whole file invalid.
fn tables(text: &str) -> Result<Vec<(String, Profile)>, LocatedError> {
    let line = |at: usize| {
        let before = text.get(..at).unwrap_or(text);
        format!(", line {}", before.matches('\n').count().saturating_add(1))
    };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map(|span| line(span.start)).unwrap_or_default();
        (at, format!("this is not TOML: {}", first_line(error.message())))
    })?;
    let mut tables = Vec::new();
    for (key, value) in document.get_ref() {
        let DeValue::Table(table) = value.get_ref() else {
            let wrong = format!("`{}` must be in a table, such as [{DEFAULT}]", key.get_ref());
            return Err((line(key.span().start), wrong));
        };
        let profile = profile(key.get_ref(), table).map_err(|(at, wrong)| (line(at), wrong))?;
        whole(key.get_ref(), &profile, table).map_err(|wrong| (line(key.span().start), wrong))?;
        tables.push((key.get_ref().to_string(), profile));
    }
    Ok(tables)
}

fn profile(name: &str, table: &DeTable<'_>) -> Result<Profile, (usize, String)> {
    let mut profile = Profile::default();
    let (mut access, mut expires, mut refresh) = (None, None, None);
    for (key, value) in table {
        let wrong =
            |must: &str| (value.span().start, format!("`{}` of [{name}] must be {must}", key.get_ref()));
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text.to_string()),
            _ => Err(wrong("a non-empty string")),
        };
        match key.get_ref().as_ref() {
            "api_url" => profile.api_url = Some(text(value)?),
            "service_token" => profile.service_token = Some(text(value)?.into()),
            "workspace" => profile.workspace = Some(text(value)?),
            ACCESS_TOKEN => access = Some(text(value)?.into()),
            REFRESH_TOKEN => refresh = Some(text(value)?.into()),
            ACCESS_EXPIRES => {
                let at = DateTime::parse_from_rfc3339(&text(value)?);
                expires = Some(at.map_err(|_| wrong("a time"))?.with_timezone(&Utc));
            }
            other => {
                let wrong = format!(
                    "[{name}] has an unknown member `{other}`; use `api_url`, `service_token` or `workspace`"
                );
                return Err((key.span().start, wrong));
            }
        }
    }
    profile.sign_in = match (access, expires, refresh) {
        (Some(access_token), Some(access_expires), Some(refresh_token)) => {
            Some(SignIn { access_token, access_expires, refresh_token })
        }
        _ => None,
    };
    Ok(profile)
}

/// Checks that a sign-in is complete, and that a table has only one kind of credentials.
fn whole(name: &str, profile: &Profile, table: &DeTable<'_>) -> Result<(), String> {
    let parts = [ACCESS_TOKEN, ACCESS_EXPIRES, REFRESH_TOKEN];
    let some = parts.iter().any(|part| table.contains_key(*part));
    match (&profile.sign_in, &profile.service_token) {
        (None, _) if some => {
            let all = parts.map(|part| format!("`{part}`")).join(", ");
            Err(format!(
                "[{name}] has an incomplete sign-in; remove {all}, and sign in with `callboard login`"
            ))
        }
        (Some(_), Some(_)) => {
            Err(format!("[{name}] has a sign-in and a `service_token`; remove one of them"))
        }
        (Some(_), None) if profile.api_url.is_none() => {
            Err(format!("[{name}] has a sign-in without its `api_url`"))
        }
        _ => Ok(()),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    const TWO: &str =
        "[default]\napi_url = \"http://a\"\n\n[staging]\napi_url = \"http://b\"\nservice_token = \"t\"\n";

    fn choose_error(text: &str, name: Option<&str>) -> String {
        let (line, message) = choose(text, name).unwrap_err();
        format!("{line}: {message}")
    }

    #[test]
    fn a_profile_is_a_table_and_default_is_used_unless_one_is_named() {
        let one = choose(TWO, None).unwrap();
        assert_eq!((one.api_url.as_deref(), one.service_token.is_none()), (Some("http://a"), true));
        let other = choose(TWO, Some("staging")).unwrap();
        assert_eq!(other.service_token.unwrap().expose_secret(), "t");
        assert!(choose("", None).unwrap().api_url.is_none());
        assert_eq!(
            choose_error(TWO, Some("live")),
            ": profile `live` not found; existing profiles: `default`, `staging`"
        );
    }

    #[test]
    fn profile_errors_have_the_line_but_no_value() {
        let error = choose_error("[a]\nservice_token = canary\n", None);
        assert!(error.starts_with(", line 2: this is not TOML: "), "{error}");
        let bad = [
            ("api_url = \"canary\"", ", line 1: `api_url` must be in a table, such as [default]"),
            (
                "[a]\n\ntoken = \"canary\"",
                ", line 3: [a] has an unknown member `token`; use `api_url`, `service_token` or `workspace`",
            ),
            ("[a]\nservice_token = 73", ", line 2: `service_token` of [a] must be a non-empty string"),
            ("[a]\napi_url = \"\"", ", line 2: `api_url` of [a] must be a non-empty string"),
        ];
        for (text, expected) in bad {
            assert_eq!(choose_error(text, None), expected);
        }
        for text in
            ["[a]\nx = \"canary", "[canary", "a = [canary]\nb = canary", "[a]\nservice_token = 'canary\n"]
        {
            assert!(!choose_error(text, None).contains("canary"), "{}", choose_error(text, None));
        }
    }

    #[test]
    fn a_partial_sign_in_is_rejected() {
        let all = "[a]\napi_url = \"http://a\"\naccess_token = \"canary\"\nrefresh_token = \"canary\"\n\
                   access_expires = \"2026-11-22T06:05:00Z\"\n";
        let read = choose(all, Some("a")).unwrap();
        assert_eq!(read.sign_in.as_ref().unwrap().access_expires.timestamp(), 1_795_327_500);
        assert!(!format!("{read:?}").contains("canary"));
        let without =
            |part: &str| all.lines().filter(|line| !line.starts_with(part)).collect::<Vec<_>>().join("\n");
        for part in ["access_token", "refresh_token", "access_expires"] {
            assert!(
                choose_error(&without(part), None).starts_with(", line 1: [a] has an incomplete sign-in; ")
            );
        }
        assert!(choose_error(&without("api_url"), None).contains("without its `api_url`"));
        let both = format!("{all}service_token = \"canary\"\n");
        assert_eq!(
            choose_error(&both, None),
            ", line 1: [a] has a sign-in and a `service_token`; remove one of them"
        );
        let odd = all.replace("2026", "canary");
        assert_eq!(choose_error(&odd, None), ", line 5: `access_expires` of [a] must be a time");
    }

    #[test]
    fn the_profile_file_is_in_the_users_config_folder() {
        let path = |config: &str, home: &str| path(Some(config.into()), Some(home.into()));
        assert_eq!(path("/c", "/h").unwrap(), Path::new("/c/callboard/config.toml"));
        assert_eq!(path("c", "/h").unwrap(), Path::new("/h/.config/callboard/config.toml"));
        assert_eq!(path("", ""), None);
    }
}
