//! Keys, visitors, sign-in and the rules of exposure. No HTTP, no SQL.

pub mod exposure;
pub mod keyring;
pub mod sign_in;
pub mod visitor;
