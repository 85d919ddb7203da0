//! The three transformations of Winograd's algorithm for filters of 3 and 5 taps, in one dimension.
//!
//! `y = A^T ((G g) . (B^T d))` has the points 0, `±p`, ... and infinity, where polynomials are
//! evaluated and interpolated: one multiplication for each (A. Lavin, S. Gray, Fast Algorithms for
//! Convolutional Neural Networks, 2016). In two dimensions each matrix is applied to columns, then
//! to rows.
//!
//! The points of four outputs are 0, ±5/8, ±3/2 and infinity. The usual points, 0, ±1, ±2, are not
//! cheaper, since the additions are saved by the pairs of signs, and err twice as much. B. Barabasz
//! et al., Error analysis and improving the accuracy of Winograd convolution, 2018, search for
//! points whose powers and differences are near one; among pairs of eighths these have the smallest
//! bound (`super::contract`). Their powers and products are exact in float. Two outputs of 5 taps have
//! as many points, so the same transformation of the inputs serves both.

use crate::vector::Vector;
use std::marker::PhantomData;

/// The most points of a transformation.
pub const MOST_POINTS: usize = 6;
/// The most outputs of a transformation.
pub const MOST_OUTPUTS: usize = 4;
/// The most taps of a filter.
pub const MOST_TAPS: usize = 5;

/// A transformation in one dimension. Only the first elements of the arrays `inputs` and `outputs`
/// are used.
pub trait Transform: Send + Sync + 'static {
    /// The number of outputs.
    const OUTPUTS: usize;
    /// The number of taps of a filter.
    const TAPS: usize;
    /// The least number of channels, on either side: fewer do not repay the transformations.
    const LEAST_CHANNELS: i64;
    /// The same of a filter that is not a constant: its factors take no memory between calls.
    const LEAST_OF_VARIABLE: i64 = Self::LEAST_CHANNELS;
    /// The number of points, and of inputs.
    const POINTS: usize = Self::OUTPUTS + Self::TAPS - 1;
    /// The error relative to the sum of the absolute terms of a result, by the contract.
    const RELATIVE: f64;
    /// `G`, of which the first `POINTS` rows and `TAPS` columns are used.
    const FILTER: [[f64; MOST_TAPS]; MOST_POINTS];

    /// `B^T d`.
    fn inputs<V: Vector>(d: [V; MOST_POINTS]) -> [V; MOST_POINTS];

    /// `A^T m`.
    fn outputs<V: Vector>(m: [V; MOST_POINTS]) -> [V; MOST_OUTPUTS];
}

/// How the pixels of a tile are evaluated at the points, in one dimension.
pub trait Evaluate: Send + Sync + 'static {
    /// The number of points, and of pixels of a row of the tile.
    const LEN: usize;

    /// The values at the points.
    fn at_points<V: Vector>(pixels: [V; MOST_POINTS]) -> [V; MOST_POINTS];
}

impl<T: Transform> Evaluate for T {
    const LEN: usize = T::POINTS;

    #[inline(always)]
    fn at_points<V: Vector>(pixels: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
        T::inputs(pixels)
    }
}

/// F(2, 3): points 0, 1, -1 and infinity.
pub enum Two {}

impl Transform for Two {
    const OUTPUTS: usize = 2;
    const TAPS: usize = 3;
    const LEAST_CHANNELS: i64 = 64;
    const RELATIVE: f64 = 4e-6;
    const FILTER: [[f64; MOST_TAPS]; MOST_POINTS] = [
        [-1.0, 0.0, 0.0, 0.0, 0.0],
        [0.5, 0.5, 0.5, 0.0, 0.0],
        [0.5, -0.5, 0.5, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0; MOST_TAPS],
        [0.0; MOST_TAPS],
    ];

