//! The database: the embedded server's programs, or the connection to the configured DSN.

use config::Config;
use kernel::{Clock, Secret};
use store::embedded::{self, EmbeddedError, Looked};
use store::{Fitness, Inspection, StoreError};

use super::report::Finding;

const DATABASE: &str = "database";
const TLS: &str = "database TLS";
const ROLE: &str = "database role";
const ROW_SECURITY: &str = "row security";
const MIGRATIONS: &str = "migrations";
const CONNECTIONS: &str = "connections";

pub(super) enum DatabaseProbe {
    /// An external database's inspection.
    Asked(Result<Inspection, StoreError>),
    /// An embedded database that is not running, or cannot run.
    Embedded(Result<Looked, EmbeddedError>),
}

impl DatabaseProbe {
    pub(super) fn inspection(&self) -> Option<&Inspection> {
        match self {
            Self::Asked(Ok(inspection)) => Some(inspection),
            _ => None,
        }
    }
}

pub(super) async fn probe(config: &Config, clock: &dyn Clock) -> DatabaseProbe {
    if let Some(dsn) = &config.database.dsn {
        return DatabaseProbe::Asked(store::inspect(dsn, clock).await);
    }
    let options = embedded::EmbeddedOptions {
        data_dir: config.data.dir.clone(),
        binaries: config.database.pg_bin.clone(),
    };
    match embedded::look(&options) {
        Ok(Looked::Running { dsn }) => DatabaseProbe::Asked(store::inspect(&Secret::from(dsn), clock).await),
        looked => DatabaseProbe::Embedded(looked),
    }
}

pub(super) fn judge(probed: &DatabaseProbe, pool: usize) -> Vec<Finding> {
    match probed {
        DatabaseProbe::Asked(Ok(inspection)) => inspected(inspection, pool),
        DatabaseProbe::Asked(Err(error)) => vec![Finding::refusal(DATABASE, &error.to_string())],
        DatabaseProbe::Embedded(looked) => vec![looked_at(looked)],
    }
}

fn looked_at(looked: &Result<Looked, EmbeddedError>) -> Finding {
    match looked {
        Ok(Looked::Programs { folder, major, made }) => {
            let what = if *made { "exists and is not running" } else { "will be created at the first start" };
            let folder = folder.display();
            Finding::ok(
                DATABASE,
                format!("the embedded one {what}; PostgreSQL {major} was found in {folder}"),
            )
        }
        Ok(Looked::Fetched { major }) => Finding::warning(
            DATABASE,
            format!("PostgreSQL is not installed; the first start downloads PostgreSQL {major} through npm"),
            "that needs a network and about 24 MB; to avoid it, install the package `postgresql`",
        ),
        Ok(Looked::Running { .. }) => Finding::ok(DATABASE, "the embedded one is running"),
        Err(error) => Finding::refusal(DATABASE, &error.to_string()),
    }
}

fn inspected(seen: &Inspection, pool: usize) -> Vec<Finding> {
    let mut findings = vec![version(seen), tls(seen)];
    match &seen.fitness {
        Ok(fitness) => findings.extend([role(fitness), row_security(fitness), migrations(fitness)]),
        Err(error) => findings.push(Finding::refusal(DATABASE, &error.to_string())),
    }
    findings.push(connections(seen, pool));
    findings
}

fn version(seen: &Inspection) -> Finding {
    let message = format!("PostgreSQL {} answers at {}", seen.version, seen.place);
    match seen.older_than {
        Some(oldest) => Finding::warning(
            DATABASE,
            message,
            format!("this version is not tested; upgrade the server to PostgreSQL {oldest} or newer"),
        ),
        None => Finding::ok(DATABASE, message),
    }
}

fn tls(seen: &Inspection) -> Finding {
    match &seen.tls {
        _ if seen.local => Finding::ok(TLS, "the connection stays on this machine"),
        None => Finding::warning(
            TLS,
            "the connection is not encrypted: others on the network can read the password and data",
            "enable ssl on the server and set sslmode=verify-full in SERVICE_POSTGRES_DSN",
        ),
        Some(tls) if !seen.certificate_checked => Finding::warning(
            TLS,
            format!("the connection is encrypted ({tls}), but the server's certificate is not verified"),
            "set sslmode=verify-full in SERVICE_POSTGRES_DSN to verify its certificate",
        ),
        Some(tls) => Finding::ok(TLS, format!("encrypted ({tls}), and the server's certificate is verified")),
    }
}

