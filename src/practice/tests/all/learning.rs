//! Optimizer requirements for the practice model: a better prompt scores better, feedback leads to a better prompt,
//! and the same request gives the same answer.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use kernel::SystemClock;
use models::{Model as _, ModelRequest, NoPieces};
use practice::Practice;
use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert_eq, proptest};
use serde_json::{Value, json};

use crate::endpoint::now;
use crate::skills::{answer_text, call, skill_request};

/// Shop messages and their departments; odd ones for training, even ones held out.
static CASES: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    let rows = include_str!("../../../../examples/message-sorting/cases.csv").lines().skip(1);
    rows.filter_map(|row| row.rsplit_once(','))
        .map(|(message, label)| (message.trim_matches('"'), label))
        .collect()
});

const BARE: &str = "Sort the message into shipping, billing or account.";
const VAGUE: &str = "Sort the message into shipping, billing or account.\n\
    Parcels and couriers have to do with shipping.\nInvoices and whatever is charged are about billing matters.\n\
    Passwords and profiles are things of the account.";
const PRECISE: &str = "Sort the message into shipping, billing or account.\n\
    If the message mentions \"parcel\" or \"courier\", answer \"shipping\".\n\
    If the message mentions \"invoice\" or \"charged\", answer \"billing\".\n\
    If the message mentions \"password\" or \"profile\", answer \"account\".";

/// The cases that a prompt gets wrong, with the given answer, over these seeds.
async fn wrong_cases(
    prompt: &str,
    cases: &[(&'static str, &'static str)],
    seed: u64,
) -> Vec<(&'static str, &'static str, String)> {
    let mut wrong = Vec::new();
    for (input, expected) in cases {
        let answer =
            call(&ModelRequest { seed: Some(seed), ..skill_request("classify", prompt, input) }).await.text;
        if answer != *expected {
            wrong.push((*input, *expected, answer));
        }
    }
    wrong
}

fn half(which: usize) -> Vec<(&'static str, &'static str)> {
    CASES.iter().enumerate().filter(|(at, _)| at % 2 == which).map(|(_, case)| *case).collect()
}

fn count<T>(items: &[T]) -> f64 {
    f64::from(u32::try_from(items.len()).unwrap())
}

async fn score(prompt: &str, cases: &[(&'static str, &'static str)]) -> f64 {
    let mut right = 0.0;
    for seed in 0..8 {
        right += 1.0 - count(&wrong_cases(prompt, cases, seed).await) / count(cases);
    }
    right / 8.0
}

#[tokio::test]
async fn a_prompt_with_the_right_rules_scores_better() {
    let all: Vec<_> = CASES.to_vec();
    let (bare, vague, precise) =
        (score(BARE, &all).await, score(VAGUE, &all).await, score(PRECISE, &all).await);
    assert!((0.2..0.5).contains(&bare), "{bare}");
    assert!((0.6..0.9).contains(&vague), "{vague}");
    assert_eq!(precise, 1.0);
    // Many instructions dilute each other, and wrong ones do harm.
    let many: String =
        (0..30).map(|at| format!("\nIf the message mentions \"x{at}\", answer \"account\".")).collect();
    let diluted = score(&format!("{PRECISE}{many}"), &all).await;
    assert!((0.5..0.95).contains(&diluted), "{diluted}");
    println!("bare {bare:.2}, vague {vague:.2}, precise {precise:.2}, diluted {diluted:.2}");
    let misled = PRECISE.replace("\"shipping\".", "\"billing\".");
    assert!(score(&misled, &all).await < 0.7);
}

#[tokio::test]
async fn examples_raise_the_score() {
    let demos: String = half(0)
        .iter()
        .map(|(input, label)| format!("\n{}", json!({"input": input, "output": label})))
        .collect();
    let (bare, with) = (score(BARE, &half(1)).await, score(&format!("{BARE}{demos}"), &half(1)).await);
    assert!(with > bare + 0.2, "{bare} {with}");
}

