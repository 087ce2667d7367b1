//! Checks whether the client already has the current representation.

use actix_web::HttpRequest;
use actix_web::http::header::IF_NONE_MATCH;

/// Whether `If-None-Match` contains this tag, quotes included. Source: RFC 9110, section 13.1.2.
pub(super) fn is_known(request: &HttpRequest, tag: &str) -> bool {
    let mut lists = request.headers().get_all(IF_NONE_MATCH).filter_map(|list| list.to_str().ok());
    lists.any(|list| {
        list.trim() == "*" || tags(list).any(|known| known.strip_prefix("W/").unwrap_or(known) == tag)
    })
}

/// The tags in a list, as written. A comma inside quotes belongs to its tag. Anything that is not a tag ends the list,
/// including a tag followed by other text.
pub(super) fn tags(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let quoted = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?;
        let (_, after) = quoted.split_once('"')?;
        let (tag, after) = rest.split_at(rest.len() - after.len());
        rest = after.trim_start_matches([' ', '\t']);
        (rest.is_empty() || rest.starts_with(',')).then_some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_list_is_parsed_by_rfc_9110() {
        for (list, found) in [
            ("\"a\"", &["\"a\""][..]),
            (" \"a\" , W/\"b\",, \"\"", &["\"a\"", "W/\"b\"", "\"\""]),
            ("\"a, *, b\"", &["\"a, *, b\""]),
            ("W/W/\"a\"", &[]),
            ("a, \"b\"", &[]),
            ("\"a\" x, \"b\"", &[]),
            ("\"a\"x", &[]),
            ("\"a\";q=1", &[]),
            ("\"a\"\"b\"", &[]),
            ("\"a", &[]),
            ("*", &[]),
            ("", &[]),
        ] {
            assert_eq!(tags(list).collect::<Vec<_>>(), found, "{list}");
        }
    }
}
