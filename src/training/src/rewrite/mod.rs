//! New prompt texts: requests them, extracts them from model replies and checks them. Pure.

mod leak;
mod reply;
mod request;
mod rules;
mod tags;

pub use leak::LeakGuard;
pub use reply::{new_prompt, rationale};
pub use request::{PromptText, Record, RejectedEdit, critique, request, request_again};
pub use rules::{FrozenSpan, PromptRules, RewriteFault};
pub(crate) use tags::contains_tags;
