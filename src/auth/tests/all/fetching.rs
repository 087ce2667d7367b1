//! Fetched key sets: fetch frequency, lifetime, and behaviour when they are not available.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use auth::jwt::jwks::{CachedKeys, FetchFailed, KeySet, KeySource, MOST_BYTES, Remote};
use auth::jwt::{AccessRules, AccessTokens, Claims, Refusal};
use futures_util::future::join_all;
use kernel::{Clock as _, ManualClock};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::rsa::RsaPair;
use crate::support::{now, payload, rules, set};

const TTL: Duration = Duration::from_secs(300);
const LIMIT: Duration = Duration::from_secs(5);

/// The provider's answers, in order; the last one repeats.
struct Provider {
    answers: Mutex<VecDeque<Result<Vec<u8>, FetchFailed>>>,
    asked: AtomicUsize,
    /// Permits for fetches; closed: unlimited.
    gate: Semaphore,
}

#[async_trait]
impl KeySource for Provider {
    async fn fetch(&self) -> Result<Vec<u8>, FetchFailed> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if let Ok(permit) = self.gate.acquire().await {
            permit.forget();
        }
        let mut answers = self.answers.lock();
        if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() }
    }
}

struct World {
    provider: Arc<Provider>,
    clock: ManualClock,
    tokens: Arc<AccessTokens>,
}

fn keys(keys: &[Value]) -> Result<Vec<u8>, FetchFailed> {
    Ok(json!({"keys": keys}).to_string().into_bytes())
}

fn down() -> Result<Vec<u8>, FetchFailed> {
    Err(FetchFailed("nobody answers".to_owned()))
}

fn one() -> Value {
    RsaPair::first().jwk(json!({"kid": "one"}))
}

fn two() -> Value {
    RsaPair::second().jwk(json!({"kid": "two"}))
}

fn signed(pair: &RsaPair, kid: &str) -> String {
    pair.sign(&json!({"alg": "RS256", "kid": kid}).to_string(), &payload(json!({})))
}

fn by_one() -> String {
    signed(&RsaPair::first(), "one")
}

fn by_two() -> String {
    signed(&RsaPair::second(), "two")
}

impl World {
    fn new(answers: impl IntoIterator<Item = Result<Vec<u8>, FetchFailed>>) -> Self {
        Self::with(KeySet::default(), answers)
    }

    fn with(fixed: KeySet, answers: impl IntoIterator<Item = Result<Vec<u8>, FetchFailed>>) -> Self {
        let gate = Semaphore::new(0);
        gate.close();
        Self::gated(fixed, answers, gate)
    }

    fn gated(
        fixed: KeySet,
        answers: impl IntoIterator<Item = Result<Vec<u8>, FetchFailed>>,
        gate: Semaphore,
    ) -> Self {
        let answers = Mutex::new(answers.into_iter().collect());
        let provider = Arc::new(Provider { answers, asked: AtomicUsize::new(0), gate });
        let clock = ManualClock::new(now());
        let source: Arc<dyn KeySource> = Arc::<Provider>::clone(&provider);
        let remote = Remote::new(source, TTL, LIMIT, Arc::new(clock.clone()));
        let keys = Some(Arc::new(CachedKeys::new(fixed, Some(remote))));
        let tokens = Arc::new(AccessTokens::new(AccessRules { keys, ..rules() }));
        Self { provider, clock, tokens }
    }

    /// The wall clock does not move, so tokens stay valid while the sets age.
    async fn verdict(&self, token: &str) -> Result<(), Refusal> {
        self.tokens.verify(token, now()).await.map(drop).map_err(|refused| refused.why)
    }

