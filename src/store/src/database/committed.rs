//! Reads the row that an autocommitted statement returns.

use diesel::result::{Error, QueryResult};

/// The row from a statement that changes data; for use after `get_results`.
///
/// `get_result` and `first` return as soon as the row arrives, which is before the commit: a server crash in
/// between would lose the change unnoticed. Reading to the end waits for the commit.
pub(crate) fn committed<T>(mut rows: Vec<T>) -> QueryResult<T> {
    rows.pop().ok_or(Error::NotFound)
}
