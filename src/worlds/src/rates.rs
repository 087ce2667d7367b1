//! How often the simulated models make mistakes.

/// Probabilities from 0 to 1 of the models' habits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// A failing record makes the reflector notice a rule that the record shows.
    pub notices: f64,
    /// The same if a critique in the record's feedback names the rule.
    pub notices_critiqued: f64,
    /// A rule that the reflector writes down is vague.
    pub vague: f64,
    /// The same if a critique names the rule.
    pub vague_critiqued: f64,
    /// A rewrite drops a rule that the prompt has and the records do not show; drawn for each rule.
    pub forgets: f64,
    /// The reflector writes a rule of another prompt into this one, if it notices the rule.
    pub misattributes: f64,
    /// A request without records makes the reflector state one rule, or a requirement of the format, by chance.
    pub guesses: f64,
    /// The reply has text around the prompt; a quarter of these has a fence instead of the tag.
    pub chatter: f64,
    /// The reply is a refusal.
    pub refuses: f64,
    /// The rewrite has no placeholder.
    pub loses_placeholder: f64,
    /// A judgement is wrong by 0.25.
    pub judge_slips: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            notices: 0.5,
            notices_critiqued: 0.9,
            vague: 0.25,
            vague_critiqued: 0.1,
            forgets: 0.1,
            misattributes: 0.3,
            guesses: 0.05,
            chatter: 0.2,
            refuses: 0.03,
            loses_placeholder: 0.02,
            judge_slips: 0.1,
        }
    }
}
