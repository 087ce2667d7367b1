//! Workflow code: checks that the worker processes start, are confined and respond.

use config::Sandbox as Settings;
use sandbox::{Call, Entry, Language, Limits, Sandbox, SandboxError};
use serde_json::{Value, json};

use super::report::Finding;

const CODE: &str = "code";

/// Runs a sum in both languages.
pub(super) async fn probe(settings: &Settings) -> Result<[Value; 2], SandboxError> {
    let sandbox = server::sandbox(settings);
    let python = sum(&sandbox, Language::Python, "args['a'] + args['b']").await?;
    let javascript = sum(&sandbox, Language::Javascript, "args.a + args.b").await?;
    Ok([python, javascript])
}

async fn sum(sandbox: &Sandbox, language: Language, source: &str) -> Result<Value, SandboxError> {
    let (entry, args) = (Entry::Source(source.to_owned()), json!({"a": 40, "b": 2}));
    let call = Call { language, modules: Default::default(), entry, args, limits: Limits::default() };
    sandbox.call(call).await.map(|outcome| outcome.value)
}

pub(super) fn judge(settings: &Settings, probe: &Result<[Value; 2], SandboxError>) -> Finding {
    match probe {
        Ok([python, javascript]) if *python == json!(42) && *javascript == json!(42) => Finding::ok(
            CODE,
            format!(
                "Python and JavaScript run in separate processes, {} at a time with {} MiB each",
                settings.workers,
                settings.memory >> 20
            ),
        ),
        Ok([python, javascript]) => Finding::problem(
            CODE,
            format!("40 plus 2 returned {python} and {javascript}"),
            "this is a bug in Callboard; please report it",
        ),
        Err(error) => Finding::problem(
            CODE,
            format!("code cannot be run: {error}"),
            "check that SERVICE_SANDBOX_PROGRAM, if set, is the callboard binary, and that the service may start \
             processes and allocate memory",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::report::Level;

    #[test]
    fn each_outcome_has_a_message() {
        let settings = Settings { workers: 2, memory: 128 << 20, program: None };
        let judged = |probe| judge(&settings, &probe);
        let well = judged(Ok([json!(42), json!(42)]));
        assert_eq!(well.level, Level::Ok);
        assert!(well.message.contains("128 MiB"), "{}", well.message);
        assert_eq!(judged(Ok([json!(42), json!("402")])).level, Level::Problem);
        let not = judged(Err(SandboxError::Unavailable("no such file".to_owned())));
        assert!(not.message.contains("no such file"), "{}", not.message);
        assert!(not.remedy.is_some_and(|remedy| remedy.contains("SERVICE_SANDBOX_PROGRAM")));
    }
}
