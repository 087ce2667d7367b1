//! PDF text in drawing order. A PDF page has no words or lines, only positioned glyphs: a gap becomes a space, and a
//! step across the writing direction a new line.

use std::collections::BTreeMap;
use std::rc::Rc;

use lopdf::content::{Content, Operation};
use lopdf::{DecompressError, Dictionary, Document, Error, LoadOptions, Object, ObjectId};

use super::font::{Font, dictionary, number, resolved};
use super::matrix::Matrix;
use super::{LimitedText, damaged};
use crate::document::{DocumentLimits, DocumentProblem, DocumentText};

/// Maximum bytes of an unpacked stream.
const STREAM: usize = 24 << 20;
/// Maximum nesting of forms.
const DEPTH: u32 = 8;
/// Maximum nesting of saved graphics states.
const SAVED: usize = 256;
/// Thresholds relative to the font size: a gap that is a space, a step to another line, a step to another paragraph.
const SPACE: f32 = 0.17;
const LINE: f32 = 0.5;
const PARAGRAPH: f32 = 1.8;

pub(super) fn read(bytes: &[u8], limits: DocumentLimits) -> Result<DocumentText, DocumentProblem> {
    let options = LoadOptions { max_decompressed_size: Some(STREAM), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| problem(&error))?;
    if document.is_encrypted() && !document.was_encrypted() {
        return Err(DocumentProblem::Protected);
    }
    let pages = document.get_pages();
    if pages.is_empty() {
        return Err(damaged("it has no pages"));
    }
    if pages.len() > limits.pages {
        return Err(DocumentProblem::Pages(pages.len()));
    }
    let mut text = LimitedText::new(limits.text);
    for (number, id) in &pages {
        if *number > 1 {
            text.end_line()?;
            text.push("\u{c}")?;
        }
        let on_page = |problem| match problem {
            DocumentProblem::Damaged(why) => damaged(format!("page {number}: {why}")),
            other => other,
        };
        page(&document, *id, &mut text).map_err(on_page)?;
    }
    Ok(text.done(Some(pages.len())))
}

fn problem(error: &Error) -> DocumentProblem {
    match error {
        Error::InvalidPassword
        | Error::Decryption(_)
        | Error::UnsupportedSecurityHandler(_)
        | Error::AlreadyEncrypted => DocumentProblem::Protected,
        Error::Decompress(DecompressError::MemoryLimitExceeded { limit }) => DocumentProblem::TooLarge(
            format!("a part of it is larger than {limit} bytes after decompression"),
        ),
        other => damaged(
            other.to_string().chars().filter(|letter| !letter.is_control()).take(200).collect::<String>(),
        ),
    }
}

fn page(document: &Document, id: ObjectId, text: &mut LimitedText) -> Result<(), DocumentProblem> {
    let content = document.get_page_content_with_limit(id, STREAM).map_err(|error| problem(&error))?;
    let (own, referred) = document.get_page_resources(id).map_err(|error| problem(&error))?;
    let referred = referred.iter().filter_map(|id| document.get_dictionary(*id).ok());
    let resources: Vec<&Dictionary> = own.into_iter().chain(referred).collect();
    let mut extractor = TextExtractor { document, text, end: None };
    extractor.draw(&content, &resources, Matrix::ONE, 0)
}

/// The graphics state that `q` saves and `Q` restores.
#[derive(Clone)]
struct GraphicsState<'a> {
    page: Matrix,
    font: Option<Rc<Font<'a>>>,
    size: f32,
    between_letters: f32,
    between_words: f32,
    stretch: f32,
    leading: f32,
}

impl GraphicsState<'_> {
    fn new(page: Matrix) -> Self {
        Self {
            page,
            font: None,
            size: 1.0,
            between_letters: 0.0,
            between_words: 0.0,
            stretch: 1.0,
            leading: 0.0,
        }
    }

    /// Applies an operator with numbers only.
    fn apply(&mut self, operator: &str, numbers: &[f32]) {
        let first = numbers.first().copied().unwrap_or_default();
        match operator {
            "cm" => {
                if let Some(matrix) = Matrix::read(numbers) {
                    self.page = matrix.then(self.page);
                }
            }
            "Tc" => self.between_letters = first,
            "Tw" => self.between_words = first,
            "Tz" => self.stretch = first / 100.0,
            "TL" => self.leading = first,
            "TD" => self.leading = -numbers.get(1).copied().unwrap_or_default(),
            _ => {}
        }
    }
}

/// The positions of the current line's start and of the next glyph.
struct TextPosition {
    line: Matrix,
    at: Matrix,
}

impl TextPosition {
    /// Applies an operator that starts a text or a line.
    fn apply(&mut self, operator: &str, numbers: &[f32], leading: f32) {
        let start = match operator {
            "BT" => Some(Matrix::ONE),
            "Tm" => Matrix::read(numbers),
            "Td" | "TD" => {
                let [right, down] = [0_usize, 1].map(|index| numbers.get(index).copied().unwrap_or_default());
                Some(Matrix::shift(right, down).then(self.line))
            }
            "T*" | "'" | "\"" => Some(Matrix::shift(0.0, -leading).then(self.line)),
            _ => None,
        };
        if let Some(start) = start {
            (self.line, self.at) = (start, start);
        }
    }
}

/// Extracts text from drawing operators.
struct TextExtractor<'a, 'b> {
    document: &'a Document,
    text: &'b mut LimitedText,
    /// The end position of the last drawn text, and its font size.
    end: Option<((f32, f32), f32)>,
}

