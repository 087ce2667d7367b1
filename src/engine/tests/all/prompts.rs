//! `config.prompts.<name>.text`: a template, filled with the whole scope.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan, template};
use crate::world::World;

fn prompts() -> Value {
    json!({
        "greet": {"text": "Good day, {{ inputs.name }} at {{ inputs.desk }}.", "demos": [1, 2]},
        "plain": {"text": "As it stands."},
        "both": {"text": "{{ config.prompts.greet.text }}"},
        "bad": {"text": "{{ inputs.nobody }}"},
        "long": {"text": "{% for i in range(9000) %}{% endfor %}done"},
    })
}

async fn filled(text: &str) -> Result<Value, engine::RunError> {
    let world = World::new().config("prompts", prompts()).inputs(json!({"name": "Ada", "desk": 3}));
    world.run(&plan(&alone(&template("n", text)))).await.map(|done| done["text"].clone())
}

#[tokio::test]
async fn a_prompt_is_rendered_once() {
    for (text, expected) in [
        ("{{ config.prompts.greet.text }}", "Good day, Ada at 3."),
        ("{{ config.prompts.plain.text }}", "As it stands."),
        ("{{ config.prompts.both.text }}", "Good day, {{ inputs.name }} at {{ inputs.desk }}."),
        ("{{ config.prompts.greet.demos | length }}", "2"),
        ("{{ config.prompts | list | length }}", "5"),
    ] {
        assert_eq!(filled(text).await, Ok(json!(expected)), "{text}");
    }
}

#[tokio::test]
async fn an_unrenderable_prompt_fails_the_node_that_uses_it() {
    let error = filled("{{ config.prompts.bad.text }}").await.unwrap_err();
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("n")));
    assert!(error.message.contains("the prompt 'bad'") && error.message.contains("inputs.nobody"), "{error}");
}

#[tokio::test]
async fn a_frequently_read_prompt_is_rendered_once() {
    // Filling it each time would take a billion steps.
    let often =
        "{% for i in range(9000) %}{% if config.prompts.long.text != 'done' %}x{% endif %}{% endfor %}ok";
    assert_eq!(filled(often).await, Ok(json!("ok")));
}

#[tokio::test]
async fn a_prompt_sees_the_results_so_far() {
    let mut graph = graph(
        json!([template("a", "A"), template("b", "{{ config.prompts.p.text }}")]),
        json!([["START", "a"], ["a", "b"]]),
    );
    graph["output"] = json!("{{ results.b.text }} and {{ config.prompts.p.text }}");
    let text = "{{ results | list | sort | join('') }}";
    let world = World::new().config("prompts", json!({"p": {"text": text}}));
    assert_eq!(world.run(&plan(&graph)).await, Ok(json!("a and ab")));
}

#[tokio::test]
async fn each_visit_records_the_prompts_that_it_reads() {
    let each = json!({"name": "each", "type": "for_each", "items": ["greet", "plain"],
                      "body": {"type": "template", "template": "{{ config.prompts[item].text }}"}});
    let branch = "{% if inputs.name %}{{ config.prompts.plain.text }}{% else %}{{ config.prompts.greet.text }}{% endif %}";
    let graph = graph(
        json!([
            template("none", "{{ inputs.desk }}"),
            template("both", "{{ config.prompts.both.text }}"),
            template("branch", branch),
            template("bad", "{{ config.prompts.bad.text }}"),
            each
        ]),
        json!([["START", "none"], ["none", "both"], ["both", "branch"], ["branch", "each"], ["each", "bad"]]),
    );
    let world = World::new().config("prompts", prompts()).inputs(json!({"name": "Ada", "desk": 3}));
    world.run(&plan(&graph)).await.unwrap_err();
    let rows = world.journal.rows.lock();
    let mut read: Vec<String> =
        rows.iter().map(|row| format!("{}: {}", row.node, row.prompts_read.join(" "))).collect();
    // The items run concurrently.
    read[3..5].sort();
    let expected = [
        "none: ",
        "both: both greet",
        "branch: plain",
        "each[0]: greet",
        "each[1]: plain",
        "each: ",
        "bad: bad",
    ];
    assert_eq!(read, expected);
}
