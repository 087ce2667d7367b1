//! World families and their shapes.

/// A world family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// One prompt.
    One,
    /// A pipeline with two prompts.
    Pair,
    /// One prompt; a case scores all or nothing.
    Strict,
    /// A pipeline with four prompts.
    Quad,
    /// The seed is optimal, and some expected words cannot be predicted.
    NullOpt,
    /// The score does not depend on the prompt.
    NullFlat,
    /// Few cases, without splits.
    Tiny,
    /// Two niches; rules for one distract from the other.
    Niche,
    /// The output must be a JSON object without other text.
    Format,
    /// Rules that only demos teach.
    Demo,
}

/// The scoring method for outputs; each is a built-in evaluator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoring {
    /// `contains_all`: the share of expected words.
    Share,
    /// `set_f1`: F1 between expected and written words.
    F1,
    /// `exact_match`: all or nothing.
    Exact,
    /// `json_equal`: the share of equal JSON object members.
    Json,
}

/// Case counts. Without `val` and `test`, cases have no splits and no canaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Training cases.
    pub train: usize,
    /// Cases that decide between candidates.
    pub val: usize,
    /// Final test cases.
    pub test: usize,
}

impl Sizes {
    /// Whether the cases name their splits.
    #[must_use]
    pub const fn has_splits(self) -> bool {
        self.val > 0 || self.test > 0
    }

    const fn new(train: usize, val: usize, test: usize) -> Self {
        Self { train, val, test }
    }
}

/// The shape that a family's worlds share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The prompt names, which are also node names, in pipeline order.
    pub(super) prompts: &'static [&'static str],
    /// Minimum and maximum rules.
    pub(super) rules: (usize, usize),
    /// Minimum and maximum rules per case.
    pub(super) per_case: (usize, usize),
    pub(super) sizes: Sizes,
    pub(super) scoring: Scoring,
    /// The share of rules that the seed prompts state.
    pub(super) stated: f64,
    /// The share of cases with an expected word that no rule explains.
    pub(super) noise: f64,
}

const ONE: Shape = Shape {
    prompts: &["answer"],
    rules: (8, 24),
    per_case: (2, 4),
    sizes: Sizes::new(40, 32, 24),
    scoring: Scoring::Share,
    stated: 0.2,
    noise: 0.0,
};

impl Family {
    /// All families.
    pub const ALL: [Self; 10] = [
        Self::One,
        Self::Pair,
        Self::Strict,
        Self::Quad,
        Self::NullOpt,
        Self::NullFlat,
        Self::Tiny,
        Self::Niche,
        Self::Format,
        Self::Demo,
    ];

    /// The family name, with which its worlds' names begin.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Pair => "pair",
            Self::Strict => "strict",
            Self::Quad => "quad",
            Self::NullOpt => "null_opt",
            Self::NullFlat => "null_flat",
            Self::Tiny => "tiny",
            Self::Niche => "niche",
            Self::Format => "format",
            Self::Demo => "demo",
        }
    }

    /// The family with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.as_str() == name)
    }

    /// Whether better prompts or demos exist than the seed's.
    #[must_use]
    pub const fn has_gain(self) -> bool {
        !matches!(self, Self::NullOpt | Self::NullFlat)
    }

    /// The scoring method for outputs.
    #[must_use]
    pub const fn scoring(self) -> Scoring {
        self.shape().scoring
    }

    /// The case counts that [`World::cases`](super::World::cases) uses.
    #[must_use]
    pub const fn sizes(self) -> Sizes {
        self.shape().sizes
    }

    pub(super) const fn shape(self) -> Shape {
        match self {
            Self::One => ONE,
            Self::Niche => Shape { rules: (12, 24), ..ONE },
            Self::Strict => Shape { scoring: Scoring::Exact, ..ONE },
            Self::Format => Shape { scoring: Scoring::Json, ..ONE },
            Self::Pair => Shape { prompts: &["first", "second"], sizes: Sizes::new(32, 24, 16), ..ONE },
            Self::Quad => Shape {
                prompts: &["first", "second", "third", "fourth"],
                rules: (16, 24),
                sizes: Sizes::new(32, 20, 12),
                ..ONE
            },
            Self::NullOpt => Shape { rules: (18, 24), stated: 1.0, noise: 0.25, ..ONE },
            Self::NullFlat => Shape { scoring: Scoring::F1, ..ONE },
            Self::Tiny => Shape { rules: (8, 12), sizes: Sizes::new(16, 0, 0), ..ONE },
            Self::Demo => {
                Shape { rules: (8, 16), per_case: (1, 3), sizes: Sizes::new(48, 32, 24), stated: 0.0, ..ONE }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_found_by_its_name() {
        for family in Family::ALL {
            assert_eq!(Family::parse(family.as_str()), Some(family));
        }
        assert_eq!(Family::parse("other"), None);
        assert!(!Family::Tiny.sizes().has_splits() && Family::One.sizes().has_splits());
    }
}
