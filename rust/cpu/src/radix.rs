//! Sorting by radix: an element becomes an unsigned integer of the same order, and its distance
//! from the least of its line, with its index below, one word that is sorted.

use super::elements::{Bool, Element};
use super::pool::{in_parallel, look, num_threads, parallel_chunks, parallel_for, Ptr};
use crate::alloc::{self, Scratch};
use crate::error::Result;
use crate::per_isa;
use half::{bf16, f16};

/// An unsigned integer that elements are compared as.
pub trait Key: Copy + Ord + Default + Send + Sync + 'static {
    const MAX: Self;
    fn wide(self) -> u64;
    fn of_wide(v: u64) -> Self;
}
macro_rules! keys {
    ($($t:ty),*) => { $(impl Key for $t {
        const MAX: Self = <$t>::MAX;
        #[inline(always)]
        fn wide(self) -> u64 {
            self as u64
        }
        #[inline(always)]
        fn of_wide(v: u64) -> Self {
            v as $t
        }
    })* };
}
keys!(u8, u16, u32, u64);

/// An element with a place in an order: NaN of any sign is largest, both zeros are one.
pub trait Ordinal: Element {
    type Key: Key;
    fn key(self) -> Self::Key;
    /// The element of a key, where there is but one.
    fn of_key(key: Self::Key) -> Option<Self>;
}
macro_rules! integer_ordinals {
    ($($t:ty => $k:ty, $flip:expr;)*) => { $(impl Ordinal for $t {
        type Key = $k;
        #[inline(always)]
        fn key(self) -> $k {
            self as $k ^ $flip
        }
        #[inline(always)]
        fn of_key(key: $k) -> Option<Self> {
            Some((key ^ $flip) as $t)
        }
    })* };
}
integer_ordinals! {
    u8 => u8, 0;
    i8 => u8, 1 << 7;
    i16 => u16, 1 << 15;
    i32 => u32, 1 << 31;
    i64 => u64, 1 << 63;
}
macro_rules! float_ordinals {
    ($($t:ty => $k:ty, $i:ty, $infinity:expr;)*) => { $(impl Ordinal for $t {
        type Key = $k;
        #[inline(always)]
        fn key(self) -> $k {
            const TOP: $k = 1 << (<$k>::BITS - 1);
            let bits = self.to_bits();
            let size = bits & !TOP;
            // The sign, unless this is a zero, spread over all bits.
            let sign = if size == 0 { 0 } else { ((bits as $i) >> (<$k>::BITS - 1)) as $k };
            let key = size ^ (sign | TOP) ^ (sign & TOP);
            if size > $infinity { <$k>::MAX } else { key }
        }
        #[inline(always)]
        fn of_key(key: $k) -> Option<Self> {
            const TOP: $k = 1 << (<$k>::BITS - 1);
            let bits = if key & TOP != 0 { key ^ TOP } else { !key };
            let one = key != TOP && key != <$k>::MAX;
            one.then(|| <$t>::from_bits(bits))
        }
    })* };
}
float_ordinals! {
    f16 => u16, i16, 0x7c00;
    bf16 => u16, i16, 0x7f80;
    f32 => u32, i32, 0x7f80_0000;
    f64 => u64, i64, 0x7ff0_0000_0000_0000;
}
impl Ordinal for Bool {
    type Key = u8;
    #[inline(always)]
    fn key(self) -> u8 {
        (self.0 != 0) as u8
    }
    #[inline(always)]
    fn of_key(key: u8) -> Option<Self> {
        Some(Bool(key))
    }
}

per_isa! {
    /// The least and the greatest key of one element or more.
    fn bounds[T: Ordinal](x: &[T]) -> (T::Key, T::Key) {
        let (mut low, mut high) = (T::Key::MAX, T::Key::default());
        for x in x {
            let k = x.key();
            low = low.min(k);
            high = high.max(k);
        }
        (low, high)
    }
}

