//! What is taken of long lines, without a sorted copy: the room for it is a few counts and what is
//! taken, but for `mode`, which sorts the keys alone, and where `kthvalue` meets equal elements.

use super::{quickselect, Which};
use crate::alloc;
use crate::cpu::nth::{first, nth, position, Room};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::radix::{bounds_of, tally, Key, Lines, Ordinal, Sorter};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::with_element;

/// The lower middle of a line, or its first NaN.
fn median<T: Ordinal>(x: &[T], ignore_nan: bool, room: &mut Room) -> usize {
    let n = x.len();
    let floats = T::DTYPE.is_float();
    let nan = match bounds_of(x) {
        Some((_, high)) if floats && high == T::Key::MAX => {
            x.iter().filter(|v| v.key() == T::Key::MAX).count()
        }
        _ => 0,
    };
    let k = match (nan, ignore_nan) {
        (0, _) => (n - 1) / 2,
        (_, false) => n - nan,
        (_, true) => (n - nan).saturating_sub(1) / 2,
    };
    let place = nth(x, k, room);
    position(x, place.key, k - place.before)
}

/// The element at a place, of equal ones the one that PyTorch takes.
fn place<T: Ordinal>(x: &[T], k: usize, room: &mut Room) -> usize {
    let found = nth(x, k, room);
    if found.same == 1 {
        return position(x, found.key, 0);
    }
    let mut line = alloc::gathered(x.iter().enumerate().map(|(i, v)| (v.key(), i as u32)));
    quickselect(&mut line, k, |l| l.0);
    line[k].1 as usize
}

/// The last of the most frequent elements.
fn mode<T: Ordinal>(x: &[T]) -> usize {
    let (low, high) = bounds_of(x).unwrap_or_default();
    let span = high.wide() - low.wide();
    let key = if span < x.len() as u64 / 2 {
        let counts = tally(x, low.wide(), span as usize + 1);
        let most = counts.iter().copied().max();
        let at = counts.iter().position(|&c| Some(c) == most).unwrap_or(0);
        T::Key::of_wide(low.wide() + at as u64)
    } else {
        let mut keys = alloc::gathered(x.iter().map(|v| v.key()));
        keys.sort_unstable();
        let runs = keys.chunk_by(|a, b| a == b);
        // The first of the longest.
        let best = runs.reduce(|a, b| if b.len() > a.len() { b } else { a });
        best.map_or(low, |run| run[0])
    };
    x.iter().rposition(|v| v.key() == key).unwrap_or(0)
}

/// Takes `m` elements of each line of a contiguous tensor.
///
/// # Safety
/// The results have room for `m` elements of each line; lines are not empty, and indices fit 32 bits.
pub unsafe fn lines(
    x: &Tensor,
    lines: Lines,
    which: Which,
    m: usize,
    (values, indices): (*mut u8, *mut i64),
) -> Result<()> {
    let (n, inner) = (lines.n, lines.inner);
    let (values, indices) = (Ptr::new(values), Ptr::new(indices));
    with_element!(x.dtype(), T => {
        let one = |line: *const T, first_place: usize, room: &mut (Room, Vec<u32>)| -> Result<()> {
            // SAFETY: the line has `n` elements.
            let all = unsafe { std::slice::from_raw_parts(line, n) };
            let start = match inner {
                1 => first_place / n * m,
                _ => first_place / inner * m * inner + first_place % inner,
            };
            let put = |i: usize, index: usize| {
                // SAFETY: the line's places in the results are its own.
                unsafe {
                    indices.at(start + i * inner).write(index as i64);
                    values.get().cast::<T>().add(start + i * inner).write(all[index]);
                }
            };
            let (room, chosen) = room;
            match which {
                Which::TopK { largest, .. } => {
                    first(all, m, largest, room, chosen);
                    let taken = alloc::gathered(chosen.iter().map(|&i| all[i as usize]));
                    let mut sorter = Sorter::new(m)?;
                    // SAFETY: there are `m` elements.
                    let order = unsafe { sorter.sort(taken.as_ptr(), m, largest) };
                    parallel_for(m, 1 << 15, |range| {
                        for i in range {
                            put(i, chosen[order.index(i)] as usize);
                        }
                    });
                }
                Which::Place { k } => put(0, place(all, k, room)),
                Which::Median { ignore_nan, .. } => put(0, median(all, ignore_nan, room)),
                Which::Mode | Which::All { .. } => put(0, mode(all)),
            }
            Ok(())
        };
        let failed = parking_lot::Mutex::new(None);
        let each = |room: &mut (Room, Vec<u32>), line: *const T, first_place: usize| {
            if let Err(e) = one(line, first_place, room) {
                failed.lock().get_or_insert(e);
            }
        };
        // SAFETY: `x` is contiguous, of this type.
        unsafe { lines.each(x.ptr::<T>().cast_const(), || Ok(Default::default()), each)? };
        failed.into_inner().map_or(Ok(()), Err)
    })
}
