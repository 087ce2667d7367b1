//! All hostile bundles: their number, and at least one per code.

use std::collections::BTreeSet;

use bundle::{Code, MAX_FINDINGS};

use crate::build::refused;
use crate::{ambiguous, boundaries, kinds, manifest, markup, names, structure};

/// A bundle that must be refused.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) code: Code,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn row(what: impl Into<String>, code: Code, bytes: Vec<u8>) -> Row {
    Row { what: what.into(), code, bytes }
}

/// Each row is refused, its code comes first, and a second check gives the same result.
pub(crate) fn all_are_refused(rows: &[Row]) {
    let mut wrong = Vec::new();
    for Row { what, code, bytes } in rows {
        let findings = refused(bytes);
        let first = findings.first().map(|finding| finding.code);
        if first != Some(*code) {
            wrong.push(format!("{what}: {findings:?} instead of {}", code.as_str()));
        }
        assert!(findings.is_sorted() && findings.len() <= MAX_FINDINGS, "{what}");
        assert_eq!(findings, refused(bytes), "{what}");
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn rows() -> Vec<Row> {
    [
        ambiguous::rows(),
        structure::rows(),
        names::rows(),
        kinds::rows(),
        boundaries::rows(),
        markup::rows(),
        manifest::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn at_least_two_hundred_distinct_hostile_archives_are_tested() {
    let rows = rows();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.what.as_str()).collect();
    let bytes: BTreeSet<&[u8]> = rows.iter().map(|row| row.bytes.as_slice()).collect();
    assert_eq!((names.len(), bytes.len()), (rows.len(), rows.len()));
    assert!(rows.len() >= 200, "{}", rows.len());
}

#[test]
fn each_finding_code_has_a_test_archive() {
    let provoked: BTreeSet<Code> = rows().into_iter().map(|row| row.code).collect();
    let missing: Vec<&str> =
        Code::ALL.iter().filter(|code| !provoked.contains(code)).map(|code| code.as_str()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
