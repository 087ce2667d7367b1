//! An OpenID provider: strict with its clients, and as faulty as the test demands.

mod key;
mod tokens;
mod web;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use url::Url;

use crate::{Raw, TcpServer};
use web::Request;

/// The signature of the identity token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Signing {
    /// A correct signature.
    #[default]
    Rs256,
    /// `alg: none` without a signature.
    Nothing,
    /// HS256 with the client's secret.
    ClientSecret,
    /// RS256 with one bit changed.
    Broken,
}

/// The provider's deviations from correct behaviour.
#[derive(Debug, Clone)]
pub struct Knobs {
    /// Changed members of the provider's metadata; `null` removes one.
    pub metadata: Value,
    /// Changed members of the token's header.
    pub header: Value,
    /// Changed claims of the token; `null` removes one.
    pub claims: Value,
    /// The userinfo endpoint's response.
    pub userinfo: Value,
    /// The token's signature.
    pub signing: Signing,
    /// Changed parameters of the browser's redirect back; an empty one is removed.
    pub back: Vec<(&'static str, String)>,
    /// Replacement responses by path.
    pub answers: HashMap<&'static str, (u16, String)>,
    /// A path without any response.
    pub silent: Option<&'static str>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            metadata: json!({}),
            header: json!({}),
            claims: json!({}),
            userinfo: json!({"sub": "ada-1", "email": "ada@example.org", "email_verified": true}),
            signing: Signing::default(),
            back: Vec::new(),
            answers: HashMap::new(),
            silent: None,
        }
    }
}

/// A browser's way to the provider and back, seen through its URLs.
#[derive(Debug, Clone)]
pub struct Way {
    /// The URL that the service redirected to.
    pub there: Url,
    /// The path and query that the provider redirected back to.
    pub back: String,
}

impl Way {
    /// A parameter of the redirect to the provider.
    ///
    /// # Panics
    /// When it is missing.
    #[must_use]
    pub fn asked(&self, name: &str) -> String {
        let found = self.there.query_pairs().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name} in {}", self.there)).1.into_owned()
    }

    /// A parameter of the redirect back.
    ///
    /// # Panics
    /// When it is missing.
    #[must_use]
    pub fn brought(&self, name: &str) -> String {
        let query = self.back.split_once('?').expect("a query").1;
        let found = url::form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name} in {}", self.back)).1.into_owned()
    }
}

struct Code {
    nonce: String,
    challenge: String,
    redirect_uri: String,
}

#[derive(Default)]
struct ProviderState {
    knobs: Knobs,
    codes: HashMap<String, Code>,
    made: usize,
    asked: Vec<String>,
    /// Identity tokens and PKCE verifiers.
    secrets: Vec<String>,
}

/// A provider on a free port.
pub struct Provider {
    /// The listening side.
    pub server: TcpServer,
    kept: Arc<Mutex<ProviderState>>,
}

/// The service's client id. Its colon must be encoded when the secret follows it.
const CLIENT_ID: &str = "desk:1";
const ACCESS_TOKEN: &str = "canary-provider-access-token";
/// The service's client secret.
pub const CLIENT_SECRET: &str = "canary-client-secret +/%&";

impl Provider {
    /// Starts a provider. Its user is Ada, with a verified address.
    ///
    /// # Panics
    /// Without a free port.
    pub async fn start() -> Self {
        let kept = Arc::<Mutex<ProviderState>>::default();
        let state = Arc::clone(&kept);
        let serve = move |stream: TcpStream| {
            let issuer = format!("http://{}", stream.local_addr().expect("its address"));
            let kept = Arc::clone(&state);
            web::serve(stream, move |request| answer(&kept, &issuer, request))
        };
        Self { server: TcpServer::start(serve).await, kept }
    }

    /// The value for `SERVICE_OIDC_ISSUER`.
    #[must_use]
    pub fn issuer(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The three variables for a service that signs in here.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("SERVICE_OIDC_ISSUER", self.issuer()),
            ("SERVICE_OIDC_CLIENT_ID", CLIENT_ID.to_owned()),
            ("SERVICE_OIDC_CLIENT_SECRET", CLIENT_SECRET.to_owned()),
        ]
    }

    fn kept(&self) -> MutexGuard<'_, ProviderState> {
        self.kept.lock().expect("no panic")
    }

    /// Changes the provider's behaviour; an earlier change is reverted.
    pub fn be(&self, change: impl FnOnce(&mut Knobs)) {
        let mut knobs = Knobs::default();
        change(&mut knobs);
        self.kept().knobs = knobs;
    }

    /// Number of requests for a path.
    #[must_use]
    pub fn asked(&self, path: &str) -> usize {
        self.kept().asked.iter().filter(|asked| *asked == path).count()
    }

    /// All tokens and PKCE verifiers so far.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = self.kept().secrets.clone();
        secrets.push(ACCESS_TOKEN.to_owned());
        secrets
    }

    /// Follows the service's redirect like a browser; the provider redirects back at once.
    ///
    /// # Panics
    /// When the provider does not redirect back.
    pub async fn visit(&self, there: &str) -> Way {
        let there = Url::parse(there).expect("an address");
        let path = &there[url::Position::BeforePath..];
        let answer =
            Raw::connect(self.server.address).await.request("GET", path, &[], "").await.whole().await;
        assert_eq!(answer.status, 302, "{}", answer.text());
        let back = Url::parse(answer.header("location").expect("a way back")).expect("an address");
        Way { there, back: back[url::Position::BeforePath..].to_owned() }
    }
}

