//! Picture structure: nothing overlaps, nothing is missing, nothing breaks out of its element.

use serde_json::{Value, json};

use super::layers::{Layout, Vertex};
use super::model::{BoxShape, Drawing};
use super::place::{Placed, place};
use super::{TooLarge, mermaid, svg};
use engine::parse;

/// A support desk: branches, a fan-out, a join, a loop, an error path.
fn desk() -> Value {
    json!({
        "format": "graph/1",
        "nodes": [
            {"name": "classify", "type": "llm", "model": "openai/gpt-4.1-mini", "user": "x", "on_error": {"to": "sorry"}},
            {"name": "refund", "type": "sub_workflow", "workflow": "refund", "version": 4},
            {"name": "look_up", "type": "for_each", "items": [], "body": {"type": "template", "template": "x"}},
            {"name": "draft", "type": "llm", "model": "practice/reply", "user": "x"},
            {"name": "good_enough", "type": "assert", "when": "results.draft.text", "on_error": "continue"},
            {"name": "answer", "type": "reply", "text": "x", "description": "Says it."},
            {"name": "sorry", "type": "notice", "message": "x"},
        ],
        "edges": [
            {"from": "START", "to": "classify"},
            {"from": "classify", "cases": [{"when": "results.classify.json.kind == 'refund'", "to": "refund"},
                                           {"when": "results.classify.json.kind == 'spam'", "to": "END"}],
             "else": "look_up"},
            {"from": "classify", "to": "draft"},
            {"from": ["look_up", "draft"], "to": "good_enough"},
            {"from": "good_enough", "cases": [{"when": "results.good_enough.ok", "to": "answer"}], "else": "draft"},
            {"from": "refund", "to": "answer"},
            {"from": "answer", "to": "END"},
            {"from": "sorry", "to": "END"},
        ],
    })
}

/// A graph with pseudorandom edges and loops; the same seed gives the same graph.
fn tangle(seed: u64, count: u64) -> Value {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let name = |index: u64| {
        format!("n{}{index}", "ode_with_a_long_name_".repeat(usize::from(index.is_multiple_of(3))))
    };
    let nodes: Vec<Value> =
        (0..count).map(|index| json!({"name": name(index), "type": "reply", "text": "x"})).collect();
    let mut edges = vec![json!({"from": "START", "to": name(0)})];
    for index in 0..count {
        let (one, two) = (name(next(count)), name(next(count)));
        edges.push(match next(4) {
            0 => json!({"from": name(index), "cases": [{"when": "a < b", "to": one}], "else": two}),
            1 => json!({"from": [name(index), one], "to": two}),
            2 => json!({"from": name(index), "to": "END"}),
            _ => json!({"from": name(index), "to": name((index + 1) % count)}),
        });
    }
    json!({"format": "graph/1", "nodes": nodes, "edges": edges})
}

fn placed(graph: &Value) -> (Drawing, Placed) {
    let drawing = Drawing::from_graph(&parse(graph).unwrap());
    let layout = Layout::new(&drawing).unwrap();
    let placed = place(&drawing, &layout);
    (drawing, placed)
}