/// The least and the greatest key of a slice, if there is one.
pub fn bounds_of<T: Ordinal>(x: &[T]) -> Option<(T::Key, T::Key)> {
    let parts = x.len().div_ceil(SHARED);
    let mut all = alloc::full((T::Key::MAX, T::Key::default()), parts);
    parallel_chunks(&mut all, 1, 1, |first, all| {
        for (bounds_of, part) in all.iter_mut().zip(x[first * SHARED..].chunks(SHARED)) {
            *bounds_of = bounds(part);
        }
    });
    all.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// How often each of `size` keys from `low` on occurs.
pub fn tally<T: Ordinal>(x: &[T], low: u64, size: usize) -> Vec<u32> {
    if size == 0 {
        return Vec::new();
    }
    // Each part needs a table of its own.
    let parts = num_threads()
        .min(x.len() / SHARED)
        .min(x.len() / (2 * size))
        .clamp(1, 64);
    let each = x.len().div_ceil(parts);
    let mut counts = alloc::full(0u32, parts * size);
    parallel_chunks(&mut counts, size, 1, |first, all| {
        for (p, counts) in (first..).zip(all.chunks_exact_mut(size)) {
            let part = &x[(p * each).min(x.len())..((p + 1) * each).min(x.len())];
            for v in part {
                // SAFETY: an element of the line. Another thread may have changed it since its bounds
                // were found: it is read once, and not counted where it lies beyond them.
                let v = unsafe { std::ptr::read_volatile(v) };
                if let Some(n) = counts.get_mut(v.key().wide().wrapping_sub(low) as usize) {
                    *n += 1;
                }
            }
        }
    });
    let (first, rest) = counts.split_at_mut(size);
    for part in rest.chunks_exact(size) {
        for (a, b) in first.iter_mut().zip(part) {
            *a += b;
        }
    }
    counts.truncate(size);
    counts
}

/// How keys of a line become the upper halves of words.
#[derive(Clone, Copy)]
struct Scale {
    base: u64,
    descending: bool,
    /// Low bits that do not fit.
    shift: u32,
    /// Bits that differ, at most 32.
    bits: u32,
}

impl Scale {
    fn new<K: Key>((low, high): (K, K), descending: bool) -> Scale {
        let bits = 64 - high.wide().wrapping_sub(low.wide()).leading_zeros();
        Scale {
            base: if descending { high } else { low }.wide(),
            descending,
            shift: bits.saturating_sub(32),
            bits: bits.min(32),
        }
    }
    #[inline(always)]
    fn distance(self, key: u64) -> u64 {
        if self.descending {
            self.base.wrapping_sub(key)
        } else {
            key.wrapping_sub(self.base)
        }
    }
    #[inline(always)]
    fn key(self, word: u64) -> u64 {
        let d = word >> 32;
        if self.descending {
            self.base.wrapping_sub(d)
        } else {
            self.base.wrapping_add(d)
        }
    }
}

per_isa! {
    unsafe fn pack[T: Ordinal](x: *const T, first: usize, end: usize, s: Scale, to: *mut u64) {
        // SAFETY: `x` and `to` have elements `first..end`.
        unsafe {
            for i in first..end {
                let d = s.distance((*x.add(i)).key().wide()) >> s.shift;
                *to.add(i) = d << 32 | i as u64;
            }
        }
    }
}

/// Elements from which on several threads sort one line.
const SHARED: usize = 1 << 15;
/// Elements below which comparing them is quicker.
const SHORT: usize = 128;
/// Bits per pass over long lines: 2048 places to write to stay in L2.
const DIGIT: u32 = 11;
/// Words that are sorted within some ten milliseconds.
const PIECE: usize = 1 << 21;

/// Parts of the words; before each that is long, an interruption is looked for.
fn pieces(words: &[u64]) -> impl Iterator<Item = &[u64]> {
    words.chunks(PIECE).inspect(|piece| {
        if piece.len() == PIECE {
            look();
        }
    })
}

/// Memory to sort lines of up to `n` elements.
pub struct Sorter {
    a: Scratch<u64>,
    b: Scratch<u64>,
    counts: Vec<u32>,
}

/// A line in order.
pub struct Sorted<'a, T> {
    words: &'a [u64],
    x: *const T,
    scale: Scale,
}

impl<T: Ordinal> Sorted<'_, T> {
    #[inline(always)]
    pub fn index(&self, i: usize) -> usize {
        self.words[i] as u32 as usize
    }
    #[inline(always)]
    pub fn key(&self, i: usize) -> T::Key {
        if self.scale.shift == 0 {
            return T::Key::of_wide(self.scale.key(self.words[i]));
        }
        // SAFETY: indices are those of the line.
        unsafe { (*self.x.add(self.index(i))).key() }
    }
    #[inline(always)]
    pub fn value(&self, i: usize) -> T {
        let known = match self.scale.shift {
            0 => T::of_key(T::Key::of_wide(self.scale.key(self.words[i]))),
            _ => None,
        };
        // SAFETY: indices are those of the line.
        known.unwrap_or_else(|| unsafe { *self.x.add(self.index(i)) })
    }
}
// SAFETY: the elements are only read.
unsafe impl<T> Sync for Sorted<'_, T> {}

