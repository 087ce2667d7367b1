//! Keys, visitors and the rules of exposure. No HTTP, no SQL.

pub mod exposure;
pub mod keyring;
pub mod visitor;
