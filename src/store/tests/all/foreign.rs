//! Statements in a database that the service does not own, over the network.

use std::time::Duration;

use serde_json::{Value, json};
use store::testing::TestDatabase;
use store::{Foreign, ForeignError, ForeignQuery};

fn read(sql: &str, parameters: Value) -> ForeignQuery {
    let parameters = parameters.as_array().unwrap().clone();
    let time = Duration::from_secs(10);
    ForeignQuery { sql: sql.to_owned(), parameters, writes: false, time, rows: 100, bytes: 100_000 }
}

fn write(sql: &str, parameters: Value) -> ForeignQuery {
    ForeignQuery { writes: true, ..read(sql, parameters) }
}

#[tokio::test]
async fn rows_are_converted_to_json_by_the_server() {
    let database = TestDatabase::create().await;
    let (dsn, at) = database.over_network().await;
    let foreign = Foreign::read(&dsn).unwrap();
    let rows = async |query: ForeignQuery| foreign.query(&[at], &query).await.unwrap();
    let all = rows(read(
        "SELECT 1 AS a, 2.50::numeric AS b, 'x' AS c, NULL AS d, true AS e, ARRAY[1, 2] AS f, '{\"g\": [1]}'::jsonb AS g,
                date '2026-02-03' AS h, '10.0.0.1'::inet AS i, interval '1 day' AS j -- the end ;",
        json!([]),
    ));
    let all = all.await;
    assert_eq!(
        all.rows,
        [
            json!({"a": 1, "b": 2.50, "c": "x", "d": null, "e": true, "f": [1, 2], "g": {"g": [1]}, "h": "2026-02-03",
                "i": "10.0.0.1", "j": "1 day"})
        ]
    );
    // A bound parameter is always a value, whatever its text.
    let evil = "'; DROP TABLE runs; --";
    let bound = rows(read(
        "SELECT $1::text AS a, $2::int AS b, $3::jsonb AS c, $4::text[] AS d, $5::timestamptz AS e, $6::bool AS f,
                $7::numeric AS g, $8::uuid AS h",
        json!([evil, 7, {"k": evil}, ["x", "\"{,}\\", null], "2026-01-02T03:04:05Z", false, 1.5,
               "0190b0a0-0000-7000-8000-000000000000"]),
    ));
    let row = bound.await.rows[0].clone();
    assert_eq!((&row["a"], &row["b"], &row["c"]["k"]), (&json!(evil), &json!(7), &json!(evil)));
    assert_eq!(
        (&row["d"], &row["f"], &row["g"]),
        (&json!(["x", "\"{,}\\", null]), &json!(false), &json!(1.5))
    );
    assert!(row["e"].as_str().unwrap().starts_with("2026-01-02T"));
    let ordered = rows(read("SELECT n FROM generate_series(1, 5) n ORDER BY n DESC;", json!([]))).await;
    assert_eq!((ordered.rows[0].clone(), ordered.count), (json!({"n": 5}), 5));
    assert_eq!(rows(read("SELECT n FROM generate_series(1, 0) n", json!([]))).await.rows, [Value::Null; 0]);
}

#[tokio::test]
async fn only_write_queries_write_and_failures_leave_nothing() {
    let database = TestDatabase::create().await;
    let (dsn, at) = database.over_network().await;
    let foreign = Foreign::read(&dsn).unwrap();
    let go = async |query: ForeignQuery| foreign.query(&[at], &query).await;
    let made = go(write("CREATE TABLE things (id int PRIMARY KEY, name text)", json!([]))).await.unwrap();
    assert_eq!((made.rows.len(), made.count), (0, 0));
    let two = go(write("INSERT INTO things VALUES ($1, $2), (2, 'b')", json!([1, "a"]))).await.unwrap();
    assert_eq!(two.count, 2);
    let back =
        go(write("UPDATE things SET name = 'c' WHERE id = $1 RETURNING id, name", json!([2]))).await.unwrap();
    assert_eq!(back.rows, [json!({"id": 2, "name": "c"})]);
    for sql in [
        "DELETE FROM things",
        "DELETE FROM things RETURNING id",
        "INSERT INTO things VALUES (3, 'x')",
        "DROP TABLE things",
        "SELECT nextval('s')",
    ] {
        let _ = go(write("CREATE SEQUENCE IF NOT EXISTS s", json!([]))).await;
        let refused = go(read(sql, json!([]))).await.unwrap_err();
        assert!(
            matches!(&refused, ForeignError::Failed { message, again: false } if message.contains("\"mode\": \"write\"")),
            "{sql}: {refused:?}"
        );
    }
    // Two statements are rejected.
    let two = go(write("DELETE FROM things; DELETE FROM things", json!([]))).await.unwrap_err();
    assert!(matches!(&two, ForeignError::Failed { message, .. } if message.contains("42601")), "{two:?}");
    let ended = go(read("COMMIT", json!([]))).await;
    assert!(ended.is_ok(), "{ended:?}");
    let many = ForeignQuery { rows: 1, ..write("DELETE FROM things RETURNING id", json!([])) };
    assert!(matches!(go(many).await, Err(ForeignError::TooLarge(_))), "it is rolled back");
    assert_eq!(database.scalar("SELECT string_agg(id || name, ' ' ORDER BY id) FROM things").await, "1a 2c");
}

