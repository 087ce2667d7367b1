//! The chat: requests, thread items, stream events.

mod answer;
mod attachment;
mod content;
mod event;
mod item;
mod parse;
mod parts;
mod request;
mod title;
mod update;

pub use answer::*;
pub use attachment::*;
pub use content::*;
pub use event::*;
pub use item::*;
pub use parts::*;
pub use request::*;
pub use title::*;

/// The dialect of a stream's text pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `thread.item.updated` with `content_part_added`, as in `interface.md`.
    Interface,
    /// ChatKit's own updates.
    Chatkit,
}

impl Dialect {
    /// The name in configuration and rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Chatkit => "chatkit",
        }
    }

    /// Parses a dialect name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Interface, Self::Chatkit].into_iter().find(|d| d.as_str() == name)
    }
}
