//! Workflow runs.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use wire::operations::runs;
use wire::{CreateRun, Listed, Rerun, RunRecord, RunState, RunSummary, Trace};

use crate::call::with_json;
use crate::client::{Bearer, Client};
use crate::follow::StreamSource;
use crate::{Answer, ClientError, Part, ResumingRun, RunStream};

/// Options for starting a run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Maximum wait for the run's end, in whole seconds up to 60; without it, the service responds at once.
    pub wait: Option<Duration>,
    /// Sent as `Idempotency-Key`: the same key and request start one run.
    pub idempotency_key: Option<String>,
}

/// A started run.
#[derive(Debug, Clone, PartialEq)]
pub struct StartedRun {
    /// The run record; with [`RunOptions::wait`], its state after the wait.
    pub run: RunRecord,
    /// Whether an earlier request with the same key had started it.
    pub replayed: bool,
}

/// A filter for a workspace's runs. A run must match every field that is set.
#[derive(Debug, Clone, Default)]
pub struct RunsFilter {
    /// One of these states; empty: any.
    pub status: Vec<String>,
    /// One of these triggers; empty: any.
    pub trigger: Vec<String>,
    /// The workflow's handle or id.
    pub workflow: Option<String>,
    /// The id of the thread whose turns to list.
    pub thread: Option<String>,
    /// Created at this time (RFC 3339) or later.
    pub from: Option<String>,
    /// Created before this time.
    pub to: Option<String>,
    /// Whether an open question waits for an answer.
    pub waits: Option<bool>,
}

/// Calls fail as [`crate::Answer::ok`] does.
impl Client {
    /// `POST /api/workflows/{ref}/runs`: starts a run.
    ///
    /// # Errors
    /// See above. After a lost response, only a retry with the same key shows whether the run was started.
    pub async fn begin_run(
        &self,
        workflow: &str,
        run: &CreateRun,
        options: &RunOptions,
    ) -> Result<StartedRun, ClientError> {
        let mut answer = self.send_run(workflow, run, options).await?;
        if let Some([whole]) = self.completed(&runs::START_RUN, &[workflow], &answer).await?.as_deref() {
            answer = self.send_run(whole, run, options).await?;
        }
        let replayed = answer.header("idempotency-replayed") == Some("true");
        Ok(StartedRun { run: answer.ok()?, replayed })
    }

    async fn send_run(
        &self,
        workflow: &str,
        run: &CreateRun,
        options: &RunOptions,
    ) -> Result<Answer, ClientError> {
        let mut url = self.place(&runs::START_RUN, &[workflow])?;
        if let Some(wait) = options.wait {
            url.query_pairs_mut().append_pair("wait", &wait.as_secs().to_string());
        }
        let mut request = with_json(self.request(Method::POST, url, Bearer::Service), Some(run));
        if let Some(key) = &options.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        self.answer_after(request, options.wait.unwrap_or_default()).await
    }

    /// `GET /api/workflows/{ref}/runs`: part of a workflow's run list, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn runs(
        &self,
        workflow: &str,
        status: Option<RunState>,
        part: &Part,
    ) -> Result<Listed<RunRecord>, ClientError> {
        let mut query = part.query();
        if let Some(status) = status {
            query.push(("status", status.as_str().to_owned()));
        }
        self.read(&runs::LIST_OF_WORKFLOW, &[workflow], &query).await?.ok()
    }

    /// `GET /api/runs`: a page of a workspace's runs, newest first. An empty page may still have a cursor.
    ///
    /// # Errors
    /// See above.
    pub async fn runs_of_workspace(
        &self,
        filter: &RunsFilter,
        part: &Part,
    ) -> Result<Listed<RunSummary>, ClientError> {
        let mut query = part.query();
        for (name, words) in [("status", &filter.status), ("trigger", &filter.trigger)] {
            if !words.is_empty() {
                query.push((name, words.join(",")));
            }
        }
        let texts = [
            ("workflow", &filter.workflow),
            ("thread", &filter.thread),
            ("from", &filter.from),
            ("to", &filter.to),
        ];
        for (name, text) in texts {
            query.extend(text.clone().map(|text| (name, text)));
        }
        query.extend(filter.waits.map(|waits| ("waits", waits.to_string())));
        self.read(&runs::LIST, &[], &query).await?.ok()
    }

    /// `GET /api/runs/{id}`: one run.
    ///
    /// # Errors
    /// See above.
    pub async fn run(&self, id: &str) -> Result<RunRecord, ClientError> {
        self.read(&runs::READ, &[id], &[]).await?.ok()
    }

    /// `GET /api/runs/{id}/trace`: a run with every attempt of its nodes; reads all pages.
    ///
    /// # Errors
    /// See above.
    pub async fn trace(&self, id: &str) -> Result<Trace, ClientError> {
        let mut trace = self.trace_page(id, None).await?;
        while let Some(cursor) = trace.next_cursor.take() {
            let mut next = self.trace_page(id, Some(&cursor)).await?;
            trace.steps.append(&mut next.steps);
            trace = Trace { steps: trace.steps, usage: trace.usage, ..next };
        }
        Ok(trace)
    }

    /// `GET /api/runs/{id}/trace`: one page of a trace.
    ///
    /// # Errors
    /// See above.
    pub async fn trace_page(&self, id: &str, cursor: Option<&str>) -> Result<Trace, ClientError> {
        let query: Vec<_> = cursor.map(|cursor| ("cursor", cursor.to_owned())).into_iter().collect();
        self.read(&runs::TRACE, &[id], &query).await?.ok()
    }

    /// `POST /api/runs/{id}/cancel`: cancels a run; without effect on an ended one.
    ///
    /// # Errors
    /// See above.
    pub async fn cancel_run(&self, id: &str) -> Result<RunRecord, ClientError> {
        self.change(&runs::CANCEL, &[id], None::<&()>).await?.ok()
    }

    /// `POST /api/runs/{id}/inputs/{key}`: answers a run's question, with any JSON.
    ///
    /// # Errors
    /// See above.
    pub async fn answer_run(&self, id: &str, key: &str, answer: &Value) -> Result<RunRecord, ClientError> {
        self.change(&runs::ANSWER, &[id, key], Some(answer)).await?.ok()
    }

    /// `POST /api/runs/{id}/rerun`: starts a run that repeats another one from a given step.
    ///
    /// # Errors
    /// See above.
    pub async fn rerun(&self, id: &str, wanted: &Rerun) -> Result<RunRecord, ClientError> {
        self.change(&runs::RERUN, &[id], Some(wanted)).await?.ok()
    }

    /// `GET /api/runs/{id}/events`: a run's events after the given one, or from the first. `None` if all were received.
    ///
    /// # Errors
    /// See above; [`ClientError::Protocol`] if the response is not an event stream.
    pub async fn run_events(
        &self,
        id: &str,
        last_event_id: Option<&str>,
    ) -> Result<Option<RunStream>, ClientError> {
        self.read_stream(&source(id), id, last_event_id).await
    }

    /// Follows a run to its end over broken connections, after the given event or from the first one.
    #[must_use]
    pub fn follow_run(&self, id: &str, last_event_id: Option<&str>) -> ResumingRun {
        ResumingRun::rejoin(self, source(id), id, last_event_id)
    }
}

fn source(id: &str) -> StreamSource {
    StreamSource::new(&runs::EVENTS, &[id], Bearer::Service)
}
