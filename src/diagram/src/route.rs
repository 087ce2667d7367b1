//! Routes the lines: down from row to row in curves, and around the picture for loops.

use std::fmt::Write as _;

use super::layers::{Hop, Layout, Vertex, at};
use super::order::float;
use super::place::{Area, Band, at_area};

/// Distance between two parallel lines.
const LANE: f64 = 8.0;
/// Distance from a row to the first line along it.
const FIRST: f64 = 10.0;
/// Room for an arrowhead after a line along a row.
const HEAD: f64 = 16.0;
/// Distance between two line ends at a box.
const PORT: f64 = 22.0;
/// Boxes up to this width join all their lines in the middle.
const SMALL: f64 = 44.0;
/// Corner radius.
const ROUND: f64 = 7.0;

/// A routed line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) link: usize,
    /// SVG path data.
    pub(super) path: String,
    /// The tip of the arrowhead; `None` if the line continues after a label.
    pub(super) head: Option<(f64, f64)>,
    pub(super) right: f64,
}

/// Number of loop lines along each row.
#[derive(Debug)]
pub(super) struct Channels {
    below: Vec<usize>,
    above: Vec<usize>,
}

impl Channels {
    pub(super) fn new(layout: &Layout) -> Self {
        let mut channels = Self { below: vec![0; layout.rows.len()], above: vec![0; layout.rows.len()] };
        for hop in layout.hops.iter().filter(|hop| hop.back) {
            let (from, to) = ends(layout, hop);
            if let Some(count) = channels.below.get_mut(from) {
                *count += 1;
            }
            if let Some(count) = channels.above.get_mut(to) {
                *count += 1;
            }
        }
        channels
    }

    /// Extra height below a row.
    pub(super) fn below(&self, row: usize) -> f64 {
        match at(&self.below, row) {
            0 => 0.0,
            lines => FIRST + LANE * float(lines),
        }
    }

    /// Extra height above a row.
    pub(super) fn above(&self, row: usize) -> f64 {
        LANE * float(at(&self.above, row))
    }
}

/// The rows of a hop's start and end.
fn ends(layout: &Layout, hop: &Hop) -> (usize, usize) {
    let layer = |vertex: Option<&usize>| vertex.map_or(0, |vertex| at(&layout.layer, *vertex));
    (layer(hop.path.first()), layer(hop.path.last()))
}

pub(super) fn route(layout: &Layout, channels: &Channels, bands: &[Band], areas: &[Area]) -> Vec<Line> {
    let ports = Ports::new(layout, areas);
    let mut lines = Vec::with_capacity(layout.hops.len());
    for (index, hop) in layout.hops.iter().enumerate().filter(|(_, hop)| !hop.back) {
        lines.push(down(layout, hop, index, &ports, bands, areas));
    }
    // Short loops lie inside long ones.
    let mut loops: Vec<(usize, &Hop)> = layout.hops.iter().enumerate().filter(|(_, hop)| hop.back).collect();
    loops.sort_by_key(|(_, hop)| {
        let (from, to) = ends(layout, hop);
        from.abs_diff(to)
    });
    let mut used = UsedSpace { below: vec![0; bands.len()], above: vec![0; bands.len()], lanes: Vec::new() };
    for (index, hop) in loops {
        lines.push(around(layout, hop, index, &ports, bands, areas, &mut used, channels));
    }
    lines
}

/// The x positions at which lines leave and enter their boxes.
struct Ports {
    leave: Vec<f64>,
    enter: Vec<f64>,
}

impl Ports {
    fn new(layout: &Layout, areas: &[Area]) -> Self {
        let count = layout.hops.len();
        let mut ports = Self { leave: vec![0.0; count], enter: vec![0.0; count] };
        let (mut out, mut into) = (vec![Vec::new(); areas.len()], vec![Vec::new(); areas.len()]);
        for (index, hop) in layout.hops.iter().enumerate() {
            let ([from, second, ..], [.., before, to]) = (hop.path.as_slice(), hop.path.as_slice()) else {
                continue;
            };
            // A loop line leaves and enters on the right.
            let x = |vertex: usize| if hop.back { f64::MAX } else { at_area(areas, vertex).x };
            if let (Some(out), Some(into)) = (out.get_mut(*from), into.get_mut(*to)) {
                out.push((x(*second), index));
                into.push((x(*before), index));
            }
        }
        for (vertex, (out, into)) in out.into_iter().zip(into).enumerate() {
            let area = at_area(areas, vertex);
            spread(out, area, &mut ports.leave);
            spread(into, area, &mut ports.enter);
        }
        ports
    }
}

fn spread(mut ends: Vec<(f64, usize)>, area: Area, ports: &mut [f64]) {
    ends.sort_by(|left, right| left.0.total_cmp(&right.0));
    let count = float(ends.len());
    let room = if area.width <= SMALL { 0.0 } else { area.width - 24.0 };
    let step = PORT.min(room / count.max(1.0));
    for (place, (_, hop)) in ends.into_iter().enumerate() {
        if let Some(port) = ports.get_mut(hop) {
            *port = area.x + (float(place) - (count - 1.0) / 2.0) * step;
        }
    }
}

