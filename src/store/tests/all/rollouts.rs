//! Gates and canaries as rows: started with a version, decided with a result, each once.

use auth::principal::Actor;
use chrono::SubsecRound;
use futures_util::future::join_all;
use kernel::{Clock, SystemClock};
use serde_json::json;
use store::{
    AuditEntry, AuditOutcome, AuditTarget, CanaryEnd, GateResult, StoredCanary, StoredRollout, StoredWorkflow,
};
use uuid::Uuid;
use wire::{AuditAction, CanaryOutcome, GateStatus, RolloutGate};

use crate::support::World;
use crate::versions::version;

fn gate(threshold: f64) -> RolloutGate {
    RolloutGate {
        dataset: "orders".to_owned(),
        dataset_version: None,
        evaluators: vec![json!({"id": "label", "entrypoint": "builtin:exact_match"})],
        threshold,
        max_drop: 0.1,
        max_cases: None,
        budget: None,
    }
}

/// A workflow with a version and a dataset; the gate is set afterwards.
async fn workflow(world: &World, gate: Option<RolloutGate>) -> StoredWorkflow {
    let workflow = world.workflow("w").await.unwrap();
    save(world, &workflow, "first").await;
    let dataset = world.uuid();
    let insert = format!(
        "INSERT INTO datasets (id, workspace_id, workflow_id, name, created_at) VALUES ('{dataset}', '{}', '{}', 'orders', now());
         INSERT INTO dataset_versions (dataset_id, number, n_cases, fingerprint, created_at) VALUES ('{dataset}', 3, 1, 'x', now())",
        workflow.workspace_id, workflow.id
    );
    world.database.execute(&insert).await.unwrap();
    put(world, &workflow, gate, None).await;
    workflow
}

fn entry(workflow: &StoredWorkflow) -> AuditEntry {
    AuditEntry {
        actor: Actor::ANONYMOUS,
        action: AuditAction::WorkflowLiveVersionSet,
        target: Some(AuditTarget { kind: "workflow", id: workflow.id.to_string() }),
        workspace: Some(workflow.workspace_id),
        outcome: AuditOutcome::Success,
        reason: None,
        address: None,
        request_id: None,
    }
}

async fn put(
    world: &World,
    workflow: &StoredWorkflow,
    gate: Option<RolloutGate>,
    canary: Option<StoredCanary>,
) {
    let rollout = StoredRollout {
        workflow_id: workflow.id,
        workspace_id: workflow.workspace_id,
        gate,
        gate_evaluation: None,
        canary,
        last_canary: None,
    };
    world.store.change(async |changes| changes.put_rollout(&rollout).await).await.unwrap();
    assert_eq!(world.store.rollout(workflow.id).await.unwrap(), Some(rollout));
}

async fn save(world: &World, workflow: &StoredWorkflow, graph: &str) -> i32 {
    let new = version(workflow.id, graph, 1);
    world.store.change(async |changes| changes.save_version(new).await).await.unwrap().0.number.unwrap()
}

async fn live(world: &World, workflow: &StoredWorkflow) -> Option<i32> {
    world.store.live_versions(workflow.id).await.unwrap().unwrap().live
}

async fn evaluations(world: &World) -> Vec<(Uuid, i32)> {
    let found = world.store.unfinished_gate_evaluations().await.unwrap();
    found.into_iter().map(|one| (one.run_id, one.version)).collect()
}

async fn settle(world: &World, run: Uuid, score: Result<f64, &str>) {
    let result = GateResult { score: score.map_err(str::to_owned), fingerprint: b"cases".to_vec() };
    world.store.settle_gate_evaluation(None, run, &result).await.unwrap();
}

async fn status(
    world: &World,
    workflow: &StoredWorkflow,
    number: i32,
) -> (GateStatus, Option<f64>, Option<f64>) {
    let (_, gate) = world.store.version_gates(workflow.id, &[number]).await.unwrap().pop().unwrap();
    (gate.status, gate.score, gate.live_score)
}

