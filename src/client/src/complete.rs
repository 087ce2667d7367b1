//! Completes ids that a caller has abbreviated to their beginning.

use serde_json::Value;
use uuid::Uuid;
use wire::operation::{Method, Operation};
use wire::operations;

use crate::call::texts;
use crate::{Answer, Client, ClientError};

/// Minimum characters of an id prefix.
const SHORTEST: usize = 4;
/// Maximum pages searched per list.
const MOST_PAGES: usize = 50;
/// Entries per page.
const PAGE: &str = "200";
/// Maximum ids that a message about an ambiguous prefix names.
const SHOWN: usize = 3;

impl Client {
    /// The values of a path with prefixes completed to ids; `None` if the response is not about an unknown id, or if no
    /// list has an id with the prefix.
    ///
    /// # Errors
    /// [`ClientError::Usage`] for a prefix of several ids.
    pub(crate) async fn completed(
        &self,
        operation: &Operation,
        values: &[&str],
        answer: &Answer,
    ) -> Result<Option<Vec<String>>, ClientError> {
        // For an unknown workspace, a restricted caller gets 403.
        let is_unknown = matches!(answer.status, 403 | 404);
        if !self.parts().completes_ids || !is_unknown || !values.iter().any(|value| is_beginning(value)) {
            return Ok(None);
        }
        let mut whole: Vec<String> = Vec::new();
        for value in values {
            let found = match is_beginning(value) {
                true => self.complete(operation, &whole, value).await?,
                false => None,
            };
            whole.push(found.unwrap_or_else(|| (*value).to_owned()));
        }
        let is_same = texts(&whole) == values;
        Ok((!is_same).then_some(whole))
    }

    /// The only id with this prefix in the list above the next path parameter.
    async fn complete(
        &self,
        operation: &Operation,
        before: &[String],
        beginning: &str,
    ) -> Result<Option<String>, ClientError> {
        let Some((list, parameter)) = list_of(operation, before.len()) else { return Ok(None) };
        let member = if parameter == "user_id" { "user_id" } else { "id" };
        let mut query = query_of(list, beginning);
        let before = texts(before);
        let mut found = Vec::new();
        for _ in 0..MOST_PAGES {
            let answer = self.read_once(list, &before, &query).await?;
            if !answer.is_success() {
                return Ok(None);
            }
            let body = answer.json()?;
            let entries = body.as_array().or_else(|| body.get("data")?.as_array());
            let ids = entries.into_iter().flatten().filter_map(|entry| entry.get(member)?.as_str());
            found.extend(ids.filter(|id| id.starts_with(beginning)).map(str::to_owned));
            let next = body.get("next_cursor").and_then(Value::as_str).or(answer.header("x-next-cursor"));
            let Some(next) = next.map(str::to_owned) else { return one_of(found, beginning) };
            if found.len() > 1 {
                return one_of(found, beginning);
            }
            query.retain(|(name, _)| *name != "cursor");
            query.push(("cursor", next));
        }
        // Not every entry was read, so the id may not be unique.
        Ok(None)
    }
}

fn one_of(mut found: Vec<String>, beginning: &str) -> Result<Option<String>, ClientError> {
    if found.len() < 2 {
        return Ok(found.pop());
    }
    let more = if found.len() > SHOWN { ", …" } else { "" };
    found.truncate(SHOWN);
    let found = found.join(", ");
    Err(ClientError::Usage(format!(
        "several ids begin with `{beginning}`: {found}{more}; give more of the id"
    )))
}

/// Whether a text can be an id prefix.
fn is_beginning(text: &str) -> bool {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'));
    let is_prefixed = || text.get(3..4) == Some("_") && text.get(..3).is_some_and(|kind| kind.is_ascii());
    text.len() >= SHORTEST && (is_prefixed() || (is_hex && Uuid::try_parse(text).is_err()))
}

