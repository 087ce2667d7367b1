//! Origins of values, and the warnings about them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::{bad, good, source};
use crate::{Config, Origin, Source, warnings};

#[test]
fn the_environment_overrides_the_file_and_origins_are_recorded() {
    let mut input = source(&[("SERVICE_PORT", "1"), ("SERVICE_LOG", "")]);
    input.add_env_text(
        "SERVICE_PORT=2\nSERVICE_HOST=::1\nSERVICE_LOG=debug\nexport SERVICE_LOG_FORMAT='json'\n# no\n",
    );
    assert_eq!(input.origin("SERVICE_PORT"), Origin::Environment);
    assert_eq!(input.origin("SERVICE_HOST"), Origin::EnvFile);
    assert_eq!(
        input.origin("SERVICE_LOG"),
        Origin::Default,
        "empty in the environment unsets the file's value"
    );
    assert_eq!(input.origin("SERVICE_DATA_DIR"), Origin::Default);
    let config = Config::load(&input).unwrap();
    assert_eq!((config.http.port, config.http.host.as_str()), (1, "::1"));
    assert_eq!(config.log.filter, "info");
    assert_eq!(config.log.format, crate::LogFormat::Json);
}

#[test]
fn an_invalid_line_is_named_by_number_and_never_repeated() {
    let mut input = source(&[]);
    input.add_env_text(
        "\u{feff}SERVICE_PORT=1\n\nSERVICE_AUTH_JWT_SECRET=two words of canary\nSERVICE_HOST=nowhere!\n",
    );
    let problems = Config::load(&input).unwrap_err();
    let text = problems.to_string();
    assert!(text.contains(".env: line 3 cannot be parsed; "), "{text}");
    assert!(text.contains("SERVICE_HOST (.env file): \"nowhere!\""), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn a_dollar_that_would_be_dropped_is_a_problem_and_its_value_is_not_repeated() {
    for value in ["pa$sword", "\"pa$sword\"", "pa${sword}", "password$", "$$", "\"a\nb$c\""] {
        let mut input = source(&[]);
        input.add_env_text(&format!("# it's a comment\nSERVICE_AUTH_JWT_SECRET={value}\n"));
        let text = Config::load(&input).unwrap_err().to_string();
        assert!(text.contains(".env: the value of SERVICE_AUTH_JWT_SECRET on line "), "{value}: {text}");
        assert!(text.contains("with single quotes") && !text.contains("sword"), "{value}: {text}");
    }
}

#[test]
fn dollars_in_single_quotes_escaped_ones_and_names_with_a_value_are_kept() {
    let secret = "a secret of at least thirty-two bytes";
    for (value, read) in [
        (format!("'pa$sword {secret}'"), format!("pa$sword {secret}")),
        (format!("\"pa\\$sword {secret}\""), format!("pa$sword {secret}")),
        (format!("\"${{OTHER}}{secret}\" # costs $5"), format!("x{secret}")),
        (format!("\"$OTHER {secret}\""), format!("x {secret}")),
    ] {
        let mut input = source(&[]);
        input.add_env_text(&format!("OTHER=x\nSERVICE_AUTH_JWT_SECRET={value}\nUNRELATED=$nothing\n"));
        assert_eq!(input.get("SERVICE_AUTH_JWT_SECRET"), Some(read.as_str()), "{value}");
        Config::load(&input).unwrap();
    }
}

#[test]
fn json_with_dropped_quotes_gets_advice_to_quote_it() {
    let mut input = source(&[]);
    input.add_env_text("SERVICE_CORS_ALLOW_ORIGINS=[\"https://a.example\"]\n");
    assert!(Config::load(&input).unwrap_err().to_string().contains("within single quotes"));
    let mut input = source(&[]);
    input.add_env_text("SERVICE_CORS_ALLOW_ORIGINS='[\"https://a.example\"]'\n");
    Config::load(&input).unwrap();
}

#[test]
fn a_value_that_is_not_utf8_is_a_problem_only_for_known_variables() {
    let mut input = source(&[]);
    let broken = || OsString::from_vec(vec![b'a', 0xff]);
    input.add_environment(
        [(OsString::from("SERVICE_LOG"), broken()), (OsString::from("OTHER"), broken())].into_iter(),
    );
    let problems = Config::load(&input).unwrap_err().0;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].variable, "SERVICE_LOG");
}

#[test]
fn empty_and_blank_mean_unset() {
    let config = good(&[("SERVICE_PORT", ""), ("SERVICE_AUTH_JWT_SECRET", ""), ("SERVICE_AUTH_MODE", "  ")]);
    assert_eq!(config.http.port, 8000);
    assert!(config.auth.jwt_secret.is_none() && config.auth.mode.is_none());
    assert_eq!(good(&[("SERVICE_PORT", " 8001 ")]).http.port, 8001);
}

