//! Assigns each box to a row: every arrow except a loop's leads down.
//!
//! A label is a vertex, and so is each point where a long arrow passes a row. So nothing can overlap.

use super::model::{BoxShape, Drawing};
use super::order::order;
use super::{MOST_BOXES, MOST_VERTICES, TooLarge};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vertex {
    /// A box.
    Item(usize),
    /// The label of a link.
    Label(usize),
    /// A point where a link passes a row.
    Bend,
}

/// A link, or its half before or after the label.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    /// Vertices row by row, both ends included. A loop's hop has only its two ends.
    pub(super) path: Vec<usize>,
    pub(super) link: usize,
    /// Leads up, around the picture.
    pub(super) back: bool,
    /// Ends with an arrowhead, at the link's target box.
    pub(super) arrives: bool,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) vertices: Vec<Vertex>,
    pub(super) layer: Vec<usize>,
    /// Vertices per row, left to right.
    pub(super) rows: Vec<Vec<usize>>,
    pub(super) hops: Vec<Hop>,
}

pub(super) fn at<T: Copy + Default>(list: &[T], index: usize) -> T {
    list.get(index).copied().unwrap_or_default()
}

pub(super) fn put<T>(list: &mut [T], index: usize, value: T) {
    if let Some(place) = list.get_mut(index) {
        *place = value;
    }
}

impl Layout {
    pub(super) fn new(drawing: &Drawing) -> Result<Self, TooLarge> {
        let labels = drawing.links.iter().filter(|link| link.label.is_some()).count();
        if drawing.items.len() + labels > MOST_BOXES || drawing.links.len() > 2 * MOST_BOXES {
            return Err(TooLarge);
        }
        let mut layout = Self::default();
        layout.vertices.extend((0..drawing.items.len()).map(Vertex::Item));
        for (index, link) in drawing.links.iter().enumerate() {
            // A link to a join has no arrowhead; the head is at the edge's target.
            let joins = drawing.items.get(link.to).is_some_and(|item| item.shape == BoxShape::Join);
            let mut hop = |path: Vec<usize>, last: bool| {
                let arrives = last && !joins;
                layout.hops.push(Hop { path, link: index, back: false, arrives });
            };
            if link.label.is_some() {
                let label = layout.vertices.len();
                layout.vertices.push(Vertex::Label(index));
                hop(vec![link.from, label], false);
                hop(vec![label, link.to], true);
            } else {
                hop(vec![link.from, link.to], true);
            }
        }
        let finished = layout.find_loops();
        layout.choose_layers(&finished);
        layout.put_end_last(drawing);
        layout.bend()?;
        layout.rows = order(&layout, &finished);
        Ok(layout)
    }

    /// Marks hops that close a loop. Returns the vertices in topological order.
    fn find_loops(&mut self) -> Vec<usize> {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); self.vertices.len()];
        for (index, hop) in self.hops.iter().enumerate() {
            if let Some(list) = hop.path.first().and_then(|from| out.get_mut(*from)) {
                list.push(index);
            }
        }
        // 0: unvisited, 1: on the current path, 2: finished.
        let mut state = vec![0_u8; self.vertices.len()];
        let mut finished = Vec::new();
        for root in 0..self.vertices.len() {
            if at(&state, root) != 0 {
                continue;
            }
            put(&mut state, root, 1);
            // Visits the last successor first, so that reversing the order puts the first one first.
            let mut open = vec![(root, at_len(&out, root))];
            while let Some((vertex, left)) = open.pop() {
                if left == 0 {
                    put(&mut state, vertex, 2);
                    finished.push(vertex);
                    continue;
                }
                open.push((vertex, left - 1));
                let hop = out.get(vertex).and_then(|list| list.get(left - 1)).copied();
                let Some(hop) = hop.and_then(|hop| self.hops.get_mut(hop)) else { continue };
                let Some(to) = hop.path.last().copied() else { continue };
                match at(&state, to) {
                    0 => {
                        put(&mut state, to, 1);
                        open.push((to, at_len(&out, to)));
                    }
                    1 => hop.back = true,
                    _ => {}
                }
            }
        }
        finished.reverse();
        finished
    }

    /// Puts each vertex one row below its lowest predecessor.
    fn choose_layers(&mut self, finished: &[usize]) {
        let mut down: Vec<Vec<usize>> = vec![Vec::new(); self.vertices.len()];
        for hop in self.hops.iter().filter(|hop| !hop.back) {
            if let ([from, ..], [.., to]) = (hop.path.as_slice(), hop.path.as_slice())
                && let Some(list) = down.get_mut(*from)
            {
                list.push(*to);
            }
        }
        self.layer = vec![0; self.vertices.len()];
        for vertex in finished {
            let below = at(&self.layer, *vertex) + 1;
            for to in down.get(*vertex).into_iter().flatten() {
                let lowest = at(&self.layer, *to).max(below);
                put(&mut self.layer, *to, lowest);
            }
        }
    }

    fn put_end_last(&mut self, drawing: &Drawing) {
        let last = self.layer.iter().max().copied().unwrap_or(0);
        if let Some(end) = drawing.items.iter().position(|item| item.shape == BoxShape::End) {
            put(&mut self.layer, end, last);
        }
    }

    /// Splits hops that span several rows into row-to-row pieces.
    fn bend(&mut self) -> Result<(), TooLarge> {
        for hop in self.hops.iter_mut().filter(|hop| !hop.back) {
            let ([from, to], layers) = (hop.path.as_slice(), &self.layer) else { continue };
            let (from, to) = (*from, *to);
            let between = (at(layers, from) + 1)..at(layers, to);
            if self.vertices.len() + between.len() > MOST_VERTICES {
                return Err(TooLarge);
            }
            let mut path = vec![from];
            for layer in between {
                path.push(self.vertices.len());
                self.vertices.push(Vertex::Bend);
                self.layer.push(layer);
            }
            path.push(to);
            hop.path = path;
        }
        Ok(())
    }

    /// Row-to-row pieces: upper vertex, lower vertex.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let pairs = |hop: &Hop| hop.path.windows(2).map(pair).collect::<Vec<_>>();
        self.hops.iter().filter(|hop| !hop.back).flat_map(pairs)
    }
}

fn pair(two: &[usize]) -> (usize, usize) {
    (at(two, 0), at(two, 1))
}

fn at_len(lists: &[Vec<usize>], index: usize) -> usize {
    lists.get(index).map_or(0, Vec::len)
}