fn is_bend(layout: &Layout, vertex: usize) -> bool {
    matches!(layout.vertices.get(vertex), Some(Vertex::Bend))
}

fn down(layout: &Layout, hop: &Hop, index: usize, ports: &Ports, bands: &[Band], areas: &[Area]) -> Line {
    let mut path = String::new();
    let mut right = 0.0_f64;
    let mut x = at(&ports.leave, index);
    let mut head = None;
    let last = hop.path.len().saturating_sub(1);
    for (step, vertex) in hop.path.iter().enumerate() {
        let band = at(bands, at(&layout.layer, *vertex));
        let area = at_area(areas, *vertex);
        // Writing to a `String` cannot fail.
        if step == 0 {
            let _ = write!(path, "M{} {}V{}", round(x), round(area.bottom()), round(band.bottom));
        } else {
            let next = if step == last { at(&ports.enter, index) } else { area.x };
            let upper = hop.path.get(step - 1).map(|before| at(bands, at(&layout.layer, *before)).bottom);
            let middle = (upper.unwrap_or(band.top) + band.top) / 2.0;
            if (next - x).abs() < 0.5 {
                let _ = write!(path, "V{}", round(band.top));
            } else {
                let (from, to, half) = (round(x), round(next), round(middle));
                let _ = write!(path, "C{from} {half} {to} {half} {to} {}", round(band.top));
            }
            x = next;
            if is_bend(layout, *vertex) {
                let _ = write!(path, "V{}", round(band.bottom));
            } else {
                let _ = write!(path, "V{}", round(area.top() - before_head(hop)));
                head = hop.arrives.then_some((x, area.top()));
            }
        }
        right = right.max(x);
    }
    Line { link: hop.link, path, head, right }
}

/// The part of a line that its arrowhead covers: the line ends inside the head.
fn before_head(hop: &Hop) -> f64 {
    if hop.arrives { 5.0 } else { 0.0 }
}

/// Space that loop lines already use.
struct UsedSpace {
    below: Vec<usize>,
    above: Vec<usize>,
    /// Row range, and x position.
    lanes: Vec<(usize, usize, f64)>,
}

impl UsedSpace {
    fn next(list: &mut [usize], row: usize) -> f64 {
        list.get_mut(row).map_or(0.0, |count| {
            *count += 1;
            float(*count - 1)
        })
    }
}

#[allow(clippy::too_many_arguments, reason = "they are one picture")]
fn around(
    layout: &Layout,
    hop: &Hop,
    index: usize,
    ports: &Ports,
    bands: &[Band],
    areas: &[Area],
    used: &mut UsedSpace,
    channels: &Channels,
) -> Line {
    let (from, to) = ends(layout, hop);
    let area = |vertex: Option<&usize>| vertex.map(|vertex| at_area(areas, *vertex)).unwrap_or_default();
    let (source, target) = (area(hop.path.first()), area(hop.path.last()));
    let (leave, enter) = (at(&ports.leave, index), at(&ports.enter, index));
    let low = at(bands, from).bottom + FIRST + LANE * UsedSpace::next(&mut used.below, from);
    let above = float(at(&channels.above, to)) - 1.0 - UsedSpace::next(&mut used.above, to);
    let high = at(bands, to).top - HEAD - LANE * above.max(0.0);
    let rows = to.min(from)..=from.max(to);
    let passed = bands.iter().enumerate().filter(|(row, _)| rows.contains(row)).map(|(_, band)| band.right);
    let beside = used.lanes.iter().filter(|(top, bottom, _)| *top <= from && to <= *bottom);
    let lane = beside.map(|(_, _, x)| x + LANE).fold(passed.fold(0.0, f64::max) + 16.0, f64::max);
    used.lanes.push((to.min(from), from.max(to), lane));
    let path = format!(
        "M{leave} {bottom}V{low_before}Q{leave} {low} {leave_after} {low}H{lane_before}Q{lane} {low} {lane} {low_up}\
         V{high_down}Q{lane} {high} {lane_before} {high}H{enter_after}Q{enter} {high} {enter} {high_before}V{top}",
        leave = round(leave),
        bottom = round(source.bottom()),
        low_before = round(low - ROUND),
        low = round(low),
        leave_after = round(leave + ROUND),
        lane_before = round(lane - ROUND),
        lane = round(lane),
        low_up = round(low - ROUND),
        high_down = round(high + ROUND),
        high = round(high),
        enter_after = round(enter + ROUND),
        enter = round(enter),
        high_before = round(high + ROUND),
        top = round(target.top() - before_head(hop)),
    );
    Line { link: hop.link, path, head: hop.arrives.then(|| (enter, target.top())), right: lane }
}

/// Rounds to a tenth of a pixel.
pub(super) fn round(number: f64) -> f64 {
    let rounded = (number * 10.0).round() / 10.0;
    // Avoids `-0`.
    if rounded == 0.0 { 0.0 } else { rounded }
}
