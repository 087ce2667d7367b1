//! What a release has: a page that names it in each line, and two files under names of their own. Pure.

use super::super::splitmix::splitmix;

/// Lines of a page: more than one piece of an answer.
const LINES: usize = 8_000;

/// The page of a release.
pub(super) fn page(number: u64) -> String {
    let [script, style] = files(number).map(|(path, _)| path);
    let head = format!(
        "<!doctype html><title>{number}</title>\n<script src=\"/{script}\"></script><link rel=\"stylesheet\" href=\"/{style}\">\n"
    );
    head + &format!("<p>release {number}\n").repeat(LINES)
}

/// Paths and contents of the files that a page loads; each name is that of its content, as build tools write it.
pub(super) fn files(number: u64) -> [(String, String); 2] {
    let name = |kind: u64| format!("{:016x}", splitmix(number.wrapping_mul(2).wrapping_add(kind)));
    [
        (format!("assets/app-{}.js", name(0)), format!("export default {number};\n").repeat(200)),
        (format!("assets/app-{}.css", name(1)), format!(".release-{number} {{ color: red }}\n").repeat(100)),
    ]
}

/// The release that a page says it is of.
pub(super) fn number(page: &[u8]) -> Option<u64> {
    let start = page.get(..page.len().min(100))?;
    let text = String::from_utf8_lossy(start);
    text.split_once("<title>")?.1.split_once("</title>")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_its_release_and_names_its_files() {
        let page = page(7);
        assert_eq!(number(page.as_bytes()), Some(7));
        for (path, content) in files(7) {
            assert!(page.contains(&format!("\"/{path}\"")) && content.contains('7'));
        }
        assert_ne!(files(7), files(8));
        assert_eq!(number(b"<p>nothing"), None);
    }
}
