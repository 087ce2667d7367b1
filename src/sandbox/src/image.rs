//! Untrusted images: a worker decodes them, extracts facts and creates previews.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::call::Limits;

/// Maximum bytes of an image: its base64 form must fit into a request frame.
pub const LARGEST_IMAGE: usize = 16 << 20;

/// Maximum bytes of a preview.
pub(crate) const LARGEST_PREVIEW: usize = 1 << 20;

/// Decoder memory per pixel in bytes. A progressive JPEG in CMYK needs most: 8 for coefficients and 3 for the result. A
/// progressive JPEG in RGB needs 9, a PNG with 16 bits per channel 8.
const PIXEL_MEMORY: u64 = 11;

/// Image formats. No other format is tried.
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
    /// Finds a format by its media type, such as `image/png`.
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

/// Limits for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageLimits {
    /// Maximum time in a worker.
    pub time: Duration,
    /// Maximum pixels. They determine the worker's memory limit.
    pub pixels: u64,
    /// Maximum side of a preview, in pixels.
    pub side: u32,
    /// Maximum bytes of an image that serves as its own preview.
    pub bytes: usize,
}

impl Default for ImageLimits {
    /// 10 s, 40 megapixels, previews of 1,024 pixels, 512 KiB.
    fn default() -> Self {
        Self { time: Duration::from_secs(10), pixels: 40_000_000, side: 1024, bytes: 512 << 10 }
    }
}

impl ImageLimits {
    /// Limits for the call that reads the image. The response contains little more than the base64 preview.
    pub(crate) fn as_call(self) -> Limits {
        Limits { time: self.time, output: LARGEST_PREVIEW.saturating_mul(2), logs: 0 }
    }

    /// Maximum bytes that decoding may allocate.
    pub(crate) fn memory(self) -> usize {
        let pixels = usize::try_from(self.pixels.saturating_mul(PIXEL_MEMORY)).unwrap_or(usize::MAX);
        // A decoder may copy the file or unpack metadata.
        pixels.saturating_add(LARGEST_IMAGE)
    }
}

/// Facts about a decoded image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFacts {
    /// Width in pixels, after applying the orientation from the metadata.
    pub width: u32,
    /// Height in pixels, after applying the orientation.
    pub height: u32,
    /// The English name of the dominant colour: black, white, gray, red, orange, yellow, green, cyan, blue, purple,
    /// pink, brown; transparent if the whole image is transparent.
    pub colour: String,
    /// A smaller image: WebP without metadata, as base64, at most 1 MiB before encoding. `None` if the image is its own
    /// preview: at most [`ImageLimits::side`] on each side and at most [`ImageLimits::bytes`] long.
    pub preview: Option<String>,
}
