//! Error messages of commands.

use std::fmt::Write as _;

use bundle::{Code, Finding};
use client::{ClientError, TransportFault};
use serde::Serialize;
use serde_json::json;
use wire::{BundleFinding, ErrorCode, FieldError};

use crate::terminal::{Paint, harmless};

/// The hint for a missing or rejected credential.
pub(crate) const SIGN_IN_HINT: &str = "Sign in with `callboard login`, or set a token with --service-token, SERVICE_SERVICE_TOKEN or the profile.";

/// An error message for the user, with everything that helps to fix the problem.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    status: u8,
    message: String,
    code: Option<String>,
    request_id: Option<String>,
    problems: Vec<Problem>,
    findings: Vec<BundleFinding>,
    hints: Vec<String>,
}

/// A problem at a location.
#[derive(Debug, Serialize)]
struct Problem {
    #[serde(flatten)]
    field: FieldError,
    #[serde(flatten)]
    place: Option<SourceLocation>,
}

/// A location in a file.
#[derive(Debug, Serialize)]
pub(crate) struct SourceLocation {
    pub(crate) file: String,
    pub(crate) line: usize,
}

/// Maps JSON pointers to file locations.
pub(crate) trait Places {
    /// `None` if the pointer does not refer to a file.
    fn place(&self, pointer: &str) -> Option<SourceLocation>;
}

/// For requests without content from files.
impl Places for () {
    fn place(&self, _pointer: &str) -> Option<SourceLocation> {
        None
    }
}

