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
    fetches: AtomicUsize,
    /// Permits for fetches; closed: unlimited.
    gate: Semaphore,
}

#[async_trait]
impl KeySource for Provider {
    async fn fetch(&self) -> Result<Vec<u8>, FetchFailed> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
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

fn signed_by_one() -> String {
    signed(&RsaPair::first(), "one")
}

fn signed_by_two() -> String {
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
        let provider = Arc::new(Provider { answers, fetches: AtomicUsize::new(0), gate });
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

    fn fetches(&self) -> usize {
        self.provider.fetches.load(Ordering::SeqCst)
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    async fn wait_for_fetches(&self, times: usize) {
        while self.fetches() < times {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_key_set_is_fetched_again_when_it_is_stale() {
    let world = World::new([keys(&[one()])]);
    for _ in 0..5 {
        assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    }
    assert_eq!(world.fetches(), 1);
    world.advance(299);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    assert_eq!(world.fetches(), 1);
    world.advance(1);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    assert_eq!(world.fetches(), 2);
}

#[tokio::test]
async fn a_removed_key_is_rejected_after_the_set_is_stale() {
    let world = World::new([keys(&[one()]), keys(&[two()])]);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    world.advance(301);
    assert_eq!(world.verdict(&signed_by_one()).await, Err(Refusal::Invalid));
    assert_eq!(world.verdict(&signed_by_two()).await, Ok(()));
    assert_eq!(world.fetches(), 2);
}

#[tokio::test]
async fn a_hundred_concurrent_misses_share_one_fetch() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let waiting = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let (tokens, text) =
                (Arc::clone(&world.tokens), if n % 2 == 0 { signed_by_one() } else { signed_by_two() });
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
    assert_eq!((good, world.fetches()), (50, 1));
}

#[tokio::test]
async fn a_cancelled_request_does_not_cancel_a_shared_fetch() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let verify = || {
        let tokens = Arc::clone(&world.tokens);
        tokio::spawn(async move { tokens.verify(&signed_by_one(), now()).await.is_ok() })
    };
    let first = verify();
    world.wait_for_fetches(1).await;
    let second = verify();
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    world.provider.gate.add_permits(1);
    assert!(second.await.unwrap());
    assert_eq!(world.fetches(), 1);
}

#[tokio::test]
async fn an_abandoned_fetch_does_not_block_the_next() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let tokens = Arc::clone(&world.tokens);
    let left = tokio::spawn(async move { tokens.verify(&signed_by_one(), now()).await.is_ok() });
    world.wait_for_fetches(1).await;
    left.abort();
    let _ = left.await;
    world.advance(60);
    world.provider.gate.add_permits(1);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    assert_eq!(world.fetches(), 2);
}

#[tokio::test]
async fn an_unknown_key_is_fetched_at_once_and_then_every_half_minute() {
    let world = World::new([keys(&[one()]), keys(&[one()]), keys(&[one(), two()])]);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    for _ in 0..50 {
        assert_eq!(world.verdict(&signed_by_two()).await, Err(Refusal::Invalid));
    }
    assert_eq!(world.fetches(), 2);
    world.advance(29);
    assert_eq!(world.verdict(&signed_by_two()).await, Err(Refusal::Invalid));
    assert_eq!(world.fetches(), 2);
    world.advance(1);
    assert_eq!(world.verdict(&signed_by_two()).await, Ok(()));
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    assert_eq!(world.fetches(), 3);
}

#[tokio::test]
async fn an_unknown_key_in_the_first_token_needs_one_fetch() {
    let world = World::new([keys(&[one()])]);
    assert_eq!(world.verdict(&signed_by_two()).await, Err(Refusal::Invalid));
    assert_eq!(world.fetches(), 1);
}

#[tokio::test]
async fn a_token_without_a_key_id_causes_no_fetch() {
    let world = World::new([keys(&[one(), two()])]);
    let nameless = RsaPair::first().sign(r#"{"alg":"RS256"}"#, &payload(json!({})));
    for _ in 0..3 {
        assert_eq!(world.verdict(&nameless).await, Err(Refusal::Invalid));
    }
    assert_eq!(world.fetches(), 1);
}

#[tokio::test]
async fn keys_are_unavailable_until_the_first_set_is_fetched() {
    let world = World::new([down(), down(), keys(&[one()])]);
    for _ in 0..20 {
        assert_eq!(world.verdict(&signed_by_one()).await, Err(Refusal::KeyUnavailable));
    }
    assert_eq!(world.fetches(), 1);
    world.advance(1);
    assert_eq!(world.verdict(&signed_by_one()).await, Err(Refusal::KeyUnavailable));
    world.advance(1);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    assert_eq!(world.fetches(), 3);
}

#[tokio::test]
async fn an_invalid_key_set_counts_as_a_failed_fetch() {
    let large = [keys(&[one()]).unwrap(), vec![b' '; MOST_BYTES]].concat();
    let many = json!({"keys": vec![one(); 101]}).to_string().into_bytes();
    for body in [large, many, b"<html>".to_vec(), b"{}".to_vec(), Vec::new()] {
        let world = World::new([Ok(body), keys(&[one()])]);
        assert_eq!(world.verdict(&signed_by_one()).await, Err(Refusal::KeyUnavailable));
        world.advance(1);
        assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    }
}

#[tokio::test]
async fn an_empty_key_set_verifies_no_token() {
    let world = World::new([keys(&[])]);
    assert_eq!(world.verdict(&signed_by_one()).await, Err(Refusal::Invalid));
}

#[tokio::test]
async fn a_stale_set_is_used_for_a_day_if_the_fetch_fails() {
    let world = World::new([keys(&[one()]), down()]);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    world.advance(300 + 24 * 3600 - 1);
    for _ in 0..20 {
        assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    }
    assert_eq!(world.fetches(), 2);
    // A key outside the cached set: a set was available.
    assert_eq!(world.verdict(&signed_by_two()).await, Err(Refusal::Invalid));
    world.advance(1);
    assert_eq!(world.verdict(&signed_by_one()).await, Err(Refusal::KeyUnavailable));
    assert_eq!(world.verdict(&signed_by_two()).await, Err(Refusal::KeyUnavailable));
}

#[tokio::test]
async fn an_outage_ends_when_the_provider_returns() {
    let world = World::new([keys(&[one()]), down(), keys(&[two()])]);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    world.advance(300);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    world.advance(10);
    assert_eq!(world.verdict(&signed_by_one()).await, Err(Refusal::Invalid));
    assert_eq!(world.verdict(&signed_by_two()).await, Ok(()));
    assert_eq!(world.fetches(), 3);
}

#[tokio::test]
async fn a_fetch_times_out() {
    let world = World::gated(KeySet::default(), [keys(&[one()])], Semaphore::new(0));
    let tokens = Arc::clone(&world.tokens);
    let (sender, result) = oneshot::channel::<Result<Claims, Refusal>>();
    tokio::spawn(async move {
        let _ = sender.send(tokens.verify(&signed_by_one(), now()).await.map_err(|refused| refused.why));
    });
    world.wait_for_fetches(1).await;
    while world.clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    world.clock.advance(LIMIT);
    assert_eq!(result.await.unwrap().err(), Some(Refusal::KeyUnavailable));
    assert_eq!(world.clock.monotonic(), LIMIT);
}

#[tokio::test]
async fn configured_keys_need_no_fetch_and_take_precedence() {
    let world = World::with(set(&[one()]), [down()]);
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    assert_eq!(world.fetches(), 0);
    assert_eq!(world.verdict(&signed_by_two()).await, Err(Refusal::KeyUnavailable));
    // The provider uses the configured key's id for another key.
    let world = World::with(set(&[one()]), [keys(&[RsaPair::second().jwk(json!({"kid": "one"})), two()])]);
    assert_eq!(world.verdict(&signed(&RsaPair::second(), "one")).await, Err(Refusal::Invalid));
    assert_eq!(world.verdict(&signed_by_one()).await, Ok(()));
    assert_eq!(world.verdict(&signed_by_two()).await, Ok(()));
    // Without an id, all keys count.
    let nameless = RsaPair::first().sign(r#"{"alg":"RS256"}"#, &payload(json!({})));
    assert_eq!(world.verdict(&nameless).await, Err(Refusal::Invalid));
}
