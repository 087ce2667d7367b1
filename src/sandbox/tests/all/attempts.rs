//! Forbidden or excessive code: each attempt fails only its own call, and the next call works.

use sandbox::{Sandbox, SandboxError};
use serde_json::json;

use crate::*;

async fn works(sandbox: &Sandbox) {
    let outcome = ran(sandbox, Python, "1 + 1").await.map(|outcome| outcome.value);
    assert_eq!(outcome, Ok(json!(2)));
    let outcome = ran(sandbox, Javascript, "1 + 1").await.map(|outcome| outcome.value);
    assert_eq!(outcome, Ok(json!(2)));
}

#[tokio::test]
async fn an_endless_loop_is_killed_at_its_deadline() {
    let sandbox = sandbox(1);
    for (language, source) in [
        (Python, "while True:\n    pass\n"),
        (Javascript, "for (;;) {}"),
        (Javascript, "const again = () => Promise.resolve().then(again); again()"),
        // Catastrophic backtracking.
        (Javascript, "/^(a+)+$/.test('a'.repeat(60) + 'b')"),
        (Python, "import re\nre.match('^(a+)+$', 'a' * 60 + 'b')\nwhile True:\n    pass\n"),
        (
            Python,
            "try:\n    while True:\n        pass\nexcept BaseException:\n    pass\nwhile True:\n    pass\n",
        ),
    ] {
        let clock = SystemClock::new();
        let ended = sandbox.call(within(0.5, alone(language, source, json!(null)))).await;
        assert_eq!(ended, Err(SandboxError::Timeout(Duration::from_millis(500))), "{source}");
        assert!(clock.monotonic() < Duration::from_secs(60), "{source}: {:?}", clock.monotonic());
        works(&sandbox).await;
    }
}

#[tokio::test]
async fn exceeded_memory_has_a_separate_error() {
    let sandbox = sandbox(1);
    for (language, source) in [
        (Python, "a = []\nwhile True:\n    a.append('x' * 100)\n"),
        (Python, "a = 'x'\nwhile True:\n    a = a + a\n"),
        (Python, "len(str(10 ** 100000000))"),
        (Python, "7 ** 7 ** 7 ** 7"),
        (Python, "[0] * (10 ** 12)"),
        (Python, "bytes(10 ** 12)"),
        (Python, "' ' * (10 ** 11)"),
        (Python, "'{:>10000000000}'.format(1)"),
        (Python, "list(range(10 ** 12))"),
        (Javascript, "const a = []; for (;;) a.push('x'.repeat(100) + a.length);"),
        (Javascript, "let a = 'xy'; for (;;) a = [a + a + a.length].join();"),
        (Javascript, "new Uint8Array(1e9)"),
        (Javascript, "new Array(1e8).fill({})"),
        (Javascript, "'x'.repeat(2 ** 29)"),
    ] {
        let clock = SystemClock::new();
        let ended = ran(&sandbox, language, source).await;
        // Some are refused before memory is allocated, which is a normal language error.
        let fine = match &ended {
            Err(SandboxError::Memory(_)) => true,
            Err(SandboxError::Failed { message, .. }) => {
                ["MemoryError", "OverflowError", "RangeError", "InternalError", "ValueError"]
                    .iter()
                    .any(|name| message.starts_with(name))
            }
            _ => false,
        };
        assert!(fine, "{source}: {ended:?} after {:?}", clock.monotonic());
        works(&sandbox).await;
    }
    let ended = ran(&sandbox, Python, "a = []\nwhile True:\n    a.append('x' * 1000)\n").await;
    assert_eq!(ended, Err(SandboxError::Memory(64 << 20)));
    let ended = ran(&sandbox, Javascript, "const a = []; for (;;) a.push(new Uint8Array(10000));").await;
    assert_eq!(ended, Err(SandboxError::Memory(64 << 20)));
}

#[tokio::test]
async fn a_too_large_result_is_rejected() {
    let sandbox = sandbox(1);
    for (language, source) in [(Python, "'x' * 2000000"), (Javascript, "'x'.repeat(2000000)")] {
        assert_eq!(ran(&sandbox, language, source).await, Err(SandboxError::OutputTooLarge(1 << 20)));
        works(&sandbox).await;
    }
}

#[tokio::test]
async fn recursion_and_nesting_are_ordinary_errors() {
    let sandbox = sandbox(1);
    let said_of = |language, source: String| {
        let sandbox = sandbox.clone();
        async move { error_text(&sandbox, language, &source).await }
    };
    assert!(
        said_of(Python, "def f(n):\n    return f(n + 1)\nf(0)".into()).await.starts_with("RecursionError")
    );
    assert!(
        said_of(Javascript, "const f = (n) => f(n + 1) + 1; f(0)".into()).await.starts_with("RangeError")
    );
    let deep = 100_000;
    for (language, source) in [
        (Python, format!("{}1{}", "(".repeat(deep), ")".repeat(deep))),
        (Python, format!("{}1", "-".repeat(deep))),
        (Python, format!("a{}", ".b".repeat(deep))),
        (Python, format!("{}x", "not ".repeat(deep))),
        (Python, format!("{}1{}", "[".repeat(deep), "]".repeat(deep))),
        (Python, format!("x = {}1", "lambda: ".repeat(deep))),
        (Python, format!("1{}", " + 1".repeat(deep))),
        (Javascript, format!("{}1{}", "(".repeat(deep), ")".repeat(deep))),
        (Javascript, format!("{}1{}", "[".repeat(deep), "]".repeat(deep))),
        (Javascript, format!("x = {}1", "- ".repeat(deep))),
        (Javascript, format!("/{}a{}/", "(".repeat(deep), ")".repeat(deep))),
    ] {
        let ended = ran(&sandbox, language, &source).await;
        let shown: String = source.chars().take(12).collect();
        assert!(matches!(ended, Err(SandboxError::Failed { .. })), "{language:?} {shown}: {ended:?}");
        works(&sandbox).await;
    }
}

