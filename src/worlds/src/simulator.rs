//! A server without sockets: routes OpenAI requests to worlds, and counts them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::completion::{CompletionRequest, error, tokens, written};
use super::definition::World;
use super::faults::{Fault, Faults};
use super::reading::ParsedPrompt;
use super::tally::{CallCount, Tally};
use super::words::desk_in;

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedReply {
    /// The status code.
    pub status: u16,
    /// The header `Retry-After`, in seconds.
    pub retry_after_seconds: Option<u64>,
    /// The delay before the first byte, in milliseconds.
    pub delay_ms: u64,
    /// Whether the connection ends after the first half of the body.
    pub is_cut: bool,
    /// A `chat.completion` with `usage`, or an `error`. [`stream_events`](super::stream_events) converts it to a
    /// stream.
    pub body: Value,
}

impl SimulatedReply {
    fn new(status: u16, body: Value) -> Self {
        Self { status, retry_after_seconds: None, delay_ms: 0, is_cut: false, body }
    }
}

/// The role that a simulated model plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Task,
    Reflect,
    Judge,
}

/// A simulated server for all worlds.
///
/// The request's model, `<family>-<seed>/task`, `…/reflect` or `…/judge`, names world and role. An answer is a
/// function of the request; a fault is a function of the request number.
#[derive(Debug, Default)]
pub struct Simulator {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: Faults,
    worlds: BTreeMap<String, Arc<World>>,
    tally: Tally,
    requests: u64,
}

