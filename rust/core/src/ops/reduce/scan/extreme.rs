//! Running extrema and where they were, on the host.

use super::walk::{walk, Slots};
use crate::cpu::elements::Compute;
use crate::cpu::pool::parallel_for;
use crate::shape::Span;

/// The last element so far that `beats` what was before it, and its position; a NaN is beaten by NaN
/// alone.
pub fn running<T: Compute>(
    x: &[T],
    (shape, dim): (&[usize], usize),
    values: &mut [T],
    positions: &mut [i64],
    beats: impl Fn(T, T) -> bool + Sync + Copy,
) {
    #[allow(clippy::eq_op)]
    let takes = move |v: T, old: T| (v != v) | beats(v, old);
    let n = Span::of(shape, dim).length;
    if Span::of(shape, dim).inner == 1 && n > 0 {
        let (y, at) = (Slots::of(values), Slots::of(positions));
        return parallel_for(x.len() / n, (1 << 14) / n + 1, |range| {
            for line in range {
                // SAFETY: each line is one thread's alone.
                let (y, at) = unsafe { (y.part(line * n, n), at.part(line * n, n)) };
                self::line(&x[line * n..][..n], y, at, takes);
            }
        });
    }
    let (y, at) = (Slots::of(values), Slots::of(positions));
    let first = (T::default(), 0);
    walk(shape, dim, false, first, move |e, k, s: &mut (T, usize)| {
        let (v, old) = (x[e], *s);
        let wins = (k == 0) | takes(v, old.0);
        *s = if wins { (v, k) } else { old };
        y.set(e, s.0);
        at.set(e, s.1 as i64);
    });
}

/// One line. Most blocks of a long one hold nothing new, which a few vectors tell.
fn line<T: Compute>(x: &[T], y: &mut [T], at: &mut [i64], takes: impl Fn(T, T) -> bool + Copy) {
    const BLOCK: usize = 16;
    let (mut best, mut position) = (x[0], 0);
    let blocks = x.chunks(BLOCK).zip(y.chunks_mut(BLOCK));
    for (b, ((x, y), at)) in blocks.zip(at.chunks_mut(BLOCK)).enumerate() {
        let any = match <&[T; BLOCK]>::try_from(x) {
            Ok(x) => x.iter().fold(false, |any, &v| any | takes(v, best)),
            Err(_) => true,
        };
        if !any {
            y.fill(best);
            at.fill(position as i64);
            continue;
        }
        for (j, ((&v, y), at)) in x.iter().zip(y).zip(at).enumerate() {
            let wins = takes(v, best);
            best = if wins { v } else { best };
            position = if wins { b * BLOCK + j } else { position };
            *y = best;
            *at = position as i64;
        }
    }
}
