//! Rewrites a prompt by the lessons from records.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::World;
use super::feedback::{Record, Request};
use super::phrases::{FILLERS, GATES, LOST, PLACEHOLDER, critique, precise, spurious, vague};
use super::random::Draw;
use super::rates::Rates;
use super::words::{is_action, word_set, words};

/// The probability that the reflector states a word that it cannot explain.
const SPECULATES: f64 = 0.5;

/// Lessons from records.
#[derive(Debug, Default)]
struct Lessons {
    /// Rules to state, and whether a critique names them.
    rules: BTreeMap<usize, bool>,
    /// Format requirements to state.
    gates: BTreeSet<usize>,
    /// Expected words without an explanation.
    unexplained: BTreeSet<String>,
}

/// A new text for a request's prompt.
pub(super) fn rewrite(world: &World, request: &Request, draw: Draw) -> String {
    let lessons = match request.failing.as_slice() {
        [] => guess(world, request, draw),
        records => lessons(world, request, records, draw),
    };
    let rates = &world.rates;
    let place = world.place_of(&request.name);
    let mut lines: Vec<String> = Vec::new();
    let general = world.general(place);
    for (at, line) in request.text.lines().enumerate() {
        let is_kept =
            general.iter().any(|known| known == line) || request.kept.iter().any(|kept| kept.contains(line));
        let is_shown = is_replaced(world, &lessons, line);
        let forgets = !line.trim().is_empty() && draw.for_key("forgets").at(at).happens(rates.forgets);
        if is_kept || !(is_shown || forgets) {
            lines.push(line.to_owned());
        }
    }
    let new = lines.len();
    let is_vague = |name: &str, at: usize, rate: f64| draw.for_key(name).at(at).happens(rate);
    for gate in &lessons.gates {
        let written = GATES
            .get(*gate)
            .map(|known| if is_vague("gate", *gate, rates.vague) { known.vague } else { known.precise });
        lines.extend(written.map(str::to_owned));
    }
    for (at, is_critiqued) in &lessons.rules {
        let (Some(rule), phrase) = (world.rules.get(*at), draw.for_key("phrase").at(*at)) else { continue };
        let rate = if *is_critiqued { rates.vague_critiqued } else { rates.vague };
        lines.push(if is_vague("rule", *at, rate) { vague(rule, phrase) } else { precise(rule, phrase) });
    }
    let speculated = lessons.unexplained.iter().find(|_| draw.for_key("speculates").happens(SPECULATES));
    lines.extend(speculated.map(|word| spurious(word)));
    if lines.len() == new {
        vary(&mut lines, draw.for_key("filler"));
    }
    shorten(&mut lines, new, request.max_chars);
    let text = lines.join("\n");
    let loses = draw.for_key("placeholder").happens(rates.loses_placeholder) && !request.warns_of_placeholder;
    if loses { text.replace(PLACEHOLDER, LOST) } else { text }
}

/// A one-sentence critique about the record in a request.
pub(super) fn criticize(world: &World, request: &Request, draw: Draw) -> String {
    let place = world.place_of(&request.name);
    let missing = |record: &Record| -> Vec<usize> {
        missing(world, record).into_iter().filter_map(|(_, rule)| rule).collect()
    };
    let rules: Vec<usize> = request.failing.iter().flat_map(missing).collect();
    let own: Vec<usize> = rules
        .iter()
        .copied()
        .filter(|at| world.rules.get(*at).is_some_and(|rule| rule.prompt == place))
        .collect();
    match draw.for_key("critique").choose(&own).and_then(|at| world.rules.get(*at)) {
        Some(rule) => critique(rule),
        None if !rules.is_empty() => super::phrases::OTHER_CAUSE.to_owned(),
        None => super::phrases::NO_CAUSE.to_owned(),
    }
}

/// The missing expected words, with the rules that explain them.
fn missing(world: &World, record: &Record) -> Vec<(String, Option<usize>)> {
    let (input, got) = (word_set(&record.input), word_set(&record.got));
    let expected = words(&record.expected).filter(|word| is_action(word) && !got.contains(word));
    let explained = |word: String| {
        let rule =
            world.rule_of(&word).filter(|at| world.rules.get(*at).is_some_and(|rule| rule.applies(&input)));
        (word, rule)
    };
    expected.map(explained).collect()
}

