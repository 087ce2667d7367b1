//! Owners of threads.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use kernel::ThreadId;
use uuid::Uuid;

use crate::schema::threads;
use crate::{Store, StoreError};

/// Kind of a thread's owner. It decides who may read the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    /// The browser with the owner's cookie.
    Visitor,
    /// The subject of a session token; without an id, every caller with a token of the workflow.
    Session,
    /// A user who signed in.
    User,
    /// Every caller who knows the thread's id.
    Anyone,
}

impl OwnerKind {
    const ALL: [Self; 4] = [Self::Visitor, Self::Session, Self::User, Self::Anyone];

    /// As it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Visitor => "visitor",
            Self::Session => "session",
            Self::User => "user",
            Self::Anyone => "anyone",
        }
    }

    /// Reads a stored kind.
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
    /// Kind of the owner.
    pub owner_kind: OwnerKind,
    /// Who.
    pub owner_id: &'a str,
    /// The user who is signed in on the same browser, if it is not the owner.
    pub user: Option<&'a str>,
}

impl Store {
    /// Records that a request has presented the visitor's cookie for a thread.
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
