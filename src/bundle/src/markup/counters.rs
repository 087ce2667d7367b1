//! Limits for a document's complexity.

use std::time::Duration;

/// Maximum document bytes.
pub(super) const MAX_BYTES: u64 = 5 * 1024 * 1024;
/// Maximum processor time for a document.
pub(super) const MAX_TIME: Duration = Duration::from_secs(2);
/// Maximum nesting of documents: in `srcdoc` and `noscript`.
pub(super) const MAX_NESTED: usize = 4;
const MAX_ELEMENTS: usize = 500_000;
const MAX_DEPTH: usize = 512;
/// Maximum attributes per tag.
pub(super) const MAX_ATTRIBUTES: usize = 1_000;
const MAX_INLINE_SCRIPTS: usize = 1_000;

/// The counts so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counters {
    elements: usize,
    inline_scripts: usize,
    depth: usize,
    attributes: usize,
}

impl Counters {
    pub(super) fn element(&mut self, attributes: usize) {
        self.elements += 1;
        self.attributes = self.attributes.max(attributes);
    }

    pub(super) fn depth(&mut self, depth: usize) {
        self.depth = self.depth.max(depth);
    }

    pub(super) fn inline_script(&mut self) {
        self.inline_scripts += 1;
    }

    /// Returns the exceeded limit.
    pub(super) fn exceeded(&self) -> Option<String> {
        let rows = [
            (self.attributes, MAX_ATTRIBUTES, "attributes in a tag"),
            (self.depth, MAX_DEPTH, "elements inside each other"),
            (self.inline_scripts, MAX_INLINE_SCRIPTS, "inline scripts"),
            (self.elements, MAX_ELEMENTS, "elements"),
        ];
        let row = rows.into_iter().find(|(count, limit, _)| count > limit);
        row.map(|(_, limit, what)| format!("The document has more than {limit} {what}."))
    }
}
