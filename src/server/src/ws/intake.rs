//! The bytes of a message on their way in: limited, and counted as they arrive.

use std::cell::RefCell;

use bytes::Bytes;

use super::Fault;
use crate::body_budget::{BodyBudget, Reservation, Sender};

/// Limits for the messages of one socket.
pub(crate) struct MessageIntake {
    budget: BodyBudget,
    sender: Sender,
    limit: usize,
    /// The reservation of the message that is arriving.
    reservation: RefCell<Reservation>,
}

impl MessageIntake {
    /// Limits for messages of this sender, each of at most `limit` bytes.
    pub(crate) fn new(budget: BodyBudget, sender: Sender, limit: usize) -> Self {
        let reservation = RefCell::new(budget.begin(sender.clone()));
        Self { budget, sender, limit, reservation }
    }

    /// Maximum bytes of a message.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Counts a message that has grown to this size.
    ///
    /// # Errors
    /// [`Fault::Overloaded`].
    pub(super) fn grow(&self, size: usize) -> Result<(), Fault> {
        self.reservation.borrow_mut().grow(size).map_err(|_| Fault::Overloaded)
    }

    /// The end of a message: its bytes are counted until they are dropped.
    pub(super) fn hold(&self, message: Bytes) -> Bytes {
        self.reservation.replace(self.budget.begin(self.sender.clone())).hold(message)
    }
}
