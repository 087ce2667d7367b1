//! Hosted apps: their domain, and the limits for bundles and anonymous runs.

use std::num::NonZeroU32;

use crate::reader::{RejectedValue, VariableReader};
use crate::{address, parse};

/// Hosted apps. Run limits: `None` means unlimited.
#[derive(Debug, Clone)]
pub struct Apps {
    /// `SERVICE_APPS_DOMAIN`, in lowercase.
    pub domain: String,
    /// `SERVICE_APPS_MAX_COMPRESSED_BYTES`.
    pub max_compressed_bytes: u64,
    /// `SERVICE_APPS_MAX_EXPANDED_BYTES`.
    pub max_expanded_bytes: u64,
    /// `SERVICE_APPS_MAX_FILES`.
    pub max_files: u32,
    /// `SERVICE_APPS_MAX_FILE_BYTES`.
    pub max_file_bytes: u64,
    /// `SERVICE_APPS_MAX_DEPTH`.
    pub max_depth: u32,
    /// `SERVICE_APPS_ANONYMOUS_RUNS_PER_MINUTE`, per client.
    pub anonymous_runs_per_minute: Option<NonZeroU32>,
    /// `SERVICE_APPS_ANONYMOUS_RUNS_PER_DAY`, per client.
    pub anonymous_runs_per_day: Option<NonZeroU32>,
    /// `SERVICE_APPS_ANONYMOUS_CONCURRENT`, per client.
    pub anonymous_concurrent: Option<NonZeroU32>,
    /// `SERVICE_APPS_ANONYMOUS_WRITES_PER_MINUTE`, per client and app.
    pub anonymous_writes_per_minute: Option<NonZeroU32>,
    /// `SERVICE_APPS_RUNS_PER_DAY`, per app.
    pub runs_per_day: Option<NonZeroU32>,
}

/// The upper bounds are `bundle::Limits::HIGHEST`, and the defaults `bundle::Limits::DEFAULT`. A `callboard app check`
/// test compares them, since this package cannot name `bundle`.
pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Apps, RejectedValue> {
    let domain = reader.value("SERVICE_APPS_DOMAIN", address::domain);
    let max_compressed_bytes =
        reader.value("SERVICE_APPS_MAX_COMPRESSED_BYTES", parse::number(1..=104_857_600));
    let max_expanded_bytes =
        reader.value("SERVICE_APPS_MAX_EXPANDED_BYTES", parse::number(1..=1_073_741_824));
    let max_files = reader.value("SERVICE_APPS_MAX_FILES", parse::number(1..=20_000));
    let max_file_bytes = reader.value("SERVICE_APPS_MAX_FILE_BYTES", parse::number(1..=26_214_400));
    let max_depth = reader.value("SERVICE_APPS_MAX_DEPTH", parse::number(1..=32));
    let per_minute = reader.value("SERVICE_APPS_ANONYMOUS_RUNS_PER_MINUTE", parse::limit);
    let per_day = reader.value("SERVICE_APPS_ANONYMOUS_RUNS_PER_DAY", parse::limit);
    let concurrent = reader.value("SERVICE_APPS_ANONYMOUS_CONCURRENT", parse::limit);
    let writes = reader.value("SERVICE_APPS_ANONYMOUS_WRITES_PER_MINUTE", parse::limit);
    let runs_per_day = reader.value("SERVICE_APPS_RUNS_PER_DAY", parse::limit);
    Ok(Apps {
        domain: domain?,
        max_compressed_bytes: max_compressed_bytes?,
        max_expanded_bytes: max_expanded_bytes?,
        max_files: max_files?,
        max_file_bytes: max_file_bytes?,
        max_depth: max_depth?,
        anonymous_runs_per_minute: per_minute?,
        anonymous_runs_per_day: per_day?,
        anonymous_concurrent: concurrent?,
        anonymous_writes_per_minute: writes?,
        runs_per_day: runs_per_day?,
    })
}
