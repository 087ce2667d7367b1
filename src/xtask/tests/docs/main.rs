//! Pages generated from tables in the code, so that they cannot disagree with it. `cargo xtask docs` runs this with `UPDATE=1`, which
//! writes them.
#![allow(clippy::print_stdout, reason = "names the pages written")]

mod errors;
mod openapi;
mod protocol;
mod workflows;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// A page's path from the workspace root, and the function that generates its text.
type Generator = (&'static str, fn() -> Result<String>);

const GENERATORS: &[Generator] = &[
    ("docs/ERRORS.md", errors::page),
    ("docs/PROTOCOL.md", protocol::page),
    ("docs/WORKFLOWS.md", workflows::page),
    ("docs/openapi.json", openapi::document),
];

#[test]
fn generated_pages_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let check = std::env::var_os("UPDATE").is_none();
    sync(&root, GENERATORS, check).unwrap();
}

/// Writes the pages, or only compares them.
fn sync(root: &Path, generators: &[Generator], check: bool) -> Result<()> {
    let mut stale = Vec::new();
    for (path, make) in generators {
        let text = make().with_context(|| format!("making {path}"))?;
        let file = root.join(path);
        if fs::read_to_string(&file).is_ok_and(|now| now == text) {
            continue;
        }
        if check {
            stale.push(*path);
        } else {
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&file, text).with_context(|| format!("writing {path}"))?;
            println!("wrote {path}");
        }
    }
    ensure!(stale.is_empty(), "out of date: {}; run `cargo xtask docs`", stale.join(", "));
    Ok(())
}

#[test]
fn a_page_is_stale_until_it_is_written() {
    let root = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
    let pages: &[Generator] = &[("docs/A.md", || Ok("a\n".to_owned()))];
    let before = sync(&root, pages, true).unwrap_err().to_string();
    sync(&root, pages, false).unwrap();
    let after = sync(&root, pages, true);
    fs::write(root.join("docs/A.md"), "b\n").unwrap();
    let edited = sync(&root, pages, true);
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(before, "out of date: docs/A.md; run `cargo xtask docs`");
    assert!(after.is_ok());
    assert!(edited.is_err());
}
