//! Detects whether a text, whatever its name, begins as markup that a browser or an SVG loader would accept.
//!
//! Stricter than the table in <https://mimesniff.spec.whatwg.org/>: it also skips comments and XML namespace
//! prefixes, as the chosen parser would.

/// The beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Markup {
    /// Plain text, or undecided.
    None,
    /// A comment or an element that Markdown also uses. A browser treats it as HTML.
    Fragment,
    /// A declaration or an element that begins an HTML, SVG or other XML document.
    Document,
}

/// Elements that begin a document or load something.
const DOCUMENT: [&str; 20] = [
    "html",
    "head",
    "body",
    "script",
    "svg",
    "iframe",
    "frameset",
    "frame",
    "style",
    "title",
    "meta",
    "link",
    "base",
    "object",
    "embed",
    "template",
    "math",
    "noscript",
    "stylesheet",
    "xml",
];

/// Elements that also begin Markdown texts.
const FRAGMENT: [&str; 48] = [
    "a",
    "article",
    "aside",
    "audio",
    "b",
    "blockquote",
    "br",
    "button",
    "center",
    "code",
    "dd",
    "details",
    "div",
    "dl",
    "em",
    "font",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "input",
    "ins",
    "kbd",
    "main",
    "nav",
    "ol",
    "p",
    "picture",
    "pre",
    "section",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "textarea",
    "u",
    "ul",
    "video",
];

/// Maximum element name bytes that are compared.
const MAX_NAME: usize = 64;

#[derive(Debug)]
enum SnifferState {
    /// Before the first character outside white space and comments.
    Start,
    /// After `<`, with the following characters in lower case.
    Tag(String),
    /// Inside a comment, with the number of trailing hyphens so far and whether it is still empty.
    Comment {
        hyphens: usize,
        empty: bool,
        bang: bool,
    },
    Decided(Markup),
}

/// Reads the beginning of a text in pieces of any size.
#[derive(Debug)]
pub(crate) struct Sniffer {
    state: SnifferState,
    commented: bool,
}

impl Default for Sniffer {
    fn default() -> Self {
        Self { state: SnifferState::Start, commented: false }
    }
}

impl Sniffer {
    pub(crate) fn push(&mut self, text: &str) {
        for letter in text.chars() {
            if matches!(self.state, SnifferState::Decided(_)) {
                return;
            }
            self.step(letter);
        }
    }

    fn step(&mut self, letter: char) {
        let next = match &mut self.state {
            SnifferState::Start if letter == '<' => Some(SnifferState::Tag(String::new())),
            SnifferState::Start if letter.is_whitespace() || letter.is_control() || letter == '\u{feff}' => {
                None
            }
            SnifferState::Start => Some(SnifferState::Decided(self.floor())),
            SnifferState::Tag(name) => tag(name, letter),
            SnifferState::Comment { hyphens, empty, bang } => comment(hyphens, empty, bang, letter),
            SnifferState::Decided(_) => None,
        };
        match next {
            Some(SnifferState::Decided(markup)) => {
                let floor = self.floor();
                self.state = SnifferState::Decided(if markup == Markup::None { floor } else { markup });
            }
            Some(state) => {
                self.commented |= matches!(state, SnifferState::Comment { .. });
                self.state = state;
            }
            None => {}
        }
    }

    const fn floor(&self) -> Markup {
        if self.commented { Markup::Fragment } else { Markup::None }
    }

    pub(crate) fn markup(&self) -> Markup {
        if let SnifferState::Decided(markup) = self.state { markup } else { self.floor() }
    }

    pub(crate) fn final_markup(&self) -> Markup {
        match &self.state {
            SnifferState::Tag(name) if named(name) != Markup::None => named(name),
            _ => self.markup(),
        }
    }
}

fn tag(name: &mut String, letter: char) -> Option<SnifferState> {
    if name.starts_with('!') {
        // A comment, or a declaration: `<!doctype`, `<!entity`, `<![CDATA[`.
        name.push(letter.to_ascii_lowercase());
        return match name.as_str() {
            "!-" => None,
            "!--" => Some(SnifferState::Comment { hyphens: 0, empty: true, bang: false }),
            _ => Some(SnifferState::Decided(Markup::Document)),
        };
    }
    match letter {
        // XML declarations and processing instructions can precede an SVG.
        '?' if name.is_empty() => Some(SnifferState::Decided(Markup::Document)),
        '!' if name.is_empty() => {
            name.push('!');
            None
        }
        // The end tag of an unopened element: an HTML parser ignores it.
        '/' if name.is_empty() => Some(SnifferState::Decided(Markup::Fragment)),
        _ if is_name(letter) && name.len() < MAX_NAME => {
            name.extend(letter.to_lowercase());
            None
        }
        // A namespace prefix can have any length.
        _ if is_name(letter) => Some(SnifferState::Decided(Markup::Document)),
        _ => Some(SnifferState::Decided(named(name))),
    }
}

/// Whether an XML name can contain the character.
fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, ':' | '-' | '_' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}')
}

fn named(name: &str) -> Markup {
    let local = name.rsplit(':').next().unwrap_or_default();
    if name.starts_with('!') || DOCUMENT.contains(&local) {
        Markup::Document
    } else if FRAGMENT.contains(&local) {
        Markup::Fragment
    } else {
        Markup::None
    }
}

/// `-->` ends a comment for all parsers. `<!-->`, `<!--->` and `--!>` end it only in HTML, so two parsers would read
/// two different documents; a text does not need them.
fn comment(hyphens: &mut usize, empty: &mut bool, bang: &mut bool, letter: char) -> Option<SnifferState> {
    let (before, was_empty, was_bang) = (*hyphens, *empty, *bang);
    match letter {
        '>' if was_empty || was_bang => return Some(SnifferState::Decided(Markup::Document)),
        '>' if before >= 2 => return Some(SnifferState::Start),
        _ => {}
    }
    *hyphens = if letter == '-' { before.saturating_add(1) } else { 0 };
    *bang = letter == '!' && before >= 2;
    // `<!--->`: one hyphen leaves it empty.
    *empty = was_empty && letter == '-' && before == 0;
    None
}
