//! What `callboard config show` prints.

use super::source;
use crate::{Config, Origin, render, table};

#[test]
fn rows_carry_value_default_and_origin() {
    let given = source(&[("SERVICE_PORT", "9000"), ("SERVICE_DATABASE_POOL", "40")]);
    let config = Config::load(&given).unwrap();
    let rows = table(&given, &config);
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(row("SERVICE_PORT").value.as_deref(), Some("9000"));
    assert_eq!(row("SERVICE_PORT").default, Some("8000"));
    assert_eq!(row("SERVICE_PORT").source, Origin::Environment);
    assert_eq!(row("SERVICE_DATABASE_WRITERS").value.as_deref(), Some("10"));
    assert_eq!(row("SERVICE_DATABASE_WRITERS").source, Origin::Default);
    assert_eq!(row("SERVICE_DATA_DIR").value.as_deref(), Some("/home/ada/.local/share/callboard"));
    assert_eq!(row("SERVICE_POSTGRES_DSN").value, None);
    let json = serde_json::to_value(row("SERVICE_PORT")).unwrap();
    assert_eq!(json["source"], "environment");
    assert_eq!(json["pending"], serde_json::Value::Null);
}

#[test]
fn the_text_is_grouped_aligned_and_narrow() {
    let long = format!("[{}]", ["\"https://a-rather-long-name.example.com\""; 9].join(", "));
    let given = source(&[
        ("SERVICE_CORS_ALLOW_ORIGINS", &long),
        ("SERVICE_DATA_DIR", &format!("/{}", "§".repeat(200))),
        ("SERVICE_PORT", "9000"),
    ]);
    let text = render(&table(&given, &Config::load(&given).unwrap()));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.starts_with("Listening and HTTP\n\n  SERVICE_HOST "), "{text}");
    let columns: std::collections::BTreeSet<usize> = text
        .lines()
        .filter(|line| line.starts_with("  SERVICE_") || line.starts_with("  CHAT_"))
        .map(|line| line.find(" environment ").or_else(|| line.find(" default ")).unwrap())
        .collect();
    assert_eq!(columns.len(), 1, "{text}");
    for expected in ["Default: 8000.", "No effect yet: hosted apps come later.", "\nVault\n", "(not set)"] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    assert_eq!(text.matches('§').count(), 200, "the long path is whole: {text}");
}
