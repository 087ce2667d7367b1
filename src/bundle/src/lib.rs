//! Hosted app bundles: decides whether a ZIP archive can be served, and with which policies.
//!
//! [`check`] reads an archive in stages: structure, limits, names, file kinds, documents, manifest. It never extracts
//! to a path, inflates files in pieces except for documents and the manifest, and returns the same findings for the
//! same bytes.

mod accepted;
mod archive;
mod check;
mod code;
mod contents;
mod deadline;
pub mod declared;
mod documents;
mod error;
mod finding;
mod hints;
mod kinds;
mod limits;
mod manifest;
mod markup;
mod names;
mod policy;
mod unicode;

pub use accepted::{Accepted, File, FileReader};
pub use check::{TIME, Verdict, check};
pub use code::Code;
pub use error::CheckError;
pub use finding::{Finding, MAX_FINDINGS, Note};
pub use kinds::{OTHER, media_type};
pub use limits::Limits;
pub use manifest::{Manifest, is_name};
pub use names::MANIFEST;
pub use policy::{Document, FILE_POLICY, OVER_HTTPS, policy};
