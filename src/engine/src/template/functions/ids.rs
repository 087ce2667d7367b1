//! `uuid()`: identifiers that a resumed run generates again.

use std::sync::atomic::{AtomicU32, Ordering};

use minijinja::Value as View;

use super::invalid;
use crate::template::overlay;

/// Whether templates in this text may call `uuid()`.
pub(crate) fn are_made_in(text: &str) -> bool {
    text.contains("uuid")
}

/// A location in a run with its own identifier sequence.
pub(crate) struct Numbering {
    run: String,
    place: String,
}

impl Numbering {
    pub(crate) fn new(run: Option<&str>, place: String) -> Self {
        Self { run: run.unwrap_or_default().to_owned(), place }
    }

    /// Returns the scope with a `uuid()` that generates the same identifiers, in the same order, for the same run and
    /// place. They are unique but not secret.
    pub(crate) fn scope(&self, view: &View) -> View {
        let (run, place, made) = (self.run.clone(), self.place.clone(), AtomicU32::new(0));
        let make = move || {
            let number = made.fetch_add(1, Ordering::Relaxed);
            let parts = ["uuid", &run, &place, &number.to_string()].join("\0");
            let digest = crate::canonical::sha256(&[parts.as_bytes()]);
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
            uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
        };
        overlay(view, View::from_pairs([("uuid", View::from_function(make))]))
    }
}

/// The `uuid` that fails where the identifier would not be reproducible.
pub(crate) fn refused() -> View {
    View::from_function(|| -> Result<String, minijinja::Error> {
        Err(invalid(
            "uuid() is not available in conditions and prompts; create it in a node and use its result",
        ))
    })
}
