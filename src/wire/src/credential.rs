//! Credentials over HTTP. Secrets are written but never returned.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Maximum characters per name.
pub const LONGEST_CREDENTIAL_NAME: usize = 64;

/// Whether a graph can name a credential this way, as `[[name]]`: a letter, then letters, digits, blanks, `_`, `.` and
/// `-`, without a trailing blank. `true`, `false` and `null` are excluded, because nested JSON lists contain them.
#[must_use]
pub fn is_credential_name(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b" _.-".contains(&byte);
    name.len() <= LONGEST_CREDENTIAL_NAME
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && name.bytes().all(inside)
        && !["true", "false", "null"].contains(&name)
        && !name.ends_with(' ')
}

/// `POST /api/credentials`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateCredential {
    /// Name in graphs, as `[[name]]`; unique in the workspace.
    pub name: String,
    /// The secret: text, at most 64 KiB.
    pub secret: String,
    /// The provider that it is for, such as `stripe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// `PATCH /api/credentials/{id}`: absent fields stay; null removes `provider` and `description`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateCredential {
    /// The new secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The provider that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub provider: Option<Option<String>>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub description: Option<Option<String>>,
}

/// Distinguishes null from absent.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(from).map(Some)
}

impl fmt::Debug for CreateCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateCredential").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for UpdateCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateCredential").field("has_secret", &self.secret.is_some()).finish_non_exhaustive()
    }
}

/// A credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CredentialRecord {
    /// UUIDv7.
    pub id: String,
    /// Name in graphs.
    pub name: String,
    /// The provider that it is for.
    pub provider: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// The secret's first three and last two characters if it is long enough, else `…`.
    pub preview: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Answer to `POST /api/admin/vault/rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VaultRotation {
    /// Id of the key to which all secrets move.
    pub active: String,
    /// Secrets and keys that this request rewrapped.
    pub rewrapped: u64,
    /// Remaining ones under other keys; repeat the request until this is 0.
    pub remaining: u64,
}

/// Whether all credentials for a workflow's live version exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Readiness {
    /// Whether nothing is missing.
    pub ready: bool,
    /// Names of credentials that it uses and the workspace lacks.
    pub missing_credentials: Vec<String>,
    /// Warnings about the settings, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn valid_names_can_be_referenced_in_a_graph() {
        for good in ["stripe", "Stripe key 2", "a.b_c-d", "A", &"x".repeat(64)] {
            assert!(is_credential_name(good), "{good}");
        }
        for bad in
            ["", "2fa", " a", "a ", "a]b", "a[b", "a|b", "ä", "a\nb", "a{b", "-a", "true", &"x".repeat(65)]
        {
            assert!(!is_credential_name(bad), "{bad}");
        }
    }

    #[test]
    fn null_removes_a_field_and_an_absent_one_stays() {
        let read = |value| serde_json::from_value::<UpdateCredential>(value).unwrap();
        assert_eq!(read(json!({"provider": null})).provider, Some(None));
        assert_eq!(read(json!({})).provider, None);
        assert_eq!(read(json!({"provider": "x"})).provider, Some(Some("x".into())));
        let new =
            CreateCredential { name: "a".into(), secret: "canary".into(), provider: None, description: None };
        assert!(!format!("{new:?}").contains("canary"));
        let change = UpdateCredential { secret: Some("canary".into()), ..UpdateCredential::default() };
        assert!(!format!("{change:?}").contains("canary"));
    }
}