#[tokio::test]
async fn each_database_error_has_a_kind() {
    let database = TestDatabase::create().await;
    let (dsn, at) = database.over_network().await;
    let foreign = Foreign::read(&dsn).unwrap();
    let go = async |query: ForeignQuery| foreign.query(&[at], &query).await.unwrap_err();
    for (sql, parameters, says) in [
        ("SELEC 1", json!([]), "syntax error"),
        ("SELECT * FROM nothing", json!([]), "42P01"),
        ("SELECT $1::int", json!([]), "has 1 parameters, 0 were given"),
        ("SELECT 1", json!([1]), "has 0 parameters, 1 were given"),
        ("SELECT $1::int", json!(["x"]), "22P02"),
        ("SELECT $1::text", json!(["\u{0}"]), "parameter $1: holds U+0000"),
        ("SELECT 1 / $1::int", json!([0]), "22012"),
    ] {
        let error = go(read(sql, parameters)).await;
        assert!(
            matches!(&error, ForeignError::Failed { message, again: false } if message.contains(says)),
            "{sql}: {error:?}"
        );
    }
    let few = ForeignQuery { rows: 3, ..read("SELECT n FROM generate_series(1, 1000) n", json!([])) };
    assert_eq!(go(few).await, ForeignError::TooLarge("there are more than 3 rows".into()));
    let small = ForeignQuery { bytes: 100, ..read("SELECT repeat('x', 1000) AS x", json!([])) };
    assert_eq!(go(small).await, ForeignError::TooLarge("the rows have more than 100 bytes".into()));
    // One row that is too large to hold, and messages in addition to the rows.
    for sql in [
        "SELECT repeat('x', 200000000) AS x",
        "SELECT set_config('a.b', repeat('x', 1000000), true), pg_sleep(0)",
    ] {
        assert!(matches!(go(read(sql, json!([]))).await, ForeignError::TooLarge(_)), "{sql}");
    }
    let quick = ForeignQuery { time: Duration::from_millis(50), ..read("SELECT pg_sleep(20)", json!([])) };
    assert_eq!(go(quick).await, ForeignError::Timeout(Duration::from_millis(50)));
    let broken = go(read("SELECT pg_terminate_backend(pg_backend_pid())", json!([]))).await;
    assert!(matches!(broken, ForeignError::Unreachable(_)), "{broken:?}");
    let elsewhere = dsn.replace("://", "://nobody_known:sesame-canary@").replace("postgres@", "");
    for (other, refused) in [
        (elsewhere, true),
        (dsn.replace('?', "_none?"), true),
        (dsn.replace("disable", "require"), false),
        (dsn.split('?').next().unwrap().to_owned(), false),
    ] {
        let error =
            Foreign::read(&other).unwrap().query(&[at], &read("SELECT 1", json!([]))).await.unwrap_err();
        assert_eq!(matches!(error, ForeignError::Refused(_)), refused, "{error:?}");
        assert!(refused || matches!(error, ForeignError::Unreachable(_)), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("canary"), "{error}");
    }
    // No server listens, or one listens that does not speak PostgreSQL's protocol.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = foreign.query(&[free], &read("SELECT 1", json!([]))).await.unwrap_err();
    assert!(matches!(&error, ForeignError::Unreachable(why) if why.contains("refused")), "{error:?}");
}

#[test]
fn an_address_is_exactly_one_network_host() {
    for (dsn, says) in [
        ("postgres://u:canary@/db", "no host"),
        ("host=/tmp user=u password=canary", "Unix socket"),
        ("postgres://u:canary@%2Ftmp/db", "Unix socket"),
        ("postgres://u:canary@a.test,b.test/db", "several hosts"),
        ("host=a.test hostaddr=10.0.0.1 user=u password=canary", "hostaddr"),
        ("postgres://u:canary@a.test:x/db", "cannot be read"),
        ("", "no host"),
        ("https://u:canary@a.test", "cannot be read"),
    ] {
        let error = Foreign::read(dsn).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("canary"), "{dsn}: {error}");
    }
    let foreign = Foreign::read(" postgres://u:canary@a.test/db ").unwrap();
    assert_eq!((foreign.host(), foreign.port()), ("a.test", 5432));
    assert_eq!(format!("{foreign:?}"), "Foreign(a.test:5432)");
}

#[tokio::test]
async fn a_change_with_an_unknown_outcome_is_not_reported_as_failed() {
    let database = TestDatabase::create().await;
    let (dsn, at) = database.over_network().await;
    let foreign = Foreign::read(&dsn).unwrap();
    // The server crashes during the commit.
    let dies = "CREATE TABLE notes (n int);
        CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER die AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION die()";
    database.execute(dies).await.unwrap();
    let error = foreign.query(&[at], &write("INSERT INTO notes VALUES (1)", json!([]))).await.unwrap_err();
    assert!(matches!(error, ForeignError::Unknown(_)), "{error:?}");
    let before = "SELECT pg_terminate_backend(pg_backend_pid())";
    let error = foreign.query(&[at], &write(before, json!([]))).await.unwrap_err();
    assert!(matches!(error, ForeignError::Unreachable(_)), "nothing was to be stored yet: {error:?}");
}
