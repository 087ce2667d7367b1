//! The content of a picture: boxes, and arrows between them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::text::{line, shortened};
use engine::nodes::CATALOGUE;
use engine::{END, EdgeSpec, Graph, NodeSpec, OnError, START, Target};

/// Maximum characters of a name or of the line below it.
const LONGEST: usize = 36;
/// Maximum characters of a condition.
const LONGEST_LABEL: usize = 44;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoxShape {
    Start,
    End,
    Node,
    /// An edge that waits for several nodes.
    Join,
}

#[derive(Debug, Clone)]
pub(super) struct DiagramItem {
    pub(super) shape: BoxShape,
    pub(super) name: String,
    /// The line below the name: the node type and its main setting.
    pub(super) detail: Option<String>,
    /// The node's group in the catalogue.
    pub(super) group: &'static str,
    /// The tooltip text.
    pub(super) full: String,
}

#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: Option<Label>,
    /// Taken only if the node failed.
    pub(super) on_error: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Label {
    pub(super) text: String,
    pub(super) full: String,
}

impl Label {
    fn new(text: &str) -> Self {
        let full = line(text);
        Self { text: shortened(&full, LONGEST_LABEL), full }
    }
}

/// Items and links. START is the first item; END, if reachable, the last.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    pub(super) items: Vec<DiagramItem>,
    pub(super) links: Vec<Link>,
}

impl Drawing {
    pub(super) fn from_graph(graph: &Graph) -> Self {
        let mut drawing = Self::default();
        let mut names = BTreeMap::new();
        names.insert(START, drawing.add(point(BoxShape::Start, START)));
        for node in &graph.nodes {
            let index = drawing.add(node_item(node));
            names.entry(node.name.as_str()).or_insert(index);
        }
        let diverts = |node: &NodeSpec| matches!(node.on_error(), OnError::To(to) if to == END);
        let ends = graph.edges.iter().any(|edge| edge.target.names().any(|name| name == END));
        // Joins are added before END, so that END is last.
        let joins: Vec<Option<usize>> = graph
            .edges
            .iter()
            .map(|edge| (edge.from.len() > 1).then(|| drawing.add(point(BoxShape::Join, "all"))))
            .collect();
        if ends || graph.nodes.iter().any(diverts) {
            names.insert(END, drawing.add(point(BoxShape::End, END)));
        }
        for (edge, join) in graph.edges.iter().zip(joins) {
            drawing.add_edge(edge, join, &names);
        }
        for node in &graph.nodes {
            if let OnError::To(to) = node.on_error()
                && let (Some(from), Some(to)) = (names.get(node.name.as_str()), names.get(to.as_str()))
            {
                let label = Some(Label::new("on error"));
                drawing.links.push(Link { from: *from, to: *to, label, on_error: true });
            }
        }
        drawing
    }

    fn add(&mut self, item: DiagramItem) -> usize {
        self.items.push(item);
        self.items.len() - 1
    }

    fn add_edge(&mut self, edge: &EdgeSpec, join: Option<usize>, names: &BTreeMap<&str, usize>) {
        let mut link = |from: usize, to: usize, label: Option<Label>| {
            self.links.push(Link { from, to, label, on_error: false });
        };
        let mut sources = edge.from.iter().filter_map(|name| names.get(name.as_str()).copied());
        let from = match join {
            Some(join) => {
                sources.for_each(|from| link(from, join, None));
                join
            }
            None => match sources.next() {
                Some(from) => from,
                None => return,
            },
        };
        match &edge.target {
            Target::To(to) => {
                if let Some(to) = names.get(to.as_str()) {
                    link(from, *to, None);
                }
            }
            Target::Cases { cases, otherwise } => {
                for (number, case) in (1..).zip(cases) {
                    let Some(to) = names.get(case.to.as_str()) else { continue };
                    // The first true condition wins, so labels show the order.
                    let when = &case.when;
                    let text = if cases.len() > 1 { format!("{number}. {when}") } else { when.clone() };
                    link(from, *to, Some(Label::new(&text)));
                }
                if let Some(to) = otherwise.as_ref().and_then(|to| names.get(to.as_str())) {
                    link(from, *to, Some(Label::new("else")));
                }
            }
        }
    }
}

fn point(shape: BoxShape, name: &str) -> DiagramItem {
    let full = match shape {
        BoxShape::Join => "waits for all of them".to_owned(),
        _ => name.to_owned(),
    };
    DiagramItem { shape, name: name.to_owned(), detail: None, group: "", full }
}

fn node_item(node: &NodeSpec) -> DiagramItem {
    let kind = line(&node.kind);
    let about = about(node).map(|about| line(&about)).filter(|about| !about.is_empty());
    // The beginning of a template says little; the tooltip shows the whole text.
    let mut detail = match about.as_ref().filter(|about| !about.contains("{{")) {
        Some(about) => shortened(&format!("{kind}: {about}"), LONGEST),
        None => kind.clone(),
    };
    if *node.on_error() == OnError::Continue {
        detail.push_str(" (may fail)");
    }
    let name = line(&node.name);
    let mut full = match &about {
        Some(about) => format!("{name}: {kind}, {about}"),
        None => format!("{name}: {kind}"),
    };
    if let Some(description) = &node.description {
        full.push_str(&format!(". {}", shortened(&line(description), 400)));
    }
    let group = CATALOGUE.iter().find(|known| known.name == node.kind).map_or("", |known| known.group);
    DiagramItem { shape: BoxShape::Node, name: shortened(&name, LONGEST), detail: Some(detail), group, full }
}

/// The setting that distinguishes a node from others of its type.
fn about(node: &NodeSpec) -> Option<String> {
    let text = |name: &str| node.fields.get(name).and_then(Value::as_str).map(str::to_owned);
    match node.kind.as_str() {
        "llm" => text("model"),
        "sub_workflow" => {
            let version = node.fields.get("version").and_then(Value::as_u64);
            let version = version.map(|version| format!(", version {version}")).unwrap_or_default();
            text("workflow").map(|workflow| format!("{workflow}{version}"))
        }
        "for_each" => {
            let body = node.fields.get("body").and_then(|body| body.get("type")).and_then(Value::as_str);
            body.map(str::to_owned)
        }
        "delay" => node.fields.get("seconds").map(|seconds| match seconds {
            Value::String(template) => template.clone(),
            seconds => format!("{seconds} s"),
        }),
        "assert" => text("when"),
        _ => None,
    }
}