    fn asked(&self) -> usize {
        self.provider.asked.load(Ordering::SeqCst)
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    async fn asks(&self, times: usize) {
        while self.asked() < times {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_set_is_fetched_once_and_again_when_it_is_old() {
    let world = World::new([keys(&[one()])]);
    for _ in 0..5 {
        assert_eq!(world.verdict(&by_one()).await, Ok(()));
    }
    assert_eq!(world.asked(), 1);
    world.pass(299);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    assert_eq!(world.asked(), 1);
    world.pass(1);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn a_key_that_was_taken_away_is_refused_once_the_set_is_old() {
    let world = World::new([keys(&[one()]), keys(&[two()])]);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    world.pass(301);
    assert_eq!(world.verdict(&by_one()).await, Err(Refusal::Invalid));
    assert_eq!(world.verdict(&by_two()).await, Ok(()));
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn a_hundred_misses_are_one_fetch() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let waiting = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let (tokens, text) = (Arc::clone(&world.tokens), if n % 2 == 0 { by_one() } else { by_two() });
            let waiting = Arc::clone(&waiting);
            tokio::spawn(async move {
                waiting.fetch_add(1, Ordering::SeqCst);
                tokens.verify(&text, now()).await.is_ok()
            })
        })
        .collect();
    while waiting.load(Ordering::SeqCst) < 100 {
        tokio::task::yield_now().await;
    }
    world.provider.gate.add_permits(100);
    let good = join_all(tasks).await.into_iter().filter(|good| *good.as_ref().unwrap()).count();
    assert_eq!((good, world.asked()), (50, 1));
}

#[tokio::test]
async fn one_that_leaves_does_not_end_the_fetch_of_the_others() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let verify = || {
        let tokens = Arc::clone(&world.tokens);
        tokio::spawn(async move { tokens.verify(&by_one(), now()).await.is_ok() })
    };
    let first = verify();
    world.asks(1).await;
    let second = verify();
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    world.provider.gate.add_permits(1);
    assert!(second.await.unwrap());
    assert_eq!(world.asked(), 1);
}

#[tokio::test]
async fn a_fetch_that_all_have_left_does_not_stand_in_the_way() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let tokens = Arc::clone(&world.tokens);
    let left = tokio::spawn(async move { tokens.verify(&by_one(), now()).await.is_ok() });
    world.asks(1).await;
    left.abort();
    let _ = left.await;
    world.pass(60);
    world.provider.gate.add_permits(1);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    assert_eq!(world.asked(), 2);
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_at_once_and_then_every_half_minute() {
    let world = World::new([keys(&[one()]), keys(&[one()]), keys(&[one(), two()])]);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    for _ in 0..50 {
        assert_eq!(world.verdict(&by_two()).await, Err(Refusal::Invalid));
    }
    assert_eq!(world.asked(), 2);
    world.pass(29);
    assert_eq!(world.verdict(&by_two()).await, Err(Refusal::Invalid));
    assert_eq!(world.asked(), 2);
    world.pass(1);
    assert_eq!(world.verdict(&by_two()).await, Ok(()));
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    assert_eq!(world.asked(), 3);
}

#[tokio::test]
async fn an_unknown_key_as_the_first_token_is_one_fetch() {
    let world = World::new([keys(&[one()])]);
    assert_eq!(world.verdict(&by_two()).await, Err(Refusal::Invalid));
    assert_eq!(world.asked(), 1);
}

#[tokio::test]
async fn a_token_without_a_name_fetches_nothing_more() {
    let world = World::new([keys(&[one(), two()])]);
    let nameless = RsaPair::first().sign(r#"{"alg":"RS256"}"#, &payload(json!({})));
    for _ in 0..3 {
        assert_eq!(world.verdict(&nameless).await, Err(Refusal::Invalid));
    }
    assert_eq!(world.asked(), 1);
}

#[tokio::test]
async fn without_any_set_the_key_is_unavailable_and_then_it_is_there() {
    let world = World::new([down(), down(), keys(&[one()])]);
    for _ in 0..20 {
        assert_eq!(world.verdict(&by_one()).await, Err(Refusal::KeyUnavailable));
    }
    assert_eq!(world.asked(), 1);
    world.pass(1);
    assert_eq!(world.verdict(&by_one()).await, Err(Refusal::KeyUnavailable));
    world.pass(1);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    assert_eq!(world.asked(), 3);
}

#[tokio::test]
async fn what_is_no_set_counts_as_a_failure() {
    let large = [keys(&[one()]).unwrap(), vec![b' '; MOST_BYTES]].concat();
    let many = json!({"keys": vec![one(); 101]}).to_string().into_bytes();
    for body in [large, many, b"<html>".to_vec(), b"{}".to_vec(), Vec::new()] {
        let world = World::new([Ok(body), keys(&[one()])]);
        assert_eq!(world.verdict(&by_one()).await, Err(Refusal::KeyUnavailable));
        world.pass(1);
        assert_eq!(world.verdict(&by_one()).await, Ok(()));
    }
}

#[tokio::test]
async fn an_empty_set_knows_nobody() {
    let world = World::new([keys(&[])]);
    assert_eq!(world.verdict(&by_one()).await, Err(Refusal::Invalid));
}

#[tokio::test]
async fn a_set_that_cannot_be_fetched_anew_is_used_for_a_day_more() {
    let world = World::new([keys(&[one()]), down()]);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    world.pass(300 + 24 * 3600 - 1);
    for _ in 0..20 {
        assert_eq!(world.verdict(&by_one()).await, Ok(()));
    }
    assert_eq!(world.asked(), 2);
    // A key outside the cached set: a set was available.
    assert_eq!(world.verdict(&by_two()).await, Err(Refusal::Invalid));
    world.pass(1);
    assert_eq!(world.verdict(&by_one()).await, Err(Refusal::KeyUnavailable));
    assert_eq!(world.verdict(&by_two()).await, Err(Refusal::KeyUnavailable));
}

#[tokio::test]
async fn an_outage_ends_when_the_provider_is_back() {
    let world = World::new([keys(&[one()]), down(), keys(&[two()])]);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    world.pass(300);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    world.pass(10);
    assert_eq!(world.verdict(&by_one()).await, Err(Refusal::Invalid));
    assert_eq!(world.verdict(&by_two()).await, Ok(()));
    assert_eq!(world.asked(), 3);
}

#[tokio::test]
async fn a_fetch_ends_when_its_time_is_up() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let tokens = Arc::clone(&world.tokens);
    let (tell, told) = oneshot::channel::<Result<Claims, Refusal>>();
    tokio::spawn(async move {
        let _ = tell.send(tokens.verify(&by_one(), now()).await.map_err(|refused| refused.why));
    });
    world.asks(1).await;
    while world.clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    world.clock.advance(LIMIT);
    assert_eq!(told.await.unwrap().err(), Some(Refusal::KeyUnavailable));
    assert_eq!(world.clock.monotonic(), LIMIT);
}

#[tokio::test]
async fn configured_keys_need_no_fetch_and_come_first() {
    let world = World::with(set(&[one()]), [down()]);
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    assert_eq!(world.asked(), 0);
    assert_eq!(world.verdict(&by_two()).await, Err(Refusal::KeyUnavailable));
    // The provider uses the configured key's id for another key.
    let world = World::with(set(&[one()]), [keys(&[RsaPair::second().jwk(json!({"kid": "one"})), two()])]);
    assert_eq!(world.verdict(&signed(&RsaPair::second(), "one")).await, Err(Refusal::Invalid));
    assert_eq!(world.verdict(&by_one()).await, Ok(()));
    assert_eq!(world.verdict(&by_two()).await, Ok(()));
    // Without an id, all keys count.
    let nameless = RsaPair::first().sign(r#"{"alg":"RS256"}"#, &payload(json!({})));
    assert_eq!(world.verdict(&nameless).await, Err(Refusal::Invalid));
}
