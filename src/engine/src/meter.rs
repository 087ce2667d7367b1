//! Limits the work of templates: bytes, depth and time.
//!
//! The template machine counts its instructions, but a single instruction can create a hundred megabytes or run for
//! minutes. So each operation that creates or compares values reports here. Limits belong to the thread until the
//! work ends.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kernel::{Clock as _, SystemClock};
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value as View};
use wire::ErrorCode;

use crate::NodeError;
use crate::limits::{DEEPEST, LARGEST, too_deep, too_large};

/// Maximum bytes of all values that one piece of work creates.
const MADE: usize = 24 << 20;
/// Maximum time per piece of work.
const TIME: Duration = Duration::from_secs(2);
/// Maximum bytes that brief work creates.
const BRIEF_MADE: usize = 128 << 10;
/// Maximum operations in brief work.
const BRIEF_STEPS: usize = 1_000;
/// Bytes charged per part of a value, besides its text.
const PART: usize = 8;
/// Bytes charged per created list item.
const ITEM: usize = 24;
/// Lazy list values that are charged together.
const BLOCK: usize = 64;

/// The limit that the work reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Too many bytes.
    Bytes,
    /// Lists and objects nested too deeply.
    Depth,
    /// Longer than this time.
    Time(Duration),
    /// The caller is gone.
    Cancelled,
    /// More than brief work allows.
    Brief,
}

impl Excess {
    fn error(self) -> NodeError {
        match self {
            Self::Bytes => too_large("the values that the template makes"),
            Self::Depth => too_deep(),
            Self::Time(limit) => {
                NodeError::new(ErrorCode::NodeTimeout, format!("took longer than {} s", limit.as_secs()))
            }
            Self::Cancelled | Self::Brief => NodeError::failed("the template was stopped"),
        }
    }
}

/// The limits of one piece of work, and its usage.
#[derive(Debug)]
struct Meter {
    clock: SystemClock,
    time: Duration,
    cancelled: Option<Arc<AtomicBool>>,
    bytes: usize,
    /// Remaining operations, for brief work.
    steps: Option<usize>,
    excess: Option<Excess>,
}

thread_local! {
    static METER: RefCell<Option<Meter>> = const { RefCell::new(None) };
}

impl Meter {
    fn new(time: Duration, cancelled: Option<Arc<AtomicBool>>) -> Self {
        Self { clock: SystemClock::new(), time, cancelled, bytes: MADE, steps: None, excess: None }
    }

    fn brief() -> Self {
        Self { bytes: BRIEF_MADE, steps: Some(BRIEF_STEPS), ..Self::new(TIME, None) }
    }

    fn step(&mut self) -> Result<(), Excess> {
        if let Some(excess) = self.excess {
            return Err(excess);
        }
        if let Some(steps) = &mut self.steps {
            *steps = steps.checked_sub(1).ok_or(Excess::Brief)?;
            return Ok(());
        }
        if self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(Excess::Cancelled);
        }
        if self.clock.monotonic() > self.time { Err(Excess::Time(self.time)) } else { Ok(()) }
    }

    fn make(&mut self, bytes: usize) -> Result<(), Excess> {
        self.step()?;
        let left = self.bytes.checked_sub(bytes).filter(|_| bytes <= LARGEST);
        self.bytes = left.ok_or_else(|| self.too_large())?;
        Ok(())
    }

    fn too_large(&self) -> Excess {
        if self.steps.is_some() { Excess::Brief } else { Excess::Bytes }
    }
}

/// Restores the thread's previous meter.
struct Restore(Option<Meter>);

impl Drop for Restore {
    fn drop(&mut self) {
        METER.set(self.0.take());
    }
}

/// Runs work within the brief limits; `None` if it needs more.
pub(crate) fn briefly<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _restore = Restore(METER.replace(Some(Meter::brief())));
    let done = work();
    (excess() != Some(Excess::Brief)).then_some(done)
}

/// Runs work within the normal limits, until it is cancelled.
pub(crate) fn fully<T>(cancelled: Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(METER.replace(Some(Meter::new(TIME, Some(cancelled)))));
    work()
}

/// Runs work within this time and the byte limits.
pub(crate) fn within<T>(time: Duration, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(METER.replace(Some(Meter::new(time, None))));
    work()
}

/// Runs work within the current limits, if any, or else within new ones.
pub(crate) fn metered<T>(work: impl FnOnce() -> T) -> T {
    if METER.with_borrow(Option::is_some) { work() } else { within(TIME, work) }
}