impl Sorter {
    pub fn new(n: usize) -> Result<Sorter> {
        alloc::check(n, 2 * size_of::<u64>())?;
        Ok(Sorter {
            a: Scratch::new(n),
            // Short lines are sorted in place.
            b: Scratch::new(if n < SHORT { 0 } else { n }),
            counts: Vec::new(),
        })
    }

    /// Sorts `n` elements; equal ones keep their order.
    ///
    /// # Safety
    /// `x` has `n > 0` elements, no more than this was made for nor than fit 32 bits.
    pub unsafe fn sort<T: Ordinal>(
        &mut self,
        x: *const T,
        n: usize,
        descending: bool,
    ) -> Sorted<'_, T> {
        // SAFETY: both have room for so many, are lent to nobody else, and any content is a number.
        let (a, b) = unsafe {
            let of = |room: &Scratch<u64>, n| std::slice::from_raw_parts_mut(room.ptr(), n);
            (of(&self.a, n), of(&self.b, if n < SHORT { 0 } else { n }))
        };
        let shared = n >= SHARED && num_threads() > 1 && !in_parallel();
        let from = Ptr::read(x);
        // SAFETY: `x` has `n` elements.
        let line = unsafe { std::slice::from_raw_parts(x, n) };
        let range = match shared {
            true => bounds_of(line),
            false => None,
        };
        let scale = Scale::new(range.unwrap_or_else(|| bounds(line)), descending);
        let to = Ptr::new(a.as_mut_ptr());
        let grain = if shared { SHARED } else { n };
        parallel_for(n, grain, |r| {
            let x = from.get().cast_const();
            // SAFETY: both have `n` elements, and ranges of different threads are disjoint.
            unsafe { pack(x, r.start, r.end, scale, to.get()) }
        });
        let flipped = match n {
            0..SHORT => {
                a.sort_unstable();
                false
            }
            _ if shared => radix_shared(a, b, scale.bits),
            _ => radix(a, b, scale.bits, &mut self.counts),
        };
        let words = if flipped { b } else { a };
        // Keys of up to 32 bits fit, and need none of that code.
        if const { size_of::<T::Key>() > 4 } && scale.shift > 0 {
            // SAFETY: the words' indices were packed from those of `x`.
            unsafe { settle(words, x, scale) };
        }
        Sorted { words, x, scale }
    }
}

/// The widths of passes over `bits` bits.
fn passes(bits: u32, digit: u32) -> (u32, u32) {
    let n = bits.div_ceil(digit);
    (n, if n == 0 { 0 } else { bits.div_ceil(n) })
}

/// Sorts by the upper halves, from the lowest digit on. Returns whether the result is in `b`.
fn radix(a: &mut [u64], b: &mut [u64], bits: u32, counts: &mut Vec<u32>) -> bool {
    let (n, width) = passes(bits, if a.len() < 1 << 13 { 8 } else { DIGIT });
    let size = 1usize << width;
    let mask = size as u64 - 1;
    counts.clear();
    alloc::resize(counts, n as usize * size, 0);
    for &w in a.iter() {
        for (p, c) in counts.chunks_exact_mut(size).enumerate() {
            c[(w >> (32 + p as u32 * width) & mask) as usize] += 1;
        }
    }
    let mut flipped = false;
    for (p, c) in counts.chunks_exact_mut(size).enumerate() {
        let shift = 32 + p as u32 * width;
        let (from, to) = if flipped {
            (&mut *b, &mut *a)
        } else {
            (&mut *a, &mut *b)
        };
        if c[(from[0] >> shift & mask) as usize] as usize == from.len() {
            continue;
        }
        let mut at = 0;
        for n in c.iter_mut() {
            at += std::mem::replace(n, at);
        }
        for words in pieces(from) {
            for &w in words {
                let slot = &mut c[(w >> shift & mask) as usize];
                to[*slot as usize] = w;
                *slot += 1;
            }
        }
        flipped = !flipped;
    }
    flipped
}

/// Parts up to which a pass counts the digits of the next one: for each of them it has a table of every
/// other.
const AHEAD: usize = 8;

