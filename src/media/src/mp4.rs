//! MP4: the handlers of the tracks.

/// Major brands that can be audio. HEIC, AVIF, QuickTime and 3GPP use others.
const BRANDS: [&[u8; 4]; 20] = [
    b"M4A ", b"M4B ", b"mp41", b"mp42", b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"iso7",
    b"iso8", b"iso9", b"isoa", b"isob", b"dash", b"cmfc", b"cmf2", b"F4A ", b"avc1",
];

/// `hdlr`, version and flags, a reserved word, the handler type; read as one number.
const BOX_MASK: u128 = 0xffff_ffff_0000_0000_0000_0000_ffff_ffff;
const VIDEO: u128 = u128::from_be_bytes(*b"hdlr\0\0\0\0\0\0\0\0vide");
const AUDIO: u128 = u128::from_be_bytes(*b"hdlr\0\0\0\0\0\0\0\0soun");

/// Finds handler boxes anywhere in a stream.
#[derive(Debug, Default)]
pub(crate) struct Mp4Scan {
    /// The last 16 bytes.
    window: u128,
    audio: bool,
    refused: bool,
}

impl Mp4Scan {
    /// Creates a scan. `brand` is the major brand in the `ftyp` box.
    pub(crate) fn new(brand: &[u8]) -> Self {
        Self { refused: !BRANDS.iter().any(|known| known.as_slice() == brand), ..Self::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.refused {
            return;
        }
        for byte in bytes {
            self.window = (self.window << 8) | u128::from(*byte);
            let found = self.window & BOX_MASK;
            self.refused |= found == VIDEO;
            self.audio |= found == AUDIO;
        }
    }

    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether the stream had audio and no video.
    pub(crate) const fn is_audio(&self) -> bool {
        self.audio && !self.refused
    }
}
