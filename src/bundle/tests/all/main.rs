//! Bundles that the tests build themselves, field by field, and bundles of common writers.

mod archives;
mod bombs;
mod boundaries;
mod build;
mod hostile;
mod kinds;
mod names;
mod random;
mod structure;
mod writers;
