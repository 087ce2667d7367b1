//! Attachments: files uploaded for messages.

mod claims;
mod images;
mod records;
mod uploads;

pub use claims::AttachmentClaim;
pub use images::ShownImage;
pub(super) use records::AttachmentRow;
pub use records::{ImageLook, NewAttachment, StoredAttachment};
pub use uploads::{Kept, NotKept, Preview, UploadOfDay};
