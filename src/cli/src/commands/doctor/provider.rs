//! The OpenID provider: checks that it is reachable and usable for login. Does not use the client secret.

use auth::oidc::Metadata;
use config::Oidc;

use super::report::Finding;
use super::web::{SOON, Web};

const PROVIDER: &str = "OpenID provider";

/// The probe's result.
pub(super) enum ProviderProbe {
    Good(String),
    Unreached(String),
    Bad(String),
}

pub(super) async fn probe(oidc: &Oidc, web: &Web) -> ProviderProbe {
    let answer = match web.get(&Metadata::address(&oidc.issuer), SOON, None).await {
        Ok(answer) if answer.status() == net::StatusCode::OK => answer.bytes().await,
        Ok(answer) => return ProviderProbe::Bad(format!("it answers {}", answer.status())),
        Err(error) => return ProviderProbe::Unreached(error.to_string()),
    };
    match answer.map(|body| Metadata::parse(&body, &oidc.issuer)) {
        Ok(Ok(_)) => ProviderProbe::Good(oidc.issuer.clone()),
        Ok(Err(error)) => ProviderProbe::Bad(error.to_string()),
        Err(error) => ProviderProbe::Unreached(error.to_string()),
    }
}

pub(super) fn judge(probed: &ProviderProbe, has_base: bool) -> Vec<Finding> {
    let issuer = "set SERVICE_OIDC_ISSUER to the issuer exactly as the provider documents it";
    let mut findings = vec![match probed {
        ProviderProbe::Good(issuer) => Finding::ok(PROVIDER, format!("{issuer} is available for sign-in")),
        ProviderProbe::Unreached(error) => {
            Finding::problem(PROVIDER, format!("not reachable: {error}"), format!("start it, or {issuer}"))
        }
        ProviderProbe::Bad(error) => {
            Finding::problem(PROVIDER, format!("its metadata is not valid: {error}"), issuer)
        }
    }];
    if !has_base {
        findings.push(Finding::problem(
            PROVIDER,
            "it cannot redirect to the service: the public address is not set",
            "set SERVICE_PUBLIC_BASE_URL to its https address",
        ));
    }
    findings
}
