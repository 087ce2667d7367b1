//! Attachments: files that were uploaded for messages.

mod claims;
mod records;
mod uploads;

pub use claims::AttachmentClaim;
pub(super) use records::Row as AttachmentRow;
pub use records::{ImageLook, NewAttachment, StoredAttachment};
pub use uploads::{Kept, NotKept, Preview, UploadOfDay};
