//! Masks thread ids in responses. The thread id of a published workflow grants access to the thread, so callers who may
//! not read its threads receive no ids.

use std::borrow::Cow;

use control::visitors;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::error::{ApiError, ApiResult};
use super::guard::Caller;
use wire::ErrorCode;

const PREFIX: &str = "thr_";
/// Hexadecimal digits after the prefix.
const DIGITS: usize = 32;
/// Replaces an id inside text.
const MASK: &str = "thr_hidden";

/// Whether responses contain thread ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum ThreadIds {
    Shown,
    Hidden,
}

impl ThreadIds {
    /// Returns the caller's setting in a workspace.
    pub(in crate::http) fn for_caller<S>(caller: &Caller<S>, workspace: Uuid) -> Self {
        if visitors::may_manage(caller.requester(), workspace) { Self::Shown } else { Self::Hidden }
    }

    /// Filters JSON or plain text for the caller. A `thread_id` member becomes null.
    pub(in crate::http) fn text(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Shown => Cow::Borrowed(text),
            Self::Hidden => masked(text),
        }
    }

    /// Filters a record for the caller.
    pub(in crate::http) fn record<T: Serialize + DeserializeOwned>(self, record: T) -> ApiResult<T> {
        if self == Self::Shown {
            return Ok(record);
        }
        let unreadable = |error| ApiError::new(ErrorCode::Internal).with_cause(error);
        let text = serde_json::to_string(&record).map_err(unreadable)?;
        match masked(&text) {
            Cow::Borrowed(_) => Ok(record),
            Cow::Owned(text) => {
                // Code results may be nested deeper than requests.
                let mut reader = serde_json::Deserializer::from_str(&text);
                reader.disable_recursion_limit();
                T::deserialize(&mut reader).map_err(unreadable)
            }
        }
    }
}

fn masked(text: &str) -> Cow<'_, str> {
    let (mut masked, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(PREFIX) {
        masked.push_str(before);
        let id = after.get(..DIGITS).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        masked.push_str(if id.is_some() { MASK } else { PREFIX });
        rest = id.and_then(|id| after.strip_prefix(id)).unwrap_or(after);
    }
    if masked.contains(MASK) {
        masked.push_str(rest);
        // A quotation mark inside a JSON string is escaped, so this always matches a member.
        Cow::Owned(masked.replace(r#""thread_id":"thr_hidden""#, r#""thread_id":null"#))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn ids_are_masked_in_members_texts_and_names() {
        let id = format!("thr_{}", "0123456789abcdef".repeat(2));
        let nested = json!({"thread_id": id}).to_string();
        let record =
            json!({"thread_id": id, "a": [format!("see {id}, {id}."), nested], &id: "thr_1", "b": "thr_"});
        assert_eq!(ThreadIds::Shown.record(record.clone()).unwrap(), record);
        let hidden: Value = ThreadIds::Hidden.record(record).unwrap();
        assert_eq!(
            hidden,
            json!({
                "thread_id": null,
                "a": ["see thr_hidden, thr_hidden.", r#"{"thread_id":"thr_hidden"}"#],
                "thr_hidden": "thr_1",
                "b": "thr_",
            })
        );
    }

    #[test]
    fn a_text_without_ids_is_not_copied() {
        for text in ["", "thr_", "thr_0123", "a thread_id of thr_xyzxyzxyzxyzxyzxyzxyzxyzxyzxyzxyz"] {
            assert!(matches!(ThreadIds::Hidden.text(text), Cow::Borrowed(same) if same == text));
        }
    }
}