fn lessons(world: &World, request: &Request, records: &[Record], draw: Draw) -> Lessons {
    let place = world.place_of(&request.name);
    let mut lessons = Lessons::default();
    // Used if nothing is noticed: a model that should improve a prompt always finds something.
    let mut first = None;
    for (at, record) in records.iter().enumerate() {
        lessons.gates.extend(missing_gate(world, record));
        for (word, rule) in missing(world, record) {
            let Some(rule) = rule else {
                lessons.unexplained.insert(word);
                continue;
            };
            let is_own = world.rules.get(rule).is_some_and(|known| known.prompt == place);
            let is_critiqued = is_own
                && world.rules.get(rule).is_some_and(|known| record.feedback.contains(&critique(known)));
            let draw = draw.for_key("record").at(at).at(rule);
            if !is_own
                && (record.has_other_cause()
                    || !draw.for_key("misattributes").happens(world.rates.misattributes))
            {
                continue;
            }
            let rate = if is_critiqued { world.rates.notices_critiqued } else { world.rates.notices };
            if draw.for_key("notices").happens(rate) {
                *lessons.rules.entry(rule).or_default() |= is_critiqued;
            } else {
                first = first.or(Some((rule, is_critiqued)));
            }
        }
    }
    if lessons.rules.is_empty() && lessons.gates.is_empty() {
        lessons.rules.extend(first);
    }
    lessons
}

/// The format requirement that a record shows.
fn missing_gate(world: &World, record: &Record) -> Option<usize> {
    let is_object =
        |text: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
    match world.is_json() && is_object(&record.expected) && !is_object(&record.got) {
        true => Some(usize::from(record.got.contains('{'))),
        false => None,
    }
}

/// Lessons without records: sometimes a rule that happens to be right.
fn guess(world: &World, request: &Request, draw: Draw) -> Lessons {
    let Rates { guesses, .. } = world.rates;
    let place = world.place_of(&request.name);
    let said = word_set(&request.text);
    let unsaid = world
        .rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.prompt == place && !said.contains(&rule.action));
    let unsaid: Vec<usize> = unsaid.map(|(at, _)| at).collect();
    if !draw.for_key("guesses").happens(guesses) {
        return Lessons::default();
    }
    let gates =
        GATES.iter().enumerate().filter(|(_, gate)| world.is_json() && !request.text.contains(gate.precise));
    let gates: Vec<usize> = gates.map(|(at, _)| at).collect();
    if let Some(gate) = draw.for_key("gate").choose(&gates).filter(|_| draw.for_key("which").happens(0.5)) {
        return Lessons { gates: BTreeSet::from([*gate]), ..Lessons::default() };
    }
    let guessed = draw.for_key("guess").choose(&unsaid);
    Lessons { rules: guessed.map(|at| (*at, false)).into_iter().collect(), ..Lessons::default() }
}

/// Whether a line states something that the lessons state again.
fn is_replaced(world: &World, lessons: &Lessons, line: &str) -> bool {
    let words = word_set(line);
    let names = |at: &usize| {
        world.rules.get(*at).is_some_and(|rule| {
            words.contains(&rule.action) || rule.triggers.iter().any(|word| words.contains(word))
        })
    };
    let states = |at: &usize| GATES.get(*at).is_some_and(|gate| line == gate.precise || line == gate.vague);
    lessons.rules.keys().any(names) || lessons.gates.iter().any(states)
}

/// A variation without a lesson: adds a sentence, or removes it if present.
fn vary(lines: &mut Vec<String>, draw: Draw) {
    let Some(filler) = draw.choose(&FILLERS) else { return };
    match lines.iter().position(|line| line == filler) {
        Some(at) => drop(lines.remove(at)),
        None => lines.push((*filler).to_owned()),
    }
}