fn role(fitness: &Fitness) -> Finding {
    if fitness.role {
        return Finding::ok(ROLE, "the service uses its own role with restricted privileges");
    }
    Finding::warning(
        ROLE,
        "the user of SERVICE_POSTGRES_DSN may not create roles, so the service uses that user",
        "grant it CREATEROLE (ALTER ROLE … CREATEROLE) to use the restricted role",
    )
}

fn row_security(fitness: &Fitness) -> Finding {
    if !fitness.bypasses_row_security {
        return Finding::ok(ROW_SECURITY, "it separates the records of apps and users");
    }
    Finding::warning(
        ROW_SECURITY,
        "it does not apply to the user that the service uses: the second barrier between the records of apps and users is missing",
        "let the service use a user that is neither a superuser nor has BYPASSRLS (ALTER ROLE … NOSUPERUSER NOBYPASSRLS)",
    )
}

fn migrations(fitness: &Fitness) -> Finding {
    match (fitness.unknown, fitness.pending) {
        (0, 0) => Finding::ok(MIGRATIONS, "up to date"),
        (0, pending) => Finding::ok(MIGRATIONS, format!("{pending} pending; the next start applies them")),
        (unknown, _) => Finding::warning(
            MIGRATIONS,
            format!("the database has {unknown} that this version does not know: a newer version used it"),
            "run that newer version, or restore an older backup",
        ),
    }
}

fn connections(seen: &Inspection, pool: usize) -> Finding {
    let wanted = i64::try_from(pool).unwrap_or(i64::MAX);
    let store::Connections { most, others } = seen.connections;
    let message = format!("the service uses up to {pool} of {most}; others use {others}");
    let remedy = "raise max_connections or the connection limit of the user or database, or lower \
                  SERVICE_DATABASE_POOL";
    if most < wanted {
        Finding::problem(CONNECTIONS, message, remedy)
    } else if most.saturating_sub(others) < wanted {
        Finding::warning(CONNECTIONS, message, remedy)
    } else {
        Finding::ok(CONNECTIONS, message)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::TimeDelta;
    use store::Connections;

    use super::super::report::Level;
    use super::*;

    pub(in super::super) fn seen() -> Inspection {
        Inspection {
            place: "db:5432".to_owned(),
            version: "16.2".to_owned(),
            older_than: None,
            tls: Some("TLSv1.3".to_owned()),
            certificate_checked: true,
            local: false,
            clock_ahead: TimeDelta::zero(),
            round_trip: TimeDelta::milliseconds(2),
            connections: Connections { most: 100, others: 3 },
            fitness: Ok(Fitness { role: true, bypasses_row_security: false, pending: 0, unknown: 0 }),
        }
    }

    fn levels(seen: Inspection) -> Vec<(&'static str, Level)> {
        let findings = judge(&DatabaseProbe::Asked(Ok(seen)), 10);
        findings.into_iter().filter(|one| one.level != Level::Ok).map(|one| (one.check, one.level)).collect()
    }

    #[test]
    fn a_good_database_has_no_finding_and_each_fault_a_separate_one() {
        assert_eq!(levels(seen()), []);
        assert_eq!(levels(Inspection { older_than: Some(14), ..seen() }), [(DATABASE, Level::Warning)]);
        assert_eq!(levels(Inspection { tls: None, ..seen() }), [(TLS, Level::Warning)]);
        assert_eq!(levels(Inspection { tls: None, local: true, ..seen() }), []);
        assert_eq!(levels(Inspection { certificate_checked: false, ..seen() }), [(TLS, Level::Warning)]);
        let fitness = |role, pending, unknown| {
            let fitness = Fitness { role, bypasses_row_security: false, pending, unknown };
            levels(Inspection { fitness: Ok(fitness), ..seen() })
        };
        assert_eq!(fitness(false, 0, 0), [(ROLE, Level::Warning)]);
        let bypasses = Fitness { role: true, bypasses_row_security: true, pending: 0, unknown: 0 };
        assert_eq!(levels(Inspection { fitness: Ok(bypasses), ..seen() }), [(ROW_SECURITY, Level::Warning)]);
        assert_eq!(fitness(true, 3, 0), []);
        assert_eq!(fitness(true, 0, 1), [(MIGRATIONS, Level::Warning)]);
        let connections =
            |most, others| levels(Inspection { connections: Connections { most, others }, ..seen() });
        assert_eq!(connections(9, 0), [(CONNECTIONS, Level::Problem)]);
        assert_eq!(connections(12, 3), [(CONNECTIONS, Level::Warning)]);
        assert_eq!(connections(13, 3), []);
        let unfit = Inspection { fitness: Err(StoreError::Unfit("no; do".to_owned())), ..seen() };
        assert_eq!(levels(unfit), [(DATABASE, Level::Problem)]);
    }
}
