//! `callboard doctor`: checks everything that a service depends on, changes nothing, and suggests remedies.
//!
//! Each check is a file: `probe` collects facts, `judge` interprets them. The rules are those of a start and are
//! defined there.

mod address;
mod apps;
mod clock;
mod code;
mod configuration;
mod database;
mod folder;
mod key_set;
mod mail;
mod model;
mod open_files;
mod provider;
mod proxy;
mod report;
mod vault;
mod web;

use std::sync::Arc;

use ::config::{Config, Source};
use kernel::{Clock, SystemClock};

use crate::options::Form;
use crate::output::{CommandError, Output};
use report::{Finding, Report};
use web::Web;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct DoctorOptions {
    /// Read a stream through this address to check whether a proxy buffers it (default:
    /// SERVICE_PUBLIC_BASE_URL).
    #[arg(long, value_name = "PUBLIC BASE")]
    url: Option<String>,
    #[command(flatten)]
    pub(crate) form: Form,
}

pub(crate) fn run(options: &DoctorOptions, output: Output) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let report = Report(runtime.block_on(examine(options))?);
    report.print(output)?;
    match report.problems() {
        0 => Ok(()),
        1 => Err("1 problem was found".to_owned().into()),
        problems => Err(format!("{problems} problems were found").into()),
    }
}

async fn examine(options: &DoctorOptions) -> Result<Vec<Finding>, CommandError> {
    let source = Source::from_env();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let web = Web::new(Arc::clone(&clock)).map_err(|error| error.to_string())?;
    let config = match Config::load(&source) {
        Ok(config) => config,
        Err(problems) => {
            let mut findings = configuration::refused(&problems);
            findings.push(Finding::skipped("all the rest", "skipped until the configuration is valid"));
            return Ok(findings);
        }
    };
    let mut findings = configuration::judge(&config::warnings(&source, &config));
    let service = address::probe(&config, &web).await;
    let folder = folder::probe(&source, &config);
    findings.extend(folder::judge(&folder, service.is_ours()));
    let database = database::probe(&config, &*clock).await;
    findings.extend(database::judge(&database, config.database.pool));
    findings.push(vault::judge(&config));
    findings.push(code::judge(&config.sandbox, &code::probe(&config.sandbox).await));
    findings.push(clock::judge(clock.now(), database.inspection()));
    findings.extend(address::judge(&service));
    findings.push(open_files::judge(server::OpenFiles::allowed()));
    findings.extend(apps::judge(&config));
    findings.push(model::judge(&model::probe(&config, &web).await));
    if let Some(url) = &config.auth.jwks.url {
        findings.push(key_set::judge(&key_set::probe(url, &web).await));
    }
    findings.push(mail::judge(&config, mail::probe(&config).await.as_ref()));
    if let Some(oidc) = &config.sign_in.oidc {
        let has_base = config.http.public_base_url.is_some() || config.http.is_loopback();
        findings.extend(provider::judge(&provider::probe(oidc, &web).await, has_base));
    }
    let public = config.http.public_base_url.as_ref().map(|base| base.as_str().to_owned());
    findings.push(match options.url.clone().or(public) {
        Some(base) => proxy::judge(&base, &proxy::probe(&base, &web, &*clock).await),
        None => Finding::skipped(
            "streams",
            "the public address is unknown; give it with --url, or set SERVICE_PUBLIC_BASE_URL",
        ),
    });
    Ok(findings)
}