#[tokio::test]
async fn code_cannot_reach_files_network_or_processes() {
    let sandbox = sandbox(1);
    for (language, source) in [
        (Python, "import subprocess"),
        (Python, "import socket"),
        (Python, "import os\nos.fork()"),
        (Python, "import os\nos.system('true')"),
        (Python, "import os\nos.execv('/bin/true', ['true'])"),
        (Python, "open('/etc/passwd').read()"),
        (Python, "from pathlib import Path\nPath('/etc/passwd').read_text()"),
        (Python, "import os\nos.listdir('/')"),
        (Python, "import os\nos.getenv('PATH') + 'x'"),
        (Python, "import os\nos.environ['PATH']"),
        (Python, "__import__('os').system('true')"),
        (Python, "eval('1 + 1')"),
        (Python, "exec('1 + 1')"),
        (Javascript, "require('fs')"),
        (Javascript, "std.open('/etc/passwd')"),
        (Javascript, "os.exec(['true'])"),
        (Javascript, "process.env"),
        (Javascript, "fetch('http://127.0.0.1')"),
        (Javascript, "new XMLHttpRequest()"),
        (Javascript, "new WebSocket('ws://127.0.0.1')"),
        (Javascript, "setTimeout(() => {}, 1)"),
        (Javascript, "performance.now()"),
        (Javascript, "import('/etc/passwd')"),
        (Javascript, "import('../../etc/passwd.js')"),
        (Javascript, "import('std')"),
    ] {
        let ended = ran(&sandbox, language, source).await;
        assert!(matches!(ended, Err(SandboxError::Failed { .. })), "{source}: {ended:?}");
    }
    let own = "[typeof std, typeof os, typeof process, typeof fetch, typeof require, typeof setTimeout, typeof performance]";
    let outcome = ran(&sandbox, Javascript, own).await.unwrap();
    assert_eq!(outcome.value, json!(vec!["undefined"; 7]));
    works(&sandbox).await;
}

#[tokio::test]
async fn a_run_leaves_no_state_for_the_next_run_of_its_worker() {
    let sandbox = sandbox(1);
    let soil = "globalThis.left = 1; Object.prototype.polluted = 1; Array.prototype.map = () => 'mine'; JSON.stringify = () => '\"mine\"'; Date.prototype.toJSON = () => 'mine'; [1].map(x => x)";
    assert_eq!(ran(&sandbox, Javascript, soil).await.unwrap().value, json!("mine"));
    let worker = sandbox.idle();
    let look = "[typeof left, typeof ({}).polluted, [1].map(x => x + 1), JSON.stringify([1]), new Date(0)]";
    let found = ran(&sandbox, Javascript, look).await.unwrap().value;
    assert_eq!(found, json!(["undefined", "undefined", [2], "[1]", "1970-01-01T00:00:00.000Z"]));

    let soil = "import json\nimport math\nleft = 1\ntry:\n    json.left = 1\n    math.pi = 3\nexcept Exception:\n    pass\n1";
    ran(&sandbox, Python, soil).await.unwrap();
    assert!(error_text(&sandbox, Python, "left").await.starts_with("NameError"));
    let found =
        ran(&sandbox, Python, "import math\nimport json\n[math.pi > 3.1, hasattr(json, 'left')]").await;
    assert_eq!(found.unwrap().value, json!([true, false]));
    assert_eq!(sandbox.idle(), worker, "all of it ran in one worker");
}

#[tokio::test]
async fn a_worker_has_only_its_pipes() {
    let sandbox = sandbox(1);
    works(&sandbox).await;
    let worker = sandbox.idle()[0];
    let read = |what: &str| std::fs::read_to_string(format!("/proc/{worker}/{what}")).unwrap();
    assert_eq!(read("environ"), "");
    assert_eq!(std::fs::read_link(format!("/proc/{worker}/cwd")).unwrap().to_str(), Some("/"));
    let mut open: Vec<String> = std::fs::read_dir(format!("/proc/{worker}/fd"))
        .unwrap()
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().to_string_lossy().into_owned())
        .map(|target| target.split(':').next().unwrap().to_owned())
        .collect();
    open.sort();
    assert_eq!(open, ["/dev/null".to_owned(), format!("/proc/{worker}/statm"), "pipe".into(), "pipe".into()]);
    let status = read("status");
    let line =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(line("NoNewPrivs:"), "1");
    assert_eq!(line("Seccomp:"), "2");
    let limits = read("limits");
    for (name, most) in
        [("Max core file size", "0"), ("Max file size", "0"), ("Max processes", "0"), ("Max open files", "3")]
    {
        let limit = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let values: Vec<&str> = limit.split_whitespace().take(2).collect();
        assert_eq!(values, [most, most], "{name}");
    }
    let space = limits.lines().find_map(|line| line.strip_prefix("Max address space")).unwrap();
    assert!(!space.contains("unlimited"), "{space}");
}
