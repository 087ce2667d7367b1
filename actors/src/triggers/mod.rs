//! Cron triggers.

mod round;
mod schedule;

pub(crate) use round::CronRounds;
pub use schedule::{LONGEST_EXPRESSION, Schedule, ScheduleError};
