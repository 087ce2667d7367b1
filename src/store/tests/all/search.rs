//! Search indexes: stored chunks are found, with the same scores as a plain calculation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use serde_json::{Value, json};
use store::testing::TestDatabase;
use store::{IndexRefusal, MOST_INDEXED_CHUNKS, NewChunk, Store};
use uuid::Uuid;

const WORDS: [&str; 6] = ["red", "green", "blue", "größe", "'", "it's"];

fn chunk(words: &[&str], metadata: Value, vector: Option<Vec<u8>>) -> NewChunk {
    let mut terms: BTreeMap<String, i32> = BTreeMap::new();
    words.iter().for_each(|word| *terms.entry((*word).to_owned()).or_default() += 1);
    let length = i32::try_from(words.len()).unwrap();
    NewChunk { text: words.join(" "), metadata, vector, length, terms: terms.into_iter().collect() }
}

fn plain(words: &[&str]) -> NewChunk {
    chunk(words, json!({}), None)
}

async fn put(store: &Store, workspace: Uuid, document: &str, chunks: &[NewChunk]) -> i64 {
    store.index_document(workspace, "i", document, chunks, None).await.unwrap().unwrap()
}

/// Document, number and score, in name order.
async fn found(
    store: &Store,
    workspace: Uuid,
    terms: &[&str],
    filter: Option<Value>,
) -> Vec<(String, i32, f64)> {
    let index = store.search_index(workspace, "i").await.unwrap().unwrap();
    let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
    let scored = store.search_text(index.id, &terms, filter.as_ref(), 1_000).await.unwrap();
    assert!(scored.is_sorted_by(|a, b| a.1 >= b.1), "{scored:?}");
    let places: Vec<_> = scored.iter().map(|(place, _)| *place).collect();
    let chunks = store.search_chunks(index.id, &places).await.unwrap();
    let named = |(place, score): &((i64, i32), f64)| {
        let chunk = chunks.iter().find(|chunk| (chunk.document_id, chunk.number) == *place).unwrap();
        (chunk.document.clone(), chunk.number, *score)
    };
    let mut all: Vec<_> = scored.iter().map(named).collect();
    all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    all
}

/// Textbook BM25.
fn expected(all: &BTreeMap<String, Vec<NewChunk>>, terms: &[&str]) -> Vec<(String, i32, f64)> {
    let chunks: Vec<&NewChunk> = all.values().flatten().collect();
    let n = chunks.len() as f64;
    let average = chunks.iter().map(|chunk| f64::from(chunk.length)).sum::<f64>() / n;
    let frequency = |chunk: &NewChunk, term: &str| {
        chunk.terms.iter().find(|(own, _)| own == term).map_or(0.0, |(_, count)| f64::from(*count))
    };
    let mut scored = Vec::new();
    for (document, chunks_of) in all {
        for (number, chunk) in (0..).zip(chunks_of) {
            let score: f64 = terms
                .iter()
                .map(|term| {
                    let df = chunks.iter().filter(|chunk| frequency(chunk, term) > 0.0).count() as f64;
                    let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
                    let f = frequency(chunk, term);
                    idf * f * 2.2 / (f + 1.2 * (1.0 - 0.75 + 0.75 * f64::from(chunk.length) / average))
                })
                .sum();
            if score > 0.0 {
                scored.push((document.clone(), number, score));
            }
        }
    }
    scored
}

fn assert_same(found: &[(String, i32, f64)], expected: &[(String, i32, f64)]) {
    assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
    for (a, b) in found.iter().zip(expected) {
        assert!((&a.0, a.1) == (&b.0, b.1) && (a.2 - b.2).abs() < 1e-9, "{a:?} {b:?}");
    }
}

#[tokio::test]
async fn scores_equal_a_direct_calculation_after_any_changes() {
    let database = TestDatabase::create().await;
    let (store, workspace) = (database.store().await, Uuid::from_u128(1));
    let seed = AtomicU64::new(7);
    let draw = |below: usize| {
        let next = seed.load(Ordering::Relaxed).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed.store(next, Ordering::Relaxed);
        usize::try_from(next >> 33).unwrap() % below
    };
    let mut all: BTreeMap<String, Vec<NewChunk>> = BTreeMap::new();
    for round in 0..40 {
        let document = format!("d{}", draw(6));
        let chunks: Vec<NewChunk> =
            (0..draw(4)).map(|_| plain(&(0..draw(8)).map(|_| WORDS[draw(6)]).collect::<Vec<_>>())).collect();
        let had = all.get(&document).map_or(0, Vec::len);
        // Indexing the same chunks twice gives the same index.
        for had in [had, chunks.len()].into_iter().take(1 + round % 2) {
            let replaced = put(&store, workspace, &document, &chunks).await;
            if round == 0 && chunks.is_empty() {
                assert_eq!(replaced, 0);
            } else {
                assert_eq!(replaced, i64::try_from(had).unwrap(), "round {round}");
            }
        }
        all.insert(document, chunks);
        if store.search_index(workspace, "i").await.unwrap().is_some() {
            let terms = [WORDS[round % 6], WORDS[(round / 6 % 5 + round + 1) % 6]];
            assert_same(&found(&store, workspace, &terms, None).await, &expected(&all, &terms));
        }
    }
    for document in all.keys() {
        put(&store, workspace, document, &[]).await;
    }
    let left = "SELECT (SELECT count(*) FROM search_documents) + (SELECT count(*) FROM search_chunks) \
                + (SELECT count(*) FROM search_postings) + (SELECT sum(chunks + length + vectors) FROM search_indexes)";
    assert_eq!(database.scalar(&format!("SELECT ({left})::text")).await, "0");
}

