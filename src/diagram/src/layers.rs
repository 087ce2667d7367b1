//! Which box stands in which row: every arrow but those of loops leads down.
//!
//! A label is a vertex of its own, and so is each place where a long arrow passes a row. Nothing can lie over anything.

use super::model::{Drawing, Shape};
use super::order::order;
use super::{MOST_BOXES, MOST_VERTICES, TooLarge};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vertex {
    /// A box.
    Item(usize),
    /// The label of a link.
    Label(usize),
    /// Where a link passes a row.
    Bend,
}

/// A link, or the half of one before or behind its label.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    /// From row to row; both ends included. A hop of a loop has its two ends only.
    pub(super) path: Vec<usize>,
    pub(super) link: usize,
    /// Leads up, around everything.
    pub(super) back: bool,
    /// Ends with a head, at the box that the link leads to.
    pub(super) arrives: bool,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) vertices: Vec<Vertex>,
    pub(super) layer: Vec<usize>,
    /// Vertices of each row from left to right.
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
    pub(super) fn of(drawing: &Drawing) -> Result<Self, TooLarge> {
        let labels = drawing.links.iter().filter(|link| link.label.is_some()).count();
        if drawing.items.len() + labels > MOST_BOXES || drawing.links.len() > 2 * MOST_BOXES {
            return Err(TooLarge);
        }
        let mut layout = Self::default();
        layout.vertices.extend((0..drawing.items.len()).map(Vertex::Item));
        for (index, link) in drawing.links.iter().enumerate() {
            // What is waited for arrives where the edge leads, not at the join.
            let joins = drawing.items.get(link.to).is_some_and(|item| item.shape == Shape::Join);
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

    /// Marks the hops that lead back to where their own way began; answers the vertices, each before what it leads to.
    fn find_loops(&mut self) -> Vec<usize> {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); self.vertices.len()];
        for (index, hop) in self.hops.iter().enumerate() {
            if let Some(list) = hop.path.first().and_then(|from| out.get_mut(*from)) {
                list.push(index);
            }
        }
        // 0: not seen, 1: on the way, 2: finished.
        let mut state = vec![0_u8; self.vertices.len()];
        let mut finished = Vec::new();
        for root in 0..self.vertices.len() {
            if at(&state, root) != 0 {
                continue;
            }
            put(&mut state, root, 1);
            // The last way out first, so that the first stands first when the order is turned around.
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

    /// Each vertex one row below the lowest that leads to it.
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
        if let Some(end) = drawing.items.iter().position(|item| item.shape == Shape::End) {
            put(&mut self.layer, end, last);
        }
    }

    /// Cuts hops over several rows into pieces from row to row.
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

    /// Pieces from one row to the next: upper vertex, lower vertex.
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
