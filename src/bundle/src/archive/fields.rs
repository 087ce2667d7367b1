//! Little-endian record fields.

/// Reads fields in sequence; `None` at the record's end.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn u16(&mut self) -> Option<u16> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*field))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*field))
    }

    pub(super) fn take(&mut self, count: u16) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(usize::from(count))?;
        self.0 = rest;
        Some(field)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
