//! Image facts and previews.

mod colour;
mod jpeg;

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::{WebPDecoder, WebPEncoder};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageResult, Limits};

use super::document::{damaged, reading};
use crate::document::DocumentProblem;
use crate::frame::WorkerAnswer;
use crate::image::{ImageFacts, ImageKind, ImageLimits, LARGEST_PREVIEW};

/// Reads an image. A panic in the decoder is reported as a damaged image.
pub(super) fn read(kind: ImageKind, data: String, limits: ImageLimits) -> WorkerAnswer {
    reading(data, move |bytes| facts(kind, bytes, limits))
        .map_or_else(WorkerAnswer::Unreadable, WorkerAnswer::Image)
}

fn facts(kind: ImageKind, bytes: &[u8], limits: ImageLimits) -> Result<ImageFacts, DocumentProblem> {
    let input = Cursor::new(bytes);
    match kind {
        // Only this decoder allocates based on the header, and unpacks metadata, before the size can be checked.
        ImageKind::Png => decoded(PngDecoder::with_limits(input, bounds(limits)), bytes.len(), limits),
        ImageKind::Jpeg => {
            let facts = decoded(JpegDecoder::new(input), bytes.len(), limits)?;
            // The decoder fills missing pixels with gray.
            if jpeg::is_complete(bytes) { Ok(facts) } else { Err(damaged("it is truncated")) }
        }
        ImageKind::Gif => decoded(GifDecoder::new(input), bytes.len(), limits),
        ImageKind::Webp => decoded(WebPDecoder::new(input), bytes.len(), limits),
    }
}

fn bounds(limits: ImageLimits) -> Limits {
    let mut bounds = Limits::no_limits();
    bounds.max_alloc = u64::try_from(limits.memory()).ok();
    bounds
}

fn decoded(
    decoder: ImageResult<impl ImageDecoder>,
    length: usize,
    limits: ImageLimits,
) -> Result<ImageFacts, DocumentProblem> {
    let mut decoder = decoder.map_err(problem)?;
    let (width, height) = decoder.dimensions();
    match u64::from(width).saturating_mul(u64::from(height)) {
        0 => return Err(damaged("it has no pixels")),
        pixels if pixels > limits.pixels => {
            let message = format!("it has {pixels} pixels, more than {}", limits.pixels);
            return Err(DocumentProblem::TooLarge(message));
        }
        _ => {}
    }
    decoder.set_limits(bounds(limits)).map_err(problem)?;
    // Unreadable metadata does not make an image damaged.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let whole = DynamicImage::from_decoder(decoder).map_err(problem)?;
    let is_small = width.max(height) <= limits.side;
    let mut image = if is_small { whole } else { whole.thumbnail(limits.side, limits.side) };
    let colour = colour::dominant(&image).to_owned();
    let preview = if is_small && length <= limits.bytes {
        None
    } else {
        image.apply_orientation(orientation);
        Some(preview(image)?)
    };
    let (width, height) = if is_turned(orientation) { (height, width) } else { (width, height) };
    Ok(ImageFacts { width, height, colour, preview })
}

/// Encodes WebP as base64. Lossless photos can be large, so the image is scaled down until it fits.
fn preview(image: DynamicImage) -> Result<String, DocumentProblem> {
    let mut image: DynamicImage =
        if image.color().has_alpha() { image.into_rgba8().into() } else { image.into_rgb8().into() };
    loop {
        let mut webp = Vec::new();
        image.write_with_encoder(WebPEncoder::new_lossless(&mut webp)).map_err(problem)?;
        if webp.len() <= LARGEST_PREVIEW {
            return Ok(STANDARD.encode(webp));
        }
        let side = image.width().max(image.height()).saturating_mul(3) / 4;
        image = image.thumbnail(side, side);
    }
}

/// Whether the orientation swaps width and height.
fn is_turned(orientation: Orientation) -> bool {
    match orientation {
        Orientation::NoTransforms
        | Orientation::Rotate180
        | Orientation::FlipHorizontal
        | Orientation::FlipVertical => false,
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => true,
    }
}

fn problem(error: ImageError) -> DocumentProblem {
    match error {
        ImageError::Limits(error) => DocumentProblem::TooLarge(error.to_string()),
        other => damaged(other.to_string()),
    }
}
