//! An agent's tools. A tool is a node whose templates see the arguments as `args`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::Resolved;
use crate::execute::{Call, Failure};
use crate::execute::{Effect, PlanNode};
use crate::execute::{Nested, StepOutput};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::graph::parse::read_inner;
use crate::nodes::network::mcp_call::McpEndpoint;
use crate::nodes::plan_body;
use crate::nodes::questions::Expiry;
use crate::schema::{self, Schema};
use models::Tool;

pub(super) const MOST_TOOLS: usize = 64;
/// Tool kinds.
const KINDS: [&str; 7] = ["node", "workflow", "http", "code", "client", "mcp", "collection"];

/// A tool as the graph declares it.
pub(super) struct Offered {
    pub(super) name: String,
    description: String,
    action: ToolAction,
}

enum ToolAction {
    /// Runs this node.
    Node { parameters: Value, schema: Schema, node: Arc<PlanNode> },
    /// Runs this workflow, whose inputs are the arguments.
    Workflow { workflow: String, version: Option<u32> },
    /// Runs a tool on this MCP server, which lists its own tools.
    Mcp { place: McpEndpoint, allow: Option<Vec<String>> },
}

impl Offered {
    /// Creates a tool that runs a node.
    pub(super) fn from_node(
        name: String,
        description: String,
        parameters: Value,
        schema: Schema,
        node: PlanNode,
    ) -> Self {
        Self { name, description, action: ToolAction::Node { parameters, schema, node: Arc::new(node) } }
    }

    /// The workflow that it runs.
    pub(super) fn workflow(&self) -> Option<(&str, Option<u32>)> {
        match &self.action {
            ToolAction::Workflow { workflow, version } => Some((workflow, *version)),
            ToolAction::Node { .. } | ToolAction::Mcp { .. } => None,
        }
    }

    /// Whether its call waits for a person or the page, so that the run may end meanwhile and continue as another
    /// run.
    pub(super) fn waits(&self) -> bool {
        matches!(&self.action, ToolAction::Node { node, .. } if node.effect == Effect::Wait)
    }

    /// The MCP server whose tools it represents.
    pub(super) fn mcp(&self) -> Option<&McpEndpoint> {
        match &self.action {
            ToolAction::Mcp { place, .. } => Some(place),
            _ => None,
        }
    }
}

