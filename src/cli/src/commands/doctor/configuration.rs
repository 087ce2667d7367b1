//! The configuration: errors that prevent a start, and settings that are probably mistakes.

use config::Problems;

use super::report::Finding;

const CHECK: &str = "configuration";

pub(super) fn refused(problems: &Problems) -> Vec<Finding> {
    let finding = |problem: &config::Problem| {
        let all = problem.to_string();
        let message = all.strip_suffix(&format!("; {}", problem.instead)).unwrap_or(&all);
        Finding::problem(CHECK, message, &problem.instead)
    };
    problems.0.iter().map(finding).collect()
}

pub(super) fn judge(warnings: &[String]) -> Vec<Finding> {
    if warnings.is_empty() {
        return vec![Finding::ok(CHECK, "all variables are valid")];
    }
    let remedy = "correct or unset it; `callboard config show` describes every variable";
    warnings.iter().map(|warning| Finding::warning(CHECK, warning, remedy)).collect()
}
