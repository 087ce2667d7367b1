//! Limits the memory for request bodies and WebSocket messages, per sender and per instance.
//!
//! Bytes are charged on arrival, not by declared length, until the body is dropped. Strangers share half the instance's
//! budget, so they cannot take the other half from authenticated callers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// Uncharged bytes per body: no more than its connection's buffers hold.
const FREE: usize = 16 << 10;
/// Maximum bytes per sender.
pub(crate) const PER_SENDER: usize = 32 << 20;
/// Maximum bytes for all strangers.
const OF_STRANGERS: usize = 128 << 20;
/// Maximum bytes for all senders.
const PER_INSTANCE: usize = 256 << 20;

/// The sender to whom a body is charged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    /// An authenticated caller.
    Known(String),
    /// The network of an unauthenticated caller.
    Stranger(IpAddr),
}

impl Sender {
    /// Whether the sender is unauthenticated.
    pub(crate) fn is_stranger(&self) -> bool {
        matches!(self, Self::Stranger(_))
    }
}

/// The sender, all strangers together, or the instance have exhausted their budget.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes of bodies are in memory")]
pub(crate) struct BudgetFull;

/// The charged bytes. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct BodyBudget(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    all: usize,
    of_strangers: usize,
    by_sender: HashMap<Sender, usize>,
}

impl BodyBudget {
    /// Creates an empty reservation for a body.
    pub(crate) fn begin(&self, sender: Sender) -> Reservation {
        Reservation { budget: self.clone(), sender, counted: 0 }
    }
}

/// The charged bytes of one body, released on drop.
pub(crate) struct Reservation {
    budget: BodyBudget,
    sender: Sender,
    counted: usize,
}

impl Reservation {
    /// Charges a body that has grown to this size. A sender's only body may exceed the limit per sender.
    ///
    /// # Errors
    /// [`BudgetFull`]; charges nothing more in that case.
    pub(crate) fn grow(&mut self, size: usize) -> Result<(), BudgetFull> {
        let more = size.saturating_sub(FREE).saturating_sub(self.counted);
        if more == 0 {
            return Ok(());
        }
        let mut counted = self.budget.0.lock();
        let of_sender = counted.by_sender.get(&self.sender).copied().unwrap_or_default();
        let has_others = of_sender > self.counted;
        let is_stranger = self.sender.is_stranger();
        if (has_others && of_sender + more > PER_SENDER)
            || counted.all + more > PER_INSTANCE
            || (is_stranger && counted.of_strangers + more > OF_STRANGERS)
        {
            return Err(BudgetFull);
        }
        counted.all += more;
        if is_stranger {
            counted.of_strangers += more;
        }
        *counted.by_sender.entry(self.sender.clone()).or_default() += more;
        self.counted += more;
        Ok(())
    }

    /// Returns the whole body, charged until its last clone is dropped.
    pub(crate) fn hold(self, bytes: Bytes) -> Bytes {
        if self.counted == 0 { bytes } else { Bytes::from_owner(HeldBody { bytes, _reservation: self }) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.counted == 0 {
            return;
        }
        let mut counted = self.budget.0.lock();
        counted.all = counted.all.saturating_sub(self.counted);
        if self.sender.is_stranger() {
            counted.of_strangers = counted.of_strangers.saturating_sub(self.counted);
        }
        if let Some(of_sender) = counted.by_sender.get_mut(&self.sender) {
            *of_sender = of_sender.saturating_sub(self.counted);
            if *of_sender == 0 {
                counted.by_sender.remove(&self.sender);
            }
        }
    }
}

struct HeldBody {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for HeldBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const MIB: usize = 1 << 20;

    fn authenticated(name: &str) -> Sender {
        Sender::Known(name.to_owned())
    }

    fn anonymous(number: u8) -> Sender {
        Sender::Stranger(Ipv4Addr::new(192, 0, 2, number).into())
    }

    /// Reserves bodies of this size until one is refused.
    fn fill(budget: &BodyBudget, sender: &Sender, size: usize) -> Vec<Reservation> {
        std::iter::from_fn(|| {
            let mut body = budget.begin(sender.clone());
            body.grow(size).is_ok().then_some(body)
        })
        .collect()
    }

    #[test]
    fn a_sender_is_limited_to_32_mib_and_the_instance_to_256() {
        let budget = BodyBudget::default();
        let senders: Vec<_> = (0..9).map(|number| authenticated(&number.to_string())).collect();
        let filled: Vec<_> = senders.iter().map(|sender| fill(&budget, sender, 8 * MIB + FREE)).collect();
        let counts: Vec<_> = filled.iter().map(Vec::len).collect();
        assert_eq!(counts, [4, 4, 4, 4, 4, 4, 4, 4, 0]);
        drop(filled);
        let counted = budget.0.lock();
        assert!(counted.all == 0 && counted.by_sender.is_empty());
    }

    #[test]
    fn half_of_the_budget_is_reserved_for_authenticated_callers() {
        let budget = BodyBudget::default();
        let filled: Vec<_> = (0..9).map(|number| fill(&budget, &anonymous(number), 8 * MIB + FREE)).collect();
        assert_eq!(filled.iter().map(Vec::len).sum::<usize>(), OF_STRANGERS / (8 * MIB));
        assert_eq!(fill(&budget, &authenticated("a"), 8 * MIB + FREE).len(), 4);
        drop(filled);
        assert!(budget.0.lock().of_strangers == 0);
    }

    #[test]
    fn the_only_body_of_a_sender_may_be_larger_and_a_small_one_is_free() {
        let budget = BodyBudget::default();
        let mut body = budget.begin(authenticated("a"));
        assert_eq!(body.grow(64 * MIB), Ok(()));
        let mut second = budget.begin(authenticated("a"));
        assert_eq!(second.grow(FREE), Ok(()));
        assert_eq!(second.grow(FREE + 1), Err(BudgetFull));
        drop(body);
        assert_eq!(second.grow(FREE + 1), Ok(()));
    }

    #[test]
    fn a_held_body_counts_until_its_last_clone_is_dropped() {
        let budget = BodyBudget::default();
        let mut body = budget.begin(authenticated("a"));
        body.grow(MIB).unwrap();
        let bytes = body.hold(vec![0; MIB].into());
        let part = bytes.slice(..9);
        drop(bytes);
        assert_eq!(budget.0.lock().all, MIB - FREE);
        drop(part);
        assert_eq!(budget.0.lock().all, 0);
    }
}
