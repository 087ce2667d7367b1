//! `variables.toml` and the code agree.

use std::collections::BTreeSet;

use crate::reader::VariableReader;
use crate::variables::{TEXT, groups};
use crate::{Config, Source, variables};

#[test]
fn the_variables_file_parses_and_has_every_name_once() {
    toml::from_str::<toml::Table>(TEXT).unwrap();
    let names: BTreeSet<&str> = variables().iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names.len(), variables().len());
    assert!(names.len() > 60, "the file was not read");
}

#[test]
fn described_variables_equal_the_variables_read() {
    let source = Source::default();
    let mut reader = VariableReader::new(&source);
    let _ = Config::read(&mut reader);
    let described: BTreeSet<&str> = variables().iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(*reader.names(), described);
}

#[test]
fn an_undescribed_variable_is_a_problem() {
    let source = Source::default();
    let mut reader = VariableReader::new(&source);
    assert!(reader.optional("SERVICE_FORGOTTEN", crate::parse::line).is_err());
    assert_eq!(reader.problems().len(), 1);
}

#[test]
fn every_variable_has_a_group_and_a_meaning_that_is_a_sentence() {
    for variable in variables() {
        assert!(groups().iter().any(|group| group.id == variable.group), "{}", variable.name);
        assert!(variable.meaning.ends_with('.'), "{}", variable.name);
        assert!(variable.default.is_none() || variable.computed_default.is_none(), "{}", variable.name);
        assert!(variable.default.as_deref() != Some(""), "{}", variable.name);
        assert!(!variable.secret || variable.default.is_none(), "{}", variable.name);
    }
}

/// `optional` would ignore a documented default, so writing out every default must change nothing.
#[test]
fn writing_out_every_default_changes_nothing() {
    let defaults: Vec<(&str, &str)> = variables()
        .iter()
        .filter_map(|variable| Some((variable.name.as_str(), variable.default.as_deref()?)))
        .collect();
    assert_eq!(format!("{:?}", super::good(&defaults)), format!("{:?}", super::good(&[])));
}

#[test]
fn active_variables_match_the_list() {
    let counts: BTreeSet<&str> = variables()
        .iter()
        .filter(|variable| variable.pending.is_none())
        .map(|variable| variable.name.as_str())
        .collect();
    let expected = [
        "CHAT_TOKEN_SIGNING_KEY",
        "CHAT_TOKEN_TTL_SECONDS",
        "SERVICE_ALLOW_INSECURE",
        "SERVICE_ANTHROPIC_API_KEY",
        "SERVICE_ANTHROPIC_BASE_URL",
        "SERVICE_API_URL",
        "SERVICE_APPS_ANONYMOUS_CONCURRENT",
        "SERVICE_APPS_ANONYMOUS_RUNS_PER_DAY",
        "SERVICE_APPS_ANONYMOUS_RUNS_PER_MINUTE",
        "SERVICE_APPS_ANONYMOUS_WRITES_PER_MINUTE",
        "SERVICE_APPS_RUNS_PER_DAY",
        "SERVICE_APPS_DOMAIN",
        "SERVICE_APPS_MAX_COMPRESSED_BYTES",
        "SERVICE_APPS_MAX_DEPTH",
        "SERVICE_APPS_MAX_EXPANDED_BYTES",
        "SERVICE_APPS_MAX_FILES",
        "SERVICE_APPS_MAX_FILE_BYTES",
        "SERVICE_AUTH_ALLOWED_ALGORITHMS",
        "SERVICE_AUTH_AUDIENCE",
        "SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN",
        "SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT",
        "SERVICE_AUTH_BOOTSTRAP_TOKEN_SCOPES",
        "SERVICE_AUTH_ISSUER",
        "SERVICE_AUTH_JWKS",
        "SERVICE_AUTH_JWKS_CACHE_TTL",
        "SERVICE_AUTH_JWKS_STATIC",
        "SERVICE_AUTH_JWKS_TIMEOUT",
        "SERVICE_AUTH_JWKS_URL",
        "SERVICE_AUTH_JWT_SECRET",
        "SERVICE_AUTH_MODE",
        "SERVICE_AUTH_RATE_LIMIT_IDENTITY",
        "SERVICE_AUTH_RATE_LIMIT_INTERVAL",
        "SERVICE_AUTH_RATE_LIMIT_IP",
        "SERVICE_AUTH_SERVICE_TOKEN_BACKEND",
        "SERVICE_CHAT_CDN_BASE_URL",
        "SERVICE_CHAT_CDN_CACHE_TTL",
        "SERVICE_CHAT_CDN_INTEGRITY",
        "SERVICE_CHAT_DIALECT",
        "SERVICE_CHAT_DISCONNECT_GRACE",
        "SERVICE_CHAT_DOMAIN_KEY",
        "SERVICE_CHAT_MAX_STREAMS",
        "SERVICE_CHAT_RATE_LIMIT_INTERVAL",
        "SERVICE_CHAT_RATE_LIMIT_IP",
        "SERVICE_CHAT_RATE_LIMIT_SESSION",
        "SERVICE_CHAT_RATE_LIMIT_WORKFLOW",
        "SERVICE_CHAT_UPLOAD_DAILY_BYTES",
        "SERVICE_CHAT_UPLOAD_MAX_BYTES",
        "SERVICE_CORS_ALLOW_ORIGINS",
        "SERVICE_DATABASE_POOL",
        "SERVICE_DATABASE_WRITERS",
        "SERVICE_DATA_DIR",
        "SERVICE_DRAIN_NOTICE",
        "SERVICE_EGRESS_ALLOW",
        "SERVICE_GEMINI_API_KEY",
        "SERVICE_GEMINI_BASE_URL",
        "SERVICE_HOST",
        "SERVICE_HTTP_WORKERS",
        "SERVICE_LOG",
        "SERVICE_LOG_FORMAT",
        "SERVICE_MAIL_FROM",
        "SERVICE_MODEL_API_KEY",
        "SERVICE_MODEL_BASE_URL",
        "SERVICE_MODEL_RECORD",
        "SERVICE_MODEL_REPLAY",
        "SERVICE_OIDC_CLIENT_ID",
        "SERVICE_OIDC_CLIENT_SECRET",
        "SERVICE_OIDC_ISSUER",
        "SERVICE_OWNER_EMAIL",
        "SERVICE_PG_BIN",
        "SERVICE_PORT",
        "SERVICE_POSTGRES_DSN",
        "SERVICE_PUBLIC_BASE_URL",
        "SERVICE_RUN_RETENTION_DAYS",
        "SERVICE_WORKSPACE_STORAGE_BYTES",
        "SERVICE_SANDBOX_MEMORY_BYTES",
        "SERVICE_SANDBOX_PROGRAM",
        "SERVICE_SANDBOX_WORKERS",
        "SERVICE_SERVICE_TOKEN",
        "SERVICE_SIGNUP",
        "SERVICE_SMTP_URL",
        "SERVICE_TLS_CERT",
        "SERVICE_TLS_KEY",
        "SERVICE_TRAINING_MAX_RUNS",
        "SERVICE_TRUSTED_PROXIES",
        "SERVICE_VAULT_KEYS",
        "SERVICE_WS_MAX_MESSAGE_BYTES",
    ];
    assert_eq!(counts, BTreeSet::from(expected));
}
