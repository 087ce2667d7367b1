//! Search indexes and their chunks.

mod chunks;
mod indexes;

pub use chunks::*;
pub use indexes::*;