/// [`radix`] with a part of each pass for every thread. What one thread wrote is far from another, and
/// is read once: while words are moved, the next digits are counted by the part that they go to.
fn radix_shared(a: &mut [u64], b: &mut [u64], bits: u32) -> bool {
    let (n, width) = passes(bits, DIGIT);
    let size = 1usize << width;
    let digit = |w: u64, p: u32| (w >> (32 + p * width)) as usize & (size - 1);
    let parts = num_threads().min(64);
    let each = a.len().div_ceil(parts);
    // The part of place `i`, exact as places have 32 bits.
    let inverse = (u64::MAX / each as u64 + 1) as u128;
    let part_of = |i: u32| ((i as u128 * inverse) >> 64) as usize;
    let ahead = parts <= AHEAD;
    let mut counts = alloc::full(0u32, parts * size);
    let mut next = alloc::full(0u32, if ahead { parts * parts * size } else { 0 });
    let mut flipped = false;
    for p in 0..n {
        let (from, to) = if flipped {
            (&*b, &mut *a)
        } else {
            (&*a, &mut *b)
        };
        let part = |t: usize| &from[(t * each).min(from.len())..((t + 1) * each).min(from.len())];
        if p == 0 || !ahead {
            parallel_chunks(&mut counts, size, 1, |first, all| {
                for (t, c) in (first..).zip(all.chunks_exact_mut(size)) {
                    c.fill(0);
                    for words in pieces(part(t)) {
                        words.iter().for_each(|&w| c[digit(w, p)] += 1);
                    }
                }
            });
        } else {
            for (i, c) in counts.iter_mut().enumerate() {
                *c = next.iter().skip(i).step_by(parts * size).sum();
            }
        }
        let mut at = 0;
        for d in 0..size {
            for t in 0..parts {
                at += std::mem::replace(&mut counts[t * size + d], at);
            }
        }
        let last = p + 1 == n || !ahead;
        let (of_next, to) = (Ptr::new(next.as_mut_ptr()), Ptr::new(to.as_mut_ptr()));
        parallel_chunks(&mut counts, size, 1, |first, all| {
            for (t, c) in (first..).zip(all.chunks_exact_mut(size)) {
                // SAFETY: each part has its own tables, and counts that name places of its own.
                let mut place = |w: u64| unsafe {
                    let slot = &mut c[digit(w, p)];
                    let i = std::mem::replace(slot, *slot + 1);
                    *to.at(i as usize) = w;
                    i
                };
                if last {
                    for words in pieces(part(t)) {
                        words.iter().for_each(|&w| _ = place(w));
                    }
                    continue;
                }
                let tables = parts * size;
                // SAFETY: each part has its own tables, one for each part.
                let next = unsafe { of_next.part(t * tables..(t + 1) * tables) };
                next.fill(0);
                for words in pieces(part(t)) {
                    for &w in words {
                        next[part_of(place(w)) * size + digit(w, p + 1)] += 1;
                    }
                }
            }
        });
        flipped = !flipped;
    }
    flipped
}

/// Orders neighbours whose keys agree in the bits that were sorted by.
// SAFETY: the words' indices are those of `x`.
unsafe fn settle<T: Ordinal>(words: &mut [u64], x: *const T, s: Scale) {
    let parts = words.len().div_ceil(SHARED);
    // A run of equal ones belongs to the part in which it begins.
    let start = |p: usize, words: &[u64]| {
        let mut at = (p * SHARED).min(words.len());
        while at > 0 && at < words.len() && words[at] >> 32 == words[at - 1] >> 32 {
            at += 1;
        }
        at
    };
    let starts: Vec<usize> = (0..=parts).map(|p| start(p, words)).collect();
    let (to, x) = (Ptr::new(words.as_mut_ptr()), Ptr::read(x));
    parallel_for(parts, 1, |r| {
        let mut run = Vec::new();
        for p in r {
            if starts[p] >= starts[p + 1] {
                continue;
            }
            // SAFETY: parts are disjoint and lie inside the words.
            let words = unsafe {
                let len = starts[p + 1] - starts[p];
                std::slice::from_raw_parts_mut(to.get().add(starts[p]), len)
            };
            let mut first = 0;
            while first < words.len() {
                let top = words[first] >> 32;
                let same = words[first + 1..]
                    .iter()
                    .take_while(|&&w| w >> 32 == top)
                    .count();
                if same > 0 {
                    let words = &mut words[first..=first + same];
                    // SAFETY: indices are those of the line.
                    let full = |&w: &u64| unsafe {
                        let key = (*x.get().add(w as u32 as usize)).key();
                        (s.distance(key.wide()), w)
                    };
                    // Keys are read once: another thread may change the elements.
                    run.clear();
                    alloc::reserve(&mut run, words.len());
                    run.extend(words.iter().map(full));
                    run.sort_unstable();
                    for (to, &(_, w)) in words.iter_mut().zip(&run) {
                        *to = w;
                    }
                }
                first += same + 1;
            }
        }
    });
}

/// Lines of a tensor along one dimension: how many lie before it, its size, how many after.
#[derive(Clone, Copy)]
pub struct Lines {
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
}

