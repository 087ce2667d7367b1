//! The commands, one file each. A command's error is the text for the user.

pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod serve;
