//! Search indexes over HTTP: workflows that fill them and workflows that search them.

use client::{Client, RunOptions};
use integration_tests::{AnswerExt, Endpoint, TestService, Workflow, WorkflowBuilder, graphs, until};
use serde_json::{Value, json};
use store::testing::TestDatabase;
use wire::CreateRun;

use crate::crash::service::Service;
use crate::crash::wait_for_suspects;

/// The tables' counts, and the counts in the indexes; vectors and frequencies appear once per chunk.
const FIGURES: &str = "SELECT concat_ws(' ', (SELECT count(*) FROM search_documents), (SELECT count(*) FROM search_chunks),
    (SELECT count(*) FROM search_chunks WHERE vector IS NOT NULL), (SELECT sum(frequency) FROM search_postings), '=',
    sum(chunks), sum(vectors), sum(length)) FROM search_indexes";

async fn run(t: &TestService, workflow: &Workflow, inputs: Value) -> Value {
    t.post(&workflow.path("/runs?wait=30"), &json!({"inputs": inputs}).to_string()).await.value()
}

/// Chunks, embeds and indexes a text.
fn keeping() -> Value {
    graphs::chain(
        &[
            json!({"name": "parts", "type": "chunk", "text": "{{ inputs.text }}", "by": "paragraphs", "size": 30,
                   "metadata": {"language": "{{ inputs.language | default('en') }}"}}),
            json!({"name": "vectors", "type": "embed", "model": "openai/test",
                   "input": "{{ results.parts.chunks | map(attribute='text') | list }}"}),
            json!({"name": "keep", "type": "index_upsert", "index": "{{ inputs.index | default('stories') }}",
                   "document": "{{ inputs.document }}", "chunks": "{{ results.parts.chunks }}",
                   "vectors": "{{ results.vectors.vectors }}"}),
        ],
        Some(json!("{{ results.keep }}")),
    )
}

/// Searches in each mode.
fn searching() -> Value {
    let search = |mode: &str| {
        json!({"name": mode, "type": "index_search", "index": "stories", "mode": mode, "query": "{{ inputs.query }}",
               "vector": "{{ results.embedded.vector }}", "filter": {"language": "en"}})
    };
    graphs::chain(
        &[
            json!({"name": "embedded", "type": "embed", "model": "openai/test", "input": "{{ inputs.query }}"}),
            search("text"),
            search("vector"),
            search("hybrid"),
        ],
        Some(json!({"text": "{{ results.text.hits }}", "vector": "{{ results.vector.hits }}",
                    "hybrid": "{{ results.hybrid.hits }}"})),
    )
}

fn texts(hits: &Value) -> Vec<&str> {
    hits.as_array().unwrap().iter().map(|hit| hit["text"].as_str().unwrap()).collect()
}

fn near(hit: &Value, score: f64) -> bool {
    (hit["score"].as_f64().unwrap() - score).abs() < 1e-6
}

const STORY: &str = "A quick brown fox\n\nxof nworb kciuq a\n\nZebras doze, zzz";

#[tokio::test]
async fn documents_are_found_by_text_by_vectors_and_by_both() {
    let endpoint = Endpoint::quick().await;
    let t = endpoint.service().await;
    let keep = t.workflow().graph(keeping()).create().await;
    let search = t.workflow().graph(searching()).create().await;
    let nothing = run(&t, &search, json!({"query": "fox"})).await;
    assert_eq!(
        (&nothing["error"]["code"], &nothing["error"]["node"]),
        (&json!("index.not_found"), &json!("text"))
    );
    let stored = run(&t, &keep, json!({"document": "a.md", "text": STORY})).await;
    assert_eq!(
        stored["output"],
        json!({"index": "stories", "document": "a.md", "chunks": 3, "replaced": 0}),
        "{stored}"
    );
    let german = json!({"document": "b.md", "text": "Der quick brown fox", "language": "de"});
    assert_eq!(run(&t, &keep, german).await["output"]["chunks"], 1);

    let found = run(&t, &search, json!({"query": "the BROWN fox: quick!"})).await;
    let [words, vectors, both] = ["text", "vector", "hybrid"].map(|mode| &found["output"][mode]);
    assert_eq!(texts(words), ["A quick brown fox"], "{found}");
    assert_eq!(words[0]["metadata"], json!({"language": "en"}));
    // The same letters: both are equally near, and the first comes first.
    assert_eq!(texts(vectors), STORY.split("\n\n").collect::<Vec<_>>());
    assert_eq!(vectors[0]["score"], vectors[1]["score"]);
    assert_eq!(texts(both), texts(vectors));
    assert!(near(&both[0], 2.0 / 61.0) && near(&both[1], 1.0 / 62.0) && near(&both[2], 1.0 / 63.0), "{both}");
    assert_eq!(
        (&both[0]["rank_text"], &both[0]["rank_vector"], &both[1]["rank_text"]),
        (&json!(1), &json!(1), &Value::Null)
    );

    // Indexing the same document again gives the same index, and a shorter one leaves no old chunks.
    let before = t.scalar(FIGURES).await;
    let (tables, figures) = before.split_once(" = ").unwrap();
    assert!(tables.starts_with("2 4 4 ") && tables.ends_with(&figures[2..]), "{before}");
    for replaced in [3, 3] {
        let again = run(&t, &keep, json!({"document": "a.md", "text": STORY})).await;
        assert_eq!(again["output"]["replaced"], replaced);
        assert_eq!(t.scalar(FIGURES).await, before);
    }
    run(&t, &keep, json!({"document": "a.md", "text": "Nothing of it"})).await;
    let found = run(&t, &search, json!({"query": "fox"})).await;
    assert_eq!(texts(&found["output"]["text"]), [""; 0], "the other one is German");
    assert_eq!(t.scalar(FIGURES).await, "2 2 2 7 = 2 2 7");
}

