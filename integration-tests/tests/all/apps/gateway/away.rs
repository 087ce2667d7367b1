//! Database outages.

use std::time::Duration;

use integration_tests::{TestService, until};

use super::{code, get, public_app, publish};

/// Terminates all connections to a database.
const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ";

#[tokio::test]
async fn cached_files_are_served_for_a_second_without_the_database() {
    let t = TestService::with_manual_clock().await;
    public_app(&t, "desk").await;
    let files: [(&str, &[u8]); 3] = [("index.html", b"<p>1"), ("app.js", b"one"), ("other.js", b"two")];
    publish(&t, "desk", &files).await;
    assert_eq!(get(&t, "desk", "/app.js", &[]).await.text(), "one");
    let name = t.scalar("SELECT current_database()").await;
    let owner = integration_tests::owner_of_all_databases().await;
    let allow = async |allowed: bool| {
        owner.execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS {allowed}")).await.unwrap();
    };
    allow(false).await;
    owner.execute(&format!("{CUT} '{name}'")).await.unwrap();
    assert_eq!(get(&t, "desk", "/app.js", &[]).await.text(), "one");
    for path in ["/other.js", "/", "/missing.js"] {
        let answer = get(&t, "desk", path, &[]).await;
        assert_eq!(code(&answer), "503 unavailable", "{path}");
        assert!(answer.header("retry-after").is_some(), "{path}");
    }
    t.advance(Duration::from_millis(1_001));
    assert_eq!(code(&get(&t, "desk", "/app.js", &[]).await), "503 unavailable");
    allow(true).await;
    until("the database is back", async || get(&t, "desk", "/app.js", &[]).await.status == 200).await;
    assert_eq!(get(&t, "desk", "/", &[]).await.text(), "<p>1");
}
