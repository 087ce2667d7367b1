//! Reading the row of a statement that is its own transaction.

use diesel::result::{Error, QueryResult};

/// The row of a statement that changes something, for use behind `get_results`.
///
/// `get_result` and `first` yield as soon as the row has come, which is before the commit: a server that goes down in
/// between would go unnoticed, and the change with it. Reading to the end waits for the commit.
pub(crate) fn committed<T>(mut rows: Vec<T>) -> QueryResult<T> {
    rows.pop().ok_or(Error::NotFound)
}
