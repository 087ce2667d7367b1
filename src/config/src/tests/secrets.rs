//! No secret is ever printed.

use super::{bad, good, source};
use crate::{Config, Look, Problems, render, table, table_of_problems, variables};

const CANARY: &str = "canary7QxZ";
/// Base64 of 32 bytes that contains a recognisable canary.
const KEY: &str = "canary7QxZaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaQ=";

fn all_secrets() -> Vec<(&'static str, String)> {
    vec![
        ("SERVICE_POSTGRES_DSN", format!("postgres://u:{CANARY}@db/x")),
        ("SERVICE_AUTH_JWT_SECRET", CANARY.to_owned()),
        ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", CANARY.to_owned()),
        ("SERVICE_SMTP_URL", format!("smtp://u:{CANARY}@mail:25")),
        ("SERVICE_OIDC_CLIENT_SECRET", CANARY.to_owned()),
        ("CHAT_TOKEN_SIGNING_KEY", CANARY.to_owned()),
        ("SERVICE_VAULT_KEYS", format!(r#"{{"active":"a","keys":{{"a":"{KEY}"}}}}"#)),
        ("SERVICE_MODEL_API_KEY", CANARY.to_owned()),
        ("SERVICE_ANTHROPIC_API_KEY", CANARY.to_owned()),
        ("SERVICE_GEMINI_API_KEY", CANARY.to_owned()),
        ("SERVICE_NATS_URL", format!("nats://u:{CANARY}@nats:4222")),
        ("SERVICE_SERVICE_TOKEN", CANARY.to_owned()),
    ]
}

#[test]
fn every_secret_variable_has_a_test_value() {
    let covered: Vec<&str> = all_secrets().iter().map(|(name, _)| *name).collect();
    let known: Vec<&str> = variables().iter().filter(|v| v.secret).map(|v| v.name.as_str()).collect();
    assert_eq!(covered, known);
}

#[test]
fn valid_secrets_appear_in_no_text() {
    let secrets = all_secrets();
    let mut pairs: Vec<(&str, &str)> = secrets.iter().map(|(name, value)| (*name, value.as_str())).collect();
    pairs.extend([("SERVICE_OIDC_ISSUER", "https://id.example"), ("SERVICE_OIDC_CLIENT_ID", "callboard")]);
    let source = source(&pairs);
    let config = Config::load(&source).unwrap();
    let rows = table(&source, &config);
    let key = &config.vault.keys.as_ref().unwrap().keys["a"];
    let numbers = format!("{:?}", &key.expose()[..4]);
    for text in [
        format!("{config:?} {config:#?} {:?}", config.clone()),
        format!("{source:?}"),
        render(&rows, Look::Lines),
        serde_json::to_string(&rows).unwrap(),
        crate::warnings(&source, &config).join("\n"),
    ] {
        assert!(!text.contains(CANARY), "{text}");
        assert!(!text.contains(numbers.trim_matches(['[', ']'])), "{text}");
    }
    let masked = rows.iter().filter(|row| row.value.as_deref() == Some("********")).count();
    // The database address hides only its password.
    assert_eq!(masked, secrets.len() - 1);
    let dsn = rows.iter().find(|row| row.name == "SERVICE_POSTGRES_DSN").unwrap();
    assert_eq!(dsn.value.as_deref(), Some("postgres://u:********@db/x"));
}

#[test]
fn invalid_secrets_appear_in_no_problem() {
    let deep = format!(r#"{{"active":"{CANARY}","keys":{{"{CANARY}longer-than-twenty-letters":"x"}}}}"#);
    let short = format!(r#"{{"active":"a","keys":{{"a":"{CANARY}"}}}}"#);
    let extra = format!(r#"{{"active":"a","keys":{{"a":"{KEY}"}},"{CANARY}":1}}"#);
    let private = format!(r#"{{"keys":[{{"kty":"RSA","n":"x","d":"{CANARY}"}}]}}"#);
    let broken = format!(r#"{{"keys":[{{"d":"{CANARY}""#);
    let user = format!("https://u:{CANARY}@host/");
    let plain = format!("mysql://u:{CANARY}@db");
    let blank = format!("{CANARY} {CANARY}");
    let origin = format!(r#"["https://u:{CANARY}@host"]"#);
    let pairs_dsn = format!("host=db password={CANARY}");
    let spaced_dsn = format!("host = db password = '{CANARY}'");
    let split_dsn = format!("host=db password=two {CANARY}=words");
    for (name, value) in [
        ("SERVICE_VAULT_KEYS", short.as_str()),
        ("SERVICE_VAULT_KEYS", &extra),
        ("SERVICE_VAULT_KEYS", CANARY),
        ("SERVICE_AUTH_JWKS", &private),
        ("SERVICE_AUTH_JWKS_STATIC", &broken),
        ("SERVICE_PUBLIC_BASE_URL", &user),
        ("SERVICE_PUBLIC_BASE_URL", &plain),
        ("SERVICE_PORT", &pairs_dsn),
        ("SERVICE_DATA_DIR", &user),
        ("SERVICE_POSTGRES_DSN", &plain),
        ("SERVICE_POSTGRES_DSN", CANARY),
        ("SERVICE_POSTGRES_DSN", &split_dsn),
        ("SERVICE_PORT", &spaced_dsn),
        ("SERVICE_SMTP_URL", &user),
        ("SERVICE_NATS_URL", &user),
        ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", &blank),
        ("SERVICE_MODEL_API_KEY", &blank),
        ("SERVICE_CORS_ALLOW_ORIGINS", &origin),
    ] {
        let problems = Problems(bad(&[(name, value)]));
        let text = format!("{problems} {problems:?}");
        assert!(!text.contains(CANARY) && text.contains("********"), "{text}");
        let shown = render(&table_of_problems(&source(&[(name, value)]), &problems), Look::Lines);
        assert!(!shown.contains(CANARY) && shown.contains("Wrong: "), "{shown}");
    }
    // An id is named if it is too short to be a key.
    let text = Problems(bad(&[("SERVICE_VAULT_KEYS", &deep)])).to_string();
    assert!(!text.contains("longer-than-twenty"), "{text}");
}

#[test]
fn a_key_keeps_every_byte() {
    use secrecy::ExposeSecret;
    let config = good(&[("SERVICE_AUTH_JWT_SECRET", "  spaces count \n")]);
    assert_eq!(config.auth.jwt_secret.unwrap().expose_secret(), "  spaces count \n");
}
