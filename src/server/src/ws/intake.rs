//! Limits and charges incoming messages.

use std::cell::RefCell;

use bytes::Bytes;

use super::SocketFault;
use crate::body_budget::{BodyBudget, Reservation, Sender};

/// Limits for one socket's messages.
pub(crate) struct MessageIntake {
    budget: BodyBudget,
    sender: Sender,
    limit: usize,
    /// The reservation for the incoming message.
    reservation: RefCell<Reservation>,
}

impl MessageIntake {
    /// Sets limits for this sender's messages, each at most `limit` bytes.
    pub(crate) fn new(budget: BodyBudget, sender: Sender, limit: usize) -> Self {
        let reservation = RefCell::new(budget.begin(sender.clone()));
        Self { budget, sender, limit, reservation }
    }

    /// Maximum bytes per message.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Charges a message that has grown to this size.
    ///
    /// # Errors
    /// [`SocketFault::Overloaded`].
    pub(super) fn grow(&self, size: usize) -> Result<(), SocketFault> {
        self.reservation.borrow_mut().grow(size).map_err(|_| SocketFault::Overloaded)
    }

    /// Completes a message, whose bytes are charged until they are dropped.
    pub(super) fn hold(&self, message: Bytes) -> Bytes {
        self.reservation.replace(self.budget.begin(self.sender.clone())).hold(message)
    }
}
