//! Sign-ins to apps: on their way, their codes, the sessions that they open, and who agreed to them.

mod codes;
mod consents;
mod retention;
mod sessions;
mod start;

pub use codes::{NewAppCode, OpenedAppSession, RedeemedCode, ShownAppCode, StrayAppCode};
pub use sessions::{AppSession, AppSessionUse};
pub use start::{NewAppSignIn, UsedAppSignIn};
