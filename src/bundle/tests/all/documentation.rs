//! The guide's codes and examples.

use bundle::Code;

use crate::build::{Zip, accepted};

fn guide() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/APPS.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_guide_has_each_code_in_the_order_of_precedence() {
    let guide = guide();
    let rows = guide.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|line| line.split('|').nth(1));
    let named: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let listed: Vec<&str> = named.into_iter().filter(|name| codes.contains(name)).collect();
    assert_eq!(listed, codes);
}

#[test]
fn codes_are_parsed_and_have_texts() {
    for code in Code::ALL {
        assert_eq!(Code::from_code(code.as_str()), Some(*code));
        assert!(code.message().ends_with('.') && code.help().ends_with('.'), "{}", code.as_str());
    }
    assert!(Code::ALL.is_sorted());
    assert_eq!(Code::from_code("unknown"), None);
}

#[test]
fn the_guides_manifest_is_accepted() {
    let guide = guide();
    let lines: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let start = lines.iter().position(|line| *line == "{").unwrap();
    let end = lines.iter().rposition(|line| *line == "}").unwrap();
    let bundle = accepted(&Zip::app().file("service.app.json", lines[start..=end].join("\n")).bytes());
    assert_eq!(bundle.manifest.unwrap().bindings.len(), 1);
}
