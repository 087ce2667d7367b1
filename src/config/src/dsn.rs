//! The database address, `SERVICE_POSTGRES_DSN`: a URL, or libpq's `key=value` pairs.
//!
//! Parsed here only to report errors early and to show it without its password. The grammar is the one of
//! `tokio-postgres`, which later connects with the same text. Messages repeat only option names.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::problem::Invalid;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

const EXAMPLE: &str = "write postgres://user:password@host:5432/database, or pairs such as host=db user=callboard dbname=callboard";

const AT_SIGN: &str = "write an @ within the user or the password as %40";

/// The required form of an option's value.
enum OptionForm {
    Text,
    /// Comma-separated ports.
    Ports,
    /// Comma-separated addresses.
    Addresses,
    Whole,
    Word(&'static [&'static str]),
}

/// The options of `tokio-postgres`; `store` translates the `sslmode` modes that it lacks.
const OPTIONS: [(&str, OptionForm); 19] = [
    ("user", OptionForm::Text),
    ("password", OptionForm::Text),
    ("dbname", OptionForm::Text),
    ("options", OptionForm::Text),
    ("application_name", OptionForm::Text),
    ("host", OptionForm::Text),
    ("hostaddr", OptionForm::Addresses),
    ("port", OptionForm::Ports),
    ("connect_timeout", OptionForm::Whole),
    ("tcp_user_timeout", OptionForm::Whole),
    ("keepalives", OptionForm::Whole),
    ("keepalives_idle", OptionForm::Whole),
    ("keepalives_interval", OptionForm::Whole),
    ("keepalives_retries", OptionForm::Whole),
    ("sslmode", OptionForm::Word(&["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])),
    ("sslnegotiation", OptionForm::Word(&["postgres", "direct"])),
    ("target_session_attrs", OptionForm::Word(&["any", "read-write", "read-only"])),
    ("channel_binding", OptionForm::Word(&["disable", "prefer", "require"])),
    ("load_balance_hosts", OptionForm::Word(&["disable", "random"])),
];

/// Options of libpq that we lack. Only these are named: any other word may be part of a password.
const OF_LIBPQ: [&str; 15] = [
    "client_encoding",
    "fallback_application_name",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "passfile",
    "replication",
    "requirepeer",
    "require_auth",
    "service",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslpassword",
    "sslrootcert",
];

/// Checks whether a connection attempt is possible.
pub(crate) fn check(text: &str) -> Result<(), Invalid> {
    read(text).map(|_| ())
}

/// The address with `********` as its password, or only the mask if it cannot be parsed.
pub(crate) fn shown(text: &str) -> String {
    read(text).map_or_else(|_| kernel::mask(text).to_owned(), |read| read.shown)
}

/// Whether the text starts like a database URL.
pub(crate) fn is_url(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

#[derive(Default)]
struct ParsedDsn {
    shown: String,
    hosts: usize,
    ports: usize,
}

fn read(text: &str) -> Result<ParsedDsn, Invalid> {
    let url = SCHEMES.iter().find_map(|scheme| Some((*scheme, text.strip_prefix(scheme)?)));
    let read = match url {
        Some((scheme, rest)) => read_url(scheme, rest)?,
        None => read_pairs(text)?,
    };
    if read.hosts == 0 {
        return Err(Invalid::new("names no host", EXAMPLE));
    }
    if read.ports > 1 && read.ports != read.hosts {
        return Err(Invalid::new(
            "names another number of ports than of hosts",
            "write one port, or one for each host",
        ));
    }
    Ok(read)
}

fn read_url(scheme: &str, rest: &str) -> Result<ParsedDsn, Invalid> {
    if rest.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err(Invalid::new(
            "contains a space or a line break",
            "remove it, or write an intended space as %20",
        ));
    }
    let mut read = ParsedDsn { shown: scheme.to_owned(), ..ParsedDsn::default() };
    let rest = match rest.split_once('@') {
        Some((credentials, rest)) => {
            let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
            if user.contains(['/', '?']) {
                return Err(Invalid::new("has an @ after its host", AT_SIGN));
            }
            read.shown.push_str(user);
            if !password.is_empty() {
                read.shown.push(':');
                read.shown.push_str(kernel::mask(password));
            }
            read.shown.push('@');
            rest
        }
        None => rest,
    };
    let (address, query) =
        rest.split_once('?').map_or((rest, None), |(address, query)| (address, Some(query)));
    if address.contains('@') {
        return Err(Invalid::new("has more than one @", AT_SIGN));
    }
    read.shown.push_str(address);
    let hosts = address.split('/').next().unwrap_or_default();
    for host in hosts.split(',').filter(|_| !hosts.is_empty()) {
        read.hosts = read.hosts.saturating_add(1);
        read.ports = read.ports.saturating_add(1);
        if let Some(port) = port_of(host)? {
            port_number(&decoded(port))?;
        }
    }
    let mut separator = '?';
    let mut rest = query.unwrap_or_default();
    while !rest.is_empty() {
        let (pair, next) = rest.split_once('&').unwrap_or((rest, ""));
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Invalid::new("has an option without a value after its ?", EXAMPLE));
        };
        let name = read.option(&decoded(key), &decoded(value))?;
        let value = if name == "password" { kernel::mask(value) } else { value };
        read.shown.push(separator);
        read.shown.extend([name, "=", value]);
        (separator, rest) = ('&', next);
    }
    Ok(read)
}

/// The port after a host, which may be an IPv6 address in brackets.
fn port_of(host: &str) -> Result<Option<&str>, Invalid> {
    let Some(rest) = host.strip_prefix('[') else {
        return Ok(host.split_once(':').map(|(_, port)| port));
    };
    match rest.split_once(']') {
        Some((_, "")) => Ok(None),
        Some((_, behind)) if behind.starts_with(':') => Ok(behind.get(1..)),
        _ => Err(Invalid::new("has a host with a missing bracket", EXAMPLE)),
    }
}

fn read_pairs(text: &str) -> Result<ParsedDsn, Invalid> {
    let mut read = ParsedDsn::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, behind) = rest.split_once('=').ok_or_else(no_address)?;
        let key = key.trim_end();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(no_address());
        }
        let (value, next) = value(behind.trim_start())?;
        let name = read.option(key, &value)?;
        let secret = name == "password" && !value.is_empty();
        let shown = if secret { kernel::mask(&value).into() } else { quoted(&value) };
        if !read.shown.is_empty() {
            read.shown.push(' ');
        }
        read.shown.extend([name, "=", &*shown]);
        rest = next.trim_start();
    }
    Ok(read)
}

