//! `callboard login`, `logout` and `whoami`, and the renewal of sign-ins by other commands.

use std::os::unix::fs::{PermissionsExt, symlink};

use chrono::TimeDelta;
use integration_tests::{BOOTSTRAP, JSON, MailServer, TestService};
use kernel::{Clock, SystemClock};

use super::json_of;
use super::terminal::{CommandResult, Terminal};

const ADA: &str = "ada@example.org";
const FILE: &str = "config/callboard/config.toml";
const EARLIER: &str = "# mine\n[other]\napi_url = 'http://other.example' # kept\n\n";

/// Ada owns the service; programs need a token.
async fn service() -> (TestService, MailServer) {
    let mail = MailServer::start().await;
    let builder = TestService::builder().with_bootstrap_token();
    let builder = builder.set("SERVICE_SMTP_URL", mail.url()).set("SERVICE_OWNER_EMAIL", ADA);
    (builder.start().await, mail)
}

fn profile(terminal: &Terminal) -> String {
    std::fs::read_to_string(terminal.path(FILE)).unwrap()
}

/// A field of the profile table; only one table has it.
fn member(terminal: &Terminal, name: &str) -> Option<String> {
    let profile = profile(terminal);
    let value = profile.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")))?.to_owned();
    Some(value.trim_matches('"').to_owned())
}

/// A profile's tokens, which must never be printed.
fn secrets(terminal: &Terminal) -> [String; 2] {
    ["access_token", "refresh_token"].map(|name| member(terminal, name).unwrap())
}

fn assert_no_secrets(ran: &CommandResult, secrets: &[String]) {
    for secret in secrets {
        assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{}{}", ran.out, ran.err);
    }
}

/// Expires the access token, as far as this machine knows.
fn expire_access_token(terminal: &Terminal) {
    let end = member(terminal, "access_expires").unwrap();
    terminal.file(FILE, profile(terminal).replace(&end, "2026-01-01T00:00:00Z"));
}

/// Signs in with the next mail's code.
async fn sign_in(terminal: &Terminal, mail: &MailServer, more: &[&str]) -> CommandResult {
    let before = mail.mails().len();
    let arguments: Vec<&str> = ["login", ADA, "--code-stdin"].iter().chain(more).copied().collect();
    terminal.type_later(&arguments, async { mail.mail(before + 1).await.code() }).await
}

