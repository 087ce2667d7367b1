//! Verifies the code from a sign-in mail.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use auth::sign_in::{Code, EmailAddress, Token};
use control::sign_in;
use serde_json::{Map, Value};
use store::ShownCode;
use wire::{ErrorCode, FieldError};

use super::answer::SigningIn;
use super::binding;
use super::caller::PresentedCredential;
use crate::http::body;
use crate::http::error::ApiResult;
use crate::http::fields::Fields;
use crate::http::guard::Anyone;
use crate::http::query::Params;

struct PresentedCode {
    challenge: Option<String>,
    email: String,
    code: String,
}

pub(super) async fn verify(app: Anyone, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    binding::check_origin(&app, &request)?;
    binding::check_mail(&app)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let shown = Params::from_request(&request).and(read(&body::object(&request, &bytes)?))?;
    // No code was ever sent to an invalid address.
    let email = EmailAddress::parse(&shown.email).map(|email| email.to_string()).unwrap_or_default();
    let kept = shown.challenge.or_else(|| binding::read(&app, &request)).unwrap_or_default();
    // Failures are not charged to the address: others could lock out its owner.
    let showing = PresentedCredential::for_request(&app, &request, "challenge", &kept).await?;
    let kept = Token::digest_of(&kept);
    let code = Code::read(&shown.code);
    let signing_in = SigningIn::for_request(&app, &request, &kept)?;
    let store = app.store();
    let opened = store
        .change(async |changes| {
            let shown = ShownCode {
                binding_digest: &kept,
                email: &email,
                code: code.as_ref(),
                key: &app.sign_in().codes,
            };
            sign_in::by_code(changes, shown, signing_in.opening()).await
        })
        .await?;
    match opened {
        Some(opened) => signing_in.answer(opened, None),
        None => Err(showing.failed(&app, &request, ErrorCode::CodeInvalid).await),
    }
}

fn read(members: &Map<String, Value>) -> Result<PresentedCode, Vec<FieldError>> {
    let mut fields = Fields::new(members);
    fields.require("email");
    fields.require("code");
    let challenge = fields.text("challenge").map(str::to_owned);
    let (email, code) = (fields.text("email").map(str::to_owned), fields.text("code").map(str::to_owned));
    match (email, code, fields.finish()) {
        (Some(email), Some(code), problems) if problems.is_empty() => {
            Ok(PresentedCode { challenge, email, code })
        }
        (_, _, problems) => Err(problems),
    }
}
