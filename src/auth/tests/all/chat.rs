//! Chat session tokens.

use auth::chat_session::{ChatSession, ChatSessions, NewChatSession, NoChatSession};
use auth::jwt::{HmacSecret, Signer};
use chrono::TimeDelta;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rsa::RsaPair;
use crate::support::{NOW, SECRET, at, now, sealed, secret, unsigned};

const WORKFLOW: Uuid = Uuid::from_u128(1);
const WORKSPACE: Uuid = Uuid::from_u128(2);
const ID: Uuid = Uuid::from_u128(3);

fn sessions() -> ChatSessions {
    ChatSessions::new(secret(SECRET))
}

fn ada() -> NewChatSession {
    NewChatSession {
        subject: "ada".to_owned(),
        named: true,
        workflow: WORKFLOW,
        workspace: WORKSPACE,
        origin: Some("https://page.example".to_owned()),
    }
}

fn by_hand(header: &str, changes: Value) -> String {
    let mut claims = json!({
        "iss": "callboard.chat", "aud": "chat", "sub": "ada", "iat": NOW, "exp": NOW + 300, "jti": ID,
        "workflow_id": WORKFLOW, "workspace_id": WORKSPACE,
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    sealed(SECRET.as_bytes(), &unsigned(header, claims.to_string()))
}

const HEADER: &str = r#"{"alg":"HS256","typ":"chat+jwt"}"#;

#[test]
fn an_issued_session_is_valid_until_it_expires() {
    let token = sessions().issue(&ada(), ID, now(), TimeDelta::seconds(300)).unwrap();
    let expected = ChatSession {
        subject: "ada".to_owned(),
        named: true,
        workflow: WORKFLOW,
        workspace: WORKSPACE,
        origin: Some("https://page.example".to_owned()),
        id: ID,
        expires_at: at(NOW + 300),
    };
    assert_eq!(sessions().verify(&token, now()), Ok(expected.clone()));
    assert_eq!(sessions().verify(&token, at(NOW + 299)), Ok(expected));
    assert_eq!(sessions().verify(&token, at(NOW + 300)), Err(NoChatSession));
    assert_eq!(sessions().verify(&token, at(NOW - 31)), Err(NoChatSession));

    let visitor = NewChatSession { named: false, origin: None, ..ada() };
    let token = sessions().issue(&visitor, ID, now(), TimeDelta::seconds(3600)).unwrap();
    let read = sessions().verify(&token, now()).unwrap();
    assert_eq!((read.named, read.origin), (false, None));
}

#[test]
fn the_wire_form_of_a_chat_token_is_fixed() {
    let token = sessions().issue(&ada(), ID, now(), TimeDelta::seconds(300)).unwrap();
    let expected = [
        r#"{"typ":"chat+jwt","alg":"HS256"}"#,
        concat!(
            r#"{"iss":"callboard.chat","aud":"chat","sub":"ada","iat":1800000000,"exp":1800000300,"#,
            r#""jti":"00000000-0000-0000-0000-000000000003","#,
            r#""workflow_id":"00000000-0000-0000-0000-000000000001","#,
            r#""workspace_id":"00000000-0000-0000-0000-000000000002","origin":"https://page.example"}"#
        ),
    ];
    assert_eq!(token, sealed(SECRET.as_bytes(), &unsigned(expected[0], expected[1])));
}

#[test]
fn other_tokens_are_rejected() {
    assert!(sessions().verify(&by_hand(HEADER, json!({})), now()).is_ok());
    let mut rows: Vec<String> = [
        json!({"iss": "callboard"}),
        json!({"iss": null}),
        json!({"iss": ["callboard.chat"]}),
        json!({"aud": "chats"}),
        json!({"aud": ["chat"]}),
        json!({"aud": null}),
        json!({"sub": ""}),
        json!({"sub": null}),
        json!({"iat": NOW + 31}),
        json!({"iat": null}),
        json!({"iat": "1800000000"}),
        json!({"exp": NOW}),
        json!({"exp": null}),
        json!({"exp": "1800000300"}),
        json!({"exp": u64::MAX}),
        json!({"exp": NOW + 3601}),
        json!({"jti": null}),
        json!({"jti": "3"}),
        json!({"workflow_id": null}),
        json!({"workflow_id": "first"}),
        json!({"workflow_id": [WORKFLOW]}),
        json!({"workspace_id": null}),
        json!({"origin": 1}),
        json!({"random_subject": "yes"}),
    ]
    .map(|changes| by_hand(HEADER, changes))
    .into();
    for header in [
        r#"{"alg":"HS256"}"#,
        r#"{"alg":"HS256","typ":"JWT"}"#,
        r#"{"alg":"HS256","typ":"at+jwt"}"#,
        r#"{"alg":"HS256","typ":"CHAT+JWT"}"#,
        r#"{"alg":"none","typ":"chat+jwt"}"#,
        r#"{"alg":"HS384","typ":"chat+jwt"}"#,
        r#"{"alg":"HS256","typ":"chat+jwt","crit":[]}"#,
    ] {
        rows.push(by_hand(header, json!({})));
    }
    let good = by_hand(HEADER, json!({}));
    let (text, signature) = good.rsplit_once('.').unwrap();
    let claims = text.split_once('.').unwrap().1;
    rows.extend([
        String::new(),
        text.to_owned(),
        format!("{text}."),
        format!("{good}."),
        format!("{good}="),
        format!(" {good}"),
        format!("{text}.{}", signature.to_uppercase()),
        sealed(b"another secret", text),
        sealed(b"", text),
        RsaPair::first().sign(r#"{"alg":"RS256","typ":"chat+jwt"}"#, claims),
    ]);
    for token in rows {
        assert_eq!(sessions().verify(&token, now()), Err(NoChatSession), "{token}");
    }
}

#[test]
fn another_key_verifies_nothing_and_an_empty_one_is_rejected() {
    let token = sessions().issue(&ada(), ID, now(), TimeDelta::seconds(300)).unwrap();
    assert!(ChatSessions::new(secret("another")).verify(&token, now()).is_err());
    assert!(HmacSecret::of_bytes(b"").is_none());
    assert!(HmacSecret::of_text(&String::new().into()).is_none());
}

#[test]
fn a_signer_writes_the_given_header_and_claims() {
    let signer = Signer::new(secret(SECRET), "at+jwt", Some("2026-11"));
    let header = r#"{"typ":"at+jwt","alg":"HS256","kid":"2026-11"}"#;
    let expected = sealed(SECRET.as_bytes(), &unsigned(header, r#"{"sub":"ada"}"#));
    assert_eq!(signer.sign(&json!({"sub": "ada"})).unwrap(), expected);
}
