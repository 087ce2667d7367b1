//! Version diagrams over HTTP.

use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::{Value, json};

#[tokio::test]
async fn a_version_diagram_is_rendered_again_only_after_a_change() {
    let t = TestService::start().await;
    let workflow = t.workflow().named("Desk <b>&").graph(graphs::interrupted("a", 1.0, "b")).create().await;
    let path = format!("/api/workflows/{}/versions/1/diagram", workflow.handle);
    let svg = t.get(&format!("{path}.svg")).await;
    assert_eq!((svg.status, svg.header("content-type")), (200, Some("image/svg+xml")));
    let policy = svg.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';") && policy.ends_with("sandbox"), "{policy}");
    assert_eq!(svg.header("x-content-type-options"), Some("nosniff"));
    assert!(
        svg.text().starts_with("<svg ") && svg.text().contains("Desk &lt;b&gt;&amp;, version 1"),
        "{}",
        svg.text()
    );
    for name in ["START", "first", "wait", "second", "END"] {
        assert!(svg.text().contains(&format!(">{name}</text>")), "{name}");
    }
    let mermaid = t.get(&format!("{path}.mmd")).await;
    assert_eq!((mermaid.status, mermaid.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(mermaid.text().starts_with("flowchart TD\n    n0([\"START\"])\n"), "{}", mermaid.text());

    for (ending, answer) in [("svg", &svg), ("mmd", &mermaid)] {
        let tag = answer.header("etag").unwrap();
        for tags in [tag.to_owned(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let again = t.send("GET", &format!("{path}.{ending}"), &[("if-none-match", &tags)], "").await;
            assert_eq!((again.status, again.header("etag"), again.text().as_str()), (304, Some(tag), ""));
        }
        let other = t.send("GET", &format!("{path}.{ending}"), &[("if-none-match", "\"x\"")], "").await;
        assert_eq!(other.body, answer.body);
    }
    assert_ne!(svg.header("etag"), mermaid.header("etag"));
    for missing in ["2/diagram.svg", "x/diagram.mmd"] {
        let path = format!("/api/workflows/{}/versions/{missing}", workflow.id);
        assert_eq!(t.get(&path).await.refusal(), "404 version.not_found", "{missing}");
    }
    assert_eq!(t.get(&format!("{path}.svg?dark=1")).await.refusal(), "422 request.invalid");
    assert_eq!(t.get("/api/workflows/none/versions/1/diagram.svg").await.refusal(), "404 workflow.not_found");
    assert_eq!(t.get(&format!("{path}.png")).await.refusal(), "404 request.not_found");
}

#[tokio::test]
async fn oversized_graphs_are_available_as_text_only() {
    let t = TestService::start().await;
    let nodes: Vec<Value> =
        (0..700).map(|n| json!({"name": format!("n{n}"), "type": "template", "template": "x"})).collect();
    let workflow = t.workflow().graph(graphs::chain(&nodes, None)).create().await;
    let path = workflow.path("/versions/1/diagram");
    assert_eq!(t.get(&format!("{path}.svg")).await.refusal(), "422 diagram.too_large");
    assert!(t.get(&format!("{path}.mmd")).await.text().contains("n699"));
}
