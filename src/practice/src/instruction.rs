//! The written instructions that the practice model understands. `docs/PRACTICE_MODEL.md` is their reference.

use super::text::{stands_in, stems};

/// A prompt sentence that the model understands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Instruction {
    /// The condition; [`When::Always`] without one.
    pub(super) when: When,
    /// The action.
    pub(super) action: Action,
    /// The original sentence.
    pub(super) text: String,
}

/// An instruction's condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum When {
    /// Always.
    Always,
    /// Only if nothing else gave an answer.
    Otherwise,
    /// A condition on the user's message.
    Input {
        /// The test.
        test: Test,
        /// Whether the test is negated.
        not: bool,
    },
}

/// A test on the user's message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// One of these phrases.
    Any(Vec<String>),
    /// All of these phrases.
    All(Vec<String>),
    /// It starts with one of these.
    Starts(Vec<String>),
    /// It ends with one of these.
    Ends(Vec<String>),
    /// It is a question.
    Question,
    /// It contains a digit.
    Number,
    /// It has more words than this.
    Longer(usize),
    /// It has fewer words than this.
    Shorter(usize),
}

/// An action.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Answer this.
    Answer(String),
    /// Answer one of these.
    Labels(Vec<String>),
    /// Begin with this.
    Begin(String),
    /// End with this.
    End(String),
    /// Include these phrases.
    Include(Vec<String>),
    /// Avoid these phrases.
    Avoid(Vec<String>),
    /// Replace the first phrase by the second.
    Replace(String, String),
    /// Maximum words.
    Words(usize),
    /// Maximum sentences.
    Sentences(usize),
    /// One line per sentence, with a dash or with numbers.
    List {
        /// Whether lines have numbers instead of dashes.
        numbered: bool,
        /// Maximum lines.
        most: Option<usize>,
    },
    /// Write in uppercase.
    Upper,
    /// Write in lowercase.
    Lower,
    /// A JSON object with these members.
    Json(Vec<String>),
    /// Use a tone.
    Tone(Tone),
    /// Locates a field.
    Field(Field),
    /// Set a field to a value.
    Set(String, String),
    /// Call this tool.
    Call(String),
}

/// A tone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Thanks first.
    Polite,
    /// Offers help at the end.
    Friendly,
    /// Avoids exclamation marks and short forms.
    Formal,
}

/// A field's location in the input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// The field name.
    pub(super) name: String,
    /// The kind: `number`, `word`, `date`, `email` and the like.
    pub(super) kind: String,
    /// The phrase before the field.
    pub(super) after: Option<String>,
    /// The phrase after the field.
    pub(super) before: Option<String>,
}

/// The user's message, prepared for conditions.
pub(super) struct Heard {
    text: String,
    stems: Vec<String>,
}

impl Heard {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.trim().to_lowercase(), stems: stems(text) }
    }

    /// Whether it contains a phrase, ignoring word endings.
    pub(super) fn mentions(&self, phrase: &str) -> bool {
        stands_in(&self.stems, phrase)
    }
}

impl When {
    /// Whether the condition holds for the user's message. [`When::Otherwise`] never does: its callers check it
    /// themselves.
    pub(super) fn holds(&self, heard: &Heard) -> bool {
        match self {
            Self::Always => true,
            Self::Otherwise => false,
            Self::Input { test, not } => test.holds(heard) != *not,
        }
    }
}

impl Test {
    fn holds(&self, heard: &Heard) -> bool {
        let text = &heard.text;
        match self {
            Self::Any(phrases) => phrases.iter().any(|phrase| heard.mentions(phrase)),
            Self::All(phrases) => phrases.iter().all(|phrase| heard.mentions(phrase)),
            Self::Starts(phrases) => phrases.iter().any(|phrase| text.starts_with(&phrase.to_lowercase())),
            Self::Ends(phrases) => phrases.iter().any(|phrase| text.ends_with(&phrase.to_lowercase())),
            Self::Question => text.ends_with('?'),
            Self::Number => text.chars().any(|letter| letter.is_ascii_digit()),
            Self::Longer(count) => heard.stems.len() > *count,
            Self::Shorter(count) => heard.stems.len() < *count,
        }
    }
}