impl Lines {
    /// Calls `f(line's elements, first of its places)` for each line, several in one range.
    ///
    /// # Safety
    /// `x` is contiguous with elements of `T`.
    pub unsafe fn each<T: Element, S>(
        self,
        x: *const T,
        state: impl Fn() -> Result<S> + Sync,
        f: impl Fn(&mut S, *const T, usize) + Sync,
    ) -> Result<()> {
        // SAFETY: lines lie inside `x`, which has outer * n * inner elements; a copied line lies
        // inside `copy`.
        unsafe {
            let (n, inner) = (self.n, self.inner);
            let x = Ptr::read(x);
            let failed = parking_lot::Mutex::new(None);
            let work = |range: std::ops::Range<usize>| -> Result<()> {
                let mut state = state()?;
                // Lines that are not contiguous are copied, a few side by side at a time.
                const SIDE: usize = 8;
                let mut copy: Vec<T> = Vec::new();
                let mut l = range.start;
                while l < range.end {
                    let (o, i) = (l / inner, l % inner);
                    let from = x.get().cast_const().add(o * n * inner + i);
                    if inner == 1 {
                        f(&mut state, from, l * n);
                        l += 1;
                        continue;
                    }
                    let side = SIDE.min(inner - i).min(range.end - l);
                    copy.clear();
                    alloc::reserve(&mut copy, side * n);
                    for s in 0..side {
                        copy.extend((0..n).map(|k| *from.add(k * inner + s)));
                    }
                    for s in 0..side {
                        f(&mut state, copy.as_ptr().add(s * n), l + s);
                    }
                    l += side;
                }
                Ok(())
            };
            let count = self.outer * inner;
            // One long line is shared out inside.
            if count == 1 {
                return work(0..1);
            }
            parallel_for(count, (1 << 11) / n.max(1) + 1, |range| {
                if let Err(e) = work(range) {
                    failed.lock().get_or_insert(e);
                }
            });
            failed.into_inner().map_or(Ok(()), Err)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Ordinal + PartialEq + std::fmt::Debug>(x: &[T]) {
        let mut want: Vec<usize> = (0..x.len()).collect();
        for descending in [false, true] {
            want.sort();
            want.sort_by(|&a, &b| {
                let o = x[a].key().cmp(&x[b].key());
                if descending {
                    o.reverse()
                } else {
                    o
                }
            });
            let mut sorter = Sorter::new(x.len()).expect("memory");
            // SAFETY: the slice has as many elements.
            let got = unsafe { sorter.sort(x.as_ptr(), x.len(), descending) };
            for (i, &w) in want.iter().enumerate() {
                assert_eq!(got.index(i), w);
                assert!(got.key(i) == x[w].key() && got.value(i).key() == x[w].key());
            }
        }
    }

    #[test]
    fn every_type_sorts_as_a_stable_sort_does() {
        super::super::pool::set_num_threads(4);
        let mut seed = 1u64;
        let mut next = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            seed >> 16
        };
        for n in [1usize, 2, 100, 128, 5000, 40000] {
            check(
                &(0..n)
                    .map(|_| next() as i64 % 1000 - 500)
                    .collect::<Vec<_>>(),
            );
            check(&(0..n).map(|_| (next() as i64) << 17).collect::<Vec<_>>());
            check(&(0..n).map(|_| next() as u8).collect::<Vec<_>>());
            check(&(0..n).map(|_| next() as i16).collect::<Vec<_>>());
            let f: Vec<f64> = (0..n).map(|_| next() as f64 / 1e14 - 1.0).collect();
            check(&f);
            let special = [
                0.0,
                -0.0,
                f32::NAN,
                -f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                -1e-40,
            ];
            let s = f.iter().enumerate().map(|(i, &v)| match i % 9 {
                0 => special[i / 9 % 7],
                _ => v as f32,
            });
            let s: Vec<f32> = s.collect();
            check(&s);
            check(&s.iter().map(|&v| f16::from_f32(v)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn keys_keep_the_order_of_floats() {
        let v = [
            f64::NEG_INFINITY,
            -1.0,
            -1e-300,
            -0.0,
            1e-300,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ];
        for w in v.windows(2) {
            assert!(w[0].key() < w[1].key(), "{w:?}");
            assert!((w[0] as f32).key() <= (w[1] as f32).key(), "{w:?}");
        }
        assert_eq!(0f64.key(), (-0f64).key());
        assert_eq!(f64::NAN.key(), (-f64::NAN).key());
        assert_eq!(f32::of_key(1.5f32.key()), Some(1.5));
        assert_eq!(f32::of_key((-1.5f32).key()), Some(-1.5));
    }
}