/// Asserts that a picture is readable.
fn assert_readable(graph: &Value) {
    let (drawing, placed) = placed(graph);
    let areas: Vec<_> = placed.vertices.iter().filter(|(vertex, _)| *vertex != Vertex::Bend).collect();
    for (index, (_, one)) in areas.iter().enumerate() {
        assert!(one.left() >= 0.0 && one.top() >= 0.0, "{one:?}");
        assert!(one.right() <= placed.width && one.bottom() <= placed.height, "{one:?}");
        for (_, two) in areas.iter().skip(index + 1) {
            let apart = one.right() <= two.left()
                || two.right() <= one.left()
                || one.bottom() <= two.top()
                || two.bottom() <= one.top();
            assert!(apart, "{one:?} lies over {two:?}");
        }
    }
    // Long lines keep a distance from boxes.
    for (_, bend) in placed.vertices.iter().filter(|(vertex, _)| *vertex == Vertex::Bend) {
        for (_, area) in areas.iter().filter(|(_, area)| (area.y - bend.y).abs() < 1.0) {
            assert!((area.x - bend.x).abs() >= area.width / 2.0 + 8.0, "a line runs through {area:?}");
        }
    }
    let labels = drawing.links.iter().filter(|link| link.label.is_some()).count();
    assert_eq!(areas.len(), drawing.items.len() + labels);
    assert_eq!(placed.lines.len(), drawing.links.len() + labels);
    let arriving = drawing.links.iter().filter(|link| drawing.items[link.to].shape != BoxShape::Join);
    assert_eq!(placed.lines.iter().filter(|line| line.head.is_some()).count(), arriving.count());
    for line in &placed.lines {
        assert!(
            line.right < placed.width && !line.path.contains("NaN") && !line.path.contains("inf"),
            "{line:?}"
        );
    }
}

/// Returns a document's elements. Panics if tags are not closed in order.
fn elements(document: &str) -> Vec<String> {
    let (mut open, mut all, mut rest) = (Vec::new(), Vec::new(), document);
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "a stray > in {:?}", &rest[..at]);
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None => {
                let name = tag.split([' ', '/']).next().unwrap().to_owned();
                all.push(name.clone());
                if !tag.ends_with('/') {
                    open.push(name);
                }
            }
        }
        rest = &rest[end + 1..];
    }
    assert_eq!(open, [""; 0]);
    all
}

