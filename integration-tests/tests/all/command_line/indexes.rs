//! `callboard index …`, and `callboard workspace show`: a workspace's usage, and how to reduce it.

use integration_tests::{AnswerExt, BOOTSTRAP, TestService, graphs, until};
use serde_json::{Value, json};

use super::terminal::Terminal;

#[tokio::test]
async fn an_index_is_listed_and_deleted() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let terminal = Terminal::for_service(&t).with_token(BOOTSTRAP);
    let none = terminal.run(&["index", "list"]).await;
    assert_eq!((none.status, none.out.as_str()), (Some(0), ""));
    assert!(none.err.starts_with("No search indexes found."), "{}", none.err);

    let put = |name: &str, index: &str, chunk: Value| json!({"name": name, "type": "index_upsert", "index": index, "document": "d", "chunks": [chunk]});
    let words = put("words", "hand book/ä", json!({"text": "words", "metadata": {}}));
    let numbers = put("numbers", "vectors", json!({"text": "words", "metadata": {}, "vector": [1, 2, 3]}));
    let keeps = t.workflow().graph(graphs::chain(&[words, numbers], None)).create().await;
    let ran = t.root().post(&keeps.path("/runs?wait=20"), &json!({})).await.value();
    assert_eq!(ran["status"], "succeeded", "{ran}");
    let listed = terminal.output_of(&["index", "list"]).await;
    let lines: Vec<&str> = listed.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "NAME         DOCUMENTS  CHUNKS  VECTORS",
            "hand book/ä  1          1       -",
            "vectors      1          1       1 of 3 numbers",
        ]
    );

    let unconfirmed = terminal.run(&["index", "delete", "hand book/ä"]).await;
    assert!(
        unconfirmed.status == Some(2) && unconfirmed.err.contains("--yes"),
        "{:?} {}",
        unconfirmed.status,
        unconfirmed.err
    );
    let deleted = terminal.output_of(&["index", "delete", "hand book/ä", "--yes"]).await;
    assert_eq!(deleted, "Deleted search index hand book/ä.\n");
    let again = terminal.run(&["index", "delete", "hand book/ä", "--yes"]).await;
    assert!(again.status == Some(1) && again.err.contains("(index.not_found)"), "{}", again.err);
    assert!(again.err.contains("callboard index list"), "{}", again.err);
    let near = terminal.run(&["index", "delete", "vektors", "--yes"]).await;
    assert!(
        near.err.contains("The search index 'vektors' was not found; did you mean 'vectors'?"),
        "{}",
        near.err
    );
    let left = terminal.json_of(&["index", "list", "--output", "json"]).await;
    assert_eq!(
        left,
        json!([{"name": "vectors", "documents": 1, "chunks": 1, "vectors": 1, "dimensions": 3}])
    );
}

#[tokio::test]
async fn a_workspace_is_shown_with_its_storage_use() {
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_WORKSPACE_STORAGE_BYTES", "1572864")
        .start()
        .await;
    let terminal = Terminal::for_service(&t).with_token(BOOTSTRAP);
    until("the storage use to be measured", async || {
        t.scalar("SELECT count(*) FROM workspace_usage").await != "0"
    })
    .await;
    let shown = terminal.output_of(&["workspace", "show", "default"]).await;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("default \"") && lines[0].contains("\", created 20"), "{shown}");
    assert!(lines[1].starts_with("It uses about 0 bytes of 1.5 MiB, as of 20"), "{shown}");
    assert_eq!(t.root().post("/api/workspaces", &json!({"slug": "new"})).await.status, 201);
    let new = terminal.output_of(&["workspace", "show", "new"]).await;
    assert!(
        new.contains("\nIts storage use has not been measured yet.\nReplies of models are kept "),
        "{new}"
    );
    let json = terminal.json_of(&["workspace", "show", "default", "--output", "json"]).await;
    assert_eq!(json["storage"]["limit"], 1_572_864);
    let unknown = terminal.run(&["workspace", "show", "gone"]).await;
    assert!(unknown.status == Some(1) && unknown.err.contains("(workspace.not_found)"), "{}", unknown.err);
}
