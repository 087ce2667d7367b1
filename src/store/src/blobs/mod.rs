//! Binary values, what uses them, and their streams.

pub(crate) mod records;
mod streams;
pub(crate) mod uses;

pub use streams::*;
pub use uses::*;