#[tokio::test]
async fn an_index_rejects_invalid_chunks_without_a_change() {
    let endpoint = Endpoint::quick().await;
    let t = endpoint.service().await;
    let keep = t.workflow().graph(keeping()).create().await;
    run(&t, &keep, json!({"document": "a", "text": STORY})).await;
    let before = t.scalar(FIGURES).await;
    let plain = |fields: Value| {
        let mut node = json!({"name": "keep", "type": "index_upsert", "index": "stories", "document": "b",
                              "chunks": "{{ inputs.chunks }}"});
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        graphs::chain(&[node], Some(json!("{{ results.keep }}")))
    };
    let failing = async |graph: Value, inputs: Value| {
        let workflow = t.workflow().graph(graph).create().await;
        let ended = run(&t, &workflow, inputs).await;
        assert_eq!(ended["status"], "failed", "{ended}");
        let error = |member: &str| ended["error"][member].as_str().unwrap().to_owned();
        (error("code"), error("message"))
    };
    let (code, message) =
        failing(plain(json!({})), json!({"chunks": [{"text": "a", "vector": [1, 2]}]})).await;
    assert_eq!(code, "index.dimensions");
    assert_eq!(message, "the vectors of 'stories' have 26 numbers, this one has 2");
    let search =
        json!({"name": "s", "type": "index_search", "index": "stories", "mode": "vector", "vector": [1, 2]});
    assert_eq!(failing(graphs::chain(&[search], None), json!({})).await.0, "index.dimensions");
    let (code, message) = failing(plain(json!({})), json!({"chunks": vec!["a"; 10_001]})).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("node.failed", "10001 chunks; a document has at most 10000")
    );
    let (code, _) = failing(plain(json!({"document": "x".repeat(201)})), json!({"chunks": ["a"]})).await;
    assert_eq!(code, "node.failed");
    let (_, message) =
        failing(plain(json!({})), json!({"chunks": [{"text": "a", "metadata": {"m": "x".repeat(9_000)}}]}))
            .await;
    assert!(message.contains("more than 8192 bytes"), "{message}");
    t.execute("UPDATE search_indexes SET chunks = 49999").await;
    let (code, message) = failing(plain(json!({})), json!({"chunks": ["a", "b"]})).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("index.full", "'stories' would have 50001 chunks; at most 50000")
    );
    t.execute("UPDATE search_indexes SET chunks = 3").await;
    assert_eq!(t.scalar(FIGURES).await, before);
}

#[tokio::test]
async fn indexes_are_separate_in_each_workspace() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let elsewhere = root.token(&["workflows:read", "workflows:write", "workflows:execute"], &["other"]).await;
    let elsewhere = Client::builder(t.client().base()).service_token(elsewhere.into()).build().unwrap();
    let keep = json!({"name": "keep", "type": "index_upsert", "index": "same", "document": "d", "chunks": ["{{ inputs.text }}"]});
    let find = json!({"name": "find", "type": "index_search", "index": "same", "query": "secret"});
    let keep = graphs::chain(&[keep], Some(json!("{{ results.keep.replaced }}")));
    let find = graphs::chain(&[find], Some(json!("{{ results.find.hits }}")));
    let go = async |workflow: &Workflow, text: &str| {
        root.post(&workflow.path("/runs?wait=30"), &json!({"inputs": {"text": text}})).await.value()
    };
    let ours = t.workflow().graph(keep.clone()).create().await;
    assert_eq!(go(&ours, "our secret").await["output"], 0);
    let theirs = t.workflow().by(elsewhere.clone()).graph(find).create().await;
    assert_eq!(go(&theirs, "").await["error"]["code"], "index.not_found");
    let keeps = t.workflow().by(elsewhere).graph(keep).create().await;
    assert_eq!(go(&keeps, "their word").await["output"], 0, "indexes of other workspaces are not replaced");
    assert_eq!(go(&theirs, "").await["output"], json!([]));
}

