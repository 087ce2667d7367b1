//! Sign-ins to apps: pending sign-ins, codes, sessions, and consents.

mod codes;
mod consents;
mod retention;
mod sessions;
mod start;

pub use codes::{NewAppCode, OpenedAppSession, RedeemedCode, ShownAppCode, StrayAppCode};
pub use sessions::{AppSession, AppSessionUse};
pub use start::{NewAppSignIn, UsedAppSignIn};
