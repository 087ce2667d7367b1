//! The built-in model improves a prompt through the request, and its reply is extracted and checked.

use std::sync::Arc;

use kernel::SystemClock;
use models::{Model, ModelRequest, NoPieces};
use practice::Practice;
use training::rewrite::{PromptRules, PromptText, Record, new_prompt, request};

#[tokio::test]
async fn the_built_in_model_learns_from_records() {
    let seed = "Answer {{ inputs.message }} with one word.";
    let rules = PromptRules::from_seed(seed, &[], None);
    let prompt = PromptText {
        name: "triage",
        text: seed,
        role: None,
        constraints: &[],
        max_chars: rules.max_chars(),
        frozen_spans: rules.frozen_spans(),
    };
    let record = |input: &str, expected: &str| Record {
        input: input.into(),
        expected: expected.into(),
        got: "other".into(),
        feedback: format!("Expected “{expected}”. Got “other”."),
        passed: false,
    };
    let records = [
        record("I want a refund for order 7", "refund"),
        record("Please refund my parcel", "refund"),
        record("refund now", "refund"),
    ];
    let model = Practice::new(Arc::new(SystemClock::new()));
    let mut taken = 0;
    for seed_of_call in 0..20 {
        let model_request = ModelRequest {
            model: "reflect".into(),
            messages: request(prompt, &records, &[], None),
            seed: Some(seed_of_call),
            ..ModelRequest::default()
        };
        let reply = model.call(&model_request, &NoPieces).await.unwrap().text;
        // Sometimes with a sentence before it; the tag is always there.
        let text = new_prompt(&reply).unwrap_or_else(|| panic!("{reply}"));
        let fault = rules.fault(seed, &text);
        taken += u32::from(fault.is_none());
        assert!(fault.is_some() || text.to_lowercase().contains("refund"), "{text}");
    }
    assert!(taken >= 15, "{taken} of 20 rewrites were accepted");
}
