//! Orders the boxes within each row: connected boxes are close, and few lines cross.
//!
//! Source: Sugiyama, Tagawa and Toda 1981, the barycentre heuristic.

use super::layers::{Layout, at, put};

/// Number of passes over all rows.
const SWEEPS: usize = 16;

/// Returns the rows, each from left to right. `finished` holds the vertices in reading order.
pub(super) fn order(layout: &Layout, finished: &[usize]) -> Vec<Vec<usize>> {
    let count = layout.vertices.len();
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layout.layer.iter().max().map_or(0, |last| last + 1)];
    let mut rank = vec![usize::MAX; count];
    for (index, vertex) in finished.iter().enumerate() {
        put(&mut rank, *vertex, index);
    }
    // A bend has the rank of its hop's start.
    for hop in &layout.hops {
        let from = hop.path.first().map_or(0, |from| at(&rank, *from));
        for bend in hop.path.iter().skip(1) {
            if at(&rank, *bend) == usize::MAX {
                put(&mut rank, *bend, from);
            }
        }
    }
    let mut all: Vec<usize> = (0..count).collect();
    all.sort_by_key(|vertex| at(&rank, *vertex));
    for vertex in all {
        if let Some(row) = rows.get_mut(at(&layout.layer, vertex)) {
            row.push(vertex);
        }
    }
    let (mut above, mut below) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (upper, lower) in layout.pieces() {
        if let Some(list) = above.get_mut(lower) {
            list.push(upper);
        }
        if let Some(list) = below.get_mut(upper) {
            list.push(lower);
        }
    }
    let mut best = (crossings(&rows, &below), rows.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let down = sweep % 2 == 0;
        let neighbours = if down { &above } else { &below };
        let mut places = places(&rows, count);
        let length = rows.len();
        for step in 0..length {
            let index = if down { step } else { length - 1 - step };
            let Some(row) = rows.get_mut(index) else { continue };
            sort(row, neighbours, &places);
            for (place, vertex) in row.iter().enumerate() {
                put(&mut places, *vertex, place);
            }
        }
        let now = crossings(&rows, &below);
        if now < best.0 {
            best = (now, rows.clone());
        }
    }
    best.1
}

/// Position of each vertex in its row.
fn places(rows: &[Vec<usize>], count: usize) -> Vec<usize> {
    let mut places = vec![0; count];
    for row in rows {
        for (place, vertex) in row.iter().enumerate() {
            put(&mut places, *vertex, place);
        }
    }
    places
}

/// Sorts by the neighbours' mean position; a vertex without neighbours keeps its own.
fn sort(row: &mut [usize], neighbours: &[Vec<usize>], places: &[usize]) {
    let centre = |vertex: &usize| {
        let near = neighbours.get(*vertex).map(Vec::as_slice).unwrap_or_default();
        if near.is_empty() {
            return float(at(places, *vertex));
        }
        float(near.iter().map(|other| at(places, *other)).sum()) / float(near.len())
    };
    let mut keyed: Vec<(f64, usize)> = row.iter().map(|vertex| (centre(vertex), *vertex)).collect();
    keyed.sort_by(|left, right| left.0.total_cmp(&right.0));
    for (place, (_, vertex)) in row.iter_mut().zip(keyed) {
        *place = vertex;
    }
}

pub(super) fn float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}

/// Counts crossing line pairs.
pub(super) fn crossings(rows: &[Vec<usize>], below: &[Vec<usize>]) -> usize {
    let places = places(rows, below.len());
    let mut count = 0;
    for row in rows {
        let mut ends = Vec::new();
        for vertex in row {
            let mut lower: Vec<usize> =
                below.get(*vertex).into_iter().flatten().map(|vertex| at(&places, *vertex)).collect();
            lower.sort_unstable();
            ends.extend(lower);
        }
        count += inversions(&mut ends);
    }
    count
}

/// Counts inversions by merge sort.
fn inversions(list: &mut Vec<usize>) -> usize {
    if list.len() < 2 {
        return 0;
    }
    let mut right = list.split_off(list.len() / 2);
    let mut count = inversions(list) + inversions(&mut right);
    let mut merged = Vec::with_capacity(list.len() + right.len());
    let (mut left, mut right) = (list.drain(..).peekable(), right.into_iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if b < a => {
                count += left.len();
                right.next()
            }
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        match next {
            Some(next) => merged.push(next),
            None => break,
        }
    }
    drop(left);
    *list = merged;
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossings_are_counted() {
        assert_eq!(inversions(&mut vec![3, 2, 1]), 3);
        assert_eq!(inversions(&mut vec![1, 1, 2, 2]), 0);
        assert_eq!(inversions(&mut vec![2, 1, 4, 3, 0]), 6);
        // 0 and 1 above, 2 and 3 below: one pair of lines crosses, the other does not.
        let rows = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(crossings(&rows, &[vec![3], vec![2], vec![], vec![]]), 1);
        assert_eq!(crossings(&rows, &[vec![2], vec![3], vec![], vec![]]), 0);
    }
}
