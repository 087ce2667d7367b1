//! Blobs.

use std::sync::Arc;

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Clock, ManualClock};
use store::{BlobUse, StoreError};
use uuid::Uuid;

use crate::support::World;

const CHUNK: usize = 256 * 1024;

/// Bytes whose period does not divide the chunk size.
fn bytes(length: usize) -> Vec<u8> {
    (0..251_u8).cycle().take(length).collect()
}

#[tokio::test]
async fn a_blob_of_any_size_reads_back() {
    let world = World::new().await;
    for (length, chunks) in
        [(0, "0"), (1, "1"), (CHUNK - 1, "1"), (CHUNK, "1"), (CHUNK + 1, "2"), (3 << 20, "12")]
    {
        world.database.execute("TRUNCATE blobs, blob_chunks, blob_uses").await.unwrap();
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
async fn damaged_bytes_are_never_returned() {
    let world = World::new().await;
    for damage in [
        "UPDATE blob_chunks SET bytes = set_byte(bytes, 0, 77) WHERE number = 1",
        "UPDATE blob_chunks SET number = -1 WHERE number = 1",
        "DELETE FROM blob_chunks WHERE number = 1",
        "DELETE FROM blob_chunks",
    ] {
        world.database.execute("TRUNCATE blobs, blob_chunks, blob_uses").await.unwrap();
        let address = world.store.put_blob(&bytes(CHUNK + 9)).await.unwrap();
        world.database.execute(damage).await.unwrap();
        let error = world.store.blob(&address).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt(_)), "{damage}: {error}");
    }
}

fn a_use(owner: u128, workspace: u128) -> BlobUse {
    BlobUse { kind: "attachment", owner: Uuid::from_u128(owner), workspace: Uuid::from_u128(workspace) }
}

#[tokio::test]
async fn a_blob_is_written_and_read_in_pieces() {
    let world = World::new().await;
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, (3 << 20) + 7] {
        world.database.execute("TRUNCATE blobs, blob_chunks, blob_uses").await.unwrap();
        let mut writer = world.store.write_blob(Uuid::from_u128(1));
        for piece in bytes(length).chunks(100_003) {
            writer.write(piece).await.unwrap();
        }
        assert_eq!(writer.size(), length as u64);
        let address = writer.finish(a_use(7, 1)).await.unwrap();
        assert_eq!(world.store.blob(&address).await.unwrap(), Some(bytes(length)), "{length} bytes");
        let mut reader = world.store.read_blob(address).await.unwrap().unwrap();
        assert_eq!(reader.size(), length as u64);
        let mut read = Vec::new();
        while let Some(chunk) = reader.next().await.unwrap() {
            assert!(chunk.len() <= CHUNK);
            read.extend(chunk);
        }
        assert!(read == bytes(length), "{length} bytes");
        assert_eq!(
            (world.count("upload_chunks").await, world.count("blob_uses").await),
            ("0".into(), "1".into())
        );
    }
    assert!(world.store.read_blob([0; 32]).await.unwrap().is_none());
}

#[tokio::test]
async fn the_same_bytes_in_two_uploads_are_one_blob_with_two_uses() {
    let world = World::new().await;
    let mut addresses = Vec::new();
    for upload in 1..=2 {
        let mut writer = world.store.write_blob(Uuid::from_u128(upload));
        writer.write(&bytes(CHUNK + 5)).await.unwrap();
        addresses.push(writer.finish(a_use(upload, upload)).await.unwrap());
    }
    assert_eq!(addresses[0], addresses[1]);
    assert_eq!((world.count("blob_chunks").await, world.count("blob_uses").await), ("2".into(), "2".into()));
}

#[tokio::test]
async fn damage_is_detected_before_the_last_piece_is_returned() {
    let world = World::new().await;
    for damage in [
        "UPDATE blob_chunks SET bytes = set_byte(bytes, 0, 77) WHERE number = 0",
        "DELETE FROM blob_chunks WHERE number = 1",
        "UPDATE blob_chunks SET bytes = bytes || bytes WHERE number = 1",
    ] {
        world.database.execute("TRUNCATE blobs, blob_chunks, blob_uses").await.unwrap();
        let address = world.store.put_blob(&bytes(CHUNK + 9)).await.unwrap();
        world.database.execute(damage).await.unwrap();
        let mut reader = world.store.read_blob(address).await.unwrap().unwrap();
        reader.next().await.unwrap().unwrap();
        let error = reader.next().await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt(_)), "{damage}: {error}");
    }
}

#[tokio::test]
async fn a_used_blob_is_kept_and_an_aborted_upload_is_deleted() {
    let clock = Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH + TimeDelta::days(20_000)));
    let world = World::at(clock.clone()).await;
    let address = world.store.put_blob(b"used").await.unwrap();
    assert!(world.store.use_blob(&address, a_use(7, 1)).await.unwrap());
    assert!(world.store.use_blob(&address, a_use(8, 1)).await.unwrap());
    assert!(!world.store.use_blob(&[9; 32], a_use(7, 1)).await.unwrap());
    let mut left = world.store.write_blob(Uuid::from_u128(1));
    left.write(&bytes(CHUNK)).await.unwrap();
    let mut slow = world.store.write_blob(Uuid::from_u128(2));
    slow.write(&bytes(CHUNK)).await.unwrap();
    clock.advance(std::time::Duration::from_secs(3_601));
    slow.write(&bytes(CHUNK)).await.unwrap();
    world.store.forget_old_uploads(clock.now() - TimeDelta::hours(1)).await.unwrap();
    assert_eq!(world.count("upload_chunks").await, "2");
    slow.finish(a_use(9, 1)).await.unwrap();
    assert!(matches!(left.finish(a_use(9, 1)).await, Err(StoreError::Corrupt(_))));
    let tidy = async || {
        let looked = world.store.forget_old_blobs(clock.now() + TimeDelta::seconds(1), None).await;
        assert!(looked.unwrap().is_none());
        world.store.blob(&address).await.unwrap().is_some()
    };
    assert!(tidy().await);
    world.store.forget_uses("attachment", Uuid::from_u128(7)).await.unwrap();
    assert!(tidy().await, "another use is left");
    world.store.forget_uses("attachment", Uuid::from_u128(8)).await.unwrap();
    assert!(!tidy().await);
    assert_eq!(world.count("blobs").await, "1", "only the blob of the finished upload");
}
