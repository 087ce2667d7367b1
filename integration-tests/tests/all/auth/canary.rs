//! Uses a secret of every kind at trace level, in the right place and in wrong ones, and searches for it where it must
//! not appear: in the log, in responses to others, in the database.

use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use client::Answer;
use integration_tests::{
    AnswerExt, CLIENT_SECRET, Echo, JSON, MailServer, Provider, Raw, events, graphs, within,
};
use kernel::{Random, SystemRandom};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use super::support::{seconds_from_now, sign};

/// A unique text with 32 characters.
fn canary(kind: &str) -> String {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).unwrap();
    format!("canary-{kind}-{}", URL_SAFE_NO_PAD.encode(random))
}

/// Sent and issued secrets, by kind.
#[derive(Default)]
struct Secrets(Vec<(String, String)>);

/// Sign-in codes. Six digits may appear in any log by chance; all of several codes do not.
#[derive(Default)]
struct Codes(Vec<String>);

impl Codes {
    fn are_all_in(&self, text: &str) -> bool {
        let is_present = |code: &String| {
            let digit = |around: Option<char>| around.is_some_and(|c| c.is_ascii_digit());
            let mut places = text.match_indices(code.as_str());
            places.any(|(at, _)| {
                let after = text[at + code.len()..].chars().next();
                !digit(text[..at].chars().next_back()) && !digit(after)
            })
        };
        self.0.iter().all(is_present)
    }
}

impl Secrets {
    fn add(&mut self, kind: &str, secret: &str) -> String {
        assert!(secret.len() >= 6, "{kind}: {secret}");
        self.0.push((kind.to_owned(), secret.to_owned()));
        secret.to_owned()
    }

    fn generate(&mut self, kind: &str) -> String {
        let secret = canary(kind);
        self.add(kind, &secret)
    }

    /// The kinds of secrets that a text contains, in any readable form.
    fn found_in(&self, text: &str) -> Vec<&str> {
        let is_present = |secret: &str| {
            let percent: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            let forms = [
                secret.to_owned(),
                percent,
                STANDARD.encode(secret).trim_end_matches('=').to_owned(),
                URL_SAFE_NO_PAD.encode(secret),
                secret.bytes().map(|byte| format!("{byte:02x}")).collect(),
            ];
            forms.iter().any(|form| text.contains(form.as_str()))
        };
        self.0.iter().filter(|(_, secret)| is_present(secret)).map(|(kind, _)| kind.as_str()).collect()
    }
}

struct Service {
    address: std::net::SocketAddr,
    seen: std::cell::RefCell<Vec<(String, String)>>,
}

