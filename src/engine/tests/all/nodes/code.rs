//! `code` and `modules`: results, errors, limits, and graphs that are refused. With real workers.

use std::sync::Arc;

use engine::inspect;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan};
use crate::world::{World, refused, result, sandbox};

const METRICS: &str = "def exact(args):\n    print('exact')\n    return {'same': args['a'] == args['b']}\n";
const SHAPE: &str =
    "import { double } from './lib.js';\nexport function tidy(args) { return double(args.n); }\n";
const LIB: &str = "export const double = (n) => n * 2;\n";

fn python(source: &str) -> Value {
    json!({"name": "n", "type": "code", "language": "python", "source": source, "args": "{{ inputs }}"})
}

fn script(source: &str) -> Value {
    json!({"name": "n", "type": "code", "language": "javascript", "source": source, "args": "{{ inputs }}"})
}

fn called(module: &str, function: &str) -> Value {
    json!({"name": "n", "type": "code", "module": module, "function": function,
           "args": {"a": "{{ inputs.n }}", "b": 3, "n": "{{ inputs.n }}"}})
}

fn with_modules(node: &Value) -> Value {
    let mut graph = alone(node);
    graph["modules"] = json!({"metrics.py": METRICS, "shape.js": SHAPE, "lib.js": LIB});
    graph
}

#[tokio::test]
async fn the_result_of_code_is_its_return_value() {
    let of = async |node| result(node, json!({"n": 3})).await.unwrap();
    assert_eq!(of(python("args['n'] + 1")).await, json!(4));
    assert_eq!(of(python("def main(args):\n    return [args]\n")).await, json!([{"n": 3}]));
    assert_eq!(of(script("args.n + 1")).await, json!(4));
    let world = World::new().inputs(json!({"n": 3}));
    assert_eq!(
        world.run(&plan(&with_modules(&called("metrics.py", "exact")))).await.unwrap(),
        json!({"same": true})
    );
    assert_eq!(world.run(&plan(&with_modules(&called("shape.js", "tidy")))).await.unwrap(), json!(6));
    let each = json!({"name": "n", "type": "for_each", "items": [1, 2, 3],
                      "body": {"type": "code", "module": "shape.js", "function": "tidy", "args": {"n": "{{ item }}"}}});
    let all = world.run(&plan(&with_modules(&each))).await.unwrap();
    assert_eq!(all, json!({"items": [2, 4, 6], "errors": []}));
}

#[tokio::test]
async fn each_failure_has_its_code() {
    let long = |mut node: Value| {
        node["timeout_seconds"] = json!(0.5);
        node
    };
    let patient = |mut node: Value| {
        node["timeout_seconds"] = json!(120);
        node
    };
    for (node, code, expected) in [
        (python("1 / 0"), ErrorCode::CodeFailed, "ZeroDivisionError: division by zero (line 1, column 1)"),
        (script("null.x"), ErrorCode::CodeFailed, "TypeError"),
        (python("float('nan')"), ErrorCode::CodeFailed, "not JSON"),
        (long(python("while True:\n    pass\n")), ErrorCode::CodeTimeout, "longer than 0.5 s"),
        (long(script("for (;;) {}")), ErrorCode::CodeTimeout, "longer than 0.5 s"),
        (
            patient(python("a = []\nwhile True:\n    a.append('x' * 1000)\n")),
            ErrorCode::CodeMemory,
            "128 MiB",
        ),
        (script("'x'.repeat(2000000)"), ErrorCode::CodeOutputTooLarge, "1048576 bytes"),
    ] {
        let error = result(node.clone(), json!({})).await.unwrap_err();
        assert_eq!((error.code, error.node.as_deref()), (code, Some("n")), "{node}: {error}");
        assert!(error.message.contains(expected), "{node}: {error}");
    }
    let mut node = python("1 / 0");
    node["on_error"] = json!("continue");
    let went_on = result(node, json!({})).await.unwrap();
    assert_eq!(went_on["error"]["code"], json!("code.failed"));
    let mut world = World::new();
    world.sandbox = sandbox::Sandbox::new(sandbox::Options::new("/nonexistent".into()));
    let error = world.run(&plan(&alone(&python("1")))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::CodeUnavailable);
    assert!(!error.message.contains("nonexistent"), "{error}");
}

#[tokio::test]
async fn a_result_is_cached_only_for_the_same_modules() {
    let mut node = called("metrics.py", "exact");
    node["cache_seconds"] = json!(60);
    let world = World::new().inputs(json!({"n": 3}));
    let mut graph = with_modules(&node);
    assert_eq!(world.run(&plan(&graph)).await.unwrap(), json!({"same": true}));
    graph["modules"]["metrics.py"] = json!("def exact(args):\n    return 'other'\n");
    assert_eq!(world.run(&plan(&graph)).await.unwrap(), json!("other"));
}

