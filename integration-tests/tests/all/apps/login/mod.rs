//! Sign-in to hosted apps, over two hosts.

mod chromium;
mod crash;
mod flow;
mod members;
mod races;
mod refusals;
mod sessions;

use std::sync::{Arc, Mutex};

use client::Answer;
use integration_tests::{AnswerExt, JSON, MailServer, TestService};
use serde_json::{Value, json};

/// The central host's origin, as browsers see it.
const CENTRAL: &str = "http://localhost:8000";
/// The app's origin.
const NOTES: &str = "http://notes.apps.localhost:8000";
/// The origin of another app in the workspace.
const OTHER: &str = "http://other.apps.localhost:8000";
/// The cookie of an app session.
const COOKIE: &str = "__Host-svc_app";
/// The cookie that binds the latest sign-in to a browser.
const LATEST: &str = "__Host-svc_login";
/// The name prefix of the cookies that bind each sign-in.
const LOGIN: &str = "__Host-svc_login_";
const SESSION: &str = "__Host-svc_session";
const ADA: &str = "ada@example.org";

/// A service that requires authentication, with a test mail server and two apps in `default`.
async fn service() -> (TestService, MailServer) {
    service_with(&[]).await
}

async fn service_with(variables: &[(&str, &str)]) -> (TestService, MailServer) {
    let mail = MailServer::start().await;
    let t = TestService::builder()
        .manual_clock()
        .with_bootstrap_token()
        .set("SERVICE_SMTP_URL", mail.url())
        .set("SERVICE_OWNER_EMAIL", ADA)
        .set("SERVICE_PUBLIC_BASE_URL", CENTRAL)
        .set_all(variables.iter().copied())
        .start()
        .await;
    publish(&t, "notes", "members").await;
    publish(&t, "other", "public").await;
    (t, mail)
}

/// Inserts an app with a release into `default`, as rows.
async fn publish(t: &TestService, alias: &str, access: &str) {
    let sql = format!(
        "WITH release AS (INSERT INTO app_releases (id, app_id, workspace_id, number, deployment_id, permission_revision, permissions,
                 bindings, collections, spa, frame_ancestors, wasm, created_at)
             SELECT gen_random_uuid(), gen_random_uuid(), id, 1, gen_random_uuid(), 'r', '{{\"bindings\":{{}},\"collections\":{{}},\"frame_ancestors\":[],\"wasm\":false}}', '{{}}', '{{}}', false, '[]', false, now()
             FROM workspaces WHERE slug = 'default' RETURNING id, app_id, workspace_id)
         INSERT INTO apps (id, workspace_id, alias, holds_alias, name, access, created_at, updated_at, active_release)
         SELECT app_id, workspace_id, '{alias}', true, 'The {alias}', '{access}', now(), now(), id FROM release"
    );
    t.execute(&sql).await;
}

/// A browser: a cookie jar for each host, and the headers of navigations and pages.
#[derive(Clone)]
struct Browser<'a> {
    t: &'a TestService,
    /// Host, name and value of each cookie, oldest first, as browsers send them.
    jar: Arc<Mutex<Vec<(String, String, String)>>>,
}

impl<'a> Browser<'a> {
    fn new(t: &'a TestService) -> Self {
        Self { t, jar: Arc::default() }
    }

    fn cookie(&self, origin: &str, name: &str) -> Option<String> {
        let (of, jar) = (host(origin), self.jar.lock().unwrap());
        jar.iter().find(|(host, known, _)| *host == of && known == name).map(|(_, _, value)| value.clone())
    }

    /// The cookies of the sign-ins that the browser has begun.
    fn logins(&self, origin: &str) -> Vec<(String, String)> {
        let jar = self.jar.lock().unwrap();
        let of_host = jar.iter().filter(|(of, name, _)| *of == host(origin) && name.starts_with(LOGIN));
        of_host.map(|(_, name, value)| (name.clone(), value.clone())).collect()
    }

    fn set_cookie(&self, origin: &str, name: &str, value: &str) {
        let (of, mut jar) = (host(origin), self.jar.lock().unwrap());
        match jar.iter_mut().find(|(host, known, _)| *host == of && known == name) {
            Some(known) => value.clone_into(&mut known.2),
            None => jar.push((of, name.to_owned(), value.to_owned())),
        }
    }

    fn forget(&self, origin: &str, name: &str) {
        let of = host(origin);
        self.jar.lock().unwrap().retain(|(host, known, _)| *host != of || known != name);
    }

    async fn send(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let (origin, path) = parts(url);
        let (host, authority) = (host(url), origin.split_once("://").unwrap().1.to_owned());
        let cookies: Vec<String> = self
            .jar
            .lock()
            .unwrap()
            .iter()
            .filter(|(of, _, _)| *of == host)
            .map(|(_, name, value)| format!("{name}={value}"))
            .collect();
        let cookies = cookies.join("; ");
        let mut all = vec![("host", authority.as_str())];
        if !cookies.is_empty() {
            all.push(("cookie", cookies.as_str()));
        }
        all.extend_from_slice(headers);
        let answer = self.t.open(method, path, &all, body).await.whole().await;
        for set in answer.headers.get_all("set-cookie") {
            let set = set.to_str().unwrap();
            assert!(
                ["Path=/", "HttpOnly", "Secure", "SameSite=Lax"].iter().all(|part| set.contains(part))
                    && !set.contains("Domain="),
                "{set}"
            );
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            match set.contains("Max-Age=0") {
                true => self.forget(&origin, name),
                false => self.set_cookie(&origin, name, value),
            }
        }
        answer
    }