impl<'a> TextExtractor<'a, '_> {
    fn draw(
        &mut self,
        content: &[u8],
        resources: &[&'a Dictionary],
        page: Matrix,
        depth: u32,
    ) -> Result<(), DocumentProblem> {
        let mut fonts: BTreeMap<Vec<u8>, Option<Rc<Font<'a>>>> = BTreeMap::new();
        let (mut state, mut saved) = (GraphicsState::new(page), Vec::new());
        let mut position = TextPosition { line: Matrix::ONE, at: Matrix::ONE };
        for operation in Content::<Vec<Operation>>::decode_iter(content) {
            let Operation { operator, operands } = operation.map_err(|error| problem(&error))?;
            let numbers: Vec<f32> =
                operands.iter().filter_map(|operand| number(self.document, operand)).collect();
            let name = operands.first().and_then(|name| name.as_name().ok()).unwrap_or_default();
            match operator.as_str() {
                "q" if saved.len() < SAVED => saved.push(state.clone()),
                "Q" => state = saved.pop().unwrap_or(state),
                "Tf" => {
                    state.size = numbers.first().copied().unwrap_or_default();
                    let font = fonts.entry(name.to_owned()).or_insert_with(|| self.font(resources, name));
                    state.font.clone_from(font);
                }
                "Do" if depth < DEPTH => self.form(resources, name, state.page, depth)?,
                operator => {
                    state.apply(operator, &numbers);
                    position.apply(operator, &numbers, state.leading);
                }
            }
            if let ("Tj" | "TJ" | "'" | "\"", Some(shown)) = (operator.as_str(), operands.last()) {
                self.show(shown, &state, &mut position.at)?;
            }
        }
        Ok(())
    }

    /// Shows a text, or several texts with steps between them.
    fn show(
        &mut self,
        shown: &Object,
        state: &GraphicsState<'a>,
        at: &mut Matrix,
    ) -> Result<(), DocumentProblem> {
        match shown {
            Object::String(codes, _) => self.show_codes(codes, state, at),
            Object::Array(several) => {
                for one in several {
                    match one {
                        Object::String(codes, _) => self.show_codes(codes, state, at)?,
                        step => {
                            let back = number(self.document, step).unwrap_or_default();
                            let step = -back / 1000.0 * state.size * state.stretch;
                            *at = Matrix::shift(step, 0.0).then(*at);
                        }
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn show_codes(
        &mut self,
        codes: &[u8],
        state: &GraphicsState<'a>,
        at: &mut Matrix,
    ) -> Result<(), DocumentProblem> {
        let Some(font) = &state.font else { return Ok(()) };
        let place = at.then(state.page);
        let size = (state.size * place.c.hypot(place.d)).abs();
        if let Some(((end_x, end_y), size_before)) = self.end {
            let (along, across) = place.step(end_x, end_y);
            let size = size.max(size_before).max(f32::EPSILON);
            if across.abs() > PARAGRAPH * size {
                self.text.end_paragraph()?;
            } else if across.abs() > LINE * size {
                self.text.end_line()?;
            } else if along > SPACE * size || along < -size {
                self.text.space()?;
            }
        }
        self.text.push(&font.text(codes))?;
        let (width, count, spaces) = font.measure(codes);
        let own = width / 1000.0 * state.size + count * state.between_letters + spaces * state.between_words;
        *at = Matrix::shift(own * state.stretch, 0.0).then(*at);
        let end = at.then(state.page);
        self.end = Some(((end.e, end.f), size));
        Ok(())
    }

    fn font(&self, resources: &[&'a Dictionary], name: &[u8]) -> Option<Rc<Font<'a>>> {
        let font = find(self.document, resources, b"Font", name)?;
        Font::read(self.document, dictionary(self.document, font)?).map(Rc::new)
    }

    /// Draws a form at its position.
    fn form(
        &mut self,
        resources: &[&'a Dictionary],
        name: &[u8],
        page: Matrix,
        depth: u32,
    ) -> Result<(), DocumentProblem> {
        let document = self.document;
        let found = find(document, resources, b"XObject", name).map(|form| resolved(document, form));
        let Some(Object::Stream(form)) = found else { return Ok(()) };
        if !form.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Form") {
            return Ok(());
        }
        let content = match form.decompressed_content_with_limit(STREAM) {
            Ok(content) => content,
            Err(error @ Error::Decompress(DecompressError::MemoryLimitExceeded { .. })) => {
                return Err(problem(&error));
            }
            Err(_) => form.content.clone(),
        };
        let matrix = form.dict.get_deref(b"Matrix", document).and_then(Object::as_array).ok();
        let matrix = matrix.and_then(|numbers| {
            let numbers: Vec<f32> = numbers.iter().filter_map(|one| number(document, one)).collect();
            Matrix::read(&numbers)
        });
        let own = form.dict.get(b"Resources").ok().and_then(|own| dictionary(document, own));
        let page = matrix.unwrap_or(Matrix::ONE).then(page);
        match own {
            Some(own) => self.draw(&content, &[own], page, depth.saturating_add(1)),
            None => self.draw(&content, resources, page, depth.saturating_add(1)),
        }
    }
}

fn find<'a>(
    document: &'a Document,
    resources: &[&'a Dictionary],
    kind: &[u8],
    name: &[u8],
) -> Option<&'a Object> {
    let of = |resources: &&'a Dictionary| dictionary(document, resources.get(kind).ok()?)?.get(name).ok();
    resources.iter().find_map(of)
}
