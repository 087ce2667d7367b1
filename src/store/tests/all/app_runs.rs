//! App runs: their rows, and their admission.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use futures_util::future::join_all;
use kernel::ManualClock;
use store::batch::{AppRunRow, Batch, RunRow, StreamRow};
use store::{Admitted, AnonymousLimits, AppAdmission, MinuteLimit, Reserved, RunState};
use uuid::Uuid;

use crate::support::World;

const APP: Uuid = Uuid::from_u128(7);
const RELEASE: Uuid = Uuid::from_u128(8);

/// An app run with this handle.
fn start(world: &World, workspace: Uuid, handle: &[u8]) -> (Uuid, Batch) {
    let id = world.uuid();
    let run = RunRow {
        id,
        workspace_id: workspace,
        workflow_id: Uuid::from_u128(1),
        version_id: Uuid::from_u128(2),
        trigger: "app",
        thread_id: None,
        stream_id: Some(id),
        inputs: "{}".into(),
        options: None,
        created_at: DateTime::UNIX_EPOCH,
    };
    let row = AppRunRow {
        run_id: id,
        app_id: APP,
        release_id: RELEASE,
        binding: "form".into(),
        handle: handle.to_vec(),
        visitor: Some(vec![1; 32]),
        user_id: Some(Uuid::from_u128(9)),
        network: Some("192.0.2.1".into()),
    };
    let stream = StreamRow { id, run_id: id, workflow_id: run.workflow_id, thread_id: None, dialect: None };
    (id, Batch { runs: vec![run], streams: vec![stream], app_runs: vec![row], ..Batch::default() })
}

/// A start with these limits and request data.
struct Start<'a> {
    key: &'a str,
    digest: &'a [u8],
    minutes: &'a [MinuteLimit],
    anonymous: Option<&'a AnonymousLimits>,
    fits: bool,
}

impl World {
    async fn admit(&self, start: Start<'_>) -> Admitted<Uuid> {
        self.admit_within(start, 100).await
    }

    /// Admits a start for a binding with this maximum of unfinished runs.
    async fn admit_within(&self, start: Start<'_>, max_concurrent: u32) -> Admitted<Uuid> {
        let run = self.uuid();
        let scopes = ["network".to_owned(), format!("visitor {run}")];
        let admission = AppAdmission {
            scopes: &scopes,
            key: start.key,
            digest: start.digest,
            outcome: &run,
            run,
            app: APP,
            binding: "form",
            workflow: Uuid::from_u128(1),
            max_concurrent,
            minutes: start.minutes,
            anonymous: start.anonymous,
            fits: start.fits,
        };
        self.store.admit_app_run(&admission).await.unwrap()
    }
}

#[tokio::test]
async fn a_run_of_an_app_is_found_by_its_handle_alone() {
    let world = World::new().await;
    let (lease, workspace) = (world.writer().await, world.workspace().await);
    let (run, batch) = start(&world, workspace, b"handle");
    world.commit(lease, &batch).await.unwrap();
    // Sent again after its answer was lost.
    world.commit(lease, &batch).await.unwrap();
    let found = world.store.app_run(APP, b"handle").await.unwrap().unwrap();
    assert_eq!((found.run, found.release, found.binding.as_str()), (run, RELEASE, "form"));
    assert_eq!((found.user, found.status), (Some(Uuid::from_u128(9)), RunState::Queued));
    assert_eq!(world.store.app_run(RELEASE, b"handle").await.unwrap(), None);
    assert_eq!(world.store.app_run(APP, b"other").await.unwrap(), None);
    assert_eq!(world.database.scalar("SELECT count(*) FROM app_runs").await, "1");
}

#[tokio::test]
async fn equal_concurrent_starts_are_admitted_once() {
    let world = World::new().await;
    let minutes = [MinuteLimit { client: "c".into(), most: 1 }];
    let all = (0..16).map(|_| {
        world.admit(Start { key: "k", digest: b"d", minutes: &minutes, anonymous: None, fits: true })
    });
    let all = join_all(all).await;
    let new = all.iter().filter(|one| matches!(one, Admitted::Reserved(Reserved::New, _))).count();
    let known: Vec<Uuid> = all
        .iter()
        .filter_map(|one| match one {
            Admitted::Reserved(Reserved::Same(run), false) => Some(*run),
            _ => None,
        })
        .collect();
    assert_eq!((new, known.len()), (1, 15), "{all:?}");
    assert!(known.iter().all(|run| *run == known[0]));
    let other =
        world.admit(Start { key: "k", digest: b"e", minutes: &[], anonymous: None, fits: true }).await;
    assert_eq!(other, Admitted::Reserved(Reserved::Different, false));
}