/// A value, which may be quoted, and the remaining text. A backslash escapes the next character.
fn value(text: &str) -> Result<(String, &str), Invalid> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut letters = text.char_indices().skip(usize::from(quoted));
    let end = loop {
        match letters.next() {
            Some((_, '\\')) => value.extend(letters.next().map(|(_, letter)| letter)),
            Some((at, '\'')) if quoted => break at.saturating_add(1),
            Some((at, letter)) if !quoted && letter.is_whitespace() => break at,
            Some((_, letter)) => value.push(letter),
            None if quoted => {
                return Err(Invalid::new(
                    "has a quote that is not closed",
                    "write ' at the end of the quoted value too",
                ));
            }
            None => break text.len(),
        }
    };
    if value.is_empty() && !quoted {
        return Err(Invalid::new("has an option without a value", "leave it out, or write ''"));
    }
    Ok((value, text.get(end..).unwrap_or_default()))
}

fn quoted(value: &str) -> Cow<'_, str> {
    let plain = |letter: char| !letter.is_whitespace() && letter != '\'' && letter != '\\';
    if !value.is_empty() && value.chars().all(plain) {
        return value.into();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'")).into()
}

/// Decodes percent-encoding in a URL.
fn decoded(text: &str) -> String {
    let text = text.replace('+', "%2B");
    url::form_urlencoded::parse(format!("x={text}").as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

fn no_address() -> Invalid {
    Invalid::new("is not a PostgreSQL address", EXAMPLE)
}

impl ParsedDsn {
    /// Checks an option and counts its hosts and ports; returns its static name.
    fn option(&mut self, key: &str, value: &str) -> Result<&'static str, Invalid> {
        let Some((name, kind)) = OPTIONS.iter().find(|(name, _)| *name == key) else {
            return Err(match OF_LIBPQ.iter().find(|name| **name == key) {
                Some(name) => Invalid::new(
                    format!("has the option {name}, which is not supported here"),
                    "leave it out",
                ),
                None => Invalid::new(
                    "has an unknown option",
                    "quote a value that contains spaces, as in password='two words', and use only PostgreSQL's options",
                ),
            });
        };
        let must = |what: &str| {
            Err(Invalid::new(format!("has a {name} that is not {what}"), format!("write {what}")))
        };
        match kind {
            OptionForm::Text => {}
            OptionForm::Ports => {
                for port in value.split(',').filter(|port| !port.is_empty()) {
                    port_number(port)?;
                }
                self.ports = self.ports.saturating_add(value.split(',').count());
            }
            OptionForm::Addresses if value.split(',').any(|one| one.parse::<IpAddr>().is_err()) => {
                return must("an IP address");
            }
            OptionForm::Addresses => {}
            OptionForm::Whole if value.parse::<u32>().is_err() => return must("a whole number"),
            OptionForm::Whole => {}
            OptionForm::Word(words) if !words.contains(&value) => {
                return must(&format!("one of {}", words.join(", ")));
            }
            OptionForm::Word(_) => {}
        }
        if matches!(*name, "host" | "hostaddr") {
            self.hosts = self.hosts.max(value.split(',').count());
        }
        Ok(name)
    }
}

fn port_number(text: &str) -> Result<(), Invalid> {
    match text.parse::<u16>() {
        Ok(1..) => Ok(()),
        _ => Err(Invalid::new(
            "has a port that is not a number from 1 to 65535",
            "write it after the host, as in host:5432, or as port=5432",
        )),
    }
}
