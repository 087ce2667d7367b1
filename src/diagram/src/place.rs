//! Positions: sizes, columns, heights.

use super::layers::{Layout, Vertex, at, put};
use super::model::{BoxShape, DiagramItem, Drawing};
use super::order::float;
use super::route::{Channels, Line, route};
use super::text::width;

pub(super) const NAME: f64 = 14.0;
/// Width factor of bold text.
const BOLD: f64 = 1.06;
pub(super) const DETAIL: f64 = 11.5;
pub(super) const LABEL: f64 = 11.5;
/// Margin around the picture.
pub(super) const MARGIN: f64 = 20.0;
/// Distance between rows, without loop lines.
const GAP: f64 = 38.0;
/// Distance between two boxes in a row.
const BESIDE: f64 = 26.0;
/// Distance between a box and a line that passes it.
const BESIDE_LINE: f64 = 16.0;
/// Number of straightening passes over all rows.
const SWEEPS: usize = 21;
/// The last passes, which use the rows above and below at once.
const LAST: usize = 9;

/// A box, given by its centre.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn left(&self) -> f64 {
        self.x - self.width / 2.0
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.width / 2.0
    }

    pub(super) fn top(&self) -> f64 {
        self.y - self.height / 2.0
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height / 2.0
    }
}

/// The vertical extent of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Band {
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) right: f64,
}

/// A complete layout, ready to write as SVG.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) vertices: Vec<(Vertex, Area)>,
    pub(super) lines: Vec<Line>,
    pub(super) width: f64,
    pub(super) height: f64,
}

pub(super) fn place(drawing: &Drawing, layout: &Layout) -> Placed {
    let mut areas: Vec<Area> = layout.vertices.iter().map(|vertex| size(drawing, *vertex)).collect();
    columns(layout, &mut areas);
    let channels = Channels::new(layout);
    let bands = heights(layout, &channels, &mut areas);
    let lines = route(layout, &channels, &bands, &areas);
    let lowest = bands.last().map_or(0.0, |band| band.bottom);
    let right = areas.iter().map(Area::right).fold(0.0, f64::max);
    let right = lines.iter().map(|line| line.right).fold(right, f64::max);
    Placed {
        vertices: layout.vertices.iter().copied().zip(areas).collect(),
        lines,
        width: right + MARGIN,
        height: lowest + channels.below(layout.rows.len().saturating_sub(1)) + MARGIN,
    }
}

fn size(drawing: &Drawing, vertex: Vertex) -> Area {
    let (width, height) = match vertex {
        Vertex::Item(index) => drawing.items.get(index).map_or((0.0, 0.0), of_item),
        Vertex::Label(index) => {
            let label = drawing.links.get(index).and_then(|link| link.label.as_ref());
            (label.map_or(0.0, |label| width(&label.text, LABEL)) + 16.0, 22.0)
        }
        Vertex::Bend => (0.0, 0.0),
    };
    Area { x: 0.0, y: 0.0, width, height }
}

fn of_item(item: &DiagramItem) -> (f64, f64) {
    match item.shape {
        BoxShape::Start | BoxShape::End => (width(&item.name, NAME) + 36.0, 32.0),
        BoxShape::Join => (width(&item.name, LABEL) + 18.0, 22.0),
        BoxShape::Node => {
            let detail = item.detail.as_ref().map_or(0.0, |detail| width(detail, DETAIL));
            ((width(&item.name, NAME * BOLD).max(detail) + 34.0).max(96.0), 50.0)
        }
    }
}

