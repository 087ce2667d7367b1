//! Assistant message content: text with annotations.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An assistant message part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// Text.
    OutputText(OutputText),
}

/// Text with its annotations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputText {
    /// The text.
    pub text: String,
    /// Sources and entities named in the text.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
}

impl ContentPart {
    /// Plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::OutputText(OutputText { text: text.into(), annotations: Vec::new() })
    }
}

/// A mark in a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Annotation", transform = crate::schema::tagged("annotation")))]
#[serde(tag = "type", rename = "annotation")]
pub struct Annotation {
    /// The mark's target.
    pub source: Source,
    /// Character position of the mark; equal positions group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
}

/// An annotation's target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// Shown to the user.
    pub title: String,
    /// A few words about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Sources with the same group are shown together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The source's location.
    #[serde(flatten)]
    pub place: SourcePlace,
}

/// A source's location, by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SourcePlace {
    /// A file.
    File {
        /// Its name.
        filename: String,
    },
    /// A page.
    Url {
        /// Its address.
        url: String,
        /// Its author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attribution: Option<String>,
    },
    /// An object that the embedding page knows.
    Entity {
        /// The page's id for it.
        id: String,
        /// An icon's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icon: Option<String>,
        /// Shown in a source list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// Shown in the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inline_label: Option<String>,
        /// Whether it can be clicked.
        #[serde(default)]
        interactive: bool,
        /// Data for the page.
        #[serde(default)]
        data: Map<String, Value>,
    },
}
