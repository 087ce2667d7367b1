//! Reasons to refuse a graph.

use engine::{check, compile, parse};
use serde_json::{Value, json};

use crate::ports::{graph, reply, template};

fn good() -> Value {
    json!({
        "format": "graph/1",
        "nodes": [
            {"name": "greet", "type": "template", "template": "Hello {{ inputs.name }}", "description": "greets"},
            {"name": "wait", "type": "delay", "seconds": 1, "timeout_seconds": 5},
            {"name": "answer", "type": "reply", "text": "{{ results.greet.text }}", "pieces": "words", "pause_ms": 20},
        ],
        "edges": [
            {"from": "START", "to": "greet"},
            {"from": "START", "to": "wait"},
            {"from": ["greet", "wait"], "cases": [{"when": "inputs.name != ''", "to": "answer"}], "else": "END"},
            {"from": "answer", "to": "END"},
        ],
        "output": {"reply": "{{ results.answer.text }}"},
    })
}

#[test]
fn inputs_that_the_schema_forbids_are_problems() {
    let with = |schema: Value| {
        let mut document = good();
        document["inputs"] = schema;
        problems(&document)
    };
    let closed =
        json!({"type": "object", "properties": {"nam": {"type": "string"}}, "additionalProperties": false});
    assert_eq!(with(closed), ["/edges/2/cases/0/when unknown_input", "/nodes/0/template unknown_input"]);
    let open = json!({"type": "object", "properties": {"nam": {"type": "string"}}});
    assert_eq!(with(open), [""; 0]);
    let named =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": false});
    assert_eq!(with(named), [""; 0]);
}

/// Lists problems as `pointer code`.
pub(crate) fn problems(graph: &Value) -> Vec<String> {
    let problems = check(graph).err().unwrap_or_default();
    problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
}

/// Lists the problems of the good graph with one member replaced, or removed if null.
fn changed(pointer: &str, value: Value) -> Vec<String> {
    let mut document = good();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(members) => {
            members.insert(name.to_owned(), value);
        }
        Value::Array(items) => match name.parse::<usize>() {
            Ok(index) => items[index] = value,
            Err(_) => items.push(value),
        },
        _ => panic!("{pointer} has no members"),
    }
    problems(&document)
}

fn suggestion(pointer: &str, value: Value) -> Option<String> {
    let mut document = good();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[name] = value;
    check(&document).err().unwrap()[0].suggestion.clone()
}

#[test]
fn a_good_graph_is_accepted() {
    assert_eq!(problems(&good()), Vec::<String>::new());
    let graph = parse(&good()).unwrap();
    assert_eq!(graph.nodes[0].description.as_deref(), Some("greets"));
    assert_eq!(graph.edges[2].target.names().collect::<Vec<_>>(), ["answer", "END"]);
    assert!(!compile(&graph).ok().unwrap().reads_messages());
    let reads = self::graph(json!([reply("a", "{{ messages|length }}")]), json!([["START", "a"]]));
    assert!(check(&reads).ok().unwrap().reads_messages());
}

