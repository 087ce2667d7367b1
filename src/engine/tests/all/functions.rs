//! `now()`, `today()` and `uuid()`: a resumed run sees the same.

use std::time::Duration;

use serde_json::{Value, json};

use engine::Life;

use crate::ports::{alone, graph, noon, plan, template};
use crate::world::{World, recorded, settle};

fn delay(seconds: u64) -> Value {
    json!({"name": "pause", "type": "delay", "seconds": seconds})
}

fn set(name: &str, value: Value) -> Value {
    json!({"name": name, "type": "set", "values": value})
}

/// Waits 90 minutes and an hour between clock readings; its branch and its items depend on the clock too.
fn clocked() -> Value {
    let both =
        json!({"at": "{{ now() }}", "day": "{{ today(zone='Pacific/Honolulu') }}", "id": "{{ uuid() }}"});
    let each = json!({"name": "each", "type": "for_each", "items": ["{{ now() }}", "{{ uuid() }}"],
                      "body": {"type": "template", "template": "{{ item }} {{ uuid() }}"}});
    let mut graph = graph(
        json!([
            set("first", both.clone()),
            delay(5_400),
            set("second", both),
            each,
            template("late", "late")
        ]),
        json!([["START", "first"], ["first", "pause"], ["pause", "second"], ["second", "each"],
               {"from": "each", "cases": [{"when": "now() < '2028'", "to": "late"}], "else": "END"}]),
    );
    graph["output"] = json!({"results": "{{ results }}", "at": "{{ now() }}", "id": "{{ uuid() }}"});
    graph
}

#[tokio::test]
async fn the_clock_is_fixed_within_a_step_and_equal_after_a_resume() {
    let graph = plan(&clocked());
    let world = World::new();
    let run = world.begin(&graph);
    settle().await;
    world.clock.advance(Duration::from_secs(5_400));
    settle().await;
    let whole = run.end().await.unwrap();
    let (first, second) = (&whole["results"]["first"], &whole["results"]["second"]);
    assert_eq!((&first["at"], &first["day"]), (&json!("2027-01-15T08:00:00.000Z"), &json!("2027-01-14")));
    assert_eq!(second["at"], json!("2027-01-15T09:30:00.000Z"));
    let mut ids = vec![first["id"].clone(), second["id"].clone(), whole["id"].clone()];
    ids.extend(whole["results"]["each"]["items"].as_array().unwrap().iter().map(|item| item["text"].clone()));
    for (index, id) in ids.iter().enumerate() {
        assert!(id.as_str().unwrap().split(' ').all(|word| word.len() >= 24), "{id}");
        assert!(!ids[..index].contains(id), "{ids:?}");
    }
    assert!(uuid::Uuid::parse_str(first["id"].as_str().unwrap()).is_ok_and(|id| id.get_version_num() == 4));
    let rows = world.journal.rows.lock().clone();
    for crash in 0..=rows.len() {
        let again = World::new().recorded(recorded(&rows[..crash]));
        // The run resumes a day later, unless the wait is not has_ended.
        let has_ended = rows[..crash].iter().any(|row| row.node == "second");
        again.clock.advance(Duration::from_secs(if has_ended { 86_400 } else { 0 }));
        let run = again.begin(&graph);
        settle().await;
        again.clock.advance(Duration::from_secs(5_400));
        settle().await;
        let ended = run.end().await.unwrap();
        assert_eq!(ended["results"], whole["results"], "{crash}");
        assert_eq!((&ended["id"]), (&whole["id"]), "{crash}");
    }
}

#[tokio::test]
async fn uuid_is_rejected_in_conditions_and_prompts() {
    let branch = graph(
        json!([template("t", "x")]),
        json!([{"from": "START", "cases": [{"when": "uuid() == ''", "to": "t"}], "else": "END"}, ["t", "END"]]),
    );
    let error = World::new().run(&plan(&branch)).await.unwrap_err();
    assert!(error.message.contains("uuid() is not available in conditions and prompts"), "{error}");
}

#[tokio::test]
async fn state_and_sub_workflows_have_the_functions_too() {
    let mut inner = alone(&set("in", json!({"x": "{{ uuid() }} {{ now() }}"})));
    inner["output"] = json!("{{ results.in.x }}");
    let mut node = json!({"name": "call", "type": "sub_workflow", "workflow": "w", "inputs": {}});
    node["state"] = json!({"id": "{{ uuid() }}"});
    let mut outer = graph(json!([node]), json!([["START", "call"], ["call", "END"]]));
    outer["state"] = json!({"id": {"merge": "replace"}});
    outer["output"] = json!(["{{ results.call }}", "{{ state.id }}", "{{ uuid() }}"]);
    let done = World::new().workflow("w", &inner).run(&plan(&outer)).await.unwrap();
    let all: Vec<&str> = done.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert!(all[0].ends_with(" 2027-01-15T08:00:00.000Z"), "{all:?}");
    assert!(all[0][..36] != *all[1] && all[1] != all[2], "{all:?}");
    let again = World::new().workflow("w", &inner).run(&plan(&outer)).await.unwrap();
    assert_eq!(done, again, "the same run makes the same");
}

#[tokio::test]
async fn repeated_steps_keep_their_clock_and_identifiers() {
    let same = json!({"at": "{{ now() }}", "id": "{{ uuid() }}"});
    let mut nodes = vec![set("one", same.clone()), set("two", same.clone()), set("three", same)];
    nodes[0]["state"] = json!({"ids": "{{ uuid() }}"});
    let early =
        json!({"from": "one", "cases": [{"when": "now() < '2027-01-16'", "to": "two"}], "else": "END"});
    let mut repeated =
        graph(json!(nodes), json!([["START", "one"], early, ["two", "three"], ["three", "END"]]));
    repeated["state"] = json!({"ids": {"merge": "append"}});
    repeated["output"] = json!("{{ [results, state.ids] }}");
    let repeated = plan(&repeated);
    let first = World::new();
    let whole = first.run(&repeated).await.unwrap();
    let rows = recorded(&first.journal.rows.lock());
    // Two days later, from step 3.
    let later = noon() + chrono::TimeDelta::days(2);
    let mut again = World::new().recorded(rows.into_iter().filter(|row| row.node != "three").collect());
    again.clock.advance(Duration::from_secs(2 * 86_400));
    again.lives.push(Life { step: 3, run: "run_2".into(), accepted_at: later, messages: None });
    let ended = again.run(&repeated).await.unwrap();
    for node in ["one", "two"] {
        assert_eq!(ended[0][node], whole[0][node]);
    }
    assert_eq!(ended[1], whole[1], "the same state");
    assert_eq!(ended[0]["three"]["at"], json!("2027-01-17T08:00:00.000Z"));
    assert_ne!(ended[0]["three"]["id"], whole[0]["three"]["id"]);
    assert_eq!(again.journal.lines(), ["3 three.1 succeeded"]);
}

#[tokio::test]
async fn each_visit_in_a_loop_has_distinct_identifiers() {
    let mut node = set("one", json!({"id": "{{ uuid() }}"}));
    node["state"] = json!({"ids": ["{{ uuid() }}", "{{ results.one.id }}"]});
    let back =
        json!({"from": "one", "cases": [{"when": "state.ids | length < 6", "to": "one"}], "else": "END"});
    let mut looping = graph(json!([node]), json!([["START", "one"], back]));
    looping["state"] = json!({"ids": {"merge": "append"}});
    looping["output"] = json!("{{ state.ids | unique | length }}");
    assert_eq!(World::new().run(&plan(&looping)).await.unwrap(), json!(6));
}
