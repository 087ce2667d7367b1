//! Header marks inside a content.

/// Finds the marks of local headers, directory entries and descriptors in a stream of pieces.
#[derive(Debug, Default)]
pub(super) struct Marks(MatchState);

/// The part matched so far.
#[derive(Debug, Default, Clone, Copy)]
enum MatchState {
    #[default]
    Nothing,
    First,
    Second,
    /// All but the last byte; contains that byte.
    AllBut(u8),
}

impl Marks {
    /// Whether a mark ends in this piece.
    pub(super) fn find(&mut self, mut piece: &[u8]) -> bool {
        loop {
            if matches!(self.0, MatchState::Nothing) {
                let Some(at) = piece.iter().position(|byte| *byte == b'P') else { return false };
                piece = piece.get(at..).unwrap_or_default();
            }
            let Some((byte, rest)) = piece.split_first() else { return false };
            piece = rest;
            self.0 = match (self.0, byte) {
                (MatchState::AllBut(last), byte) if last == *byte => return true,
                (_, b'P') => MatchState::First,
                (MatchState::First, b'K') => MatchState::Second,
                (MatchState::Second, 1 | 3 | 7) => MatchState::AllBut(byte + 1),
                _ => MatchState::Nothing,
            };
        }
    }
}