/// Chooses x positions. Keeps each row's order and moves each box as close as possible to its neighbours.
fn columns(layout: &Layout, areas: &mut [Area]) {
    let count = layout.vertices.len();
    let (mut above, mut below) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (upper, lower) in layout.pieces() {
        if let (Some(up), Some(down)) = (above.get_mut(lower), below.get_mut(upper)) {
            up.push(upper);
            down.push(lower);
        }
    }
    let mut x = vec![0.0; count];
    for row in &layout.rows {
        settle(layout, row, areas, &mut x, &vec![(0.0, 1.0); row.len()]);
    }
    let rows = layout.rows.len();
    for sweep in 0..SWEEPS {
        for step in 0..rows {
            let down = sweep % 2 == 0;
            let Some(row) = layout.rows.get(if down { step } else { rows - 1 - step }) else { continue };
            // In the last passes, boxes use both sides, so that nothing leans; long lines stay straight below their
            // boxes.
            let last = sweep + LAST >= SWEEPS;
            let wanted: Vec<(f64, f64)> = row
                .iter()
                .map(|vertex| {
                    let (up, down_too) = (down || last, !down || last);
                    let bend = is_bend(layout, *vertex);
                    let above = above.get(*vertex).filter(|_| if bend { down } else { up });
                    let below = below.get(*vertex).filter(|_| if bend { !down } else { down_too });
                    let near = || above.into_iter().chain(below).flatten();
                    let count = near().count();
                    if count == 0 {
                        return (at(&x, *vertex), 0.05);
                    }
                    let straight = bend && near().any(|other| is_bend(layout, *other));
                    let middle = near().map(|other| at(&x, *other)).sum::<f64>() / float(count);
                    (middle, if straight { 6.0 } else { 1.0 })
                })
                .collect();
            settle(layout, row, areas, &mut x, &wanted);
        }
    }
    let left = areas.iter().zip(&x).map(|(area, x)| x - area.width / 2.0).fold(f64::MAX, f64::min);
    for (area, x) in areas.iter_mut().zip(x) {
        area.x = x - left + MARGIN;
    }
}

fn is_bend(layout: &Layout, vertex: usize) -> bool {
    matches!(layout.vertices.get(vertex), Some(Vertex::Bend))
}

/// Finds the x positions closest to the wanted ones by weighted least squares, with the required gaps.
///
/// Source: isotonic regression by pooling adjacent violators; the gaps are subtracted before and added again after.
fn settle(layout: &Layout, row: &[usize], areas: &[Area], x: &mut [f64], wanted: &[(f64, f64)]) {
    struct PooledBlock {
        mean: f64,
        weight: f64,
        members: usize,
    }
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    let mut before: Option<usize> = None;
    for vertex in row {
        if let Some(before) = before {
            let line = is_bend(layout, before) || is_bend(layout, *vertex);
            let gap = if line { BESIDE_LINE } else { BESIDE };
            offset += at_area(areas, before).width / 2.0 + gap + at_area(areas, *vertex).width / 2.0;
        }
        offsets.push(offset);
        before = Some(*vertex);
    }
    let mut pools: Vec<PooledBlock> = Vec::new();
    for ((place, weight), offset) in wanted.iter().copied().zip(&offsets) {
        let mut pool = PooledBlock { mean: place - offset, weight, members: 1 };
        while let Some(last) = pools.pop_if(|last| last.mean > pool.mean) {
            let weight = last.weight + pool.weight;
            let mean = (last.mean * last.weight + pool.mean * pool.weight) / weight;
            pool = PooledBlock { mean, weight, members: last.members + pool.members };
        }
        pools.push(pool);
    }
    let means = pools.iter().flat_map(|pool| std::iter::repeat_n(pool.mean, pool.members));
    for ((vertex, offset), mean) in row.iter().zip(offsets).zip(means) {
        put(x, *vertex, mean + offset);
    }
}

pub(super) fn at_area(areas: &[Area], vertex: usize) -> Area {
    at(areas, vertex)
}

fn heights(layout: &Layout, channels: &Channels, areas: &mut [Area]) -> Vec<Band> {
    let mut bands = Vec::with_capacity(layout.rows.len());
    let mut top = MARGIN;
    for (index, row) in layout.rows.iter().enumerate() {
        let height = row.iter().map(|vertex| at_area(areas, *vertex).height).fold(0.0, f64::max);
        let middle = top + height / 2.0;
        let mut right = 0.0_f64;
        for vertex in row {
            if let Some(area) = areas.get_mut(*vertex) {
                area.y = middle;
                right = right.max(area.right());
            }
        }
        bands.push(Band { top, bottom: top + height, right });
        top += height + GAP + channels.below(index) + channels.above(index + 1);
    }
    bands
}
