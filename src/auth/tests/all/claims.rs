//! The parsed claims of a valid token, and claims that make a token invalid.

use auth::jwt::Refusal::{self, InvalidAudience, InvalidIssuer};
use auth::jwt::{AccessRules, RejectedToken, TokenKind, Workspaces};
use serde_json::{Value, json};

use crate::support::{NOW, at, judge, rules, token, verdict};

async fn scopes(claims: Value) -> Vec<String> {
    verdict(&token(claims)).await.unwrap().scopes
}

async fn workspaces(claims: Value) -> Workspaces {
    verdict(&token(claims)).await.unwrap().workspaces
}

fn only(names: &[&str]) -> Workspaces {
    Workspaces::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

#[tokio::test]
async fn all_claims_are_read() {
    let claims = verdict(&token(json!({
        "jti": "t-1", "iss": "https://issuer", "aud": ["a", "b"], "iat": NOW - 5, "nbf": NOW - 5,
        "type": "service", "sid": "s-1", "scope": "x y", "workspace_ids": ["w"], "something": {"else": 1},
    })))
    .await
    .unwrap();
    assert_eq!(claims.subject, "ada");
    assert_eq!(claims.token_id.as_deref(), Some("t-1"));
    assert_eq!(claims.issuer.as_deref(), Some("https://issuer"));
    assert_eq!(claims.audience, ["a", "b"]);
    assert_eq!(claims.issued_at, Some(at(NOW - 5)));
    assert_eq!(claims.expires_at, at(NOW + 60));
    assert_eq!(claims.kind, TokenKind::Service);
    assert_eq!(claims.session.as_deref(), Some("s-1"));
    assert_eq!(claims.scopes, ["x", "y"]);
    assert_eq!(claims.workspaces, only(&["w"]));
}

#[tokio::test]
async fn few_claims_are_required() {
    let claims = verdict(&token(json!({}))).await.unwrap();
    assert_eq!((claims.token_id, claims.issuer, claims.session), (None, None, None));
    assert_eq!((claims.audience, claims.scopes), (vec![], vec![]));
    assert_eq!((claims.issued_at, claims.kind), (None, TokenKind::User));
    assert_eq!(claims.workspaces, Workspaces::Unrestricted);
}

#[tokio::test]
async fn scopes_are_read_in_every_spelling_and_joined() {
    for claims in [
        json!({"scope": "a b"}),
        json!({"scope": "b,a"}),
        json!({"scopes": " a ,, b "}),
        json!({"scp": ["b", "a", "a"]}),
        json!({"scope": "a", "scopes": "b"}),
        json!({"scp": ["a"], "orcheo": {"scopes": ["b"]}}),
        json!({"callboard": {"scopes": "a b"}}),
        json!({"callboard": {"scopes": ["a"]}, "orcheo": {"scopes": "b", "other": 1}}),
    ] {
        assert_eq!(scopes(claims.clone()).await, ["a", "b"], "{claims}");
    }
    for claims in [json!({"scope": ""}), json!({"scopes": []}), json!({"orcheo": {}}), json!({"scp": [""]})] {
        assert!(scopes(claims).await.is_empty());
    }
    // List items are not split.
    assert_eq!(scopes(json!({"scp": ["a b"]})).await, ["a b"]);
}

#[tokio::test]
async fn at_most_a_hundred_scopes_are_accepted() {
    let several = |count: usize| (0..count).map(|n| format!("s{n}")).collect::<Vec<_>>();
    assert_eq!(scopes(json!({"scope": several(100).join(" "), "scp": several(100)})).await.len(), 100);
    let spread = json!({"scope": several(100), "orcheo": {"scopes": ["one-more"]}});
    assert_eq!(verdict(&token(spread)).await.unwrap_err(), Refusal::Invalid);
}

#[tokio::test]
async fn workspaces_are_read_in_every_spelling_and_joined() {
    for claims in [
        json!({"workspace_ids": ["a", "b"]}),
        json!({"workspaces": "a b"}),
        json!({"workspace_id": "a", "workspace": "b"}),
        json!({"workspace": "a,b"}),
        json!({"orcheo": {"workspace_ids": ["b", "a"]}}),
        json!({"callboard": {"workspace_ids": "a"}, "workspace_id": "b"}),
        json!({"workspaces": [], "workspace_ids": ["a", "b"]}),
    ] {
        assert_eq!(workspaces(claims.clone()).await, only(&["a", "b"]), "{claims}");
    }
}

#[tokio::test]
async fn an_empty_workspaces_claim_grants_no_workspace() {
    for claims in [
        json!({"workspace_ids": []}),
        json!({"workspaces": ""}),
        json!({"workspace": " , "}),
        json!({"callboard": {"workspace_ids": []}}),
    ] {
        assert_eq!(workspaces(claims.clone()).await, only(&[]), "{claims}");
    }
    assert_eq!(workspaces(json!({"callboard": {"scopes": "a"}})).await, Workspaces::Unrestricted);
}

#[tokio::test]
async fn token_kind_claims_must_agree() {
    for (claims, kind) in [
        (json!({"type": "user"}), TokenKind::User),
        (json!({"typ": "service"}), TokenKind::Service),
        (json!({"token_use": "client"}), TokenKind::Client),
        (json!({"type": "Service", "typ": "service", "token_use": "service"}), TokenKind::Service),
        // Issuers that only mark the token as an access token.
        (json!({"typ": "Bearer"}), TokenKind::User),
        (json!({"token_use": "access"}), TokenKind::User),
        (json!({"token_use": "access", "type": "client"}), TokenKind::Client),
    ] {
        assert_eq!(verdict(&token(claims.clone())).await.unwrap().kind, kind, "{claims}");
    }
}

#[tokio::test]
async fn claims_of_wrong_types_make_a_token_invalid() {
    let wrong =
        [json!(null), json!(1), json!(true), json!({}), json!([1]), json!(["a", null]), json!([["a"]])];
    let lists = ["scope", "scopes", "scp", "workspace_ids", "workspaces", "workspace_id", "workspace"];
    let texts = ["sub", "jti", "iss", "sid", "type", "typ", "token_use"];
    let dates = ["exp", "nbf", "iat"];
    let mut rows: Vec<String> = Vec::new();
    // Written out because `token` leaves out nulls.
    let raw = |name: &str, value: &Value| {
        let mut claims = json!({"sub": "ada", "exp": NOW + 60});
        claims[name] = value.clone();
        crate::support::signed(crate::support::HS256, claims.to_string())
    };
    for name in lists.into_iter().chain(["aud"]) {
        rows.extend(wrong.iter().map(|value| raw(name, value)));
    }
    for name in texts {
        rows.extend(
            wrong
                .iter()
                .chain(&[json!(["a"]), json!(""), json!("a\u{0}b"), json!("a\nb")])
                .map(|value| raw(name, value)),
        );
    }
    for name in dates {
        let dates =
            [json!("1800000060"), json!(1e30), json!(u64::MAX), json!(-1e30), json!(i64::MIN), json!("")];
        rows.extend(
            wrong.iter().filter(|value| **value != json!(1)).chain(&dates).map(|value| raw(name, value)),
        );
    }
    for name in ["orcheo", "callboard"] {
        rows.extend([json!(null), json!("a"), json!(["a"])].iter().map(|value| raw(name, value)));
        for member in ["scopes", "workspace_ids"] {
            rows.extend(wrong.iter().map(|value| raw(name, &json!({ member: value }))));
        }
    }
    rows.extend([
        token(json!({"sub": null})),
        token(json!({"exp": null})),
        token(json!({"sub": "a".repeat(256)})),
        token(json!({"iss": ["https://issuer", "https://evil"]})),
        token(json!({"type": "user", "typ": "service"})),
        token(json!({"token_use": "client", "type": "user"})),
        token(json!({"token_use": "id"})),
        token(json!({"typ": "Refresh"})),
        token(json!({"type": "admin"})),
        token(json!({"scope": "a\u{0}b"})),
        token(json!({"workspaces": ["a\u{7f}"]})),
    ]);
    for text in &rows {
        assert_eq!(verdict(text).await.map(|claims| claims.subject), Err(Refusal::Invalid), "{text}");
    }
    assert!(rows.len() > 150);
}

fn strict() -> AccessRules {
    AccessRules {
        audience: vec!["us".to_owned(), "also-us".to_owned()],
        issuer: Some("https://issuer".to_owned()),
        ..rules()
    }
}

#[tokio::test]
async fn configured_audience_and_issuer_are_required() {
    let good = json!({"aud": "us", "iss": "https://issuer"});
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        token(claims)
    };
    for audience in [json!("us"), json!("also-us"), json!(["us"]), json!(["them", "us"])] {
        assert!(judge(strict(), &with("aud", audience)).await.is_ok());
    }
    for audience in [
        json!(null),
        json!("them"),
        json!([]),
        json!(["them"]),
        json!(""),
        json!("US"),
        json!("us "),
        json!("us,also-us"),
    ] {
        let refused = judge(strict(), &with("aud", audience.clone())).await.unwrap_err();
        assert_eq!(
            refused,
            RejectedToken { why: InvalidAudience, subject: Some("ada".to_owned()) },
            "{audience}"
        );
    }
    for issuer in
        [json!(null), json!("https://issuer/"), json!("HTTPS://issuer"), json!("https://issuer.evil")]
    {
        let refused = judge(strict(), &with("iss", issuer.clone())).await.unwrap_err();
        assert_eq!(
            refused,
            RejectedToken { why: InvalidIssuer, subject: Some("ada".to_owned()) },
            "{issuer}"
        );
    }
    for (name, value) in [("aud", json!(1)), ("aud", json!({"us": 1})), ("iss", json!(["https://issuer"]))] {
        assert_eq!(judge(strict(), &with(name, value)).await.unwrap_err().why, Refusal::Invalid, "{name}");
    }
}

#[tokio::test]
async fn expiry_is_reported_only_for_otherwise_valid_tokens() {
    let good = json!({"aud": "us", "iss": "https://issuer", "exp": NOW});
    let refused = judge(strict(), &token(good.clone())).await.unwrap_err();
    assert_eq!(refused, RejectedToken { why: Refusal::Expired, subject: Some("ada".to_owned()) });
    for (name, value, why) in [
        ("aud", json!("them"), InvalidAudience),
        ("iss", json!("them"), InvalidIssuer),
        ("nbf", json!(NOW + 31), Refusal::Invalid),
        ("scope", json!(1), Refusal::Invalid),
    ] {
        let mut claims = good.clone();
        claims[name] = value;
        assert_eq!(judge(strict(), &token(claims)).await.unwrap_err().why, why, "{name}");
    }
}
