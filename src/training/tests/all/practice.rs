//! A search with real graphs, and with the practice model for every role.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use engine::Plan;
use kernel::SystemClock;
use models::{Model, ModelRequest, NoPieces};
use parking_lot::Mutex;
use practice::Practice;
use serde_json::{Map, Value, json};
use training::calls::Role;
use training::evaluators::{Evaluator, NoBench, read_evaluators};
use training::optimize::{
    Candidate, Finding, JudgedRun, Lab, Outcome, Problem, Question, Round, SamplesResult, SearchEvent, Stop,
    search,
};
use training::request::read_training;
use training::{Case, CaseContext, judge, read_csv, run_case, trainable_prompts};

use crate::world::{Begin, World, plan};

const CASES: &str = "message,expected_output
Where is my parcel? It should be here since Monday,shipping
The parcel arrived at the wrong house,shipping
My invoice shows a wrong amount,billing
Please send the invoice again,billing
\"I cannot log in, the password is refused\",account
How do I change my password?,account
The courier did not ring,shipping
Your courier left it in the rain,shipping
I was charged twice on my card,billing
Why was I charged for two lamps?,billing
Delete my profile,account
There is a wrong birthday in my profile,account
\"My parcel is broken, and the lamp too\",shipping
Can the parcel go to my neighbour?,shipping
The invoice is missing,billing
Is there an invoice for the lamp?,billing
Another person uses my password,account
My password has expired,account
When does the courier come?,shipping
The courier was very kind,shipping
You charged too much,billing
I am charged every month,billing
My profile picture is upside down,account
Hide my profile please,account
";

/// Executes every request.
struct RealLab<'a> {
    world: World,
    plan: Plan,
    cases: &'a [Case],
    evaluators: &'a [Evaluator],
    reflector: Practice,
    scores: Mutex<Vec<f64>>,
    results: Mutex<BTreeMap<(u32, usize), Vec<JudgedRun>>>,
}

#[async_trait]
impl Lab for RealLab<'_> {
    async fn evaluate(&self, candidate: &Candidate, places: &[usize], round: Round) -> SamplesResult {
        let prompts: BTreeMap<&String, Value> =
            candidate.prompts.iter().map(|(name, text)| (name, json!({"text": text}))).collect();
        let config = Map::from_iter([("prompts".to_owned(), json!(prompts))]);
        let mut judged = Vec::new();
        for place in places {
            let case = &self.cases[*place];
            let name = format!("{}-{place}", candidate.number);
            let scope = self.world.calls.scope(Role::Task, round.first_sample, name);
            let run = async |ports: engine::ports::Ports<'_>| {
                run_case(&self.plan, &config, case, &self.world.settings, &scope, ports).await
            };
            let run = self.world.with_ports(run).await;
            assert_eq!(run.error, None);
            let verdicts =
                judge(self.evaluators, case, &run, CaseContext::default(), &NoBench::default()).await;
            let samples = vec![JudgedRun { run: Arc::new(run), verdicts: verdicts.unwrap() }];
            self.results.lock().insert((candidate.number, *place), samples.clone());
            judged.push(samples);
        }
        Ok(judged)
    }

    async fn recall(&self, candidate: &Candidate, places: &[usize], _round: Round) -> SamplesResult {
        let results = self.results.lock();
        Ok(places.iter().map(|place| results[&(candidate.number, *place)].clone()).collect())
    }

    async fn reuse(&self, _candidate: &Candidate, _places: &[usize], _round: Round) -> Result<(), Stop> {
        Ok(())
    }

    async fn ask(&self, question: Question) -> Result<Option<String>, Stop> {
        let seed = u64::from(question.proposal) << 8 | u64::from(question.ordinal);
        let request = ModelRequest {
            model: "reflect".to_owned(),
            messages: question.messages,
            seed: Some(seed),
            ..ModelRequest::default()
        };
        Ok(self.reflector.call(&request, &NoPieces).await.ok().map(|answer| answer.text))
    }

    fn release_demos(&self) {}

    async fn publish(&self, event: SearchEvent<'_>) -> Result<(), Stop> {
        if let SearchEvent::Epoch { score, .. } = event {
            self.scores.lock().push(score);
        }
        Ok(())
    }
}

async fn trained(optimizer: Value) -> (Finding, Vec<f64>) {
    let mut problems = Vec::new();
    let cases = read_csv(CASES, &mut problems);
    let request = json!({"dataset": {"cases": [{"inputs": {}}]}, "optimizer": optimizer,
        "evaluators": [{"id": "label", "entrypoint": "builtin:exact_match"}]});
    let optimizer =
        read_training(&request, "", &mut problems).unwrap_or_else(|| panic!("{problems:?}")).optimizer;
    let evaluators = read_evaluators(&request["evaluators"], "", &mut problems);
    let node = json!({"name": "sort", "type": "llm", "model": "practice/classify",
        "system": "{{ config.prompts.rules.text }}", "user": "{{ inputs.message }}"});
    let plan = plan(&[node], "{{ results.sort.text }}");
    let config = json!({"prompts": {"rules": {"text": "Sort the message into shipping, billing or account.", "requires_grad": true}}});
    let prompts = trainable_prompts(&plan, config.as_object().unwrap(), "", &mut problems, &mut Vec::new());
    assert_eq!(problems, []);
    let problem = Problem::new(&cases, &prompts, &evaluators, &optimizer);
    let lab = RealLab {
        world: World::with(Begin::default()),
        plan,
        cases: &cases,
        evaluators: &evaluators,
        reflector: Practice::new(Arc::new(SystemClock::new())),
        scores: Mutex::default(),
        results: Mutex::default(),
    };
    let found = search(&problem, &lab).await.unwrap();
    (found, lab.scores.into_inner())
}

#[tokio::test]
async fn the_practice_model_improves_prompts_deterministically() {
    for (name, epochs) in [("textgrad", 3), ("gepa", 8)] {
        let (found, scores) = trained(json!({"name": name, "epochs": epochs, "validation_split": 0.5})).await;
        assert_eq!(found.outcome, Outcome::Improved, "{name}: {scores:?} {found:?}");
        assert!(found.val.best >= found.val.seed + 0.3, "{name}: {found:?}");
        assert!(scores.is_sorted(), "{name}: {scores:?}");
        let again = trained(json!({"name": name, "epochs": epochs, "validation_split": 0.5})).await;
        assert_eq!(again, (found, scores), "{name}");
    }
}
