//! The log.

use crate::parse;
use crate::reader::{Reader, Refused};

/// What is logged, and how.
#[derive(Debug, Clone)]
pub struct Log {
    /// `SERVICE_LOG`: a tracing filter.
    pub filter: String,
    /// `SERVICE_LOG_FORMAT`.
    pub format: LogFormat,
}

/// `SERVICE_LOG_FORMAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One object a line.
    Json,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Log, Refused> {
    let filter = reader.value("SERVICE_LOG", parse::line);
    let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    let format = reader.value("SERVICE_LOG_FORMAT", parse::choice(&formats));
    Ok(Log { filter: filter?, format: format? })
}