impl Service {
    /// Sends a request; its response is checked at the end, unless it hands out a secret.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut all = vec![("connection", "close")];
        if !body.is_empty() {
            all.push(JSON);
        }
        all.extend_from_slice(headers);
        let answer = Raw::connect(self.address).await.request(method, path, &all, body).await.whole().await;
        let heads = format!("{:?}", answer.headers);
        self.seen.borrow_mut().push((format!("{method} {path}"), format!("{heads}\n{}", answer.text())));
        answer
    }

    async fn send_for_secret(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let answer = self.send(method, path, headers, &body.to_string()).await;
        assert!(answer.is_success(), "{path}: {}", answer.text());
        self.seen.borrow_mut().pop();
        answer
    }

    async fn bearer(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        self.send(method, path, &[("authorization", &format!("Bearer {token}"))], body).await
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

#[tokio::test]
async fn secrets_of_every_kind_never_leak() {
    let mut secrets = Secrets::default();
    let database = integration_tests::TestService::builder().start().await;
    let mail = MailServer::start().await;
    let echo = Echo::start().await;
    let bootstrap = secrets.generate("bootstrap");
    let jwt_secret = secrets.generate("jwt-secret");
    let chat_key = secrets.generate("chat-key");
    let vault_key = secrets.add("vault", &STANDARD.encode(&canary("vault")[..32]));
    let dsn_password = secrets.generate("dsn");
    let dsn = format!("{} password={dsn_password}", database.variables()["SERVICE_POSTGRES_DSN"]);
    let data = tempfile::tempdir().unwrap();
    let binary = std::env::var_os("CALLBOARD_BIN")
        .expect("CALLBOARD_BIN is not set: run `cargo xtask test`, which builds the binary");
    let mut command = Command::new(binary);
    command.arg("serve").current_dir(data.path()).kill_on_drop(true);
    for (name, value) in [
        ("SERVICE_PORT", "0"),
        ("SERVICE_LOG", "trace"),
        ("SERVICE_DATA_DIR", data.path().to_str().unwrap()),
        ("SERVICE_POSTGRES_DSN", &dsn),
        ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", &bootstrap),
        ("SERVICE_AUTH_JWT_SECRET", &jwt_secret),
        ("CHAT_TOKEN_SIGNING_KEY", &chat_key),
        ("SERVICE_VAULT_KEYS", &json!({"active": "a", "keys": {"a": vault_key}}).to_string()),
        ("SERVICE_EGRESS_ALLOW", &echo.allow()),
        ("SERVICE_MODEL_API_KEY", &secrets.generate("model")),
        ("SERVICE_MODEL_BASE_URL", "http://127.0.0.1:9/v1"),
        ("SERVICE_SMTP_URL", &mail.url()),
        ("SERVICE_PUBLIC_BASE_URL", "http://localhost:8000"),
        ("SERVICE_AUTH_RATE_LIMIT_IP", "0"),
    ] {
        command.env(name, value);
    }
    let provider = Provider::start().await;
    for (name, value) in provider.variables() {
        command.env(name, value);
    }
    let [_, (_, client_id), _] = provider.variables();
    let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let client_secret = secrets.add("client secret", CLIENT_SECRET);
    let basic = format!("{}:{}", encode(&client_id), encode(&client_secret));
    secrets.add("client credentials", &STANDARD.encode(basic));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut stderr = process.stderr.take().unwrap();
    let log = tokio::spawn(async move {
        let mut log = String::new();
        stderr.read_to_string(&mut log).await.unwrap();
        log
    });
    let mut stdout = BufReader::new(process.stdout.take().unwrap()).lines();
    let line = within("the service", stdout.next_line()).await.unwrap().unwrap_or_default();
    let address = line.strip_prefix("listening on http://").expect("the service to listen").parse().unwrap();
    let t = Service { address, seen: std::cell::RefCell::default() };
    let planted = format!("x{}x", STANDARD.encode(&bootstrap));
    assert_eq!(secrets.found_in(&planted), ["bootstrap"], "a planted secret is found");
    use_provider(&t, &mut secrets, &provider).await;
    use_vault(&t, &mut secrets, &bootstrap, &echo).await;
    use_every_secret(&t, &mut secrets, &bootstrap, &jwt_secret, &mail).await;
    let codes = use_codes(&t, &mail).await;
    assert!(codes.are_all_in(&format!("a {} b", codes.0.join(","))), "a planted secret is found");

    let pid = process.id().unwrap();
    assert!(std::process::Command::new("kill").arg(pid.to_string()).status().unwrap().success());
    within("the service to end", process.wait()).await.unwrap();
    let log = log.await.unwrap();
    assert!(log.contains("TRACE") && log.len() > 10_000, "the log is at trace level");
    assert_eq!(secrets.found_in(&log), [""; 0], "in the log");
    assert!(!codes.are_all_in(&log), "codes in the log");
    let answers: String = t.seen.borrow().iter().map(|(_, answer)| format!("{answer}\n")).collect();
    assert!(!codes.are_all_in(&answers), "codes in responses");
    for (request, answer) in t.seen.borrow().iter() {
        assert_eq!(secrets.found_in(answer), [""; 0], "in the response to {request}");
    }
    let tables =
        database.scalar("SELECT string_agg(tablename, ' ') FROM pg_tables WHERE schemaname = 'public'").await;
    for table in tables.split(' ') {
        let rows =
            database.scalar(&format!("SELECT coalesce(string_agg(t::text, ' '), '') FROM {table} t")).await;
        assert_eq!(secrets.found_in(&rows), [""; 0], "in table {table}");
        assert!(!codes.are_all_in(&rows), "codes in table {table}");
    }
}

/// Uses codes without their challenge, incorrectly, and then correctly.
async fn use_codes(t: &Service, mail: &MailServer) -> Codes {
    let mut codes = Codes::default();
    for number in 0..3 {
        let (email, before) = (format!("code{number}@example.org"), mail.mails().len());
        let started = t.send_for_secret("POST", "/api/auth/email/start", &[], &json!({"email": email})).await;
        let challenge = started.value()["challenge"].clone();
        let code = mail.mail(before + 1).await.code();
        for body in [
            json!({"email": email, "code": code}),
            json!({"challenge": "another", "email": email, "code": code}),
            json!({"challenge": challenge, "email": "other@example.org", "code": code}),
            json!({"challenge": challenge, "email": email, "code": code, "more": code}),
            json!({"challenge": challenge, "email": code, "code": [code]}),
        ] {
            assert!(!t.send("POST", "/api/auth/email/verify", &[], &body.to_string()).await.is_success());
        }
        let right = json!({"challenge": challenge, "email": email, "code": code});
        t.send_for_secret("POST", "/api/auth/email/verify", &[], &right).await;
        codes.0.push(code);
    }
    codes
}

/// Vault secrets go to a server that repeats them in every form: in a response, in an error, and in a retry.
async fn use_vault(t: &Service, secrets: &mut Secrets, bootstrap: &str, echo: &Echo) {
    let (first, second) = (secrets.generate("vault secret"), secrets.generate("second vault secret"));
    let root = |method, path: String, body: Value| async move {
        t.bearer(bootstrap, method, &path, &body.to_string()).await
    };
    let made = root("POST", "/api/credentials".into(), json!({"name": "key", "secret": first})).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let credential = format!("/api/credentials/{}", text(&made.value()["id"]));
    for bad in [json!({"name": first, "secret": first, "x": first}), json!({"name": "key", "secret": first})]
    {
        assert!(!root("POST", "/api/credentials".into(), bad).await.is_success());
    }
    let made = root("POST", "/api/workflows".into(), json!({"name": "Calls"})).await.value();
    let id = text(&made["id"]).to_owned();
    let call = |name: &str, path: &str, more: Value| {
        let mut node =
            json!({"name": name, "type": "http_request", "method": "POST", "on_error": "continue"});
        node["url"] = json!(echo.url(path));
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    };
    let basic = json!({"headers": {"Authorization": "Bearer [[key]]", "X-Basic": "u:[[key]]"}, "json": {"k": "[[key]]"}});
    let retry = json!({"body": "x[[key]]", "retry": {"max_attempts": 2, "initial_delay_seconds": 0}});
    let graph = graphs::chain(
        &[
            call("answer", "/answer/[[key]]?k=[[key]]", basic),
            call("refusal", "/fail", json!({"body": "[[key]] and [[key]]"})),
            call("again", "/once", retry),
            json!({"name": "hook", "type": "webhook_send", "url": echo.url("/fail/hook/[[key]]"), "secret": "[[key]]",
                   "json": "[[key]]"}),
            call("closed", "/", json!({"url": "http://127.0.0.1:9/[[key]]"})),
            json!({"name": "say", "type": "reply", "text": "{{ results }}"}),
        ],
        Some(json!("{{ results }}")),
    );
    root("POST", format!("/api/workflows/{id}/versions"), json!({"graph": graph})).await.expect(201);
    for secret in [&second, &first] {
        let ran = root("POST", format!("/api/workflows/{id}/runs?wait=20"), json!({})).await.value();
        assert_eq!(ran["status"], "succeeded", "{ran}");
        assert!(ran["output"]["again"]["json"]["raw"].as_str().unwrap().ends_with("x[redacted]"), "{ran}");
        let run = text(&ran["id"]);
        for path in
            [format!("/api/runs/{run}"), format!("/api/runs/{run}/trace"), format!("/api/runs/{run}/events")]
        {
            t.bearer(bootstrap, "GET", &path, "").await;
        }
        assert!(root("PATCH", credential.clone(), json!({"secret": secret})).await.is_success());
    }
    t.bearer(bootstrap, "GET", "/api/credentials", "").await;
    let sent = echo.requests().join("\n");
    assert!(sent.contains(&first) && sent.contains(&second), "the server received both secrets");
}

/// A complete OIDC sign-in, with all its secrets.
async fn use_provider(t: &Service, secrets: &mut Secrets, provider: &Provider) {
    let there = t.send("GET", "/api/auth/oidc/start", &[], "").await;
    t.seen.borrow_mut().pop();
    let cookie = there.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    secrets.add("provider cookie", cookie.split_once('=').unwrap().1);
    let way = provider.visit(there.header("location").unwrap()).await;
    for name in ["state", "nonce", "code_challenge"] {
        secrets.add(name, &way.asked(name));
    }
    secrets.add("authorization code", &way.brought("code"));
    t.send("GET", &way.back, &[], "").await;
    let back = t.send("GET", &way.back, &[("cookie", &cookie)], "").await.expect(303);
    t.seen.borrow_mut().pop();
    for cookie in back.headers.get_all("set-cookie") {
        let value = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap().1;
        if !value.is_empty() {
            secrets.add("session cookie of a provider's sign-in", value);
        }
    }
    t.send("GET", &way.back, &[("cookie", &cookie)], "").await;
    for (number, secret) in provider.secrets().into_iter().enumerate() {
        secrets.add(&format!("verifier or identity token {number}"), &secret);
    }
}

/// Uses every secret where it belongs and where it does not, and collects the secrets that appear meanwhile.
async fn use_every_secret(
    t: &Service,
    secrets: &mut Secrets,
    bootstrap: &str,
    jwt_secret: &str,
    mail: &MailServer,
) {
    let root = format!("Bearer {bootstrap}");
    let root = [("authorization", root.as_str()), ("idempotency-key", "a-key-of-the-canary-test")];
    let made =
        t.send_for_secret("POST", "/api/workflows", &root[..1], &json!({"name": "Desk"})).await.value();
    let id = text(&made["id"]).to_owned();
    let graph = json!({"graph": graphs::reply("hi")});
    t.send_for_secret("POST", &format!("/api/workflows/{id}/versions"), &root[..1], &graph).await;
    t.send_for_secret("POST", &format!("/api/workflows/{id}/publish"), &root[..1], &json!({})).await;

    let request = json!({"scopes": ["workflows:read", "chat:session"]});
    let issued = t.send_for_secret("POST", "/api/admin/service-tokens", &root, &request).await.value();
    let token = secrets.add("service token", text(&issued["secret"]));
    let path = format!("/api/admin/service-tokens/{}/rotate", text(&issued["id"]));
    let rotated = t.send_for_secret("POST", &path, &root[..1], &json!({"overlap_seconds": 60})).await.value();
    let rotated = secrets.add("rotated service token", text(&rotated["secret"]));
    let access = sign(
        &json!({"alg": "HS256"}),
        &json!({"sub": "me", "exp": seconds_from_now(600), "scope": "workflows:read"}),
        jwt_secret,
    );
    let access = secrets.add("access token", &access);
    let session = json!({"workflow_id": id});
    let bearer = format!("Bearer {token}");
    let session =
        t.send_for_secret("POST", "/api/chat/session", &[("authorization", &bearer)], &session).await.value();
    let session = secrets.add("chat session token", text(&session["client_secret"]));

    let chat = json!({"type": "threads.create", "workflow_id": id, "params": {"input": {"content": [{"type": "input_text", "text": "hi"}]}}});
    let chat = chat.to_string();
    let first = t.send_for_secret("POST", "/api/chat", &[], &serde_json::from_str(&chat).unwrap()).await;
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    secrets.add("visitor cookie", cookie.split_once('=').unwrap().1);
    assert!(!events(&first.text()).is_empty());
    assert_eq!(t.send("POST", "/api/chat", &[("cookie", &cookie)], &chat).await.status, 200);

    let email = "ann@example.org";
    let start = json!({"email": email});
    let started = t.send_for_secret("POST", "/api/auth/email/start", &[], &start).await;
    let challenge = secrets.add("challenge", text(&started.value()["challenge"]));
    let letter = mail.mail(1).await;
    let code = letter.code();
    if let Some(link) = letter.link() {
        secrets.add("magic link", link.rsplit('/').next().unwrap());
        t.send("GET", &format!("/api/auth/magic/{}", link.rsplit('/').next().unwrap()), &[], "").await;
    }
    let verify = json!({"challenge": challenge, "email": email, "code": code});
    let wrong = json!({"challenge": challenge, "email": email, "code": "000000"});
    t.send("POST", "/api/auth/email/verify", &[], &wrong.to_string()).await;
    let signed_in = t.send_for_secret("POST", "/api/auth/email/verify", &[], &verify).await;
    for cookie in signed_in.headers.get_all("set-cookie") {
        let value = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap().1.to_owned();
        if !value.is_empty() {
            secrets.add("session cookie", &value);
            let cookie = format!("__Host-svc_session={value}");
            assert_eq!(t.send("GET", "/api/auth/me", &[("cookie", &cookie)], "").await.status, 200);
        }
    }
    let signed_in = signed_in.value();
    let own_token = secrets.add("own access token", text(&signed_in["access_token"]));
    let refresh = secrets.add("refresh token", text(&signed_in["refresh_token"]));
    let renewed =
        t.send_for_secret("POST", "/api/auth/refresh", &[], &json!({"refresh_token": refresh})).await.value();
    secrets.add("second refresh token", text(&renewed["refresh_token"]));
    secrets.add("second own access token", text(&renewed["access_token"]));
    // The second use counts as another party's.
    t.send("POST", "/api/auth/refresh", &[], &json!({"refresh_token": refresh}).to_string()).await;

    // Every secret, everywhere a caller might put it.
    let all: Vec<String> = secrets.0.iter().map(|(_, secret)| secret.clone()).collect();
    for secret in all {
        let bearer = format!("Bearer {secret}");
        for (method, path) in [
            ("GET", "/api/workflows".to_owned()),
            ("POST", "/api/chat".to_owned()),
            ("GET", format!("/api/chat/streams/{id}")),
            ("GET", "/api/auth/me".to_owned()),
            ("POST", "/api/admin/service-tokens".to_owned()),
        ] {
            let body = if method == "POST" { chat.as_str() } else { "" };
            t.send(method, &path, &[("authorization", &bearer)], body).await;
        }
        let cookies =
            format!("__Host-svc_session={secret}; callboard_visitor={secret}; __Host-svc_chal={secret}");
        t.send("POST", "/api/chat", &[("cookie", &cookies)], &chat).await;
        let query: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        t.send("GET", &format!("/api/workflows?token={query}&access_token={query}&code={query}"), &[], "")
            .await;
        t.send("GET", &format!("/ws/workflow/{id}?token={query}"), &[], "").await;
        t.send("POST", "/api/auth/refresh", &[], &json!({"refresh_token": secret}).to_string()).await;
        let not_json = format!("{{\"refresh_token\": {secret}");
        t.send("POST", "/api/auth/refresh", &[], &not_json).await;
    }
    for good in [&rotated, &access, &own_token] {
        t.bearer(good, "GET", "/api/workflows", "").await;
    }
    t.bearer(&session, "POST", "/api/chat", &chat).await;
}
