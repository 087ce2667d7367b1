//! Search indexes.

use wire::operations::indexes;
use wire::{IndexRecord, Listed};

use crate::{Client, ClientError, Part};

/// Calls fail as [`crate::Answer::ok`] does.
impl Client {
    /// `GET /api/indexes`: a list page, by name.
    ///
    /// # Errors
    /// See above.
    pub async fn indexes(&self, part: &Part) -> Result<Listed<IndexRecord>, ClientError> {
        self.read(&indexes::LIST, &[], &part.query()).await?.ok()
    }

    /// `DELETE /api/indexes/{name}`: deletes an index with its content.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_index(&self, name: &str) -> Result<(), ClientError> {
        self.change(&indexes::DELETE, &[name], None::<&()>).await?.done()
    }
}
