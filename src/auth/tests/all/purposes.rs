//! A token for one purpose is rejected for any other, even if the same bytes sign all.

use auth::chat_session::{ChatSessions, NewChatSession};
use auth::jwt::{AccessRules, FirstParty, Refusal, SignedBy, Signer, TYPE_ACCESS};
use chrono::TimeDelta;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{HS256, NOW, SECRET, judge, now, payload, rules, secret, signed, token};

fn chat_claims() -> Value {
    json!({
        "iss": "callboard.chat", "aud": "chat", "sub": "ada", "iat": NOW, "exp": NOW + 300,
        "jti": Uuid::from_u128(3), "workflow_id": Uuid::from_u128(1), "workspace_id": Uuid::from_u128(2),
    })
}

#[tokio::test]
async fn a_chat_session_is_not_an_access_token() {
    let session = NewChatSession {
        subject: "ada".to_owned(),
        named: true,
        workflow: Uuid::from_u128(1),
        workspace: Uuid::from_u128(2),
        origin: None,
    };
    let chat = ChatSessions::new(secret(SECRET));
    let text = chat.issue(&session, Uuid::from_u128(3), now(), TimeDelta::seconds(300)).unwrap();
    assert!(chat.verify(&text, now()).is_ok());
    let lenient = rules();
    let alike = AccessRules {
        issuer: Some("callboard.chat".to_owned()),
        audience: vec!["chat".to_owned()],
        ..rules()
    };
    for rules in [lenient, alike] {
        assert_eq!(judge(rules.clone(), &text).await.unwrap_err().why, Refusal::Invalid);
        // The same claims with an access token's `typ` still have the chat's issuer.
        for header in [HS256, r#"{"alg":"HS256"}"#] {
            let disguised = signed(header, chat_claims().to_string());
            assert_eq!(judge(rules.clone(), &disguised).await.unwrap_err().why, Refusal::InvalidIssuer);
        }
    }
}

#[tokio::test]
async fn an_access_token_is_not_a_chat_session() {
    let chat = ChatSessions::new(secret(SECRET));
    let signer = Signer::new(secret(SECRET), TYPE_ACCESS, None);
    for text in [
        token(json!({})),
        signed(HS256, chat_claims().to_string()),
        signer.sign(&chat_claims()).unwrap(),
        signed(r#"{"alg":"HS256","typ":"chat+jwt"}"#, payload(json!({}))),
    ] {
        assert!(chat.verify(&text, now()).is_err(), "{text}");
    }
}

#[tokio::test]
async fn service_signed_tokens_require_its_issuer_and_secret() {
    let rules = AccessRules {
        issuer: Some("https://issuer".to_owned()),
        first_party: Some(FirstParty { secret: secret("generated"), issuer: "callboard".to_owned() }),
        ..rules()
    };
    let service = Signer::new(secret("generated"), TYPE_ACCESS, None);
    let external = Signer::new(secret(SECRET), TYPE_ACCESS, None);
    let claims = |issuer: &str| json!({"sub": "ada", "exp": NOW + 60, "iss": issuer, "sid": "s-1"});
    for (signer, issuer, expected) in [
        (&service, "callboard", Ok(SignedBy::FirstParty)),
        (&external, "https://issuer", Ok(SignedBy::Secret)),
        (&service, "https://issuer", Err(Refusal::InvalidIssuer)),
        (&external, "callboard", Err(Refusal::InvalidIssuer)),
    ] {
        let text = signer.sign(&claims(issuer)).unwrap();
        let verdict = judge(rules.clone(), &text).await;
        assert_eq!(verdict.map(|claims| claims.signed_by).map_err(|refused| refused.why), expected);
    }
    // Alone, the generated secret is enough for HS256 tokens.
    let alone = AccessRules { secret: None, ..rules };
    assert!(judge(alone.clone(), &service.sign(&claims("callboard")).unwrap()).await.is_ok());
    let foreign = external.sign(&claims("https://issuer")).unwrap();
    assert_eq!(judge(alone, &foreign).await.unwrap_err().why, Refusal::Invalid);
}