#[test]
fn each_kind_of_problem_has_its_pointer_and_code() {
    let long = "n".repeat(65);
    for (pointer, value, expected) in [
        ("/format", Value::Null, "/format required"),
        ("/format", json!("graph/2"), "/format format"),
        ("/format", json!(1), "/format type"),
        ("/extra", json!(1), "/extra unknown_field"),
        ("/inputs", json!({"type": "objct"}), "/inputs schema"),
        ("/inputs", json!("x"), "/inputs schema"),
        ("/state", json!([]), "/state type"),
        ("/state", json!({"a b": {}}), "/state/a b name"),
        ("/state", json!({"a": 1}), "/state/a type"),
        ("/state", json!({"a": {"merge": "add"}}), "/state/a/merge choice"),
        ("/state", json!({"a": {"merge": "sum", "initial": "0"}}), "/state/a/initial type"),
        ("/state", json!({"a": {"rule": "sum"}}), "/state/a/rule unknown_field"),
        ("/modules", json!([]), "/modules type"),
        ("/modules", json!({"a.rb": ""}), "/modules/a.rb name"),
        ("/modules", json!({"1.py": ""}), "/modules/1.py name"),
        ("/modules", json!({"a/b.py": ""}), "/modules/a~1b.py name"),
        ("/modules", json!({".py": ""}), "/modules/.py name"),
        ("/modules", json!({"a.py": 1}), "/modules/a.py type"),
        ("/modules", json!({"a.py": "#".repeat((256 << 10) + 1)}), "/modules/a.py size"),
        ("/edges", json!([]), "/edges no_start"),
        ("/output", json!({"a/b": ["{{ 1 + }}"]}), "/output/a~1b/0 template"),
        ("/nodes/0/type", json!("templte"), "/nodes/0/type unknown_type"),
        ("/nodes/0/type", json!("collection_qery"), "/nodes/0/type unknown_type"),
        ("/nodes/0/type", Value::Null, "/nodes/0/type required"),
        ("/nodes/0/type", json!(""), "/nodes/0/type required"),
        ("/nodes/0/type", json!([]), "/nodes/0/type type"),
        ("/nodes/0/template", Value::Null, "/nodes/0/template required"),
        ("/nodes/0/template", json!(5), "/nodes/0/template type"),
        ("/nodes/0/template", json!("{{ 1 + }}"), "/nodes/0/template template"),
        ("/nodes/0/template", json!("{% for %}"), "/nodes/0/template template"),
        ("/nodes/0/templates", json!(""), "/nodes/0/templates unknown_field"),
        ("/nodes/0/description", json!(5), "/nodes/0/description type"),
        ("/nodes/0/timeout_seconds", json!(0), "/nodes/0/timeout_seconds range"),
        ("/nodes/0/timeout_seconds", json!("1"), "/nodes/0/timeout_seconds range"),
        ("/nodes/0/on_unknown", json!("guess"), "/nodes/0/on_unknown choice"),
        ("/nodes/0/on_error", json!("stop"), "/nodes/0/on_error choice"),
        ("/nodes/0/on_error", json!({"to": "nowhere"}), "/nodes/0/on_error/to unknown_node"),
        ("/nodes/0/on_error", json!({"to": "greet"}), "/nodes/0/on_error/to self"),
        ("/nodes/0/on_error", json!({}), "/nodes/0/on_error/to required"),
        ("/nodes/0/on_error", json!({"to": "wait", "too": 1}), "/nodes/0/on_error/too unknown_field"),
        ("/nodes/0/retry", json!(3), "/nodes/0/retry type"),
        ("/nodes/0/retry", json!({"max_attempts": 0}), "/nodes/0/retry/max_attempts range"),
        ("/nodes/0/retry", json!({"jitter": 1}), "/nodes/0/retry/jitter type"),
        ("/nodes/0/retry", json!({"attempts": 1}), "/nodes/0/retry/attempts unknown_field"),
        ("/nodes/0/cache_seconds", json!(0), "/nodes/0/cache_seconds range"),
        ("/nodes/1/cache_seconds", json!(5), "/nodes/1/cache_seconds not_pure"),
        ("/nodes/0/state", json!(1), "/nodes/0/state type"),
        ("/nodes/0/state", json!({"x": 1}), "/nodes/0/state/x unknown_channel"),
        ("/nodes/0/template", json!("{{ input.name }}"), "/nodes/0/template unknown_name"),
        ("/nodes/0/template", json!("{{ results.gret }}"), "/nodes/0/template unknown_node"),
        ("/nodes/0/template", json!("{{ results.answer.text }}"), "/nodes/0/template never_ready"),
        ("/nodes/0/template", json!("{{ state.x }}"), "/nodes/0/template unknown_channel"),
        ("/nodes/0/template", json!("{{ item }}"), "/nodes/0/template unknown_name"),
        ("/nodes/0/template", json!("{{ inputs.name | uper }}"), "/nodes/0/template unknown_filter"),
        ("/nodes/0/template", json!("{{ inputs.name is strng }}"), "/nodes/0/template unknown_test"),
        ("/nodes/0/template", json!("{{ inputs.name.strip() }}"), "/nodes/0/template unknown_method"),
        ("/nodes/0/template", json!("{{ run.di }}"), "/nodes/0/template unknown_name"),
        ("/nodes/1/seconds", json!(-1), "/nodes/1/seconds range"),
        ("/nodes/1/seconds", json!(1e12), "/nodes/1/seconds range"),
        ("/nodes/1/seconds", json!("soon"), "/nodes/1/seconds range"),
        ("/nodes/1/seconds", json!("NaN"), "/nodes/1/seconds range"),
        ("/nodes/1/seconds", json!([1]), "/nodes/1/seconds range"),
        ("/nodes/1/seconds", json!("{{ 1 + }}"), "/nodes/1/seconds template"),
        ("/nodes/2/pieces", json!("letters"), "/nodes/2/pieces choice"),
        ("/nodes/2/pause_ms", json!(60_001), "/nodes/2/pause_ms range"),
        ("/nodes/-", json!("node"), "/nodes/3 type"),
        ("/nodes/-", template("answer", ""), "/nodes/3/name duplicate"),
        ("/nodes/-", template("alone", ""), "/nodes/3 unreachable"),
        ("/nodes/-", json!({"type": "template", "template": ""}), "/nodes/3/name required"),
        ("/edges/-", json!([]), "/edges/4 type"),
        ("/edges/0/from", Value::Null, "/edges/0/from required"),
        ("/edges/0/from", json!([]), "/edges/0/from type"),
        ("/edges/0/from", json!(["greet", 1]), "/edges/0/from type"),
        ("/edges/0/from", json!(["START", "wait"]), "/edges/0/from unknown_node"),
        ("/edges/0/from", json!("END"), "/edges/0/from unknown_node"),
        ("/edges/2/from", json!(["greet", "greet"]), "/edges/2/from duplicate"),
        ("/edges/0/to", json!("gret"), "/edges/0/to unknown_node"),
        ("/edges/0/to", json!("START"), "/edges/0/to unknown_node"),
        ("/edges/0/to", json!(["greet"]), "/edges/0/to type"),
        ("/edges/0/to", Value::Null, "/edges/0/to required"),
        ("/edges/0/cases", json!([{"when": "true", "to": "greet"}]), "/edges/0/cases exclusive"),
        ("/edges/0/else", json!("greet"), "/edges/0/else exclusive"),
        ("/edges/2/else", json!(["END"]), "/edges/2/else type"),
        ("/edges/2/else", json!("ENDE"), "/edges/2/else unknown_node"),
        ("/edges/2/cases", json!({}), "/edges/2/cases type"),
        ("/edges/2/cases", json!([]), "/edges/2/cases empty"),
        ("/edges/2/cases/0", json!(1), "/edges/2/cases/0 type"),
        ("/edges/2/cases/0/when", json!("a =="), "/edges/2/cases/0/when condition"),
        ("/edges/2/cases/0/when", Value::Null, "/edges/2/cases/0/when required"),
        ("/edges/2/cases/0/to", json!("nowhere"), "/edges/2/cases/0/to unknown_node"),
        ("/edges/2/cases/0/then", json!("x"), "/edges/2/cases/0/then unknown_field"),
    ] {
        assert_eq!(changed(pointer, value.clone()), [expected], "{pointer} = {value}");
    }
    for bad in ["", "1a", "a-b", "a b", "é", long.as_str()] {
        let nodes = json!([template(bad, "")]);
        let found = problems(&graph(nodes, json!([["START", "END"]])));
        assert!(found.contains(&"/nodes/0/name name".to_owned()), "{bad}: {found:?}");
    }
    for reserved in ["START", "END"] {
        let found = problems(&graph(json!([template(reserved, "")]), json!([["START", "END"]])));
        assert!(found.contains(&"/nodes/0/name reserved".to_owned()), "{found:?}");
    }
    for whole in [json!(null), json!([]), json!("graph/1"), json!(1)] {
        assert_eq!(problems(&whole), [" type"]);
    }
    assert_eq!(problems(&json!({})), ["/edges required", "/format required", "/nodes required"]);
}

