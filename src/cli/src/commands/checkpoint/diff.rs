//! `callboard checkpoint diff`.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::Serialize;

use super::lines::{ComparedLine, compare, with_context};
use super::locate::find;
use super::record::written_prompts;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::{Paint, harmless};

/// Context lines around a difference.
const CONTEXT_LINES: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Handle or id of the workflow
    workflow: String,
    /// Number or id of the checkpoint to start from
    base: String,
    /// Number or id of the checkpoint to compare with it
    target: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

/// A prompt that differs between two checkpoints: its text, and a line per demo.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct PromptDifference<'a> {
    name: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

impl Diff {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let base = find(session, &self.workflow, &self.base).await?;
        let target = find(session, &self.workflow, &self.target).await?;
        let (before, after) =
            (written_prompts(&base.runnable_config), written_prompts(&target.runnable_config));
        let differences = differences(&before, &after);
        if session.output == Output::Json {
            return say(pretty(&differences)?);
        }
        if differences.is_empty() {
            let (base, target) = (base.config_version, target.config_version);
            complain(format_args!("Checkpoints {base} and {target} have the same prompts."));
        }
        differences.iter().try_for_each(show)
    }
}

/// The differing prompts by name.
fn differences<'a>(
    base: &'a BTreeMap<&'a str, String>,
    target: &'a BTreeMap<&'a str, String>,
) -> Vec<PromptDifference<'a>> {
    let names: BTreeSet<&'a str> = base.keys().chain(target.keys()).copied().collect();
    let of = |name: &'a str| PromptDifference {
        name,
        before: base.get(name).map(String::as_str),
        after: target.get(name).map(String::as_str),
    };
    names.into_iter().map(of).filter(|prompt| prompt.before != prompt.after).collect()
}

fn show(prompt: &PromptDifference<'_>) -> Result<(), CommandError> {
    let paint = Paint::stdout();
    let what = match (prompt.before, prompt.after) {
        (None, _) => " (new)",
        (_, None) => " (removed)",
        _ => "",
    };
    say(paint.bold(format_args!("prompt {}{what}", harmless(prompt.name))))?;
    let compared = compare(prompt.before.unwrap_or_default(), prompt.after.unwrap_or_default());
    if compared.iter().all(|line| matches!(line, ComparedLine::Kept(_))) {
        return say(paint.dim("  only line ends differ"));
    }
    with_context(&compared, CONTEXT_LINES).into_iter().try_for_each(|line| match line {
        None => say(paint.dim("  …")),
        Some(ComparedLine::Kept(line)) => say(format_args!("    {}", harmless(line))),
        Some(ComparedLine::Removed(line)) => say(paint.bad(format_args!("  - {}", harmless(line)))),
        Some(ComparedLine::Added(line)) => say(paint.good(format_args!("  + {}", harmless(line)))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_prompts_are_listed() {
        let of = |prompts: [(&'static str, &str); 3]| {
            BTreeMap::from(prompts.map(|(name, text)| (name, text.to_owned())))
        };
        let base = of([("answer", "Old."), ("gone", "x"), ("tone", "Be kind.")]);
        let target = of([("answer", "New."), ("more", "y"), ("tone", "Be kind.")]);
        let found = differences(&base, &target);
        let found: Vec<_> = found.iter().map(|prompt| (prompt.name, prompt.before, prompt.after)).collect();
        let expected =
            [("answer", Some("Old."), Some("New.")), ("gone", Some("x"), None), ("more", None, Some("y"))];
        assert_eq!(found, expected);
        assert!(differences(&base, &base).is_empty());
    }
}
