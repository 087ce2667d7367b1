//! Fonts: map character codes to text and widths.

use std::collections::BTreeMap;

use lopdf::{Dictionary, Document, Encoding, Object};

/// Maximum bytes of a font's unpacked Unicode map.
const MAP: usize = 4 << 20;
/// Maximum codes per entry in the width table.
const SPAN: u32 = 65_536;

/// A font used on a page.
pub(super) struct Font<'a> {
    encoding: Encoding<'a>,
    widths: BTreeMap<u32, f32>,
    default: f32,
    /// Whether codes have two bytes.
    wide: bool,
}

impl<'a> Font<'a> {
    pub(super) fn read(document: &'a Document, font: &'a Dictionary) -> Option<Self> {
        let encoding = font.get_font_encoding_with_limit(document, MAP).ok()?;
        let wide = font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Type0");
        let mut read = Self { encoding, widths: BTreeMap::new(), default: 500.0, wide };
        if wide {
            read.read_wide(document, font);
        } else {
            read.read_simple(document, font);
        }
        Some(read)
    }

    fn read_simple(&mut self, document: &Document, font: &Dictionary) {
        let first = font.get_deref(b"FirstChar", document).ok().and_then(code).unwrap_or_default();
        // A Type 3 font uses its own units.
        if font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Type3") {
            return;
        }
        if let Ok(widths) = font.get_deref(b"Widths", document).and_then(Object::as_array) {
            let widths = widths.iter().take(256).map(|width| number(document, width));
            self.widths = (first..).zip(widths).filter_map(|(code, width)| Some((code, width?))).collect();
        }
    }

    fn read_wide(&mut self, document: &Document, font: &Dictionary) {
        let Ok(descendants) = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array) else {
            return;
        };
        let Some(inner) = descendants.first().and_then(|inner| dictionary(document, inner)) else { return };
        self.default = inner.get(b"DW").ok().and_then(|width| number(document, width)).unwrap_or(1000.0);
        let Ok(widths) = inner.get_deref(b"W", document).and_then(Object::as_array) else { return };
        let mut rest = widths.iter();
        while let Some(first) = rest.next().and_then(code) {
            match rest.next().map(|next| resolved(document, next)) {
                Some(Object::Array(several)) => {
                    let several = several.iter().map(|width| number(document, width));
                    self.widths
                        .extend((first..).zip(several).filter_map(|(code, width)| Some((code, width?))));
                }
                Some(last) => {
                    let (last, width) = (code(last), rest.next().and_then(|width| number(document, width)));
                    let (Some(last), Some(width)) = (last, width) else { return };
                    let last = last.min(first.saturating_add(SPAN));
                    self.widths.extend((first..=last).map(|code| (code, width)));
                }
                None => return,
            }
        }
    }

    /// Returns the text of these codes; unmapped codes are omitted.
    pub(super) fn text(&self, codes: &[u8]) -> String {
        self.encoding.bytes_to_string(codes).unwrap_or_default()
    }

    /// Returns the total width of these codes in thousandths of the font size, their count, and how many are
    /// stretchable spaces.
    pub(super) fn measure(&self, codes: &[u8]) -> (f32, f32, f32) {
        let of = |code: u32| self.widths.get(&code).copied().unwrap_or(self.default);
        if self.wide {
            let codes =
                codes.chunks(2).map(|pair| pair.iter().fold(0, |code, byte| code << 8 | u32::from(*byte)));
            return codes.fold((0.0, 0.0, 0.0), |(width, count, spaces), code| {
                (width + of(code), count + 1.0, spaces)
            });
        }
        codes.iter().fold((0.0, 0.0, 0.0), |(width, count, spaces), byte| {
            let space = if *byte == b' ' { 1.0 } else { 0.0 };
            (width + of(u32::from(*byte)), count + 1.0, spaces + space)
        })
    }
}

pub(super) fn resolved<'a>(document: &'a Document, object: &'a Object) -> &'a Object {
    document.dereference(object).map_or(object, |(_, object)| object)
}

pub(super) fn dictionary<'a>(document: &'a Document, object: &'a Object) -> Option<&'a Dictionary> {
    resolved(document, object).as_dict().ok()
}

pub(super) fn number(document: &Document, object: &Object) -> Option<f32> {
    resolved(document, object).as_float().ok().filter(|number| number.is_finite())
}

fn code(object: &Object) -> Option<u32> {
    object.as_i64().ok().and_then(|code| u32::try_from(code).ok())
}
