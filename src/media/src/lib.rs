//! File types detected by content, and safe file names. Pure.
//!
//! [`Detector`] reads a file in pieces and keeps a few KiB. It accepts only the types in [`Media`]. HTML, SVG and
//! everything else that a browser could execute are refused.

mod detect;
mod kinds;
mod magic;
mod markup;
mod mp4;
mod name;
mod ogg;
mod text;
mod webm;
mod zip;

pub use detect::Detector;
pub use kinds::Media;
pub use name::file_name;
