//! The user's files: a picture becomes one sentence, a text its sentences.

use std::collections::BTreeSet;

use super::text::{sentences, topics, words};
use models::{Image, Message, Part, Role};

/// Maximum sentences remembered from all files.
const MOST: usize = 1000;
/// Maximum files that an answer names.
const MOST_NAMED: usize = 10;
/// Words that ask about a picture.
const PICTURE: [&str; 20] = [
    "picture", "pictures", "image", "images", "photo", "photos", "colour", "colours", "color", "colors",
    "size", "big", "large", "wide", "width", "high", "tall", "height", "pixel", "pixels",
];
/// Words that ask about any file.
const FILE: [&str; 4] = ["file", "files", "attachment", "attachments"];
/// Further words by which a picture's sentence is found.
const ALSO_PICTURE: &str = "image photo colour color";

/// The user's files.
#[derive(Default)]
pub(super) struct UserFiles {
    /// The picture sentences for the latest message.
    pictures: Vec<String>,
    /// One summary sentence per text in the latest message.
    texts: Vec<String>,
    /// All sentences known from all messages' files.
    pub(super) known: Vec<FileSentence>,
}

/// A sentence from a file.
pub(super) struct FileSentence {
    pub(super) text: String,
    /// Additional words by which it is found.
    pub(super) also: &'static str,
}

impl UserFiles {
    /// Reads these messages' files, newest first.
    pub(super) fn from_messages(messages: &[Message]) -> Self {
        let mut sent = Self::default();
        let of_user = messages.iter().rev().filter(|message| message.role == Role::User);
        for (before, message) in of_user.enumerate() {
            let (pictures, texts) = files(message);
            let room = MOST.saturating_sub(sent.known.len());
            let of_pictures =
                pictures.iter().map(|text| FileSentence { text: text.clone(), also: ALSO_PICTURE });
            let of_texts = texts.iter().flat_map(|file| &file.sentences);
            let of_texts = of_texts.map(|text| FileSentence { text: text.clone(), also: "" });
            sent.known.extend(of_pictures.chain(of_texts).take(room));
            if before == 0 {
                sent.texts = texts.iter().map(File::summary).collect();
                sent.pictures = pictures;
            }
            if sent.known.len() >= MOST {
                break;
            }
        }
        sent
    }

    /// Returns the answer to a message that asks about its files.
    pub(super) fn asked(&self, input: &str) -> Option<String> {
        let said = words(input);
        let any = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
        if said.is_empty() {
            return self.all();
        }
        let of_picture = any(&PICTURE) || any(&FILE) && self.texts.is_empty();
        if of_picture { joined(&self.pictures) } else { None }
    }

    /// Describes all files in the latest message.
    pub(super) fn all(&self) -> Option<String> {
        joined(self.pictures.iter().chain(&self.texts))
    }
}

impl FileSentence {
    /// The sentence's topics.
    pub(super) fn topics(&self) -> BTreeSet<String> {
        let mut about = topics(&self.text);
        about.extend(topics(self.also));
        about
    }
}

/// A message's picture sentences and its texts.
fn files(message: &Message) -> (Vec<String>, Vec<File<'_>>) {
    let (mut pictures, mut texts) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Image(image) => pictures.push(picture(image)),
            Part::Text(text) => texts.push(File::from_text(text)),
        }
    }
    (pictures, texts)
}

fn joined<'a>(sentences: impl IntoIterator<Item = &'a String>) -> Option<String> {
    let named: Vec<&str> = sentences.into_iter().take(MOST_NAMED).map(String::as_str).collect();
    (!named.is_empty()).then(|| named.join(" "))
}

/// Describes a picture in one sentence.
fn picture(image: &Image) -> String {
    let Image { name, width, height, colour, .. } = image;
    let colour = if colour.trim().is_empty() { String::new() } else { format!("{}, ", colour.trim()) };
    format!("The picture {name} is {colour}{width} pixels wide and {height} pixels high.")
}

/// A text with its file name.
struct File<'a> {
    name: Option<&'a str>,
    sentences: Vec<String>,
}

impl<'a> File<'a> {
    /// The name is the first line if an empty line follows; otherwise the text has no name.
    fn from_text(text: &'a str) -> Self {
        if let Some(name) = not_shown(text) {
            return Self { name: None, sentences: vec![format!("I cannot see {name}.")] };
        }
        let headed = text.split_once('\n').and_then(|(name, rest)| {
            let body = rest.strip_prefix('\n').or_else(|| rest.strip_prefix("\r\n"))?;
            Some((name.trim(), body)).filter(|(name, _)| !name.is_empty())
        });
        let (name, body) = headed.map_or((None, text), |(name, body)| (Some(name), body));
        Self { name, sentences: sentences(body).into_iter().take(MOST).collect() }
    }

    fn summary(&self) -> String {
        match (self.name, self.sentences.first()) {
            (Some(name), Some(first)) => format!("You sent {name}: {first}"),
            (Some(name), None) => format!("You sent {name}: it has no text."),
            (None, Some(first)) => first.clone(),
            (None, None) => "You sent a file without text.".to_owned(),
        }
    }
}

/// A file name that the request only mentions: `[voice.mp3: not shown]`.
fn not_shown(text: &str) -> Option<&str> {
    text.trim().strip_prefix('[')?.strip_suffix(": not shown]").filter(|name| !name.contains('\n'))
}

/// A message's file texts and picture sentences, as one text.
pub(super) fn as_text(parts: &[Part]) -> String {
    let of = |part: &Part| match part {
        Part::Image(image) => picture(image),
        Part::Text(text) => File::from_text(text).sentences.join("\n"),
    };
    parts.iter().map(of).collect::<Vec<_>>().join("\n")
}
