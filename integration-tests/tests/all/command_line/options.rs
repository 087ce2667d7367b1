//! The sources of the address and the token, and exit codes.

use integration_tests::{ReceivedRequest, TestService, within};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::terminal::{CommandResult, Terminal};

/// A listener that responds with an empty list and records its requests.
struct Listener {
    listener: TcpListener,
    base: String,
}

impl Listener {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        Self { listener, base }
    }

    /// The next request's bearer token, or an empty text.
    async fn bearer(&self) -> String {
        let (mut stream, _) = within("a request", self.listener.accept()).await.unwrap();
        let request = ReceivedRequest::read(&mut stream, &mut Vec::new()).await.unwrap();
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n[]";
        stream.write_all(answer.as_bytes()).await.unwrap();
        let bearer = request.header("authorization").and_then(|header| header.strip_prefix("Bearer "));
        bearer.unwrap_or_default().to_owned()
    }

    /// The bearer token that a command sends here.
    async fn bearer_sent_by(&self, command: impl Future<Output = CommandResult>) -> String {
        let (bearer, ran) = tokio::join!(self.bearer(), command);
        assert_eq!(ran.status, Some(0), "{}", ran.err);
        bearer
    }
}

#[tokio::test]
async fn flags_override_the_environment_which_overrides_the_profile() {
    let (flag, environment, default, other) =
        (Listener::new().await, Listener::new().await, Listener::new().await, Listener::new().await);
    let terminal = Terminal::at("");
    terminal.file(
        "config/callboard/config.toml",
        format!(
            "[default]\napi_url = \"{}\"\nservice_token = \"of-default\"\n\n[other]\napi_url = \"{}\"\n",
            default.base, other.base
        ),
    );
    // An empty variable counts as unset.
    assert_eq!(default.bearer_sent_by(terminal.run(&["workflow", "list"])).await, "of-default");
    assert_eq!(other.bearer_sent_by(terminal.run(&["workflow", "list", "--profile", "other"])).await, "");
    assert_eq!(other.bearer_sent_by(terminal.run(&["--profile", "other", "workflow", "list"])).await, "");
    let with = async |arguments: &[&str]| {
        let mut command = terminal.command(arguments);
        command.env("SERVICE_API_URL", &environment.base).env("SERVICE_SERVICE_TOKEN", "of-environment");
        let output = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandResult { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    };
    assert_eq!(environment.bearer_sent_by(with(&["workflow", "list"])).await, "of-environment");
    let named = ["workflow", "list", "--api-url", &flag.base, "--service-token", "of-flag"];
    assert_eq!(flag.bearer_sent_by(with(&named)).await, "of-flag");
    let outside = ["--api-url", &other.base, "workflow", "list", "--api-url", &flag.base];
    assert_eq!(
        flag.bearer_sent_by(with(&outside)).await,
        "of-environment",
        "an option after the command wins"
    );
    // The .env file in a command's working folder is ignored: it is for the service.
    terminal.file(".env", format!("SERVICE_API_URL={}\nSERVICE_SERVICE_TOKEN=of-file\n", other.base));
    let mut unset = terminal.command(&["workflow", "list"]);
    let (bearer, output) = tokio::join!(default.bearer(), unset.env_remove("SERVICE_API_URL").output());
    assert_eq!((bearer.as_str(), output.unwrap().status.code()), ("of-default", Some(0)));
}

#[tokio::test]
async fn an_invalid_profile_file_is_reported_in_one_line_without_secrets() {
    let terminal = Terminal::at("");
    let cases = [
        ("[default]\nservice_token = \"canary\n", "line 2: this is not TOML: "),
        (
            "\n[default]\ntoken = \"canary\"\n",
            "line 3: [default] has an unknown member `token`; use `api_url`, `service_token` or `workspace`",
        ),
        ("service_token = \"canary\"", "line 1: `service_token` must be in a table, such as [default]"),
    ];
    for (text, expected) in cases {
        terminal.file("config/callboard/config.toml", text);
        let ran = terminal.run(&["workflow", "list"]).await;
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
        assert!(
            ran.err.contains("/config/callboard/config.toml, ") && ran.err.contains(expected),
            "{}",
            ran.err
        );
        assert!(!ran.err.contains("canary") && ran.err.lines().count() == 1, "{}", ran.err);
    }
    terminal.file("config/callboard/config.toml", "[staging]\napi_url = \"http://a\"\n");
    let ran = terminal.run(&["workflow", "list", "--profile", "live"]).await;
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.err.ends_with("config.toml: profile `live` not found; existing profiles: `staging`\n"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn usage_errors_have_status_2() {
    let terminal = Terminal::at("http://127.0.0.1:1");
    let cases: [(&[&str], &str); 8] = [
        (&["workflow", "list", "--api-url", "localhost:8000"], "must begin with http"),
        (&["workflow", "list", "--service-token", "a\nb"], "the token cannot be sent as a header"),
        (
            &["--api-url", "http://a", "node", "list"],
            "--api-url has no effect: `callboard node` does not call a service",
        ),
        (&["--output", "json", "serve"], "--output has no effect on `callboard serve`"),
        (&["--json", "serve"], "--json has no effect on `callboard serve`"),
        (&["--json", "completions", "bash"], "--json has no effect on `callboard completions`"),
        (&["workflow", "upload", "x", "nothing.json"], "nothing.json cannot be read"),
        (&["chat", "x", " "], "there is no message to send"),
    ];
    for (arguments, expected) in cases {
        let ran = terminal.run(arguments).await;
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
    }
    for arguments in
        [["serve", "--api-url", "x"].as_slice(), &["workflow"], &["run"], &["chat", "a", "b", "c"]]
    {
        assert_eq!(terminal.run(arguments).await.status, Some(2), "{arguments:?}");
    }
    let wrong =
        terminal.command(&["workflow", "list"]).env("SERVICE_API_URL", "nowhere").output().await.unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().starts_with("error: SERVICE_API_URL: "));
}

#[tokio::test]
async fn an_unreachable_service_has_status_4() {
    let terminal = Terminal::at("http://127.0.0.1:1");
    for arguments in
        [["workflow", "list"].as_slice(), &["chat", "x", "hi"], &["run", "x"], &["workflow", "publish", "x"]]
    {
        let ran = terminal.run(arguments).await;
        assert_eq!((ran.status, ran.out.as_str()), (Some(4), ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: no response from http://127.0.0.1:1 ("), "{}", ran.err);
        assert!(ran.err.contains("`callboard serve`") && ran.err.contains("--api-url"), "{}", ran.err);
    }
    let ran = terminal.run(&["workflow", "list", "--output", "json"]).await;
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.status, error["detail"]["code"].as_str()), (Some(4), Some("client.unreachable")));
}

#[tokio::test]
async fn colours_are_used_at_terminals_and_on_request() {
    let t = TestService::start().await;
    let terminal = Terminal::for_service(&t);
    let error = async |variables: &[(&str, &str)]| {
        let mut command = terminal.command(&["workflow", "show", "nothing"]);
        let output = command.envs(variables.iter().copied()).output().await.unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&[]).await.starts_with("error: Workflow not found. (workflow.not_found)\n"));
    assert!(error(&[("CLICOLOR_FORCE", "1")]).await.starts_with("\u{1b}["));
    assert!(error(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).await.starts_with("error: "));
    let seen = terminal.start_at_a_terminal("workflow show nothing").end().await;
    assert!(seen.out.contains("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m"), "{:?}", seen.out);
}

/// A token stored for one service is not sent to another one.
#[tokio::test]
async fn a_stored_token_is_sent_to_its_own_service_only() {
    let (issuer, other) = (
        TestService::builder().with_bootstrap_token().start().await,
        TestService::builder().with_bootstrap_token().start().await,
    );
    let token = issuer.root().token(&["workflows:read"], &[]).await;
    let terminal = Terminal::for_service(&issuer);
    let profile =
        format!("[default]\napi_url = \"http://{}\"\nservice_token = \"{token}\"\n", issuer.address());
    terminal.file("config/callboard/config.toml", profile);
    assert_eq!(terminal.run(&["workflow", "list"]).await.status, Some(0));
    let there = format!("http://{}", other.address());
    let refused = terminal.run(&["workflow", "list", "--api-url", &there]).await;
    assert_eq!(refused.status, Some(3));
    assert!(refused.err.contains("(auth.missing_token)"), "the token was sent: {}", refused.err);
}