/// A complaint in the service's own error format.
#[derive(Serialize)]
struct ErrorOutput<'a> {
    message: &'a str,
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Problem],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    findings: &'a [BundleFinding],
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl Complaint {
    /// An operation failed: exit status 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { status: 1, message: message.into(), ..Self::default() }
    }

    /// The arguments are not valid: exit status 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { status: 2, message: message.into(), ..Self::default() }
    }

    /// A bundle that cannot be archived, reported like a refusal by the service.
    pub(crate) fn of_bundle(findings: Vec<Finding>) -> Self {
        let code = findings.first().map(|first| first.code);
        let message = code.map(Code::message).unwrap_or_default();
        let finding = |found: Finding| BundleFinding {
            code: found.code.as_str().to_owned(),
            path: found.path,
            line: found.line,
            detail: found.detail,
        };
        let code = code.map(|code| code.as_str().to_owned());
        let findings = findings.into_iter().map(finding).collect();
        Self { code, findings, ..Self::failed(message) }
    }

    /// Converts a client error for a service at `base`.
    pub(crate) fn from_client_error(error: ClientError, base: &str) -> Self {
        let status = error.kind().exit_code();
        match error {
            ClientError::Api { detail, .. } => {
                let problems = detail.errors.into_iter().map(|field| Problem { field, place: None });
                let complaint = Self {
                    status,
                    message: detail.message,
                    code: Some(detail.code),
                    request_id: detail.request_id,
                    problems: problems.collect(),
                    findings: detail.findings,
                    hints: Vec::new(),
                };
                complaint.with_usual_hint()
            }
            ClientError::Transport { fault, source } => {
                let cause = source.as_deref().and_then(|error| root(error)).map(|text| format!(" ({text})"));
                let cause = cause.unwrap_or_default();
                let base = base.trim_end_matches('/');
                let complaint = match fault {
                    TransportFault::Connect => {
                        Self { message: format!("no response from {base}{cause}"), ..Self::default() }
                    }
                    other => Self { message: format!("{base}: {other}{cause}"), ..Self::default() },
                };
                Self { status, code: Some("client.unreachable".to_owned()), ..complaint }
                    .hint("Start a service with `callboard serve`, or give another address with --api-url.")
            }
            other @ (ClientError::Usage(_) | ClientError::Protocol { .. }) => {
                Self { status, message: other.to_string(), ..Self::default() }
            }
        }
    }

    /// The error that ended a turn or a run, received in its stream.
    pub(crate) fn told(message: impl Into<String>, code: Option<String>) -> Self {
        Self { code, ..Self::failed(message) }.with_usual_hint()
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Sets problems that the CLI found itself.
    #[must_use]
    pub(crate) fn problems(mut self, found: Vec<FieldError>) -> Self {
        self.problems = found.into_iter().map(|field| Problem { field, place: None }).collect();
        self
    }

    /// Fills in the workflow's name in hints.
    #[must_use]
    pub(crate) fn about(mut self, workflow: &str) -> Self {
        for hint in &mut self.hints {
            *hint = hint.replace("<workflow>", workflow);
        }
        self
    }

    /// Sets the code.
    #[must_use]
    pub(crate) fn coded(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    /// Sets exit status 3: refused.
    #[must_use]
    pub(crate) fn refused(mut self) -> Self {
        self.status = 3;
        self
    }

    /// Adds file and line to each problem.
    #[must_use]
    pub(crate) fn located(mut self, places: &impl Places) -> Self {
        for problem in &mut self.problems {
            problem.place = places.place(&problem.field.pointer);
        }
        self
    }

    /// The service's code, or one of the CLI's codes.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    pub(crate) fn status(&self) -> u8 {
        self.status
    }

    fn with_usual_hint(self) -> Self {
        let hint = self.code.as_deref().and_then(|code| {
            let sign_in = (code.starts_with("auth.") && self.status == 3).then_some(SIGN_IN_HINT);
            workflow_hint(code).or_else(|| access_hint(code)).or_else(|| app_hint(code)).or(sign_in)
        });
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Several lines; the first begins with `error: `.
    pub(crate) fn for_people(&self) -> String {
        let paint = Paint::stderr();
        let code = self.code.as_deref().filter(|code| !code.starts_with("client."));
        let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
        let mut text =
            format!("{} {}{}", paint.bad("error:"), harmless(&self.message), paint.dim(harmless(&code)));
        for problem in &self.problems {
            let _ = write!(text, "\n  {}", problem.line(paint));
        }
        for found in &self.findings {
            let _ = write!(text, "\n  {}", finding(found, paint));
        }
        if let Some(id) = &self.request_id {
            let _ = write!(text, "\nThe log of the service has the cause under {id}.");
        }
        for hint in &self.hints {
            let _ = write!(text, "\n{hint}");
        }
        text
    }

    /// One line of JSON in the service's own error format.
    pub(crate) fn for_programs(&self) -> String {
        let told = ErrorOutput {
            message: &self.message,
            code: self.code.as_deref(),
            errors: &self.problems,
            findings: &self.findings,
            request_id: self.request_id.as_deref(),
        };
        json!({"detail": told}).to_string()
    }
}

/// The hint for an error about workflows, their chats, models, checkpoints or indexes.
fn workflow_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "workflow.not_found" => "`callboard workflow list` lists workflows.",
        "workflow.no_version" => "`callboard workflow upload <workflow> <file.json>` saves one.",
        "chat.not_published" => "`callboard workflow publish <workflow>` opens its chat.",
        "model.not_configured" => {
            "`callboard config show` lists the variables of each provider; `practice/<skill>` needs none."
        }
        "checkpoint.not_found" => "`callboard checkpoint list <workflow>` lists checkpoints.",
        "index.not_found" => "`callboard index list` lists indexes.",
        "chat.login_required" => {
            "Only a browser can sign in to this chat: `callboard workflow show <workflow>` prints its address."
        }
        _ => return None,
    })
}

