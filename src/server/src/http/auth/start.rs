//! Requests a sign-in by mail. The response and the work are the same for every address.

use actix_web::http::header;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use auth::sign_in::{Code, EmailAddress, Letter, Token, client_key, is_local};
use serde_json::{Map, Value};
use store::NewSignIn;
use wire::{ErrorCode, FieldError, SignInStarted};

use super::binding;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::http::{App, body};

struct StartRequest {
    email: EmailAddress,
    return_to: Option<String>,
}

pub(super) async fn start(app: Anyone, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    binding::check_origin(&app, &request)?;
    binding::check_mail(&app)?;
    if request.headers().contains_key(header::ORIGIN) && !app.keeps_cookies(&request) {
        return Err(ApiError::new(ErrorCode::TlsRequired));
    }
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let wanted = Params::from_request(&request).and(read(&body::object(&request, &bytes)?))?;
    let id = app.ids().uuid()?;
    let (code, link, asked) =
        (Code::fresh(app.random())?, Token::fresh(app.random())?, Token::fresh(app.random())?);
    let base = app.link_base(&request);
    let address = base.as_ref().map(|base| format!("{base}/api/auth/magic/{}", link.expose()));
    let service = App::name_in_mail(base.as_deref());
    let keys = app.sign_in();
    let seal = |letter: Letter| {
        let sealed = letter.seal(&keys.letters, id, app.random());
        sealed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
    };
    let with_link = address.clone().map(|address| seal(Letter::link(service, address))).transpose()?;
    let with_code = seal(Letter::new(service, &code, address))?;
    let browser = binding::Browser::from_request(&app, &request)?;
    let client = client_key(app.client_address(&request));
    let new = NewSignIn {
        id,
        email: wanted.email.as_str(),
        link_digest: link.digest(),
        code_mac: keys.codes.mac(id, &code),
        binding_digest: asked.digest(),
        return_to: wanted.return_to.as_deref(),
        client: &client,
        browser: browser.digest(),
        browser_known: browser.known,
        with_code,
        with_link,
    };
    if app.store().change(async |changes| changes.start_sign_in(new).await).await? {
        app.system().mail().committed();
    } else {
        // The response does not reveal this, since it would expose a pending sign-in at this address.
        tracing::info!(client, "sign-in mail not sent: too many requests");
    }
    let started = SignInStarted { challenge: asked.expose().to_owned() };
    let (challenge, browser) = (binding::cookie(&asked), browser.cookie());
    Ok(HttpResponse::Accepted().cookie(challenge).cookie(browser).json(started))
}

fn read(members: &Map<String, Value>) -> Result<StartRequest, Vec<FieldError>> {
    let mut fields = Fields::new(members);
    fields.require("email");
    let email = fields.text("email").map(EmailAddress::parse);
    if let Some(Err(error)) = &email {
        fields.note(FieldError::new("/email", "format", error.to_string()));
    }
    let return_to = fields.text("return_to").map(str::to_owned);
    if return_to.as_deref().is_some_and(|path| !is_local(path)) {
        fields.note(FieldError::new(
            "/return_to",
            "format",
            "must be a path of this service, such as /chat/…",
        ));
    }
    match (email, fields.finish()) {
        (Some(Ok(email)), problems) if problems.is_empty() => Ok(StartRequest { email, return_to }),
        (_, problems) => Err(problems),
    }
}