/// The response to a request; `None`: no response, ever.
fn answer(kept: &Mutex<ProviderState>, issuer: &str, request: &Request) -> Option<web::Answer> {
    let mut kept = kept.lock().expect("no panic");
    kept.asked.push(request.path.clone());
    if kept.knobs.silent == Some(request.path.as_str()) {
        return None;
    }
    if let Some((status, body)) = kept.knobs.answers.get(request.path.as_str()) {
        return Some(web::Answer::new(*status, body.clone()));
    }
    Some(match request.path.as_str() {
        "/.well-known/openid-configuration" => web::Answer::json(200, &description(&kept.knobs, issuer)),
        "/jwks" => web::Answer::json(200, &json!({"keys": [key::jwk()]})),
        "/userinfo" if request.authorization == format!("Bearer {ACCESS_TOKEN}") => {
            web::Answer::json(200, &kept.knobs.userinfo)
        }
        "/authorize" => authorize(&mut kept, issuer, request),
        "/token" => token(&mut kept, issuer, request).unwrap_or_else(|(status, error)| {
            web::Answer::json(
                status,
                &json!({"error": error, "error_description": "<script>alert(1)</script>"}),
            )
        }),
        _ => web::Answer::new(404, String::new()),
    })
}

fn description(knobs: &Knobs, issuer: &str) -> Value {
    let all = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks"),
        "userinfo_endpoint": format!("{issuer}/userinfo"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    tokens::changed(all, &knobs.metadata)
}

fn authorize(kept: &mut ProviderState, issuer: &str, request: &Request) -> web::Answer {
    let asked = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
    assert_eq!((asked("response_type"), asked("client_id")), ("code", CLIENT_ID));
    assert_eq!((asked("code_challenge_method"), asked("code_challenge").len()), ("S256", 43));
    assert!(asked("scope").split(' ').any(|scope| scope == "openid"));
    assert!(asked("state").len() == 43 && asked("nonce").len() == 43, "256 bits");
    let redirect_uri = asked("redirect_uri").to_owned();
    assert!(redirect_uri.ends_with("/api/auth/oidc/callback"), "{redirect_uri}");
    kept.made += 1;
    let code = format!("canary-code-{}-{}", kept.made, "x".repeat(20));
    let entry = Code {
        nonce: asked("nonce").to_owned(),
        challenge: asked("code_challenge").to_owned(),
        redirect_uri: redirect_uri.clone(),
    };
    kept.codes.insert(code.clone(), entry);
    let mut back: Vec<(&str, String)> =
        vec![("code", code), ("state", asked("state").to_owned()), ("iss", issuer.to_owned())];
    for (name, value) in &kept.knobs.back {
        back.retain(|(known, _)| known != name);
        back.push((name, value.clone()));
    }
    back.retain(|(_, value)| !value.is_empty());
    let mut to = Url::parse(&redirect_uri).expect("an address");
    to.query_pairs_mut().extend_pairs(back);
    web::Answer { location: Some(to.to_string()), ..web::Answer::new(302, String::new()) }
}

/// The client must present its secret in exactly one way; the code is valid once, for its verifier and its address.
fn token(
    kept: &mut ProviderState,
    issuer: &str,
    request: &Request,
) -> Result<web::Answer, (u16, &'static str)> {
    let methods = &kept.knobs.metadata["token_endpoint_auth_methods_supported"];
    let form = |name: &str| request.form.get(name).map(String::as_str).unwrap_or_default();
    let is_client = if *methods == json!(["client_secret_post"]) {
        request.authorization.is_empty()
            && (form("client_id"), form("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
    } else {
        !request.form.contains_key("client_secret") && is_basic(&request.authorization)
    };
    if !is_client {
        return Err((401, "invalid_client"));
    }
    let code = kept.codes.remove(form("code")).ok_or((400, "invalid_grant"))?;
    let verifier = form("code_verifier");
    kept.secrets.push(verifier.to_owned());
    let good = form("grant_type") == "authorization_code"
        && form("redirect_uri") == code.redirect_uri
        && URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())) == code.challenge;
    if !good {
        return Err((400, "invalid_grant"));
    }
    let id_token = tokens::id_token(&kept.knobs, issuer, &code.nonce);
    kept.secrets.push(id_token.clone());
    let answer =
        json!({"access_token": ACCESS_TOKEN, "token_type": "Bearer", "expires_in": 60, "id_token": id_token});
    Ok(web::Answer::json(200, &answer))
}

fn is_basic(authorization: &str) -> bool {
    let Some(encoded) = authorization.strip_prefix("Basic ") else { return false };
    let plain = String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("text");
    let decode = |text: &str| {
        let pairs = format!("x={text}");
        url::form_urlencoded::parse(pairs.as_bytes()).next().expect("one").1.into_owned()
    };
    let (id, secret) = plain.split_once(':').expect("a colon");
    (decode(id).as_str(), decode(secret).as_str()) == (CLIENT_ID, CLIENT_SECRET)
}