#[test]
fn literal_addresses_and_times_are_checked() {
    const ALL: [&str; 6] =
        ["example.com/x", "ftp://example.com", "https://", "", "no address", "{ inputs.url }"];
    let of = |node: Value| changed("/nodes/1", node);
    let node = |kind: &str, field: &str, value: &str| {
        let mut node = match kind {
            "slack_message" if field == "webhook_url" => json!({"text": "x"}),
            "slack_message" | "discord_message" => json!({"text": "x", "token": "[[t]]", "channel": "c"}),
            "telegram_message" => json!({"text": "x", "token": "[[t]]", "chat": "@c"}),
            "mcp_call" => json!({"tool": "t"}),
            "llm" => json!({"model": "a/b", "user": "x"}),
            "webhook_send" => json!({"json": 1}),
            _ => json!({}),
        };
        let members = [("name", "wait"), ("type", kind), (field, value)];
        node.as_object_mut().unwrap().extend(members.map(|(name, value)| (name.to_owned(), json!(value))));
        of(node)
    };
    for (kind, field) in [
        ("http_request", "url"),
        ("webhook_send", "url"),
        ("document_read", "url"),
        ("rss_read", "url"),
        ("mcp_call", "url"),
        ("slack_message", "webhook_url"),
        ("slack_message", "base_url"),
        ("discord_message", "base_url"),
        ("telegram_message", "base_url"),
        ("llm", "base_url"),
    ] {
        for value in ALL {
            let found = node(kind, field, value);
            assert_eq!(found.len(), 1, "{kind}.{field} {value:?}: {found:?}");
            assert!(found[0].starts_with(&format!("/nodes/1/{field} ")), "{found:?}");
        }
        for value in [
            "https://example.com/x?y=z",
            " http://10.0.0.1 ",
            "{{ inputs.url }}",
            "https://{{ inputs.host }}/x",
        ] {
            assert_eq!(node(kind, field, value), [""; 0], "{kind}.{field} {value}");
        }
    }
    assert_eq!(node("http_request", "url", "[[the address]]"), [""; 0]);
    assert_eq!(node("mcp_call", "url", "[[the address]]"), ["/nodes/1/url url"], "not filled by a secret");
    let unused = json!({"name": "wait", "type": "slack_message", "text": "x", "webhook_url": "[[w]]", "base_url": "x"});
    assert_eq!(of(unused), [""; 0]);

    let feed = |since: &str| {
        of(json!({"name": "wait", "type": "rss_read", "url": "https://example.com", "since": since}))
    };
    assert_eq!(feed("yesterday"), ["/nodes/1/since time"]);
    assert_eq!([feed("2026-01-31T09:00:00Z"), feed("{{ inputs.since }}")], [[""; 0]; 2]);

    let mail = |to: Value, reply_to: &str| {
        of(
            json!({"name": "wait", "type": "email_send", "to": to, "cc": to, "reply_to": reply_to, "subject": "s",
                  "text": "t"}),
        )
    };
    assert_eq!(
        mail(json!(["ada@example.com", "{{ inputs.to }}", "ada"]), "Ada <ada@example.com>"),
        ["/nodes/1/cc/2 address", "/nodes/1/reply_to address", "/nodes/1/to/2 address"]
    );
    assert_eq!(mail(json!("ada"), "{{ inputs.to }}"), ["/nodes/1/cc address", "/nodes/1/to address"]);
    assert_eq!(mail(json!("{{ inputs.all }}"), "ada@example.com"), [""; 0]);

    // A version that was accepted before keeps running.
    let mut taken = good();
    taken["nodes"][1] = json!({"name": "wait", "type": "http_request", "url": "example.com/x"});
    assert_eq!(problems(&taken), ["/nodes/1/url url"]);
    assert!(compile(&parse(&taken).unwrap()).is_ok());
}