/// The hint for an error about sign-in, tokens or workspaces.
fn access_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "auth.email_sign_in_off" => {
            "Sign in on the service's page /login, or store a service token with `callboard login --token`."
        }
        "service_token.not_found" => "`callboard token list` lists tokens.",
        "workspace.not_found" => "`callboard workspace list` lists workspaces.",
        "workspace.storage_full" => {
            "`callboard workspace show` shows the storage use; delete indexes (`callboard index delete`) or threads to free storage."
        }
        "workspace.required" => {
            "You belong to several workspaces: choose one with --workspace, or with `workspace` in the profile. `callboard whoami` lists them."
        }
        "workspace.member_has_other_role" => "`callboard workspace role` changes the role.",
        "auth.missing_scope" => {
            "`callboard whoami` shows your identity and scopes; an administrator of the workspace assigns roles."
        }
        "auth.workspace_forbidden" => {
            "The workspace does not exist, or you have no access to it: `callboard whoami` lists your workspaces."
        }
        "auth.code_invalid" => {
            "A code is valid once, for 10 minutes and five attempts; `callboard login` sends another one."
        }
        "auth.refresh_invalid" => "`callboard login` signs in again.",
        "workspace.slug_taken" => "The slug of a deleted workspace cannot be reused.",
        _ => return None,
    })
}

/// The hint for an error about hosted apps.
fn app_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "app_not_found" => "`callboard app list` lists apps.",
        "deployment_not_found" => "`callboard app deployments <app>` lists deployments.",
        "release_not_found" => "`callboard app releases <app>` lists releases.",
        "binding_not_found" => "`callboard app bindings <app>` lists bindings.",
        "collection_not_found" => "`callboard app collections <app>` lists collections.",
        "alias_taken" => {
            "Choose another alias: one is unique in the installation, and stays taken for 30 days after its app is deleted."
        }
        "collection_taken" => {
            "Choose another name, or delete the collection with its records: `callboard app collections <app> delete <name>`."
        }
        "permission_ack_required" => {
            "`callboard app deploy <app> FOLDER --publish --acknowledge` shows the permissions of the deployment, and asks. For a stored deployment, `callboard app permissions <app>` and `callboard app acknowledge <app>` do that."
        }
        "permission_revision_stale" => {
            "The permissions have changed meanwhile: `callboard app permissions <app>` shows them as they are now."
        }
        "deployment_stale" => {
            "The files are no longer stored: deploy the bundle again with `callboard app deploy`."
        }
        _ => return None,
    })
}

/// Formats a problem or a warning in one line: location, message, suggestion and code.
pub(crate) fn line(field: &FieldError, place: Option<&SourceLocation>, paint: Paint) -> String {
    let pointer = if field.pointer.is_empty() { "(whole)" } else { &field.pointer };
    let place = place.map(|SourceLocation { file, line }| format!("{file}:{line}: ")).unwrap_or_default();
    let suggestion = field.suggestion.as_ref().map(|text| format!("; {text}")).unwrap_or_default();
    let code = paint.dim(format_args!("({})", harmless(&field.code)));
    let (pointer, message) = (harmless(pointer), harmless(&field.message));
    format!("{place}{}: {message}{} {code}", paint.bold(pointer), harmless(&suggestion))
}

/// Formats a bundle finding: location, detail and remedy.
fn finding(found: &BundleFinding, paint: Paint) -> String {
    let line = found.line.map(|line| format!(":{line}")).unwrap_or_default();
    let place = format!("{}{line}", found.path.as_deref().map_or_else(|| "archive".into(), harmless));
    let help = ErrorCode::from_code(&found.code).map(ErrorCode::help).unwrap_or_default();
    let code = paint.dim(format_args!("({})", harmless(&found.code)));
    format!("{}: {} {help} {code}", paint.bold(place), harmless(&found.detail))
}

impl Problem {
    fn line(&self, paint: Paint) -> String {
        line(&self.field, self.place.as_ref(), paint)
    }
}

/// The message of the innermost error.
fn root(error: &dyn std::error::Error) -> Option<String> {
    let mut inner = error.source()?;
    while let Some(next) = inner.source() {
        inner = next;
    }
    Some(inner.to_string())
}
