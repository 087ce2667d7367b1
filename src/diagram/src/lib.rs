//! Draws a graph as Mermaid text or as an SVG. Pure; the same graph gives the same bytes.
//!
//! Names, conditions and models are free text from the graph's author. They only ever become text: `text` removes
//! characters that do not belong in a line, and each output escapes the rest.

mod layers;
mod mermaid;
mod model;
mod order;
mod place;
mod route;
mod svg;
mod text;

use engine::Graph;

/// Maximum boxes and labels in a drawn graph.
const MOST_BOXES: usize = 600;
/// Maximum vertices: boxes, labels and the points where long lines pass other boxes.
const MOST_VERTICES: usize = 20_000;

/// The graph is too large for a readable picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the graph is too large to draw: more than {MOST_BOXES} boxes and labels, or too many long lines")]
pub struct TooLarge;

/// Renders the graph as a Mermaid flowchart.
#[must_use]
pub fn mermaid(graph: &Graph) -> String {
    mermaid::write(&model::Drawing::from_graph(graph))
}

/// Renders the graph as an SVG document without scripts, links or external content.
///
/// # Errors
/// [`TooLarge`] if the graph exceeds the limits.
pub fn svg(graph: &Graph, title: &str) -> Result<String, TooLarge> {
    let drawing = model::Drawing::from_graph(graph);
    let layout = layers::Layout::new(&drawing)?;
    Ok(svg::write(&drawing, &place::place(&drawing, &layout), title))
}

#[cfg(test)]
mod tests;
