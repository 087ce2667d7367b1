//! The app's configuration and its offers to the caller.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::Value;
use wire::{AppAccess, BindingAccess, CollectionKind, CollectionVerb};

use super::super::error::AliasResult;
use super::super::served::ServedApp;
use super::super::visitor::Visitor;
use super::cookie;
use crate::http::time;

#[derive(Serialize)]
struct Configuration<'a> {
    app: AppPart<'a>,
    release: ReleasePart,
    auth: AuthPart,
    bindings: BTreeMap<&'a str, BindingPart<'a>>,
    collections: BTreeMap<&'a str, CollectionPart<'a>>,
}

#[derive(Serialize)]
struct AppPart<'a> {
    alias: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct ReleasePart {
    id: String,
    created_at: String,
}

#[derive(Serialize)]
struct AuthPart {
    mode: &'static str,
    login_url: &'static str,
    session_url: &'static str,
    logout_url: &'static str,
}

#[derive(Serialize)]
struct BindingPart<'a> {
    access_mode: BindingAccess,
    input_schema: Option<&'a Value>,
}

#[derive(Serialize)]
struct CollectionPart<'a> {
    kind: CollectionKind,
    capabilities: &'a [CollectionVerb],
}

pub(super) async fn show(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    let is_known = visitor.member.is_some() || cookie::read(&visitor, &request).is_some();
    let mut answer = HttpResponse::Ok();
    if !is_known {
        answer.cookie(cookie::new(&visitor)?.into_cookie());
    }
    Ok(answer.json(configuration(&visitor.served, visitor.member.is_some())))
}

fn configuration(served: &ServedApp, is_member: bool) -> Configuration<'_> {
    let release = &served.release;
    let bindings = release.bindings.iter().map(|(name, binding)| {
        let frozen = &binding.frozen;
        let (access_mode, input_schema) = (frozen.access_mode, frozen.input_schema.as_ref());
        (name.as_str(), BindingPart { access_mode, input_schema })
    });
    let collections = release.collections.iter().map(|(name, collection)| {
        let all = &collection.frozen.capabilities;
        let capabilities = if is_member { &all.member } else { &all.anonymous };
        (name.as_str(), CollectionPart { kind: collection.frozen.kind, capabilities })
    });
    Configuration {
        app: AppPart { alias: &served.alias, name: &served.name },
        release: ReleasePart { id: release.id.to_string(), created_at: time(release.created_at).to_string() },
        auth: AuthPart {
            mode: mode(served),
            login_url: "/__service/auth/login",
            session_url: "/__service/auth/session",
            logout_url: "/__service/auth/logout",
        },
        bindings: bindings.collect(),
        collections: collections.collect(),
    }
}

/// Whether sign-in is required, optional or unused.
fn mode(served: &ServedApp) -> &'static str {
    let release = &served.release;
    let needs = release.bindings.values().any(|of| of.frozen.access_mode == BindingAccess::Authenticated)
        || release.collections.values().any(|collection| {
            let all = &collection.frozen.capabilities;
            all.member.iter().any(|verb| !all.anonymous.contains(verb))
        });
    match (served.access, needs) {
        (AppAccess::Members, _) => "required",
        (AppAccess::Public, true) => "optional",
        (AppAccess::Public, false) => "none",
    }
}
