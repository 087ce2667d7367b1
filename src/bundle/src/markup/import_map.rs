//! Import maps: their targets must be files of the app.

use serde_json::Value;

use super::report::quoted;
use super::urls::{self, Url};
use crate::code::Code;

/// Checks an import map's text; `None` means that it is too long.
pub(super) fn check(text: Option<&str>, mut find: impl FnMut(Code, String)) {
    let map = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(Value::Object(map)) = map else {
        let detail = "The import map is not a JSON object of at most 256 KiB.";
        return find(Code::UnsupportedScriptType, detail.to_owned());
    };
    let scopes = map.get("scopes").and_then(Value::as_object).into_iter().flat_map(|scopes| scopes.values());
    let imports = map.get("imports").into_iter().chain(scopes);
    for (name, target) in imports.filter_map(Value::as_object).flatten() {
        // Null blocks an import.
        let Some(address) = target.as_str() else { continue };
        let is_path = ["/", "./", "../"].iter().any(|start| address.starts_with(start));
        if urls::classify(address) != Url::Relative || !is_path {
            let detail = format!("The import map leads {} to {}.", quoted(name), quoted(address));
            find(Code::ExternalScript, detail);
        }
    }
}
