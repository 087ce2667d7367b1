//! WebM: an EBML reader that descends to the tracks and skips everything else (RFC 8794, RFC 9559).

const EBML: u64 = 0x1a45_dfa3;
const DOC_TYPE: u64 = 0x4282;
const SEGMENT: u64 = 0x1853_8067;
const CLUSTER: u64 = 0x1f43_b675;
const TRACKS: u64 = 0x1654_ae6b;
const TRACK_ENTRY: u64 = 0xae;
const TRACK_TYPE: u64 = 0x83;
const CODEC_ID: u64 = 0x86;

/// Bytes kept per value.
const MAX_VALUE: usize = 8;

#[derive(Debug)]
enum EbmlState {
    /// Reading an element's id.
    Id(Number),
    /// Reading the size of the element with this id.
    Size(u64, Number),
    /// Reading the value of the element with this id; the last field holds the remaining bytes.
    Value(u64, Vec<u8>, u64),
    /// Skipping this many bytes.
    Skip(u64),
}

/// A number with variable length: the remaining bytes, and the value so far.
#[derive(Debug, Default)]
struct Number {
    started: bool,
    left: u32,
    value: u64,
    /// Bits after the length mark.
    bits: u32,
}

impl Number {
    /// Reads one byte. Returns whether the number is complete; `None` if it is invalid.
    fn push(&mut self, byte: u8, longest: u32) -> Option<bool> {
        if self.started {
            self.value = (self.value << 8) | u64::from(byte);
            self.left -= 1;
        } else {
            let zeros = byte.leading_zeros();
            if zeros >= longest {
                return None;
            }
            *self = Self { started: true, left: zeros, value: u64::from(byte), bits: 7 * (zeros + 1) };
        }
        Some(self.left == 0)
    }

    /// The size without the length mark; `None` if all bits are set, which means that the size is unknown.
    const fn size(&self) -> Option<u64> {
        let mask = (1 << self.bits) - 1;
        let size = self.value & mask;
        if size == mask { None } else { Some(size) }
    }
}

/// Reads the document type and the track types from an EBML stream.
#[derive(Debug)]
pub(crate) struct WebmScan {
    state: EbmlState,
    webm: bool,
    audio: bool,
    refused: bool,
}

impl Default for WebmScan {
    fn default() -> Self {
        Self { state: EbmlState::Id(Number::default()), webm: false, audio: false, refused: false }
    }
}

impl WebmScan {
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !self.refused && !bytes.is_empty() {
            if let EbmlState::Skip(left) = self.state {
                let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                bytes = bytes.get(skipped..).unwrap_or_default();
                let left = left.saturating_sub(u64::try_from(skipped).unwrap_or(left));
                self.state = if left == 0 { EbmlState::Id(Number::default()) } else { EbmlState::Skip(left) };
            } else if let Some((byte, rest)) = bytes.split_first() {
                bytes = rest;
                match self.step(*byte) {
                    Some(Some(state)) => self.state = state,
                    Some(None) => {}
                    None => self.refused = true,
                }
            }
        }
    }

    /// The next state if it changes; `None` if the stream is refused.
    fn step(&mut self, byte: u8) -> Option<Option<EbmlState>> {
        match &mut self.state {
            EbmlState::Id(id) => {
                let complete = id.push(byte, 4)?;
                Some(complete.then(|| EbmlState::Size(id.value, Number::default())))
            }
            EbmlState::Size(id, size) => {
                let complete = size.push(byte, 8)?;
                let (id, size) = (*id, size.size());
                if complete { self.element(id, size).map(Some) } else { Some(None) }
            }
            EbmlState::Value(id, value, left) => {
                if value.len() < MAX_VALUE {
                    value.push(byte);
                }
                *left -= 1;
                if *left > 0 {
                    return Some(None);
                }
                let (id, value) = (*id, std::mem::take(value));
                self.value(id, &value)?;
                Some(Some(EbmlState::Id(Number::default())))
            }
            EbmlState::Skip(_) => Some(None),
        }
    }

    fn element(&mut self, id: u64, size: Option<u64>) -> Option<EbmlState> {
        match (id, size) {
            // The reader descends into these elements without checking their sizes, because live recordings have
            // unknown sizes.
            (EBML | SEGMENT | CLUSTER | TRACKS | TRACK_ENTRY, _) | (_, Some(0)) => {
                Some(EbmlState::Id(Number::default()))
            }
            (DOC_TYPE | TRACK_TYPE | CODEC_ID, Some(size)) => {
                Some(EbmlState::Value(id, Vec::with_capacity(MAX_VALUE), size))
            }
            (_, Some(size)) => Some(EbmlState::Skip(size)),
            (_, None) => None,
        }
    }

    /// Checks a value; `None` if it makes the stream unacceptable.
    fn value(&mut self, id: u64, value: &[u8]) -> Option<()> {
        match id {
            DOC_TYPE => {
                let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
                self.webm = value.get(..end)? == b"webm";
                self.webm.then_some(())
            }
            TRACK_TYPE => match value.iter().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte)) {
                // Video, or complex: several kinds in one track.
                1 | 3 => None,
                kind => {
                    self.audio |= kind == 2;
                    Some(())
                }
            },
            CODEC_ID => (!value.starts_with(b"V_")).then_some(()),
            _ => Some(()),
        }
    }

    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether the stream is WebM with audio and without video.
    pub(crate) const fn is_audio(&self) -> bool {
        self.webm && self.audio && !self.refused
    }
}
