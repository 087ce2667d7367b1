//! Code that works.

use sandbox::{Limits, SandboxError};
use serde_json::json;

use crate::*;

const METRICS: &str = "import json\nimport re\n\nLIMIT = 3\n\ndef exact(args):\n    print('exact', args['a'])\n    return {'score': 1.0 if args['a'] == args['b'] else 0.0, 'limit': LIMIT}\n\ndef bad(args):\n    values = [1, 2]\n    return values[5]\n";
const SHAPE: &str = "import { double } from './lib.js';\nexport const name = 'shape';\nexport function tidy(args) {\n  console.log('tidy', args, 2);\n  return { total: double(args.n), at: new Date(0).toISOString() };\n}\nexport async function later(args) {\n  const lib = await import('lib.js');\n  return [await lib.double(args.n)];\n}\nexport function bad() {\n  const nothing = undefined;\n  return nothing.x;\n}\n";
const LIB: &str = "export const double = (n) => n * 2;\n";

#[tokio::test]
async fn module_functions_receive_arguments_and_return_values() {
    let sandbox = sandbox(2);
    let all = [("metrics.py", METRICS), ("shape.js", SHAPE), ("lib.js", LIB)];
    let call = |module, name, args| sandbox.call(function(module, name, &all, args));
    let outcome = call("metrics.py", "exact", json!({"a": 1, "b": 1})).await.unwrap();
    assert_eq!((outcome.value, outcome.logs.as_str()), (json!({"score": 1.0, "limit": 3}), "exact 1\n"));
    let outcome = call("shape.js", "tidy", json!({"n": 4})).await.unwrap();
    assert_eq!(outcome.value, json!({"total": 8, "at": "1970-01-01T00:00:00.000Z"}));
    assert_eq!(outcome.logs, "tidy {\"n\":4} 2\n");
    assert_eq!(call("shape.js", "later", json!({"n": 5})).await.unwrap().value, json!([10]));

    let failed = |message: &str, module: &str, line, column| SandboxError::Failed {
        message: message.to_owned(),
        module: Some(module.to_owned()),
        line: Some(line),
        column: Some(column),
    };
    let error = call("metrics.py", "bad", json!({})).await.unwrap_err();
    assert_eq!(error, failed("IndexError: list index out of range", "metrics.py", 12, 12));
    assert_eq!(error.to_string(), "IndexError: list index out of range (metrics.py, line 12, column 12)");
    let error = call("shape.js", "bad", json!({})).await.unwrap_err();
    assert_eq!(error, failed("TypeError: cannot read property 'x' of undefined", "shape.js", 13, 10));
    for (module, name) in
        [("metrics.py", "nothing"), ("shape.js", "nothing"), ("none.py", "x"), ("none.js", "x")]
    {
        let error = call(module, name, json!({})).await.unwrap_err();
        assert!(matches!(error, SandboxError::Failed { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn the_value_of_a_script_is_its_main_or_its_last_expression() {
    let sandbox = sandbox(2);
    for (language, source, value) in [
        (Python, "args['n'] + 1", json!(5)),
        (Python, "x = args['n']\n{'x': [x, None, True, 1.5, 'é']}", json!({"x": [4, null, true, 1.5, "é"]})),
        (Python, "def main(args):\n    return args['n'] * 3\n", json!(12)),
        (Python, "x = 1", json!(null)),
        (Python, "", json!(null)),
        (Javascript, "args.n + 1", json!(5)),
        (
            Javascript,
            "const x = args.n; ({x: [x, null, true, 1.5, 'é'], y: undefined})",
            json!({"x": [4, null, true, 1.5, "é"]}),
        ),
        (Javascript, "function main(args) { return args.n * 3 }", json!(12)),
        (Javascript, "const main = async (args) => args.n * 4;", json!(16)),
        (Javascript, "Promise.resolve(7)", json!(7)),
        (Javascript, "", json!(null)),
        (Javascript, "let x = 1;", json!(null)),
        (Javascript, "'\\ud83d\\ude00'", json!("😀")),
        (Python, "2 ** 63", json!(9_223_372_036_854_775_808_u64)),
    ] {
        let outcome = sandbox.call(alone(language, source, json!({"n": 4}))).await;
        assert_eq!(outcome.map(|outcome| outcome.value), Ok(value), "{source}");
    }
}

#[tokio::test]
async fn builtins_are_values_inside_python_functions() {
    let sandbox = sandbox(2);
    for (body, expected) in [
        ("try:\n        return int('x')\n    except ValueError:\n        return 'caught'", json!("caught")),
        (
            "try:\n        return {}['x']\n    except (KeyError, IndexError) as error:\n        return str(error)",
            json!("'x'"),
        ),
        ("return [isinstance(x, int) for x in args['list']]", json!([true, false, true])),
        ("return isinstance(args['list'], (list, tuple))", json!(true)),
        ("return list(map(str, args['list']))", json!(["3", "a", "1"])),
        ("return sorted(['bbb', 'a'], key=len)", json!(["a", "bbb"])),
        ("return [kind('7') for kind in (int, float, str)]", json!([7, 7.0, "7"])),
        ("convert = {'n': int}['n']\n    return convert('8')", json!(8)),
        ("return type(args['list'][0]) is int", json!(true)),
        ("return list(filter(None, [0, 1])) + [f(-2) for f in [abs]]", json!([1, 2])),
        (
            "def inner(x):\n        return x if isinstance(x, str) else str(x)\n    return inner(5)",
            json!("5"),
        ),
        ("return (lambda kind: kind('9'))(int)", json!(9)),
        ("return helper(args['list'])", json!(["int", "str", "int"])),
    ] {
        let helper =
            "def helper(items):\n    return ['int' if isinstance(x, int) else 'str' for x in items]\n";
        let module = format!("{helper}\ndef go(args):\n    {body}\n");
        let args = json!({"list": [3, "a", 1]});
        let called = sandbox.call(function("m.py", "go", &[("m.py", &module)], args.clone())).await;
        assert_eq!(called.map(|outcome| outcome.value), Ok(expected.clone()), "{body}");
        let main = alone(Python, &format!("{helper}\ndef main(args):\n    {body}\n"), args);
        assert_eq!(sandbox.call(main).await.map(|outcome| outcome.value), Ok(expected), "{body}");
    }
    let module = "def go(args):\n    return undefined_name\n";
    let error = sandbox.call(function("m.py", "go", &[("m.py", module)], json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("name 'undefined_name' is not defined (m.py, line 2"), "{error}");
}

#[tokio::test]
async fn non_json_results_are_rejected_with_their_type() {
    let sandbox = sandbox(2);
    for (language, source, expected) in [
        (Python, "float('nan')", "NaN"),
        (Python, "{'a': {1, 2}}", "a set"),
        (Python, "b'x'", "bytes"),
        (Python, "def main(args):\n    return main\n", "not JSON"),
        (Python, "a = []\na.append(a)\na", "contains itself"),
        (Python, "2 ** 70", "the integer 1180591620717411303424, which has more than 64 bits"),
        (Javascript, "({a: NaN})", "'a' is NaN"),
        (Javascript, "(() => 1)", "a function"),
        (Javascript, "const a = {}; a.a = a; a", "circular"),
        (Javascript, "10n", "BigInt"),
        (Javascript, "new Map([[1, 2]])", "a Map"),
        (Javascript, "({s: Symbol('x')})", "a symbol"),
        (Javascript, "new Promise(() => {})", "never settled"),
        (Javascript, "throw 'only text'", "it threw only text"),
        (Javascript, "throw {a: 1}", r#"it threw {"a":1}"#),
        (Javascript, "Promise.reject(new Error('no'))", "Error: no"),
        (Python, "raise ValueError('no')", "ValueError: no"),
        (Python, "import nothing", "nothing"),
        (Javascript, "Date.now()", "no clock"),
        (Javascript, "new Date()", "no clock"),
        (Javascript, "new (new Date(0)).constructor()", "no clock"),
        (Javascript, "Math.random()", "no randomness"),
        (Python, "import datetime\ndatetime.datetime.now()", ""),
    ] {
        let text = error_text(&sandbox, language, source).await;
        assert!(text.contains(expected), "{source}: {text}");
    }
    let nested = "let a = []; for (let i = 0; i < 500; i++) a = [a]; a";
    assert!(error_text(&sandbox, Javascript, nested).await.contains("nested"));
}

#[tokio::test]
async fn printed_text_is_kept_up_to_the_log_limit() {
    let sandbox = sandbox(2);
    for (language, source) in [
        (Python, "for i in range(20000):\n    print('é' * 10)\n7"),
        (Javascript, "for (let i = 0; i < 20000; i++) console.log('é'.repeat(10)); 7"),
    ] {
        let outcome = ran(&sandbox, language, source).await.unwrap();
        assert_eq!(outcome.value, json!(7));
        let most = Limits::default().logs;
        assert!(outcome.logs.len() > most - 4 && outcome.logs.len() < most + 8, "{}", outcome.logs.len());
        assert!(outcome.logs.ends_with("…\n"));
    }
}

#[tokio::test]
async fn numbers_round_trip_through_code_or_are_named() {
    let sandbox = sandbox(2);
    let whole = json!({"n": 9_007_199_254_740_993_u64, "most": u64::MAX, "least": i64::MIN, "f": 0.1});
    let outcome = sandbox.call(alone(Python, "args", whole.clone())).await.unwrap();
    assert_eq!(outcome.value, whole);
    let outcome =
        sandbox.call(alone(Javascript, "args", json!({"n": 1_u64 << 53, "f": 0.1, "e": 1e300}))).await;
    assert_eq!(outcome.unwrap().value, json!({"n": 1_u64 << 53, "f": 0.1, "e": 1e300}));
    for number in [json!(9_007_199_254_740_993_u64), json!(u64::MAX), json!(i64::MIN + 1)] {
        let error =
            sandbox.call(alone(Javascript, "args", json!({"n": [number]}))).await.unwrap_err().to_string();
        assert!(error.contains(&format!("the number {number} would be rounded")), "{error}");
    }
}