/// The operation that lists the resources of a path parameter, and the parameter's name.
fn list_of(operation: &Operation, index: usize) -> Option<(&'static Operation, &'static str)> {
    let (begin, _) = operation.path.match_indices("/{").nth(index)?;
    let parameter = operation.path.get(begin + 2..)?.split('}').next()?;
    let path = operation.path.get(..begin)?;
    let mut lists = operations::all().filter(|list| list.method == Method::Get);
    Some((lists.find(|list| list.path == path)?, parameter))
}

/// The query for a list's first page.
fn query_of(list: &Operation, beginning: &str) -> Vec<(&'static str, String)> {
    let takes = |name: &str| list.query.iter().any(|parameter| parameter.name == name);
    let mut query = Vec::new();
    if takes("limit") {
        query.push(("limit", PAGE.to_owned()));
    }
    if takes("include_archived") {
        query.push(("include_archived", "true".to_owned()));
    }
    if takes("drafts") {
        query.push(("drafts", "true".to_owned()));
    }
    if list.path == "/api/runs" {
        query.push(("trigger", operations::runs::TRIGGERS.join(",")));
        query.extend(times(beginning).into_iter().flatten());
    }
    query
}

/// The time range of UUIDv7 ids with this prefix.
fn times(beginning: &str) -> Option<[(&'static str, String); 2]> {
    let digits: String = beginning.chars().filter(|letter| *letter != '-').take(12).collect();
    let id = |fill: &str| {
        let missing = 12_usize.saturating_sub(digits.len());
        u128::from_str_radix(&format!("{digits}{}", fill.repeat(missing)), 16).ok()
    };
    let time = |millis: u128| kernel::time_of(Uuid::from_u128(millis << 80)).map(kernel::timestamp);
    Some([("from", time(id("0")?)?), ("to", time(id("f")? + 1)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_prefixes_are_distinguished_from_names_and_complete_ids() {
        for text in ["0198c2f4", "0198", "thr_", "thr_ab12", "cafe", "0198c2f4-6b1e"] {
            assert!(is_beginning(text), "{text}");
        }
        for text in ["", "019", "order-desk", "0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e", "é_x_"] {
            assert!(!is_beginning(text), "{text}");
        }
    }

    #[test]
    fn a_parameter_is_listed_by_its_parent_operation() {
        let list = |operation: &Operation, index| list_of(operation, index).map(|(list, _)| list.path);
        assert_eq!(list(&operations::runs::TRACE, 0), Some("/api/runs"));
        assert_eq!(list(&operations::workflows::READ, 0), Some("/api/workflows"));
        let read = &operations::trainings::READ;
        assert_eq!(list(read, 1), Some("/api/workflows/{ref}/trainer/runs"));
        assert_eq!(list(&operations::runs::LIST, 0), None);
    }

    #[test]
    fn drafts_are_searched_with_the_versions() {
        let (list, _) = list_of(&operations::workflows::READ_VERSION, 1).unwrap();
        assert!(query_of(list, "0198").contains(&("drafts", "true".to_owned())));
    }

    #[test]
    fn an_id_prefix_has_a_time_range() {
        let [from, to] = times("0198c2f4-6b").unwrap();
        assert_eq!((from.0, to.0), ("from", "to"));
        assert!(from.1 < to.1 && from.1.starts_with("2025-"), "{from:?} {to:?}");
        assert_eq!(times("xyz"), None);
    }

    #[test]
    fn an_ambiguous_prefix_is_rejected() {
        let found = |ids: &[&str]| one_of(ids.iter().map(|id| (*id).to_owned()).collect(), "01");
        assert_eq!(found(&[]).unwrap(), None);
        assert_eq!(found(&["01a"]).unwrap().as_deref(), Some("01a"));
        let error = found(&["01a", "01b"]).unwrap_err().to_string();
        assert_eq!(error, "several ids begin with `01`: 01a, 01b; give more of the id");
    }
}
