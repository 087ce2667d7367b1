//! Binary values, their uses, and their streams.

mod parts;
pub(crate) mod records;
mod streams;
pub(crate) mod uses;

pub use parts::*;
pub use streams::*;
pub use uses::*;