/// The limit reached, if any.
pub(crate) fn excess() -> Option<Excess> {
    METER.with_borrow(|meter| meter.as_ref().and_then(|meter| meter.excess))
}

/// The error for the limit reached, if any.
pub(crate) fn excess_error() -> Option<NodeError> {
    excess().map(Excess::error)
}

/// Whether the current work is brief work.
pub(crate) fn is_brief() -> bool {
    METER.with_borrow(|meter| meter.as_ref().is_some_and(|meter| meter.steps.is_some()))
}

/// Records that the work exceeds the brief limits.
pub(crate) fn exceed_brief() {
    METER.with_borrow_mut(|meter| {
        if let Some(meter) = meter.as_mut().filter(|meter| meter.steps.is_some()) {
            meter.excess = Some(Excess::Brief);
        }
    });
}

/// Bytes that the work may still create.
pub(crate) fn room() -> usize {
    METER.with_borrow(|meter| meter.as_ref().map_or(LARGEST, |meter| meter.bytes.min(LARGEST)))
}

fn with(change: impl FnOnce(&mut Meter) -> Result<(), Excess>) -> Result<(), Error> {
    METER.with_borrow_mut(|meter| {
        let Some(meter) = meter else { return Ok(()) };
        change(meter).map_err(|excess| {
            meter.excess = Some(excess);
            Error::new(ErrorKind::InvalidOperation, excess.error().message)
        })
    })
}

/// Counts an operation.
///
/// # Errors
/// The work took too long or was cancelled.
pub(crate) fn step() -> Result<(), Error> {
    with(Meter::step)
}

/// Counts bytes before they are created.
///
/// # Errors
/// Too many bytes, or as [`step`].
pub(crate) fn make(bytes: usize) -> Result<(), Error> {
    with(|meter| meter.make(bytes))
}

/// Checks that a value of this size may be created.
///
/// # Errors
/// The value is too large, or as [`step`].
pub(crate) fn fits(bytes: usize) -> Result<(), Error> {
    with(|meter| {
        meter.step()?;
        if bytes <= meter.bytes.min(LARGEST) { Ok(()) } else { Err(meter.too_large()) }
    })
}

/// Returns a value's bytes, with each part counted at every occurrence.
///
/// # Errors
/// The value is too large or too deep, or as [`step`].
pub(crate) fn size(value: &View) -> Result<usize, Error> {
    step()?;
    let most = largest();
    let mut left = most;
    tree(value, DEEPEST, &mut left)?;
    Ok(most - left)
}

/// Counts a created value. Converts a lazy list into a real one, so that lazy lists do not nest.
///
/// # Errors
/// The value is too large or too deep, or as [`step`].
pub(crate) fn made(value: View) -> Result<View, Error> {
    if let Some(text) = value.as_str() {
        make(text.len())?;
        return Ok(value);
    }
    let value = match value.kind() {
        ValueKind::Iterable => real(&value)?,
        ValueKind::Seq | ValueKind::Map => {
            make(value.len().unwrap_or_default().saturating_mul(ITEM))?;
            value
        }
        _ => {
            step()?;
            return Ok(value);
        }
    };
    let mut left = largest();
    tree(&value, DEEPEST, &mut left)?;
    Ok(value)
}

/// Maximum size of a value that is traversed; small for brief work.
fn largest() -> usize {
    if is_brief() { room() } else { LARGEST }
}

fn real(value: &View) -> Result<View, Error> {
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        if items.len() % BLOCK == 0 {
            make(BLOCK * ITEM)?;
        }
        items.push(item?);
    }
    Ok(View::from(items))
}

/// Checks a value's depth and its bytes, with each part counted at every occurrence.
fn tree(value: &View, depth: usize, left: &mut usize) -> Result<(), Error> {
    let bytes = PART + value.as_str().map_or(0, str::len);
    *left = match left.checked_sub(bytes) {
        Some(left) => left,
        None => return fail(Excess::Bytes),
    };
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else { return fail(Excess::Depth) };
    for item in value.try_iter()? {
        if value.kind() == ValueKind::Map {
            tree(&value.get_item(&item)?, depth, left)?;
        }
        tree(&item, depth, left)?;
    }
    Ok(())
}

fn fail(excess: Excess) -> Result<(), Error> {
    with(|meter| Err(if meter.steps.is_some() { Excess::Brief } else { excess }))?;
    Err(Error::new(ErrorKind::InvalidOperation, excess.error().message))
}
