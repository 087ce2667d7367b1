//! The written instructions that the practice model understands. `docs/PRACTICE_MODEL.md` is their reference.

use super::text::{stands_in, stems};

/// A sentence of the prompt that is understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Instruction {
    /// When it holds; always where it says nothing.
    pub(super) when: When,
    /// What to do.
    pub(super) action: Action,
    /// As it is written.
    pub(super) text: String,
}

/// When an instruction holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum When {
    /// Always.
    Always,
    /// Where nothing else gave an answer.
    Otherwise,
    /// Of what the user says.
    Input {
        /// What is looked for.
        test: Test,
        /// Whether it must be missing.
        not: bool,
    },
}

/// What is looked for in what the user says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// One of these phrases.
    Any(Vec<String>),
    /// All of these phrases.
    All(Vec<String>),
    /// It begins with one of these.
    Starts(Vec<String>),
    /// It ends with one of these.
    Ends(Vec<String>),
    /// It asks.
    Question,
    /// It holds a digit.
    Number,
    /// It has more words than this.
    Longer(usize),
    /// It has fewer words than this.
    Shorter(usize),
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// The answer is this.
    Answer(String),
    /// The answer is one of these.
    Labels(Vec<String>),
    /// Begin with this.
    Begin(String),
    /// End with this.
    End(String),
    /// These must stand in it.
    Include(Vec<String>),
    /// These must not stand in it.
    Avoid(Vec<String>),
    /// Write one for the other.
    Replace(String, String),
    /// At most so many words.
    Words(usize),
    /// At most so many sentences.
    Sentences(usize),
    /// One line for each sentence, with a dash or with numbers.
    List {
        /// Numbers instead of dashes.
        numbered: bool,
        /// At most so many.
        most: Option<usize>,
    },
    /// All in capital letters.
    Upper,
    /// All in small letters.
    Lower,
    /// A JSON object with these members.
    Json(Vec<String>),
    /// A manner.
    Tone(Tone),
    /// Where a field is found.
    Field(Field),
    /// A field has this value.
    Set(String, String),
    /// Call this tool.
    Call(String),
}

/// A manner of speaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Thanks first.
    Polite,
    /// Offers help at the end.
    Friendly,
    /// No exclamation marks, no short forms.
    Formal,
}

/// Where a field is found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// Its name.
    pub(super) name: String,
    /// What it is: `number`, `word`, `date`, `email` and the like.
    pub(super) kind: String,
    /// What stands before it.
    pub(super) after: Option<String>,
    /// What stands behind it.
    pub(super) before: Option<String>,
}

/// What the user says, as conditions look at it.
pub(super) struct Heard {
    text: String,
    stems: Vec<String>,
}

impl Heard {
    pub(super) fn of(text: &str) -> Self {
        Self { text: text.trim().to_lowercase(), stems: stems(text) }
    }

    /// Whether a phrase stands in it, whatever the words' endings.
    pub(super) fn mentions(&self, phrase: &str) -> bool {
        stands_in(&self.stems, phrase)
    }
}

impl When {
    /// Whether it holds for what the user says. [`When::Otherwise`] never does: who asks has to know.
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
