//! The actor runtime and the actors.