#[test]
fn the_data_folder_depends_on_the_user() {
    let dir = |source: &Source| Config::load(source).unwrap().data.dir;
    assert_eq!(dir(&source(&[])), Path::new("/home/ada/.local/share/callboard"));
    assert_eq!(dir(&source(&[("XDG_DATA_HOME", "/data")])), Path::new("/data/callboard"));
    assert_eq!(dir(&source(&[("XDG_DATA_HOME", "data")])), Path::new("/home/ada/.local/share/callboard"));
    assert_eq!(dir(&source(&[]).with_root()), Path::new("/var/lib/callboard"));
    assert_eq!(dir(&source(&[("SERVICE_DATA_DIR", "/x")]).with_root()), Path::new("/x"));
    let homeless = Config::load(&Source::default()).unwrap_err().0;
    assert_eq!(
        homeless.iter().map(|problem| problem.variable.as_str()).collect::<Vec<_>>(),
        ["SERVICE_DATA_DIR"]
    );
}

#[test]
fn a_dozen_bad_values_are_a_dozen_problems_one_line_each() {
    let pairs = [
        ("SERVICE_PORT", "70000"),
        ("SERVICE_HOST", "http://x"),
        ("SERVICE_PUBLIC_BASE_URL", "example.com"),
        ("SERVICE_ALLOW_INSECURE", "maybe"),
        ("SERVICE_CORS_ALLOW_ORIGINS", "https://a.example"),
        ("SERVICE_TLS_CERT", "/cert.pem"),
        ("SERVICE_DATABASE_POOL", "1"),
        ("SERVICE_POSTGRES_DSN", "mysql://x"),
        ("SERVICE_AUTH_MODE", "strict"),
        ("SERVICE_AUTH_ALLOWED_ALGORITHMS", "none"),
        ("SERVICE_OIDC_CLIENT_ID", "half"),
        ("CHAT_TOKEN_TTL_SECONDS", "29"),
        ("SERVICE_VAULT_KEYS", "{}"),
        ("SERVICE_LOG", "loud"),
        ("SERVICE_LOG_FORMAT", "xml"),
    ];
    let problems = bad(&pairs);
    // The client id lacks both its issuer and its secret.
    assert_eq!(problems.len(), pairs.len() + 1, "{problems:#?}");
    let text = crate::Problems(problems).to_string();
    assert_eq!(text.lines().count(), pairs.len() + 1);
    assert!(text.starts_with("SERVICE_HOST: \"http://x\" is a URL, not a host; write an address"), "{text}");
    assert!(
        text.contains("SERVICE_PORT: \"70000\" is out of range; write a whole number from 0 to 65535\n"),
        "{text}"
    );
    assert!(
        text.contains("SERVICE_TLS_KEY: is not set although SERVICE_TLS_CERT is; set both or neither\n"),
        "{text}"
    );
}

#[test]
fn unknown_short_and_pending_variables_are_warned_about() {
    let input = source(&[
        ("SERVICE_PROT", "8000"),
        ("SERVICE_CHAT_RATELIMIT_IP", "1"),
        ("SERVICE_EMPTY", ""),
        ("VITE_SERVICE_CHAT_DOMAIN_KEY", "x"),
        ("SERVICE_AUTH_JWT_SECRET", "1234567890123456789012345678901"),
        ("CHAT_TOKEN_SIGNING_KEY", "12345678901234567890123456789012"),
        ("SERVICE_NATS_URL", "nats://127.0.0.1:4222"),
        ("SERVICE_PORT", "1"),
    ]);
    let warnings = warnings(&input, &Config::load(&input).unwrap());
    assert_eq!(
        warnings,
        [
            "SERVICE_CHAT_RATELIMIT_IP is not a known variable; the nearest one is SERVICE_CHAT_RATE_LIMIT_IP",
            "SERVICE_PROT is not a known variable; the nearest one is SERVICE_PORT",
            "SERVICE_AUTH_JWT_SECRET is shorter than 32 bytes, so signatures made with it can be guessed",
            "SERVICE_NATS_URL has no effect yet: one instance only for now",
        ]
    );
    let quiet = source(&[]);
    assert!(crate::warnings(&quiet, &Config::load(&quiet).unwrap()).is_empty());
}

#[test]
fn the_file_may_be_missing_but_not_unreadable() {
    let mut input = source(&[]);
    input.add_file(Path::new("no-such-file"));
    Config::load(&input).unwrap();
    // The tests run in the package's folder, where this is a folder.
    input.add_file(Path::new("src"));
    let text = Config::load(&input).unwrap_err().to_string();
    assert!(text.starts_with(".env: cannot be read ("), "{text}");
}
