//! Rules that a new text must satisfy.

use std::collections::BTreeSet;

use super::tags::tags;

/// Default length limit of a prompt: at least this many characters, or the seed's length times the growth factor.
const LEAST_MAX: usize = 2_000;
const GROWTH: usize = 4;

/// A prompt part that no rewrite may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrozenSpan {
    /// A literal text.
    Text(String),
    /// The text between two markers, including them.
    Between {
        /// The start marker.
        start: String,
        /// The end marker.
        end: String,
    },
}

/// The reason for rejecting a new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewriteFault {
    /// It equals the old text.
    Unchanged,
    /// It is too long.
    TooLong {
        /// Its characters.
        length: usize,
        /// Maximum characters.
        max: usize,
    },
    /// Seed tags are missing.
    TagsLost(Vec<String>),
    /// It has tags that are not in the seed.
    TagsAdded(Vec<String>),
    /// A frozen part is missing.
    SpanChanged(String),
    /// It is not a valid template.
    NotATemplate(String),
    /// It repeats text from a held-out case.
    Leak(String),
}

impl RewriteFault {
    /// The message to the model, which may try again.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Unchanged => "The new prompt is the same as the current one.".to_owned(),
            Self::TooLong { length, max } => {
                format!("The new prompt has {length} characters; it may have {max}.")
            }
            Self::TagsLost(lost) => {
                format!("The new prompt must contain {} exactly as in the current one.", lost.join(", "))
            }
            Self::TagsAdded(added) => format!(
                "The new prompt must not contain {}: only the tags of the current one may be in it.",
                added.join(", ")
            ),
            Self::SpanChanged(span) => format!("The new prompt must contain this part unchanged: {span}"),
            Self::NotATemplate(why) => format!("The new prompt cannot be read as a template: {why}"),
            Self::Leak(found) => format!("The new prompt must not repeat the cases: “{found}”."),
        }
    }
}

/// Rules that every rewrite must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRules {
    tags: BTreeSet<String>,
    spans: Vec<String>,
    max: usize,
}

impl PromptRules {
    /// Derives the rules from the seed. `max_chars`: the prompt's own limit.
    #[must_use]
    pub fn from_seed(seed: &str, frozen: &[FrozenSpan], max_chars: Option<usize>) -> Self {
        let spans = frozen.iter().flat_map(|span| match span {
            // A rewrite cannot keep text that the seed does not contain.
            FrozenSpan::Text(text) => {
                Some(text.clone()).filter(|text| seed.contains(text)).into_iter().collect()
            }
            FrozenSpan::Between { start, end } => between(seed, start, end),
        });
        let mut known = BTreeSet::new();
        let spans = spans.filter(|span| !span.is_empty() && known.insert(span.clone())).collect();
        let max = max_chars.unwrap_or_else(|| (seed.chars().count().saturating_mul(GROWTH)).max(LEAST_MAX));
        Self { tags: tags(seed), spans, max }
    }

    /// Maximum characters.
    #[must_use]
    pub fn max_chars(&self) -> usize {
        self.max
    }

    /// The distinct seed parts that every rewrite must contain unchanged.
    #[must_use]
    pub fn frozen_spans(&self) -> &[String] {
        &self.spans
    }

    /// The reason for rejecting a text; `None` if it is accepted.
    #[must_use]
    pub fn fault(&self, current: &str, text: &str) -> Option<RewriteFault> {
        if text.trim() == current.trim() {
            return Some(RewriteFault::Unchanged);
        }
        let length = text.chars().count();
        if length > self.max {
            return Some(RewriteFault::TooLong { length, max: self.max });
        }
        let tags = tags(text);
        let lost: Vec<String> = self.tags.difference(&tags).cloned().collect();
        if !lost.is_empty() {
            return Some(RewriteFault::TagsLost(lost));
        }
        let added: Vec<String> = tags.difference(&self.tags).cloned().collect();
        if !added.is_empty() {
            return Some(RewriteFault::TagsAdded(added));
        }
        if let Some(span) = self.spans.iter().find(|span| !text.contains(span.as_str())) {
            return Some(RewriteFault::SpanChanged(span.clone()));
        }
        engine::check_template(text).err().map(RewriteFault::NotATemplate)
    }
}

