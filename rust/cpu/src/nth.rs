//! What stands at a place in order, found without sorting: counts of the keys' leading bits say which
//! part of their range it lies in, again and again. Nothing grows with a line that is no longer in the caches.

use super::pool::{in_parallel, num_threads, parallel_for, Ptr};
use super::radix::{bounds_of, Key, Ordinal};
use crate::alloc;

/// Lines shorter than this are quicker to select from as a whole.
pub const LONG: usize = 1 << 12;
/// Bits of a key that are counted at a time: the counts stay in L1.
const DIGIT: u32 = 11;
/// So many candidates are looked at one by one.
const FEW: usize = 1 << 11;
/// The keys of a line of so many are copied and partitioned.
const COPIED: usize = 1 << 16;
/// Elements of a part that several threads count.
const PART: usize = 1 << 16;

/// The key at a place in order, and how the line lies to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<K> {
    pub key: K,
    /// How many keys are smaller.
    pub before: usize,
    /// How many are the same.
    pub same: usize,
}

/// A range of keys.
#[derive(Clone, Copy)]
struct Range {
    low: u64,
    span: u64,
    shift: u32,
}

impl Range {
    fn new(low: u64, high: u64) -> Range {
        let span = high.wrapping_sub(low);
        Range {
            low,
            span,
            shift: (u64::BITS - span.leading_zeros()).saturating_sub(DIGIT),
        }
    }

    fn bins(self) -> usize {
        (self.span >> self.shift) as usize + 1
    }

    /// The keys of one bin.
    fn of(self, bin: usize) -> Range {
        let start = (bin as u64) << self.shift;
        let end = (start + ((1u64 << self.shift) - 1)).min(self.span);
        Range::new(self.low + start, self.low + end)
    }
}

/// How many elements lie in each bin of a range.
fn count<T: Ordinal>(x: &[T], range: Range, counts: &mut Vec<u32>) {
    let bins = range.bins();
    let parts = match in_parallel() {
        true => 1,
        false => num_threads().min(x.len() / PART).clamp(1, 64),
    };
    let each = x.len().div_ceil(parts);
    counts.clear();
    alloc::resize(counts, parts * bins, 0);
    let to = Ptr::new(counts.as_mut_ptr());
    parallel_for(parts, 1, |r| {
        for p in r {
            // SAFETY: each part has its own counts.
            let counts = unsafe { std::slice::from_raw_parts_mut(to.get().add(p * bins), bins) };
            for v in &x[(p * each).min(x.len())..((p + 1) * each).min(x.len())] {
                let d = v.key().wide().wrapping_sub(range.low);
                if d <= range.span {
                    counts[(d >> range.shift) as usize] += 1;
                }
            }
        }
    });
    let (first, rest) = counts.split_at_mut(bins);
    for part in rest.chunks_exact(bins) {
        for (a, b) in first.iter_mut().zip(part) {
            *a += b;
        }
    }
    counts.truncate(bins);
}

/// Room to work in, for one line after another.
#[derive(Default)]
pub struct Room {
    counts: Vec<u32>,
    keys: Vec<u64>,
}

/// The key that stands at place `k` in ascending order, of more than `k` elements and no more than fit
/// 32 bits.
pub fn nth<T: Ordinal>(x: &[T], k: usize, room: &mut Room) -> Place<T::Key> {
    if x.len() <= COPIED {
        let mut keys = alloc::gathered(x.iter().map(|v| v.key()));
        let key = *keys.select_nth_unstable(k).1;
        return Place {
            key,
            before: keys[..k].iter().filter(|&&other| other < key).count(),
            same: keys.iter().filter(|&&other| other == key).count(),
        };
    }
    let (low, high) = bounds_of(x).unwrap_or_default();
    let mut range = Range::new(low.wide(), high.wide());
    let mut before = 0;
    loop {
        count(x, range, &mut room.counts);
        let mut bin = 0;
        // Where another thread changes elements, bins may hold fewer than there were.
        while bin + 1 < room.counts.len() && before + room.counts[bin] as usize <= k {
            before += room.counts[bin] as usize;
            bin += 1;
        }
        let found = room.counts[bin] as usize;
        range = range.of(bin);
        if range.span == 0 {
            return Place {
                key: T::Key::of_wide(range.low),
                before,
                same: found,
            };
        }
        if found <= FEW {
            room.keys.clear();
            alloc::reserve(&mut room.keys, found);
            let keys = x.iter().map(|v| v.key().wide());
            room.keys
                .extend(keys.filter(|k| k.wrapping_sub(range.low) <= range.span));
            let place = (k - before).min(room.keys.len().saturating_sub(1));
            let key = match room.keys.is_empty() {
                true => range.low,
                false => *room.keys.select_nth_unstable(place).1,
            };
            return Place {
                key: T::Key::of_wide(key),
                before: before + room.keys.iter().filter(|&&k| k < key).count(),
                same: room.keys.iter().filter(|&&k| k == key).count(),
            };
        }
    }
}