#[tokio::test]
async fn a_rejection_reserves_nothing_and_an_unfit_start_counts_per_minute() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let minutes = [MinuteLimit { client: "a".into(), most: 3 }, MinuteLimit { client: "b".into(), most: 2 }];
    let admit = async |key: &str, fits: bool| {
        world.admit(Start { key, digest: b"d", minutes: &minutes, anonymous: None, fits }).await
    };
    assert_eq!(admit("k", false).await, Admitted::Unfit);
    assert_eq!(world.database.scalar("SELECT count(*) FROM idempotency_keys").await, "0");
    assert_eq!(admit("k", true).await, Admitted::Reserved(Reserved::New, false));
    assert_eq!(admit("l", true).await, Admitted::Limited(TimeDelta::seconds(30)));
    assert_eq!(world.database.scalar("SELECT count(*) FROM idempotency_keys").await, "2");
    // A start that the second rate limit rejected does not count toward the first one.
    let first = [MinuteLimit { client: "a".into(), most: 3 }];
    let more = Start { key: "m", digest: b"d", minutes: &first, anonymous: None, fits: true };
    assert_eq!(world.admit(more).await, Admitted::Reserved(Reserved::New, false));
    clock.advance(Duration::from_secs(120));
    world.store.forget_old_app_limits(kernel::Clock::now(&clock)).await.unwrap();
    assert_ne!(world.database.scalar("SELECT count(*) FROM app_limits").await, "0", "the day has not ended");
    clock.advance(Duration::from_secs(86_400));
    world.store.forget_old_app_limits(kernel::Clock::now(&clock)).await.unwrap();
    assert_eq!(world.database.scalar("SELECT count(*) FROM app_limits").await, "0");
}

#[tokio::test]
async fn stored_and_reserved_starts_count_as_unfinished_runs() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let limits =
        AnonymousLimits { network: "192.0.2.1".into(), unfinished: Some(2), day: None, app_day: None };
    let admit = async |key: &str| {
        world.admit(Start { key, digest: b"d", minutes: &[], anonymous: Some(&limits), fits: true }).await
    };
    let new = Admitted::Reserved(Reserved::New, false);
    let refused = Admitted::Limited(TimeDelta::seconds(1));
    assert_eq!(
        (admit("a").await, admit("b").await, admit("c").await),
        (new.clone(), new.clone(), refused.clone())
    );
    // An admitted run that is not stored after ten seconds will never be stored.
    clock.advance(Duration::from_secs(11));
    let (lease, workspace) = (world.writer().await, world.workspace().await);
    world.commit(lease, &start(&world, workspace, b"one").1).await.unwrap();
    assert_eq!((admit("d").await, admit("e").await), (new.clone(), refused));
    world.database.execute("UPDATE runs SET finished_at = now(), status = 'succeeded'").await.unwrap();
    assert_eq!(admit("f").await, new);
}

#[tokio::test]
async fn unfinished_runs_of_any_age_count_for_their_binding() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let (lease, workspace) = (world.writer().await, world.workspace().await);
    for handle in [b"one", b"two", b"six"] {
        world.commit(lease, &start(&world, workspace, handle).1).await.unwrap();
    }
    let other = "UPDATE app_runs SET binding = 'other' WHERE handle = 'six'";
    world.database.execute(other).await.unwrap();
    let admit = async |key: &str, most: u32| {
        let start = Start { key, digest: b"d", minutes: &[], anonymous: None, fits: true };
        world.admit_within(start, most).await
    };
    let refused = Admitted::Limited(TimeDelta::seconds(1));
    assert_eq!(admit("a", 3).await, Admitted::Reserved(Reserved::New, false));
    assert_eq!(admit("b", 2).await, refused);
    // They may have waited in a queue.
    clock.advance(Duration::from_secs(2 * 3_600));
    assert_eq!(admit("c", 2).await, refused);
    world.database.execute("UPDATE runs SET finished_at = now() WHERE id = (SELECT run_id FROM app_runs WHERE handle = 'one')").await.unwrap();
    assert_eq!(admit("d", 2).await, Admitted::Reserved(Reserved::New, false));
}