#[tokio::test]
async fn a_version_becomes_live_once_with_its_result() {
    let world = World::new().await;
    let workflow = workflow(&world, Some(gate(0.5))).await;
    assert_eq!(save(&world, &workflow, "second").await, 2);
    assert_eq!(live(&world, &workflow).await, Some(1));
    let [(second, 2)] = evaluations(&world).await[..] else { panic!("one evaluation") };
    settle(&world, second, Ok(0.8)).await;
    // The live version has no score on these cases.
    assert_eq!(status(&world, &workflow, 2).await, (GateStatus::Running, None, None));
    let [(first, 1)] = evaluations(&world).await[..] else { panic!("one more evaluation") };
    let settles = (0..4).map(|_| settle(&world, first, Ok(0.9)));
    join_all(settles).await;
    assert_eq!(status(&world, &workflow, 2).await, (GateStatus::Passed, Some(0.8), Some(0.9)));
    assert_eq!(live(&world, &workflow).await, Some(2));
    let moves = "SELECT count(*)::text FROM audit_log WHERE action = 'workflow.live_version_set'";
    assert_eq!(world.database.scalar(moves).await, "1");
    // The next one is compared with the existing result.
    save(&world, &workflow, "third").await;
    let [(third, 3)] = evaluations(&world).await[..] else { panic!("one evaluation") };
    settle(&world, third, Ok(0.69)).await;
    assert_eq!(status(&world, &workflow, 3).await, (GateStatus::Failed, Some(0.69), Some(0.8)));
    assert_eq!(live(&world, &workflow).await, Some(2));
    // A repeated result changes nothing.
    settle(&world, third, Ok(1.0)).await;
    assert_eq!(status(&world, &workflow, 3).await.0, GateStatus::Failed);
}

#[tokio::test]
async fn an_older_version_that_passes_later_does_not_become_live() {
    let world = World::new().await;
    let workflow = workflow(&world, Some(gate(0.5))).await;
    save(&world, &workflow, "second").await;
    save(&world, &workflow, "third").await;
    let [(second, 2), (third, 3)] = evaluations(&world).await[..] else { panic!("two evaluations") };
    settle(&world, third, Ok(0.9)).await;
    let found = evaluations(&world).await;
    let first = found.iter().find(|(_, number)| *number == 1).unwrap().0;
    settle(&world, first, Ok(0.2)).await;
    assert_eq!(live(&world, &workflow).await, Some(3));
    settle(&world, second, Ok(0.85)).await;
    // Compared with the version that is live by then.
    assert_eq!(status(&world, &workflow, 2).await, (GateStatus::Passed, Some(0.85), Some(0.9)));
    assert_eq!(live(&world, &workflow).await, Some(3));
}

#[tokio::test]
async fn a_failed_evaluation_is_a_failed_gate() {
    let world = World::new().await;
    let workflow = workflow(&world, Some(gate(0.5))).await;
    save(&world, &workflow, "second").await;
    let (second, _) = evaluations(&world).await[0];
    settle(&world, second, Err("no budget\0")).await;
    let (_, failed) = world.store.version_gates(workflow.id, &[2]).await.unwrap().pop().unwrap();
    assert_eq!((failed.status, failed.error.as_deref()), (GateStatus::Failed, Some("no budget")));
    // A gate whose evaluation could not be started fails at once.
    world.database.execute("UPDATE datasets SET deleted_at = now()").await.unwrap();
    save(&world, &workflow, "third").await;
    assert_eq!(status(&world, &workflow, 3).await.0, GateStatus::Failed);
    assert!(evaluations(&world).await.is_empty());
    assert_eq!(live(&world, &workflow).await, Some(1));
}

#[tokio::test]
async fn a_saved_version_waits_for_the_canary_which_ends_once() {
    let world = World::new().await;
    let workflow = workflow(&world, None).await;
    save(&world, &workflow, "second").await;
    assert_eq!(live(&world, &workflow).await, Some(2), "without a gate and a canary");
    world
        .store
        .change(async |changes| changes.set_live_version(workflow.id, 1, entry(&workflow)).await)
        .await
        .unwrap();
    let since = SystemClock::new().now().trunc_subsecs(6);
    let canary = StoredCanary { version: 2, percent: 10, promote_after_turns: None, since };
    put(&world, &workflow, None, Some(canary)).await;
    save(&world, &workflow, "third").await;
    assert_eq!(live(&world, &workflow).await, Some(1));
    let end = || CanaryEnd { outcome: CanaryOutcome::RolledBack, reason: None, counts: None };
    let ends = (0..4)
        .map(|_| world.store.change(async |changes| changes.end_canary(workflow.id, canary, end()).await));
    let ended = join_all(ends).await.into_iter().filter(|ended| ended.as_ref().unwrap().is_some()).count();
    assert_eq!(ended, 1);
    let rollout = world.store.rollout(workflow.id).await.unwrap().unwrap();
    assert_eq!((rollout.canary, rollout.last_canary.unwrap().outcome), (None, CanaryOutcome::RolledBack));
    // A later canary with the same version is a different one.
    let again = StoredCanary { since: since + chrono::TimeDelta::seconds(1), ..canary };
    put(&world, &workflow, None, Some(again)).await;
    let late = world.store.change(async |changes| changes.end_canary(workflow.id, canary, end()).await).await;
    assert_eq!(late.unwrap(), None);
}

fn canary(version: i32) -> StoredCanary {
    let since = SystemClock::new().now().trunc_subsecs(6);
    StoredCanary { version, percent: 10, promote_after_turns: Some(1), since }
}

fn promoted() -> CanaryEnd {
    CanaryEnd { outcome: CanaryOutcome::Promoted, reason: Some("enough turns".to_owned()), counts: None }
}

