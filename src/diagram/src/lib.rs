//! A graph as a picture: Mermaid text, and an SVG of our own. Pure; the same graph gives the same bytes.
//!
//! Names, conditions and models are whatever the graph's author has written. They only ever become text: `text` takes
//! out what does not belong into a line, and each output escapes the rest.

mod layers;
mod mermaid;
mod model;
mod order;
mod place;
mod route;
mod svg;
mod text;

use engine::Graph;

/// Boxes and labels of the largest graph that is drawn.
const MOST_BOXES: usize = 600;
/// The same with every place where a long line passes other boxes.
const MOST_VERTICES: usize = 20_000;

/// A graph is too large for a picture that anybody could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the graph is too large to draw: more than {MOST_BOXES} boxes and labels, or too many long lines")]
pub struct TooLarge;

/// The graph as a Mermaid flowchart.
#[must_use]
pub fn mermaid(graph: &Graph) -> String {
    mermaid::write(&model::Drawing::of(graph))
}

/// The graph as an SVG document that holds no script, no link and nothing from outside.
///
/// # Errors
/// [`TooLarge`].
pub fn svg(graph: &Graph, title: &str) -> Result<String, TooLarge> {
    let drawing = model::Drawing::of(graph);
    let layout = layers::Layout::of(&drawing)?;
    Ok(svg::write(&drawing, &place::place(&drawing, &layout), title))
}

#[cfg(test)]
mod tests;