impl Simulator {
    /// A server with these faults.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        Self { state: Mutex::new(State { faults, ..State::default() }) }
    }

    /// Registers this world under its name, with its own rates. Other worlds are drawn when a request names them.
    pub fn insert(&self, world: World) -> Arc<World> {
        let world = Arc::new(world);
        self.lock().worlds.insert(world.name(), Arc::clone(&world));
        world
    }

    /// Injects these faults from the next request on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// The counts so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    /// Returns the counts since the last call and resets them.
    #[must_use]
    pub fn take_tally(&self) -> Tally {
        std::mem::take(&mut self.lock().tally)
    }

    /// The response to a `POST …/chat/completions` body.
    #[must_use]
    pub fn reply(&self, body: &Value) -> SimulatedReply {
        let Some(asked) = CompletionRequest::read(body) else {
            self.lock().tally.refused += 1;
            return SimulatedReply::new(
                400,
                error("invalid_request_error", "the request needs `model` and `messages`"),
            );
        };
        let Some((world, role)) = self.route(&asked.model) else {
            self.lock().tally.refused += 1;
            let message = format!(
                "`{}` is not a valid model: use `<family>-<seed>/task`, `/reflect` or `/judge`",
                asked.model
            );
            return SimulatedReply::new(404, error("model_not_found", &message));
        };
        let fault = self.receive(&world, role, &asked);
        match fault {
            Some((Fault::RateLimited, faults)) => {
                let reply = SimulatedReply::new(429, error("rate_limit_exceeded", "too many requests"));
                return SimulatedReply { retry_after_seconds: Some(faults.retry_after_seconds), ..reply };
            }
            Some((Fault::Failed, _)) => {
                return SimulatedReply::new(500, error("server_error", "an injected fault"));
            }
            _ => {}
        }
        let text = match role {
            Role::Task => {
                world.answer_with(asked.last("system"), &asked.demos(), asked.last("user"), asked.seed)
            }
            Role::Reflect => world.reflect(&asked.messages(), asked.seed),
            Role::Judge => world.judge(&asked.messages(), asked.seed),
        };
        let reply = SimulatedReply::new(200, written(&asked, &text));
        if let Some((Fault::Cut, _)) = fault {
            return SimulatedReply { is_cut: true, ..reply };
        }
        let mut state = self.lock();
        let count = count_of(&mut state.tally, role);
        count.answered += 1;
        count.input_tokens += number(tokens(asked.bytes()));
        count.output_tokens += number(tokens(text.len()));
        match fault {
            Some((Fault::Slow, faults)) => SimulatedReply { delay_ms: faults.delay_ms, ..reply },
            _ => reply,
        }
    }

    /// A model's world and role.
    fn route(&self, model: &str) -> Option<(Arc<World>, Role)> {
        let model = model.strip_prefix("openai/").unwrap_or(model);
        let (name, role) = model.rsplit_once('/')?;
        let role = match role {
            "task" => Role::Task,
            "reflect" => Role::Reflect,
            "judge" => Role::Judge,
            _ => return None,
        };
        if let Some(world) = self.lock().worlds.get(name) {
            return Some((Arc::clone(world), role));
        }
        let drawn = Arc::new(World::named(name)?);
        let world = Arc::clone(self.lock().worlds.entry(name.to_owned()).or_insert(drawn));
        Some((world, role))
    }

    /// Counts a request, and draws its fault.
    fn receive(&self, world: &World, role: Role, asked: &CompletionRequest) -> Option<(Fault, Faults)> {
        let mut state = self.lock();
        let fault = state.faults.for_request(state.requests);
        state.requests += 1;
        let faults = state.faults;
        count_of(&mut state.tally, role).received += 1;
        let tally = &mut state.tally;
        match fault {
            Some(Fault::RateLimited) => tally.rate_limited += 1,
            Some(Fault::Failed) => tally.failed += 1,
            Some(Fault::Cut) => tally.cut += 1,
            Some(Fault::Slow) => tally.slow += 1,
            None => {}
        }
        if role == Role::Reflect && asked.messages.iter().any(|(_, content)| world.has_canary(content)) {
            tally.canaries.push(world.name());
        }
        let desk = desk_in(asked.last("user")).filter(|_| role == Role::Task);
        if desk.is_some_and(|desk| !ParsedPrompt::new(world, 0, asked.last("system")).names(desk)) {
            tally.without_placeholder += 1;
        }
        fault.map(|fault| (fault, faults))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_of(tally: &mut Tally, role: Role) -> &mut CallCount {
    match role {
        Role::Task => &mut tally.task,
        Role::Reflect => &mut tally.reflect,
        Role::Judge => &mut tally.judge,
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::Split;
    use super::super::family::Family;
    use super::super::rates::Rates;
    use super::*;

    fn body(model: &str, system: &str, user: &str) -> Value {
        json!({"model": model, "seed": 5, "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]})
    }

    fn text(reply: &SimulatedReply) -> &str {
        reply.body["choices"][0]["message"]["content"].as_str().unwrap()
    }

    #[test]
    fn the_model_name_selects_the_world_of_a_request() {
        let simulator = Simulator::default();
        let world = World::draw(Family::NullOpt, 4);
        let case = &world.cases()[0];
        let system = world.seed_prompts()["answer"].replace("{{ inputs.desk }}", &case.desk);
        let reply = simulator.reply(&body("null_opt-4/task", &system, &case.message));
        assert_eq!((reply.status, text(&reply)), (200, world.answer(&system, &case.message, 5).as_str()));
        assert_eq!(
            reply,
            simulator
                .reply(&body("openai/null_opt-4/task", &system, &case.message))
                .with_model("null_opt-4/task")
        );
        let judged = simulator.reply(&body("null_opt-4/judge", "", "Input: a\n\nAnswer: b"));
        assert!(serde_json::from_str::<Value>(text(&judged)).unwrap()["score"].is_number());
        let tally = simulator.tally();
        assert_eq!(
            (tally.task.received, tally.task.answered, tally.judge.received, tally.received()),
            (2, 2, 1, 3)
        );
        assert!(tally.task.input_tokens > 0 && tally.without_placeholder == 0);
    }

    impl SimulatedReply {
        /// The same from a model with another name; the id depends on it.
        fn with_model(mut self, model: &str) -> Self {
            self.body["model"] = json!(model);
            let request = CompletionRequest { model: model.to_owned(), messages: Vec::new(), seed: 5 };
            self.body["id"] =
                written(&request, self.body["choices"][0]["message"]["content"].as_str().unwrap())["id"]
                    .clone();
            self
        }
    }

    #[test]
    fn other_models_are_refused() {
        let simulator = Simulator::default();
        for model in ["one-1", "one-1/other", "other-1/task", "one/task"] {
            assert_eq!(simulator.reply(&body(model, "", "")).status, 404, "{model}");
        }
        assert_eq!(simulator.reply(&json!({})).status, 400);
        assert_eq!((simulator.tally().refused, simulator.tally().received()), (5, 0));
    }

    #[test]
    fn a_canary_at_the_reflector_is_recorded_and_one_at_the_task_model_is_not() {
        let simulator = Simulator::default();
        let world = simulator
            .insert(World::draw(Family::One, 1).with_rates(Rates { refuses: 1.0, ..Rates::default() }));
        let cases = world.cases();
        let of = |split| &cases.iter().find(|case| case.split == Some(split)).unwrap().message;
        let ask = |model: &str, message: &str| {
            let _ = simulator.reply(&body(
                model,
                "",
                &format!("<prompt name=\"answer\">x</prompt> <new_prompt> Input: {message}"),
            ));
        };
        ask("one-1/task", of(Split::Val));
        ask("one-1/reflect", of(Split::Train));
        assert!(simulator.tally().canaries.is_empty());
        ask("one-1/reflect", of(Split::Val));
        ask("one-1/reflect", of(Split::Test));
        assert_eq!(simulator.tally().canaries, ["one-1", "one-1"]);
        assert_eq!(simulator.tally().without_placeholder, 1);
    }

    #[test]
    fn faults_are_injected_and_counted() {
        let faults = Faults {
            seed: 3,
            rate_limited: 0.2,
            retry_after_seconds: 2,
            failed: 0.2,
            cut: 0.2,
            slow: 0.2,
            delay_ms: 9,
        };
        let run = || {
            let simulator = Simulator::new(faults);
            let replies: Vec<SimulatedReply> =
                (0..200).map(|_| simulator.reply(&body("one-1/task", "s", "u"))).collect();
            (replies, simulator.take_tally())
        };
        let (replies, tally) = run();
        assert_eq!((replies.clone(), tally.clone()), run());
        let count = |is: &dyn Fn(&SimulatedReply) -> bool| {
            u64::try_from(replies.iter().filter(|reply| is(reply)).count()).unwrap()
        };
        assert_eq!(
            count(&|reply| reply.status == 429 && reply.retry_after_seconds == Some(2)),
            tally.rate_limited
        );
        assert_eq!(count(&|reply| reply.status == 500), tally.failed);
        assert_eq!(count(&|reply| reply.is_cut), tally.cut);
        assert_eq!(count(&|reply| reply.delay_ms == 9), tally.slow);
        assert!(
            [tally.rate_limited, tally.failed, tally.cut, tally.slow]
                .iter()
                .all(|count| (20..60).contains(count))
        );
        assert_eq!(tally.task.received, 200);
        assert_eq!(tally.task.answered, 200 - tally.rate_limited - tally.failed - tally.cut);
    }
}
