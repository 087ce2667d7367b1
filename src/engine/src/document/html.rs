//! Extracts text from a page. Tags are tokenized as browsers do, but no tree is built, so a page with a million
//! nested tags is harmless.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Elements whose content is skipped.
const SILENT: [&str; 8] = ["head", "script", "style", "noscript", "template", "svg", "iframe", "select"];
/// Elements on lines by themselves.
const LINES: [&str; 12] =
    ["br", "dd", "dt", "figcaption", "li", "option", "summary", "td", "th", "tr", "caption", "legend"];
/// Elements with empty lines around them.
const PARAGRAPHS: [&str; 29] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "details",
    "div",
    "dl",
    "fieldset",
    "figure",
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
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "title",
    "ul",
];

/// Bytes fed to the tokenizer at once.
const PART: usize = 4 << 10;

/// Returns the visible text; `None` if `late` returns true before the end. A tag with very many attributes is slow:
/// each is compared with all before it.
pub(super) fn text(html: &str, late: impl Fn() -> bool) -> Option<String> {
    let input = BufferQueue::default();
    let sink = TextSink(RefCell::default());
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let mut rest = html;
    while !rest.is_empty() {
        if late() {
            return None;
        }
        let (part, behind) = rest.split_at(rest.floor_char_boundary(PART.min(rest.len())));
        input.push_back(StrTendril::from(part));
        // The tokenizer stops at each script, for callers that run it.
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        rest = behind;
    }
    tokenizer.end();
    let read = tokenizer.sink.0.into_inner();
    Some(read.text.trim().to_owned())
}

/// The text and state so far.
#[derive(Default)]
struct PageText {
    text: String,
    /// The current silent element, and the number of open elements with its name.
    silent: Option<(String, u32)>,
    pre: u32,
}

struct TextSink(RefCell<PageText>);

impl TokenSink for TextSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut read = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(letters) if read.silent.is_none() => read.say(&letters),
            Token::TagToken(tag) => return read.tag(&tag),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl PageText {
    fn tag(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let begins = tag.kind == TagKind::StartTag;
        if let Some((silent, open)) = &mut self.silent {
            if silent == name {
                *open = if begins { open.saturating_add(1) } else { open.saturating_sub(1) };
            }
            // The head ends where the body begins, even without an end tag.
            if *open == 0 || (silent == "head" && name == "body") {
                self.silent = None;
            }
        } else if begins && !tag.self_closing && SILENT.contains(&name) {
            self.silent = Some((name.to_owned(), 1));
        } else if name == "pre" {
            self.pre = if begins { self.pre.saturating_add(1) } else { self.pre.saturating_sub(1) };
        }
        if self.silent.is_none() {
            if PARAGRAPHS.contains(&name) {
                self.end_line(2);
            } else if LINES.contains(&name) {
                self.end_line(1);
            }
        }
        match name {
            "script" | "style" | "iframe" | "noembed" | "noframes" | "xmp" if begins => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "title" | "textarea" if begins => TokenSinkResult::RawData(RawKind::Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }

    fn say(&mut self, letters: &str) {
        if self.pre > 0 {
            self.text.push_str(letters);
            return;
        }
        for letter in letters.chars() {
            let is_space = matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}');
            match is_space {
                true if self.text.is_empty() || self.text.ends_with([' ', '\n']) => {}
                true => self.text.push(' '),
                false => self.text.push(letter),
            }
        }
    }

    /// Ends a line, and adds an empty line if `breaks` is 2.
    fn end_line(&mut self, breaks: usize) {
        let kept = self.text.trim_end_matches(' ').len();
        self.text.truncate(kept);
        if self.text.is_empty() {
            return;
        }
        let there = self.text.chars().rev().take_while(|letter| *letter == '\n').take(2).count();
        (there..breaks).for_each(|_| self.text.push('\n'));
    }
}

#[cfg(test)]
mod tests {
    fn text(html: &str) -> String {
        super::text(html, || false).unwrap()
    }

    #[test]
    fn parsing_stops_at_the_deadline() {
        let parts = std::cell::Cell::new(0);
        let page = "<a b>".repeat(10_000);
        let late = || parts.replace(parts.get() + 1) == 5;
        assert_eq!(super::text(&page, late), None);
        assert_eq!(parts.get(), 6);
        assert_eq!(text(&format!("<p>{}</p>", "ö".repeat(10_000))).chars().count(), 10_000);
    }

    #[test]
    fn only_the_visible_text_of_a_page_is_read() {
        let page = "<!doctype html><html><head><title>No</title><style>p{}</style><body><h1>A  title</h1>\n<p>One &amp; two<br>\
                    three &eacute;<b>bo</b>ld</p><script>if (a </b) '<p>no'</script><ul><li>x<li>y</ul><!-- no --><pre>a\n  b</pre>\
                    <table><tr><td>1<td>2</table><textarea><p>t</textarea><noscript>no</noscript>end";
        assert_eq!(text(page), "A title\n\nOne & two\nthree ébold\n\nx\ny\n\na\n  b\n\n1\n2\n\n<p>tend");
        assert_eq!(text("just words"), "just words");
        assert_eq!(
            text("<head><title>x</title><body>y<template>no<template>no</template>no</template>z"),
            "yz"
        );
        assert_eq!(text("<svg/>a<svg>no</svg>b"), "ab");
        assert_eq!(text("<p"), "");
    }

    #[test]
    fn deep_nesting_uses_no_stack() {
        let deep = format!("{}x{}", "<div><b>".repeat(30_000), "</div>".repeat(10));
        assert_eq!(text(&deep), "x");
    }
}