#[test]
fn a_support_desk_graph_is_drawn_in_mermaid() {
    let expected = "\
flowchart TD
    n0([\"START\"])
    n1[\"classify<br/>llm: openai/gpt-4.1-mini\"]
    n2[\"refund<br/>sub_workflow: refund, version 4\"]
    n3[\"look_up<br/>for_each: template\"]
    n4[\"draft<br/>llm: practice/reply\"]
    n5[\"good_enough<br/>assert: results.draft.text (may fail)\"]
    n6[\"answer<br/>reply\"]
    n7[\"sorry<br/>notice\"]
    n8((\"all\"))
    n9([\"END\"])
    n0 --> n1
    n1 -->|\"1. results.classify.json.kind == 'refund'\"| n2
    n1 -->|\"2. results.classify.json.kind == 'spam'\"| n9
    n1 -->|\"else\"| n3
    n1 --> n4
    n3 --> n8
    n4 --> n8
    n8 --> n5
    n5 -->|\"results.good_enough.ok\"| n6
    n5 -->|\"else\"| n4
    n2 --> n6
    n6 --> n9
    n7 --> n9
    n1 -.->|\"on error\"| n7
";
    assert_eq!(mermaid(&parse(&desk()).unwrap()), expected);
}

#[test]
fn drawn_elements_do_not_overlap() {
    assert_readable(&desk());
    for seed in 1..40 {
        assert_readable(&tangle(seed, 3 + seed));
    }
    let alone = json!({"format": "graph/1", "nodes": [{"name": "a", "type": "reply", "text": "x"}],
                       "edges": [{"from": "START", "to": "a"}, {"from": "a", "to": "a"}]});
    assert_readable(&alone);
    assert_readable(&json!({"format": "graph/1", "nodes": [], "edges": []}));
}

#[test]
fn the_document_is_well_formed_and_complete() {
    let document = svg(&parse(&desk()).unwrap(), "Desk, version 3").unwrap();
    let elements = elements(&document);
    assert_eq!(elements.first().map(String::as_str), Some("svg"));
    for element in &elements {
        assert!(
            ["svg", "title", "desc", "style", "rect", "g", "path", "text"].contains(&element.as_str()),
            "{element}"
        );
    }
    for name in ["START", "END", "classify", "refund", "look_up", "draft", "good_enough", "answer", "sorry"] {
        assert!(document.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(document.contains("<title id=\"title\">Desk, version 3</title>"));
    assert!(document.contains("look_up and draft together lead to good_enough."), "{document}");
    assert!(document.contains("good_enough leads to draft (else)."));
    assert!(document.contains("classify leads to sorry (on error)."));
    assert!(document.contains("prefers-color-scheme:dark"));
    assert_eq!(document, svg(&parse(&desk()).unwrap(), "Desk, version 3").unwrap());
}

#[test]
fn hostile_text_stays_text() {
    let evil = "</text></svg><script>alert(1)</script><a href=\"javascript:x\">&'\u{0}\u{1b}\u{202e}]]>--> %%{init}%%\n";
    let graph = json!({
        "format": "graph/1",
        "nodes": [{"name": "a", "type": "sub_workflow", "workflow": evil, "description": evil},
                  {"name": "b", "type": "llm", "model": evil, "user": "x"},
                  {"name": "c", "type": evil}],
        "edges": [{"from": "START", "to": "a"}, {"from": "a", "cases": [{"when": evil, "to": "b"}], "else": "c"}],
    });
    let graph = parse(&graph).unwrap();
    let document = svg(&graph, evil).unwrap();
    for element in elements(&document) {
        assert!(
            ["svg", "title", "desc", "style", "rect", "g", "path", "text"].contains(&element.as_str()),
            "{element}"
        );
    }
    assert!(!document.contains("<script") && !document.contains("<a ") && !document.contains("href=\""));
    assert!(document.chars().all(|letter| letter == '\n' || (!letter.is_control() && letter != '\u{202e}')));
    let text = mermaid(&graph);
    assert!(!text.contains("<script") && !text.contains("%%") && !text.contains("\u{1b}"), "{text}");
    // Besides its line breaks and arrows, no text has an HTML bracket, and every quote belongs to a label's pair.
    for line in text.lines() {
        assert!(!line.replace("<br/>", "").contains('<'), "{line}");
        assert_eq!(line.matches('"').count() % 2, 0, "{line}");
    }
}

#[test]
fn a_template_is_shown_completely_or_not_at_all() {
    let model = "{{ config.model | default('openai/gpt-4.1-mini') }}";
    let graph = json!({"format": "graph/1", "nodes": [{"name": "a", "type": "llm", "model": model, "user": "x"}],
                       "edges": [{"from": "START", "to": "a"}]});
    let graph = parse(&graph).unwrap();
    assert!(mermaid(&graph).contains("[\"a<br/>llm\"]"), "{}", mermaid(&graph));
    let document = svg(&graph, "x").unwrap();
    assert!(
        document
            .contains("<title>a: llm, {{ config.model | default(&#39;openai/gpt-4.1-mini&#39;) }}</title>")
    );
}

#[test]
fn too_large_graphs_are_rejected_quickly() {
    let graph = parse(&tangle(7, 700)).unwrap();
    assert_eq!(svg(&graph, "x"), Err(TooLarge));
    assert!(mermaid(&graph).lines().count() > 700);
    // Few boxes, but each node in a long chain also leads to END.
    let count = 290;
    let name = |index: usize| format!("n{index}");
    let nodes: Vec<Value> =
        (0..count).map(|index| json!({"name": name(index), "type": "reply", "text": "x"})).collect();
    let mut edges = vec![json!({"from": "START", "to": "n0"})];
    for index in 0..count - 1 {
        edges.push(json!({"from": name(index), "to": name(index + 1)}));
        edges.push(json!({"from": name(index), "to": "END"}));
        edges.push(json!({"from": "START", "to": name(index)}));
    }
    assert_eq!(
        svg(&parse(&json!({"format": "graph/1", "nodes": nodes, "edges": edges})).unwrap(), "x"),
        Err(TooLarge)
    );
}
