//! Actions as a run kind.

use chrono::{DateTime, TimeDelta, Utc};
use engine::RunInput;
use kernel::{ItemKey, ThreadId};
use serde_json::Value;
use store::{LeftRun, RunState, StoreError};
use uuid::Uuid;
use wire::ErrorCode;

use super::MAX_RUN_TIME;
use super::events::{ActionEvents, Widget};
use super::start::TRIGGER;
use crate::kinds;
use crate::kinds::turn::{history_of, run_input};
use crate::plans::LoadedVersion;
use crate::run::StoredOptions;
use crate::run::budget::BudgetAccount;
use crate::run::drive::{ended_with, succeeded};
use crate::run::kind::{Kind, KindRow, PastRun, Run, RunOutcome};
use crate::run::{End, RunPorts, whole};

/// The action kind.
pub(crate) struct ActionRuns;

/// Action-specific data of a run.
#[derive(Debug, Clone)]
pub(crate) struct ActionData {
    pub(super) thread: ThreadId,
    /// `None` in a resumed run, which reads it from the database.
    pub(super) widget: Option<Widget>,
    /// When the action was accepted. The run id may be older: the first request with the same key created it.
    pub(super) accepted: DateTime<Utc>,
    /// The session whose limits apply to its models.
    pub(super) session: Option<String>,
}

impl Kind for ActionRuns {
    type Data = ActionData;
    type ReaderState = Option<Widget>;
    type Events = ActionEvents;
    type Work = RunInput;
    type Opening = ();

    const ROW: KindRow = kinds::ACTION;

    fn own(&self, left: &LeftRun) -> Result<ActionData, String> {
        let thread = left.run.thread_id.ok_or("the action has no thread")?;
        let StoredOptions { session, .. } = StoredOptions::read(left.run.options.as_deref());
        Ok(ActionData { thread, widget: None, accepted: left.run.created_at, session })
    }

    fn account(&self, run: &Run<Self>) -> Option<BudgetAccount> {
        Some(BudgetAccount::without_turn(run.workflow, run.own.session.clone()?))
    }

    fn fresh(&self, run: &Run<Self>) -> Option<Widget> {
        run.own.widget.clone()
    }

    async fn told(
        &self,
        run: &Run<Self>,
        _stopping: bool,
        ports: &RunPorts,
    ) -> Result<(u64, Option<Widget>), StoreError> {
        let action = run.inputs.get("action").unwrap_or(&Value::Null);
        let text = |name| action.get(name).and_then(Value::as_str);
        let widget = match (text("item_id").and_then(|id| ItemKey::parse(id).ok()), text("key")) {
            (Some(id), Some(key)) => {
                let found = ports.store.items_of_run(run.own.thread, Uuid::nil(), &[id]).await?.pop();
                let (thread, key) = (run.own.thread, key.to_owned());
                found.map(|found| Widget { thread, id, item: found.item, key })
            }
            _ => None,
        };
        Ok((ports.store.last_seq(run.stream).await?, widget))
    }

    async fn input(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        _widget: &Option<Widget>,
        ports: &RunPorts,
    ) -> Result<Option<(RunInput, ())>, StoreError> {
        if ports.store.thread(run.own.thread).await?.is_none() {
            return Ok(None);
        }
        let (inputs, accepted) = (run.inputs.clone(), Some(run.own.accepted));
        let input = input(run.id, run.workflow, run.own.thread, inputs, version, accepted, ports);
        Ok(Some((input.await?, ())))
    }

    fn events(&self, run: &Run<Self>, widget: Option<Widget>, _ports: &RunPorts) -> ActionEvents {
        ActionEvents::new(run.id, widget)
    }

    fn ended(events: &mut ActionEvents, outcome: RunOutcome) -> End {
        match outcome {
            RunOutcome::Succeeded(completed) => {
                events.succeeded();
                succeeded(&completed)
            }
            RunOutcome::Failed(error) => {
                events.failed(error.code == ErrorCode::RunTimeout);
                ended_with(RunState::Failed, &error)
            }
            RunOutcome::Stopped | RunOutcome::Abandoned => {
                events.failed(false);
                ended_with(RunState::Cancelled, &whole(ErrorCode::RunCancelled))
            }
        }
    }

    async fn past_input(&self, past: PastRun<'_>, ports: &RunPorts) -> Result<RunInput, StoreError> {
        let PastRun { stored, inputs, version } = past;
        let Some(thread) = stored.thread_id else {
            return Err(StoreError::Corrupt(format!("action {} has no thread", stored.id)));
        };
        input(stored.id, stored.workflow_id, thread, inputs, version, None, ports).await
    }
}

/// The input for an action. `from`: the start of its time limit.
async fn input(
    run: Uuid,
    workflow: Uuid,
    thread: ThreadId,
    inputs: Value,
    version: &LoadedVersion,
    from: Option<DateTime<Utc>>,
    ports: &RunPorts,
) -> Result<RunInput, StoreError> {
    let messages = match version.plan.reads_messages() {
        true => history_of(&ports.store, thread, run).await?,
        false => Vec::new(),
    };
    let limit = TimeDelta::from_std(MAX_RUN_TIME).unwrap_or_default();
    let deadline = from.and_then(|from| from.checked_add_signed(limit));
    Ok(RunInput { deadline, ..run_input(run, workflow, thread, TRIGGER, version, inputs, messages) })
}