/// The index of the element with this key that has `skip` of them before it.
pub fn position<T: Ordinal>(x: &[T], key: T::Key, skip: usize) -> usize {
    let mut at = x.iter().enumerate().filter(|(_, v)| v.key() == key);
    at.nth(skip).map_or(0, |(i, _)| i)
}

/// The indices of the `k > 0` first in ascending or descending order, as they lie in the line; of
/// equal ones those that come first.
pub fn first<T: Ordinal>(x: &[T], k: usize, largest: bool, room: &mut Room, to: &mut Vec<u32>) {
    let n = x.len();
    let place = nth(x, if largest { n - k } else { k - 1 }, room);
    // All that follows holds for any elements: another thread may change them after they were counted.
    let ahead = match largest {
        true => n.saturating_sub(place.before + place.same),
        false => place.before,
    };
    let mut ties = k.saturating_sub(ahead);
    to.clear();
    alloc::resize(to, k + 1, 0);
    let mut at = 0;
    for (i, v) in x.iter().enumerate() {
        let key = v.key();
        let tie = key == place.key && ties > 0;
        let wins = if largest {
            key > place.key
        } else {
            key < place.key
        };
        // Without a branch: what is not taken is written over by the next one.
        to[at.min(k)] = i as u32;
        at += (tie || wins) as usize;
        ties -= tie as usize;
    }
    to.truncate(k);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a stable sort, at the ends, the middle and where runs of equal ones end.
    fn check<T: Ordinal>(x: &[T]) {
        let n = x.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| x[i].key());
        let mut room = Room::default();
        for k in [0, 1, n / 3, n / 2, n - 2, n - 1] {
            let want = x[order[k]].key();
            let got = nth(x, k, &mut room);
            assert!(got.key == want);
            assert_eq!(got.before, x.iter().filter(|v| v.key() < want).count());
            assert_eq!(got.same, x.iter().filter(|v| v.key() == want).count());
            assert_eq!(position(x, got.key, k - got.before), order[k]);
            let mut found = Vec::new();
            for largest in [false, true] {
                let mut want = order.clone();
                if largest {
                    want.sort_by_key(|&i| std::cmp::Reverse(x[i].key()));
                }
                first(x, k + 1, largest, &mut room, &mut found);
                want.truncate(k + 1);
                want.sort_unstable();
                assert!(found.iter().map(|&i| i as usize).eq(want));
            }
        }
    }

    #[test]
    fn indices_are_those_of_a_stable_sort() {
        super::super::pool::set_num_threads(3);
        let mut seed = 1u64;
        let mut next = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            seed >> 11
        };
        for n in [2usize, 100, 5000, 3 * PART + 7] {
            check(&(0..n).map(|_| next() as u8).collect::<Vec<_>>());
            check(&(0..n).map(|_| next() as i64 % 7).collect::<Vec<_>>());
            check(&(0..n).map(|_| (next() << 11) as i64).collect::<Vec<_>>());
            check(&vec![-1i32; n]);
            let mut f: Vec<f64> = (0..n).map(|_| next() as f64 / 1e15 - 1.0).collect();
            check(&f);
            f[n / 2] = f64::NAN;
            f[n - 1] = f64::NEG_INFINITY;
            f[0] = -0.0;
            check(&f);
            check(&f.iter().map(|&v| v as f32).collect::<Vec<_>>());
            check(&[vec![i64::MIN, i64::MAX], vec![0; n]].concat());
        }
    }
}
