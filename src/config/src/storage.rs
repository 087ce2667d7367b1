//! The data folder and the database.

use std::path::PathBuf;

use chrono::TimeDelta;
use kernel::Secret;

use crate::reader::{RejectedValue, VariableReader};
use crate::{dsn, parse};

/// The folder that one process owns.
#[derive(Debug, Clone)]
pub struct Data {
    /// `SERVICE_DATA_DIR`.
    pub dir: PathBuf,
}

/// The database and its connections.
#[derive(Debug, Clone)]
pub struct Database {
    /// `SERVICE_POSTGRES_DSN`; `None`: the embedded database.
    pub dsn: Option<Secret>,
    /// `SERVICE_PG_BIN`: folder with `initdb` and `postgres`.
    pub pg_bin: Option<PathBuf>,
    /// `SERVICE_DATABASE_POOL`: all connections, including the writers'.
    pub pool: usize,
    /// `SERVICE_DATABASE_WRITERS`: at least 1, fewer than `pool`.
    pub writers: usize,
    /// `SERVICE_RUN_RETENTION_DAYS`: retention of ended runs; `None`: forever.
    pub keep_runs: Option<TimeDelta>,
    /// `SERVICE_WORKSPACE_STORAGE_BYTES`: maximum stored bytes per workspace; `None`: unlimited.
    pub workspace_bytes: Option<i64>,
    /// `SERVICE_TRAINING_MAX_RUNS`: maximum concurrent trainings.
    pub training_runs: usize,
}

pub(crate) fn read_data(reader: &mut VariableReader<'_>) -> Result<Data, RejectedValue> {
    let dir = match reader.optional("SERVICE_DATA_DIR", parse::path)? {
        Some(dir) => Some(dir),
        None => default_dir(reader),
    };
    dir.map(|dir| Data { dir }).ok_or_else(|| {
        reader.refuse(
            "SERVICE_DATA_DIR",
            "is not set, and without $HOME and $XDG_DATA_HOME it has no default",
            "write the path of a folder",
        );
        RejectedValue
    })
}

/// The XDG specification requires a relative `$XDG_DATA_HOME` to be ignored.
fn default_dir(reader: &VariableReader<'_>) -> Option<PathBuf> {
    let source = reader.source();
    if source.is_root() {
        return Some(PathBuf::from("/var/lib/callboard"));
    }
    let xdg = source.xdg_data_home().map(PathBuf::from).filter(|path| path.is_absolute());
    let data_home = xdg.or_else(|| source.home().map(|home| PathBuf::from(home).join(".local/share")));
    data_home.map(|data_home| data_home.join("callboard"))
}

pub(crate) fn read_database(reader: &mut VariableReader<'_>) -> Result<Database, RejectedValue> {
    let dsn = reader.secret("SERVICE_POSTGRES_DSN", dsn::check);
    let pg_bin = reader.optional("SERVICE_PG_BIN", parse::path);
    let pool = reader.value("SERVICE_DATABASE_POOL", parse::number::<usize>(2..=500));
    let writers = reader.optional("SERVICE_DATABASE_WRITERS", parse::number::<usize>(1..=499));
    let days = reader.value("SERVICE_RUN_RETENTION_DAYS", parse::number::<i64>(0..=36_500));
    let bytes = reader.value("SERVICE_WORKSPACE_STORAGE_BYTES", parse::number::<i64>(0..=1 << 60));
    let training_runs = reader.value("SERVICE_TRAINING_MAX_RUNS", parse::number::<usize>(1..=64));
    let (pool, writers) = (pool?, writers?);
    let writers = writers.unwrap_or_else(|| (pool / 4).max(1));
    if writers >= pool {
        reader.refuse(
            "SERVICE_DATABASE_WRITERS",
            format!("leaves no connection for readers: {writers} of {pool}"),
            "write a number smaller than SERVICE_DATABASE_POOL",
        );
        return Err(RejectedValue);
    }
    let keep_runs = Some(days?).filter(|days| *days > 0).map(TimeDelta::days);
    let workspace_bytes = Some(bytes?).filter(|bytes| *bytes > 0);
    let training_runs = training_runs?;
    Ok(Database { dsn: dsn?, pg_bin: pg_bin?, pool, writers, keep_runs, workspace_bytes, training_runs })
}
