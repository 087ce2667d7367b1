//! Searches in simulated worlds, whose true scores are known, without a service.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::ports::ExampleInputs;
use kernel::{Counter, Purpose, fifty_three_bits};
use parking_lot::Mutex;
use serde_json::{Value, json};
use training::evaluators::{NoBench, read_evaluators};
use training::optimize::{
    Candidate, Finding, JudgedRun, Lab, Phase, Problem, Question, Round, SamplesResult, SearchEvent, Stop,
    search,
};
use training::request::read_training;
use training::{Case, CaseContext, CaseRun, CaseStep, judge, trainable_prompts};
use worlds::{Demo, Family, RequestOptions, World};

/// A simulated world that plays a search's models.
struct WorldLab<'a> {
    world: &'a World,
    problem: &'a Problem<'a>,
    counter: Counter,
    budget: u64,
    state: Mutex<LabState>,
}

#[derive(Default)]
struct LabState {
    calls: u64,
    kept: u64,
    kept_for_demos: u64,
    /// Equal requests share one answer.
    answered: HashSet<(String, String, String, u64)>,
    results: BTreeMap<(u32, usize, u32), JudgedRun>,
}

impl LabState {
    fn pay(&mut self, budget: u64) -> Result<(), Stop> {
        if self.calls + 1 + self.kept + self.kept_for_demos > budget {
            return Err(Stop::Budget);
        }
        self.calls += 1;
        Ok(())
    }
}

impl WorldLab<'_> {
    /// Executes a case once, node by node.
    fn execute(&self, candidate: &Candidate, case: &Case, sample: u32) -> Result<CaseRun, Stop> {
        let text = |name: &str| case.inputs[name].as_str().unwrap().to_owned();
        let (message, desk) = (text("message"), text("desk"));
        let names = self.world.prompt_names();
        let (mut draft, mut trace) = ("nothing".to_owned(), Vec::new());
        for (place, name) in names.iter().enumerate() {
            let system = candidate.prompts[*name].replace("{{ inputs.desk }}", &desk);
            let user = match names.len() {
                1 => message.clone(),
                _ => format!("Step: {name}\nInput: {message}\nDraft: {draft}"),
            };
            let of = |demo: &training::Demo| Demo {
                user: demo.inputs["user"].as_str().unwrap().to_owned(),
                assistant: demo.output.as_str().unwrap().to_owned(),
            };
            let demos: Vec<Demo> = candidate.demos.get(*name).into_iter().flatten().map(of).collect();
            let number = u64::try_from(place).unwrap() << 32 | u64::from(sample);
            let seed = fifty_three_bits(&self.counter.bytes(Purpose::CallSeed, 0, number));
            let mut state = self.state.lock();
            if state.answered.insert((system.clone(), user.clone(), format!("{demos:?}"), seed)) {
                state.pay(self.budget)?;
            }
            draft = self.world.answer_with(&system, &demos, &user, seed);
            let prompts = vec![(*name).to_owned()];
            trace.push(CaseStep {
                node: (*name).into(),
                visit: 1,
                attempt: 1,
                output: Some(json!({"text": draft})),
                prompts_read: prompts.clone(),
                example: Some(ExampleInputs { prompts, inputs: json!({"user": user}) }),
                ..CaseStep::default()
            });
        }
        let output = json!(draft);
        Ok(CaseRun { output, text: draft, error: None, trace, duration: Duration::ZERO, cost: Some(0) })
    }
}

