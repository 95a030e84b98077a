//! Lines walked in order, on the host.

use crate::cpu::rows::lines;
use crate::shape::Span;

/// Lines that are walked at once, since each step of one waits for the step before. Four: lines are often a
/// multiple of 4 KB apart, so that all of them and their results share one set of the cache, and eight ways are common.
const SIDE: usize = 4;
/// Those that lie side by side.
const TILE: usize = 64;

/// Visits every element, along `dim` in order (or against it): `f(element, position, state)` with
/// a state for each line. Lines that lie side by side are walked together.
pub fn walk<A: Copy + Send + Sync>(
    shape: &[usize],
    (dim, reverse): (usize, bool),
    init: A,
    f: impl Fn(usize, usize, &mut A) + Sync + Copy,
) {
    lines(Span::of(shape, dim), (SIDE, TILE), 1, |l| {
        // A copy on this stack, which no result can alias.
        let own = f;
        let (start, by) = if reverse {
            (l.n - 1, usize::MAX)
        } else {
            (0, 1)
        };
        if l.stride > 1 {
            let (mut state, mut k) = ([init; TILE], start);
            for _ in 0..l.n {
                let at = l.at + k * l.stride;
                for (j, s) in state[..l.count].iter_mut().enumerate() {
                    own(at + j, k, s);
                }
                k = k.wrapping_add(by);
            }
        } else if l.count == SIDE {
            let (mut state, mut k) = ([init; SIDE], start);
            for _ in 0..l.n {
                for (j, s) in state.iter_mut().enumerate() {
                    own(l.at + j * l.n + k, k, s);
                }
                k = k.wrapping_add(by);
            }
        } else {
            for first in (0..l.count).map(|j| l.at + j * l.n) {
                let (mut state, mut k) = (init, start);
                for _ in 0..l.n {
                    own(first + k, k, &mut state);
                    k = k.wrapping_add(by);
                }
            }
        }
    });
}
