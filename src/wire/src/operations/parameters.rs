//! Query parameters that several operations have.

use crate::operation::{Parameter, Values};

/// Entries of a page of a list.
pub(super) const LIMIT: Parameter =
    Parameter { name: "limit", about: "Entries of a page (default: 50).", values: Values::Whole(1, 200) };

/// Where a page begins.
pub(super) const CURSOR: Parameter = Parameter {
    name: "cursor",
    about: "`next_cursor` of the page before; absent or empty for the first page.",
    values: Values::Text,
};

/// Where a stream resumes.
pub(super) const AFTER: Parameter = Parameter {
    name: "after",
    about: "The id or the number of the event to resume after. The header `Last-Event-ID` takes precedence.",
    values: Values::Text,
};
