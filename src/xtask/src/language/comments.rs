//! Comments of a Rust file.

/// First words of a clause.
const CLAUSES: &[&str] = &["What", "Whoever", "Whose", "How often"];
const MOST_OF: usize = 2;

/// Adjacent comment lines.
pub(super) struct Block {
    pub(super) text: String,
    /// Lines that begin with a clause.
    pub(super) clauses: usize,
}

/// The comment blocks of a file; an empty comment line separates two.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match content(line).filter(|content| !content.is_empty()) {
            Some(content) => {
                let block = open.get_or_insert_with(|| Block { text: String::new(), clauses: 0 });
                block.clauses += usize::from(is_clause(content));
                block.text.push_str(content);
                block.text.push(' ');
            }
            None => blocks.extend(open.take()),
        }
    }
    blocks.extend(open);
    blocks
}

/// The lines of a file that are not comments.
pub(super) fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| content(line).is_none())
}

/// Sentences with more than two "of".
pub(super) fn chains(text: &str) -> usize {
    let sentences = text.split_inclusive(['.', ';', ':']);
    sentences.filter(|sentence| sentence.split(' ').filter(|word| *word == "of").count() > MOST_OF).count()
}

/// The text of a comment line.
fn content(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.trim_start_matches(['/', '!']).trim())
}

fn is_clause(content: &str) -> bool {
    CLAUSES.iter().any(|first| {
        content.strip_prefix(first).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_and_chains_are_found_in_each_kind_of_comment() {
        let text =
            "//! What a file has.\n\nfn f() {} // trailing\n    // Whatever follows.\n    /// Whose it is.\n";
        let blocks = blocks(text);
        assert_eq!(blocks.iter().map(|block| block.clauses).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(chains("The name of the head of the list of rows. The end of it. "), 1);
        assert_eq!(chains("The name of the head. The rows of the list of names. "), 0);
    }
}
