//! The database address: rejected values, and its masked form.

use super::{bad, good, source};
use crate::{Config, Problems, table};

fn shown(dsn: &str) -> String {
    let source = source(&[("SERVICE_POSTGRES_DSN", dsn)]);
    let rows = table(&source, &Config::load(&source).unwrap());
    rows.iter().find(|row| row.name == "SERVICE_POSTGRES_DSN").unwrap().value.clone().unwrap()
}

#[test]
fn a_shown_dsn_masks_only_the_password() {
    for (dsn, expected) in [
        (
            "postgres://callboard:hunter2@db.example:5433/callboard",
            "postgres://callboard:********@db.example:5433/callboard",
        ),
        (
            "postgresql://u:a:b/c?d#e@[::1]:5432/x?sslmode=require",
            "postgresql://u:********@[::1]:5432/x?sslmode=require",
        ),
        ("postgres://u@db", "postgres://u@db"),
        (
            "postgres://db/x?user=u&password=hunter2&sslmode=disable",
            "postgres://db/x?user=u&password=********&sslmode=disable",
        ),
        ("postgres://db/x?p%61ssword=hunter2", "postgres://db/x?password=********"),
        ("postgres://u:hunter2@a:1,b:2/x", "postgres://u:********@a:1,b:2/x"),
        ("host=db user=u password=hunter2 dbname=x", "host=db user=u password=******** dbname=x"),
        (" host = /run/postgresql  password = 'hun ter\\'2' ", "host=/run/postgresql password=********"),
        (
            "host=db password=hun\\ ter2 application_name='a b'",
            "host=db password=******** application_name='a b'",
        ),
        ("password='' host=db", "password='' host=db"),
    ] {
        assert_eq!(shown(dsn), expected);
    }
}

#[test]
fn an_unusable_dsn_is_rejected_with_a_clear_error() {
    for (dsn, expected) in [
        (
            "postgres://u:hun@ter2@db/x",
            "has more than one @; write an @ within the user or the password as %40",
        ),
        ("postgres://db/x?user=a@b", "has an @ after its host; "),
        ("postgres://u:hunter2@db:54x32/x", "has a port that is not a number from 1 to 65535; "),
        ("postgres://u:hunter2", "has a port that is not a number from 1 to 65535; "),
        ("postgres://u:hunter2@/x", "names no host; "),
        ("postgres://u:hunter2@[::1/x", "has a host with a missing bracket; "),
        ("postgres://u:hunter2@db/x y", "contains a space or a line break; "),
        ("postgres://u:hunter2@db/x\n", "contains a space or a line break; "),
        ("postgres://u@db/x?hunter2", "has an option without a value after its ?; "),
        ("postgres://u@db/x?sslmode=on", "has a sslmode that is not one of disable, allow, prefer, "),
        (
            "postgres://u@db/x?sslrootcert=/ca.pem",
            "has the option sslrootcert, which is not supported here; leave it out",
        ),
        ("postgres://u@a,b/x?port=1", "names another number of ports than of hosts; "),
        ("host=db password=hunter2 words=more", "has an unknown option; quote a value that contains spaces"),
        ("host=db password='hunter2", "has a quote that is not closed; "),
        ("host=db password=hunter2 more", "is not a PostgreSQL address; "),
        ("host=db port=5432x", "has a port that is not a number from 1 to 65535; "),
        ("host=db connect_timeout=5s", "has a connect_timeout that is not a whole number; "),
        ("hostaddr=db", "has a hostaddr that is not an IP address; "),
        ("user=u password=hunter2 dbname=x", "names no host; "),
        ("host=", "has an option without a value; "),
    ] {
        let problems = bad(&[("SERVICE_POSTGRES_DSN", dsn)]);
        let text = Problems(problems).to_string();
        assert!(text.starts_with(&format!("SERVICE_POSTGRES_DSN: ******** {expected}")), "{dsn}: {text}");
        assert!(!text.contains("hunter2") && !text.contains("words="), "{text}");
    }
}

#[test]
fn every_valid_dsn_form_is_accepted() {
    for dsn in [
        "postgres://u:p%40ss@db.example/x",
        "postgres://%2Frun%2Fpostgresql/x",
        "postgres:///x?host=/run/postgresql",
        "postgres://u@a:1,b:2,c/x?target_session_attrs=read-write&load_balance_hosts=random",
        "host=/run/postgresql port=5433 user=u dbname=x",
        "hostaddr=127.0.0.1 connect_timeout=2 keepalives=1 options='-c search_path=x'",
        "host=db sslmode = 'verify-full' channel_binding=require",
    ] {
        good(&[("SERVICE_POSTGRES_DSN", dsn)]);
    }
}
