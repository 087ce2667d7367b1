//! Token validity periods, to the second; and random texts.

use auth::jwt::{AccessTokens, Refusal};
use proptest::prelude::*;
use serde_json::json;

use crate::rsa::RsaPair;
use crate::support::{HS256, NOW, at, now, payload, rules, signed, token, verdict};

#[tokio::test]
async fn a_token_expires_at_its_second_and_may_start_half_a_minute_early() {
    for (claims, verdict_expected) in [
        (json!({"exp": NOW + 1}), None),
        (json!({"exp": NOW}), Some(Refusal::Expired)),
        (json!({"exp": NOW - 1}), Some(Refusal::Expired)),
        (json!({"exp": 1_800_000_000.5}), None),
        (json!({"exp": 1_799_999_999.5}), Some(Refusal::Expired)),
        (json!({"exp": 0}), Some(Refusal::Expired)),
        (json!({"exp": -5}), Some(Refusal::Expired)),
        (json!({"exp": -5.5}), Some(Refusal::Expired)),
        (json!({"exp": 1.8e9}), Some(Refusal::Expired)),
        (json!({"exp": 253_402_300_799_i64}), None),
        (json!({"exp": 253_402_300_800_i64}), Some(Refusal::Invalid)),
        (json!({"nbf": NOW + 30}), None),
        (json!({"nbf": 1_800_000_030.25}), Some(Refusal::Invalid)),
        (json!({"nbf": NOW + 31}), Some(Refusal::Invalid)),
        (json!({"nbf": 0}), None),
        (json!({"iat": NOW + 30}), None),
        (json!({"iat": NOW + 31}), Some(Refusal::Invalid)),
        (json!({"iat": NOW + 31_536_000}), Some(Refusal::Invalid)),
        (json!({"iat": 0}), None),
    ] {
        assert_eq!(verdict(&token(claims.clone())).await.err(), verdict_expected, "{claims}");
    }
}

#[tokio::test]
async fn the_caller_provides_the_current_time() {
    let tokens = AccessTokens::new(rules());
    let text = token(json!({"exp": 100}));
    assert!(tokens.verify(&text, at(99)).await.is_ok());
    assert_eq!(tokens.verify(&text, at(100)).await.unwrap_err().why, Refusal::Expired);
}

fn block<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_is_rejected_without_a_panic(text in ".{0,200}") {
        prop_assert!(block(verdict(&text)).is_err());
    }

    #[test]
    fn signed_random_payloads_do_not_panic(header in any::<Vec<u8>>(), claims in any::<Vec<u8>>()) {
        prop_assert!(block(verdict(&signed(&header, &claims))).is_err());
        prop_assert_eq!(block(verdict(&signed(HS256, &claims))).err(), Some(Refusal::Invalid));
    }

    #[test]
    fn one_changed_character_invalidates_a_token(place in any::<prop::sample::Index>(), letter in "[A-Za-z0-9_.-]", rsa: bool) {
        let good = if rsa {
            RsaPair::first().sign(r#"{"alg":"RS256","kid":"one"}"#, &payload(json!({})))
        } else {
            token(json!({}))
        };
        let place = place.index(good.len());
        let changed = format!("{}{letter}{}", &good[..place], &good[place + 1..]);
        prop_assert_eq!(block(verdict(&changed)).is_ok(), changed == good);
    }

    #[test]
    fn only_tokens_within_their_validity_period_are_accepted(
        exp in -100_i64..100, nbf in prop::option::of(-100_i64..100), iat in prop::option::of(-100_i64..100),
    ) {
        let text = token(json!({
            "exp": NOW + exp, "nbf": nbf.map(|nbf| NOW + nbf), "iat": iat.map(|iat| NOW + iat),
        }));
        let has_started = nbf.is_none_or(|nbf| nbf <= 30) && iat.is_none_or(|iat| iat <= 30);
        let expected = match (has_started, exp > 0) {
            (false, _) => Some(Refusal::Invalid),
            (true, false) => Some(Refusal::Expired),
            (true, true) => None,
        };
        let tokens = AccessTokens::new(rules());
        prop_assert_eq!(block(tokens.verify(&text, now())).err().map(|refused| refused.why), expected);
    }
}
