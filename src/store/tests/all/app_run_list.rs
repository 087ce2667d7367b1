//! Lists of app runs.

use std::ops::RangeInclusive;

use store::{AppRunsFilter, ListedAppRun};
use uuid::Uuid;
use wire::AppRunState;

use crate::support::World;

const APP: Uuid = Uuid::from_u128(7);
const OTHER: Uuid = Uuid::from_u128(70);

/// Adds an app's runs, one per number; `status` and `error` are expressions over `n`.
async fn add(
    world: &World,
    app: Uuid,
    numbers: RangeInclusive<u32>,
    binding: &str,
    status: &str,
    error: &str,
) {
    let (from, to) = numbers.into_inner();
    let sql = format!(
        "WITH n AS (SELECT n, lpad(to_hex(n), 32, '0')::uuid AS id FROM generate_series({from}, {to}) AS n),
         made AS (INSERT INTO runs (id, workspace_id, workflow_id, version_id, trigger, writer_id, status, inputs, error, created_at,
                 finished_at)
             SELECT id, id, id, id, 'app', id, {status}, '{{}}', {error}, to_timestamp(n),
                 CASE WHEN {status} NOT IN ('queued', 'running', 'waiting') THEN to_timestamp(n + 1) END FROM n)
         INSERT INTO app_runs (run_id, app_id, release_id, binding, handle, user_id)
         SELECT id, '{app}', id, '{binding}', uuid_send(id), CASE WHEN n % 2 = 0 THEN id END FROM n"
    );
    world.database.execute(&sql).await.unwrap();
}

/// The run numbers in a page, and the number of the run after which the next page starts.
async fn page(
    world: &World,
    filter: &AppRunsFilter,
    before: Option<u128>,
    limit: i64,
) -> (Vec<u128>, Option<u128>) {
    let page = world.store.app_runs(APP, filter, before.map(Uuid::from_u128), limit).await.unwrap();
    (page.runs.iter().map(|run| run.run.as_u128()).collect(), page.next.map(|next| next.as_u128()))
}

fn filter_by(states: &[AppRunState], binding: Option<&str>) -> AppRunsFilter {
    AppRunsFilter { states: states.to_vec(), binding: binding.map(str::to_owned) }
}

#[tokio::test]
async fn the_newest_runs_of_an_app_come_first_page_by_page() {
    let world = World::new().await;
    add(&world, APP, 1..=5, "form", "'succeeded'", "NULL::text").await;
    add(&world, OTHER, 6..=9, "form", "'succeeded'", "NULL::text").await;
    let all = filter_by(&[], None);
    assert_eq!(page(&world, &all, None, 2).await, (vec![5, 4], Some(4)));
    assert_eq!(page(&world, &all, Some(4), 2).await, (vec![3, 2], Some(2)));
    assert_eq!(page(&world, &all, Some(2), 2).await, (vec![1], None));
    assert_eq!(page(&world, &all, None, 5).await, (vec![5, 4, 3, 2, 1], None), "exactly full");
    let run = world.store.app_runs(APP, &all, None, 1).await.unwrap().runs.remove(0);
    let expected = ListedAppRun {
        run: Uuid::from_u128(5),
        release: Uuid::from_u128(5),
        binding: "form".into(),
        is_of_member: false,
        state: AppRunState::Succeeded,
        error_code: None,
        created_at: chrono::DateTime::from_timestamp(5, 0).unwrap(),
        finished_at: chrono::DateTime::from_timestamp(6, 0),
    };
    assert_eq!(run, expected);
}

#[tokio::test]
async fn filters_for_app_runs_are_combined() {
    use AppRunState::{Cancelled, Failed, Queued, Running, Succeeded, TimedOut};

    let world = World::new().await;
    let error = |code: &str| {
        let message = r#"a \"code\":\"other\" and \u0000"#;
        format!(r#"'{{"code":"{code}","message":"{message}","node":"n"}}'"#)
    };
    for (number, binding, status, error) in [
        (1, "form", "queued", "NULL::text".to_owned()),
        (2, "form", "running", "NULL::text".to_owned()),
        (3, "mail", "waiting", "NULL::text".to_owned()),
        (4, "form", "succeeded", "NULL::text".to_owned()),
        (5, "mail", "failed", error("node.failed")),
        (6, "form", "failed", error("run.timeout")),
        (7, "form", "cancelled", error("run.cancelled")),
    ] {
        add(&world, APP, number..=number, binding, &format!("'{status}'"), &error).await;
        add(&world, OTHER, number + 100..=number + 100, binding, &format!("'{status}'"), &error).await;
    }
    for (states, binding, expected) in [
        (&[][..], None, &[7, 6, 5, 4, 3, 2, 1][..]),
        (&[Queued], None, &[1]),
        (&[Running], None, &[3, 2]),
        (&[Queued, Running], None, &[3, 2, 1]),
        (&[Queued, Running], Some("mail"), &[3]),
        (&[Succeeded], None, &[4]),
        (&[Failed], None, &[5]),
        (&[TimedOut], None, &[6]),
        (&[Cancelled], None, &[7]),
        (&[Failed, TimedOut, Running], None, &[6, 5, 3, 2]),
        (&[], Some("mail"), &[5, 3]),
        (&[Failed, Queued], Some("form"), &[1]),
        (&[], Some("other"), &[]),
    ] {
        let found = page(&world, &filter_by(states, binding), None, 10).await;
        assert_eq!(found, (expected.to_vec(), None), "{states:?} {binding:?}");
    }
    assert_eq!(page(&world, &filter_by(&[Queued, Running], None), None, 2).await, (vec![3, 2], Some(2)));
    assert_eq!(page(&world, &filter_by(&[Queued, Running], None), Some(2), 2).await, (vec![1], None));
    let runs = world.store.app_runs(APP, &filter_by(&[], None), None, 10).await.unwrap().runs;
    let codes: Vec<Option<&str>> = runs.iter().map(|run| run.error_code.as_deref()).collect();
    let expected = [Some("run.cancelled"), Some("run.timeout"), Some("node.failed"), None, None, None, None];
    assert_eq!(codes, expected);
    let members: Vec<bool> = runs.iter().map(|run| run.is_of_member).collect();
    assert_eq!(members, [false, true, false, true, false, true, false]);
}

#[tokio::test]
async fn a_page_reads_ten_thousand_runs_of_an_app_at_most() {
    let world = World::new().await;
    add(&world, APP, 1..=1, "mail", "'running'", "NULL::text").await;
    add(&world, APP, 2..=2, "mail", "'failed'", "NULL::text").await;
    add(&world, APP, 3..=10_003, "form", "'succeeded'", "NULL::text").await;
    for filter in [filter_by(&[AppRunState::Failed], None), filter_by(&[], Some("mail"))] {
        let (found, next) = page(&world, &filter, None, 10).await;
        assert_eq!((found.len(), next), (0, Some(4)), "the last one that was read");
        assert_eq!(page(&world, &filter, next, 1).await.0, [2]);
    }
    // An index contains the unfinished runs.
    assert_eq!(page(&world, &filter_by(&[AppRunState::Running], None), None, 10).await, (vec![1], None));
    assert_eq!(page(&world, &filter_by(&[], None), None, 1).await, (vec![10_003], Some(10_003)));
}