    #[inline(always)]
    fn inputs<V: Vector>([d0, d1, d2, d3, ..]: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
        [d2.minus(d0), d1.plus(d2), d2.minus(d1), d3.minus(d1), d0.zeros(), d0.zeros()]
    }

    #[inline(always)]
    fn outputs<V: Vector>([m0, m1, m2, m3, ..]: [V; MOST_POINTS]) -> [V; MOST_OUTPUTS] {
        [m0.plus(m1.plus(m2)), m1.minus(m2).plus(m3), m0.zeros(), m0.zeros()]
    }
}

/// F(4, 3): points 0, `P`, `-P`, `Q`, `-Q` and infinity.
pub enum Four {}

const P: f32 = 0.625;
const Q: f32 = 1.5;
const P2: f32 = P * P;
const Q2: f32 = Q * Q;

/// `G` of the points of [`Four`] for a number of taps.
const fn filter_at_points(taps: usize) -> [[f64; MOST_TAPS]; MOST_POINTS] {
    let (p, q) = (P as f64, Q as f64);
    let mut zero = [0.0; MOST_TAPS];
    zero[0] = 1.0 / (p * p * q * q);
    let mut infinity = [0.0; MOST_TAPS];
    infinity[taps - 1] = 1.0;
    [
        zero,
        at_point(p, q, taps),
        at_point(-p, q, taps),
        at_point(q, p, taps),
        at_point(-q, p, taps),
        infinity,
    ]
}

/// The row of `G` of a point `x`: its powers; `other` is the point of the other pair.
const fn at_point(x: f64, other: f64, taps: usize) -> [f64; MOST_TAPS] {
    // The product of the differences to the other points: x, 2x, and x^2 - other^2.
    let differences = 2.0 * x * x * (x * x - other * other);
    let (mut row, mut power, mut tap) = ([0.0; MOST_TAPS], 1.0, 0);
    while tap < taps {
        row[tap] = power / differences;
        power *= x;
        tap += 1;
    }
    row
}

/// `B^T d` of the points of [`Four`].
#[inline(always)]
fn inputs_at_points<V: Vector>([d0, d1, d2, d3, d4, d5]: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
    let [even_p, odd_p] = [d2.times_plus(-Q2, d4), d1.times_plus(-Q2, d3)];
    let [even_q, odd_q] = [d2.times_plus(-P2, d4), d1.times_plus(-P2, d3)];
    [
        d0.times_plus(P2 * Q2, d2.times_plus(-(P2 + Q2), d4)),
        odd_p.times_plus(P, even_p),
        odd_p.times_plus(-P, even_p),
        odd_q.times_plus(Q, even_q),
        odd_q.times_plus(-Q, even_q),
        d1.times_plus(P2 * Q2, d3.times_plus(-(P2 + Q2), d5)),
    ]
}

impl Transform for Four {
    const OUTPUTS: usize = 4;
    const TAPS: usize = 3;
    const LEAST_CHANNELS: i64 = 64;
    const LEAST_OF_VARIABLE: i64 = 16;
    const RELATIVE: f64 = 8e-6;
    const FILTER: [[f64; MOST_TAPS]; MOST_POINTS] = filter_at_points(Self::TAPS);

    #[inline(always)]
    fn inputs<V: Vector>(d: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
        inputs_at_points(d)
    }

    #[inline(always)]
    fn outputs<V: Vector>([m0, m1, m2, m3, m4, m5]: [V; MOST_POINTS]) -> [V; MOST_OUTPUTS] {
        let [even_p, odd_p] = [m1.plus(m2), m1.minus(m2)];
        let [even_q, odd_q] = [m3.plus(m4), m3.minus(m4)];
        [
            m0.plus(even_p.plus(even_q)),
            odd_p.times_plus(P, odd_q.times_plus(Q, odd_q.zeros())),
            even_p.times_plus(P2, even_q.times_plus(Q2, even_q.zeros())),
            odd_p.times_plus(P2 * P, odd_q.times_plus(Q2 * Q, m5)),
        ]
    }
}