#[test]
fn fields_are_checked_without_a_worker() {
    for (change, problem) in [
        (json!({"source": null}), "/source required"),
        (json!({"source": 1}), "/source type"),
        (json!({"source": "#".repeat((256 << 10) + 1)}), "/source size"),
        (json!({"language": null}), "/language required"),
        (json!({"language": "ruby"}), "/language choice"),
        (json!({"module": "a.py"}), "/source exclusive"),
        (json!({"source": null, "language": null}), "/source required"),
        (json!({"args": "{{"}), "/args template"),
        (json!({"timeout_seconds": 301}), "/timeout_seconds range"),
        (json!({"source": null, "language": null, "module": "a.py"}), "/function required"),
        (
            json!({"source": null, "language": null, "module": "a.py", "function": "f"}),
            "/module unknown_module",
        ),
    ] {
        let mut node = python("1");
        node.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        node.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(refused(&node), [problem], "{change}");
    }
    let problems = engine::check(&with_modules(&called("metric.py", "exact"))).err().unwrap();
    assert_eq!(problems[0].suggestion.as_deref(), Some("did you mean 'metrics.py'?"));
    let mut many = with_modules(&called("metrics.py", "exact"));
    for index in 0..70 {
        many["modules"][format!("m{index}.py")] = json!("#".repeat(20_000));
    }
    let problems = engine::check(&many).err().unwrap();
    let found: Vec<_> =
        problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect();
    assert_eq!(found, ["/modules size", "/modules size"]);
}

#[tokio::test]
async fn code_is_checked_before_a_graph_is_accepted() {
    let sandbox = sandbox();
    let good = with_modules(&called("metrics.py", "exact"));
    assert!(inspect(Arc::new(good.clone()), &sandbox).await.unwrap().checked.is_ok());
    let nodes = json!([
        {"name": "a", "type": "code", "language": "python", "source": "1 +"},
        {"name": "b", "type": "code", "module": "metrics.py", "function": "exakt"},
        {"name": "c", "type": "for_each", "items": [], "body": {"type": "code", "module": "shape.js", "function": "tidi"}},
        {"name": "d", "type": "code", "module": "broken.py", "function": "f"},
        {"name": "e", "type": "code", "module": "none.js", "function": "f"},
        {"name": "f", "type": "code", "module": "metrics.py", "function": "zebra", "timeout_second": 1},
    ]);
    let mut bad = graph(
        nodes,
        json!([["START", "a"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["e", "f"], ["f", "END"]]),
    );
    bad["modules"] = json!({"metrics.py": METRICS, "shape.js": SHAPE, "lib.js": LIB,
        "broken.py": "def f(a):\n    return a +\n", "worse.js": "export function f( {"});
    let problems = inspect(Arc::new(bad.clone()), &sandbox).await.unwrap().checked.err().unwrap();
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| {
            format!("{} {}: {}", problem.pointer, problem.code, problem.suggestion.as_deref().unwrap())
        })
        .collect();
    assert_eq!(
        lines,
        [
            "/modules/broken.py syntax: fix line 2 of broken.py",
            "/modules/worse.js syntax: fix line 1 of worse.js",
            "/nodes/0/source syntax: fix line 1 of the source",
            "/nodes/1/function unknown_function: did you mean 'exact'?",
            "/nodes/2/body/function unknown_function: did you mean 'tidy'?",
            "/nodes/4/module unknown_module: did you mean 'worse.js'?",
            "/nodes/5/function unknown_function: functions: exact",
            "/nodes/5/timeout_second unknown_field: did you mean 'timeout_seconds'?",
        ]
    );
    assert!(problems[0].message.ends_with("(line 2, column 15)"), "{}", problems[0].message);

    bad["modules"] = json!({"a.js": "for (;;) {}", "b.js": "for (;;) {}"});
    let problems = inspect(Arc::new(bad.clone()), &sandbox).await.unwrap().checked.err().unwrap();
    let loads: Vec<_> = problems.iter().filter(|problem| problem.code == "load").collect();
    assert_eq!(loads.len(), 1, "the second is not tried: {problems:?}");
    assert_eq!(loads[0].pointer, "/modules/a.js");

    let no_worker = sandbox::Sandbox::new(sandbox::Options::new("/nonexistent".into()));
    assert!(inspect(Arc::new(good), &no_worker).await.is_err());
    let plain = alone(&json!({"name": "n", "type": "template", "template": ""}));
    assert!(
        inspect(Arc::new(plain.clone()), &no_worker).await.unwrap().checked.is_ok(),
        "no worker is called without code"
    );
}

#[tokio::test]
async fn a_dropped_run_ends_its_code() {
    let program = std::env::var_os("CALLBOARD_BIN").unwrap();
    let one = sandbox::Sandbox::new(sandbox::Options { workers: 1, ..sandbox::Options::new(program.into()) });
    let world = World { sandbox: one.clone(), ..World::new() };
    let mut endless = python("while True:\n    pass\n");
    endless["timeout_seconds"] = json!(300);
    let run = world.begin(&plan(&alone(&endless)));
    let clock = kernel::SystemClock::new();
    let wait = || kernel::Clock::sleep(&clock, std::time::Duration::from_millis(300));
    wait().await;
    assert!(!run.has_ended() && world.sandbox.idle().is_empty());
    run.drop_it();
    // The only worker is free again.
    let other = World { sandbox: one, ..World::new() };
    assert_eq!(other.run(&plan(&alone(&python("1")))).await, Ok(json!(1)));
}
