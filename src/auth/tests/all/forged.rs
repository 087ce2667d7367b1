//! Tokens that attackers forged. Each is an attack that has worked somewhere.

use auth::jwt::Refusal::{self, Invalid, UnsupportedAlgorithm};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Value, json};

use crate::rsa::{RsaPair, pem};
use crate::support::{
    HS256, NOW, SECRET, encode, judge, payload, rules, sealed, signed, token, unsigned, verdict,
};

fn good() -> String {
    payload(json!({}))
}

async fn refused(rows: Vec<(&str, String, Refusal)>) {
    for (name, token, why) in rows {
        assert_eq!(verdict(&token).await.map(|claims| claims.subject), Err(why), "{name}: {token}");
    }
}

#[tokio::test]
async fn the_unchanged_tokens_are_valid() {
    assert_eq!(verdict(&signed(HS256, good())).await.unwrap().subject, "ada");
    let rsa = RsaPair::first().sign(r#"{"alg":"RS256","kid":"one"}"#, &good());
    assert_eq!(verdict(&rsa).await.unwrap().subject, "ada");
    // The only key needs no id.
    assert!(verdict(&RsaPair::first().sign(r#"{"alg":"RS256"}"#, &good())).await.is_ok());
    // An escape is another spelling of the same name.
    assert!(verdict(&signed(r#"{"\u0061lg":"HS\u0032\u0035\u0036"}"#, good())).await.is_ok());
}

#[tokio::test]
async fn forged_algorithms_are_rejected() {
    let mut rows = Vec::new();
    for alg in ["none", "None", "NONE", "nOnE", "", "HS384", "HS512", "ES256", "PS256", "EdDSA", "hs256"] {
        let header = format!(r#"{{"alg":"{alg}"}}"#);
        rows.push(("unsigned", format!("{}.", unsigned(&header, good())), UnsupportedAlgorithm));
        rows.push(("signed all the same", signed(&header, good()), UnsupportedAlgorithm));
    }
    let key = RsaPair::first();
    let confused = |secret: &[u8]| sealed(secret, &unsigned(r#"{"alg":"HS256","kid":"one"}"#, good()));
    let [pkcs1, spki] = key.der();
    let file = pem("PUBLIC KEY", &spki);
    for secret in [
        file.trim_end().as_bytes().to_vec(),
        file.replace('\n', "\r\n").into_bytes(),
        file.into_bytes(),
        pem("RSA PUBLIC KEY", &pkcs1).into_bytes(),
        spki,
        pkcs1,
        key.jwk(json!({})).to_string().into_bytes(),
    ] {
        rows.push(("HMAC with the public key", confused(&secret), Invalid));
    }
    rows.extend([
        (
            "none in escapes",
            format!("{}.", unsigned(r#"{"\u0061lg":"n\u006fne"}"#, good())),
            UnsupportedAlgorithm,
        ),
        ("HMAC with the modulus as written", confused(key.modulus().as_bytes()), Invalid),
        ("HMAC with the modulus", confused(&URL_SAFE_NO_PAD.decode(key.modulus()).unwrap()), Invalid),
        ("HMAC with nothing", confused(b""), Invalid),
        ("RS384", key.sign_sha384(r#"{"alg":"RS384","kid":"one"}"#, &good()), UnsupportedAlgorithm),
        ("PS256", key.sign_pss(r#"{"alg":"PS256","kid":"one"}"#, &good()), UnsupportedAlgorithm),
        ("SHA-384 as RS256", key.sign_sha384(r#"{"alg":"RS256","kid":"one"}"#, &good()), Invalid),
        ("PSS as RS256", key.sign_pss(r#"{"alg":"RS256","kid":"one"}"#, &good()), Invalid),
        ("HMAC as RS256", signed(r#"{"alg":"RS256","kid":"one"}"#, good()), Invalid),
        ("RSA as HS256", key.sign(HS256, &good()), Invalid),
        ("alg a number", signed(r#"{"alg":256}"#, good()), Invalid),
        ("alg a list", signed(r#"{"alg":["HS256"]}"#, good()), Invalid),
        ("alg null", signed(r#"{"alg":null}"#, good()), Invalid),
        ("alg missing", signed(r#"{"typ":"JWT"}"#, good()), Invalid),
        ("alg twice", signed(r#"{"alg":"HS256","alg":"HS256"}"#, good()), Invalid),
        ("alg twice, once escaped", signed(r#"{"alg":"none","\u0061lg":"HS256"}"#, good()), Invalid),
    ]);
    refused(rows).await;
}

#[tokio::test]
async fn forged_keys_are_rejected() {
    let other = RsaPair::second();
    let jwk = other.jwk(json!({}));
    let with = |members: Value| {
        let mut header = json!({"alg": "RS256"});
        header.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        header.to_string()
    };
    let mut rows = vec![
        ("another key under the name", other.sign(&with(json!({"kid": "one"})), &good()), Invalid),
        ("another key without a name", other.sign(&with(json!({})), &good()), Invalid),
        ("an unknown name", RsaPair::first().sign(&with(json!({"kid": "two"})), &good()), Invalid),
    ];
    for members in [
        json!({"jwk": jwk}),
        json!({"kid": "one", "jwk": jwk}),
        json!({"jku": "https://evil.example/keys"}),
        json!({"x5u": "https://evil.example/cert"}),
        json!({"x5c": ["MIIB"]}),
    ] {
        rows.push(("a key of its own", other.sign(&with(members), &good()), Invalid));
    }
    for kid in [
        "../../dev/null",
        "/dev/null",
        "one' OR '1'='1",
        "one\"",
        "one;cat",
        "one\0",
        "",
        " one",
        "one\n",
        "http://evil.example",
        "ключ",
        &"k".repeat(129),
    ] {
        let header = json!({"alg": "HS256", "kid": kid}).to_string();
        rows.push(("a name that wants to be more", signed(&header, good()), Invalid));
    }
    for kid in [json!(1), json!(null), json!(["one"]), json!({})] {
        let header = json!({"alg": "HS256", "kid": kid}).to_string();
        rows.push(("a name that is no text", signed(&header, good()), Invalid));
    }
    refused(rows).await;
    assert!(verdict(&signed(r#"{"alg":"HS256","kid":"any.of_these:1-2"}"#, good())).await.is_ok());
}

#[tokio::test]
async fn forged_headers_are_rejected() {
    let mut rows = Vec::new();
    for member in [
        r#""crit":["exp"]"#,
        r#""crit":[]"#,
        r#""b64":false"#,
        r#""b64":true"#,
        r#""crit":["b64"],"b64":false"#,
        r#""zip":"DEF""#,
        r#""jku":"https://evil.example/keys""#,
        r#""jwk":{"kty":"oct","k":"AAAA"}"#,
        r#""x5u":"https://evil.example/cert""#,
        r#""x5c":["MIIB"]"#,
        r#""typ":"JWE""#,
        r#""typ":"chat+jwt""#,
        r#""typ":"logout+jwt""#,
        r#""typ":"""#,
        r#""typ":1"#,
        r#""typ":null"#,
        r#""typ":"JWT","typ":"JWT""#,
        r#""kid":"one","kid":"two""#,
        r#""x":{"y":1,"y":1}"#,
    ] {
        rows.push(("a header's member", signed(format!(r#"{{"alg":"HS256",{member}}}"#), good()), Invalid));
    }
    let long = json!({"alg": "HS256", "x": "x".repeat(1024)}).to_string();
    rows.push(("a long header", signed(long, good()), Invalid));
    let deep = format!(r#"{{"alg":"HS256","x":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    rows.push(("a deep header", signed(deep, good()), Invalid));
    for header in ["", "null", "[]", "\"HS256\"", "{", "{\"alg\":\"HS256\"}x", "\u{feff}{\"alg\":\"HS256\"}"]
    {
        rows.push(("no header", signed(header, good()), Invalid));
    }
    rows.push(("a header that is not UTF-8", signed(b"{\"alg\":\"HS256\",\"x\":\"\xff\"}", good()), Invalid));
    refused(rows).await;
}

#[tokio::test]
async fn forged_signatures_are_rejected() {
    let good_token = signed(HS256, good());
    let (text, signature) = good_token.rsplit_once('.').unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let with = |signature: &[u8]| format!("{text}.{}", encode(signature));
    let mut rows = vec![
        ("an empty signature", format!("{text}."), Invalid),
        ("no signature", text.to_owned(), Invalid),
        ("a short signature", with(&bytes[..31]), Invalid),
        ("half a signature", with(&bytes[..16]), Invalid),
        ("a long signature", with(&[bytes.as_slice(), b"\0"].concat()), Invalid),
        ("zeros", with(&[0; 32]), Invalid),
        ("another secret", sealed(b"the secret of the tests, 32 bytez", text), Invalid),
        ("a part of the secret", sealed(&SECRET.as_bytes()[..32], text), Invalid),
        (
            "the signature of other claims",
            {
                let (_, foreign) = token(json!({"sub": "eve"}))
                    .rsplit_once('.')
                    .map(|(a, b)| (a.to_owned(), b.to_owned()))
                    .unwrap();
                format!("{text}.{foreign}")
            },
            Invalid,
        ),
    ];
    for bit in 0..8 {
        let mut flipped = bytes.clone();
        flipped[bit * 4] ^= 1 << bit;
        rows.push(("one bit", with(&flipped), Invalid));
    }
    let tagged = |algorithm: hmac::Algorithm, length: usize| {
        let tag = hmac::sign(&hmac::Key::new(algorithm, SECRET.as_bytes()), text.as_bytes());
        with(&tag.as_ref()[..length])
    };
    let (_, rest) = good_token.split_once('.').unwrap();
    rows.extend([
        ("one byte of a signature", with(&bytes[..1]), Invalid),
        ("the signature twice", with(&bytes.repeat(2)), Invalid),
        ("the signature in hexadecimal", format!("{text}.{}", hex::encode(&bytes)), Invalid),
        ("HMAC with SHA-384", tagged(hmac::HMAC_SHA384, 48), Invalid),
        ("HMAC with SHA-512", tagged(hmac::HMAC_SHA512, 64), Invalid),
        ("half of HMAC with SHA-512", tagged(hmac::HMAC_SHA512, 32), Invalid),
        ("another header", format!("{}.{rest}", encode(r#"{"alg":"HS256","kid":"one"}"#)), Invalid),
    ]);
    let rsa = RsaPair::first().sign(r#"{"alg":"RS256","kid":"one"}"#, &good());
    let (text, signature) = rsa.rsplit_once('.').unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let with = |signature: &[u8]| format!("{text}.{}", encode(signature));
    rows.extend([
        ("RSA: an empty signature", format!("{text}."), Invalid),
        ("RSA: a zero in front", with(&[b"\0", bytes.as_slice()].concat()), Invalid),
        ("RSA: a short signature", with(&bytes[1..]), Invalid),
        ("RSA: zeros", with(&[0; 256]), Invalid),
        ("RSA: one", with(&[vec![0; 255], vec![1]].concat()), Invalid),
    ]);
    let modulus = URL_SAFE_NO_PAD.decode(RsaPair::first().modulus()).unwrap();
    let mut less = modulus.clone();
    less[255] -= 1;
    let (header, claims) = text.split_once('.').unwrap();
    let (longer, eve) =
        (encode(r#"{"alg":"RS256","kid":"one","typ":"JWT"}"#), encode(payload(json!({"sub": "eve"}))));
    rows.extend([
        ("RSA: no signature", text.to_owned(), Invalid),
        ("RSA: a zero behind", with(&[bytes.as_slice(), b"\0"].concat()), Invalid),
        ("RSA: the end cut off", with(&bytes[..255]), Invalid),
        ("RSA: one byte", with(&bytes[..1]), Invalid),
        ("RSA: the modulus", with(&modulus), Invalid),
        ("RSA: one less than the modulus", with(&less), Invalid),
        ("RSA: the signature of other claims", format!("{header}.{eve}.{signature}"), Invalid),
        ("RSA: the signature of another header", format!("{longer}.{claims}.{signature}"), Invalid),
    ]);
    for place in [0, 1, 127, 128, 254, 255] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        rows.push(("RSA: one bit", with(&flipped), Invalid));
    }
    refused(rows).await;
}

#[tokio::test]
async fn malformed_tokens_are_rejected() {
    let good_token = signed(HS256, good());
    let parts: Vec<&str> = good_token.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    // A payload whose last character has unused bits: `e30` is `{}`, and so is `e31` to lenient decoders.
    let spare = |part: &str| {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let last = alphabet.iter().position(|letter| *letter == *part.as_bytes().last().unwrap()).unwrap();
        format!("{}{}", &part[..part.len() - 1], char::from(alphabet[last + 1]))
    };
    // Two bytes over a multiple of three.
    let odd = payload(json!({"x": "1"}));
    let odd = if odd.len().is_multiple_of(3) { payload(json!({"x": "12"})) } else { odd };
    let odd_text = unsigned(HS256, &odd);
    let (odd_header, odd_claims) = odd_text.split_once('.').unwrap();
    assert!(verdict(&signed(HS256, &odd)).await.is_ok());
    let plus = payload(json!({"x": "???>>>~~~"}));
    let other_alphabet = format!("{}.{}", encode(HS256), STANDARD_NO_PAD.encode(&plus));
    assert!(other_alphabet.contains(['+', '/']));
    let padded = format!("{}.{}", URL_SAFE.encode(HS256), URL_SAFE.encode(&odd));
    let mut rows = vec![
        ("nothing", String::new(), Invalid),
        ("dots", "..".to_owned(), Invalid),
        ("many dots", ".".repeat(8000), Invalid),
        ("one part", header.to_owned(), Invalid),
        ("four parts", format!("{good_token}.{signature}"), Invalid),
        (
            "five parts, as an encrypted one has",
            format!("{header}.{claims}.{signature}.{claims}.{signature}"),
            Invalid,
        ),
        ("a dot behind", format!("{good_token}."), Invalid),
        ("a dot before", format!(".{good_token}"), Invalid),
        ("no claims", sealed(SECRET.as_bytes(), &format!("{header}.")), Invalid),
        ("no header and no dot", format!("{claims}.{signature}"), Invalid),
        ("no claims and no dot", format!("{header}.{signature}"), Invalid),
        ("no header", format!(".{claims}.{signature}"), Invalid),
        ("a header alone", format!("{header}.."), Invalid),
        ("claims alone", format!(".{claims}."), Invalid),
        ("a signature alone", format!("..{signature}"), Invalid),
        ("a space before", format!(" {good_token}"), Invalid),
        ("a space behind", format!("{good_token} "), Invalid),
        ("a line's end behind", format!("{good_token}\n"), Invalid),
        ("a space inside", sealed(SECRET.as_bytes(), &format!("{header}. {claims}")), Invalid),
        (
            "a line's end inside",
            sealed(SECRET.as_bytes(), &format!("{header}.{}\n{}", &claims[..8], &claims[8..])),
            Invalid,
        ),
        ("padded", sealed(SECRET.as_bytes(), &padded), Invalid),
        ("the signature padded", format!("{good_token}="), Invalid),
        ("the other alphabet", sealed(SECRET.as_bytes(), &other_alphabet), Invalid),
        (
            "spare bits in the claims",
            sealed(SECRET.as_bytes(), &format!("{odd_header}.{}", spare(odd_claims))),
            Invalid,
        ),
        ("spare bits in the signature", format!("{header}.{claims}.{}", spare(signature)), Invalid),
        ("quotes around it", format!("\"{good_token}\""), Invalid),
        (
            "as JSON",
            json!({"protected": header, "payload": claims, "signature": signature}).to_string(),
            Invalid,
        ),
        (
            "as JSON with several signatures",
            json!({"payload": claims, "signatures": [{"protected": header, "signature": signature}]})
                .to_string(),
            Invalid,
        ),
        ("not ASCII", format!("{good_token}é"), Invalid),
        ("a NUL behind", format!("{good_token}\0"), Invalid),
        ("eight megabytes", token(json!({"x": "x".repeat(8_000_000)})), Invalid),
        ("eight megabytes of nothing", "A".repeat(8_000_000), Invalid),
    ];
    // One and two bytes over a multiple of three.
    for header in [r#"{"alg":"HS256" }"#, r#"{"alg":"HS256"  }"#] {
        assert!(verdict(&signed(header, good())).await.is_ok());
        for (name, spelled) in [
            ("spare bits in the header", spare(&encode(header))),
            ("the header padded", URL_SAFE.encode(header)),
        ] {
            rows.push((name, sealed(SECRET.as_bytes(), &format!("{spelled}.{claims}")), Invalid));
        }
    }
    rows.push((
        "one byte too long",
        {
            let long = longest(8193);
            assert_eq!(long.len(), 8193);
            long
        },
        Invalid,
    ));
    refused(rows).await;
    let longest = longest(8192);
    assert_eq!(longest.len(), 8192);
    assert!(verdict(&longest).await.is_ok());
}

/// Signed over its given spelling, and over its correct spelling.
#[tokio::test]
async fn characters_outside_base64url_are_rejected() {
    let good_token = signed(HS256, good());
    let parts: Vec<&str> = good_token.split('.').collect();
    let letters = [
        " ", "    ", "\t", "\n", "\r\n", "\u{b}", "=", "==", "+", "/", "?", "#", "####", "*", ",", ":", "%",
        "%3D", "\"", "\\", "\0", "\u{7f}", "é", "\u{200b}", "\u{feff}", "\u{ff21}",
    ];
    let mut rows = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        for letter in letters {
            for (at, instead) in [(0, 0), (0, 1), (part.len() / 2, 0), (part.len() / 2, 1), (part.len(), 0)] {
                let changed = format!("{}{letter}{}", &part[..at], &part[at + instead..]);
                let mut all = parts.clone();
                all[place] = &changed;
                rows.push(("signed when it was right", all.join("."), Invalid));
                rows.push(("signed as it is", sealed(SECRET.as_bytes(), &all[..2].join(".")), Invalid));
            }
        }
    }
    // The last part is never signed, so sealing again made it right.
    rows.retain(|(_, token, _)| *token != good_token);
    assert_eq!(rows.len(), letters.len() * 5 * 5);
    refused(rows).await;
}

/// A valid token with this length.
fn longest(length: usize) -> String {
    (1..4)
        .flat_map(|spaces| {
            let header = format!(r#"{{{}"alg":"HS256"}}"#, " ".repeat(spaces));
            (5_900..6_200).map(move |size| signed(&header, payload(json!({"x": "x".repeat(size)}))))
        })
        .find(|token| token.len() == length)
        .unwrap()
}

#[tokio::test]
async fn malformed_payloads_are_rejected() {
    let mut rows = Vec::new();
    for text in [
        "",
        "null",
        "[]",
        "1",
        "\"ada\"",
        "{",
        "{}{}",
        r#"{"sub":"ada","exp":1800000060}x"#,
        r#"{"sub":"eve","sub":"ada","exp":1800000060}"#,
        r#"{"sub":"ada","\u0073ub":"eve","exp":1800000060}"#,
        r#"{"sub":"ada","exp":1,"exp":1800000060}"#,
        r#"{"sub":"ada","exp":1800000060,"iss":"a","iss":"a"}"#,
        r#"{"sub":"ada","exp":1800000060,"callboard":{"scopes":["a"],"scopes":["b"]}}"#,
        r#"{"sub":"ada","exp":NaN}"#,
        r#"{"sub":"ada","exp":1e999}"#,
        r#"{"sub":"ada","exp":0x6b49d200}"#,
        r#"{"sub":"ada","exp":1800000060,}"#,
        r#"{"sub":"a\ud800","exp":1800000060}"#,
    ] {
        rows.push(("claims that are none", signed(HS256, text), Invalid));
    }
    let deep = format!(r#"{{"sub":"ada","exp":{},"x":{}{}}}"#, NOW + 60, "[".repeat(100), "]".repeat(100));
    rows.push(("deep claims", signed(HS256, deep), Invalid));
    refused(rows).await;
}

#[tokio::test]
async fn a_bad_signature_hides_all_other_problems() {
    let mut rules = rules();
    rules.audience = vec!["us".to_owned()];
    rules.issuer = Some("https://issuer".to_owned());
    for changes in [
        json!({"exp": NOW - 1}),
        json!({"aud": "them"}),
        json!({"iss": "https://other"}),
        json!({"nbf": NOW + 100}),
        json!({"sub": 1}),
        json!({}),
    ] {
        let forged = sealed(b"another secret", &unsigned(HS256, payload(changes)));
        let refused = judge(rules.clone(), &forged).await.unwrap_err();
        assert_eq!((refused.why, refused.subject), (Invalid, None));
    }
}
