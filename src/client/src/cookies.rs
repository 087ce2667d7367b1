//! One client's cookies. The client has one origin, so names are enough: domains and paths are ignored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::header::{HeaderMap, HeaderValue, SET_COOKIE};

/// Cookies from the service, by name. Copies share one store.
#[derive(Clone, Default)]
pub(crate) struct Cookies(Arc<Mutex<BTreeMap<String, String>>>);

impl Cookies {
    fn memory(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores every `Set-Cookie` of a response.
    pub(crate) fn learn(&self, headers: &HeaderMap) {
        for line in headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok()) {
            let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
            let Some((name, value)) = pair.split_once('=') else { continue };
            let name = name.trim();
            if name.is_empty() {
                continue;
            }
            if is_removal(attributes) {
                self.memory().remove(name);
            } else {
                self.set(name, value.trim());
            }
        }
    }

    /// The `Cookie` header, if there are cookies to send.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let pairs: Vec<String> =
            self.memory().iter().map(|(name, value)| format!("{name}={value}")).collect();
        if pairs.is_empty() {
            return None;
        }
        let mut header = HeaderValue::from_str(&pairs.join("; ")).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.memory().get(name).cloned()
    }

    pub(crate) fn set(&self, name: &str, value: &str) {
        self.memory().insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn forget(&self) {
        self.memory().clear();
    }
}

/// Whether the attributes remove the cookie: a `Max-Age` that has passed.
fn is_removal(attributes: &str) -> bool {
    let mut pairs = attributes.split(';').filter_map(|attribute| attribute.split_once('='));
    pairs.any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("max-age") && value.trim().parse::<i64>().is_ok_and(|age| age <= 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(cookies: &Cookies, lines: &[&str]) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(SET_COOKIE, line.parse().unwrap());
        }
        cookies.learn(&headers);
    }

    fn sent(cookies: &Cookies) -> Option<String> {
        cookies.header().map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_are_sent_back_without_their_attributes() {
        let cookies = Cookies::default();
        assert_eq!(sent(&cookies), None);
        learn(
            &cookies,
            &["callboard_visitor=a.b=; HttpOnly; Max-Age=60; Path=/; SameSite=Lax", "theme = dark"],
        );
        assert_eq!(sent(&cookies).as_deref(), Some("callboard_visitor=a.b=; theme=dark"));
        assert_eq!(cookies.get("callboard_visitor").as_deref(), Some("a.b="));
    }

    #[test]
    fn the_newest_value_counts_and_an_expired_one_is_dropped() {
        let cookies = Cookies::default();
        learn(&cookies, &["a=1", "b=1", "a=2"]);
        assert_eq!(sent(&cookies).as_deref(), Some("a=2; b=1"));
        learn(&cookies, &["a=; max-age=0", "b=3; MAX-AGE=10"]);
        assert_eq!(sent(&cookies).as_deref(), Some("b=3"));
        cookies.forget();
        assert_eq!(sent(&cookies), None);
    }

    #[test]
    fn invalid_cookies_are_ignored_and_clones_share_a_jar() {
        let cookies = Cookies::default();
        learn(&cookies, &["no pair", "=nameless", ";"]);
        assert_eq!(sent(&cookies), None);
        cookies.clone().set("a", "1");
        assert_eq!(sent(&cookies).as_deref(), Some("a=1"));
    }
}
