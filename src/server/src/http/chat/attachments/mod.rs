//! Attachments: file uploads, references in messages, image previews.

mod intake;
mod named;
mod permits;
mod preview;
mod receive;
mod records;
mod two_phase;
mod upload;
mod uploader;

pub(super) use named::{again, of_message};
pub(super) use permits::PER_PARTY;
pub(in crate::http) use permits::{StoreTurns, UploadPermits};
pub(super) use preview::preview;
pub(in crate::http) use receive::Pace;
pub(super) use receive::declared;
pub(in crate::http) use records::Links;
pub(super) use two_phase::{announce, delete, send};
pub(super) use upload::upload;
pub(super) use uploader::network_of;
