//! A database that rejects the service: one sentence, with instructions.

use store::StoreError;
use store::testing::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{open, without};

/// The error from opening a store, without its constant prefix.
async fn error_text(dsn: &str) -> String {
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
async fn errors_name_an_unreachable_server() {
    let dsn = "SERVICE_POSTGRES_DSN";
    assert_eq!(
        error_text("postgres://u:hunter2@127.0.0.1:1/d").await,
        format!(
            "nothing listens at 127.0.0.1:1; start PostgreSQL there, or correct the host and port in {dsn}"
        )
    );
    assert_eq!(
        error_text("host=/nowhere user=u password=hunter2").await,
        format!(
            "the socket /nowhere/.s.PGSQL.5432 does not exist; start PostgreSQL there, or correct the folder and port in {dsn}"
        )
    );
    let unknown = error_text("postgres://u:hunter2@callboard.invalid/d").await;
    assert_eq!(
        unknown,
        format!("the host of callboard.invalid:5432 cannot be resolved; correct it in {dsn}")
    );
}

#[tokio::test]
async fn errors_name_password_and_tls_problems() {
    let port = server(&[b"N"]).await;
    let text = error_text(&format!("postgres://u:hunter2@127.0.0.1:{port}/d?sslmode=require")).await;
    assert!(
        text.starts_with(&format!("127.0.0.1:{port} offers no TLS, but sslmode in SERVICE_POSTGRES_DSN")),
        "{text}"
    );
    let port = server(&[PASSWORD]).await;
    let text = error_text(&format!("postgres://u@127.0.0.1:{port}/d?sslmode=disable")).await;
    assert_eq!(text, format!("127.0.0.1:{port} requires a password; add it to SERVICE_POSTGRES_DSN"));
    let port = server(&[PASSWORD, REFUSAL]).await;
    let text = error_text(&format!("postgres://u:hunter2@127.0.0.1:{port}/d?sslmode=disable")).await;
    assert_eq!(
        text,
        format!(
            "127.0.0.1:{port} rejects the user \"u\" or the password; correct them in SERVICE_POSTGRES_DSN"
        )
    );
    let port = server(&[b"HTTP/1.1 400 Bad Request\r\n\r\n"]).await;
    let text = error_text(&format!("postgres://u:hunter2@127.0.0.1:{port}/d?sslmode=disable")).await;
    assert!(text.contains("PostgreSQL") && text.contains("SERVICE_POSTGRES_DSN"), "{text}");
}

#[tokio::test]
async fn errors_name_user_and_database_problems() {
    let admin = TestDatabase::create().await;
    let name =
        admin.scalar("SELECT 'user_' || oid FROM pg_database WHERE datname = current_database()").await;
    let database = admin.scalar("SELECT current_database()").await;
    let as_user = format!("{} user={name}", without(admin.dsn(), "user"));
    let text = error_text(&as_user).await;
    assert!(text.contains(&format!("does not accept the user \"{name}\" (")), "{text}");
    for (sql, expected) in [
        (format!("CREATE ROLE {name} NOLOGIN"), "(role \""),
        (format!("ALTER ROLE {name} LOGIN CONNECTION LIMIT 0"), "has no free connection (too many"),
        (
            format!(
                "ALTER ROLE {name} CONNECTION LIMIT 5; REVOKE CONNECT ON DATABASE {database} FROM public"
            ),
            "access to the database \"",
        ),
    ] {
        admin.execute(&sql).await.unwrap();
        let text = error_text(&as_user).await;
        assert!(text.contains(expected), "{sql}: {text}");
    }
    admin.execute(&format!("DROP ROLE {name}")).await.unwrap();
    let text = error_text(&format!("{} dbname=nowhere", without(admin.dsn(), "dbname"))).await;
    assert!(
        text.contains("has no database \"nowhere\"; create it (createdb nowhere), or name another in "),
        "{text}"
    );
}
