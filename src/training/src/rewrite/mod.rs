//! A prompt's new text: taken out of a model's reply, and checked. Pure.

mod leak;
mod reply;
mod request;
mod rules;

pub use leak::LeakGuard;
pub use reply::new_prompt;
pub use request::{PromptText, Record, RejectedEdit, critique, request, request_again};
pub use rules::{FrozenSpan, PromptRules, RewriteFault};
