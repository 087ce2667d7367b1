//! Attempts interrupted by a crash or restart: started in a run's last life without an end.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use engine::RecordedStep;
use store::{InterruptedAttempt, StoreError};
use uuid::Uuid;
use wire::{RunEvent, RunFrame, sse};

use super::RunPorts;

/// Maximum events read per run; for longer runs, only attempts whose start is in the journal are known.
const MOST: u64 = 2_000;
/// Rows per page, since each row's events take up to 64 KiB.
const ROWS: i64 = 50;

/// Start times by node, visit and attempt.
type Begun = BTreeMap<(String, u32, u32), DateTime<Utc>>;

/// Stores the attempts that a run's last life left unfinished. `events`: the last event's number, if the run has a
/// separate stream.
pub(crate) async fn keep(run: Uuid, events: Option<u64>, recorded: &[RecordedStep], ports: &RunPorts) {
    let kept = async {
        let mut begun = match events.filter(|last| *last <= MOST) {
            Some(_) => begun_last(run, ports).await?,
            None => Begun::new(),
        };
        for row in recorded.iter().filter(|row| row.result.is_none() && row.error.is_none()) {
            begun.entry((row.node.clone(), row.visit, row.attempt)).or_insert(row.started_at);
        }
        for row in recorded.iter().filter(|row| row.result.is_some() || row.error.is_some()) {
            ended(&mut begun, &row.node, row.visit, row.attempt);
        }
        if begun.is_empty() {
            return Ok(());
        }
        let noticed_at = ports.clock.now();
        let attempts = begun.into_iter().filter_map(|((node, visit, attempt), started_at)| {
            let (visit, attempt) = (i32::try_from(visit).ok()?, i32::try_from(attempt).ok()?);
            Some(InterruptedAttempt { node, visit, attempt, started_at, noticed_at })
        });
        ports.store.keep_interrupted(run, &attempts.collect::<Vec<_>>()).await
    };
    if let Err(error) = kept.await {
        tracing::warn!(%run, %error, "failed to record interrupted attempts");
    }
}

/// Collects unfinished attempts from the events of the run's last life.
async fn begun_last(run: Uuid, ports: &RunPorts) -> Result<Begun, StoreError> {
    let (mut begun, mut seen) = (Begun::new(), 0);
    loop {
        let rows = ports.store.frames_after(run, seen, ROWS).await?;
        let Some(last) = rows.last() else { return Ok(begun) };
        seen = last.last_seq;
        for row in &rows {
            follow(&mut begun, &row.frames);
            tokio::task::consume_budget().await;
        }
    }
}

fn follow(begun: &mut Begun, frames: &str) {
    for event in sse::data(frames) {
        let Ok(frame) = serde_json::from_str::<RunFrame>(event) else { continue };
        match frame.event {
            // Attempts interrupted in earlier lives are already stored.
            RunEvent::RunStarted { .. } => begun.clear(),
            RunEvent::StepStarted { node, visit, attempt } => {
                if let Ok(at) = frame.at.parse() {
                    begun.insert((node, visit, attempt), at);
                }
            }
            RunEvent::StepCompleted { node, visit, attempt, .. }
            | RunEvent::StepFailed { node, visit, attempt, .. } => {
                ended(begun, &node, visit, attempt);
            }
            _ => {}
        }
    }
}

/// Removes the ended attempt and the attempts inside it: after a sibling's limit or failure, those have no end event.
fn ended(begun: &mut Begun, node: &str, visit: u32, attempt: u32) {
    begun.remove(&(node.to_owned(), visit, attempt));
    let visit = if visit > 1 { format!("#{visit}") } else { String::new() };
    let attempt = if attempt > 1 { format!("~{attempt}") } else { String::new() };
    let path = format!("{node}{visit}{attempt}");
    begun.retain(|(inside, ..), _| {
        !inside.strip_prefix(&path).is_some_and(|rest| rest.starts_with(['/', '[']))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_steps_of_the_last_life_are_interrupted() {
        let frames = |events: Vec<RunEvent>| {
            let mut text = String::new();
            for (seq, event) in (1..).zip(events) {
                let at = format!("2026-11-23T12:00:{seq:02}Z");
                let frame = RunFrame { event, run_id: "r".into(), seq, at };
                sse::push_event(&mut text, "r", seq, &serde_json::to_string(&frame).unwrap());
            }
            text
        };
        let run = |resumed| RunEvent::RunStarted { workflow_id: "w".into(), version: Some(1), resumed };
        let start = |node: &str, visit| RunEvent::StepStarted { node: node.into(), visit, attempt: 1 };
        let end = |node: &str, visit| RunEvent::StepCompleted {
            node: node.into(),
            visit,
            attempt: 1,
            result: serde_json::Value::Null,
            result_bytes: None,
        };
        let mut begun = Begun::new();
        follow(
            &mut begun,
            &frames(vec![run(false), start("a", 1), end("a", 1), start("b", 1), start("c", 1)]),
        );
        let names: Vec<_> = begun.keys().map(|(node, ..)| node.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
        follow(&mut begun, &frames(vec![run(true), start("b", 1), end("b", 1), start("b", 2)]));
        let left: Vec<_> = begun.iter().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(*left[0].0, ("b".to_owned(), 2, 1));
        assert_eq!(left[0].1.to_rfc3339(), "2026-11-23T12:00:04+00:00");
        // Attempts inside a container end with it, even without end events.
        let inside = ["each[0]", "each[0]/said", "each#2[0]", "each2", "each"];
        let starts = inside.iter().map(|node| start(node, 1)).collect();
        follow(&mut begun, &frames(starts));
        follow(&mut begun, &frames(vec![end("each", 1)]));
        let names: Vec<_> = begun.keys().map(|(node, ..)| node.as_str()).collect();
        assert_eq!(names, ["b", "each#2[0]", "each2"]);
    }
}