#[test]
fn suggestions_contain_the_text_to_write() {
    let names: Vec<&str> = engine::nodes::CATALOGUE.iter().map(|kind| kind.name).collect();
    let known = format!("known types: {}", names.join(", "));
    for (pointer, value, expected) in [
        ("/format", json!("graph/2"), r#"write "graph/1""#),
        ("/outptu", json!(1), "did you mean 'output'?"),
        ("/zzzzzzzzz", json!(1), "allowed: format, modules, inputs, state, nodes, edges, output"),
    ] {
        assert_eq!(suggestion(pointer, value).as_deref(), Some(expected));
    }
    for (pointer, value, expected) in [
        ("/nodes/0/type", json!("templte"), "did you mean 'template'?"),
        ("/nodes/0/type", json!("http_reqest"), "did you mean 'http_request'?"),
        ("/nodes/0/type", json!("zebra"), known.as_str()),
        ("/edges/0/to", json!("gret"), "did you mean 'greet'?"),
    ] {
        let mut document = good();
        *document.pointer_mut(pointer).unwrap() = value;
        assert_eq!(check(&document).err().unwrap()[0].suggestion.as_deref(), Some(expected));
    }
    let mut document = good();
    document["nodes"][0]["timeout_second"] = json!(5);
    let found = check(&document).err().unwrap();
    assert_eq!(found[0].suggestion.as_deref(), Some("did you mean 'timeout_seconds'?"));
}

#[test]
fn an_unreachable_join_is_named() {
    let nodes = json!([template("a", ""), template("b", ""), template("c", "")]);
    let edges = json!([["START", "a"], {"from": ["a", "c"], "to": "b"}, ["b", "c"]]);
    assert_eq!(
        problems(&graph(nodes, edges)),
        ["/edges/1/from never_met", "/nodes/1 unreachable", "/nodes/2 unreachable"]
    );
}

#[test]
fn twenty_mistakes_are_reported_at_once_in_file_order() {
    let document = json!({
        "format": "graph/9",
        "state": {"notes": {"merge": "apend"}},
        "extra": true,
        "nodes": [
            {"name": "a", "type": "templte"},
            {"name": "a", "type": "template", "template": "{{ 1 + }}"},
            {"name": "b c", "type": "delay"},
            {"type": "reply", "text": "", "pieces": 5},
            7,
            {"name": "wait", "type": "delay", "seconds": "long", "retry": {"max_attempts": 99}},
            {"name": "say", "type": "reply", "text": "{{ results.wiat }} {{ input.x }}", "state": {"note": "1"}},
        ],
        "edges": [
            {"from": "START", "to": "aa", "cases": []},
            {"from": "wiat", "cases": [4, {"when": "x ==", "to": "nowhere"}], "else": 1},
            {"to": "q"},
        ],
        "output": "{{",
    });
    for problem in check(&document).err().unwrap_or_default() {
        assert!(problem.suggestion.is_some(), "{problem:?}");
        assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
    }
    assert_eq!(
        problems(&document),
        [
            "/edges/0/cases empty",
            "/edges/0/cases exclusive",
            "/edges/1/cases/0 type",
            "/edges/1/cases/1/to unknown_node",
            "/edges/1/cases/1/when condition",
            "/edges/1/else type",
            "/edges/1/from unknown_node",
            "/edges/2/from required",
            "/edges/2/to unknown_node",
            "/extra unknown_field",
            "/format format",
            "/nodes/0/type unknown_type",
            "/nodes/1/name duplicate",
            "/nodes/1/template template",
            "/nodes/2/name name",
            "/nodes/2/seconds required",
            "/nodes/3/name required",
            "/nodes/3/pieces choice",
            "/nodes/4 type",
            "/nodes/5/retry/max_attempts range",
            "/nodes/5/seconds range",
            "/nodes/6/state/note unknown_channel",
            "/nodes/6/text unknown_name",
            "/nodes/6/text unknown_node",
            "/output template",
            "/state/notes/merge choice",
        ]
    );
}

#[test]
fn every_suggestion_can_be_written() {
    let document = json!({
        "format": "graph/1",
        "state": {"n": {"merge": "sum", "initial": "0"}},
        "nodes": [
            {"name": "a", "type": "template", "template": 5, "retry": {"max_attempts": 99, "jitter": "no"}},
            {"name": "b", "type": "log", "message": "", "level": "warning", "timeout_seconds": "30"},
            {"name": "c", "type": "for_each", "items": "a, b", "body": {"type": "log", "message": "", "state": {}}},
            {"name": "d", "type": "transform", "path": "$.a"},
            {"name": "e", "type": "set", "values": {}, "cache_seconds": 0.5, "on_error": {"to": "zebra"}},
            {"name": "e", "type": "delay", "seconds": 1, "cache_seconds": 5},
        ],
        "edges": [
            {"from": ["START", "a"], "to": "b"},
            {"from": ["b", "b"], "to": "START"},
            {"from": "c", "to": "d", "else": "e"},
            {"from": "d", "to": "e", "cases": [{"when": "x +", "to": "END"}]},
            {"from": "e"},
        ],
    });
    let found = check(&document).err().unwrap_or_default();
    let found: Vec<String> = found
        .into_iter()
        .map(|problem| format!("{}: {}", problem.pointer, problem.suggestion.unwrap()))
        .collect();
    assert_eq!(found, EXPECTED);
}

const EXPECTED: [&str; 20] = [
    r#"/edges/0/from: a separate edge: {"from": "START", "to": "<node>"}"#,
    "/edges/1/from: name it once",
    "/edges/1/to: nodes: a, b, c, d, e",
    r#"/edges/2/else: "cases": [{"when": "<condition>", "to": "<node>"}], "else": "<node>""#,
    "/edges/3/cases: remove 'to', and put its target into 'else'",
    "/edges/3/cases/0/when: an expression, such as results.check.ok and inputs.n > 3",
    r#"/edges/4/to: "to": "END""#,
    r#"/nodes/0/retry/jitter: "jitter": true"#,
    r#"/nodes/0/retry/max_attempts: "max_attempts": 20"#,
    r#"/nodes/0/template: "template": "5""#,
    "/nodes/1/level: did you mean 'warn'?",
    r#"/nodes/1/timeout_seconds: "timeout_seconds": 30"#,
    "/nodes/2/body/state: put 'state' next to 'body'",
    r#"/nodes/2/items: "items": "{{ inputs.list }}""#,
    r#"/nodes/3/input: "input": "{{ inputs }}""#,
    r#"/nodes/4/cache_seconds: "cache_seconds": 1"#,
    "/nodes/4/on_error/to: nodes: a, b, c, d, e",
    "/nodes/5/cache_seconds: remove 'cache_seconds'",
    "/nodes/5/name: another name, such as 'e_2'",
    r#"/state/n/initial: "initial": 0"#,
];

#[test]
fn members_that_a_node_never_returns_are_rejected() {
    let problems = |used: &str, on_error: &str| {
        let ask = json!({"name": "ask", "type": "llm", "model": "practice/reply", "user": "x", "on_error": on_error});
        let any = json!({"name": "any", "type": "set", "values": {"a": 1}});
        let say = json!({"name": "say", "type": "template", "template": used});
        let edges = json!([["START", "ask"], ["ask", "any"], ["any", "say"], ["say", "END"]]);
        let graph = graph(json!([ask, any, say]), edges);
        let found = check(&graph).err().unwrap_or_default();
        found
            .iter()
            .map(|p| format!("{} {}: {}", p.code, p.message, p.suggestion.clone().unwrap()))
            .collect::<Vec<_>>()
    };
    for good in [
        "{{ results.ask.text }}",
        "{{ results.ask.usage.calls }}",
        "{{ results.ask }}",
        "{{ results.any.whatever }}",
    ] {
        assert_eq!(problems(good, "fail"), [""; 0], "{good}");
    }
    let near = problems("{{ results.ask.txt | upper }}", "fail");
    assert_eq!(near, ["unknown_member 'ask' never returns 'txt': did you mean 'results.ask.text'?"]);
    let known = problems("{% if results.ask.answer %}x{% endif %}", "fail");
    let members = "results.ask has text, json, usage, model, finish_reason, unseen";
    assert_eq!(known, [format!("unknown_member 'ask' never returns 'answer': {members}")]);
    assert_eq!(problems("{{ results.ask.error.code }}", "continue"), [""; 0]);
    assert_eq!(problems("{{ results.ask.error.code }}", "fail").len(), 1);
}