pub(super) fn schema() -> Value {
    let name = json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"});
    let text = json!({"type": "string", "minLength": 1});
    let parameters = json!({"type": "object", "description": "JSON Schema of its arguments."});
    let tool = |kind: &str, required: &[&str], own: Value| {
        let mut properties = Map::new();
        properties.insert("type".to_owned(), json!({"const": kind}));
        properties.insert("name".to_owned(), name.clone());
        properties.insert("description".to_owned(), text.clone());
        properties.extend(own.as_object().cloned().unwrap_or_default());
        let required = ["type", "name", "description"].iter().chain(required).collect::<Vec<_>>();
        json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
    };
    json!({"oneOf": [
        tool("node", &["parameters", "node"], json!({"parameters": parameters, "node": {"type": "object", "required": ["type"]}})),
        tool("workflow", &["workflow"], json!({"workflow": {"type": "string"}, "version": {"type": "integer", "minimum": 1}})),
        tool("http", &["parameters", "request"], json!({"parameters": parameters, "request": {"type": "object"}})),
        tool("code", &["parameters", "module", "function"],
             json!({"parameters": parameters, "module": {"type": "string"}, "function": {"type": "string"}})),
        tool("client", &["parameters"], json!({"parameters": parameters, "expires_seconds": Expiry::schema()})),
        super::collection::schema(),
        {"type": "object", "required": ["type", "url"], "additionalProperties": false, "properties": {
            "type": {"const": "mcp"}, "url": {"type": "string"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "allow": {"type": "array", "minItems": 1, "items": {"type": "string"}, "description": "Tools of the server that the model may call (default: all)."}}}]})
}

/// Reads an agent's tools.
pub(super) fn read(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Vec<Offered> {
    const SUGGESTION: &str =
        r#""tools": [{"type": "workflow", "name": "refund", "description": "…", "workflow": "refund"}]"#;
    let pointer = fields.at("tools");
    let entries = match fields.value("tools") {
        None => return Vec::new(),
        Some(Value::Array(entries)) if entries.len() <= MOST_TOOLS => entries,
        Some(_) => {
            let problem =
                FieldError::new(pointer, "type", format!("must be a list of at most {MOST_TOOLS} tools"));
            check.note(problem.suggest(SUGGESTION));
            return Vec::new();
        }
    };
    let mut tools: Vec<Offered> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("{pointer}/{index}");
        let Some(mut fields) = Fields::from_value(at.clone(), entry, &mut check.problems) else { continue };
        if entry.get("type").and_then(Value::as_str) == Some("collection") {
            for tool in super::collection::read(&mut fields, spec, check) {
                add(tool, format!("{at}/collection"), &mut tools, check);
            }
            continue;
        }
        let Some(tool) = read_tool(&mut fields, spec, check) else { continue };
        add(tool, format!("{at}/name"), &mut tools, check);
    }
    tools
}

fn add(tool: Offered, pointer: String, tools: &mut Vec<Offered>, check: &mut Check) {
    if tool.mcp().is_none() && tools.iter().any(|known| known.name == tool.name) {
        let problem = FieldError::new(pointer, "duplicate", format!("duplicate '{}'", tool.name));
        check.note(problem.suggest(format!("another name, such as '{}_2'", tool.name)));
    }
    tools.push(tool);
}

fn read_tool(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Offered> {
    fields.required("type", &mut check.problems);
    let kind = fields.word("type", &KINDS, &mut check.problems);
    if kind == Some("mcp") {
        let place = McpEndpoint::read(fields, check);
        let allow = read_allow(fields, check);
        fields.refuse_others(&mut check.problems);
        let (name, description) = (String::new(), String::new());
        return Some(Offered { name, description, action: ToolAction::Mcp { place: place?, allow } });
    }
    let name = fields.text("name", &mut check.problems).map(str::to_owned);
    let name = name.filter(|name| is_name(name, &fields.at("name"), check));
    let description = fields.text("description", &mut check.problems).map(str::to_owned);
    let action = match kind? {
        "workflow" => {
            let workflow = fields.text("workflow", &mut check.problems).map(str::to_owned);
            let version = fields.whole("version", 1..=u32::MAX, &mut check.problems);
            workflow.map(|workflow| ToolAction::Workflow { workflow, version })
        }
        kind => {
            let parameters = read_parameters(fields, check);
            let node = read_node(kind, name.as_deref(), fields, spec, check);
            let (parameters, schema) = parameters?;
            node.map(|node| ToolAction::Node { parameters, schema, node: Arc::new(node) })
        }
    };
    fields.refuse_others(&mut check.problems);
    Some(Offered { name: name?, description: description?, action: action? })
}

fn read_allow(fields: &mut Fields<'_>, check: &mut Check) -> Option<Vec<String>> {
    let allow = fields.value("allow")?;
    let names = allow.as_array().map(Vec::as_slice).unwrap_or_default();
    let read: Vec<String> = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    if read.is_empty() || read.len() < names.len() {
        let problem = FieldError::new(fields.at("allow"), "type", "must be a list of tool names");
        check.note(problem.suggest(r#""allow": ["get_weather"]"#));
    }
    Some(read)
}

/// Endpoints accept no other names.
fn is_name(name: &str, pointer: &str, check: &mut Check) -> bool {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let rest = letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let good = begins && rest && name.len() <= 64;
    if !good {
        let problem = FieldError::new(pointer, "name", format!("'{name}' is not a valid tool name"));
        check.note(problem.suggest("use at most 64 letters, digits, _ and -, beginning with a letter"));
    }
    good
}

fn read_parameters(fields: &mut Fields<'_>, check: &mut Check) -> Option<(Value, Schema)> {
    let parameters = fields.required("parameters", &mut check.problems)?;
    let schema = schema::compile(parameters, &fields.at("parameters"), check)?;
    Some((parameters.clone(), schema))
}

/// Reads a tool's node; `http`, `code` and `client` are shorthands for one.
fn read_node(
    kind: &str,
    name: Option<&str>,
    fields: &mut Fields<'_>,
    spec: &NodeSpec,
    check: &mut Check,
) -> Option<PlanNode> {
    let (pointer, node) = match kind {
        "http" => {
            let mut request = fields.required("request", &mut check.problems)?.clone();
            if let Some(members) = request.as_object_mut() {
                members.insert("type".to_owned(), json!("http_request"));
            }
            (fields.at("request"), request)
        }
        "code" => {
            let module = fields.text("module", &mut check.problems).map(str::to_owned);
            let function = fields.text("function", &mut check.problems).map(str::to_owned);
            let node =
                json!({"type": "code", "module": module?, "function": function?, "args": "{{ args }}"});
            (fields.at("module").trim_end_matches("/module").to_owned(), node)
        }
        "client" => {
            let name = name?;
            let mut node = json!({"type": "client_tool", "tool": name, "arguments": "{{ args }}",
                                  "key": format!("{}.{name}", spec.name)});
            let expires = fields.value("expires_seconds");
            if let (Some(expires), Some(members)) = (expires, node.as_object_mut()) {
                members.insert("expires_seconds".to_owned(), expires.clone());
            }
            (fields.at("expires_seconds").trim_end_matches("/expires_seconds").to_owned(), node)
        }
        _ => (fields.at("node"), fields.required("node", &mut check.problems)?.clone()),
    };
    let body = read_inner(pointer, &node, &spec.name, "the node of a tool", &mut check.problems)?;
    check.with_args(|check| plan_body(&body, check))
}

/// A callable tool.
pub(super) struct Ready {
    /// The description that the model receives.
    pub(super) told: Tool,
    pub(super) target: ToolTarget,
}

/// The target of a tool call.
pub(super) enum ToolTarget {
    /// The agent's tool with this index.
    Node(usize),
    /// This workflow version.
    Workflow(Resolved),
    /// The tool with the same name on this MCP server: its address and headers.
    Mcp(Map<String, Value>),
}

/// Resolves the tools: workflows at the versions recorded when the node began, and MCP tools as listed then. `places`
/// holds the servers' addresses in order.
pub(super) async fn ready(
    offered: &[Offered],
    places: &Value,
    call: &Call<'_>,
    nested: &Nested<'_>,
    output: &StepOutput<'_>,
) -> Result<Vec<Ready>, Failure> {
    let mut tools = Vec::with_capacity(offered.len());
    let mut places = places.as_array().into_iter().flatten();
    for (index, tool) in offered.iter().enumerate() {
        let (parameters, target) = match &tool.action {
            ToolAction::Node { parameters, .. } => (parameters.clone(), ToolTarget::Node(index)),
            ToolAction::Workflow { .. } => {
                let noted =
                    call.note.as_ref().and_then(|note| note.get("versions")?.get(&tool.name)?.as_str());
                let version = noted.ok_or_else(|| NodeError::failed("the version was not recorded"))?;
                let found = call.workflows().version(version).await?;
                let inputs = found.plan.written_inputs().cloned();
                (inputs.unwrap_or_else(|| json!({"type": "object"})), ToolTarget::Workflow(found))
            }
            ToolAction::Mcp { allow, .. } => {
                let place = places.next().and_then(Value::as_object).cloned().unwrap_or_default();
                let listed = super::mcp::list(index, &place, nested, output).await?;
                let known = |tool: &Tool| allow.as_ref().is_none_or(|allow| allow.contains(&tool.name));
                let known = listed.into_iter().filter(known);
                tools.extend(known.map(|told| Ready { told, target: ToolTarget::Mcp(place.clone()) }));
                continue;
            }
        };
        let (name, description) = (tool.name.clone(), tool.description.clone());
        tools.push(Ready { told: Tool { name, description, parameters }, target });
    }
    for (index, tool) in tools.iter().enumerate() {
        if tools.iter().skip(index + 1).any(|other| other.told.name == tool.told.name) {
            let message = format!("two tools have the name '{}'; exclude one with 'allow'", tool.told.name);
            return Err(NodeError::failed(message).into());
        }
    }
    Ok(tools)
}

impl Offered {
    /// Returns the node that it runs, and its arguments' schema.
    pub(super) fn node(&self) -> Option<(&Arc<PlanNode>, &Schema)> {
        match &self.action {
            ToolAction::Node { node, schema, .. } => Some((node, schema)),
            _ => None,
        }
    }
}
