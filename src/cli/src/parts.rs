//! Paginated lists.

use client::{ClientError, Part};
use wire::Listed;

use crate::options::ServiceSession;
use crate::output::CommandError;

/// Entries per page.
const LIMIT: u32 = 200;

/// Reads all pages of a list.
pub(crate) async fn all<T>(
    session: &ServiceSession,
    read: impl AsyncFn(&Part) -> Result<Listed<T>, ClientError>,
) -> Result<Vec<T>, CommandError> {
    let mut all = Vec::new();
    let mut part = Part { limit: Some(LIMIT), cursor: None };
    loop {
        let listed = session.received(read(&part).await)?;
        all.extend(listed.data);
        part.cursor = listed.next_cursor;
        if part.cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Reads the first entries of a list.
pub(crate) async fn at_most<T>(
    mut missing: u32,
    read: impl AsyncFn(&Part) -> Result<Listed<T>, CommandError>,
) -> Result<Vec<T>, CommandError> {
    let (mut found, mut part) = (Vec::new(), Part::default());
    while missing > 0 {
        part.limit = Some(missing.min(LIMIT));
        let listed = read(&part).await?;
        missing = missing.saturating_sub(u32::try_from(listed.data.len()).unwrap_or(missing));
        found.extend(listed.data);
        part.cursor = listed.next_cursor;
        if part.cursor.is_none() {
            break;
        }
    }
    Ok(found)
}