#[tokio::test]
async fn a_user_signs_in_is_identified_and_signs_out() {
    let (t, mail) = service().await;
    let terminal = Terminal::for_service(&t);
    let anonymous = terminal.run(&["whoami"]).await;
    assert_eq!((anonymous.status, anonymous.out.as_str()), (Some(3), ""));
    assert!(anonymous.err.starts_with("error: not signed in at http://"), "{}", anonymous.err);
    assert!(anonymous.err.contains("`callboard login`"), "{}", anonymous.err);

    terminal.file(FILE, EARLIER);
    let ran = sign_in(&terminal, &mail, &[]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert_eq!(ran.out, format!("Signed in at {} as {ADA}.\n", terminal.address()));
    assert!(ran.err.contains("an email with a code is on its way") && ran.err.contains(FILE), "{}", ran.err);
    let tokens = secrets(&terminal);
    assert_no_secrets(&ran, &tokens);
    let written = profile(&terminal);
    assert!(written.starts_with(EARLIER) && written.contains("[default]\napi_url = "), "{written}");
    let rights = std::fs::metadata(terminal.path(FILE)).unwrap().permissions().mode();
    assert_eq!(rights & 0o777, 0o600);

    let me = terminal.run(&["whoami"]).await;
    assert_eq!(
        me.out,
        format!(
            "{ADA}\nservice    {}\nfrom       sign-in of the profile [default]\n\
             workspace  default (owner) as an admin; also deletes the workspace\n",
            terminal.address()
        )
    );
    let json = terminal.run(&["whoami", "--output", "json"]).await;
    assert_eq!(json_of(&json.out)["identity"]["user"]["email"], ADA);
    assert_no_secrets(&json, &tokens);
    terminal.output_of(&["workflow", "create", "One"]).await;
    let everywhere = ["token", "create", "--scope", "workflows:read"];
    let refused = terminal.run(&everywhere).await;
    assert!(
        refused.status == Some(3) && refused.err.contains("choose the token's workspaces with --workspace"),
        "{}",
        refused.err
    );
    let made = terminal.output_of(&[&everywhere[..], &["--workspace", "default"]].concat()).await;
    assert!(made.starts_with("svc_"), "an owner creates tokens");
    // Nothing of it is sent to another service.
    let other_service = terminal.run(&["whoami", "--api-url", "http://127.0.0.1:1"]).await;
    assert_eq!(other_service.status, Some(3), "{}", other_service.err);

    // A new sign-in ends the previous one.
    let again = sign_in(&terminal, &mail, &["--output", "json"]).await;
    let report = json_of(&again.out);
    assert_eq!((&report["user"]["email"], &report["profile"]), (&ADA.into(), &"default".into()));
    assert_ne!(secrets(&terminal), tokens);
    assert_no_secrets(&again, &secrets(&terminal));
    let old = terminal.with_token(&tokens[0]).run(&["workflow", "list"]).await;
    assert_eq!(old.status, Some(3), "{}", old.err);
    assert_no_secrets(&old, &tokens);

    let last = secrets(&terminal);
    let out = terminal.output_of(&["logout"]).await;
    assert_eq!(out, format!("Signed out at {}.\n", terminal.address()));
    let left = profile(&terminal);
    assert!(left.starts_with(EARLIER) && !left.contains("_token") && left.contains("api_url = \"http"));
    assert_eq!(terminal.with_token(&last[0]).run(&["workflow", "list"]).await.status, Some(3));
    assert_eq!(terminal.run(&["workflow", "list"]).await.status, Some(3));
    assert_eq!(terminal.output_of(&["logout"]).await, "The profile [default] has no sign-in.\n");
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions WHERE revoked_at IS NULL").await, "0");
}

#[tokio::test]
async fn concurrent_commands_renew_a_sign_in_once() {
    let (t, mail) = service().await;
    let terminal = Terminal::for_service(&t);
    // A link to the file stays a link.
    terminal.file("real.toml", "");
    std::fs::create_dir_all(terminal.path("config/callboard")).unwrap();
    symlink(terminal.path("real.toml"), terminal.path(FILE)).unwrap();
    assert_eq!(sign_in(&terminal, &mail, &[]).await.status, Some(0));
    let first = secrets(&terminal);
    terminal.output_of(&["workflow", "list"]).await;
    assert_eq!(secrets(&terminal), first, "no renewal is needed yet");
    for _ in 0..2 {
        let before = secrets(&terminal);
        expire_access_token(&terminal);
        let whoami = ["whoami"];
        let many = futures_util::future::join_all((0..6).map(|_| terminal.run(&whoami))).await;
        for ran in many {
            assert_eq!(ran.status, Some(0), "{}", ran.err);
        }
        assert!(secrets(&terminal).iter().all(|token| !before.contains(token)));
    }
    assert!(std::fs::symlink_metadata(terminal.path(FILE)).unwrap().is_symlink());
    let rights = std::fs::metadata(terminal.path("real.toml")).unwrap().permissions().mode();
    assert_eq!(rights & 0o777, 0o600);

    // A token that was used elsewhere ends the sign-in, and the profile drops it.
    let stolen = secrets(&terminal);
    expire_access_token(&terminal);
    terminal.output_of(&["whoami"]).await;
    let ours = secrets(&terminal);
    let back = profile(&terminal).replace(&ours[1], &stolen[1]);
    terminal.file(FILE, back);
    expire_access_token(&terminal);
    let ended = terminal.run(&["workflow", "list"]).await;
    assert_eq!((ended.status, ended.out.as_str()), (Some(3), ""));
    assert!(ended.err.contains("(auth.refresh_invalid)") && ended.err.contains("`callboard login`"));
    assert_no_secrets(&ended, &stolen);
    assert!(!profile(&terminal).contains("_token"));
    assert_eq!(t.scalar("SELECT count(*) FROM audit_log WHERE action = 'auth.refresh_reused'").await, "1");
}

#[tokio::test]
async fn a_run_renews_its_token_when_it_expires() {
    let (t, mail) = service().await;
    let terminal = Terminal::for_service(&t);
    assert_eq!(sign_in(&terminal, &mail, &[]).await.status, Some(0));
    let graph = terminal.file("graph.json", super::slow_echo(1500));
    terminal.output_of(&["workflow", "upload", "slow", &graph, "--create"]).await;
    let before = secrets(&terminal);
    let end = member(&terminal, "access_expires").unwrap();
    let soon = SystemClock::new().now() + TimeDelta::seconds(302);
    terminal.file(FILE, profile(&terminal).replace(&end, &soon.to_rfc3339()));
    let ran = terminal.run(&["run", "slow", "--input", "message=hi"]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert!(secrets(&terminal).iter().all(|token| !before.contains(token)));
    terminal.output_of(&["whoami"]).await;
}

#[tokio::test]
async fn a_sign_in_that_cannot_be_stored_or_ended_stays_unchanged() {
    let (mut t, mail) = service().await;
    let terminal = Terminal::for_service(&t);
    assert_eq!(sign_in(&terminal, &mail, &[]).await.status, Some(0));
    let before = profile(&terminal);
    t.stop().await;
    for command in [["logout"].as_slice(), &["whoami"], &["login", ADA, "--code-stdin"]] {
        let ran = terminal.run(command).await;
        assert_eq!((ran.status, ran.out.as_str()), (Some(4), ""), "{command:?}: {}", ran.err);
        assert_eq!(profile(&terminal), before);
    }
    expire_access_token(&terminal);
    assert_eq!(terminal.run(&["workflow", "list"]).await.status, Some(4));
    expire_access_token(&terminal);
    t.start_again().await;
    // A folder in place of the lock: nothing can be written, so no mail is requested.
    let lock = terminal.path("config/callboard/config.toml.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let mails = mail.mails().len();
    for command in [["workflow", "list"].as_slice(), &["login", ADA, "--code-stdin"], &["logout"]] {
        let ran = terminal.run(command).await;
        assert_eq!(ran.status, Some(2), "{command:?}: {}", ran.err);
        assert!(ran.err.contains("config.toml cannot be written: "), "{}", ran.err);
    }
    assert_eq!(mail.mails().len(), mails);
    std::fs::remove_dir(&lock).unwrap();
    terminal.output_of(&["workflow", "list"]).await;
}

#[tokio::test]
async fn a_terminal_prompts_for_the_code_until_it_is_correct() {
    let (t, mail) = service().await;
    let terminal = Terminal::for_service(&t);
    let mut login = terminal.start_at_a_terminal("login");
    login.until("Email address: ").await;
    login.press(&format!("{ADA}\n")).await;
    login.until("Code: ").await;
    let code = mail.mail(1).await.code();
    login.press(if code == "000000" { "000001\n" } else { "000000\n" }).await;
    login.until("This is not the code").await;
    login.until("Code: ").await;
    login.press(&format!("{} {}\n", &code[..3], &code[3..])).await;
    login.until(&format!("Signed in at {} as {ADA}.", terminal.address())).await;
    assert_eq!(login.end().await.status, Some(0));
    // A typed token is not displayed.
    let mut login = terminal.with_token("").start_at_a_terminal("login --token --profile robot");
    login.until("Service token (hidden): ").await;
    login.press(&format!("{BOOTSTRAP}\n")).await;
    let ended = login.end().await;
    assert_eq!(ended.status, Some(0), "{}", ended.out);
    assert!(ended.out.contains(": bootstrap token.") && !ended.out.contains(BOOTSTRAP));
    terminal.output_of(&["token", "list", "--profile", "robot"]).await;
}

#[tokio::test]
async fn a_service_token_is_stored_and_removed() {
    let (t, mail) = service().await;
    let terminal = Terminal::for_service(&t);
    let made = t.root().make_token(&["workflows:read"], &["default"]).await;
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap().to_owned());
    let stored = terminal.type_in(&["login", "--token"], &format!("{secret}\n")).await;
    assert_eq!(stored.status, Some(0), "{}", stored.err);
    assert_eq!(stored.out, format!("Stored a token for {}: service token {id}.\n", terminal.address()));
    assert_no_secrets(&stored, std::slice::from_ref(&secret));
    assert_eq!(member(&terminal, "service_token").as_deref(), Some(secret.as_str()));
    terminal.output_of(&["workflow", "list"]).await;
    let me = terminal.output_of(&["whoami"]).await;
    assert!(
        me.contains("scopes     unknown: a token can read its own record only with admin:tokens:read"),
        "{me}"
    );
    let root = terminal.with_token(BOOTSTRAP);
    assert!(root.output_of(&["whoami"]).await.starts_with("bootstrap token\n"));
    let reader = t.root().token(&["admin:tokens:read"], &[]).await;
    let me = terminal.with_token(&reader).output_of(&["whoami"]).await;
    assert!(
        me.contains("\nfrom       SERVICE_SERVICE_TOKEN\nstatus     active\nscopes     admin:tokens:read\n")
    );

    // A profile with a token is reported before any mail.
    let refused_login = terminal.run(&["login", ADA, "--code-stdin"]).await;
    assert_eq!(refused_login.status, Some(2));
    assert!(refused_login.err.contains("the profile [default] has a service token"), "{}", refused_login.err);
    assert_eq!(mail.mails().len(), 0);
    assert_eq!(sign_in(&terminal, &mail, &["--profile", "ada"]).await.status, Some(0));
    assert!(terminal.output_of(&["whoami", "--profile", "ada"]).await.starts_with(ADA));

    let out = terminal.run(&["logout"]).await;
    assert_eq!(out.out, "Removed the service token from the profile [default].\n");
    assert!(out.err.contains(&format!("callboard token revoke {id} --reason")), "{}", out.err);
    assert!(!profile(&terminal).contains(&secret) && profile(&terminal).contains("refresh_token"));

    let wrong = secret.replace("svc_", "svc_0");
    let cases = [("", 2), ("two words", 2), (wrong.as_str(), 3), ("canary", 3)];
    for (text, status) in cases {
        let ran = terminal.type_in(&["login", "--token"], text).await;
        assert_eq!((ran.status, ran.out.as_str()), (Some(status), ""), "{text}: {}", ran.err);
        assert!(!ran.err.contains("words") && !ran.err.contains("canary"), "{}", ran.err);
    }
    assert!(member(&terminal, "service_token").is_none());
    t.root()
        .post(&format!("/api/admin/service-tokens/{id}/revoke"), &serde_json::json!({"reason": "x"}))
        .await;
    assert_eq!(terminal.with_token(&secret).run(&["whoami"]).await.status, Some(3));
}

#[tokio::test]
async fn invalid_arguments_are_rejected_before_any_request() {
    let terminal = Terminal::at("http://127.0.0.1:1");
    let cases: [(&[&str], &str); 5] = [
        (&["login", ADA], "--code-stdin` reads it"),
        (&["login"], "cannot prompt for the code"),
        (
            &["login", "--token", "--service-token", "canary"],
            "--service-token has no effect on `callboard login`",
        ),
        (&["logout", "--service-token", "canary"], "--service-token has no effect on `callboard logout`"),
        (&["login", "--code-stdin"], "<EMAIL>"),
    ];
    for (arguments, expected) in cases {
        let ran = terminal.run(arguments).await;
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(expected) && !ran.err.contains("canary"), "{arguments:?}: {}", ran.err);
    }
    terminal.file(FILE, "[default]\napi_url = \"http://other.example\"\n");
    let ran = terminal.run(&["login", ADA, "--code-stdin"]).await;
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("the profile [default] is for http://other.example"), "{}", ran.err);
    let (t, mail) = service().await;
    let terminal = Terminal::for_service(&t);
    let wrong = terminal.type_in(&["login", ADA, "--code-stdin", "--output", "json"], "12345\n").await;
    assert_eq!((wrong.status, wrong.out.as_str()), (Some(3), ""));
    let last = wrong.err.lines().last().unwrap();
    assert_eq!(json_of(last)["detail"]["code"], "auth.code_invalid");
    assert!(!terminal.path(FILE).exists());
    let none = terminal.run(&["login", ADA, "--code-stdin"]).await;
    assert!(none.status == Some(2) && none.err.contains("no code on standard input"), "{}", none.err);
    let odd = terminal.type_in(&["login", "nobody", "--code-stdin"], "123456\n").await;
    assert!(odd.status == Some(1) && odd.err.contains("\n  /email: "), "{}", odd.err);
    mail.mail(2).await;
}

