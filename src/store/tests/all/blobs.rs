//! Blobs.

use futures_util::future::join_all;
use store::StoreError;

use crate::support::World;

const CHUNK: usize = 256 * 1024;

/// Bytes that repeat in no chunk's rhythm.
fn bytes(length: usize) -> Vec<u8> {
    (0..251_u8).cycle().take(length).collect()
}

#[tokio::test]
async fn a_blob_of_any_size_reads_back() {
    let world = World::new().await;
    for (length, chunks) in
        [(0, "0"), (1, "1"), (CHUNK - 1, "1"), (CHUNK, "1"), (CHUNK + 1, "2"), (3 << 20, "12")]
    {
        world.database.execute("TRUNCATE blobs, blob_chunks").await.unwrap();
        let address = world.store.put_blob(&bytes(length)).await.unwrap();
        assert_eq!(world.store.blob(&address).await.unwrap(), Some(bytes(length)), "{length} bytes");
        assert_eq!(world.count("blob_chunks").await, chunks, "{length} bytes");
        assert_eq!(world.database.scalar("SELECT size FROM blobs").await, length.to_string());
    }
    assert_eq!(world.store.blob(&[0; 32]).await.unwrap(), None);
}

#[tokio::test]
async fn the_same_bytes_are_stored_once() {
    let world = World::new().await;
    let puts = (0..10).map(|_| {
        let store = world.store.clone();
        tokio::spawn(async move { store.put_blob(&bytes(CHUNK + 1)).await.unwrap() })
    });
    let addresses: Vec<_> = join_all(puts).await.into_iter().map(Result::unwrap).collect();
    assert!(addresses.iter().all(|address| *address == addresses[0]));
    assert_eq!((world.count("blobs").await, world.count("blob_chunks").await), ("1".into(), "2".into()));
    assert_eq!(world.store.blob(&addresses[0]).await.unwrap(), Some(bytes(CHUNK + 1)));
}

#[tokio::test]
async fn damaged_bytes_are_never_handed_out() {
    let world = World::new().await;
    for damage in [
        "UPDATE blob_chunks SET bytes = set_byte(bytes, 0, 77) WHERE number = 1",
        "UPDATE blob_chunks SET number = -1 WHERE number = 1",
        "DELETE FROM blob_chunks WHERE number = 1",
        "DELETE FROM blob_chunks",
    ] {
        world.database.execute("TRUNCATE blobs, blob_chunks").await.unwrap();
        let address = world.store.put_blob(&bytes(CHUNK + 9)).await.unwrap();
        world.database.execute(damage).await.unwrap();
        let error = world.store.blob(&address).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt(_)), "{damage}: {error}");
    }
}
