//! The log.

use tracing_subscriber::filter::{EnvFilter, LevelFilter};

use crate::parse;
use crate::problem::Invalid;
use crate::reader::{RejectedValue, VariableReader};

/// The log's content and format.
#[derive(Debug, Clone)]
pub struct Log {
    /// `SERVICE_LOG`: a valid tracing filter.
    pub filter: String,
    /// `SERVICE_LOG_FORMAT`.
    pub format: LogFormat,
}

/// `SERVICE_LOG_FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One object per line.
    Json,
}

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Log, RejectedValue> {
    let filter = reader.value("SERVICE_LOG", filter);
    let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    let format = reader.value("SERVICE_LOG_FORMAT", parse::choice(&formats));
    Ok(Log { filter: filter?, format: format? })
}

/// A level, or a list of levels and `target=level`.
///
/// tracing treats an unknown level as a target, logs everything from it and nothing else: a misspelled level would
/// silence the log.
fn filter(text: &str) -> Result<String, Invalid> {
    let pieces: Vec<&str> = text.split(',').map(str::trim).filter(|piece| !piece.is_empty()).collect();
    let plausible = |piece: &&str| match piece.split_once('=') {
        Some((target, level)) => {
            let named = target.chars().all(|letter| letter.is_alphanumeric() || "_:.-".contains(letter));
            !level.is_empty() && (named || target.contains('['))
        }
        None => piece.parse::<LevelFilter>().is_ok(),
    };
    let filter = pieces.join(",");
    if filter.is_empty() || !pieces.iter().all(plausible) || EnvFilter::try_new(&filter).is_err() {
        return Err(Invalid::new(
            "is not a log filter",
            "write error, warn, info, debug, trace or off, or a list such as info,store=debug",
        ));
    }
    Ok(filter)
}
