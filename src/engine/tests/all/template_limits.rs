//! Template limits: bytes, time, and the cost of a check.

use std::time::Duration;

use engine::check;
use kernel::{Clock, SystemClock};
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan, template};
use crate::world::{World, settle};

/// The time limit of a fill, and a margin for one operation in a debug build on a busy machine.
const IN_TIME: Duration = Duration::from_secs(2 + 18);
/// Takes minutes without a limit.
const SLOW: &str = "range(100000)|select('in', range(100000)|list)|list";
/// Templates that would use all memory, or minutes, without limits.
const GREEDY: [&str; 24] = [
    r#"{{ (inputs.x*1000000)|replace("x","y"*100000)|length }}"#,
    r#"{{ ("x"*1000000)|replace("x","y"*100000)|length }}"#,
    r#"{{ (["y"]*400000)|join("x"*7000000)|length }}"#,
    "{{ '%999999999d'|format(1)|length }}",
    "{{ '%*d'|format(999999999, 1)|length }}",
    "{{ ('%(a)9000d'*100000)|format({'a': 1})|length }}",
    "{{ [1]|batch(400000000, 'x')|length }}",
    "{{ [1]|slice(400000000)|length }}",
    "{{ ('x '*4000000)|split|length }}",
    "{{ ('x,'*4000000)|split(',')|length }}",
    "{{ ('\n'*8000000)|lines|length }}",
    "{{ ('x'*8000000)|list|length }}",
    "{{ ('\n'*1000000)|indent(1000000)|length }}",
    "{{ [inputs.x]|tojson(indent=400000000)|length }}",
    "{% set a = 'x'*8000000 %}{{ (a ~ a ~ a ~ a ~ a ~ a ~ a ~ a)|length }}",
    "{% set a = inputs.x*4000000 %}{% set b = a ~ a %}{% set c = b ~ b %}{% set d = c ~ c %}{{ d|length }}",
    "{{ ([inputs.x]*100000000)|length }}",
    "{{ (inputs.x*100000000)|length }}",
    "{% set a %}{% for i in range(100000) %}0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789{% endfor %}{% endset %}{{ a|length }}",
    "{% macro m(x) %}{{ x ~ x }}{% endmacro %}{% set a = inputs.x*4000000 %}{{ m(m(m(m(a))))|length }}",
    "{{ (['x'*100]*80000)|sum(start='')|length }}",
    "{{ ('<'*8000000)|tojson|length }}",
    "{% set a = range(100000)|list %}{% for i in range(9000) %}{% if a == range(100000)|list %}{% endif %}{% endfor %}x",
    "{% for i in range(20000) %}{{ (inputs.x*8000000) == i }}{% endfor %}",
];

fn inputs() -> Value {
    json!({"x": "x", "list": [3, 1, 2], "text": "a b\nc", "n": 3, "map": {"a": {"b": 1}}})
}

/// Peak memory of this process so far, in bytes.
pub(crate) fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[tokio::test]
async fn expensive_templates_end_within_memory_and_time_limits() {
    for greedy in GREEDY {
        let before = peak();
        // A template that the check refuses needs no run.
        let Ok(plan) = check(&alone(&template("n", greedy))) else { continue };
        let clock = SystemClock::new();
        let ended = World::new().inputs(inputs()).run_outside(&std::sync::Arc::new(plan)).await;
        let code = ended.map_err(|error| error.code);
        assert!(code.is_err(), "{greedy}: {code:?}");
        assert!(clock.monotonic() < IN_TIME, "{greedy}: {:?}", clock.monotonic());
        let grown = peak() - before;
        assert!(grown < 64 << 20, "{greedy}: {} MiB", grown >> 20);
    }
}

#[tokio::test]
async fn a_template_that_takes_too_long_fails_with_a_code() {
    let slow = format!("{{{{ {SLOW} }}}}");
    let error = World::new().run_outside(&plan(&alone(&template("n", &slow)))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeTimeout, "{error}");
    assert!(error.to_string().contains("took longer than 2 s"), "{error}");
}

#[tokio::test]
async fn the_timeout_of_a_node_ends_a_fill() {
    let mut node = template("n", &format!("{{{{ {SLOW} }}}}"));
    node["timeout_seconds"] = json!(0.5);
    let error = World::new().run(&plan(&alone(&node))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeTimeout, "{error}");
    assert!(error.to_string().contains("took longer than 0.5 s"), "{error}");
}

#[tokio::test]
async fn a_slow_condition_does_not_block_its_thread() {
    let when = format!("{SLOW}|length == 1");
    let edges = json!([{"from": "START", "cases": [{"when": when, "to": "n"}], "else": "END"}]);
    let graph = json!({"format": "graph/1", "nodes": [template("n", "x")], "edges": edges});
    let run = World::new().begin(&plan(&graph));
    settle().await;
    assert!(!run.has_ended(), "the condition runs on this thread");
    run.drop_it();
}

#[tokio::test]
async fn conditions_have_the_limits_of_templates() {
    let edges = json!([{"from": "START", "cases": [{"when": "inputs.x * 100000000 == 'y'", "to": "n"}], "else": "END"}]);
    let graph = json!({"format": "graph/1", "nodes": [template("n", "x")], "edges": edges});
    let error = World::new().inputs(inputs()).run(&plan(&graph)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeResultTooLarge, "{error}");
}

