//! Names and parameters that a Rust file declares.

/// Keywords that declare a type.
const TYPES: &[&str] = &["struct", "enum", "trait", "type", "union"];

#[derive(Default)]
pub(super) struct Declarations {
    pub(super) types: Vec<String>,
    /// Functions named `of`.
    pub(super) named_of: usize,
    /// Parameters with a tuple type.
    pub(super) tuples: usize,
}

pub(super) fn scan(text: &str) -> Declarations {
    let mut found = Declarations::default();
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        let start = place;
        place += line.len();
        if line.trim_start().starts_with("//") {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // An associated type has no module of its own, and `type` inside a signature is a word of a macro.
        if line.starts_with(|c: char| c.is_alphabetic())
            && let Some(at) = words.iter().position(|word| TYPES.contains(word))
            && words.iter().take(at).all(|word| word.starts_with("pub") || *word == "unsafe")
        {
            found.types.extend(words.get(at + 1).map(|name| identifier(name)));
        }
        if let Some(at) = function(line) {
            let signature = text.get(start + at..).unwrap_or_default();
            found.named_of += usize::from(identifier(signature) == "of");
            found.tuples += tuples(signature);
        }
    }
    found
}

/// The place after `fn ` in a line that declares a function.
fn function(line: &str) -> Option<usize> {
    let at = line.find("fn ")?;
    let before = line.get(..at)?;
    let words = ["pub", "const", "async", "unsafe", "extern"];
    let is_declaration = before
        .split_whitespace()
        .all(|word| words.iter().any(|start| word.starts_with(start)) || word.ends_with(')'));
    is_declaration.then_some(at + "fn ".len())
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Parameters with a tuple type in the signature that begins at the function's name.
fn tuples(signature: &str) -> usize {
    let Some(open) = signature.find('(') else { return 0 };
    let (mut depth, mut last, mut found) = (0_usize, '(', 0);
    for c in signature.get(open..).unwrap_or_default().chars() {
        match c {
            // After a colon or the `&` of a reference at the level of the parameters.
            '(' => {
                found += usize::from(depth == 1 && last == ':');
                depth += 1;
            }
            ')' if depth == 1 => break,
            ')' => depth -= 1,
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !c.is_whitespace() && c != '&' {
            last = c;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found() {
        let text = concat!(
            "pub(crate) struct One {\n    place: u8,\n}\nenum Two<T> { A(T) }\nimpl One {\n    type Item = u8;\n",
            "    pub(crate) const fn of(self) -> u8 { 1 }\n}\n// struct Three;\n"
        );
        let found = scan(text);
        assert_eq!((found.types, found.named_of), (vec!["One".to_owned(), "Two".to_owned()], 1));
    }

    #[test]
    fn tuple_parameters_are_counted_and_tuples_elsewhere_are_not() {
        for (signature, expected) in [
            ("fn f((a, b): (u8, u8))", 1),
            ("fn f(a: &(u8, u8), b: &'a str,\n    (c, d): (u8, u8))", 2),
            ("fn f(a: Vec<(u8, u8)>, b: impl Fn((u8, u8)) -> u8) -> (u8, u8)", 0),
            ("fn f(a: u8) { let b: (u8, u8) = (1, 2); }", 0),
        ] {
            assert_eq!(scan(signature).tuples, expected, "{signature}");
        }
    }
}
