//! Credentials: sealed in their rows, and rewrapped under another key while they are read.

use auth::envelope::{Envelope, open, preview, rewrap, seal};
use auth::keyring::{KeyRing, KeyringError};
use kernel::SystemRandom;
use secrecy::ExposeSecret;
use store::{
    CredentialChange, NewCredential, NewWorkspace, SealedSecret, StoreError, StoredCredential, first_place,
};
use uuid::Uuid;

use crate::support::World;

const SECRET: &str = "sk-canary-0123456789-of-the-vault";

fn ring(active: &str, ids: &[(&str, u8)]) -> KeyRing {
    let keys: Vec<(&str, [u8; 32])> = ids.iter().map(|(id, byte)| (*id, [*byte; 32])).collect();
    KeyRing::new(active, keys.iter().map(|(id, key)| (*id, key))).unwrap()
}

fn sealed(envelope: Envelope, secret: &str) -> SealedSecret {
    SealedSecret { envelope, preview: preview(secret) }
}

async fn make(world: &World, ring: &KeyRing, name: &str) -> Result<StoredCredential, StoreError> {
    let (id, workspace_id) = (world.uuid(), world.workspace().await);
    let place = first_place(workspace_id, id);
    let envelope = seal(ring, place, SECRET.as_bytes(), &SystemRandom::new()).unwrap();
    let new = NewCredential {
        id,
        workspace_id,
        name: name.to_owned(),
        provider: Some("stripe".to_owned()),
        description: None,
        secret: sealed(envelope, SECRET),
        created_by: Some("somebody".to_owned()),
    };
    world.store.change(async |changes| changes.create_credential(new).await).await
}

async fn opened(world: &World, ring: &KeyRing, name: &str) -> Result<String, KeyringError> {
    let workspace = world.workspace().await;
    let found =
        world.store.sealed_credentials(workspace, &[name.to_owned(), "none".to_owned()]).await.unwrap();
    let [found] = found.as_slice() else { panic!("{} of {name}", found.len()) };
    open(ring, found.place(), &found.envelope).map(|secret| secret.expose_secret().to_owned())
}

#[tokio::test]
async fn a_credential_reads_back_and_its_row_contains_no_plain_text() {
    let (world, ring) = (World::new().await, ring("a", &[("a", 1)]));
    let made = make(&world, &ring, "stripe").await.unwrap();
    assert_eq!(
        (made.version, made.preview.as_str(), made.provider.as_deref()),
        (1, "sk-…lt", Some("stripe"))
    );
    assert_eq!(opened(&world, &ring, "stripe").await.as_deref(), Ok(SECRET));
    let workspace = world.workspace().await;
    assert_eq!(world.store.credentials(workspace, None, 10).await.unwrap(), std::slice::from_ref(&made));
    assert_eq!(world.store.credentials(workspace, Some(made.id), 10).await.unwrap(), []);
    assert_eq!(world.store.credential(made.id).await.unwrap(), Some(made));
    assert_eq!(world.store.credential_names(workspace).await.unwrap(), ["stripe"]);
    assert_eq!(world.store.credential_names(Uuid::nil()).await.unwrap(), [""; 0]);
    let row = world.database.scalar("SELECT c::text FROM credentials c").await;
    assert!(!row.contains("canary") && !row.contains(&hex::encode("canary")), "{row}");
    // Names are unique within a workspace.
    let Err(StoreError::Taken(key)) = make(&world, &ring, "stripe").await else {
        panic!("it was created twice")
    };
    assert_eq!(StoreError::Taken(key).code(), wire::ErrorCode::CredentialNameTaken);
    assert!(format!("{:?}", world.store.sealed_credentials(workspace, &["stripe".into()]).await).len() < 120);
}

