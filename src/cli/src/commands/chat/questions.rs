//! A workflow's questions: printed to the terminal and answered there.

use std::collections::BTreeMap;

use wire::chat::{InputAnswer, InputForm, InputSubmission, StructuredInput, SubmissionStatus};

/// Formats a question as lines, with numbered options.
pub(super) fn lines(question: &StructuredInput) -> Vec<String> {
    let mut lines = vec![question.question.clone()];
    match &question.form {
        InputForm::MultipleChoice { options, multiple } => {
            let numbered =
                options.iter().zip(1..).map(|(option, number)| format!("  {number}. {}", option.value));
            lines.extend(numbered);
            lines.push(match multiple {
                true => "  Numbers separated by commas, or another answer; empty to skip.".to_owned(),
                false => "  A number, or another answer; empty to skip.".to_owned(),
            });
        }
        InputForm::Freeform { description } => {
            lines.extend(description.iter().map(|description| format!("  {description}")));
        }
    }
    lines
}

/// Parses a line as the answer to a question.
pub(super) fn answer(question: &StructuredInput, line: &str) -> InputAnswer {
    let line = line.trim();
    let values = match &question.form {
        _ if line.is_empty() => Vec::new(),
        InputForm::Freeform { .. } => vec![line.to_owned()],
        InputForm::MultipleChoice { options, multiple } => {
            let value = |text: &str| {
                let place = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let option = place.and_then(|place| options.get(place));
                option.map_or_else(|| text.to_owned(), |option| option.value.clone())
            };
            let is_number =
                |text: &str| text.parse::<usize>().is_ok_and(|number| (1..=options.len()).contains(&number));
            let parts: Vec<&str> = line.split(',').map(str::trim).collect();
            if *multiple && parts.iter().all(|part| is_number(part)) {
                parts.into_iter().map(value).collect()
            } else {
                vec![value(line)]
            }
        }
    };
    InputAnswer { skipped: values.is_empty(), values }
}

/// The answers to all questions; skipped if none is answered.
pub(super) fn submission(answers: BTreeMap<String, InputAnswer>) -> InputSubmission {
    let is_answered = answers.values().any(|answer| !answer.skipped);
    let status = if is_answered { SubmissionStatus::Answered } else { SubmissionStatus::Skipped };
    InputSubmission { status, answers }
}

/// Parses `ID=ANSWER` arguments.
///
/// # Errors
/// A sentence, if an argument is not `ID=ANSWER`, names an unknown question, or answers a question twice.
pub(super) fn given(questions: &[StructuredInput], arguments: &[String]) -> Result<InputSubmission, String> {
    let mut answers = BTreeMap::new();
    for argument in arguments {
        let Some((id, line)) = argument.split_once('=') else {
            return Err(format!("'{argument}' has no '='; use ID=ANSWER, such as ok=1, or ok= to skip"));
        };
        let Some(question) = questions.iter().find(|question| question.id == id) else {
            let known: Vec<&str> = questions.iter().map(|question| question.id.as_str()).collect();
            return Err(format!("'{id}' is not a question; the questions are {}", known.join(", ")));
        };
        if answers.insert(id.to_owned(), answer(question, line)).is_some() {
            return Err(format!("'{id}' is answered twice; separate several options with commas: {id}=1,2"));
        }
    }
    Ok(submission(answers))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(more: serde_json::Value) -> StructuredInput {
        let mut question = json!({"id": "q", "question": "Which?"});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(question).unwrap()
    }

    fn choice(multiple: bool) -> StructuredInput {
        question(
            json!({"type": "multiple_choice", "multiple": multiple, "options": [{"value": "yes"}, {"value": "no, thanks"}]}),
        )
    }

    #[test]
    fn a_number_names_an_option_and_other_text_is_an_answer() {
        for (line, multiple, values) in [
            ("2", false, vec!["no, thanks"]),
            ("1, 2", true, vec!["yes", "no, thanks"]),
            ("1, 2", false, vec!["1, 2"]),
            ("3", true, vec!["3"]),
            ("perhaps, later", true, vec!["perhaps, later"]),
            (" ", true, vec![]),
        ] {
            let answer = answer(&choice(multiple), line);
            assert_eq!(
                (answer.skipped, answer.values),
                (values.is_empty(), values.iter().map(ToString::to_string).collect()),
                "{line}"
            );
        }
        assert_eq!(answer(&question(json!({"type": "freeform"})), "1").values, ["1"]);
    }

    #[test]
    fn a_choice_lists_its_options_with_numbers() {
        assert_eq!(
            lines(&choice(false)),
            ["Which?", "  1. yes", "  2. no, thanks", "  A number, or another answer; empty to skip."]
        );
    }

    #[test]
    fn arguments_answer_questions_by_their_ids() {
        let questions = [choice(false)];
        let given = |arguments: &[&str]| {
            given(&questions, &arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(given(&["q=1"]).unwrap().answers["q"].values, ["yes"]);
        assert_eq!(given(&[]).unwrap().status, SubmissionStatus::Skipped);
        assert_eq!(given(&["other=1"]).unwrap_err(), "'other' is not a question; the questions are q");
        assert_eq!(given(&["q"]).unwrap_err(), "'q' has no '='; use ID=ANSWER, such as ok=1, or ok= to skip");
        assert_eq!(
            given(&["q=1", "q=2"]).unwrap_err(),
            "'q' is answered twice; separate several options with commas: q=1,2"
        );
    }
}
