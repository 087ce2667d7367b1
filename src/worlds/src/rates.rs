//! Error rates for the simulated models.

/// Probabilities from 0 to 1 for the models' habits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The reflector notices a rule that a failing record shows.
    pub notices: f64,
    /// The same if a critique in the record's feedback names the rule.
    pub notices_critiqued: f64,
    /// The reflector writes a rule vaguely.
    pub vague: f64,
    /// The same if a critique names the rule.
    pub vague_critiqued: f64,
    /// A rewrite drops a rule of the prompt that the records do not show; drawn per rule.
    pub forgets: f64,
    /// The reflector writes another prompt's rule into this one, if it notices the rule.
    pub misattributes: f64,
    /// On a request without records, the reflector states one rule or format requirement by chance.
    pub guesses: f64,
    /// The reply has text around the prompt; a quarter of these use a fence instead of the tag.
    pub chatter: f64,
    /// The reply is a refusal.
    pub refuses: f64,
    /// The rewrite loses the placeholder.
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
