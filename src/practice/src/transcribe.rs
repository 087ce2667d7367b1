//! `practice/transcribe`: returns the text that the recording contains as bytes, so a test can choose it.

use super::tokens;
use models::{TranscribeRequest, Transcript, Usage};

/// Marks the start of the words, which end at the next zero byte.
const MARKER: &[u8] = b"practice:";

/// A recording's transcript: a function of its bytes.
pub(super) fn transcript(request: &TranscribeRequest) -> Transcript {
    let audio = &request.audio;
    let marked = audio.windows(MARKER.len()).position(|bytes| bytes == MARKER);
    let said = marked.and_then(|at| audio.get(at.saturating_add(MARKER.len())..));
    let said = said.map(|said| said.split(|byte| *byte == 0).next().unwrap_or_default());
    let text = match said {
        Some(said) => String::from_utf8_lossy(said).trim().to_owned(),
        None => format!("{} bytes of audio", audio.len()),
    };
    let input_tokens = request.prompt.as_deref().map_or(0, tokens::count);
    let usage = Usage { input_tokens, output_tokens: tokens::count(&text), ..Usage::default() };
    Transcript { text, usage: Some(usage) }
}
