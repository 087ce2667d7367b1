//! The output of `callboard config show`.

use super::source;
use crate::{Config, Look, Origin, render, table, table_of_problems};

#[test]
fn rows_carry_value_default_and_origin() {
    let input = source(&[("SERVICE_PORT", "9000"), ("SERVICE_DATABASE_POOL", "40")]);
    let config = Config::load(&input).unwrap();
    let rows = table(&input, &config);
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
    let input = source(&[
        ("SERVICE_CORS_ALLOW_ORIGINS", &long),
        ("SERVICE_DATA_DIR", &format!("/{}", "§".repeat(200))),
        ("SERVICE_PORT", "9000"),
    ]);
    let rows = table(&input, &Config::load(&input).unwrap());
    let text = render(&rows, Look::Plain);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.starts_with("Listening and HTTP\n\n  SERVICE_HOST "), "{text}");
    let columns: std::collections::BTreeSet<usize> = text
        .lines()
        .filter(|line| line.starts_with("  SERVICE_") || line.starts_with("  CHAT_"))
        .map(|line| line.find(" environment ").or_else(|| line.find(" default ")).unwrap())
        .collect();
    assert_eq!(columns.len(), 1, "{text}");
    for expected in ["Default: 8000.", "No effect yet: one instance only for now.", "\nVault\n", "(not set)"]
    {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    assert_eq!(text.matches('§').count(), 200, "the long path is whole: {text}");
    let bold = render(&rows, Look::Terminal);
    assert!(bold.starts_with("\x1b[1mListening and HTTP\x1b[0m\n"), "{bold}");
    assert_eq!(bold.replace("\x1b[1m", "").replace("\x1b[0m", ""), text);
    let lines = render(&rows, Look::Lines);
    let line = |name: &str| lines.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    assert!(line("SERVICE_CORS_ALLOW_ORIGINS ").ends_with(&format!(" environment  {long}")), "{lines}");
    assert_eq!(line("SERVICE_DATA_DIR ").matches('§').count(), 200);
}

#[test]
fn an_invalid_configuration_is_shown_with_its_problems() {
    let input =
        source(&[("SERVICE_PORT", "eighty"), ("SERVICE_HOST", "::1"), ("SERVICE_TLS_CERT", "/c.pem")]);
    let rows = table_of_problems(&input, &Config::load(&input).unwrap_err());
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(row("SERVICE_PORT").value.as_deref(), Some("\"eighty\""));
    assert_eq!(row("SERVICE_HOST").value.as_deref(), Some("::1"));
    let wrong = "is not set although SERVICE_TLS_CERT is; set both or neither";
    assert_eq!(row("SERVICE_TLS_KEY").problem.as_deref(), Some(wrong));
    let text = render(&rows, Look::Plain);
    let expected = "\n      Wrong: is not a whole number; write a whole number from 0 to 65535.\n      Port to listen on, ";
    assert!(text.contains(expected), "{text}");
    assert_eq!(text.matches("Wrong: ").count(), 2, "{text}");
}
