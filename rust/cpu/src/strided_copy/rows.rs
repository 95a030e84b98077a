//! Blocks of two dimensions moved row by row, for each instruction set: rows may be as short as two
//! elements, so nothing is called for a row.

use super::Dim;
use crate::copy::copy;
use crate::per_isa;

/// Writes `rows` rows of `inner`.
pub type Rows<T> = unsafe fn(x: *const T, y: *mut T, rows: Dim, inner: Dim);

per_isa! {
    /// The loop for elements of one size on this machine.
    pub fn kernel[T: Copy] -> Rows<T> = (x: *const T, y: *mut T, rows: Dim, inner: Dim) {
        // SAFETY: who calls a [`Rows`] has these rows on both sides.
        unsafe { block(x, y, rows, inner) }
    }
}

#[inline(always)]
unsafe fn block<T: Copy>(x: *const T, y: *mut T, rows: Dim, inner: Dim) {
    // SAFETY: both sides have `rows.n` rows of `inner.n` elements at these steps.
    unsafe {
        let [s, t] = inner.step;
        if t == 1 && s != 1 && rows.step == [1, inner.n as isize] {
            // Each row takes one element of as many streams.
            match inner.n {
                2 => return weave::<T, 2>(x, s, y, rows.n),
                3 => return weave::<T, 3>(x, s, y, rows.n),
                4 => return weave::<T, 4>(x, s, y, rows.n),
                _ => {}
            }
        }
        // The kind of row is asked for once.
        match (s, t) {
            (1, 1) => each(x, y, rows, |x, y| run(x, y, inner.n)),
            (0, 1) => each(x, y, rows, |x, y| fill(*x, y, inner.n)),
            (-1, 1) => each(x, y, rows, |x, y| turn(x, y, inner.n)),
            (2, 1) => each(x, y, rows, |x, y| pick::<T, 2>(x, y, inner.n)),
            (3, 1) => each(x, y, rows, |x, y| pick::<T, 3>(x, y, inner.n)),
            (4, 1) => each(x, y, rows, |x, y| pick::<T, 4>(x, y, inner.n)),
            _ => each(x, y, rows, |x, y| {
                for i in 0..inner.n as isize {
                    *y.offset(i * t) = *x.offset(i * s);
                }
            }),
        }
    }
}

#[inline(always)]
unsafe fn each<T>(x: *const T, y: *mut T, rows: Dim, f: impl Fn(*const T, *mut T)) {
    let (mut x, mut y) = (x, y);
    for _ in 0..rows.n {
        f(x, y);
        (x, y) = (
            x.wrapping_offset(rows.step[0]),
            y.wrapping_offset(rows.step[1]),
        );
    }
}

/// `y[j * N + i] = x[i * s + j]`.
#[inline(always)]
unsafe fn weave<T: Copy, const N: usize>(x: *const T, s: isize, y: *mut T, n: usize) {
    // SAFETY: `x` has N streams of `n` elements, `s` apart, and `y` room for all.
    unsafe {
        let streams: [*const T; N] = std::array::from_fn(|i| x.wrapping_offset(i as isize * s));
        for j in 0..n {
            for i in 0..N {
                *y.add(j * N + i) = *streams[i].add(j);
            }
        }
    }
}

#[inline(always)]
unsafe fn fill<T: Copy>(x: T, y: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: `y` has room for `n`.
        unsafe { *y.add(i) = x };
    }
}

/// From the last to the first.
#[inline(always)]
unsafe fn turn<T: Copy>(x: *const T, y: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: `x` is the last of `n` elements, and `y` has room for them.
        unsafe { *y.add(i) = *x.sub(i) };
    }
}

/// Every `S`th.
#[inline(always)]
unsafe fn pick<T: Copy, const S: usize>(x: *const T, y: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: `x` has `n` elements S apart, and `y` room for them.
        unsafe { *y.add(i) = *x.add(i * S) };
    }
}

/// Neighbours. Vectors at the end overlap rather than get shorter, so that no length takes more than
/// a few.
///
/// # Safety
/// Both sides have `n` elements, which are the same memory or apart.
#[inline(always)]
pub unsafe fn run<T: Copy>(x: *const T, y: *mut T, n: usize) {
    const LONG: usize = 512;
    #[inline(always)]
    unsafe fn one<V: Copy>(x: *const u8, y: *mut u8) {
        // SAFETY: both sides have a `V`, of any alignment.
        unsafe {
            y.cast::<V>()
                .write_unaligned(x.cast::<V>().read_unaligned())
        };
    }
    #[inline(always)]
    unsafe fn both<V: Copy>(x: *const u8, y: *mut u8, bytes: usize) {
        // SAFETY: both sides have at least one `V` and at most two, of any alignment.
        unsafe {
            let last = bytes - size_of::<V>();
            // One after the other: of two at a time the compiler keeps one in memory.
            one::<V>(x, y);
            one::<V>(x.add(last), y.add(last));
        }
    }
    // SAFETY: both sides have `n` elements, which are the same memory or apart.
    unsafe {
        let bytes = n * size_of::<T>();
        let (x, y) = (x.cast::<u8>(), y.cast::<u8>());
        match bytes {
            0..2 if bytes == 0 => {}
            0..2 => *y = *x,
            2..4 => both::<[u8; 2]>(x, y, bytes),
            4..8 => both::<u32>(x, y, bytes),
            8..16 => both::<u64>(x, y, bytes),
            16..32 => both::<[u64; 2]>(x, y, bytes),
            32..64 => both::<[u64; 4]>(x, y, bytes),
            64..LONG => {
                let mut at = 0;
                while at + 64 < bytes {
                    one::<[u64; 8]>(x.add(at), y.add(at));
                    at += 64;
                }
                one::<[u64; 8]>(x.add(bytes - 64), y.add(bytes - 64));
            }
            _ => copy(x, y, bytes),
        }
    }
}
