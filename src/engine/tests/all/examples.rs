//! The graphs in `examples/` and in `docs/WORKFLOWS.md`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ports::{graph, plan, template};
use crate::world::World;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(name: &str) -> Value {
    let path = root().join("examples").join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_example_is_accepted() {
    let mut count = 0;
    let mut paths = vec![root().join("examples")];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let document: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if document.get("format").is_some() {
            let problems = engine::check(&document).err();
            assert!(problems.is_none(), "{}: {problems:#?}", path.display());
            count += 1;
        }
    }
    assert!(count >= 10);
}

#[tokio::test]
async fn slow_count_counts_with_pauses() {
    let world = World::new().inputs(json!({"count": 4}));
    let output = world.run(&plan(&example("slow-count"))).await;
    assert_eq!(output, Ok(json!({"reply": "1 2 3 4 "})));
    assert!(kernel::Clock::monotonic(&world.clock).as_millis() >= 1_500, "half a second between two");
    let world = World::new().inputs(json!({"message": "Count, please."}));
    world.run(&plan(&example("slow-count"))).await.unwrap();
    assert!(world.sink.text().ends_with(" 19 20 "));
}

#[tokio::test]
async fn document_summary_summarises_its_pieces_into_one_text() {
    let text: Vec<String> = (1..=9).map(|n| format!("Paragraph {n}.")).collect();
    let world = World::new().inputs(json!({"text": text.join("\n\n")})).config("model", json!("test/x"));
    let world = world.answers(&["First."], Ok(())).answers(&["Second."], Ok(())).answers(&["Third."], Ok(()));
    let output = world.run(&plan(&example("document-summary"))).await.unwrap();
    let notes = "x: - First.\n- Second.\n- Third.\n";
    assert_eq!(output, json!({"reply": notes, "pieces": 3, "errors": []}));
    assert_eq!(world.sink.text(), notes);
    assert_eq!(*world.sink.aside.lock(), ["Reading 3 pieces …"]);
    let requests = world.model.requests.lock().clone();
    assert!(requests[2].messages[1].content.ends_with("Paragraph 9."));
    let nothing = World::new().inputs(json!({"message": " \n\n "})).config("model", json!("test/x"));
    let error = nothing.run(&plan(&example("document-summary"))).await.unwrap_err();
    assert_eq!(error.message, "No piece of the text could be summarised.");
}

#[tokio::test]
async fn support_triage_takes_its_branch_and_rewrites_until_the_answer_passes() {
    let triage = plan(&example("support-triage"));
    let world = World::new()
        .inputs(json!({"message": "Money back!"}))
        .config("model", json!("test/x"))
        .answers(&[r#"{"kind": "refund", "#, r#""urgent": true}"#], Ok(()))
        .answers(&["calm"], Ok(()))
        .answers(&["No."], Ok(()))
        .answers(&[r#"{"good": false, "hint": "Be kind."}"#], Ok(()))
        .answers(&["In five days."], Ok(()))
        .answers(&[r#"{"good": true}"#], Ok(()));
    let output = world.run(&triage).await.unwrap();
    assert_eq!(output, json!({"reply": "In five days.", "kind": "refund", "urgent": true, "tries": 2}));
    assert_eq!(world.sink.text(), "In five days.");
    assert_eq!(world.sink.aside.lock().len(), 1);
    let requests = world.model.requests.lock();
    let again = &requests[4].messages[0].content;
    assert!(
        again.contains("five days") && again.contains("Tone: calm.") && again.contains("Mind: Be kind."),
        "{again}"
    );
}

#[tokio::test]
async fn support_triage_ends_although_no_answer_passes() {
    let mut world = World::new().inputs(json!({"message": "?"})).config("model", json!("test/x"));
    world = world.answers(&[r#"{"kind": "question", "urgent": false}"#], Ok(())).answers(&["dry"], Ok(()));
    for _ in 0..3 {
        world = world.answers(&["Draft."], Ok(())).answers(&[r#"{"good": false, "hint": "More."}"#], Ok(()));
    }
    let output = world.run(&plan(&example("support-triage"))).await.unwrap();
    assert_eq!((&output["tries"], &output["kind"]), (&json!(3), &json!("question")));
    let refused = plan(&example("support-triage")).check_inputs(&json!({"message": ""}));
    assert_eq!(refused[0].pointer, "/message");
}

#[test]
fn the_examples_of_the_page_are_accepted() {
    let page = std::fs::read_to_string(root().join("docs/WORKFLOWS.md")).unwrap();
    // Other tests cover the catalogue's examples.
    let (page, _) = page.split_once("\n## Catalogue\n").unwrap();
    let blocks: Vec<&str> =
        page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 8, "{}", blocks.len());
    for block in blocks {
        let document: Value = serde_json::from_str(block).unwrap_or_else(|error| panic!("{error}: {block}"));
        let whole = if document.get("format").is_some() {
            document
        } else {
            // A node after one whose result it may use.
            let name = document["name"].as_str().unwrap();
            let nodes = json!([template("before", ""), document, template("sorry", "")]);
            let edges = json!([["START", "before"], ["before", name], ["before", "sorry"]]);
            let mut whole = graph(nodes, edges);
            whole["state"] = json!({"notes": {"merge": "append"}});
            whole
        };
        let problems = engine::check(&whole).err();
        assert!(problems.is_none(), "{block}: {problems:#?}");
    }
}
