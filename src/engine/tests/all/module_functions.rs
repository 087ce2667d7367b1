//! Functions of a graph's modules called from outside its nodes. With real workers.

use std::sync::Arc;
use std::time::Duration;

use engine::{Plan, modules_named};
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, plan};
use crate::world::sandbox;

const TIME: Duration = Duration::from_secs(2);
const MOST: usize = 1_000;

fn with_modules(modules: &Value) -> Arc<Plan> {
    let mut graph = alone(&json!({"name": "n", "type": "template", "template": ""}));
    graph["modules"] = modules.clone();
    plan(&graph)
}

fn metrics() -> Arc<Plan> {
    with_modules(&json!({
        "metrics.py": "import re\nseen = []\ndef score(context):\n    seen.append(1)\n    return {'n': len(seen), 'text': context['text']}\ndef fails(context):\n    return 1 / 0\ndef loops(context):\n    while True:\n        pass\ndef grows(context):\n    a = []\n    while True:\n        a.append('x' * 100_000)\ndef long(context):\n    return 'x' * 2000\n",
        "shape.js": "import { double } from './lib.js';\nexport function score(context) { return double(context.n); }\n",
        "lib.js": "export const double = (n) => n * 2;\n",
    }))
}

#[tokio::test]
async fn a_module_is_named_with_or_without_its_extension() {
    let (plan, sandbox) = (metrics(), sandbox());
    for (module, args, expected) in [
        ("metrics", json!({"text": "a"}), json!({"n": 1, "text": "a"})),
        // Each call has a fresh interpreter.
        ("metrics.py", json!({"text": "b"}), json!({"n": 1, "text": "b"})),
        ("shape", json!({"n": 4}), json!(8)),
        ("shape.js", json!({"n": 5}), json!(10)),
    ] {
        let function = plan.function(module, "score").unwrap();
        assert_eq!(function.call(args, TIME, MOST, &sandbox).await, Ok(expected), "{module}");
    }
    let sources =
        |module| plan.function(module, "score").unwrap().sources().map(|it| it.0.to_owned()).collect();
    let (python, script): (Vec<String>, Vec<String>) = (sources("metrics"), sources("shape"));
    assert_eq!((python, script), (vec!["metrics.py".into()], vec!["lib.js".into(), "shape.js".into()]));
}

#[tokio::test]
async fn each_failure_of_a_function_has_its_code() {
    let (plan, sandbox) = (metrics(), sandbox());
    for (function, code, expected) in [
        ("fails", ErrorCode::CodeFailed, "ZeroDivisionError: division by zero (metrics.py, line 7"),
        ("loops", ErrorCode::CodeTimeout, "longer than 2 s"),
        ("grows", ErrorCode::CodeMemory, "128 MiB"),
        ("long", ErrorCode::CodeOutputTooLarge, "larger than 1000 bytes"),
        ("nothing", ErrorCode::CodeFailed, "nothing"),
    ] {
        let function = plan.function("metrics", function).unwrap();
        let error = function.call(json!({}), TIME, MOST, &sandbox).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(expected), "{error}");
    }
    let closed = sandbox::Sandbox::new(sandbox::Options::new("/nonexistent".into()));
    let error =
        plan.function("metrics", "score").unwrap().call(json!({}), TIME, MOST, &closed).await.unwrap_err();
    assert!(error.code == ErrorCode::CodeUnavailable && !error.message.contains("nonexistent"), "{error}");
    assert!(plan.functions(&closed).await.is_err());
}

#[tokio::test]
async fn the_functions_of_all_modules_are_listed() {
    let found = metrics().functions(&sandbox()).await.unwrap();
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["lib.js", "metrics.py", "shape.js"]);
    assert_eq!(found["shape.js"], ["score"]);
    assert!(found["metrics.py"].contains(&"loops".to_owned()), "{found:?}");
}

/// A module that never ends delays only callers that name it.
#[tokio::test]
async fn named_modules_alone_are_loaded_once() {
    let plan = with_modules(
        &json!({"good.py": "def score(context):\n    return 1\n", "hangs.py": "while True:\n    pass\n"}),
    );
    let clock = SystemClock::new();
    let start = clock.monotonic();
    let found = plan.functions_of(&["good"], &sandbox()).await.unwrap();
    assert_eq!((&found["good.py"][..], &found["hangs.py"][..]), (&["score".to_owned()][..], &[][..]));
    let took = clock.monotonic() - start;
    assert!(took < Duration::from_secs(3), "{took:?}: the limit of a module");
    let closed = sandbox::Sandbox::new(sandbox::Options::new("/nonexistent".into()));
    assert_eq!(plan.functions_of(&["good.py"], &closed).await.unwrap()["good.py"], ["score"]);
    assert!(plan.functions_of(&["hangs"], &closed).await.is_err());
}

#[test]
fn a_module_has_exactly_one_name() {
    let plan = with_modules(&json!({"a.py": "", "a.js": "", "b.py": ""}));
    assert!(plan.function("b", "f").is_ok() && plan.function("a.js", "f").is_ok());
    for (module, expected) in
        [("c", "no module 'c'"), ("a", "more than one module 'a': a.js, a.py"), ("b.js", "no module 'b.js'")]
    {
        let error = plan.function(module, "f").unwrap_err();
        assert!(error.message.contains(expected), "{error}");
    }
    assert_eq!(modules_named(["x.py", "xx.py", "x.js"].into_iter(), "x"), ["x.py", "x.js"]);
}
