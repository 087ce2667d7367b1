//! Checks of code before it is stored.

use sandbox::{Source, SyntaxProblem};

use crate::*;

async fn top_level_names(
    sandbox: &Sandbox,
    name: &str,
    all: &[(&str, &str)],
) -> Result<Vec<String>, SyntaxProblem> {
    let language = Language::of_module(name).unwrap();
    let surveyed = sandbox.survey(language, modules(all), Source::Module(name.to_owned())).await.unwrap();
    surveyed.map(|surveyed| surveyed.names)
}

#[tokio::test]
async fn the_names_of_a_valid_module_are_listed() {
    let sandbox = sandbox(1);
    let python = "import json\nfrom math import pi as PI\nclass A:\n    pass\ndef one(a):\n    def inner():\n        pass\ntwo = lambda a: a\nif True:\n    def three(a):\n        pass\n";
    let names = top_level_names(&sandbox, "a.py", &[("a.py", python), ("b.py", "x = 1")]).await.unwrap();
    assert_eq!(names, ["json", "PI", "A", "one", "two", "three"]);
    let script =
        "import {b} from './b.js'; export function one() {}; export const two = b; function inner() {}";
    let names = top_level_names(&sandbox, "a.js", &[("a.js", script), ("b.js", "export const b = 1;")])
        .await
        .unwrap();
    assert_eq!(names, ["one", "two"]);
}

#[tokio::test]
async fn a_syntax_error_has_a_line_and_a_column() {
    let sandbox = sandbox(1);
    for (name, source, expected, line, column) in [
        ("a.py", "def f(a):\n    return a +\n", "SyntaxError", Some(2), Some(15)),
        ("a.py", "def f(a):\n    yield a\n", "yield", Some(2), Some(5)),
        ("a.js", "export function f(a) {\n  return a + ;\n}", "SyntaxError", Some(2), Some(14)),
        ("a.py", "import json\nimport b\n", "cannot import", Some(2), None),
        ("a.py", "from b import y\n", "'b.py'", Some(1), None),
        ("a.js", "import {x} from './none.js';", "module './none.js' not found", None, None),
        ("a.js", "import {x} from './b.js';", "x", None, None),
        ("a.js", "export const a = nothing;", "ReferenceError", Some(1), Some(18)),
    ] {
        let problem = top_level_names(
            &sandbox,
            name,
            &[(name, source), ("b.js", "export const y = 1;"), ("b.py", "y = 1")],
        )
        .await
        .unwrap_err();
        assert!(problem.message.contains(expected), "{source}: {problem:?}");
        if line.is_some() {
            assert_eq!((problem.line, problem.column), (line, column), "{source}: {problem:?}");
        }
    }
    for (source, expected) in [
        ("for (;;) {}", SandboxError::Timeout(Duration::from_secs(3))),
        ("const a = []; for (;;) a.push(new Uint8Array(1 << 20));", SandboxError::Memory(64 << 20)),
    ] {
        let all = modules(&[("a.js", source)]);
        let ended = sandbox.survey(Javascript, all, Source::Module("a.js".to_owned())).await;
        assert_eq!(ended, Err(expected), "{source}");
    }
    let deep = "(".repeat(100_000);
    assert!(top_level_names(&sandbox, "a.py", &[("a.py", &deep)]).await.is_err());
    assert!(top_level_names(&sandbox, "a.js", &[("a.js", &deep)]).await.is_err());
}

#[tokio::test]
async fn a_script_is_parsed_but_not_run() {
    let sandbox = sandbox(1);
    for (language, source, sound) in [
        (Python, "while True:\n    args\n", true),
        (Python, "args +", false),
        (Javascript, "for (;;) {}", true),
        (Javascript, "function main(args) { return args }", true),
        (Javascript, "return 1", false),
        (Javascript, "import {a} from 'a.js'", false),
        (Javascript, "({", false),
        (Javascript, "}); for (;;) {} (() => {", false),
    ] {
        let surveyed =
            sandbox.survey(language, Arc::default(), Source::Alone(source.to_owned())).await.unwrap();
        assert_eq!(surveyed.is_ok(), sound, "{source}: {surveyed:?}");
    }
    let problem =
        sandbox.survey(Javascript, Arc::default(), Source::Alone("1 + ;".to_owned())).await.unwrap();
    let problem = problem.unwrap_err();
    assert_eq!((problem.line, problem.column), (Some(1), Some(5)), "{problem:?}");
}
