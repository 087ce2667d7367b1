//! Pagination.
//!
//! A cursor names its list and the last entry returned. Clients send it back unchanged.

use std::fmt::Display;
use std::str::FromStr;

use actix_web::HttpRequest;

use super::error::{ApiError, ApiResult};
use super::query::Params;

/// Default entries per page.
const DEFAULT: i64 = 50;
/// Maximum entries per page.
const MOST: i64 = 200;

/// The start and maximum length of a page.
pub(super) struct PageQuery<K> {
    pub(super) after: Option<K>,
    pub(super) limit: i64,
}

impl<K: FromStr> PageQuery<K> {
    /// Reads `limit` and `cursor` from a query.
    pub(super) fn from_params(params: &mut Params, list: &str) -> Self {
        Self::within(params, list, DEFAULT, MOST)
    }

    /// Reads `limit` and `cursor` from a request; refuses other query parameters.
    pub(super) fn from_request(request: &HttpRequest, list: &str) -> ApiResult<Self> {
        let mut params = Params::from_request(request);
        let part = Self::from_params(&mut params, list);
        ApiError::refuse(params.finish())?;
        Ok(part)
    }

    /// Like [`Self::from_params`], with other limits.
    pub(super) fn within(params: &mut Params, list: &str, default: i64, most: i64) -> Self {
        let limit = params.whole("limit", 1..=most).unwrap_or(default);
        let cursor = params.text("cursor").filter(|cursor| !cursor.is_empty());
        let after = cursor.as_deref().and_then(|cursor| read(list, cursor));
        if cursor.is_some() && after.is_none() {
            params.note("cursor", "format", "is not a cursor of this list; use next_cursor unchanged");
        }
        Self { after, limit }
    }

    /// The number of entries to fetch: one more than requested, to see whether a next page exists.
    pub(super) fn wanted(&self) -> i64 {
        self.limit + 1
    }

    /// Drops the extra entry and returns the next page's cursor.
    pub(super) fn cut<T>(&self, list: &str, entries: &mut Vec<T>, key: impl FnOnce(&T) -> K) -> Option<String>
    where
        K: Display,
    {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        if entries.len() <= limit {
            return None;
        }
        entries.truncate(limit);
        entries.last().map(|last| cursor(list, &key(last)))
    }
}

/// The cursor of this list after an entry.
pub(super) fn cursor(list: &str, key: &impl Display) -> String {
    hex::encode(format!("{list}:{key}"))
}

fn read<K: FromStr>(list: &str, cursor: &str) -> Option<K> {
    let text = String::from_utf8(hex::decode(cursor).ok()?).ok()?;
    text.strip_prefix(list)?.strip_prefix(':')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(query: &str) -> (PageQuery<i32>, Vec<String>) {
        let mut params = Params::parse(query);
        let part = PageQuery::from_params(&mut params, "numbers");
        (part, params.finish().into_iter().map(|problem| problem.pointer).collect())
    }

    #[test]
    fn a_list_is_read_page_by_page() {
        let all: Vec<i32> = (1..=5).rev().collect();
        let (mut seen, mut query) = (Vec::new(), "limit=2".to_owned());
        loop {
            let (part, problems) = part(&query);
            assert_eq!(problems, [""; 0]);
            let rest = all.iter().copied().filter(|n| part.after.is_none_or(|after| *n < after));
            let mut entries: Vec<i32> = rest.take(part.wanted().try_into().unwrap()).collect();
            let next = part.cut("numbers", &mut entries, |n| *n);
            seen.extend(entries);
            match next {
                Some(cursor) => query = format!("limit=2&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn only_cursors_of_the_same_list_are_accepted() {
        assert_eq!(part("").0.limit, DEFAULT);
        assert_eq!(part("cursor=").1, [""; 0]);
        let of_another = hex::encode("letters:3");
        for bad in ["x", "3", "zz", &of_another, &hex::encode("numbers:x"), &hex::encode("numbers")] {
            assert_eq!(part(&format!("cursor={bad}")).1, ["/cursor"], "{bad}");
        }
        assert_eq!(part("limit=201&cursor=x").1, ["/limit", "/cursor"]);
    }
}
