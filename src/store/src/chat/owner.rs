//! Kinds of owners of threads.

use crate::StoreError;

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
