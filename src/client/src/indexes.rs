//! Search indexes.

use wire::{IndexRecord, Listed};

use crate::{Client, ClientError, Part};

/// Calls fail as [`crate::Answer::ok`] does.
impl Client {
    /// `GET /api/indexes`: part of the list, by name.
    ///
    /// # Errors
    /// See above.
    pub async fn indexes(&self, part: &Part) -> Result<Listed<IndexRecord>, ClientError> {
        self.get(&["api", "indexes"], &part.query()).await?.ok()
    }

    /// `DELETE /api/indexes/{name}`: deletes it with all that it holds.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_index(&self, name: &str) -> Result<(), ClientError> {
        self.delete(&["api", "indexes", name]).await?.done()
    }
}
