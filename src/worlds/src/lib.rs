//! Simulated worlds for training tests: rules in a nonce vocabulary, and a server that plays all models in a run.
//!
//! A [`World`] is drawn from a [`Family`] and a seed. It has cases, a graph, seed prompts and evaluators; it plays
//! the task model, the reflector and the judge; and it knows the true score of any prompts. A [`Simulator`] routes
//! OpenAI requests to the worlds that their models name. A [`Reference`] is an algorithm that runs directly
//! on a world. Everything is a function of seeds: no clock, no sockets, no other randomness.

mod attention;
mod bodies;
mod cases;
mod completion;
mod definition;
mod family;
mod faults;
mod feedback;
mod judge;
mod phrases;
mod random;
mod rates;
mod reading;
mod reference;
mod reflector;
mod rewriting;
mod score;
mod simulator;
mod tally;
mod task;
#[cfg(test)]
mod tests;
mod words;

pub use attention::Demo;
pub use bodies::RequestOptions;
pub use cases::{Case, Split};
pub use completion::stream_events;
pub use definition::{Rule, World};
pub use family::{Family, Scoring, Sizes};
pub use faults::Faults;
pub use rates::Rates;
pub use reference::{Reference, ReferenceResult};
pub use simulator::{SimulatedReply, Simulator};
pub use tally::{CallCount, Tally};
