//! The rule for each variable.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{bad, good, refuses};
use crate::{Algorithm, AllowOrigins, AuthMode, Dialect, DisconnectGrace, Integrity, LogFormat, Signup};

#[test]
fn defaults_apply_without_variables() {
    let config = good(&[]);
    assert_eq!((config.http.host.as_str(), config.http.port), ("127.0.0.1", 8000));
    assert!(config.http.workers >= 1 && config.http.is_loopback() && !config.http.allow_insecure);
    assert_eq!(config.http.allow_origins, AllowOrigins::List(Vec::new()));
    assert_eq!(config.http.ws_max_message_bytes, 8 * 1024 * 1024);
    assert_eq!((config.database.pool, config.database.writers), (10, 2));
    assert_eq!(config.auth.mode, None);
    assert_eq!(config.auth.allowed_algorithms, [Algorithm::Rs256, Algorithm::Hs256]);
    assert_eq!(config.auth.failure_limit.per_address, NonZeroU32::new(100));
    assert_eq!(config.auth.failure_limit.per_identity, NonZeroU32::new(10));
    assert_eq!(config.auth.failure_limit.interval, Duration::from_secs(60));
    assert_eq!(config.auth.credential_configured(), None);
    assert_eq!(config.chat.token_ttl, Duration::from_secs(300));
    assert_eq!(config.chat.dialect, Dialect::Auto);
    assert_eq!(config.chat.disconnect_grace, DisconnectGrace::Auto);
    let limits = config.chat.rate_limit;
    assert_eq!(limits.per_address, NonZeroU32::new(120));
    assert_eq!(limits.per_workflow, NonZeroU32::new(600));
    assert_eq!(limits.per_session, NonZeroU32::new(60));
    assert_eq!(config.chat.upload_max_bytes.unwrap().get(), 5_242_880);
    assert_eq!(config.chat.cdn_base_url.as_str(), "https://cdn.platform.openai.com");
    assert_eq!(
        config.chat.cdn_base_url.join("/deployments/chatkit/chatkit.js"),
        "https://cdn.platform.openai.com/deployments/chatkit/chatkit.js"
    );
    assert_eq!(config.sign_in.signup, Signup::Open);
    assert_eq!((config.apps.domain.as_str(), config.apps.max_files), ("apps.localhost", 5000));
    assert_eq!(config.apps.runs_per_day, NonZeroU32::new(1000));
    assert_eq!((config.log.filter.as_str(), config.log.format), ("info", LogFormat::Text));
}

#[test]
fn hosts_and_ports_are_validated() {
    for (given, host, loopback) in [
        ("0.0.0.0", "0.0.0.0", false),
        ("[::1]", "::1", true),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", true),
        ("::", "::", false),
        ("127.8.8.8", "127.8.8.8", true),
        ("LocalHost", "localhost", true),
        ("db.internal", "db.internal", false),
    ] {
        let http = good(&[("SERVICE_HOST", given)]).http;
        assert_eq!((http.host.as_str(), http.is_loopback()), (host, loopback));
    }
    refuses("SERVICE_HOST", &["http://x", "127.0.0.1:80", "a b", "*", "under/score", "300.1.1.1"]);
    assert_eq!(good(&[("SERVICE_PORT", "0")]).http.port, 0);
    assert_eq!(good(&[("SERVICE_PORT", "65535")]).http.port, 65535);
    refuses("SERVICE_PORT", &["65536", "-1", "+1", "8000.0", "http", "99999999999999999999"]);
    refuses("SERVICE_HTTP_WORKERS", &["0", "257"]);
    refuses("SERVICE_DRAIN_NOTICE", &["-1", "61", "5s", "0.5"]);
    assert_eq!(good(&[("SERVICE_DRAIN_NOTICE", "60")]).http.drain_notice, Duration::from_secs(60));
    refuses("SERVICE_WS_MAX_MESSAGE_BYTES", &["0", "1023", "67108865", "8MiB"]);
}