/// Drops new lines, the last first, until the text fits.
fn shorten(lines: &mut Vec<String>, new: usize, max_chars: Option<usize>) {
    let length = |lines: &[String]| lines.iter().map(|line| line.chars().count() + 1).sum::<usize>();
    while max_chars.is_some_and(|most| length(lines) > most) && lines.len() > new {
        lines.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::Family;
    use super::super::random::float;
    use super::super::reading::{ParsedPrompt, Statement};
    use super::*;

    fn quiet(family: Family) -> World {
        let none = Rates {
            forgets: 0.0,
            vague: 0.0,
            vague_critiqued: 0.0,
            notices: 1.0,
            notices_critiqued: 1.0,
            loses_placeholder: 0.0,
            ..Rates::default()
        };
        World::draw(family, 2).with_rates(none)
    }

    fn request(world: &World, name: &str, failing: Vec<Record>) -> Request {
        let text = world.seed_prompts()[name].clone();
        let (name, max_chars) = (name.to_owned(), None);
        Request {
            name,
            text,
            failing,
            is_critique: false,
            max_chars,
            warns_of_placeholder: false,
            kept: Vec::new(),
        }
    }

    fn records(world: &World) -> Vec<Record> {
        let record = |case: &super::super::Case| Record {
            input: case.message.clone(),
            expected: case.expected_output.to_string(),
            got: "nothing".to_owned(),
            feedback: "no".to_owned(),
        };
        world.cases().iter().map(record).collect()
    }

    #[test]
    fn a_careful_reflector_states_every_rule_of_its_records() {
        let world = quiet(Family::One);
        let request = request(&world, "answer", records(&world));
        let text = rewrite(&world, &request, Draw::new(1, "test"));
        let reading = ParsedPrompt::new(&world, 0, &text);
        assert!(reading.rules.iter().all(|stated| *stated == Statement::Precise), "{text}");
        assert!(text.contains(PLACEHOLDER));
        assert_eq!(reading.instructions, world.rules.len(), "each rule once");
    }

    #[test]
    fn rules_of_other_prompts_are_stated_less_often() {
        let world = quiet(Family::Pair);
        let request = request(&world, "first", records(&world)[..6].to_vec());
        let stated = |prompt: usize| {
            let draws = (0..200).map(|at| rewrite(&world, &request, Draw::new(at, "test")));
            let readings = draws.map(|text| ParsedPrompt::new(&world, 0, &text));
            let count = |reading: ParsedPrompt| {
                world
                    .rules
                    .iter()
                    .zip(reading.rules)
                    .filter(|(rule, stated)| rule.prompt == prompt && *stated == Statement::Precise)
                    .count()
            };
            readings.map(count).sum::<usize>()
        };
        let (own, foreign) = (stated(0), stated(1));
        assert!(foreign > 0 && foreign * 3 < own * 2, "{own} {foreign}");
    }

    #[test]
    fn forgetting_and_vagueness_have_their_rates() {
        let rates = Rates { loses_placeholder: 0.0, notices: 1.0, ..Rates::default() };
        let world = World::draw(Family::One, 2).with_rates(rates);
        let mut remaining = 0;
        let mut vague = 0;
        let mut request = request(&world, "answer", records(&world)[..1].to_vec());
        request.text = world.oracle_prompts()["answer"].clone();
        let shown = world.cases()[0].rules.clone();
        for at in 0..2_000 {
            let reading = ParsedPrompt::new(&world, 0, &rewrite(&world, &request, Draw::new(at, "test")));
            remaining += (0..world.rules.len())
                .filter(|at| !shown.contains(at) && reading.rules[*at] == Statement::Precise)
                .count();
            vague += shown.iter().filter(|at| reading.rules[**at] == Statement::Vague).count();
        }
        let rate = |count: usize, each: usize| float(count) / (float(each) * 2_000.0);
        assert!((rate(remaining, world.rules.len() - shown.len()) - 0.9).abs() < 0.02);
        assert!((rate(vague, shown.len()) - 0.25).abs() < 0.03);
    }

    #[test]
    fn format_requirements_are_learnt_one_at_a_time() {
        let world = quiet(Family::Format);
        let case = &world.cases()[0];
        let record = |got: &str| Record {
            input: case.message.clone(),
            expected: case.expected_output.to_string(),
            got: got.to_owned(),
            feedback: "no".into(),
        };
        let gates = |got: &str| {
            let text = rewrite(&world, &request(&world, "answer", vec![record(got)]), Draw::new(1, "test"));
            ParsedPrompt::new(&world, 0, &text).gates
        };
        assert_eq!(gates("nothing"), [Statement::Precise, Statement::Absent]);
        assert_eq!(
            gates("Here is the result:\n{}\nPlease check it."),
            [Statement::Absent, Statement::Precise]
        );
        assert_eq!(gates("{}"), [Statement::Absent, Statement::Absent]);
    }

    #[test]
    fn critiques_name_a_rule_or_another_step() {
        let world = quiet(Family::Pair);
        let critiques: BTreeSet<String> = records(&world)
            .into_iter()
            .map(|record| criticize(&world, &request(&world, "first", vec![record]), Draw::new(1, "test")))
            .collect();
        assert!(critiques.contains(super::super::phrases::OTHER_CAUSE));
        assert!(world.rules.iter().any(|rule| rule.prompt == 0 && critiques.contains(&critique(rule))));
        assert!(world.rules.iter().all(|rule| rule.prompt == 0 || !critiques.contains(&critique(rule))));
    }

    #[test]
    fn without_records_a_rule_is_rarely_guessed_and_the_text_changes() {
        let world = quiet(Family::One);
        let request = request(&world, "answer", Vec::new());
        let before = ParsedPrompt::new(&world, 0, &request.text).rules;
        let texts: Vec<String> =
            (0..500).map(|at| rewrite(&world, &request, Draw::new(at, "test"))).collect();
        assert!(texts.iter().all(|text| *text != request.text));
        let guessed = texts.iter().filter(|text| ParsedPrompt::new(&world, 0, text).rules != before).count();
        assert!((10..45).contains(&guessed), "{guessed}");
    }
}
