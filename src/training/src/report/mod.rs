//! Training reports: JSON, plain text, one HTML page, and the curve as SVG. Pure; the same data give the same bytes.
//!
//! Prompts, names and messages are texts by authors and models. They only ever become text: `visible` replaces
//! characters that could control a terminal or a browser, and each output escapes the rest.

mod data;
mod diff;
mod facts;
mod html;
mod model;
mod number;
mod plot;
#[cfg(test)]
mod samples;
mod style;
mod svg;
mod text;
mod verdict;
mod visible;
mod wrap;

pub use data::ReportData;
pub use diff::line_diff;
pub use html::html;
pub use model::{CandidateCounts, CaseCounts, CurvePoint, JudgeCalibration, PromptReport, Report, curve_of};
pub use style::page_style;
pub use text::text;
