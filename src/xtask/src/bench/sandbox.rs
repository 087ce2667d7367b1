//! Measures code calls, compared with a worker that does nothing with the same bytes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use sandbox::{Call, Entry, Language, Limits, Modules, Options, Sandbox};
use serde_json::{Value, json};

use super::server::{now, percentile};

const PYTHON: &str =
    "def exact(args):\n    return {'same': args['a'] == args['b'], 'n': len(args['list'])}\n";
const SCRIPT: &str =
    "export function exact(args) {\n  return { same: args.a === args.b, n: args.list.length };\n}\n";

pub(super) fn run(target: &Path, calls: usize) -> Result<()> {
    let program = target.join("release").join("callboard");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(&Sandbox::new(Options { workers: 1, ..Options::new(program) }), calls))
}

async fn measure(sandbox: &Sandbox, calls: usize) -> Result<()> {
    let list: Vec<u32> = (0..100).collect();
    let args = json!({"a": "the same", "b": "the same", "list": list});
    echo(sandbox, &args, calls / 10 + 1).await?;
    let before = echo(sandbox, &args, calls).await?;
    let python = code(sandbox, Language::Python, &args, calls).await?;
    let script = code(sandbox, Language::Javascript, &args, calls).await?;
    let after = echo(sandbox, &args, calls).await?;
    let floor = [50, 99].map(|percent| {
        f64::midpoint(percentile(before.clone(), percent), percentile(after.clone(), percent))
    });
    println!("\n{calls} calls one at a time, in a warm worker, 500 bytes of arguments");
    print("a worker that does nothing", floor, floor);
    for (name, taken) in [("python", python), ("javascript", script)] {
        print(name, [50, 99].map(|percent| percentile(taken.clone(), percent)), floor);
    }
    Ok(())
}

fn print(name: &str, [p50, p99]: [f64; 2], floor: [f64; 2]) {
    let ratio = p50 / floor.first().copied().unwrap_or(p50);
    println!("  {name}: p50 {:.0} µs, p99 {:.0} µs; ratio {ratio:.2}", p50 * 1e3, p99 * 1e3);
}

async fn echo(sandbox: &Sandbox, args: &Value, calls: usize) -> Result<Vec<Duration>> {
    let mut taken = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = now();
        sandbox.echo(args.clone()).await?;
        taken.push(began.elapsed());
    }
    Ok(taken)
}

async fn code(sandbox: &Sandbox, language: Language, args: &Value, calls: usize) -> Result<Vec<Duration>> {
    let (module, source) = match language {
        Language::Python => ("metrics.py", PYTHON),
        Language::Javascript => ("metrics.js", SCRIPT),
    };
    let modules: Modules = [(module.to_owned(), source.into())].into();
    let call = Call {
        language,
        modules: modules.into(),
        entry: Entry::Function { module: module.to_owned(), function: "exact".to_owned() },
        args: args.clone(),
        limits: Limits::default(),
    };
    let mut taken = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = now();
        sandbox.call(call.clone()).await.context(module)?;
        taken.push(began.elapsed());
    }
    Ok(taken)
}
