//! Inspects a database without changing it, as a start would see it.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{BigInt, Integer, Nullable, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Clock, Secret};
use secrecy::ExposeSecret;
use tokio::runtime::Handle;

use crate::database::connect::{Connector, SessionKind};
use crate::database::scalar::Scalar;
use crate::system::{migrate, requirements, roles};
use crate::{StoreError, embedded};

/// The properties of a reachable database.
#[derive(Debug)]
pub struct Inspection {
    /// Host and port in readable form.
    pub place: String,
    /// The server's version, such as `15.18`.
    pub version: String,
    /// The oldest supported major version, if the server is older.
    pub older_than: Option<u32>,
    /// The connection's TLS version; `None` without TLS.
    pub tls: Option<String>,
    /// Whether the client verifies the server's certificate.
    pub certificate_checked: bool,
    /// Whether the connection stays on this machine.
    pub local: bool,
    /// The database clock's lead over this machine's clock.
    pub clock_ahead: TimeDelta,
    /// The round trip of that measurement: the maximum error of the difference.
    pub round_trip: TimeDelta,
    /// The connection limits.
    pub connections: Connections,
    /// Whether the service can run there, and the remaining work; the error is the one from a start.
    pub fitness: Result<Fitness, StoreError>,
}

/// The database connections of the DSN's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// The smallest limit among server, database and user.
    pub most: i64,
    /// Connections used by others.
    pub others: i64,
}

/// A database that the service can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fitness {
    /// Whether the restricted role exists or can be created.
    pub role: bool,
    /// Whether the service's user bypasses row security.
    pub bypasses_row_security: bool,
    /// Migrations that a start will apply.
    pub pending: usize,
    /// Migrations unknown to this version.
    pub unknown: usize,
}

#[derive(diesel::QueryableByName)]
struct Facts {
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Integer)]
    number: i32,
    #[diesel(sql_type = Nullable<Text>)]
    tls: Option<String>,
    #[diesel(sql_type = BigInt)]
    most: i64,
    #[diesel(sql_type = BigInt)]
    used: i64,
    #[diesel(sql_type = BigInt)]
    ours: i64,
}

