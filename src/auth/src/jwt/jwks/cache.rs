//! All keys: the configured ones first, then those of the provider.

use super::{KeySet, KeysUnavailable, Remote, RsaKey};

/// Finds the key of a token.
pub struct CachedKeys {
    fixed: KeySet,
    remote: Option<Remote>,
}

impl CachedKeys {
    /// Combines configured keys with a set to fetch.
    #[must_use]
    pub fn new(fixed: KeySet, remote: Option<Remote>) -> Self {
        Self { fixed, remote }
    }

    /// Returns the key with this id, or the only key if no id is given. `None` if a key set was available but lacks the
    /// key.
    ///
    /// A configured key takes precedence over a fetched one with the same id and needs no fetch.
    ///
    /// # Errors
    /// [`KeysUnavailable`] if the key might be in a set that is not available.
    pub(crate) async fn find(&self, id: Option<&str>) -> Result<Option<RsaKey>, KeysUnavailable> {
        if let Some(key) = id.and_then(|id| self.fixed.named(id)) {
            return Ok(Some(key.clone()));
        }
        let Some(remote) = &self.remote else { return Ok(self.look(None, id)) };
        let current = remote.current().await?;
        let found = self.look(Some(&current.set), id);
        if found.is_some() || id.is_none() || current.is_new {
            return Ok(found);
        }
        let again = remote.again().await;
        Ok(again.and_then(|set| self.look(Some(&set), id)))
    }

    fn look(&self, fetched: Option<&KeySet>, id: Option<&str>) -> Option<RsaKey> {
        if let Some(id) = id {
            return fetched.and_then(|set| set.named(id)).cloned();
        }
        let mut all = self.fixed.iter().chain(fetched.into_iter().flat_map(KeySet::iter));
        match (all.next(), all.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        }
    }
}
