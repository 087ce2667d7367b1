//! The output of `app check`: for people, with remedies, and for programs.

use std::fmt::Write as _;

use bundle::{Accepted, Finding, Verdict};
use serde_json::{Value, json};

use crate::terminal::{Paint, harmless};

/// The verdict for people.
pub(super) fn text(name: &str, verdict: &Verdict, paint: Paint) -> String {
    let name = harmless(name);
    match verdict {
        Verdict::Accepted(accepted) => accepted_text(&name, accepted, paint),
        Verdict::Refused(findings) => refused_text(&name, findings, paint),
    }
}

fn refused_text(name: &str, findings: &[Finding], paint: Paint) -> String {
    let count = match findings.len() {
        1 => "1 finding".to_owned(),
        bundle::MAX_FINDINGS => format!("the first {} findings", bundle::MAX_FINDINGS),
        count => format!("{count} findings"),
    };
    let mut text = format!("{name}: {}, {count}\n", paint.bad("refused"));
    // Writing to a String cannot fail.
    for finding in findings {
        let place = place(finding.path.as_deref(), finding.line);
        let _ = writeln!(text, "\n{}  {}", paint.bold(place), paint.bad(finding.code.as_str()));
        let _ = writeln!(text, "  {}", harmless(&finding.detail));
        let _ = writeln!(text, "  {} {}", paint.dim("change:"), finding.code.help());
    }
    text
}

fn place(path: Option<&str>, line: Option<u32>) -> String {
    match (path, line) {
        (None, _) => "archive".to_owned(),
        (Some(path), None) => path.to_owned(),
        (Some(path), Some(line)) => format!("{path}:{line}"),
    }
}

fn accepted_text(name: &str, accepted: &Accepted, paint: Paint) -> String {
    let count = match accepted.files.len() {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let (expanded, packed) = (bytes(accepted.expanded_size), bytes(accepted.size));
    let mut text = format!("{name}: {}, {count}, {expanded} ({packed} packed)\n", paint.good("accepted"));
    for file in &accepted.files {
        if let Some(policy) = &file.policy {
            let _ = writeln!(text, "\n{}\n  {policy}", paint.bold(harmless(&file.path)));
        }
    }
    if !accepted.dropped.is_empty() || !accepted.notes.is_empty() {
        text.push('\n');
    }
    for path in &accepted.dropped {
        let _ = writeln!(text, "{} {path} is not served", paint.dim("dropped:"));
    }
    for note in &accepted.notes {
        let place = place(Some(&note.path), note.line);
        let _ =
            writeln!(text, "{} {place}  {}: {}", paint.warning("note:"), note.code, harmless(&note.detail));
    }
    text
}

pub(super) fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 2] = [("MiB", 1024 * 1024), ("KiB", 1024)];
    match UNITS.iter().find(|(_, unit)| count >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", count / unit, count % unit * 10 / unit),
        None => format!("{count} bytes"),
    }
}

/// The verdict for programs.
pub(super) fn json(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Refused(findings) => json!({
            "valid": false,
            "code": findings.first().map(|finding| finding.code.as_str()),
            "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        }),
        Verdict::Accepted(accepted) => json!({
            "valid": true,
            "size": accepted.size,
            "expanded_size": accepted.expanded_size,
            "file_count": accepted.files.len(),
            "files": accepted.files.iter().map(file).collect::<Vec<_>>(),
            "spa": accepted.manifest.as_ref().is_some_and(|manifest| manifest.spa),
            "bindings": accepted.manifest.as_ref().map(|manifest| manifest.bindings.keys().collect::<Vec<_>>()),
            "wasm": accepted.wasm,
            "report": {
                "dropped": accepted.dropped,
                "notes": accepted.notes.iter().map(note).collect::<Vec<_>>(),
            },
        }),
    }
}

fn finding(finding: &Finding) -> Value {
    json!({
        "code": finding.code.as_str(),
        "path": finding.path,
        "line": finding.line,
        "message": finding.code.message(),
        "detail": finding.detail,
        "help": finding.code.help(),
    })
}

fn file(file: &bundle::File) -> Value {
    let digest: String = file.digest.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"path": file.path, "size": file.size, "type": file.media_type, "digest": digest, "policy": file.policy})
}

fn note(note: &bundle::Note) -> Value {
    json!({"code": note.code, "path": note.path, "line": note.line, "detail": note.detail})
}

#[cfg(test)]
mod tests {
    use bundle::Code;

    use super::*;

    fn refused() -> Verdict {
        let finding = |code, path: Option<&str>, line| Finding {
            code,
            path: path.map(str::to_owned),
            line,
            detail: "Wrong.".to_owned(),
        };
        Verdict::Refused(vec![
            finding(Code::InlineEventHandler, Some("a.html"), Some(12)),
            finding(Code::IndexMissing, None, None),
        ])
    }

    #[test]
    fn a_finding_has_its_location_code_and_remedy() {
        let expected = "app.zip: refused, 2 findings\n\n\
            a.html:12  inline_event_handler\n  Wrong.\n  change: Move the script to a file and use `addEventListener`.\n\n\
            archive  index_missing\n  Wrong.\n  change: Archive the content of the build folder, not the folder itself.\n";
        assert_eq!(text("app.zip", &refused(), Paint::plain()), expected);
    }

    #[test]
    fn json_output_has_the_same_findings() {
        let value = json(&refused());
        assert_eq!((&value["valid"], &value["code"]), (&json!(false), &json!("inline_event_handler")));
        assert_eq!(value["findings"][0]["line"], 12);
        assert_eq!(value["findings"][1]["path"], Value::Null);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([0, 1023, 1024, 1_572_864].map(bytes), ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB"]);
    }
}
