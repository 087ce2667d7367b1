//! Published RSA keys: the examples in RFC 7515 (A.2) and RFC 7520 (3.4).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rsa::{KeyPair, KeyPairComponents, PublicKeyComponents};
use ring::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PSS_SHA256, RsaEncoding};
use serde_json::{Value, json};

use crate::support::{encode, unsigned};

/// Encodes DER as a PEM file of this kind.
pub(crate) fn pem(kind: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut file = format!("-----BEGIN {kind}-----\n");
    for line in text.as_bytes().chunks(64) {
        file.push_str(std::str::from_utf8(line).unwrap());
        file.push('\n');
    }
    format!("{file}-----END {kind}-----\n")
}

pub(crate) struct RsaPair {
    n: &'static str,
    rest: [&'static str; 6],
}

impl RsaPair {
    pub(crate) fn first() -> Self {
        Self {
            n: "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
            rest: [
                "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ",
                "4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc",
                "uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmpe_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc",
                "BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-FOKnu1R6HsJeDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0",
                "h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-NKJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU",
                "IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U",
            ],
        }
    }

    pub(crate) fn second() -> Self {
        Self {
            n: "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpPI9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5iaiQkqgc5gHdrNP5zw",
            rest: [
                "bWUC9B-EFRIo8kpGfh0ZuyGPvMNKvYWNtB_ikiH9k20eT-O1q_I78eiZkpXxXQ0UTEs2LsNRS-8uJbvQ-A1irkwMSMkK1J3XTGgdrhCku9gRldY7sNA_AKZGh-Q661_42rINLRCe8W-nZ34ui_qOfkLnK9QWDDqpaIsA-bMwWWSDFu2MUBYwkHTMEzLYGqOe04noqeq1hExBTHBOBdkMXiuFhUq1BU6l-DqEiWxqg82sXt2h-LMnT3046AOYJoRioz75tSUQfGCshWTBnP5uDjd18kKhyv07lhfSJdrPdM5Plyl21hsFf4L_mHCuoFau7gdsPfHPxxjVOcOpBrQzwQ",
                "3Slxg_DwTXJcb6095RoXygQCAZ5RnAvZlno1yhHtnUex_fp7AZ_9nRaO7HX_-SFfGQeutao2TDjDAWU4Vupk8rw9JR0AzZ0N2fvuIAmr_WCsmGpeNqQnev1T7IyEsnh8UMt-n5CafhkikzhEsrmndH6LxOrvRJlsPp6Zv8bUq0k",
                "uKE2dh-cTf6ERF4k4e_jy78GfPYUIaUyoSSJuBzp3Cubk3OCqs6grT8bR_cu0Dm1MZwWmtdqDyI95HrUeq3MP15vMMON8lHTeZu2lmKvwqW7anV5UzhM1iZ7z4yMkuUwFWoBvyY898EXvRD-hdqRxHlSqAZ192zB3pVFJ0s7pFc",
                "B8PVvXkvJrj2L-GYQ7v3y9r6Kw5g9SahXBwsWUzp19TVlgI-YV85q1NIb1rxQtD-IsXXR3-TanevuRPRt5OBOdiMGQp8pbt26gljYfKU_E9xn-RULHz0-ed9E9gXLKD4VGngpz-PfQ_q29pk5xWHoJp009Qf1HvChixRX59ehik",
                "CLDmDGduhylc9o7r84rEUVn7pzQ6PF83Y-iBZx5NT-TpnOZKF1pErAMVeKzFEl41DlHHqqBLSM0W1sOFbwTxYWZDm6sI6og5iTbwQGIC3gnJKbi_7k_vJgGHwHxgPaX2PnvP-zyEkDERuf-ry4c_Z11Cq9AqC2yeL6kdKT1cYF8",
                "3PiqvXQN0zwMeE-sBvZgi289XP9XCQF3VWqPzMKnIgQp7_Tugo6-NZBKCQsMf3HaEGBjTVJs_jcK8-TRXvaKe-7ZMaQj8VfBdYkssbu0NKDDhjJ-GtiseaDVWt7dcH0cfwxgFUHpQh7FoCrjFJ6h6ZEpMF6xmujs4qMpPz8aaI4",
            ],
        }
    }

    /// The modulus as in a key set.
    pub(crate) fn modulus(&self) -> &'static str {
        self.n
    }

    /// The public part in DER: `RSAPublicKey` (RFC 8017, A.1.1), and wrapped as `SubjectPublicKeyInfo` (RFC 5280, 4.1).
    pub(crate) fn der(&self) -> [Vec<u8>; 2] {
        let bytes = |digits: &str| hex::decode(digits).unwrap();
        let modulus = URL_SAFE_NO_PAD.decode(self.n).unwrap();
        let plain = [bytes("3082010a0282010100"), modulus, bytes("0203010001")].concat();
        let named = [bytes("30820122300d06092a864886f70d01010105000382010f00"), plain.clone()].concat();
        [plain, named]
    }

    /// The public part as a JWK, with extra members.
    pub(crate) fn jwk(&self, more: Value) -> Value {
        let mut key = json!({"kty": "RSA", "n": self.n, "e": "AQAB"});
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    pub(crate) fn sign(&self, header: &str, payload: &str) -> String {
        self.sign_as(&RSA_PKCS1_SHA256, header, payload)
    }

    pub(crate) fn sign_sha384(&self, header: &str, payload: &str) -> String {
        self.sign_as(&RSA_PKCS1_SHA384, header, payload)
    }

    pub(crate) fn sign_pss(&self, header: &str, payload: &str) -> String {
        self.sign_as(&RSA_PSS_SHA256, header, payload)
    }

    #[expect(clippy::disallowed_methods, reason = "ring blinds with randomness of its own")]
    fn sign_as(&self, encoding: &'static dyn RsaEncoding, header: &str, payload: &str) -> String {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let [d, p, q, dp, dq, qi] = self.rest.map(bytes);
        let public_key = PublicKeyComponents { n: bytes(self.n), e: vec![1, 0, 1] };
        let parts = KeyPairComponents { public_key, d, p, q, dP: dp, dQ: dq, qInv: qi };
        let pair = KeyPair::from_components(&parts).unwrap();
        let text = unsigned(header, payload);
        let mut signature = vec![0; pair.public().modulus_len()];
        let random = ring::rand::SystemRandom::new();
        pair.sign(encoding, &random, text.as_bytes(), &mut signature).unwrap();
        format!("{text}.{}", encode(signature))
    }
}