#[tokio::test]
async fn a_rotated_secret_replaces_the_previous_one() {
    let (world, ring) = (World::new().await, ring("a", &[("a", 1)]));
    let made = make(&world, &ring, "stripe").await.unwrap();
    let before = world.store.sealed_credentials(made.workspace_id, &["stripe".into()]).await.unwrap();
    let changed = world
        .store
        .change(async |changes| {
            let locked = changes.lock_credential(made.id).await?.unwrap();
            let envelope = seal(&ring, locked.place(2), b"another", &SystemRandom::new()).unwrap();
            let secret = Some(sealed(envelope, "another"));
            let change = CredentialChange { provider: Some(None), secret, ..CredentialChange::default() };
            changes.change_credential(&locked, change).await
        })
        .await
        .unwrap();
    assert_eq!((changed.version, changed.preview.as_str(), changed.provider), (2, "…", None));
    assert_eq!(opened(&world, &ring, "stripe").await.as_deref(), Ok("another"));
    // A restored old envelope is not accepted as the new one.
    let old = &before[0].envelope;
    let put_back = format!(
        "UPDATE credentials SET wrapped_key = '\\x{}', nonce = '\\x{}', ciphertext = '\\x{}'",
        hex::encode(&old.key.bytes),
        hex::encode(&old.nonce),
        hex::encode(&old.ciphertext)
    );
    store::testing::TestDatabase::execute(&world.database, &put_back).await.unwrap();
    assert_eq!(opened(&world, &ring, "stripe").await, Err(KeyringError::Tampered));
    let deleted = world.store.change(async |changes| changes.delete_credential(made.id).await).await;
    assert!(deleted.unwrap());
    assert!(!world.store.change(async |changes| changes.delete_credential(made.id).await).await.unwrap());
    assert_eq!(world.count("credentials").await, "0");
}

#[tokio::test]
async fn rekeying_covers_every_row_and_skips_rows_changed_meanwhile() {
    let (world, random) = (World::new().await, SystemRandom::new());
    let (old, both, new) = (ring("a", &[("a", 1)]), ring("b", &[("a", 1), ("b", 2)]), ring("b", &[("b", 2)]));
    for name in ["one", "two", "three"] {
        make(&world, &old, name).await.unwrap();
    }
    make(&world, &both, "four").await.unwrap();
    world.store.service_key("visitors", Some(&old)).await.unwrap();
    let keys = [("a".to_owned(), 3), ("b".to_owned(), 1)];
    assert_eq!(world.store.credential_keys().await.unwrap(), keys);
    for name in ["one", "four"] {
        assert_eq!(opened(&world, &both, name).await.as_deref(), Ok(SECRET), "mixed ids are readable");
    }
    assert_eq!(opened(&world, &new, "one").await, Err(KeyringError::Missing("a".into())));
    // In batches, and one credential is read before another caller changes it.
    let first = world.store.credentials_not_under("b", None, 1).await.unwrap();
    let rest = world.store.credentials_not_under("b", Some(first[0].id), 10).await.unwrap();
    assert_eq!((first.len(), rest.len()), (1, 2));
    for found in first.iter().chain(&rest) {
        let key = rewrap(&both, found.place(), &found.envelope.key, &random).unwrap();
        assert!(world.store.rewrap_credential(found, key.clone()).await.unwrap());
        assert!(!world.store.rewrap_credential(found, key).await.unwrap(), "it is a different one by now");
    }
    assert_eq!(world.store.credentials_not_under("b", None, 10).await.unwrap().len(), 0);
    for name in ["one", "two", "three", "four"] {
        assert_eq!(opened(&world, &new, name).await.as_deref(), Ok(SECRET));
    }
    let key = world.store.service_key("visitors", Some(&old)).await.unwrap();
    assert!(world.store.reseal_service_keys(&new).await.is_err(), "its key is needed once more");
    assert_eq!(world.store.reseal_service_keys(&both).await.unwrap(), 1);
    assert_eq!(world.store.reseal_service_keys(&both).await.unwrap(), 0);
    assert_eq!(world.store.service_key("visitors", Some(&new)).await.unwrap(), key);
}

#[tokio::test]
async fn deleting_a_workspace_deletes_its_secrets() {
    let (world, ring) = (World::new().await, ring("a", &[("a", 1)]));
    let new = NewWorkspace { slug: "other", name: "Other", owner: None };
    let other = world.store.change(async |changes| changes.create_workspace(new).await).await.unwrap();
    let made = make(&world, &ring, "stays").await.unwrap();
    let sql = format!(
        "INSERT INTO credentials SELECT gen_random_uuid(), '{}', 'goes', provider, description, preview, key_id, \
         wrapped_key, nonce, ciphertext, version, created_at, updated_at, created_by FROM credentials",
        other.id
    );
    store::testing::TestDatabase::execute(&world.database, &sql).await.unwrap();
    // A row that was moved to another workspace cannot be opened there.
    let moved = world.store.sealed_credentials(other.id, &["goes".into()]).await.unwrap();
    assert!(open(&ring, moved[0].place(), &moved[0].envelope).is_err());
    world.store.change(async |changes| changes.delete_workspace(other.id).await).await.unwrap();
    assert_eq!(world.store.credential_names(other.id).await.unwrap(), [""; 0]);
    assert_eq!(world.store.credential(made.id).await.unwrap().map(|found| found.name), Some("stays".into()));
}
