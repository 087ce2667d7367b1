//! Ids: UUIDv7 for rows, prefixed random ids for chat clients.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::{Clock, Random, RandomError};

/// The text is not a valid id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {0} id")]
pub struct IdError(&'static str);

/// The lower bound for UUIDv7 ids: ids created at this time or later sort after it, earlier ids before it.
#[must_use]
pub fn first_id_at(at: DateTime<Utc>) -> Uuid {
    let millis = u128::try_from(at.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

/// The time in a UUIDv7, to the millisecond; `None` if the year is out of range.
#[must_use]
pub fn time_of(id: Uuid) -> Option<DateTime<Utc>> {
    i64::try_from(id.as_u128() >> 80).ok().and_then(DateTime::from_timestamp_millis)
}

/// Generates ids. Ids with a time never decrease within a process, even if the clock goes back.
#[derive(Clone)]
pub struct Ids {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    last: Arc<Mutex<(u64, u16)>>,
}

impl Ids {
    /// Generates ids from this clock and this random source.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random, last: Arc::new(Mutex::new((0, 0))) }
    }

    /// A UUIDv7: 48 bits of milliseconds, a 12-bit counter, 62 random bits.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn uuid(&self) -> Result<Uuid, RandomError> {
        let (millis, counter) = self.tick();
        let mut bytes = [0_u8; 16];
        self.random.fill(&mut bytes)?;
        let [_, _, t2, t3, t4, t5, t6, t7] = millis.to_be_bytes();
        let [c0, c1] = counter.to_be_bytes();
        let [b0, b1, b2, b3, b4, b5, b6, b7, b8, ..] = &mut bytes;
        (*b0, *b1, *b2, *b3, *b4, *b5) = (t2, t3, t4, t5, t6, t7);
        *b6 = 0x70 | (c0 & 0x0F);
        *b7 = c1;
        *b8 = 0x80 | (*b8 & 0x3F);
        Ok(Uuid::from_bytes(bytes))
    }

    /// A thread id: 128 random bits, a capability on published workflows.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn thread(&self) -> Result<ThreadId, RandomError> {
        let mut bytes = [0_u8; 16];
        self.random.fill(&mut bytes)?;
        Ok(ThreadId(Uuid::from_bytes(bytes)))
    }

    /// An attachment id: 128 random bits, as for threads.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn attachment(&self) -> Result<AttachmentId, RandomError> {
        Ok(AttachmentId(self.thread()?.0))
    }

    /// A thread item key: ordered by time, with 128 random bits.
    ///
    /// # Errors
    /// [`RandomError`] if the random source fails.
    pub fn item(&self) -> Result<ItemKey, RandomError> {
        let (millis, counter) = self.tick();
        let mut key = [0_u8; ItemKey::LENGTH];
        let (time, rest) = key.split_at_mut(6);
        let (count, random) = rest.split_at_mut(2);
        let [_, _, millis @ ..] = millis.to_be_bytes();
        time.copy_from_slice(&millis);
        count.copy_from_slice(&counter.to_be_bytes());
        self.random.fill(random)?;
        Ok(ItemKey(key))
    }

    /// Milliseconds and a counter that together only increase.
    fn tick(&self) -> (u64, u16) {
        let now = u64::try_from(self.clock.now().timestamp_millis()).unwrap_or(0);
        let mut last = self.last.lock();
        let next = match *last {
            (millis, _) if now > millis => (now, 0),
            (millis, counter) if counter < 0x0FFF => (millis, counter + 1),
            (millis, _) => (millis + 1, 0),
        };
        *last = next;
        next
    }
}

/// A thread id; on the wire `thr_` and 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId(pub Uuid);

impl ThreadId {
    /// Parses the wire form.
    ///
    /// # Errors
    /// [`IdError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bytes = from_hex::<16>(text.strip_prefix("thr_").unwrap_or("")).ok_or(IdError("thread"))?;
        Ok(Self(Uuid::from_bytes(bytes)))
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thr_{}", self.0.as_simple())
    }
}

/// An attachment id; on the wire `atc_` and 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttachmentId(pub Uuid);

