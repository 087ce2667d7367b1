//! Marks of headers inside a content.

/// Looks for the marks of a local header, of an entry of the directory and of a descriptor, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Marks(Seen);

/// How much of a mark was seen.
#[derive(Debug, Default, Clone, Copy)]
enum Seen {
    #[default]
    Nothing,
    First,
    Second,
    /// All but the last byte, which is this.
    AllBut(u8),
}

impl Marks {
    /// Whether a mark ends in the next piece.
    pub(super) fn find(&mut self, mut piece: &[u8]) -> bool {
        loop {
            if matches!(self.0, Seen::Nothing) {
                let Some(at) = piece.iter().position(|byte| *byte == b'P') else { return false };
                piece = piece.get(at..).unwrap_or_default();
            }
            let Some((byte, rest)) = piece.split_first() else { return false };
            piece = rest;
            self.0 = match (self.0, byte) {
                (Seen::AllBut(last), byte) if last == *byte => return true,
                (_, b'P') => Seen::First,
                (Seen::First, b'K') => Seen::Second,
                (Seen::Second, 1 | 3 | 7) => Seen::AllBut(byte + 1),
                _ => Seen::Nothing,
            };
        }
    }
}