/// A user of an OIDC provider has a signed-in browser; its page shows a code for the terminal.
#[tokio::test]
async fn a_signed_in_browser_signs_in_a_terminal() {
    let (t, mail) = service().await;
    let browser = crate::auth::support::browser(&t, &mail, ADA).await;
    let origin = browser.base().trim_end_matches('/').to_owned();
    let headers = [JSON, ("origin", origin.as_str())];
    let code = async || {
        let shown = browser.send("POST", "/api/auth/terminal", &headers, "{}").await.unwrap();
        json_of(&shown.text())["code"].as_str().unwrap().to_owned()
    };
    let terminal = Terminal::for_service(&t);
    let first = code().await;
    let ran = terminal.type_in(&["login", "--browser"], &format!("{first}\n")).await;
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert!(ran.out.ends_with(&format!("as {ADA}.\n")), "{}", ran.out);
    assert_no_secrets(&ran, std::slice::from_ref(&first));
    assert!(terminal.output_of(&["whoami"]).await.starts_with(ADA));
    assert_ne!(member(&terminal, "refresh_token").unwrap(), first, "the code is no longer valid");
    // A second use, garbage, and empty input.
    let other = Terminal::for_service(&t);
    for (input, status, message) in
        [("not-a-code\n", 3, "valid once, for 10 minutes"), ("", 2, "standard input is empty")]
    {
        let ran = other.type_in(&["login", "--browser"], input).await;
        assert_eq!(ran.status, Some(status), "{}", ran.err);
        assert!(ran.err.contains(message), "{}", ran.err);
    }
    let both = other.run(&["login", "--browser", ADA]).await;
    assert_eq!(both.status, Some(2), "{}", both.err);
}