/// The actions and reasons in the audit trail.
async fn audited(world: &World) -> String {
    let sql = "SELECT coalesce(string_agg(action || ' ' || reason, ', ' ORDER BY id), '') FROM audit_log
               WHERE action IN ('workflow.live_version_set', 'workflow.canary_promoted', 'workflow.canary_rolled_back')";
    world.database.scalar(sql).await
}

#[tokio::test]
async fn a_canary_whose_gate_fails_is_rolled_back() {
    let world = World::new().await;
    let workflow = workflow(&world, Some(gate(0.5))).await;
    save(&world, &workflow, "second").await;
    let [(second, 2)] = evaluations(&world).await[..] else { panic!("one evaluation") };
    // The gate has not decided yet when the canary is set.
    let second_canary = canary(2);
    put(&world, &workflow, Some(gate(0.5)), Some(second_canary)).await;
    let early = world
        .store
        .change(async |changes| changes.end_canary(workflow.id, second_canary, promoted()).await)
        .await;
    assert_eq!((early.unwrap(), live(&world, &workflow).await), (None, Some(1)), "its gate decides first");
    settle(&world, second, Ok(0.1)).await;
    let rollout = world.store.rollout(workflow.id).await.unwrap().unwrap();
    let last = rollout.last_canary.clone().unwrap();
    assert_eq!((rollout.canary, last.outcome), (None, CanaryOutcome::RolledBack));
    let why = "it failed its gate: the score 0.1000 is below the threshold 0.5";
    assert_eq!(last.reason.as_deref(), Some(why));
    assert_eq!(audited(&world).await, format!("workflow.canary_rolled_back version 2: {why}"));
    // A canary that has ended in the meantime is not promoted, either.
    let change = world
        .store
        .change(async |changes| changes.end_canary(workflow.id, second_canary, promoted()).await)
        .await;
    assert_eq!(change.unwrap(), None);
    let again = canary(2);
    put(&world, &workflow, None, Some(again)).await;
    let change =
        world.store.change(async |changes| changes.end_canary(workflow.id, again, promoted()).await).await;
    assert_eq!(change.unwrap(), Some(CanaryOutcome::RolledBack));
    assert_eq!(live(&world, &workflow).await, Some(1));
}

#[tokio::test]
async fn a_promoted_canary_is_live_and_both_are_audited() {
    let world = World::new().await;
    let workflow = workflow(&world, None).await;
    save(&world, &workflow, "second").await;
    world
        .store
        .change(async |changes| changes.set_live_version(workflow.id, 1, entry(&workflow)).await)
        .await
        .unwrap();
    let canary = canary(2);
    put(&world, &workflow, None, Some(canary)).await;
    let change =
        world.store.change(async |changes| changes.end_canary(workflow.id, canary, promoted()).await).await;
    assert_eq!(change.unwrap(), Some(CanaryOutcome::Promoted));
    assert_eq!(live(&world, &workflow).await, Some(2));
    assert_eq!(
        audited(&world).await,
        "workflow.live_version_set from version 2 to 1, workflow.canary_promoted version 2: enough turns, \
         workflow.live_version_set the canary was promoted: from version 1 to 2"
    );
}

#[tokio::test]
async fn evaluations_of_one_workspace_do_not_delay_those_of_another() {
    let world = World::new().await;
    let workflow = workflow(&world, Some(gate(0.5))).await;
    save(&world, &workflow, "second").await;
    let [(own, 2)] = evaluations(&world).await[..] else { panic!("one evaluation") };
    // Older ones from another workspace; some of them execute.
    let other = world.uuid();
    let insert = format!(
        "INSERT INTO gate_evaluations (run_id, workflow_id, version, workspace_id, key, request, created_at)
             SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '{other}', n, '{other}', '', '{{}}', now()
             FROM generate_series(1, 300) n;
         INSERT INTO runs (id, workspace_id, workflow_id, version_id, trigger, writer_id, status, inputs, created_at)
             SELECT run_id, workspace_id, workflow_id, workflow_id, 'gate', workflow_id, 'running', '{{}}', now()
             FROM gate_evaluations WHERE workspace_id = '{other}' AND version <= 150"
    );
    world.database.execute(&insert).await.unwrap();
    let found = evaluations(&world).await;
    assert_eq!(found.len(), 100);
    assert_eq!(found.iter().take(2).map(|(_, version)| *version).collect::<Vec<_>>(), [151, 2]);
    assert!(found.iter().any(|(run, _)| *run == own));
    // An evaluation whose run has ended waits for its result.
    let ended = "UPDATE runs SET finished_at = now() WHERE trigger = 'gate'";
    world.database.execute(ended).await.unwrap();
    assert_eq!(evaluations(&world).await[0].1, 1);
}
