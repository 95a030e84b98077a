//! The first few of many: a bound from the best of groups leaves few candidates.

use crate::alloc;
use crate::bits::packed;
use crate::order::Keyed;
use crate::per_isa;
use crate::pool::{in_parallel, parallel_for, Ptr};
use crate::radix::{Key, Ordinal};

/// Elements whose groups are looked at together.
const CHUNK: usize = 1 << 15;
/// Elements compared at a time.
const BLOCK: usize = 64;

/// Whether [`first`] is quicker than selecting among all keys.
pub fn is_few(k: usize, n: usize) -> bool {
    k > 0 && k <= 256 && n >= 8 * groups(k)
}

/// How many groups elements are dealt out to: the best of `k` of them bound the rest.
fn groups(k: usize) -> usize {
    (4 * k).next_multiple_of(BLOCK)
}

per_isa! {
    /// The least key of each group; element `i` is in group `i` modulo their number.
    unsafe fn least[T: Ordinal](x: *const T, n: usize, largest: bool, groups: &mut [T::Key]) {
        // SAFETY: `x` has `n` elements, where the last round ends.
        unsafe {
            groups.fill(T::Key::MAX);
            let g = groups.len();
            let mut start = 0;
            while start < n {
                let m = g.min(n - start);
                let x = x.add(start);
                if largest {
                    for (i, best) in groups[..m].iter_mut().enumerate() {
                        *best = (*best).min(reversed((*x.add(i)).key()));
                    }
                } else {
                    for (i, best) in groups[..m].iter_mut().enumerate() {
                        *best = (*best).min((*x.add(i)).key());
                    }
                }
                start += m;
            }
        }
    }
}

/// The key in the opposite order.
#[inline(always)]
fn reversed<K: Key>(key: K) -> K {
    K::of_wide(K::MAX.wide() - key.wide())
}

per_isa! {
    /// Collects the elements whose key is at most `bound`.
    unsafe fn collect[T: Ordinal](
        x: *const T, n: usize, largest: bool, bound: T::Key, index: usize, out: &mut Vec<Keyed>
    ) {
        // SAFETY: `x` has `n` elements, where the last block ends.
        unsafe {
            let key = |i: usize| {
                let k = (*x.add(i)).key();
                if largest { reversed(k) } else { k }
            };
            let mut start = 0;
            let mut near = [0u8; BLOCK];
            while start < n {
                let len = BLOCK.min(n - start);
                if len < BLOCK {
                    near = [0; BLOCK];
                }
                for (i, hit) in near.iter_mut().enumerate().take(len) {
                    *hit = (key(start + i) <= bound) as u8;
                }
                let mut word = packed(&near);
                while word != 0 {
                    let i = start + word.trailing_zeros() as usize;
                    out.push(Keyed {
                        key: key(i).wide(),
                        index: (index + i) as u32,
                    });
                    word &= word - 1;
                }
                start += len;
            }
        }
    }
}

/// Room for the work on one line.
#[derive(Default)]
pub struct Candidates<K> {
    groups: Vec<K>,
    copy: Vec<K>,
    found: Vec<Keyed>,
}

impl<K: Key> Candidates<K> {
    /// Finds the `k` first of `n` elements in any order, `index` being the first one's.
    unsafe fn of<T: Ordinal<Key = K>>(
        &mut self,
        x: *const T,
        n: usize,
        k: usize,
        largest: bool,
        index: usize,
    ) {
        // SAFETY: `x` has `n` elements.
        unsafe {
            self.groups.resize(groups(k), K::MAX);
            least(x, n, largest, &mut self.groups);
            self.copy.clone_from(&self.groups);
            let bound = *self.copy.select_nth_unstable(k - 1).1;
            self.found.clear();
            collect(x, n, largest, bound, index, &mut self.found);
            if self.found.len() > k {
                self.found.select_nth_unstable(k - 1);
                self.found.truncate(k);
            }
        }
    }
}

/// The `k` first of `n` elements in order; of equal ones those that come first.
///
/// # Safety
/// `x` has `n` elements, no more than fit 32 bits, and `is_few(k, n)`.
pub unsafe fn first<T: Ordinal>(
    x: *const T,
    n: usize,
    k: usize,
    largest: bool,
    room: &mut Candidates<T::Key>,
) -> &[Keyed] {
    // SAFETY: chunks lie within the `n` elements of `x`, and `all` has room for `k` of each.
    unsafe {
        if n < 2 * CHUNK || !is_few(k, CHUNK) || in_parallel() {
            room.of(x, n, k, largest, 0);
        } else {
            // Each chunk's first ones, of which the first ones are taken.
            let chunks = n / CHUNK;
            let mut all: Vec<Keyed> = alloc::full(Keyed { key: 0, index: 0 }, chunks * k);
            let (from, to) = (Ptr::read(x), Ptr::new(all.as_mut_ptr()));
            parallel_for(chunks, 1, |range| {
                let mut room = Candidates::default();
                for c in range {
                    let (start, end) =
                        (c * CHUNK, if c + 1 == chunks { n } else { (c + 1) * CHUNK });
                    let x = from.at(start).cast_const();
                    room.of(x, end - start, k, largest, start);
                    let to = to.at(c * k);
                    // Fewer, where another thread wrote to the elements meanwhile.
                    let found = &room.found[..k.min(room.found.len())];
                    std::ptr::copy_nonoverlapping(found.as_ptr(), to, found.len());
                }
            });
            all.select_nth_unstable(k - 1);
            all.truncate(k);
            room.found = all;
        }
        room.found.sort_unstable();
        &room.found
    }
}
