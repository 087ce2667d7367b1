//! SVG output.

use std::fmt::Write as _;

use kernel::text::escape_xml;

use super::layers::Vertex;
use super::model::{BoxShape, DiagramItem, Drawing, Link};
use super::place::{Area, DETAIL, LABEL, NAME, Placed};
use super::route::{Line, round};
use super::text::{line, shortened};

/// Maximum sentences in the description.
const MOST_SENTENCES: usize = 200;

/// Light and dark styles by the reader's system setting; each node group has a colour at the box's left edge.
const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#0f172a}\
.paper{fill:#fff}.box{fill:#f8fafc;stroke:#94a3b8}.end{fill:#e2e8f0;stroke:#64748b}\
.detail{fill:#475569}.label{fill:#fff;stroke:#cbd5e1}.join{fill:#f1f5f9;stroke:#64748b}\
.line{fill:none;stroke:#64748b;stroke-width:1.4}.head{fill:#64748b}\
.error .line{stroke:#b91c1c;stroke-dasharray:5 4}.error .head{fill:#b91c1c}.error text{fill:#b91c1c}\
.mark{fill:#64748b}.logic{fill:#0284c7}.models{fill:#7c3aed}.chat{fill:#059669}.network{fill:#d97706}\
.data{fill:#be185d}.code{fill:#4d7c0f}\
@media (prefers-color-scheme:dark){text{fill:#e2e8f0}\
.paper{fill:#0f172a}.box{fill:#1e293b;stroke:#64748b}.end{fill:#334155;stroke:#94a3b8}\
.detail{fill:#a8b5c8}.label{fill:#0f172a;stroke:#475569}.join{fill:#1e293b;stroke:#94a3b8}\
.line{stroke:#94a3b8}.head{fill:#94a3b8}\
.error .line{stroke:#f87171}.error .head{fill:#f87171}.error text{fill:#f87171}\
.logic{fill:#38bdf8}.models{fill:#a78bfa}.chat{fill:#34d399}.network{fill:#fbbf24}\
.data{fill:#f472b6}.code{fill:#a3e635}}";

pub(super) fn write(drawing: &Drawing, placed: &Placed, title: &str) -> String {
    let (width, height) = (placed.width.ceil(), placed.height.ceil());
    let title = escape_xml(&shortened(&line(title), 300));
    let description = escape_xml(&describe(drawing));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n\
         <style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    // Error lines are drawn last, so that they stay visible at crossings.
    let is_error = |line: &&Line| drawing.links.get(line.link).is_some_and(|link| link.on_error);
    for part in placed.lines.iter().filter(|line| !is_error(line)).chain(placed.lines.iter().filter(is_error))
    {
        let link = drawing.links.get(part.link);
        svg.push_str(if link.is_some_and(|link| link.on_error) { "<g class=\"error\">" } else { "<g>" });
        // Writing to a `String` cannot fail.
        let _ = write!(svg, "<path class=\"line\" d=\"{}\"/>", part.path);
        if let Some((x, y)) = part.head {
            let (x, y) = (round(x), round(y));
            let _ = write!(svg, "<path class=\"head\" d=\"M{x} {y}l-4.5 -9h9z\"/>");
        }
        svg.push_str("</g>\n");
    }
    for (vertex, area) in &placed.vertices {
        match vertex {
            Vertex::Item(index) => {
                if let Some(item) = drawing.items.get(*index) {
                    write_item(&mut svg, item, area);
                }
            }
            Vertex::Label(index) => {
                if let Some(link) = drawing.links.get(*index) {
                    write_label(&mut svg, link, area);
                }
            }
            Vertex::Bend => {}
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn rect(class: &str, area: &Area, radius: f64) -> String {
    let (x, y) = (round(area.left()), round(area.top()));
    let (width, height) = (round(area.width), round(area.height));
    format!(
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>"
    )
}

fn text(class: &str, x: f64, y: f64, size: f64, weight: &str, content: &str) -> String {
    let (x, y, content) = (round(x), round(y), escape_xml(content));
    format!(
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{weight} text-anchor=\"middle\">{content}</text>"
    )
}

const BOLD: &str = " font-weight=\"600\"";

fn write_item(svg: &mut String, item: &DiagramItem, area: &Area) {
    let title = format!("<title>{}</title>", escape_xml(&item.full));
    let inside = match item.shape {
        BoxShape::Start | BoxShape::End => {
            let name = text("name", area.x, area.y + NAME * 0.35, NAME, "", &item.name);
            format!("{}{name}", rect("end", area, area.height / 2.0))
        }
        BoxShape::Join => {
            let name = text("detail", area.x, area.y + LABEL * 0.35, LABEL, "", &item.name);
            format!("{}{name}", rect("join", area, area.height / 2.0))
        }
        BoxShape::Node => {
            let group = if item.group.is_empty() { String::new() } else { format!(" {}", item.group) };
            let mark = Area { x: area.left() + 6.0, width: 4.0, height: area.height - 16.0, ..*area };
            let mark = rect(&format!("mark{group}"), &mark, 2.0);
            let middle = area.x + 4.0;
            let texts = match &item.detail {
                Some(detail) => {
                    let name = text("name", middle, area.y - 3.0, NAME, BOLD, &item.name);
                    format!("{name}{}", text("detail", middle, area.y + 14.0, DETAIL, "", detail))
                }
                None => text("name", middle, area.y + NAME * 0.35, NAME, BOLD, &item.name),
            };
            format!("{}{mark}{texts}", rect("box", area, 8.0))
        }
    };
    let _ = writeln!(svg, "<g>{title}{inside}</g>");
}

fn write_label(svg: &mut String, link: &Link, area: &Area) {
    let Some(label) = &link.label else { return };
    let class = if link.on_error { " class=\"error\"" } else { "" };
    let inside = text("detail", area.x, area.y + LABEL * 0.35, LABEL, "", &label.text);
    let box_ = rect("label", area, 11.0);
    let _ = writeln!(svg, "<g{class}><title>{}</title>{box_}{inside}</g>", escape_xml(&label.full));
}

/// Describes the graph in words.
fn describe(drawing: &Drawing) -> String {
    let name = |index: usize| drawing.items.get(index).map_or("?", |item| item.name.as_str());
    let nodes: Vec<&str> = drawing
        .items
        .iter()
        .filter(|item| item.shape == BoxShape::Node)
        .take(MOST_SENTENCES)
        .map(|item| item.full.as_str())
        .collect();
    let mut text = match nodes.len() {
        1 => format!("One node: {}.", nodes.concat()),
        count => format!("{count} nodes: {}.", nodes.join("; ")),
    };
    let is_join = |index: usize| drawing.items.get(index).is_some_and(|item| item.shape == BoxShape::Join);
    // A link to a join is described together with the link that follows the join.
    for link in drawing.links.iter().filter(|link| !is_join(link.to)).take(MOST_SENTENCES) {
        let from = if is_join(link.from) {
            let sources = drawing.links.iter().filter(|other| other.to == link.from);
            let names: Vec<&str> = sources.map(|other| name(other.from)).collect();
            format!("{} together lead", names.join(" and "))
        } else {
            format!("{} leads", name(link.from))
        };
        let when = match &link.label {
            Some(label) if link.on_error || label.full == "else" => format!(" ({})", label.full),
            Some(label) => format!(" when {}", label.full),
            None => String::new(),
        };
        let _ = write!(text, " {from} to {}{when}.", name(link.to));
    }
    text
}