    /// Opens a URL like a link does.
    async fn open(&self, url: &str) -> Answer {
        let headers =
            [("accept", "text/html"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        self.send("GET", url, &headers, "").await
    }

    /// Opens a URL, and follows redirects to the final page.
    async fn follow(&self, url: &str) -> (String, Answer) {
        let mut at = url.to_owned();
        for _ in 0..10 {
            let answer = self.open(&at).await;
            let Some(to) = location(&at, &answer) else { return (at, answer) };
            at = to;
        }
        panic!("too many redirects from {url}");
    }

    /// Sends JSON like a page on the central host.
    async fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [JSON, ("origin", CENTRAL)];
        self.send("POST", &format!("{CENTRAL}{path}"), &headers, &body.to_string()).await
    }

    /// Signs in on the central host.
    async fn sign_in(&self, mail: &MailServer, email: &str) {
        let before = mail.mails().len();
        self.post("/api/auth/email/start", &json!({"email": email})).await.expect(202);
        let code = mail.mail(before + 1).await.code();
        self.post("/api/auth/email/verify", &json!({"email": email, "code": code})).await.expect(200);
    }

    /// Begins a sign-in to an app, and returns the URL on the central host.
    async fn begin(&self, origin: &str) -> String {
        let url = format!("{origin}/__service/auth/login");
        let answer = self.open(&url).await;
        location(&url, &answer).unwrap_or_else(|| panic!("{} {}", answer.status, answer.text()))
    }

    /// The callback's URL of a new sign-in to an app that needs no consent.
    async fn callback(&self, origin: &str) -> String {
        location(origin, &self.open(&self.begin(origin).await).await).unwrap()
    }

    /// Consents on the page at this URL, and returns the callback's URL.
    async fn consent(&self, authorize: &str) -> String {
        let form = authorize.split_once('?').unwrap().1;
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", CENTRAL)];
        let url = format!("{CENTRAL}/authorize/approve");
        let answer = self.send("POST", &url, &headers, form).await;
        location(&url, &answer).unwrap_or_else(|| panic!("{} {}", answer.status, answer.text()))
    }

    /// Signs in to an app, after the sign-in on the central host.
    async fn enter(&self, origin: &str) {
        let callback = self.consent(&self.begin(origin).await).await;
        let answer = self.open(&callback).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
    }

    /// The session data that the app's pages receive.
    async fn session(&self, origin: &str) -> Value {
        let answer = self.send("GET", &format!("{origin}/__service/auth/session"), &[], "").await.expect(200);
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// Requests a file that a members-only app serves to members only.
    async fn types(&self, origin: &str) -> Answer {
        self.send("GET", &format!("{origin}/__service/client.d.ts"), &[], "").await
    }

    async fn is_signed_in(&self, origin: &str) -> bool {
        self.session(origin).await["authenticated"] == true
    }
}

/// Ada, signed in on the central host and in the app.
async fn ada<'a>(t: &'a TestService, mail: &MailServer) -> Browser<'a> {
    let browser = Browser::new(t);
    browser.sign_in(mail, ADA).await;
    browser.enter(NOTES).await;
    assert!(browser.is_signed_in(NOTES).await);
    browser
}

fn parts(url: &str) -> (String, &str) {
    let (scheme, rest) = url.split_once("://").unwrap();
    let at = rest.find('/').unwrap_or(rest.len());
    (format!("{scheme}://{}", &rest[..at]), if at == rest.len() { "/" } else { &rest[at..] })
}

fn host(url: &str) -> String {
    parts(url).0.split_once("://").unwrap().1.split(':').next().unwrap().to_owned()
}

/// The target of a redirect.
fn location(from: &str, answer: &Answer) -> Option<String> {
    let to = (answer.status == 303).then(|| answer.header("location").unwrap())?;
    Some(url::Url::parse(from).unwrap().join(to).unwrap().to_string())
}

/// A query parameter.
fn parameter(url: &str, name: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    let found = url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
    found.unwrap_or_else(|| panic!("{url} has no {name}"))
}

/// The URL with a parameter replaced or removed.
fn with(url: &str, name: &str, value: Option<&str>) -> String {
    let mut changed = url::Url::parse(url).unwrap();
    let pairs: Vec<(String, String)> =
        changed.query_pairs().into_owned().filter(|(known, _)| known != name).collect();
    let mut query = changed.query_pairs_mut();
    query.clear().extend_pairs(pairs);
    if let Some(value) = value {
        query.append_pair(name, value);
    }
    drop(query);
    changed.to_string()
}

/// The cookie that binds the sign-in of a callback or of an authorization request.
fn login_cookie_name(url: &str) -> String {
    format!("{LOGIN}{}", &super::sha256(parameter(url, "state").as_bytes())[..16])
}

async fn count(t: &TestService, sessions: &str) -> String {
    t.scalar(&format!("SELECT count(*) FROM app_sessions WHERE {sessions}")).await
}

/// The id of a member in `default`.
async fn user(t: &TestService, email: &str) -> String {
    t.scalar(&format!("SELECT id FROM users WHERE email = '{email}'")).await
}