#[tokio::test]
async fn a_filter_compares_members_and_workspaces_are_separate() {
    let database = TestDatabase::create().await;
    let (store, workspace) = (database.store().await, Uuid::from_u128(1));
    let metadata =
        [json!({"a": 1, "b": "x"}), json!({"a": [1]}), json!({"a": "1"}), json!({"a": {"c": 1}}), json!({})];
    let chunks: Vec<NewChunk> =
        metadata.into_iter().map(|metadata| chunk(&["red"], metadata, None)).collect();
    put(&store, workspace, "d", &chunks).await;
    put(&store, Uuid::from_u128(2), "d", &[plain(&["red"])]).await;
    for (filter, numbers) in [
        (json!({"a": 1}), vec![0]),
        (json!({"a": 1, "b": "y"}), vec![]),
        (json!({"a": "1"}), vec![2]),
        (json!({}), vec![0, 1, 2, 3, 4]),
    ] {
        let hits = found(&store, workspace, &["red"], Some(filter.clone())).await;
        assert_eq!(hits.iter().map(|hit| hit.1).collect::<Vec<_>>(), numbers, "{filter}");
    }
    assert_eq!(store.search_index(workspace, "other").await.unwrap(), None);
}

#[tokio::test]
async fn an_index_has_a_size_limit_and_one_vector_length() {
    let database = TestDatabase::create().await;
    let (store, workspace) = (database.store().await, Uuid::from_u128(1));
    let vector = |length: u8| Some(vec![length; usize::from(length) * 4]);
    let with = |length: u8| [chunk(&["red"], json!({}), vector(length)), plain(&["blue"])];
    let index = async |document: &str, length: u8| {
        let chunks = with(length);
        store.index_document(workspace, "i", document, &chunks, Some(length.into())).await.unwrap()
    };
    assert_eq!(index("a", 3).await, Ok(0));
    assert_eq!(index("b", 4).await, Err(IndexRefusal::Dimensions(3)));
    assert_eq!(index("a", 4).await, Ok(2), "nothing else has vectors");
    assert_eq!(index("b", 4).await, Ok(0));
    let known = store.search_index(workspace, "i").await.unwrap().unwrap();
    assert_eq!((known.chunks, known.vectors, known.dimensions), (4, 2, Some(4)));
    let first = store.search_vectors(known.id, (0, 0), None, 1).await.unwrap();
    let rest = store.search_vectors(known.id, first[0].0, None, 9).await.unwrap();
    assert_eq!((first[0].1.clone(), rest.len()), (vector(4).unwrap(), 1));

    // Simulates a nearly full index.
    let most = MOST_INDEXED_CHUNKS - 1;
    database.execute(&format!("UPDATE search_indexes SET chunks = {most}")).await.unwrap();
    let refused = store.index_document(workspace, "i", "c", &with(4), Some(4)).await.unwrap();
    assert_eq!(refused, Err(IndexRefusal::Full(MOST_INDEXED_CHUNKS + 1)));
    assert_eq!(put(&store, workspace, "a", &[plain(&["red"])]).await, 2);
    assert_eq!(database.scalar("SELECT count(*)::text FROM search_documents").await, "2");
}

#[tokio::test]
async fn documents_are_written_concurrently() {
    let database = TestDatabase::create().await;
    let (store, workspace) = (database.store().await, Uuid::from_u128(1));
    let chunks = [plain(&["red", "blue"]), plain(&["green"])];
    let names: Vec<String> = (0..24).map(|number| format!("d{}", number % 8)).collect();
    join_all(names.iter().map(|name| put(&store, workspace, name, &chunks))).await;
    let known = store.search_index(workspace, "i").await.unwrap().unwrap();
    assert_eq!(known.chunks, 16);
    let all = (0..8).map(|number| (format!("d{number}"), chunks.to_vec())).collect();
    assert_same(&found(&store, workspace, &["red"], None).await, &expected(&all, &["red"]));
}