/// Text parts from a start marker to the next end marker, including both.
fn between(text: &str, start: &str, end: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(start).filter(|_| !start.is_empty() && !end.is_empty()) {
        let inside = begin + start.len();
        let Some(length) = rest.get(inside..).and_then(|rest| rest.find(end)) else { break };
        let stop = inside + length + end.len();
        found.extend(rest.get(begin..stop).map(str::to_owned));
        rest = rest.get(stop..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "Answer {{ inputs.name }} of [[shop]]. <rules>Never lie.</rules> Be short.";

    fn fault(text: &str) -> Option<RewriteFault> {
        let frozen = [FrozenSpan::Between { start: "<rules>".into(), end: "</rules>".into() }];
        PromptRules::from_seed(SEED, &frozen, Some(120)).fault(SEED, text)
    }

    #[test]
    fn a_rewrite_keeps_the_required_parts() {
        assert_eq!(fault("Greet {{inputs.name}} of [[ shop ]]. <rules>Never lie.</rules>"), None);
        assert_eq!(fault(&format!(" {SEED}\n")), Some(RewriteFault::Unchanged));
        let lost = |names: &[&str]| {
            Some(RewriteFault::TagsLost(names.iter().map(|name| (*name).to_owned()).collect()))
        };
        assert_eq!(
            fault("Greet {{ inputs.user }}. <rules>Never lie.</rules>"),
            lost(&["[[shop]]", "{{inputs.name}}"])
        );
        assert_eq!(
            fault("Greet {{ inputs.name }} of [[shop]]. <rules>Never, ever lie.</rules>"),
            Some(RewriteFault::SpanChanged("<rules>Never lie.</rules>".into()))
        );
        let long = format!("{SEED}{}", "x".repeat(120));
        assert_eq!(fault(&long), Some(RewriteFault::TooLong { length: long.chars().count(), max: 120 }));
    }

    #[test]
    fn a_rewrite_adds_no_tag() {
        let kept = "{{ inputs.name }} [[shop]] <rules>Never lie.</rules>";
        for added in [
            "{{ config }}",
            "{{ inputs.name | upper }}",
            "{%if%}",
            "{% for i in range(9) %}{{ inputs.name }}{% endfor %}",
            "{# note #}",
            "{{ inputs.",
            "[[vault key]]",
        ] {
            let found = fault(&format!("{kept} {added}"));
            assert!(matches!(found, Some(RewriteFault::TagsAdded(_))), "{added}: {found:?}");
        }
        let hidden = "{# {{ inputs.name }} #} [[shop]] <rules>Never lie.</rules>";
        assert!(matches!(fault(hidden), Some(RewriteFault::TagsLost(_))));
        assert_eq!(fault(&format!("{kept} {{{{ inputs.name }}}} twice")), None);
    }

    #[test]
    fn a_rewrite_does_not_extend_a_tag() {
        let seed = "Answer {{ {'a': {'b': 1}} }} briefly.";
        let rules = PromptRules::from_seed(seed, &[], None);
        assert_eq!(rules.fault(seed, "Answer {{ {'a': {'b': 1}} }} at length."), None);
        let found = rules.fault(seed, "Answer {{ {'a': {'b': 1}} ~ config.secret }} briefly.");
        assert!(matches!(found, Some(RewriteFault::TagsLost(_))), "{found:?}");
    }

    #[test]
    fn tags_that_do_not_make_a_template_are_rejected() {
        let seed = "{% if inputs.a %}a{% endif %}";
        let found = PromptRules::from_seed(seed, &[], None).fault(seed, "{% endif %}a{% if inputs.a %}");
        assert!(matches!(found, Some(RewriteFault::NotATemplate(_))), "{found:?}");
    }

    #[test]
    fn frozen_spans_are_parts_of_the_seed() {
        let text = |text: &str| FrozenSpan::Text(text.into());
        let between = FrozenSpan::Between { start: "<rules>".into(), end: "</rules>".into() };
        let frozen = [text("Be short."), between, text("Be long."), text("Be short."), text("")];
        let rules = PromptRules::from_seed(SEED, &frozen, None);
        assert_eq!(rules.frozen_spans(), ["Be short.", "<rules>Never lie.</rules>"]);
    }

    #[test]
    fn the_limit_grows_with_the_seed() {
        let max = |seed: &str| PromptRules::from_seed(seed, &[], None).max_chars();
        assert_eq!((max("short"), max(&"x".repeat(1_000)), max(&"é".repeat(600))), (2_000, 4_000, 2_400));
    }

    #[test]
    fn each_fault_has_advice() {
        for (fault, advice) in [
            (RewriteFault::TagsLost(vec!["{{a}}".into()]), "{{a}}"),
            (RewriteFault::TagsAdded(vec!["{{b}}".into()]), "{{b}}"),
            (RewriteFault::TooLong { length: 9, max: 5 }, "5"),
            (RewriteFault::SpanChanged("x y".into()), "x y"),
            (RewriteFault::Leak("seven words".into()), "seven words"),
        ] {
            assert!(fault.message().contains(advice), "{fault:?}");
        }
    }
}