/// Requests a better prompt, as an optimizer would.
async fn reflected(prompt: &str, wrong: &[(&str, &str, String)], seed: u64) -> String {
    let cases: String = wrong
        .iter()
        .map(|(input, expected, got)| format!("Input: {input}\nExpected: {expected}\nGot: {got}\n\n"))
        .collect();
    let ask = format!(
        "<prompt name=\"sort\">\n{prompt}\n</prompt>\n\nThese cases went wrong:\n\n{cases}Write a better prompt."
    );
    let schema = json!({"type": "object", "required": ["prompt", "rationale"], "properties": {
        "prompt": {"type": "string"}, "rationale": {"type": "string"}}});
    let request = ModelRequest {
        seed: Some(seed),
        response_schema: Some(schema),
        ..skill_request("reflect", "", &ask)
    };
    let value: Value = serde_json::from_str(&call(&request).await.text).unwrap();
    assert!(!value["rationale"].as_str().unwrap().is_empty());
    value["prompt"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn reflection_learns_only_from_feedback() {
    let (train, test) = (half(0), half(1));
    let mut gains = Vec::new();
    for seed in 0..5 {
        let mut prompt = format!("{BARE} {{{{ inputs.desk }}}}");
        for round in 0..6 {
            let missed = wrong_cases(&prompt, &train, seed).await;
            prompt = reflected(&prompt, &missed, seed * 100 + round).await;
        }
        assert!(prompt.contains("{{ inputs.desk }}"), "{prompt}");
        // The feedback contains each learned word.
        let known: BTreeSet<String> = train
            .iter()
            .flat_map(|(input, _)| {
                input
                    .to_lowercase()
                    .split(' ')
                    .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        for line in prompt.lines().filter(|line| line.starts_with("If the message mentions")) {
            let (condition, _) = line.split_once(", answer").unwrap();
            for word in condition.split('"').skip(1).step_by(2) {
                assert!(known.contains(word), "{word} in {line}");
            }
        }
        gains.push(score(&prompt, &test).await - score(BARE, &test).await);
        assert!(score(&prompt, &train).await > 0.75, "{prompt}");
    }
    println!("held-out gains of six rounds: {gains:.2?}");
    assert!(gains.iter().all(|gain| *gain > 0.15), "{gains:?}");
    // Without feedback there is nothing to learn.
    assert_eq!(reflected(BARE, &[], 1).await, BARE);
}

#[tokio::test]
async fn a_proposal_has_the_requested_delimiters() {
    let feedback = "Input: pay\nExpected: billing\nGot: other";
    let rule = "If the message mentions \"pay\", answer \"billing\".";
    for (ask, expected) in [
        (format!("Current prompt:\nSort it.\n\n{feedback}"), format!("```\nSort it.\n{rule}\n```")),
        (format!("```text\nSort it.\n```\n{feedback}"), format!("```\nSort it.\n{rule}\n```")),
        (
            format!(
                "<current_prompt>Sort it.</current_prompt>\n{feedback}\nAnswer inside <new_prompt> tags."
            ),
            format!("<new_prompt>\nSort it.\n{rule}\n</new_prompt>"),
        ),
        (
            format!(
                "<prompt name=\"a\">Greet.</prompt><prompt name=\"b\">Sort it.</prompt>\nBlamed: b\n{feedback}"
            ),
            format!(
                "<prompt name=\"a\">\nGreet.\n</prompt>\n<prompt name=\"b\">\nSort it.\n{rule}\n</prompt>"
            ),
        ),
    ] {
        // Some seeds forget, are vague or chat; most do none of it.
        let mut same = 0;
        for seed in 0..20 {
            let answer =
                call(&ModelRequest { seed: Some(seed), ..skill_request("reflect", "", &ask) }).await.text;
            same += usize::from(answer == expected);
        }
        assert!(same >= 8, "{same} of 20: {ask}");
    }
    let advice = "Prompt:\nGreet them.\n\nInput: hi\nFeedback: The answer must begin with \"Dear\".";
    let answer = call(&ModelRequest { seed: Some(1), ..skill_request("reflect", "", advice) }).await.text;
    assert!(answer.contains("Greet them.\nThe answer must begin with \"Dear\"."), "{answer}");
}

#[tokio::test]
async fn a_judge_scores_the_shared_words() {
    for (got, score) in
        [("a red bicycle", 1.0), ("A RED BICYCLE", 1.0), ("red bicycle shop", 0.8), ("blue", 0.0)]
    {
        let text = answer_text("judge", "", &format!("Expected: a red bicycle\nAnswer: {got}")).await;
        let verdict: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(verdict["score"], json!(score), "{verdict}");
        assert_eq!(verdict["feedback"].as_str().unwrap().contains("got"), score < 1.0, "{verdict}");
    }
}

#[tokio::test]
async fn the_seed_does_not_affect_deterministic_answers() {
    for (input, _) in CASES.iter().copied() {
        let mut answers = BTreeSet::new();
        for seed in 0..20 {
            answers.insert(
                call(&ModelRequest { seed: Some(seed), ..skill_request("classify", PRECISE, input) })
                    .await
                    .text,
            );
        }
        assert_eq!(answers.len(), 1, "{input}");
    }
    // Temperature 0 removes differences between seeds, and a missing seed equals seed 0.
    let ask =
        |seed, temperature| ModelRequest { seed, temperature, ..skill_request("classify", BARE, CASES[0].0) };
    let mut answers = BTreeSet::new();
    for seed in 0..20 {
        answers.insert(call(&ask(Some(seed), None)).await.text);
        assert_eq!(call(&ask(Some(seed), Some(0.0))).await, call(&ask(None, Some(0.0))).await);
    }
    assert_eq!(answers.len(), 3);
    assert_eq!(call(&ask(None, None)).await, call(&ask(Some(0), None)).await);
}

#[tokio::test]
async fn long_and_nested_requests_are_answered_quickly() {
    let rules: String =
        (0..2000).map(|at| format!("Replace \"a\" with \"{}{at}\". ", "a".repeat(400))).collect();
    let words: String = (0..30_000).map(|at| format!("w{at} ")).collect();
    let parts = [
        "“",
        "“. ",
        "If a, ",
        "\"",
        "<prompt>",
        "a, ",
        "Input: a\nOutput: b\n",
        "{",
        "a. ",
        "```",
        "İ",
        "1.",
    ];
    for (at, part) in parts.iter().enumerate() {
        // Each part with some skills, each skill with some parts.
        for skill in practice::SKILLS.iter().skip(at % 3).step_by(3) {
            for (system, user) in [(&part.repeat(40_000), &words), (&rules, &part.repeat(40_000))] {
                let began = now();
                let answer = call(&skill_request(skill, system, user)).await;
                assert!(answer.text.len() < 1 << 20, "{skill} {part:?}: {}", answer.text.len());
                assert!(began.elapsed() < Duration::from_secs(20), "{skill} {part:?}: {:?}", began.elapsed());
            }
        }
    }
}

/// Prompts from valid instructions and from arbitrary text.
fn prompts() -> impl Strategy<Value = String> {
    let sentence = prop::sample::select(vec![
        "Labels: a, b, c.",
        "If the message mentions \"x\", answer \"a\".",
        "Otherwise answer \"b\".",
        "Begin with \"Q\"",
        "Use at most 3 words.",
        "Write in capital letters.",
        "{\"input\": \"x y\", \"output\": \"c\"}",
        "Things of x are a.",
        "key: the number after \"x\".",
        "Answer as JSON with the keys a and b.",
        "<prompt>",
        "```",
        "Input: x",
        "Expected: a",
        "Replace \"İ\" with \"ss\".",
        "Remove \"ß\".",
        "„“”«»``\"",
        "when , answer",
        "1. ",
        "---",
        "If",
        "the",
        ":",
        "Set a to b",
    ]);
    prop::collection::vec(
        prop::strategy::Union::new([sentence.prop_map(str::to_owned).boxed(), "\\PC{0,30}".boxed()]),
        0..8,
    )
    .prop_map(|parts| parts.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_same_request_gives_the_same_answer_and_none_panics(
        system in prompts(), user in prompts(), seed in any::<Option<u64>>(), most in prop::option::of(1_u32..40),
        skill in prop::sample::select(practice::SKILLS.to_vec()), schema in any::<bool>(),
    ) {
        let schema = schema.then(|| json!({"type": "object", "properties": {"key": {"type": "integer"}, "b": {"enum": ["a", "b"]},
            "answer": {"type": "string"}}, "required": ["key", "answer"]}));
        let request = ModelRequest { seed, max_tokens: most, response_schema: schema.clone(), ..skill_request(skill, &system, &user) };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let practice = Practice::new(Arc::new(SystemClock::new()));
        let one = runtime.block_on(practice.call(&request, &NoPieces)).unwrap();
        let two = runtime.block_on(practice.call(&request.clone(), &NoPieces)).unwrap();
        prop_assert_eq!(&one, &two);
        if let (Some(schema), None) = (schema, most) {
            let value: Value = serde_json::from_str(&one.text).unwrap();
            prop_assert_eq!(jsonschema::validator_for(&schema).unwrap().is_valid(&value), true, "{}", one.text);
        }
        if let Some(most) = most {
            prop_assert_eq!(one.usage.unwrap().output_tokens <= u64::from(most), true);
        }
    }
}
