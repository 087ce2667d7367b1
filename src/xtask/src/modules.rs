//! The order of a package's modules: none imports a module above it. Reads the files' text.

use std::collections::BTreeMap;

use crate::rules::MODULES;

/// Declarations of names that a package may export at its root.
const DECLARED: [&str; 7] =
    ["pub struct ", "pub enum ", "pub trait ", "pub fn ", "pub async fn ", "pub const ", "pub type "];

/// The files in packages whose modules have an order.
#[derive(Default)]
pub(crate) struct Modules {
    files: Vec<File>,
    /// By package and name, the positions of the modules that declare it.
    names: BTreeMap<(&'static str, String), Vec<usize>>,
    findings: Vec<String>,
}

struct File {
    path: String,
    package: &'static str,
    order: &'static [&'static str],
    place: usize,
    /// The first part of each path below `crate::`.
    imports: Vec<String>,
}

impl Modules {
    /// Reads a file if the modules of its package have an order.
    pub(crate) fn read(&mut self, path: &str, text: &str) {
        let package =
            MODULES.iter().find_map(|(folder, order)| Some((*folder, path.strip_prefix(folder)?, *order)));
        let Some((package, inside, order)) = package.filter(|(_, inside, _)| inside.ends_with(".rs")) else {
            return;
        };
        let own = word(inside);
        if own == "lib" {
            return;
        }
        let Some(place) = order.iter().position(|known| *known == own) else {
            let where_to = "is missing in MODULES of src/xtask/src/rules.rs";
            self.findings.push(format!("{path}: the module {own} {where_to}"));
            return;
        };
        // Tests may import everything.
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
        let tests = path.ends_with("/tests.rs") || path.contains("/tests/");
        let imports =
            if tests { Vec::new() } else { code.split("crate::").skip(1).flat_map(first_parts).collect() };
        let declared =
            |line: &str| DECLARED.iter().find_map(|how| Some(word(line.strip_prefix(how)?).to_owned()));
        for name in code.lines().filter_map(declared) {
            self.names.entry((package, name)).or_default().push(place);
        }
        self.files.push(File { path: path.to_owned(), package, order, place, imports });
    }

    /// Findings for imports of a higher module, or of a name that only higher modules declare.
    pub(crate) fn arrows(self) -> Vec<String> {
        let mut findings = self.findings;
        for File { path, package, order, place, imports } in &self.files {
            for import in imports {
                let module = order.iter().position(|known| known == import);
                let declared = || self.names.get(&(*package, import.clone()))?.iter().min().copied();
                let above = module.or_else(declared).filter(|to| to > place).and_then(|to| order.get(to));
                if let (Some(above), Some(own)) = (above, order.get(*place)) {
                    let of = if above == import { String::new() } else { format!("{import} of ") };
                    findings.push(format!("{path}: {own} imports {of}{above}, which is above it"));
                }
            }
        }
        findings.dedup();
        findings
    }
}

fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// The first part of a path, or of each path in a braced group.
fn first_parts(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return Some(word(rest)).filter(|part| !part.is_empty()).map(str::to_owned).into_iter().collect();
    };
    let (mut depth, mut parts, mut part) = (0_u32, Vec::new(), String::new());
    for letter in group.chars() {
        match letter {
            '}' if depth == 0 => break,
            ',' if depth == 0 => parts.push(std::mem::take(&mut part)),
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth == 0 => part.push(letter),
            _ => {}
        }
    }
    parts.push(part);
    parts.iter().map(|part| word(part.trim()).to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let mut modules = Modules::default();
        files.iter().for_each(|(path, text)| modules.read(path, text));
        modules.arrows()
    }

    #[test]
    fn an_import_of_a_module_above_is_found() {
        let recover = "actors/src/run/recover.rs";
        let found = ["actors/src/run/recover.rs: run imports kinds, which is above it"];
        for text in [
            "use crate::kinds::turn::Turns;\nuse crate::lanes::Key;\n",
            "use crate::{kinds, lanes};",
            "use crate::{\n    lanes::{Key, kinds},\n    kinds::turn::Turns,\n};",
            "fn f() { crate::kinds::f() }",
        ] {
            assert_eq!(arrows(&[(recover, text)]), found, "{text}");
            assert!(arrows(&[("actors/src/kinds/turn/mod.rs", text)]).is_empty());
            assert!(arrows(&[("src/wire/src/run/mod.rs", text)]).is_empty());
            assert!(arrows(&[(recover, &format!("#[cfg(test)]\nmod tests {{ {text} }}"))]).is_empty());
            assert!(arrows(&[("actors/src/run/tests/all.rs", text)]).is_empty());
        }
        assert!(
            arrows(&[(recover, "use crate::{lanes::{kinds}, text};")]).is_empty(),
            "a part of another module"
        );
        assert_eq!(arrows(&[("actors/src/newer.rs", "")]).len(), 1);
    }

    #[test]
    fn a_root_name_is_an_import_of_its_declaring_module() {
        let (row, owner) = ("src/store/src/runs/row.rs", "src/store/src/chat/owner.rs");
        let import = (row, "use crate::{OwnerKind, StoreError};");
        let found = ["src/store/src/runs/row.rs: runs imports OwnerKind of chat, which is above it"];
        assert_eq!(arrows(&[import, (owner, "pub enum OwnerKind {}")]), found);
        let twice =
            [import, (owner, "pub enum OwnerKind {}"), ("src/store/src/error.rs", "pub struct OwnerKind;")];
        assert!(arrows(&twice).is_empty(), "the module is ambiguous");
    }
}
