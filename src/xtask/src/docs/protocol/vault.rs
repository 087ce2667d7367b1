//! Examples of the vault.

use anyhow::Result;
use wire::{CreateCredential, CredentialRecord};

use super::block;

const AT: &str = "2026-11-22T09:00:00.000000Z";

pub(super) fn create() -> Result<String> {
    block(&CreateCredential {
        name: "stripe".into(),
        secret: "sk_test_4eC39HqLyjWDarjtT1x4".into(),
        provider: Some("stripe".into()),
        description: Some("Test account".into()),
    })
}

pub(super) fn record() -> Result<String> {
    block(&CredentialRecord {
        id: "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b".into(),
        name: "stripe".into(),
        provider: Some("stripe".into()),
        description: Some("Test account".into()),
        preview: "sk_…x4".into(),
        created_at: AT.into(),
        updated_at: AT.into(),
    })
}
