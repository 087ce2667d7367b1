//! All model calls of a training: seed, key, budget, permit, record.

mod attempts;
mod budget;
mod endpoint;
mod journal;
mod key;
mod ledger;
mod observer;
mod outgoing;
mod pace;
mod prices;
mod usage;
mod waiting;

pub use budget::{Budget, BudgetLimits, Exhausted};
pub use endpoint::Endpoints;
pub use journal::{CallJournal, CallSink, EarlierCalls, RecordedCall, Reply, UnansweredCall};
pub use key::CallKey;
pub use observer::{CallScope, CallSettings, Calls};
pub(crate) use prices::PricedModel;
pub use prices::RunPrices;
pub use usage::{Amount, CallUsage, Role, RoleCalls, Spent, dollars, nanodollars};
