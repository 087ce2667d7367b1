//! Positions on a page.

/// An affine transformation in PDF notation: `[a b c d e f]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix {
    pub(super) a: f32,
    pub(super) b: f32,
    pub(super) c: f32,
    pub(super) d: f32,
    pub(super) e: f32,
    pub(super) f: f32,
}

impl Matrix {
    pub(super) const ONE: Self = Self { a: 1.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, f: 0.0 };

    pub(super) fn read(numbers: &[f32]) -> Option<Self> {
        match *numbers {
            [a, b, c, d, e, f] => Some(Self { a, b, c, d, e, f }),
            _ => None,
        }
    }

    pub(super) const fn shift(e: f32, f: f32) -> Self {
        Self { e, f, ..Self::ONE }
    }

    /// Applies `self`, then `other`.
    pub(super) fn then(self, other: Self) -> Self {
        Self {
            a: self.a * other.a + self.b * other.c,
            b: self.a * other.b + self.b * other.d,
            c: self.c * other.a + self.d * other.c,
            d: self.c * other.b + self.d * other.d,
            e: self.e * other.a + self.f * other.c + other.e,
            f: self.e * other.b + self.f * other.d + other.f,
        }
    }

    /// The distance from another position along the writing direction, and across it.
    pub(super) fn step(self, from_x: f32, from_y: f32) -> (f32, f32) {
        let length = self.a.hypot(self.b);
        let (x, y) = (self.e - from_x, self.f - from_y);
        if length <= f32::EPSILON {
            return (x, y);
        }
        let (u, v) = (self.a / length, self.b / length);
        (x * u + y * v, y * u - x * v)
    }
}
