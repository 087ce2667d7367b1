//! A database that rejects the service: one sentence, with instructions.

use store::StoreError;
use store::testing::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{open, without};

/// The error from opening a store, without its constant prefix.
async fn told(dsn: &str) -> String {
    let Err(error) = open(dsn, 1).await else { panic!("{dsn} was opened") };
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let text = error.to_string();
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
    text.strip_prefix("the database cannot be reached: ").unwrap().to_owned()
}

/// A server that answers each client message with one of these; returns its port.
async fn server(answers: &'static [&'static [u8]]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 1024];
        for answer in answers {
            if stream.read(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
            stream.write_all(answer).await.unwrap();
        }
        // Until the client disconnects.
        while stream.read(&mut buffer).await.is_ok_and(|length| length > 0) {}
    });
    port
}

/// Requests a password in plain text.
const PASSWORD: &[u8] = b"R\0\0\0\x08\0\0\0\x03";

/// Rejects that password.
const REFUSAL: &[u8] = b"E\0\0\0\x28SFATAL\0VFATAL\0C28P01\0Mno such luck\0\0";

#[tokio::test]
async fn nobody_there() {
    let dsn = "SERVICE_POSTGRES_DSN";
    assert_eq!(
        told("postgres://u:hunter2@127.0.0.1:1/d").await,
        format!(
            "nothing listens at 127.0.0.1:1; start PostgreSQL there, or put the right host and port into {dsn}"
        )
    );
    assert_eq!(
        told("host=/nowhere user=u password=hunter2").await,
        format!(
            "there is no socket /nowhere/.s.PGSQL.5432; start PostgreSQL there, or put the right folder and port into {dsn}"
        )
    );
    let unknown = told("postgres://u:hunter2@callboard.invalid/d").await;
    assert_eq!(
        unknown,
        format!("the host of callboard.invalid:5432 is not known; put the right name into {dsn}")
    );
}

#[tokio::test]
async fn passwords_and_tls() {
    let port = server(&[b"N"]).await;
    let text = told(&format!("postgres://u:hunter2@127.0.0.1:{port}/d?sslmode=require")).await;
    assert!(
        text.starts_with(&format!("127.0.0.1:{port} offers no TLS, and sslmode in SERVICE_POSTGRES_DSN")),
        "{text}"
    );
    let port = server(&[PASSWORD]).await;
    let text = told(&format!("postgres://u@127.0.0.1:{port}/d?sslmode=disable")).await;
    assert_eq!(text, format!("127.0.0.1:{port} asks for a password; write it into SERVICE_POSTGRES_DSN"));
    let port = server(&[PASSWORD, REFUSAL]).await;
    let text = told(&format!("postgres://u:hunter2@127.0.0.1:{port}/d?sslmode=disable")).await;
    assert_eq!(
        text,
        format!(
            "127.0.0.1:{port} refuses the user \"u\" or its password; put the right ones into SERVICE_POSTGRES_DSN"
        )
    );
    let port = server(&[b"HTTP/1.1 400 Bad Request\r\n\r\n"]).await;
    let text = told(&format!("postgres://u:hunter2@127.0.0.1:{port}/d?sslmode=disable")).await;
    assert!(text.contains("PostgreSQL") && text.contains("SERVICE_POSTGRES_DSN"), "{text}");
}

#[tokio::test]
async fn users_and_databases() {
    let admin = TestDatabase::create().await;
    let name =
        admin.scalar("SELECT 'user_' || oid FROM pg_database WHERE datname = current_database()").await;
    let database = admin.scalar("SELECT current_database()").await;
    let as_user = format!("{} user={name}", without(admin.dsn(), "user"));
    let text = told(&as_user).await;
    assert!(text.contains(&format!("does not let the user \"{name}\" in (")), "{text}");
    for (sql, expected) in [
        (format!("CREATE ROLE {name} NOLOGIN"), "in (role \""),
        (format!("ALTER ROLE {name} LOGIN CONNECTION LIMIT 0"), "has no connection to spare (too many"),
        (
            format!(
                "ALTER ROLE {name} CONNECTION LIMIT 5; REVOKE CONNECT ON DATABASE {database} FROM public"
            ),
            "into the database \"",
        ),
    ] {
        admin.execute(&sql).await.unwrap();
        let text = told(&as_user).await;
        assert!(text.contains(expected), "{sql}: {text}");
    }
    admin.execute(&format!("DROP ROLE {name}")).await.unwrap();
    let text = told(&format!("{} dbname=nowhere", without(admin.dsn(), "dbname"))).await;
    assert!(
        text.contains("has no database \"nowhere\"; create it (createdb nowhere), or name another in "),
        "{text}"
    );
}
