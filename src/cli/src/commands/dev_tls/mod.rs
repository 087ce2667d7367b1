//! `callboard dev-tls`: creates a certificate for this machine, signed by a new local authority.

mod authority;
mod files;

use std::path::{Path, PathBuf};

use config::Config;
use kernel::{Clock, SystemClock};
use serde_json::json;

use crate::options::Form;
use crate::output::{CommandError, Output, say};
use authority::Authority;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct DevTls {
    /// Folder of the files (default: `tls` in SERVICE_DATA_DIR)
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Alias of a hosted app; some clients do not accept the wildcard. May be repeated
    #[arg(long = "alias", value_name = "NAME")]
    aliases: Vec<String>,
    #[command(flatten)]
    pub(crate) form: Form,
}

const AUTHORITY: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority-key.pem";
const CERT: &str = "cert.pem";
const KEY: &str = "key.pem";

pub(crate) fn run(asked: DevTls, output: Output) -> Result<(), CommandError> {
    let (_, config) = super::load()?;
    let names = names(&config, &asked.aliases)?;
    let dir = asked.dir.unwrap_or_else(|| config.data.dir.join("tls"));
    files::folder(&dir)?;
    let now = SystemClock::new().now();
    let domain = &config.apps.domain;
    let kept = files::read(&dir.join(AUTHORITY_KEY))?.zip(files::read(&dir.join(AUTHORITY))?);
    // The first line names the domain that the authority may sign for.
    let kept = kept.filter(|(key, _)| key.lines().next() == Some(domain));
    let authority = match &kept {
        Some((key, _)) => Authority::known(key, domain, now),
        None => Authority::new(domain, now),
    };
    let authority = authority.map_err(|error| refused(&dir, &error))?;
    let leaf = authority.sign(&names, now).map_err(|error| refused(&dir, &error))?;
    // Users give the authority's file to their browsers, so an existing one is not rewritten.
    if kept.is_none() {
        files::write(&dir.join(AUTHORITY), authority.certificate())?;
        // Written last, so an existing key always matches the certificate.
        files::write_secret(&dir.join(AUTHORITY_KEY), &format!("{domain}\n{}", authority.key()))?;
    }
    files::write_secret(&dir.join(KEY), &leaf.key)?;
    files::write(&dir.join(CERT), &leaf.certificate)?;
    let file = |name: &str| dir.join(name).display().to_string();
    let record = json!({"names": names, "authority": file(AUTHORITY), "cert": file(CERT), "key": file(KEY),
                        "valid_days": authority::LEAF_DAYS});
    output.print(&record, || say(instructions(&dir, &names, config.http.port)))
}

/// The certificate's names.
fn names(config: &Config, aliases: &[String]) -> Result<Vec<String>, CommandError> {
    let domain = &config.apps.domain;
    let mut names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
        domain.clone(),
        format!("*.{domain}"),
    ];
    for alias in aliases {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let good = (1..=63).contains(&alias.len())
            && alias.bytes().all(is_letter)
            && !alias.starts_with('-')
            && !alias.ends_with('-');
        if !good {
            let shown = alias.escape_debug();
            return Err(CommandError::usage(format!(
                "--alias {shown}: an alias has lower-case letters, digits and hyphens, at most 63, such as `notes`"
            )));
        }
        names.push(format!("{alias}.{domain}"));
    }
    Ok(names)
}

fn refused(dir: &Path, error: &rcgen::Error) -> CommandError {
    format!(
        "cannot make a certificate: {error}; if files in {} are damaged, delete {AUTHORITY} and {AUTHORITY_KEY} there",
        dir.display()
    )
    .into()
}

fn instructions(dir: &Path, names: &[String], port: u16) -> String {
    let file = |name: &str| dir.join(name).display().to_string();
    let (authority, cert, key) = (file(AUTHORITY), file(CERT), file(KEY));
    format!(
        "A certificate for {} is in {}, valid for {} days.\n\
         \n\
         Start the service with it:\n\
         \x20 SERVICE_TLS_CERT={cert} SERVICE_TLS_KEY={key} callboard serve\n\
         \n\
         Clients must trust {authority}:\n\
         \x20 curl       curl --cacert {authority} https://localhost:{port}/healthz\n\
         \x20 callboard  SSL_CERT_FILE={authority} callboard --api-url https://localhost:{port} whoami\n\
         \x20 Chromium   mkdir -p ~/.pki/nssdb && certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n callboard-dev -i {authority}\n\
         \x20 Firefox    Settings, Privacy & Security, View Certificates, Authorities, Import\n\
         \x20 macOS      security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db {authority}\n\
         \n\
         {AUTHORITY_KEY} can sign for these names alone; keep it on this machine.",
        names.join(", "),
        dir.display(),
        authority::LEAF_DAYS,
    )
}
