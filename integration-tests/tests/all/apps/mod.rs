//! Hosted apps.

mod records;
