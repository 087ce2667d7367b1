//! Images of strangers: a worker decodes them, finds their facts and makes their previews.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::call::Limits;

/// Maximum bytes of an image: its request, as base64, has to fit into a frame.
pub const LARGEST_IMAGE: usize = 16 << 20;

/// Maximum bytes of a preview.
pub(crate) const LARGEST_PREVIEW: usize = 1 << 20;

/// Bytes of memory for each pixel. A progressive JPEG in CMYK needs most: 8 for coefficients and 3 for the result. A progressive JPEG in RGB needs 9, a PNG with 16 bits per channel 8.
const PIXEL_MEMORY: u64 = 11;

/// The format of an image. No other format is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF; only the first frame of an animation is decoded.
    Gif,
    /// WebP; only the first frame of an animation is decoded.
    Webp,
}

impl ImageKind {
    /// The format with this media type, such as `image/png`.
    #[must_use]
    pub fn of_mime(mime: &str) -> Option<Self> {
        match mime {
            "image/png" => Some(Self::Png),
            "image/jpeg" => Some(Self::Jpeg),
            "image/gif" => Some(Self::Gif),
            "image/webp" => Some(Self::Webp),
            _ => None,
        }
    }
}

/// Limits of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageLimits {
    /// Maximum time in a worker.
    pub time: Duration,
    /// Maximum pixels. The memory of the worker follows from them.
    pub pixels: u64,
    /// The longest side of a preview, in pixels.
    pub side: u32,
    /// The most bytes of an image that is its own preview.
    pub bytes: usize,
}

impl Default for ImageLimits {
    /// 10 s, 40 megapixels, previews of 1,024 pixels, 512 KiB.
    fn default() -> Self {
        Self { time: Duration::from_secs(10), pixels: 40_000_000, side: 1024, bytes: 512 << 10 }
    }
}

impl ImageLimits {
    /// Limits of the call that reads it. The answer holds little more than the preview, as base64.
    pub(crate) fn as_call(self) -> Limits {
        Limits { time: self.time, output: LARGEST_PREVIEW.saturating_mul(2), logs: 0 }
    }

    /// Bytes that decoding may allocate.
    pub(crate) fn memory(self) -> usize {
        let pixels = usize::try_from(self.pixels.saturating_mul(PIXEL_MEMORY)).unwrap_or(usize::MAX);
        // A decoder may copy the file, or unpack metadata.
        pixels.saturating_add(LARGEST_IMAGE)
    }
}

/// The facts of an image that was decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFacts {
    /// Pixels, after the orientation that its metadata says was applied.
    pub width: u32,
    /// Pixels, as of `width`.
    pub height: u32,
    /// The English name of its dominant colour: black, white, gray, red, orange, yellow, green, cyan, blue, purple, pink,
    /// brown; transparent if all of it is.
    pub colour: String,
    /// A smaller image: WebP without metadata, as base64, at most 1 MiB before base64. `None` if the image is its own
    /// preview: at most [`ImageLimits::side`] on each side and [`ImageLimits::bytes`] long.
    pub preview: Option<String>,
}