/// F(2, 5): the points of [`Four`].
pub enum TwoOfFive {}

impl Transform for TwoOfFive {
    const OUTPUTS: usize = 2;
    const TAPS: usize = 5;
    const LEAST_CHANNELS: i64 = 32;
    const RELATIVE: f64 = 4e-6;
    const FILTER: [[f64; MOST_TAPS]; MOST_POINTS] = filter_at_points(Self::TAPS);

    #[inline(always)]
    fn inputs<V: Vector>(d: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
        inputs_at_points(d)
    }

    #[inline(always)]
    fn outputs<V: Vector>([m0, m1, m2, m3, m4, m5]: [V; MOST_POINTS]) -> [V; MOST_OUTPUTS] {
        let [even_p, odd_p] = [m1.plus(m2), m1.minus(m2)];
        let [even_q, odd_q] = [m3.plus(m4), m3.minus(m4)];
        [
            m0.plus(even_p.plus(even_q)),
            odd_p.times_plus(P, odd_q.times_plus(Q, m5)),
            m0.zeros(),
            m0.zeros(),
        ]
    }
}

/// What the gradient by the filter needs. Gradients of outputs are there what taps are elsewhere, and the
/// results are taps: F(3, 4) with the points of F(4, 3), and F(5, 2) with those of F(2, 5).
pub trait Backward: Transform {
    /// `A^T` with the quotients of `G`: of each result, which is a row, and each point.
    const RESULTS: [[f64; MOST_POINTS]; MOST_TAPS] = results(Self::TAPS);

    /// `G g` without its quotients, whose factors are powers of the points, which are exact.
    fn gradients<V: Vector>(g: [V; MOST_POINTS]) -> [V; MOST_POINTS];
}

/// [`Backward::RESULTS`] of the points of [`Four`], whose first `count` rows are used.
const fn results(count: usize) -> [[f64; MOST_POINTS]; MOST_TAPS] {
    // A filter of one tap has the quotients alone.
    let quotients = filter_at_points(1);
    let points = [0.0, P as f64, -P as f64, Q as f64, -Q as f64];
    let (mut rows, mut point) = ([[0.0; MOST_POINTS]; MOST_TAPS], 0);
    while point < points.len() {
        let (mut power, mut row) = (quotients[point][0], 0);
        while row < count {
            rows[row][point] = power;
            power *= points[point];
            row += 1;
        }
        point += 1;
    }
    rows[count - 1][MOST_POINTS - 1] = 1.0;
    rows
}

impl Backward for Four {
    #[inline(always)]
    fn gradients<V: Vector>([g0, g1, g2, g3, ..]: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
        let (even_p, odd_p) = (g2.times_plus(P2, g0), g3.times_plus(P2, g1));
        let (even_q, odd_q) = (g2.times_plus(Q2, g0), g3.times_plus(Q2, g1));
        [
            g0,
            odd_p.times_plus(P, even_p),
            odd_p.times_plus(-P, even_p),
            odd_q.times_plus(Q, even_q),
            odd_q.times_plus(-Q, even_q),
            g3,
        ]
    }
}

impl Backward for TwoOfFive {
    #[inline(always)]
    fn gradients<V: Vector>([g0, g1, ..]: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
        [
            g0,
            g1.times_plus(P, g0),
            g1.times_plus(-P, g0),
            g1.times_plus(Q, g0),
            g1.times_plus(-Q, g0),
            g1,
        ]
    }
}

/// How tiles of gradients are evaluated.
pub struct Gradients<T>(PhantomData<T>);

impl<T: Backward> Evaluate for Gradients<T> {
    const LEN: usize = T::POINTS;

    #[inline(always)]
    fn at_points<V: Vector>(pixels: [V; MOST_POINTS]) -> [V; MOST_POINTS] {
        T::gradients(pixels)
    }
}