impl AttachmentId {
    /// Parses the wire form.
    ///
    /// # Errors
    /// [`IdError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bytes = from_hex::<16>(text.strip_prefix("atc_").unwrap_or("")).ok_or(IdError("attachment"))?;
        Ok(Self(Uuid::from_bytes(bytes)))
    }
}

impl fmt::Display for AttachmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "atc_{}", self.0.as_simple())
    }
}

/// A thread item key: 6 bytes of milliseconds, 2 counter bytes, 16 random bytes. Bytewise order is time order.
///
/// On the wire it follows a prefix that names the item kind, such as `msg_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey(pub [u8; ItemKey::LENGTH]);

impl ItemKey {
    /// Bytes in a key.
    pub const LENGTH: usize = 24;

    /// The lower bound for keys created at or after the time in a UUIDv7.
    #[must_use]
    pub fn at(id: Uuid) -> Self {
        let mut key = [0; Self::LENGTH];
        key.iter_mut().zip(id.as_bytes()).take(6).for_each(|(to, from)| *to = *from);
        Self(key)
    }

    /// The creation time, to the millisecond.
    #[must_use]
    pub fn created_at(&self) -> Option<DateTime<Utc>> {
        let millis = self.0.iter().take(6).fold(0_i64, |millis, byte| millis << 8 | i64::from(*byte));
        DateTime::from_timestamp_millis(millis)
    }

    /// Parses the wire form with any prefix.
    ///
    /// # Errors
    /// [`IdError`] without a prefix, or if the rest is not a valid key.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let (_, digits) = text.split_once('_').ok_or(IdError("item"))?;
        from_hex(digits).map(Self).ok_or(IdError("item"))
    }

    /// The wire form with `prefix` (`msg`, `tc`, `wf`, …).
    #[must_use]
    pub fn wire(&self, prefix: &str) -> String {
        let mut digits = [0; 2 * Self::LENGTH];
        // The buffer has the right length. `hex::encode` is slower, digit by digit, and item names are frequent.
        let _ = hex::encode_to_slice(self.0, &mut digits);
        [prefix, "_", str::from_utf8(&digits).unwrap_or_default()].concat()
    }
}

/// Exactly `N` bytes as lowercase hexadecimal.
fn from_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.bytes().any(|b| b.is_ascii_uppercase()) {
        return None;
    }
    let mut bytes = [0_u8; N];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SystemClock, SystemRandom};

    fn ids() -> Ids {
        Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()))
    }

    #[test]
    fn ids_of_one_process_are_ordered_and_distinct() {
        let ids = ids();
        let uuids: Vec<_> = (0..20_000).map(|_| ids.uuid().unwrap()).collect();
        assert!(uuids.is_sorted_by(|a, b| a < b));
        assert!(uuids.iter().all(|id| id.get_version_num() == 7));
        let items: Vec<_> = (0..20_000).map(|_| ids.item().unwrap()).collect();
        assert!(items.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn wire_forms_round_trip() {
        let ids = ids();
        let thread = ids.thread().unwrap();
        assert_eq!(ThreadId::parse(&thread.to_string()), Ok(thread));
        assert!(ItemKey::at(ids.uuid().unwrap()) < ids.item().unwrap());
        let before = ids.item().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(before < ItemKey::at(ids.uuid().unwrap()));
        let attachment = ids.attachment().unwrap();
        assert_eq!(AttachmentId::parse(&attachment.to_string()), Ok(attachment));
        let item = ids.item().unwrap();
        assert_eq!(ItemKey::parse(&item.wire("msg")), Ok(item));
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for text in ["", "thr_", "thr_xyz", "THR_00", "msg_00", "thr_0123456789abcdef0123456789ABCDEF"] {
            assert!(ThreadId::parse(text).is_err(), "{text}");
            assert!(AttachmentId::parse(&text.replace("thr", "atc")).is_err(), "{text}");
        }
        for text in ["", "msg", "msg_", "msg_00", "_"] {
            assert!(ItemKey::parse(text).is_err(), "{text}");
        }
    }
}