#[test]
fn booleans_and_keywords_are_validated() {
    for (given, expected) in [("true", true), ("1", true), ("false", false), ("0", false)] {
        assert_eq!(good(&[("SERVICE_ALLOW_INSECURE", given)]).http.allow_insecure, expected);
    }
    refuses("SERVICE_ALLOW_INSECURE", &["yes", "TRUE", "2"]);
    for (given, mode) in
        [("disabled", AuthMode::Disabled), ("optional", AuthMode::Optional), ("required", AuthMode::Required)]
    {
        assert_eq!(good(&[("SERVICE_AUTH_MODE", given)]).auth.mode, Some(mode));
    }
    refuses("SERVICE_AUTH_MODE", &["on", "Required"]);
    good(&[("SERVICE_AUTH_SERVICE_TOKEN_BACKEND", "postgres")]);
    refuses("SERVICE_AUTH_SERVICE_TOKEN_BACKEND", &["sqlite", "redis"]);
    assert_eq!(good(&[("SERVICE_CHAT_DIALECT", "chatkit")]).chat.dialect, Dialect::Chatkit);
    refuses("SERVICE_CHAT_DIALECT", &["openai"]);
    assert_eq!(good(&[("SERVICE_LOG_FORMAT", "json")]).log.format, LogFormat::Json);
    refuses("SERVICE_LOG_FORMAT", &["xml"]);
    refuses("SERVICE_LOG", &["info\u{1b}[31m"]);
    refuses("SERVICE_SIGNUP", &["closed"]);
}

