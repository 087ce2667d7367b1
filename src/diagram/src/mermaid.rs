//! Mermaid flowchart output.

use std::fmt::Write as _;

use super::model::{BoxShape, Drawing};

pub(super) fn write(drawing: &Drawing) -> String {
    let mut text = "flowchart TD\n".to_owned();
    for (index, item) in drawing.items.iter().enumerate() {
        let name = quoted(&item.name);
        // Writing to a `String` cannot fail.
        let _ = match (item.shape, &item.detail) {
            (BoxShape::Start | BoxShape::End, _) => writeln!(text, "    n{index}([\"{name}\"])"),
            (BoxShape::Join, _) => writeln!(text, "    n{index}((\"{name}\"))"),
            (BoxShape::Node, Some(detail)) => {
                writeln!(text, "    n{index}[\"{name}<br/>{}\"]", quoted(detail))
            }
            (BoxShape::Node, None) => writeln!(text, "    n{index}[\"{name}\"]"),
        };
    }
    for link in &drawing.links {
        let arrow = if link.on_error { "-.->" } else { "-->" };
        let label = link.label.as_ref().map(|label| format!("|\"{}\"|", quoted(&label.text)));
        let _ = writeln!(text, "    n{} {arrow}{} n{}", link.from, label.unwrap_or_default(), link.to);
    }
    text
}

/// Quotes a text. Encodes every character that may have a meaning in Mermaid as its code point.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_alphanumeric() || " _.,:='!()+-/[]?…".contains(letter) {
            quoted.push(letter);
        } else {
            let _ = write!(quoted, "#{};", u32::from(letter));
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped_as_numbers() {
        assert_eq!(quoted("a == 'b'"), "a == 'b'");
        assert_eq!(quoted("\"<b>`%%{init}#|&;"), "#34;#60;b#62;#96;#37;#37;#123;init#125;#35;#124;#38;#59;");
    }
}