#[test]
fn the_check_does_not_compute_large_constants() {
    for text in [
        "{{ 'x' * 100000000 }}",
        "{{ ['x'] * 100000000 }}",
        "{{ ((1 == 1) and 'x' * 1000000) * 100000 }}",
        "{{ 'x'*9000000 ~ 'x'*9000000 }}",
        "{% if 'x'*100000000 == 'x' %}{% endif %}",
        "{% set a = ('x'*1000000)*1000 %}",
        "{{ a(b='x'*100000000) }}",
    ] {
        let text = text.repeat(20);
        let (before, clock) = (peak(), SystemClock::new());
        assert!(check(&alone(&template("n", &text))).is_err(), "{text}");
        assert!(peak() - before < 64 << 20 && clock.monotonic() < Duration::from_secs(5), "{text}");
    }
}

#[test]
fn large_graphs_are_checked_in_time() {
    let clock = SystemClock::new();
    let tags = "x{{ inputs.a }}".repeat(280_000);
    assert!(check(&alone(&template("n", &tags))).is_err(), "a template has a length");
    assert!(check(&alone(&template("n", &"[[".repeat(130_000)))).is_ok());
    let edges: Vec<Value> = (0..58_000).map(|n| json!({"from": "START", "to": format!("n{n}")})).collect();
    let many = json!({"format": "graph/1", "nodes": [template("n", "x")], "edges": edges});
    let problems = check(&many).err().unwrap();
    assert_eq!(problems.iter().map(|problem| &*problem.code).collect::<Vec<_>>(), ["too_many"]);
    let from: Vec<String> = (0..58_000).map(|n| format!("n{n}")).collect();
    let many =
        json!({"format": "graph/1", "nodes": [template("n", "x")], "edges": [{"from": from, "to": "n"}]});
    assert_eq!(check(&many).err().unwrap()[0].code, "too_many");
    assert!(clock.monotonic() < Duration::from_secs(10), "{:?}", clock.monotonic());
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("inputs.x".to_owned()),
        Just("inputs.list".to_owned()),
        Just("inputs.text".to_owned()),
        Just("inputs.map".to_owned()),
        Just("range(100000)".to_owned()),
        Just("1".to_owned()),
        Just("9999999".to_owned()),
        Just("'ab '".to_owned()),
        Just("'%9999d'".to_owned()),
        Just("[1, 'a']".to_owned()),
        Just("'2026-11-23'".to_owned()),
        Just("'<\\u0001\\''".to_owned()),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let binary = ["*", "+", "~", "-", "==", "<", "in", "and"];
        let filters = [
            "replace", "join", "format", "batch", "slice", "split", "tojson", "list", "indent", "upper",
            "sort", "unique", "map", "reverse", "length", "string", "lines", "zip", "sum", "escape", "title",
            "trim", "default", "select", "pprint", "safe", "groupby", "dictsort", "chain",
        ];
        let own = [
            "sha256",
            "string|sha256",
            "date_add(days=1)",
            "date_format('%c')",
            "timestamp",
            "seconds_since('2026-11-23')",
            "map('string')|map('sha256')|list",
        ];
        prop_oneof![
            (inner.clone(), 0..binary.len(), inner.clone())
                .prop_map(move |(a, op, b)| format!("({a} {} {b})", binary[op])),
            (inner.clone(), 0..filters.len(), inner.clone())
                .prop_map(move |(a, filter, b)| format!("({a}|{}({b}))", filters[filter])),
            (inner.clone(), 0..filters.len())
                .prop_map(move |(a, filter)| format!("({a}|{})", filters[filter])),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}, {a}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{'a': {a}, 'b': {b}}}")),
            (inner.clone(), 0..own.len()).prop_map(move |(a, filter)| format!("({a}|{})", own[filter])),
            inner.prop_map(|a| format!("({a})[1:]")),
        ]
    })
}

fn random_template() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        expression().prop_map(|value| format!("{{{{ {value} }}}}")),
        (expression(), expression()).prop_map(|(list, value)| format!(
            "{{% for i in {list} %}}text {{{{ {value} }}}}{{% endfor %}}"
        )),
        (expression(), expression())
            .prop_map(|(a, b)| format!("{{% set a = {a} %}}{{% set a = [a, a] %}}{{{{ a ~ {b} }}}}")),
        expression().prop_map(|value| format!(
            "{{% set a %}}{{% for i in range(1000) %}}{{{{ {value} }}}}{{% endfor %}}{{% endset %}}{{{{ a|length }}}}"
        )),
        (expression(), expression()).prop_map(|(a, b)| format!(
            "{{% macro m(x) %}}{{{{ x ~ {a} }}}}{{% endmacro %}}{{{{ m(m({b})) ~ [m, {b}] }}}}"
        )),
        expression().prop_map(|value| format!(
            "{{% filter upper|replace('A', 'aaaa') %}}{{% for i in range(1000) %}}{{{{ {value} }}}}{{% endfor %}}{{% endfilter %}}"
        )),
    ];
    prop::collection::vec(one, 1..4).prop_map(|parts| parts.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn random_templates_end_within_memory_and_time_limits(text in random_template()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let before = peak();
        let document = graph(json!([template("n", &text)]), json!([["START", "n"], ["n", "END"]]));
        if let Ok(plan) = check(&document) {
            let clock = SystemClock::new();
            let _ = runtime.block_on(World::new().inputs(inputs()).run_outside(&std::sync::Arc::new(plan)));
            prop_assert!(clock.monotonic() < IN_TIME, "{:?}", clock.monotonic());
        }
        prop_assert!(peak() - before < 64 << 20, "{} MiB", (peak() - before) >> 20);
    }
}