#[test]
fn the_public_base_url_is_validated() {
    for (given, expected) in [
        ("https://Service.Example.com/", "https://service.example.com"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://example.com:443/callboard//", "https://example.com/callboard"),
    ] {
        let base = good(&[("SERVICE_PUBLIC_BASE_URL", given)]).http.public_base_url.unwrap();
        assert_eq!(base.as_str(), expected);
        assert_eq!(base.join("chat/1"), format!("{expected}/chat/1"));
    }
    refuses(
        "SERVICE_PUBLIC_BASE_URL",
        &[
            "example.com",
            "ftp://example.com",
            "https://",
            "https://u@example.com",
            "https://example.com/?a=1",
            "https://example.com/#a",
            "https://example.com/a//b",
            "https://exa mple.com",
        ],
    );
    refuses("SERVICE_MODEL_BASE_URL", &["localhost:8080/v1"]);
    refuses("SERVICE_ANTHROPIC_BASE_URL", &["api.anthropic.com"]);
    refuses("SERVICE_GEMINI_BASE_URL", &["ftp://example.com"]);
    refuses("SERVICE_CHAT_CDN_BASE_URL", &["file:///etc"]);
    let digest = format!("sha384-{}", "A".repeat(64));
    assert_eq!(
        good(&[("SERVICE_CHAT_CDN_INTEGRITY", &digest)]).chat.cdn_integrity,
        Some(Integrity(vec![0; 48]))
    );
    refuses("SERVICE_CHAT_CDN_INTEGRITY", &["sha384-AAAA", "sha256-AAAA", &"A".repeat(64)]);
}

#[test]
fn origins_are_exact() {
    let origins = |text: &str| good(&[("SERVICE_CORS_ALLOW_ORIGINS", text)]).http.allow_origins;
    assert_eq!(origins(r#"["*"]"#), AllowOrigins::Any);
    assert_eq!(origins("[]"), AllowOrigins::List(Vec::new()));
    let two = vec!["https://a.example".to_owned(), "http://localhost:5173".to_owned()];
    assert_eq!(
        origins(r#"["https://a.example", "http://localhost:5173", "https://a.example"]"#),
        AllowOrigins::List(two)
    );
    refuses(
        "SERVICE_CORS_ALLOW_ORIGINS",
        &[
            "*",
            "https://a.example",
            "https://a.example,https://b.example",
            r#""https://a.example""#,
            r#"{"a": 1}"#,
            "[1]",
            "[null]",
            r#"["*", "https://a.example"]"#,
            r#"["https://*.example"]"#,
            r#"["null"]"#,
            r#"["https://a.example/"]"#,
            r#"["https://a.example/path"]"#,
            r#"["https://a.example?q"]"#,
            r#"["https://bücher.example"]"#,
            r#"["https://A.example"]"#,
            r#"["HTTPS://a.example"]"#,
            r#"["https://a.example:443"]"#,
            r#"["https://u:p@a.example"]"#,
            r#"[" https://a.example"]"#,
            r#"["a.example"]"#,
            r#"["ws://a.example"]"#,
            r#"[""]"#,
        ],
    );
    let slash = &bad(&[("SERVICE_CORS_ALLOW_ORIGINS", r#"["https://a.example/"]"#)])[0];
    assert_eq!(
        (slash.wrong.as_str(), slash.instead.as_str()),
        ("lists an origin with a trailing slash", "write https://a.example")
    );
}

#[test]
fn networks_hosts_and_domains_are_validated() {
    let proxies =
        good(&[("SERVICE_TRUSTED_PROXIES", r#"["10.1.2.3/8", "::1", "192.0.2.7"]"#)]).http.trusted_proxies;
    let texts: Vec<String> = proxies.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["10.0.0.0/8", "::1/128", "192.0.2.7/32"]);
    refuses("SERVICE_TRUSTED_PROXIES", &["10.0.0.0/8", r#"["10.0.0.0/33"]"#, r#"["proxy.example"]"#, "{}"]);
    let allow = good(&[("SERVICE_EGRESS_ALLOW", r#"["Intranet.Example:8080", "[::1]:1", "127.0.0.1:9"]"#)])
        .egress
        .allow;
    let texts: Vec<String> = allow.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["intranet.example:8080", "[::1]:1", "127.0.0.1:9"]);
    refuses(
        "SERVICE_EGRESS_ALLOW",
        &[r#"["a"]"#, r#"["a:0"]"#, r#"["a:70000"]"#, r#"["*:80"]"#, r#"["::1:80"]"#, "a:80"],
    );
    assert_eq!(good(&[("SERVICE_APPS_DOMAIN", "Apps.Example.com")]).apps.domain, "apps.example.com");
    refuses(
        "SERVICE_APPS_DOMAIN",
        &["https://apps.example", "apps.example:80", "*.apps.example", "127.0.0.1", "a..b"],
    );
}

#[test]
fn database_settings_are_validated() {
    let writers = |pool: &str| good(&[("SERVICE_DATABASE_POOL", pool)]).database.writers;
    assert_eq!((writers("2"), writers("7"), writers("8"), writers("500")), (1, 1, 2, 125));
    let config = good(&[("SERVICE_DATABASE_POOL", "4"), ("SERVICE_DATABASE_WRITERS", "3")]);
    assert_eq!(config.database.writers, 3);
    refuses("SERVICE_DATABASE_POOL", &["1", "501", "ten"]);
    refuses("SERVICE_DATABASE_WRITERS", &["0", "10", "500"]);
    for dsn in
        ["postgres://a@b/c", "postgresql://b/c?sslmode=require", "host=db user=x", "host = 'a b' password=x"]
    {
        assert!(good(&[("SERVICE_POSTGRES_DSN", dsn)]).database.dsn.is_some());
    }
    refuses(
        "SERVICE_POSTGRES_DSN",
        &["mysql://a", "db.example", "postgres://", "POSTGRES://a", "=x", "http://a?b=c"],
    );
    let kept = |days: &str| good(&[("SERVICE_RUN_RETENTION_DAYS", days)]).database.keep_runs;
    assert_eq!((kept("0"), kept("7")), (None, Some(chrono::TimeDelta::days(7))));
    assert_eq!(good(&[]).database.keep_runs, Some(chrono::TimeDelta::days(90)));
    refuses("SERVICE_RUN_RETENTION_DAYS", &["-1", "36501", "long"]);
    let may_keep = |bytes: &str| good(&[("SERVICE_WORKSPACE_STORAGE_BYTES", bytes)]).database.workspace_bytes;
    assert_eq!((may_keep("0"), may_keep("5000000000")), (None, Some(5_000_000_000)));
    refuses("SERVICE_WORKSPACE_STORAGE_BYTES", &["-1", "5 GiB", "99999999999999999999"]);
    refuses("SERVICE_DATA_DIR", &["~", "~/callboard", "a\nb"]);
    refuses("SERVICE_PG_BIN", &["~/pg"]);
}

#[test]
fn processes_for_code_are_bounded() {
    let sandbox =
        good(&[("SERVICE_SANDBOX_WORKERS", "7"), ("SERVICE_SANDBOX_MEMORY_BYTES", "16777216")]).sandbox;
    assert_eq!((sandbox.workers, sandbox.memory, sandbox.program), (7, 16_777_216, None));
    let sandbox = good(&[("SERVICE_SANDBOX_PROGRAM", "/opt/callboard")]).sandbox;
    assert!(sandbox.workers >= 2);
    assert_eq!((sandbox.memory, sandbox.program), (128 << 20, Some("/opt/callboard".into())));
    refuses("SERVICE_SANDBOX_WORKERS", &["0", "257", "many"]);
    refuses("SERVICE_SANDBOX_MEMORY_BYTES", &["0", "16777215", "2147483649", "128M"]);
    refuses("SERVICE_SANDBOX_PROGRAM", &["~/callboard"]);
}

#[test]
fn numbers_and_times_out_of_range_are_rejected() {
    assert_eq!(good(&[("CHAT_TOKEN_TTL_SECONDS", "3600")]).chat.token_ttl, Duration::from_secs(3600));
    refuses("CHAT_TOKEN_TTL_SECONDS", &["29", "3601", "300s", "300.5"]);
    let grace = |text: &str| {
        let grace = good(&[("SERVICE_CHAT_DISCONNECT_GRACE", text)]).chat.disconnect_grace;
        (grace.interface(), grace.chatkit())
    };
    let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
    assert_eq!((grace("0"), grace("45")), ((seconds(0), seconds(0)), (seconds(45), seconds(45))));
    assert_eq!((grace("forever"), grace("auto")), ((None, None), (None, seconds(30))));
    refuses("SERVICE_CHAT_DISCONNECT_GRACE", &["-1", "never", "86401"]);
    for name in [
        "SERVICE_AUTH_RATE_LIMIT_INTERVAL",
        "SERVICE_CHAT_RATE_LIMIT_INTERVAL",
        "SERVICE_AUTH_JWKS_CACHE_TTL",
    ] {
        refuses(name, &["0", "86401", "x"]);
    }
    let jwks = good(&[("SERVICE_AUTH_JWKS_TIMEOUT", "2.5")]).auth.jwks;
    assert_eq!(jwks.timeout, Duration::from_millis(2500));
    refuses("SERVICE_AUTH_JWKS_TIMEOUT", &["0", "60.5", "NaN", "inf", "-1", "1s"]);
    let off = good(&[
        ("SERVICE_AUTH_RATE_LIMIT_IP", "0"),
        ("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0"),
        ("SERVICE_CHAT_RATE_LIMIT_IP", "0"),
        ("SERVICE_CHAT_MAX_STREAMS", "0"),
        ("SERVICE_CHAT_UPLOAD_MAX_BYTES", "0"),
        ("SERVICE_CHAT_CDN_CACHE_TTL", "0"),
        ("SERVICE_APPS_RUNS_PER_DAY", "0"),
    ]);
    assert_eq!((off.auth.failure_limit.per_address, off.auth.failure_limit.per_identity), (None, None));
    assert_eq!((off.chat.rate_limit.per_address, off.chat.max_streams), (None, None));
    assert_eq!((off.chat.upload_max_bytes, off.apps.runs_per_day), (None, None));
    refuses("SERVICE_AUTH_RATE_LIMIT_IP", &["-1", "4294967296"]);
    refuses("SERVICE_CHAT_RATE_LIMIT_WORKFLOW", &["many"]);
    refuses("SERVICE_CHAT_UPLOAD_MAX_BYTES", &["1073741825", "5MB"]);
    refuses("SERVICE_APPS_MAX_COMPRESSED_BYTES", &["0", "104857601"]);
    refuses("SERVICE_APPS_MAX_EXPANDED_BYTES", &["0", "1073741825"]);
    refuses("SERVICE_APPS_MAX_FILES", &["0", "20001"]);
    refuses("SERVICE_APPS_MAX_FILE_BYTES", &["0", "26214401"]);
    refuses("SERVICE_APPS_MAX_DEPTH", &["0", "33"]);
}

#[test]
fn mail_and_sign_in_settings_are_validated() {
    let mail =
        good(&[("SERVICE_SMTP_URL", "smtps://mail:465"), ("SERVICE_MAIL_FROM", "Callboard <a@Example.com>")])
            .mail;
    assert_eq!(mail.from.as_deref(), Some("Callboard <a@example.com>"));
    refuses("SERVICE_SMTP_URL", &["mail:25", "http://mail", "smtp://", "mail"]);
    refuses("SERVICE_MAIL_FROM", &["nobody", "a@b\r\nBcc: c@d", "a@b@c", "Name <a>"]);
    assert_eq!(
        good(&[("SERVICE_OWNER_EMAIL", "a+b@x.example")]).sign_in.owner_email.as_deref(),
        Some("a+b@x.example")
    );
    refuses("SERVICE_OWNER_EMAIL", &["a", "@b", "a@", "a b@c"]);
    let oidc = [
        ("SERVICE_OIDC_ISSUER", "https://id.example/"),
        ("SERVICE_OIDC_CLIENT_ID", "c"),
        ("SERVICE_OIDC_CLIENT_SECRET", "s"),
    ];
    assert_eq!(good(&oidc).sign_in.oidc.unwrap().issuer, "https://id.example/");
    for missing in 0..3 {
        let given: Vec<_> = (0..3).filter(|index| *index != missing).map(|index| oidc[index]).collect();
        let problems = bad(&given);
        assert_eq!((problems.len(), problems[0].variable.as_str()), (1, oidc[missing].0));
    }
    for issuer in ["http://127.0.0.1:9000", "http://localhost/realms/x"] {
        good(&[("SERVICE_OIDC_ISSUER", issuer), oidc[1], oidc[2]]);
    }
    for issuer in [
        "http://id.example",
        "https://u:p@id.example",
        "https://id.example/#x",
        "https://id.example/?tenant=1",
        "id.example",
        "ldap://id.example",
    ] {
        let problems = bad(&[("SERVICE_OIDC_ISSUER", issuer), oidc[1], oidc[2]]);
        assert_eq!((problems.len(), problems[0].variable.as_str()), (1, oidc[0].0), "{issuer}");
    }
    let smtp = ("SERVICE_SMTP_URL", "smtps://mail:465");
    assert!(good(&[]).offers_mail_sign_in() && !good(&oidc).offers_mail_sign_in());
    assert!(good(&[oidc[0], oidc[1], oidc[2], smtp]).offers_mail_sign_in());
}

#[test]
fn paired_settings_are_required_together_and_urls_have_schemes() {
    let tls = good(&[("SERVICE_TLS_CERT", "/c.pem"), ("SERVICE_TLS_KEY", "/k.pem")]).http.tls.unwrap();
    assert_eq!(tls.key, std::path::Path::new("/k.pem"));
    assert_eq!(bad(&[("SERVICE_TLS_KEY", "/k.pem")])[0].variable, "SERVICE_TLS_CERT");
    good(&[("SERVICE_NATS_URL", "nats://a:4222,tls://b:4222")]);
    refuses("SERVICE_NATS_URL", &["a:4222", "http://a", "nats://a,b"]);
    refuses("SERVICE_API_URL", &["localhost:8000"]);
    refuses("SERVICE_SERVICE_TOKEN", &["a b"]);
    refuses("SERVICE_MODEL_API_KEY", &["a\nb"]);
    refuses("SERVICE_ANTHROPIC_API_KEY", &["a\nb"]);
    refuses("SERVICE_GEMINI_API_KEY", &["a\nb"]);
    let tape = [("SERVICE_MODEL_RECORD", "calls.jsonl"), ("SERVICE_MODEL_REPLAY", "calls.jsonl")];
    assert!(bad(&tape)[0].wrong.contains("SERVICE_MODEL_RECORD"));
    assert_eq!(good(&tape[..1]).model.tape, Some(crate::ModelTape::Record("calls.jsonl".into())));
    assert_eq!(good(&tape[1..]).model.tape, Some(crate::ModelTape::Replay("calls.jsonl".into())));
}

#[test]
fn log_filters_are_validated() {
    let filter = |text: &str| good(&[("SERVICE_LOG", text)]).log.filter;
    assert_eq!(filter("WARN"), "WARN");
    assert_eq!(filter(" info , store::batch=debug,"), "info,store::batch=debug");
    assert_eq!(filter("off,actors=3,[turn]=trace"), "off,actors=3,[turn]=trace");
    refuses(
        "SERVICE_LOG",
        &[
            "loud",
            "debu",
            "store",
            "info,store=lod",
            "a=b=c",
            "[",
            "=",
            "store=",
            "info store=debug",
            ",",
            "info;store=debug",
        ],
    );
}