#[tokio::test]
async fn kills_leave_neither_duplicate_nor_partial_documents() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::new(folder.path(), Some(database.dsn()));
    service.start();
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let graph = graphs::chain(
        &[
            json!({"name": "parts", "type": "chunk", "text": "{{ inputs.text }}", "by": "words", "size": 4}),
            json!({"name": "keep", "type": "index_upsert", "index": "i", "document": "{{ inputs.document }}",
                   "chunks": "{{ results.parts.chunks }}"}),
        ],
        Some(json!("{{ results.keep.chunks }}")),
    );
    until("the service is ready", async || client.workflows().await.is_ok()).await;
    let workflow = WorkflowBuilder::new(client.clone()).graph(graph).create().await.id;
    let text: String = (0..400).map(|number| format!("word{} ", number % 90)).collect();
    for kill in 0..4_u64 {
        for number in 0..12 {
            let inputs = json!({"text": text, "document": format!("d{}", number % 6)});
            let run = CreateRun { inputs: Some(inputs), ..CreateRun::default() };
            client.begin_run(&workflow, &run, &RunOptions::default()).await.unwrap();
        }
        integration_tests::pause(40 * kill).await;
        wait_for_suspects(&database).await;
        service.kill();
        service.start();
        until("the service is ready", async || client.workflows().await.is_ok()).await;
    }
    let left = "SELECT count(*)::text FROM runs WHERE status <> 'succeeded'";
    until("every run succeeds", async || database.scalar(left).await == "0").await;
    let chunks = database.scalar("SELECT DISTINCT output FROM runs").await;
    let chunks: u32 = chunks.parse().unwrap();
    assert!(chunks > 90, "{chunks}");
    let all = chunks * 6;
    assert_eq!(database.scalar(FIGURES).await, format!("6 {all} 0 2400 = {all} 0 2400"));
    service.stop();
}

#[tokio::test]
async fn indexes_are_listed_and_deleted_with_their_documents() {
    let mut t = TestService::start().await;
    let keep = json!({"name": "keep", "type": "index_upsert", "index": "{{ inputs.index }}", "document": "{{ inputs.document }}",
                      "chunks": ["some words", "other words"]});
    let keep = t.workflow().graph(graphs::chain(&[keep], None)).create().await;
    for (index, document) in [("stories", "a"), ("stories", "b"), ("a name/with ö", "a")] {
        let stored = run(&t, &keep, json!({"index": index, "document": document})).await;
        assert_eq!(stored["status"], "succeeded", "{stored}");
    }
    let list = t.get("/api/indexes").await.value();
    assert_eq!(
        list["data"],
        json!([{"name": "a name/with ö", "documents": 1, "chunks": 2, "vectors": 0, "dimensions": null},
               {"name": "stories", "documents": 2, "chunks": 4, "vectors": 0, "dimensions": null}])
    );
    let first = t.get("/api/indexes?limit=1").await.value();
    let rest =
        t.get(&format!("/api/indexes?cursor={}", first["next_cursor"].as_str().unwrap())).await.value();
    assert_eq!(rest["data"][0]["name"], "stories");
    assert_eq!(t.send("DELETE", "/api/indexes/stories", &[], "").await.status, 204);
    assert_eq!(t.send("DELETE", "/api/indexes/stories", &[], "").await.refusal(), "404 index.not_found");
    assert_eq!(t.send("DELETE", "/api/indexes/a%20name%2Fwith%20%C3%B6", &[], "").await.status, 204);
    assert_eq!(t.get("/api/indexes").await.value()["data"], json!([]));
    assert_eq!(t.scalar("SELECT count(*) FROM audit_log WHERE action = 'search_index.deleted'").await, "2");
    // Another index with the same name is a new one.
    run(&t, &keep, json!({"index": "stories", "document": "c"})).await;
    assert_eq!(t.get("/api/indexes").await.value()["data"][0]["chunks"], 2);
    t.restart().await;
    until("the deleted ones are erased", async || {
        t.scalar(
            "SELECT (SELECT count(*) FROM search_documents) || ' ' || (SELECT count(*) FROM search_chunks)",
        )
        .await
            == "1 2"
    })
    .await;
    let orphans = "SELECT count(*) FROM search_postings p WHERE NOT EXISTS
                   (SELECT FROM search_chunks c WHERE (c.index_id, c.document_id) = (p.index_id, p.document_id))";
    assert_eq!(t.scalar(orphans).await, "0");
}
