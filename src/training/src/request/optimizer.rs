//! The object `optimizer` of a training.

use engine::Fields;
use serde_json::{Value, json};
use wire::FieldError;

use super::fields::{ID, POSITIVE, choice, count, number, object, text, whole, word_of};
use super::settings::RunSettings;
use crate::score::Aggregate;
use crate::splits::SplitSettings;

const EPOCHS: u32 = 3;
/// Maximum bytes of `guidance`.
const LONGEST_GUIDANCE: usize = 8 << 10;
/// The members of `resume`; a request has exactly one.
const RESUME: [&str; 3] = ["run_id", "checkpoint_id", "config_version"];
const AGGREGATES: [(&str, Aggregate); 3] =
    [("weighted_mean", Aggregate::WeightedMean), ("min", Aggregate::Min), ("product", Aggregate::Product)];

/// The algorithm that proposes prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OptimizerName {
    /// Critiques failing cases, then rewrites.
    #[default]
    TextGrad,
    /// Keeps a pool of candidates by their scores on single cases.
    Gepa,
    /// Takes examples from passing cases.
    FewShot,
    /// Evaluates only the seed.
    None,
    /// Alternates `gepa` and `textgrad` while the pool improves, then uses `textgrad`; `fewshot` before or after
    /// them, if a prompt may get demos.
    Auto,
}

impl OptimizerName {
    /// All optimizers with their wire names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("textgrad", Self::TextGrad),
        ("gepa", Self::Gepa),
        ("fewshot", Self::FewShot),
        ("none", Self::None),
        ("auto", Self::Auto),
    ];

    /// The wire name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        word_of(&Self::ALL, &self)
    }

    /// Whether it asks the optimizer's model.
    #[must_use]
    pub const fn asks_model(self) -> bool {
        !matches!(self, Self::FewShot | Self::None)
    }

    /// The default minibatch size.
    const fn minibatch_size(self) -> usize {
        match self {
            Self::TextGrad => 4,
            Self::Gepa => 6,
            _ => 8,
        }
    }
}

/// The value of a candidate, in addition to its evaluators.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Objective {
    /// Combines the evaluator scores of a case.
    pub aggregate: Aggregate,
    /// Factor for the relative growth of the prompts over the seed; at least 0, default 0.
    pub length_penalty: f64,
    /// Factor for the relative cost growth; at least 0, default 0.
    pub cost_penalty: f64,
    /// Factor for the relative duration growth; at least 0, default 0.
    pub latency_penalty: f64,
}

/// The prompts that a training starts from instead of the config's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// The prompts that a run returned, by run id.
    Run(String),
    /// A checkpoint's prompts, by checkpoint id.
    Checkpoint(String),
    /// The prompts of a workflow checkpoint, by its number, from 1.
    ConfigVersion(u64),
}

/// The settings for the search for better prompts.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    /// The algorithm.
    pub name: OptimizerName,
    /// From 1 to 50, default 3.
    pub epochs: u32,
    /// Epochs between two checkpoints, from 1 to 100, default 1.
    pub checkpoint_interval: u32,
    /// Cases per proposal; defaults to 4 for `textgrad`, 6 for `gepa`, 8 for the others. A smaller train split is
    /// used whole.
    pub minibatch_size: usize,
    /// The share of cases that decide between candidates, from 0 to 0.9.
    pub validation_split: Option<f64>,
    /// The share of held-out test cases, from 0 to 0.5.
    pub test_split: Option<f64>,
    /// Epochs without a new best before the training ends; at least 1.
    pub patience: Option<u64>,
    /// The minimum improvement of a new best, for `patience`; from 0 to 1, default 0.
    pub min_delta: f64,
    /// The score at which the training ends, from 0 to 1.
    pub target_score: Option<f64>,
    /// The objective for candidates.
    pub objective: Objective,
    /// The author's instructions for the model that writes proposals; at most 8 KiB.
    pub guidance: Option<String>,
    /// The prompts that the training starts from.
    pub resume: Option<Resume>,
    /// Settings for executing cases.
    pub settings: RunSettings,
}

