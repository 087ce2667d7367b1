//! Chooses one label.

use serde_json::{Map, Value};

use super::instruction::Action;
use super::reading::ParsedRequest;
use super::text::{mentions, topics};

/// Minimum similarity for following an example, as the share of common topics.
const ALIKE: f64 = 0.5;
/// Maximum labels taken from instructions and examples if no list names them.
const MOST: usize = 100;
/// The probability of following a hint that is not an instruction.
const HINTED: f64 = 0.6;

/// The input's label. `options`: labels listed in a schema.
pub(super) fn label(reading: &ParsedRequest<'_>, options: &[String]) -> String {
    let labels = if options.is_empty() { known(reading) } else { options.to_vec() };
    let found = reading
        .given()
        .map(str::to_owned)
        .or_else(|| alike(reading))
        .or_else(|| hinted(reading, &labels))
        .or_else(|| labels.iter().find(|label| reading.heard.mentions(label)).cloned())
        .or_else(|| reading.otherwise().map(str::to_owned))
        .or_else(|| reading.noise.pick(&labels, "guess", &reading.input).cloned())
        .unwrap_or_else(|| "unknown".to_owned());
    // Spelled as in the list.
    let spelt = labels.iter().find(|label| label.eq_ignore_ascii_case(&found));
    match spelt {
        Some(label) => label.clone(),
        None if options.is_empty() => found,
        None => labels.first().cloned().unwrap_or(found),
    }
}

/// The labels listed in the prompt, else those in its instructions and examples.
fn known(reading: &ParsedRequest<'_>) -> Vec<String> {
    let listed = reading.asked().find_map(|action| match action {
        Action::Labels(labels) => Some(labels.clone()),
        _ => None,
    });
    listed.unwrap_or_else(|| {
        let given = reading.instructions.iter().filter_map(|found| match &found.action {
            Action::Answer(label) => Some(label.clone()),
            _ => None,
        });
        let mut labels: Vec<String> = Vec::new();
        for label in given.chain(reading.demos.iter().map(|(_, answer)| label_of(answer))) {
            if labels.len() < MOST && !labels.contains(&label) {
                labels.push(label);
            }
        }
        labels
    })
}

/// The answer of the example most similar to the input.
pub(super) fn alike(reading: &ParsedRequest<'_>) -> Option<String> {
    let input = topics(&reading.input);
    let mut best: Option<(f64, &String)> = None;
    for (demo, answer) in &reading.demos {
        let demo = topics(demo);
        let both = u32::try_from(input.intersection(&demo).count()).unwrap_or(0);
        let all = u32::try_from(input.len().min(demo.len())).unwrap_or(0);
        let share = if all == 0 { 0.0 } else { f64::from(both) / f64::from(all) };
        if share >= ALIKE && best.is_none_or(|(most, _)| share > most) {
            best = Some((share, answer));
        }
    }
    best.map(|(_, answer)| label_of(answer))
}

/// An answer's label: the member in an object `{label}`, as the node `classify` wants it, else the whole answer.
fn label_of(answer: &str) -> String {
    let object: Option<Map<String, Value>> = serde_json::from_str(answer).ok();
    let label = object.as_ref().and_then(|object| object.get("label")?.as_str());
    label.unwrap_or(answer).to_owned()
}

/// The label in a sentence that is not an instruction but shares a topic with the input: followed more often than
/// not.
fn hinted(reading: &ParsedRequest<'_>, labels: &[String]) -> Option<String> {
    let input = topics(&reading.input);
    let hint = |sentence: &&String| -> Option<&String> {
        let label = labels.iter().find(|label| mentions(sentence, label))?;
        let own = topics(label);
        topics(sentence).iter().any(|topic| !own.contains(topic) && input.contains(topic)).then_some(label)
    };
    let (sentence, label) = reading.hints.iter().find_map(|sentence| Some((sentence, hint(&sentence)?)))?;
    let key = format!("{sentence}\n{}", reading.input);
    reading.noise.happens(HINTED, "hint", &key).then(|| label.clone())
}
