//! Tests the whole package: a simple search in the worlds.

use std::collections::BTreeMap;

use super::phrases::PLACEHOLDER;
use super::random::{Draw, float};
use super::{Case, Demo, Family, Simulator, World};

/// Cases per proposal.
const MINIBATCH: usize = 6;

/// The search behavior.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// Accepts a proposal if its true score is higher.
    Greedy,
    /// Accepts every proposal that has the placeholder.
    AlwaysAccepts,
    /// Accepts like `Greedy`, and shows the reflector no records.
    WithoutFeedback,
}

/// A simple search.
struct Greedy {
    world: World,
    train: Vec<Case>,
    prompts: BTreeMap<String, String>,
    score: f64,
    draw: Draw,
    proposals: usize,
    accepted: usize,
    mode: Mode,
}

impl Greedy {
    fn new(family: Family, seed: u64) -> Self {
        let world = World::draw(family, seed);
        let mut train = world.cases();
        train.retain(|case| case.canary().is_none());
        let (prompts, score) = (world.seed_prompts(), world.seed_score());
        Self {
            world,
            train,
            prompts,
            score,
            draw: Draw::new(seed, "greedy"),
            proposals: 0,
            accepted: 0,
            mode: Mode::Greedy,
        }
    }

    /// Rewrites one prompt.
    fn step(&mut self) {
        self.proposals += 1;
        let names = self.world.prompt_names();
        let name = names[self.proposals % names.len()];
        let draw = self.draw.at(self.proposals);
        let mut order: Vec<usize> = (0..self.train.len()).collect();
        draw.shuffle(&mut order);
        let shown = if self.mode == Mode::WithoutFeedback { 0 } else { MINIBATCH };
        let records = order.iter().take(shown).filter_map(|at| self.record(&self.train[*at]));
        let request = request(name, &self.prompts[name], &records.collect::<Vec<_>>());
        let reply = self.world.reflect(
            &[("system", "You improve a prompt."), ("user", &request)],
            u64::try_from(self.proposals).unwrap(),
        );
        let Some(text) = new_prompt(&reply) else { return };
        let mut candidate = self.prompts.clone();
        candidate.insert(name.to_owned(), text);
        let score = self.world.true_score(&candidate);
        let is_whole = self.mode == Mode::AlwaysAccepts && candidate[name].contains(PLACEHOLDER);
        if score > self.score || is_whole {
            (self.prompts, self.score) = (candidate, score);
            self.accepted += 1;
        }
    }

    /// A case's record, if it fails.
    fn record(&self, case: &Case) -> Option<String> {
        let got = self.world.execute(&self.prompts, &BTreeMap::new(), case, 7);
        let expected = match case.expected_output.as_str() {
            Some(text) => text.to_owned(),
            None => case.expected_output.to_string(),
        };
        let line =
            if got.contains('\n') { serde_json::Value::from(got.clone()).to_string() } else { got.clone() };
        let record =
            format!("Input: {}\nExpected: {expected}\nGot: {line}\nFeedback: It lacks words.", case.message);
        (self.world.score(&got, case) < 1.0).then_some(record)
    }

    fn after(mut self, proposals: usize) -> Self {
        while self.proposals < proposals {
            self.step();
        }
        self
    }
}

fn request(name: &str, text: &str, records: &[String]) -> String {
    let mut parts = vec![format!("<prompt name=\"{name}\">\n{text}\n</prompt>")];
    parts.push("Keep every placeholder ({{ … }} and [[ … ]]) exactly as it is. The new prompt may have 2000 characters.".to_owned());
    parts.extend(records.iter().cloned());
    parts.push("Answer with the whole new prompt inside <new_prompt> and </new_prompt>.".to_owned());
    parts.join("\n\n")
}

/// Extracts the prompt from a reply: in the tag, else in a fence.
fn new_prompt(reply: &str) -> Option<String> {
    let inside =
        |begin: &str, end: &str| Some(reply.split_once(begin)?.1.split_once(end)?.0.trim().to_owned());
    inside("<new_prompt>", "</new_prompt>").or_else(|| inside("```", "```"))
}

#[test]
fn a_greedy_search_comes_near_the_oracle() {
    for seed in 0..12 {
        let search = Greedy::new(Family::One, seed).after(60);
        let oracle = search.world.oracle_score();
        assert!(search.score > 0.8 * oracle, "{seed}: {} of {oracle}", search.score);
    }
}

#[test]
fn the_reflector_improves_most_prompts() {
    let mut improved = 0;
    for seed in 0..100 {
        let search = Greedy::new(Family::One, seed).after(1);
        improved += search.accepted;
        assert!(search.accepted > 0 || search.score == search.world.seed_score());
    }
    assert!(improved >= 60, "{improved}");
}

#[test]
fn replies_have_their_faults_at_their_rates() {
    let world = World::draw(Family::One, 1);
    let seed = &world.seed_prompts()["answer"];
    let case = &world.cases()[0];
    let record =
        format!("Input: {}\nExpected: {}\nGot: nothing\nFeedback: no", case.message, case.expected_output);
    let request = request("answer", seed, &[record]);
    let replies: Vec<String> = (0..4_000).map(|at| world.reflect(&[("user", &request)], at)).collect();
    assert_eq!(replies[9], world.reflect(&[("user", &request)], 9));
    let share =
        |is: &dyn Fn(&String) -> bool| float(replies.iter().filter(|reply| is(reply)).count()) / 4_000.0;
    let near = |share: f64, expected: f64| (share - expected).abs() < 0.02;
    assert!(near(share(&|reply| reply.starts_with("I'm sorry")), 0.03));
    assert!(near(share(&|reply| reply.starts_with("Sure!")), 0.2 * 0.97));
    assert!(near(share(&|reply| reply.contains("```")), 0.05));
    assert!(near(share(&|reply| new_prompt(reply).is_some_and(|text| !text.contains("{{"))), 0.02));
}

#[test]
fn no_proposal_improves_a_null_world() {
    for family in [Family::NullOpt, Family::NullFlat] {
        for seed in 0..4 {
            let search = Greedy::new(family, seed).after(40);
            assert_eq!((search.accepted, search.score), (0, search.world.seed_score()), "{family:?} {seed}");
        }
    }
}

#[test]
fn instructions_do_not_teach_the_rules_of_demos() {
    let search = Greedy::new(Family::Demo, 1).after(40);
    assert!(search.score <= search.world.seed_score() + 1e-9);
    let (seed, oracle) = (search.world.seed_score(), search.world.oracle_score());
    assert!(oracle > seed + 0.4, "{seed} {oracle}");
    // Demos from executions with a full score, as an optimizer finds them.
    let (world, prompts) = (&search.world, search.world.seed_prompts());
    let passing = search.train.iter().filter_map(|case| {
        let assistant = world.execute(&prompts, &BTreeMap::new(), case, 1);
        let demo = Demo { user: case.message.clone(), assistant };
        (world.score(&demo.assistant, case) >= 1.0).then_some(demo)
    });
    let demos: Vec<Demo> = passing.take(4).collect();
    assert_eq!(demos.len(), 4, "enough cases pass");
    let score = world.true_score_with(&prompts, &BTreeMap::from([("answer".to_owned(), demos)]));
    assert!(score > seed + 0.2, "{seed} {score}");
}

#[test]
fn a_simulator_is_shared_between_threads() {
    let simulator = Simulator::default();
    let body = serde_json::json!({"model": "one-1/task", "messages": [{"role": "user", "content": "x"}]});
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| drop(simulator.reply(&body))));
        }
    });
    assert_eq!(simulator.tally().task.answered, 200);
}
