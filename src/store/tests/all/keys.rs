//! Keys that the service generates.

use auth::keyring::KeyRing;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::{Map, json};
use store::StoreError;

use crate::support::World;

fn ring(active: &str, keys: &[(&str, u8)]) -> KeyRing {
    let keys: Map<_, _> =
        keys.iter().map(|(id, byte)| ((*id).to_owned(), json!(STANDARD.encode([*byte; 32])))).collect();
    KeyRing::parse(&json!({"active": active, "keys": keys}).to_string()).unwrap()
}

#[tokio::test]
async fn concurrent_requests_create_one_key() {
    let world = World::new().await;
    let requests = (0..10).map(|_| {
        let store = world.store.clone();
        tokio::spawn(
            async move { store.service_key("visitors", Some(&ring("a", &[("a", 1)]))).await.unwrap() },
        )
    });
    let keys: Vec<Vec<u8>> = join_all(requests).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(keys[0].len(), 32);
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_ne!(world.store.service_key("sessions", None).await.unwrap(), keys[0]);
    assert_eq!(world.count("service_keys").await, "2");
}

#[tokio::test]
async fn a_sealed_key_is_readable_as_long_as_its_vault_key_is_kept() {
    let world = World::new().await;
    let key = world.store.service_key("k", Some(&ring("a", &[("a", 1)]))).await.unwrap();
    let stored = world.database.scalar("SELECT encode(key, 'hex') FROM service_keys").await;
    assert!(!stored.contains(&hex::encode(&key)));
    assert_eq!(world.database.scalar("SELECT sealed_under FROM service_keys").await, "a");

    let rotated = ring("b", &[("a", 1), ("b", 2)]);
    assert_eq!(world.store.service_key("k", Some(&rotated)).await.unwrap(), key);
    let gone = ring("b", &[("b", 2)]);
    for ring in [Some(&gone), None] {
        let error = world.store.service_key("k", ring).await.unwrap_err();
        assert!(matches!(error, StoreError::Key(_)), "{error}");
        assert_eq!(error.to_string(), "the vault key \"a\" is missing; add it to SERVICE_VAULT_KEYS again");
    }
    // A key cannot replace another one.
    world.database.execute("UPDATE service_keys SET name = 'moved'").await.unwrap();
    let error = world.store.service_key("moved", Some(&rotated)).await.unwrap_err();
    assert!(error.to_string().contains("changed or moved"), "{error}");
}

#[tokio::test]
async fn a_key_stored_without_a_ring_stays_readable_with_one() {
    let world = World::new().await;
    let key = world.store.service_key("k", None).await.unwrap();
    assert_eq!(world.database.scalar("SELECT encode(key, 'hex') FROM service_keys").await, hex::encode(&key));
    assert_eq!(world.store.service_key("k", None).await.unwrap(), key);
    assert_eq!(world.store.service_key("k", Some(&ring("a", &[("a", 1)]))).await.unwrap(), key);
}
