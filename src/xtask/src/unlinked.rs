//! Finds files without a `mod` declaration: the compiler never sees them, and their tests never run.

use std::collections::BTreeMap;

/// Folders whose files are separate crates.
const ROOTS: [&str; 5] = ["tests", "benches", "examples", "bin", "fuzz_targets"];

/// The source files read so far, by path.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<String, String>);

impl Files {
    pub(crate) fn read(&mut self, path: &str, text: &str) {
        self.0.insert(path.to_owned(), text.to_owned());
    }

    /// A finding for each file that is not compiled.
    pub(crate) fn unlinked(&self) -> Vec<String> {
        let unlinked = self.0.keys().filter(|path| !self.is_linked(path));
        unlinked.map(|path| format!("{path}: no `mod` names it, so it is not compiled")).collect()
    }

    fn is_linked(&self, path: &str) -> bool {
        let Some((folder, file)) = path.rsplit_once('/') else { return true };
        let (folder, name) = match (file, folder.rsplit_once('/')) {
            ("main.rs" | "lib.rs" | "build.rs", _) => return true,
            ("mod.rs", Some((above, name))) => (above, name),
            _ => (folder, file.strip_suffix(".rs").unwrap_or(file)),
        };
        if ROOTS.iter().any(|root| folder.ends_with(&format!("/{root}"))) {
            return true;
        }
        let parents = ["/mod.rs", "/main.rs", "/lib.rs", ".rs"].map(|parent| format!("{folder}{parent}"));
        let declaration = format!("mod {name};");
        let names = |text: &String| text.lines().any(|line| line.ends_with(&declaration));
        let by_path = format!("{file}\"]");
        parents.iter().filter_map(|parent| self.0.get(parent)).any(names)
            || self
                .0
                .values()
                .any(|text| text.lines().any(|line| line.contains("#[path") && line.ends_with(&by_path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_its_mod_is_found() {
        let mut files = Files::default();
        for (path, text) in [
            (
                "src/a/src/lib.rs",
                "mod one;\npub(crate) mod two;\n#[path = \"../tests/all/shared.rs\"]\nmod support;",
            ),
            ("src/a/src/one.rs", "mod inner;"),
            ("src/a/src/one/inner.rs", ""),
            ("src/a/src/two/mod.rs", "// mod gone; was here"),
            ("src/a/src/two/gone.rs", ""),
            ("src/a/src/three.rs", ""),
            ("src/a/tests/follow.rs", ""),
            ("src/a/tests/all/main.rs", "mod known;"),
            ("src/a/tests/all/known.rs", ""),
            ("src/a/tests/all/shared.rs", ""),
            ("src/a/tests/all/unknown.rs", ""),
        ] {
            files.read(path, text);
        }
        let found = files.unlinked();
        let paths: Vec<&str> = found.iter().filter_map(|finding| finding.split(':').next()).collect();
        assert_eq!(paths, ["src/a/src/three.rs", "src/a/src/two/gone.rs", "src/a/tests/all/unknown.rs"]);
    }
}
