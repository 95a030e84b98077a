//! Lines walked in order, on the host.

use crate::cpu::pool::parallel_for;
use crate::shape::Span;

/// Visits every element, along `dim` in order (or against it): `f(element, position, state)` with
/// a state for each line. Lines that lie side by side are walked together.
pub fn walk<A: Copy + Send + Sync>(
    shape: &[usize],
    dim: usize,
    reverse: bool,
    init: A,
    f: impl Fn(usize, usize, &mut A) + Sync + Copy,
) {
    const TILE: usize = 64;
    let Span {
        outer,
        length: n,
        inner,
    } = Span::of(shape, dim);
    if outer * n * inner == 0 {
        return;
    }
    if inner == 1 {
        // Several lines at a time, since each step of one waits for the step before. Four: lines are often
        // a multiple of 4 KB apart, so that all of them and their results share one set of the cache, and
        // eight ways are common.
        const SIDE: usize = 4;
        return parallel_for(outer.div_ceil(SIDE), (1 << 14) / (n * SIDE) + 1, |range| {
            // A copy on this stack, which no result can alias.
            let own = f;
            let (start, by) = if reverse { (n - 1, usize::MAX) } else { (0, 1) };
            let mut first = range.start * SIDE;
            let end = outer.min(range.end * SIDE);
            while first + SIDE <= end {
                let mut state = [init; SIDE];
                let mut k = start;
                for _ in 0..n {
                    for (j, s) in state.iter_mut().enumerate() {
                        own((first + j) * n + k, k, s);
                    }
                    k = k.wrapping_add(by);
                }
                first += SIDE;
            }
            for o in first..end {
                let (mut state, mut k) = (init, start);
                for _ in 0..n {
                    own(o * n + k, k, &mut state);
                    k = k.wrapping_add(by);
                }
            }
        });
    }
    let tiles = inner.div_ceil(TILE);
    parallel_for(
        outer * tiles,
        (1 << 14) / (n * inner.min(TILE)) + 1,
        |range| {
            for u in range {
                let (o, t) = (u / tiles, u % tiles);
                let width = TILE.min(inner - t * TILE);
                let mut state = [init; TILE];
                for step in 0..n {
                    let k = if reverse { n - 1 - step } else { step };
                    let at = (o * n + k) * inner + t * TILE;
                    for (j, s) in state[..width].iter_mut().enumerate() {
                        f(at + j, k, s);
                    }
                }
            }
        },
    );
}

/// Elements that threads read, or fill one by one.
#[derive(Clone, Copy)]
pub struct Slots<T>(pub *mut T);
// SAFETY: every element is written by one thread.
unsafe impl<T> Sync for Slots<T> {}
impl<T> Slots<T> {
    pub fn of(y: &mut [T]) -> Self {
        Slots(y.as_mut_ptr())
    }
    #[inline(always)]
    pub fn get(&self, i: usize) -> T
    where
        T: Copy,
    {
        // SAFETY: `i` comes from `walk`; nobody writes this element at the same time.
        unsafe { *self.0.add(i) }
    }
    #[inline(always)]
    pub fn set(&self, i: usize, v: T) {
        // SAFETY: `i` comes from `walk` over the shape of the slice.
        unsafe { *self.0.add(i) = v }
    }
    /// # Safety
    /// The elements lie in the slice, and nobody else uses them meanwhile.
    pub unsafe fn part<'a>(&self, from: usize, n: usize) -> &'a mut [T] {
        // SAFETY: the elements lie in the slice, and nobody else uses them meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(from), n) }
    }
}