impl Optimizer {
    pub(super) fn read(mut fields: Fields<'_>, problems: &mut Vec<FieldError>) -> Self {
        let fields = &mut fields;
        let name = choice(fields, "name", &OptimizerName::ALL, problems).unwrap_or_default();
        let read = Self {
            name,
            epochs: fields.whole("epochs", 1..=50, problems).unwrap_or(EPOCHS),
            checkpoint_interval: fields.whole("checkpoint_interval", 1..=100, problems).unwrap_or(1),
            minibatch_size: count(fields, "minibatch_size", problems).unwrap_or(name.minibatch_size()),
            validation_split: fields.number("validation_split", 0.0..=0.9, problems),
            test_split: fields.number("test_split", 0.0..=0.5, problems),
            patience: whole(fields, "patience", 1, problems),
            min_delta: fields.number("min_delta", 0.0..=1.0, problems).unwrap_or_default(),
            target_score: fields.number("target_score", 0.0..=1.0, problems),
            objective: read_objective(fields, problems),
            guidance: text(fields, "guidance", LONGEST_GUIDANCE, problems),
            resume: read_resume(fields, problems),
            settings: RunSettings::read(fields, &["optimizer", "judge"], problems),
        };
        fields.refuse_others(problems);
        read
    }

    /// Whether the best candidates are executed again at the end.
    #[must_use]
    pub fn has_final(&self) -> bool {
        self.name != OptimizerName::None
    }

    /// The split settings: only `textgrad` without a `validation_split` uses all cases for both.
    #[must_use]
    pub fn split_settings(&self) -> SplitSettings {
        SplitSettings {
            shares: self.name == OptimizerName::TextGrad && self.validation_split.is_none(),
            validation: self.validation_split,
            test: self.test_split,
        }
    }

    /// Every field with its value, including defaults: `optimizer` of the event `training_started`. Fields without a
    /// value are null; `models` is as in the request.
    #[must_use]
    pub fn filled(&self) -> Value {
        let settings = &self.settings;
        json!({
            "name": self.name.as_str(),
            "epochs": self.epochs,
            "checkpoint_interval": self.checkpoint_interval,
            "case_timeout_seconds": settings.case_timeout_seconds(),
            "max_concurrency": settings.concurrency,
            "seed": settings.seed,
            "minibatch_size": self.minibatch_size,
            "repeats": settings.repeats,
            "validation_split": self.validation_split.map(number),
            "test_split": self.test_split.map(number),
            "patience": self.patience,
            "min_delta": number(self.min_delta),
            "target_score": self.target_score.map(number),
            "objective": self.objective.filled(),
            "budget": settings.budget(),
            "models": settings.models.filled(),
            "cache": settings.cache(),
            "guidance": self.guidance,
            "resume": self.resume.as_ref().map(Resume::filled),
        })
    }
}

impl Objective {
    fn filled(&self) -> Value {
        json!({
            "aggregate": word_of(&AGGREGATES, &self.aggregate),
            "length_penalty": number(self.length_penalty),
            "cost_penalty": number(self.cost_penalty),
            "latency_penalty": number(self.latency_penalty),
        })
    }
}

impl Resume {
    fn filled(&self) -> Value {
        match self {
            Self::Run(id) => json!({"run_id": id}),
            Self::Checkpoint(id) => json!({"checkpoint_id": id}),
            Self::ConfigVersion(version) => json!({"config_version": version}),
        }
    }
}

fn read_objective(fields: &mut Fields<'_>, problems: &mut Vec<FieldError>) -> Objective {
    let Some(mut fields) = object(fields, "objective", problems) else { return Objective::default() };
    let aggregate = choice(&mut fields, "aggregate", &AGGREGATES, problems).unwrap_or_default();
    let mut penalty = |name| fields.number(name, POSITIVE, problems).unwrap_or_default();
    let objective = Objective {
        aggregate,
        length_penalty: penalty("length_penalty"),
        cost_penalty: penalty("cost_penalty"),
        latency_penalty: penalty("latency_penalty"),
    };
    fields.refuse_others(problems);
    objective
}

fn read_resume(fields: &mut Fields<'_>, problems: &mut Vec<FieldError>) -> Option<Resume> {
    let at = fields.at("resume");
    let mut fields = object(fields, "resume", problems)?;
    let given = RESUME.into_iter().filter(|name| fields.value(name).is_some()).count();
    if given != 1 {
        let code = if given == 0 { "required" } else { "conflict" };
        let message = format!("needs exactly one of {}", RESUME.join(", "));
        problems.push(FieldError::new(at, code, message));
    }
    let run = text(&mut fields, "run_id", ID, problems).map(Resume::Run);
    let checkpoint = text(&mut fields, "checkpoint_id", ID, problems).map(Resume::Checkpoint);
    let version = whole(&mut fields, "config_version", 1, problems).map(Resume::ConfigVersion);
    fields.refuse_others(problems);
    run.or(checkpoint).or(version)
}
