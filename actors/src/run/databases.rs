//! Databases that graphs name: reached through the outbound guard, one connection per statement.

use std::net::IpAddr;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{DatabaseQuery, DatabaseRows, Databases, Host, Outbound};
use kernel::Secret;
use secrecy::ExposeSecret;
use store::{Foreign, ForeignError, ForeignQuery};
use wire::ErrorCode;

/// External databases.
pub(super) struct DatabasesOf<'a> {
    pub(super) outbound: &'a Outbound,
}

#[async_trait]
impl Databases for DatabasesOf<'_> {
    fn password(&self, dsn: &Secret) -> Option<Secret> {
        Foreign::read(dsn.expose_secret()).ok()?.password()
    }

    async fn query(&self, dsn: &Secret, query: DatabaseQuery) -> Result<DatabaseRows, NodeError> {
        let database = Foreign::read(dsn.expose_secret()).map_err(error)?;
        let host = match database.host().parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => Host::Ipv4(address),
            Ok(IpAddr::V6(address)) => Host::Ipv6(address),
            Err(_) => Host::parse(database.host()).map_err(|_| {
                NodeError::new(
                    ErrorCode::EgressRefused,
                    "the host of the dsn is neither a name nor an address",
                )
            })?,
        };
        let addresses = self.outbound.addresses(&host, database.port()).await;
        let addresses = addresses.map_err(|error| {
            let (code, retryable) = (error.kind.code(), error.kind.is_retryable());
            let code = if retryable { ErrorCode::PostgresUnreachable } else { code };
            NodeError { retryable, ..NodeError::new(code, error.message) }
        })?;
        let DatabaseQuery { sql, parameters, writes, time, rows, bytes } = query;
        let query = ForeignQuery { sql, parameters, writes, time, rows, bytes };
        let answer = database.query(&addresses, &query).await.map_err(error)?;
        Ok(DatabaseRows { rows: answer.rows, count: answer.count })
    }
}

fn error(error: ForeignError) -> NodeError {
    let message = error.to_string();
    match error {
        ForeignError::Address(_) => NodeError::new(ErrorCode::EgressRefused, message),
        ForeignError::Unreachable(_) => NodeError::retryable(ErrorCode::PostgresUnreachable, message),
        ForeignError::Refused(_) => NodeError::new(ErrorCode::PostgresRefused, message),
        ForeignError::Failed { again, .. } => {
            NodeError { retryable: again, ..NodeError::new(ErrorCode::PostgresFailed, message) }
        }
        ForeignError::Timeout(_) => NodeError::retryable(ErrorCode::NodeTimeout, message),
        ForeignError::Unknown(_) => NodeError::new(ErrorCode::NodeOutcomeUnknown, message),
        ForeignError::TooLarge(_) => NodeError::new(ErrorCode::PostgresTooLarge, message),
    }
}
