//! Tool calls, if the instructions or the user plainly request them.

use serde_json::{Map, Value};

use super::instruction::Action;
use super::parse::parse;
use super::reading::ParsedRequest;
use super::structured::Filler;
use super::text::{Token, sentences, tokens};
use models::{Tool, ToolCall};

const CALL: [&str; 4] = ["call", "use", "run", "invoke"];

/// The requested tool call.
pub(super) fn wanted(reading: &ParsedRequest<'_>) -> Option<ToolCall> {
    let tools = &reading.request.tools;
    if tools.is_empty() || reading.tool_result.is_some() {
        return None;
    }
    let by_rule = reading.asked().find_map(|action| match action {
        Action::Call(name) => Some(name.clone()),
        _ => None,
    });
    let by_user = || {
        sentences(&reading.input).iter().find_map(|sentence| match parse(sentence)?.action {
            Action::Call(name) => Some(name),
            _ => None,
        })
    };
    let named = by_rule.or_else(by_user);
    let tool = match named {
        Some(name) => tools.iter().find(|tool| same(&tool.name, &name))?,
        None => tools.iter().find(|tool| is_called(&reading.input, &tool.name))?,
    };
    Some(ToolCall { id: "call_1".to_owned(), name: tool.name.clone(), arguments: arguments(reading, tool) })
}

fn same(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
    plain(one) == plain(other)
}

/// `call weather`, `use the weather tool`.
fn is_called(input: &str, name: &str) -> bool {
    let tokens = tokens(input);
    let verb = tokens.iter().position(|token| token.word().is_some_and(|word| CALL.contains(&word)));
    verb.is_some_and(|verb| {
        let behind = tokens.iter().skip(verb.saturating_add(1)).take(3);
        behind.filter_map(|token| token.word().or(token.quote())).any(|word| same(word, name))
    })
}

/// The arguments: JSON in the text, else `name=value` and `name: value`, else the values that the schema's members
/// find in it.
fn arguments(reading: &ParsedRequest<'_>, tool: &Tool) -> Value {
    let input = &reading.input;
    if let Some(at) = input.find('{')
        && let Some(Ok(found @ Value::Object(_))) = input
            .get(at..)
            .and_then(|json| serde_json::Deserializer::from_str(json).into_iter::<Value>().next())
    {
        return found;
    }
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let mut given = Map::new();
    for part in tokens(input).windows(3) {
        if let [name, Token::Mark('=' | ':'), value] = part
            && let (Some(name), Some(value)) = (name.word(), value.word().or(value.quote()))
            && let Some((name, schema)) =
                properties.into_iter().flatten().find(|(known, _)| same(known, name))
        {
            let text = schema.get("type").is_some_and(|kind| kind == "string");
            let value = serde_json::from_str(value).ok().filter(|_| !text);
            let value = value.unwrap_or_else(|| Value::String(part.last().map(spelt).unwrap_or_default()));
            given.insert(name.clone(), value);
        }
    }
    let found = Filler { reading, root: &tool.parameters, said: input }.whole();
    match found {
        Value::Object(mut found) => {
            found.extend(given);
            Value::Object(found)
        }
        _ => Value::Object(given),
    }
}

fn spelt(token: &Token) -> String {
    token.word().or(token.quote()).unwrap_or_default().to_owned()
}
