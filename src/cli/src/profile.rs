//! The profile file: a table for each service that one talks to.
//!
//! No message repeats a value of it: it holds tokens.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kernel::Secret;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::output::Failure;

/// The table that is taken when none is named.
const DEFAULT: &str = "default";

/// What a table says.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) api_url: Option<String>,
    pub(crate) service_token: Option<Secret>,
}

/// Reads a profile; without a name, the table `default` where there is one.
pub(crate) fn read(name: Option<&str>) -> Result<Profile, Failure> {
    let Some(path) = path(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME")) else {
        return match name {
            Some(name) => Err(Failure::usage(format!(
                "there is no profile `{name}`: neither XDG_CONFIG_HOME nor HOME says where the file is"
            ))),
            None => Ok(Profile::default()),
        };
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => choose(&text, name)
            .map_err(|(line, wrong)| Failure::usage(format!("{}{line}: {wrong}", path.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => match name {
            Some(name) => Err(Failure::usage(format!(
                "there is no profile `{name}`: the file {} does not exist",
                path.display()
            ))),
            None => Ok(Profile::default()),
        },
        Err(error) => Err(Failure::usage(format!("{} cannot be read: {error}", path.display()))),
    }
}

/// `$XDG_CONFIG_HOME/callboard/config.toml`, else the same in `~/.config`. A relative folder counts as unset.
fn path(config_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |folder: OsString| Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    let config = config_home.and_then(absolute);
    let config = config.or_else(|| home.and_then(absolute).map(|home| home.join(".config")))?;
    Some(config.join(Path::new("callboard/config.toml")))
}

/// `, line 3`, or nothing where no line is at fault; and what is wrong.
type Wrong = (String, String);

fn choose(text: &str, name: Option<&str>) -> Result<Profile, Wrong> {
    let line = |at: usize| {
        let before = text.get(..at).unwrap_or(text);
        format!(", line {}", before.matches('\n').count().saturating_add(1))
    };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map(|span| line(span.start)).unwrap_or_default();
        (at, format!("this is not TOML: {}", first_line(error.message())))
    })?;
    let mut chosen = None;
    let mut names = Vec::new();
    for (key, value) in document.get_ref() {
        let DeValue::Table(table) = value.get_ref() else {
            let wrong = format!("`{}` must stand in a table, such as [{DEFAULT}]", key.get_ref());
            return Err((line(key.span().start), wrong));
        };
        let profile = profile(key.get_ref(), table).map_err(|(at, wrong)| (line(at), wrong))?;
        if key.get_ref().as_ref() == name.unwrap_or(DEFAULT) {
            chosen = Some(profile);
        }
        names.push(format!("`{}`", key.get_ref()));
    }
    match (chosen, name) {
        (Some(profile), _) => Ok(profile),
        (None, None) => Ok(Profile::default()),
        (None, Some(name)) => {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err((String::new(), format!("there is no profile `{name}`; there are: {there}")))
        }
    }
}

fn profile(name: &str, table: &DeTable<'_>) -> Result<Profile, (usize, String)> {
    let mut profile = Profile::default();
    for (key, value) in table {
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text.to_string()),
            _ => Err((
                value.span().start,
                format!("`{}` of [{name}] must be a text that is not empty", key.get_ref()),
            )),
        };
        match key.get_ref().as_ref() {
            "api_url" => profile.api_url = Some(text(value)?),
            "service_token" => profile.service_token = Some(text(value)?.into()),
            other => {
                let wrong = format!("[{name}] has no member `{other}`; write `api_url` or `service_token`");
                return Err((key.span().start, wrong));
            }
        }
    }
    Ok(profile)
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

    fn wrong(text: &str, name: Option<&str>) -> String {
        let (line, wrong) = choose(text, name).unwrap_err();
        format!("{line}: {wrong}")
    }

    #[test]
    fn a_profile_is_a_table_and_default_is_taken_unless_one_is_named() {
        let one = choose(TWO, None).unwrap();
        assert_eq!((one.api_url.as_deref(), one.service_token.is_none()), (Some("http://a"), true));
        let other = choose(TWO, Some("staging")).unwrap();
        assert_eq!(other.service_token.unwrap().expose_secret(), "t");
        assert!(choose("", None).unwrap().api_url.is_none());
        assert_eq!(wrong(TWO, Some("live")), ": there is no profile `live`; there are: `default`, `staging`");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_without_any_value() {
        let told = wrong("[a]\nservice_token = canary\n", None);
        assert!(told.starts_with(", line 2: this is not TOML: "), "{told}");
        let bad = [
            ("api_url = \"canary\"", ", line 1: `api_url` must stand in a table, such as [default]"),
            (
                "[a]\n\ntoken = \"canary\"",
                ", line 3: [a] has no member `token`; write `api_url` or `service_token`",
            ),
            ("[a]\nservice_token = 73", ", line 2: `service_token` of [a] must be a text that is not empty"),
            ("[a]\napi_url = \"\"", ", line 2: `api_url` of [a] must be a text that is not empty"),
        ];
        for (text, expected) in bad {
            assert_eq!(wrong(text, None), expected);
        }
        for text in
            ["[a]\nx = \"canary", "[canary", "a = [canary]\nb = canary", "[a]\nservice_token = 'canary\n"]
        {
            assert!(!wrong(text, None).contains("canary"), "{}", wrong(text, None));
        }
    }

    #[test]
    fn the_file_is_in_the_users_folder_for_settings() {
        let path = |config: &str, home: &str| path(Some(config.into()), Some(home.into()));
        assert_eq!(path("/c", "/h").unwrap(), Path::new("/c/callboard/config.toml"));
        assert_eq!(path("c", "/h").unwrap(), Path::new("/h/.config/callboard/config.toml"));
        assert_eq!(path("", ""), None);
    }
}
