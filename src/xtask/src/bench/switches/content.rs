//! A release's content: a page that names the release in each line, and two files with content-based names. Pure.

use super::super::splitmix::splitmix;

/// Lines per page: more than fit into one response piece.
const LINES: usize = 8_000;

/// A release's page.
pub(super) fn page(number: u64) -> String {
    let [script, style] = files(number).map(|(path, _)| path);
    let head = format!(
        "<!doctype html><title>{number}</title>\n<script src=\"/{script}\"></script><link rel=\"stylesheet\" href=\"/{style}\">\n"
    );
    head + &format!("<p>release {number}\n").repeat(LINES)
}

/// Paths and contents of the files that a page loads; each name depends on the content, as build tools do it.
pub(super) fn files(number: u64) -> [(String, String); 2] {
    let name = |kind: u64| format!("{:016x}", splitmix(number.wrapping_mul(2).wrapping_add(kind)));
    [
        (format!("assets/app-{}.js", name(0)), format!("export default {number};\n").repeat(200)),
        (format!("assets/app-{}.css", name(1)), format!(".release-{number} {{ color: red }}\n").repeat(100)),
    ]
}

/// The release that a page names as its own.
pub(super) fn number(page: &[u8]) -> Option<u64> {
    let start = page.get(..page.len().min(100))?;
    let text = String::from_utf8_lossy(start);
    text.split_once("<title>")?.1.split_once("</title>")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_release_and_its_files() {
        let page = page(7);
        assert_eq!(number(page.as_bytes()), Some(7));
        for (path, content) in files(7) {
            assert!(page.contains(&format!("\"/{path}\"")) && content.contains('7'));
        }
        assert_ne!(files(7), files(8));
        assert_eq!(number(b"<p>nothing"), None);
    }
}
