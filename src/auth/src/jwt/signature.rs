//! Verifies a token's signature and returns its claims.

use std::collections::HashSet;

use jsonwebtoken::{DecodingKey, Validation, decode};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{Algorithm, Token, json, provider};

/// The claims of a token that `key` signed; `None` if it did not, or if the claims are not an acceptable JSON object.
/// The caller has chosen the key by the token's algorithm.
pub(crate) fn verified(token: &Token<'_>, key: &DecodingKey) -> Option<Map<String, Value>> {
    provider::install();
    let mut only = Validation::new(match token.header.algorithm {
        Algorithm::Hs256 => jsonwebtoken::Algorithm::HS256,
        Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
    });
    // We check claims ourselves: the library uses the system clock and accepts wrong types.
    only.required_spec_claims = HashSet::new();
    only.validate_exp = false;
    only.validate_nbf = false;
    only.validate_aud = false;
    decode::<IgnoredAny>(token.text, key, &only).ok()?;
    json::object(&token.payload)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;
    use crate::jwt::Purpose;

    /// RFC 7515, A.1 and A.2: validly signed, but without a subject.
    const CLAIMS: &str =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

    fn read(token: &str, key: &DecodingKey) -> Option<Map<String, Value>> {
        verified(&Token::read(token, Purpose::Access).ok()?, key)
    }

    #[test]
    fn the_rfc_7515_example_with_a_secret_verifies() {
        let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let key = DecodingKey::from_secret(&URL_SAFE_NO_PAD.decode(secret).unwrap());
        let header = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9";
        let token = format!("{header}.{CLAIMS}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(read(&token, &key).unwrap()["iss"], "joe");
        let rsa = DecodingKey::from_rsa_raw_components(&[1; 256], &[1, 0, 1]);
        assert!(read(&token, &rsa).is_none(), "the key's kind counts");
    }

    #[test]
    fn the_rfc_7515_example_with_an_rsa_key_verifies() {
        let modulus = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
        let key = DecodingKey::from_rsa_components(modulus, "AQAB").unwrap();
        let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
        let token = format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}.{signature}");
        assert_eq!(read(&token, &key).unwrap()["iss"], "joe");
    }
}
