//! What begins runs of workflows by itself.

mod round;
mod schedule;

pub(crate) use round::CronRounds;
pub use schedule::{LONGEST_EXPRESSION, Schedule, ScheduleError};
