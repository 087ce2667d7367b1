//! `callboard dataset …`, and trainings that use a dataset.

use integration_tests::TestService;
use serde_json::Value;

use super::terminal::Terminal;
use crate::training::{prompts, sorting};

#[tokio::test]
async fn a_dataset_is_imported_shown_used_for_training_and_deleted() {
    let t = TestService::start().await;
    let graph = sorting("practice/classify");
    let config = prompts("Sort the message into shipping, billing or account.");
    let workflow = t.workflow().named("Sorting").graph(graph).config(config).create().await;
    let terminal = Terminal::for_service(&t);
    let name = workflow.handle.as_str();
    let none = terminal.run(&["dataset", "list", name]).await;
    assert!(none.err.starts_with("No datasets found."), "{}", none.err);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let two = file(
        "two.csv",
        "id,message,expected_output,split\na,Where is my parcel?,shipping,\nb,The invoice,billing,val\n",
    );
    let shown = terminal.output_of(&["dataset", "import", name, "desks", &two]).await;
    assert!(shown.contains("dataset    desks") && shown.contains("cases      2"), "{shown}");
    let three = file(
        "three.jsonl",
        "{\"inputs\":{\"message\":\"Hi\"}}\n{\"inputs\":{\"message\":\"Ho\"}}\n{\"inputs\":{\"message\":\"He\"}}\n",
    );
    let newer = terminal.output_of(&["dataset", "import", name, "desks", &three]).await;
    assert!(newer.contains("version    2") && newer.contains("cases      3"), "{newer}");
    terminal.output_of(&["dataset", "import", name, "desks", &two]).await;
    let listed = terminal.output_of(&["dataset", "list", name]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines.len() == 2
            && lines[0].starts_with("NAME   VERSION  CASES")
            && lines[1].starts_with("desks  3        2"),
        "{listed}"
    );
    let shown = terminal.output_of(&["dataset", "show", name, "desks"]).await;
    assert!(shown.contains(r#"b   val    {"message":"The invoice"}"#), "{shown}");
    let exported = terminal.output_of(&["dataset", "export", name, "desks", "--dataset-version", "2"]).await;
    assert_eq!(exported.lines().count(), 3);
    let first: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert_eq!(first["inputs"]["message"], "Hi");

    let bad = file("bad.csv", "a,b\n1\n");
    let refused = terminal.run(&["dataset", "import", name, "desks", &bad]).await;
    assert!(refused.status == Some(1) && refused.err.contains("bad.csv:2"), "{}", refused.err);
    let missing = terminal.run(&["dataset", "show", name, "desk"]).await;
    assert!(missing.status == Some(1) && missing.err.contains("(dataset.not_found)"), "{}", missing.err);
    let nothing = terminal.run(&["dataset", "import", name, "more", "--from-runs", "5"]).await;
    assert!(nothing.status == Some(1) && nothing.err.contains("dataset_empty"), "{}", nothing.err);

    let id = terminal.json_of(&["dataset", "show", name, "desks", "--json"]).await["dataset"]["id"].clone();
    let prefix = &id.as_str().unwrap()[..18];
    terminal.output_of(&["evaluate", name, "--dataset", prefix, "--dry-run"]).await;

    let evaluated = terminal.output_of(&["evaluate", name, "--dataset", "desks", "--output", "json"]).await;
    let last: Value = serde_json::from_str(evaluated.lines().last().unwrap()).unwrap();
    let run = last["run_id"].as_str().or(last["id"].as_str()).unwrap().to_owned();
    let report = terminal.output_of(&["report", &run]).await;
    assert!(report.contains("The mean score is") && report.contains("version 3"), "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
    let json = terminal.json_of(&["report", &run, "--output", "json"]).await;
    assert_eq!(json["run"], run);
    assert!(terminal.output_of(&["report", &run, "--format", "html"]).await.starts_with("<!DOCTYPE html>"));
    assert!(terminal.output_of(&["report", &run, "--format", "svg"]).await.contains("<svg"));

    // A run becomes a case.
    let id = terminal.json_of(&["run", name, "--input", "message=My parcel", "--output", "json"]).await;
    let added =
        terminal.output_of(&["dataset", "add", id["id"].as_str().unwrap(), "--dataset", "desks"]).await;
    assert_eq!(added, "Added to the dataset as version 4.\n");
    let again =
        terminal.output_of(&["dataset", "add", id["id"].as_str().unwrap(), "--dataset", "desks"]).await;
    assert_eq!(again, "Already in the dataset: version 4.\n");

    let unconfirmed = terminal.run(&["dataset", "delete", name, "desks"]).await;
    assert!(unconfirmed.status == Some(2) && unconfirmed.err.contains("--yes"), "{}", unconfirmed.err);
    terminal.output_of(&["dataset", "delete", name, "desks", "--yes"]).await;
    assert!(terminal.run(&["dataset", "list", name]).await.err.starts_with("No datasets found."));
}
