//! Icon names. Source: openai-chatkit 1.6.5, `icons.py`; the widget's parser refuses every other name.

/// Names without a prefix.
const NAMES: [&str; 64] = [
    "agent",
    "analytics",
    "atom",
    "batch",
    "bolt",
    "book-open",
    "book-closed",
    "book-clock",
    "bug",
    "calendar",
    "chart",
    "check",
    "check-circle",
    "check-circle-filled",
    "chevron-left",
    "chevron-right",
    "circle-question",
    "clock",
    "compass",
    "confetti",
    "cube",
    "desktop",
    "document",
    "dot",
    "dots-horizontal",
    "dots-vertical",
    "empty-circle",
    "external-link",
    "globe",
    "keys",
    "lab",
    "images",
    "info",
    "lifesaver",
    "lightbulb",
    "mail",
    "map-pin",
    "maps",
    "mobile",
    "name",
    "notebook",
    "notebook-pencil",
    "page-blank",
    "phone",
    "play",
    "plus",
    "profile",
    "profile-card",
    "reload",
    "star",
    "star-filled",
    "search",
    "sparkle",
    "sparkle-double",
    "square-code",
    "square-image",
    "square-text",
    "suitcase",
    "settings-slider",
    "user",
    "wreath",
    "write",
    "write-alt",
    "write-alt2",
];

/// JSON Schema of an icon name.
pub(crate) fn schema() -> serde_json::Value {
    serde_json::json!({"type": "string", "anyOf": [{"enum": NAMES.as_slice()}, {"pattern": "^(lucide|vendor):"}]})
}

/// Whether every client knows the icon.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name) || name.starts_with("lucide:") || name.starts_with("vendor:")
}