/// Other users' rows in `pg_stat_activity` are blank, so connections are counted per database. A superuser may
/// also use the reserved ones.
const FACTS: &str = "SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
    current_setting('server_version_num')::int AS number,
    (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls,
    least(
        current_setting('max_connections')::bigint - CASE WHEN rolsuper THEN 0 ELSE
            current_setting('superuser_reserved_connections')::bigint
            + coalesce(current_setting('reserved_connections', true), '0')::bigint END,
        CASE WHEN rolconnlimit < 0 OR rolsuper THEN NULL ELSE rolconnlimit::bigint END,
        CASE WHEN datconnlimit < 0 OR rolsuper THEN NULL ELSE datconnlimit::bigint END) AS most,
    (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database) AS used,
    (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND datname = current_database()
     AND application_name = current_setting('application_name')) AS ours
    FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()";

/// Connects as a start would, and inspects the database.
///
/// # Errors
/// [`StoreError::Unavailable`] with instructions, as at a start; [`StoreError`] when a query fails.
pub async fn inspect(dsn: &Secret, clock: &dyn Clock) -> Result<Inspection, StoreError> {
    let connector = Connector::new(dsn.expose_secret(), Handle::current())?;
    let mut connection = connector.open(SessionKind::Owner).await?;
    let facts: Facts = diesel::sql_query(FACTS).get_result(&mut connection).await?;
    let (asked, asked_at) = (clock.monotonic(), clock.now());
    let now: Scalar<DateTime<Utc>> =
        diesel::sql_query("SELECT clock_timestamp() AS now").get_result(&mut connection).await?;
    let round_trip = TimeDelta::from_std(clock.monotonic().saturating_sub(asked)).unwrap_or_default();
    let major = u32::try_from(facts.number).unwrap_or(0) / 10_000;
    Ok(Inspection {
        place: connector.place(),
        version: facts.version,
        older_than: (major < embedded::OLDEST).then_some(embedded::OLDEST),
        tls: facts.tls,
        certificate_checked: connector.verifies(),
        local: connector.is_local(),
        // The database read its clock about half way through the round trip.
        clock_ahead: now.0 - asked_at - round_trip / 2,
        round_trip,
        connections: Connections { most: facts.most, others: facts.used.saturating_sub(facts.ours) },
        fitness: fitness(&mut connection).await,
    })
}

async fn fitness(connection: &mut AsyncPgConnection) -> Result<Fitness, StoreError> {
    requirements::check(connection).await?;
    let migrate::Compared { pending, unknown } = migrate::compare(connection).await?;
    let role = roles::on_trial(connection).await?;
    let bypasses_row_security = roles::bypasses_row_security(connection, role).await?;
    Ok(Fitness { role, bypasses_row_security, pending, unknown })
}

#[cfg(test)]
mod tests {
    use kernel::{Clock, ManualClock, SystemClock};

    use super::{Fitness, Inspection, TimeDelta, inspect};
    use crate::testing::TestDatabase;

    async fn look(dsn: &str) -> Inspection {
        inspect(&dsn.to_owned().into(), &SystemClock::new()).await.unwrap()
    }

    #[tokio::test]
    async fn a_good_database_is_fit_and_has_the_same_clock() {
        let database = TestDatabase::create().await;
        let seen = look(database.dsn()).await;
        assert_eq!(
            seen.fitness.unwrap(),
            Fitness { role: true, bypasses_row_security: false, pending: 0, unknown: 0 }
        );
        assert!(
            seen.clock_ahead.abs() <= seen.round_trip + TimeDelta::milliseconds(5),
            "{seen:?}",
            seen = seen.clock_ahead
        );
        assert!(seen.local && seen.tls.is_none() && seen.older_than.is_none());
        assert!(seen.connections.most > 0 && seen.connections.others >= 0);
    }

    #[tokio::test]
    async fn a_wrong_clock_and_unknown_migrations_are_detected() {
        let database = TestDatabase::create().await;
        database
            .execute(
                "INSERT INTO __diesel_schema_migrations VALUES ('29990101000001');
                      DELETE FROM __diesel_schema_migrations WHERE version = '20261121000013'",
            )
            .await
            .unwrap();
        let clock = ManualClock::new(SystemClock::new().now() - TimeDelta::hours(1));
        let seen = inspect(&database.dsn().to_owned().into(), &clock).await.unwrap();
        assert_eq!(seen.clock_ahead.num_minutes(), 60);
        let fitness = seen.fitness.unwrap();
        assert_eq!((fitness.pending, fitness.unknown), (1, 1));
    }

    #[tokio::test]
    async fn a_user_without_create_role_is_detected_and_nothing_is_created() {
        let database = TestDatabase::create().await;
        let name = format!("plain_{}", database.dsn().rsplit('_').next().unwrap());
        let owned = format!(
            "CREATE ROLE {name} LOGIN CONNECTION LIMIT 3; GRANT CREATE ON SCHEMA public TO {name};
             GRANT ALL ON __diesel_schema_migrations TO {name}; ALTER TABLE __diesel_schema_migrations OWNER TO {name}"
        );
        database.execute(&owned).await.unwrap();
        let dsn = format!("{} user={name}", database.dsn());
        let seen = look(&dsn).await;
        let fitness = seen.fitness.unwrap();
        let others =
            "SELECT count(*) FROM pg_auth_members WHERE member = (SELECT oid FROM pg_roles WHERE rolname = '";
        let memberships = database.scalar(&format!("{others}{name}')")).await;
        database.execute(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).await.unwrap();
        assert_eq!((fitness.role, seen.connections.most, memberships.as_str()), (false, 3, "0"));
    }

    #[tokio::test]
    async fn an_inspection_reports_the_same_errors_as_a_start() {
        let closed = "host=127.0.0.1 port=1 user=u dbname=d".to_owned();
        let error = inspect(&closed.into(), &SystemClock::new()).await.unwrap_err().to_string();
        assert!(error.contains("nothing listens at 127.0.0.1:1; start PostgreSQL there"), "{error}");
        let database = TestDatabase::create().await;
        database.execute("DROP SCHEMA public CASCADE").await.unwrap();
        let unfit = look(database.dsn()).await.fitness.unwrap_err().to_string();
        assert!(unfit.contains("has no schema public"), "{unfit}");
    }
}