#[async_trait]
impl Lab for WorldLab<'_> {
    async fn evaluate(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult {
        if matches!(round.phase, Phase::Final | Phase::Test) {
            self.state.lock().kept = 0;
        }
        for place in places {
            let case = &self.problem.cases[*place];
            let run = self.execute(candidate, case, round.first_sample)?;
            let (context, bench) = (CaseContext::default(), NoBench::default());
            let verdicts = judge(self.problem.evaluators, case, &run, context, &bench).await.unwrap();
            let key = (candidate.number, *place, round.first_sample);
            self.state.lock().results.insert(key, JudgedRun { run: Arc::new(run), verdicts });
        }
        self.recall(candidate, places, round).await
    }

    async fn recall(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult {
        let results = &self.state.lock().results;
        let key = |place: &usize| (candidate.number, *place, round.first_sample);
        Ok(places.iter().map(|place| results.get(&key(place)).cloned().into_iter().collect()).collect())
    }

    async fn reuse(&self, _candidate: &Candidate, _places: &[usize], _round: Round) -> Result<(), Stop> {
        Ok(())
    }

    async fn ask(&self, question: Question) -> Result<Option<String>, Stop> {
        self.state.lock().pay(self.budget)?;
        let place = self.problem.prompts.iter().position(|prompt| prompt.name == question.prompt).unwrap();
        let number = u64::try_from(place).unwrap() << 32 | u64::from(question.ordinal);
        let seed = self.counter.bytes(Purpose::CallSeed, u64::from(question.proposal), number);
        let role = |message: &models::Message| match message.role {
            models::Role::System => "system",
            models::Role::Assistant => "assistant",
            _ => "user",
        };
        let messages: Vec<(&str, &str)> =
            question.messages.iter().map(|message| (role(message), message.content.as_str())).collect();
        assert!(messages.iter().all(|(_, content)| !self.world.has_canary(content)), "{messages:?}");
        Ok(Some(self.world.reflect(&messages, fifty_three_bits(&seed))))
    }

    fn release_demos(&self) {
        self.state.lock().kept_for_demos = 0;
    }

    async fn publish(&self, _event: SearchEvent<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// A search result, with the true scores of the seed and of the returned prompts.
pub(crate) struct SearchResult {
    pub(crate) finding: Finding,
    pub(crate) seed: f64,
    pub(crate) returned: f64,
    pub(crate) calls: u64,
}

/// Searches with a limited number of calls.
pub(crate) async fn trained(family: Family, seed: u64, name: &str, budget: u64) -> SearchResult {
    let world = World::draw(family, seed);
    let settings = json!({"name": name, "epochs": 50, "seed": seed, "budget": {"max_llm_calls": budget}});
    let request = world.train_workflow(&RequestOptions { settings, ..RequestOptions::default() });
    let training = &request["training"];
    let mut problems = Vec::new();
    let optimizer =
        read_training(training, "", &mut problems).unwrap_or_else(|| panic!("{problems:?}")).optimizer;
    let evaluators = read_evaluators(&training["evaluators"], "", &mut problems);
    let plan = engine::check(&request["graph_config"]).unwrap();
    let config = request["runnable_config"].as_object().unwrap();
    let prompts = trainable_prompts(&plan, config, "", &mut problems, &mut Vec::new());
    let case = |(index, case): (usize, &Value)| Case {
        id: case["id"].as_str().unwrap().to_owned(),
        index: u32::try_from(index).unwrap(),
        inputs: case["inputs"].as_object().unwrap().clone(),
        expected_output: case["expected_output"].clone(),
        metadata: case["metadata"].as_object().unwrap().clone(),
    };
    let cases: Vec<Case> =
        training["dataset"]["cases"].as_array().unwrap().iter().enumerate().map(case).collect();
    let problem = Problem::new(&cases, &prompts, &evaluators, &optimizer);
    let nodes = u64::try_from(prompts.len()).unwrap();
    let part = |thousandths: u64| budget * thousandths / 1_000;
    let state = LabState {
        kept: part(problem.kept_thousandths(nodes, Some(budget))),
        kept_for_demos: part(problem.kept_for_demos()),
        ..LabState::default()
    };
    let (counter, state) = (Counter::new(seed), Mutex::new(state));
    let lab = WorldLab { world: &world, problem: &problem, counter, budget, state };
    let finding = search(&problem, &lab).await.unwrap();
    let of = |demo: &training::Demo| Demo {
        user: demo.inputs["user"].as_str().unwrap().to_owned(),
        assistant: demo.output.as_str().unwrap().to_owned(),
    };
    let demos = finding.best.demos.iter().map(|(name, demos)| (name.clone(), demos.iter().map(of).collect()));
    let returned = world.true_score_with(&finding.best.prompts, &demos.collect());
    let calls = lab.state.lock().calls;
    SearchResult { finding, seed: world.seed_score(), returned, calls }
}

#[tokio::test]
async fn no_optimizer_does_harm_without_a_possible_gain() {
    for name in ["textgrad", "gepa", "auto"] {
        for family in [Family::NullOpt, Family::NullFlat] {
            for seed in 200..203 {
                let found = trained(family, seed, name, 300).await;
                assert!(found.returned > found.seed - 0.01, "{name} {family:?} {seed}: {:?}", found.finding);
                assert!(found.calls <= 300 && found.calls > 100, "{name} {family:?} {seed}: {}", found.calls);
            }
        }
    }
}

#[tokio::test]
async fn auto_is_about_as_good_as_its_best_part() {
    for family in [Family::One, Family::Pair] {
        let mut sums = [0.0; 3];
        for seed in 200..204 {
            for (sum, name) in sums.iter_mut().zip(["auto", "gepa", "textgrad"]) {
                *sum += trained(family, seed, name, 500).await.returned / 4.0;
            }
        }
        let [auto, gepa, textgrad] = sums;
        assert!(auto > gepa.max(textgrad) - 0.1 && auto > 0.7, "{family:?}: {sums:?}");
    }
}
