//! File kinds: archives and programs are refused, by content and by name.

mod archives;
mod executables;
mod media_types;
mod trailer;

pub use media_types::{OTHER, media_type};

use crate::code::Code;
use crate::hints;
use trailer::Tail;

/// First bytes to inspect: up to the descriptor of an ISO image.
const HEAD_BYTES: usize = 0x9006;

/// Inspects a file's content during the pass.
#[derive(Debug, Default)]
pub(crate) struct Inspector {
    head: Vec<u8>,
    tail: Tail,
}

impl Inspector {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..missing).unwrap_or_default());
        self.tail.feed(bytes);
    }

    /// Returns the reason if the file is refused.
    pub(crate) fn end(self, path: &str) -> Option<(Code, String)> {
        let extension = extension(path);
        let archive = |what: String| {
            let change = hints::compressed(&extension).map(|change| format!(" {change}")).unwrap_or_default();
            Some((Code::NestedArchive, format!("{what}{change}")))
        };
        if let Some(kind) = archives::by_content(&self.head).or_else(|| self.tail.archive()) {
            return archive(format!("The file is or contains an archive ({kind})."));
        }
        if archives::EXTENSIONS.contains(&extension.as_str()) {
            return archive(format!("`.{extension}` is the extension of archives."));
        }
        if let Some(kind) = executables::by_content(&self.head) {
            return Some((Code::Executable, format!("The file is a program ({kind}).")));
        }
        executables::EXTENSIONS
            .contains(&extension.as_str())
            .then(|| (Code::Executable, format!("`.{extension}` is the extension of programs.")))
    }
}

/// The lowercase extension of a path, or an empty string.
pub(crate) fn extension(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default()
}
