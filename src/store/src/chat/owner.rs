//! Thread owners.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use kernel::ThreadId;
use uuid::Uuid;

use crate::schema::threads;
use crate::{Store, StoreError};

/// The kind of a thread's owner. It determines the thread's readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    /// The browser with the owner's cookie.
    Visitor,
    /// The subject of a session token; without an id, every caller with a token for the workflow.
    Session,
    /// A user who signed in.
    User,
    /// Every caller who knows the thread's id.
    Anyone,
}

impl OwnerKind {
    const ALL: [Self; 4] = [Self::Visitor, Self::Session, Self::User, Self::Anyone];

    /// The stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Visitor => "visitor",
            Self::Session => "session",
            Self::User => "user",
            Self::Anyone => "anyone",
        }
    }

    /// Parses a stored kind.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for any other text.
    pub(crate) fn read(name: &str) -> Result<Self, StoreError> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == name);
        known.ok_or_else(|| StoreError::Corrupt(format!("owner kind {name}")))
    }
}

/// An owner's threads with one workflow.
#[derive(Debug, Clone, Copy)]
pub struct ThreadsOf<'a> {
    /// The workflow.
    pub workflow: Uuid,
    /// The owner kind.
    pub owner_kind: OwnerKind,
    /// The owner's id.
    pub owner_id: &'a str,
    /// The user who is signed in on the same browser, if different from the owner.
    pub user: Option<&'a str>,
}

impl Store {
    /// Records that a request for a thread has presented the visitor's cookie.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn require_cookie(&self, id: ThreadId) -> Result<(), StoreError> {
        diesel::update(threads::table.find(id.0))
            .filter(threads::requires_cookie.eq(false))
            .set(threads::requires_cookie.eq(true))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}
