//! Keys of caches: what a pipeline is made from, told apart by two hashes of 64 bits in one pass.

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// What stands for a value in a cache, in whose place nobody compares the values themselves.
pub type Key = [u64; 2];

/// A map whose keys are short.
pub type Map<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Mixed>>;

pub fn key(value: &(impl Hash + ?Sized)) -> Key {
    let mut mixed = Mixed::default();
    value.hash(&mut mixed);
    mixed.0.map(|half| fold(half, ODD[0]))
}

/// Numbers with as many ones as zeros (the fractional parts of the square roots of 2 and 3).
const ODD: [u64; 2] = [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b];

/// Both halves of the product, which all bits of both numbers take part in.
fn fold(a: u64, b: u64) -> u64 {
    let p = a as u128 * b as u128;
    p as u64 ^ (p >> 64) as u64
}

/// Up to eight bytes, with zeros behind. Without a copy of so many bytes, which takes longer than all else.
fn word(bytes: &[u8]) -> u64 {
    let (mut word, mut rest) = (0, bytes);
    let mut shift = 0;
    if let Some((&four, behind)) = rest.split_first_chunk() {
        (word, rest, shift) = (u32::from_le_bytes(four).into(), behind, 32);
    }
    if let Some((&two, behind)) = rest.split_first_chunk() {
        word |= u64::from(u16::from_le_bytes(two)) << shift;
        (rest, shift) = (behind, shift + 16);
    }
    rest.first()
        .map_or(word, |&one| word | u64::from(one) << shift)
}

/// A hash of words, several times as quick as the one of `std`, which also withstands who looks
/// for collisions.
pub struct Mixed([u64; 2]);

impl Default for Mixed {
    fn default() -> Mixed {
        Mixed([ODD[1], ODD[0]])
    }
}

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<8>();
        for &chunk in whole {
            self.write_u64(u64::from_le_bytes(chunk));
        }
        if !rest.is_empty() {
            self.write_u64(word(rest));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let [a, b] = self.0;
        self.0 = [
            fold(a ^ word, ODD[0]),
            fold(b.wrapping_add(word), ODD[1] ^ a),
        ];
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        fold(self.0[0], ODD[1])
    }
}

#[cfg(test)]
mod tests {
    use super::{key, word};
    use std::collections::HashSet;

    #[test]
    fn word_has_the_bytes_and_zeros_behind() {
        let bytes = [0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8];
        for n in 0..8 {
            let mut all = [0; 8];
            all[..n].copy_from_slice(&bytes[..n]);
            assert_eq!(word(&bytes[..n]), u64::from_le_bytes(all), "{n}");
        }
    }

    #[test]
    fn key_of_values_that_differ_little_differs() {
        let numbers = (0..1000u32).flat_map(|i| (0..100u32).map(move |j| key(&("A", i, "B", j))));
        let texts = (0..1000).map(|n| key(&"x".repeat(n)));
        let swapped = [key(&("ab", "c")), key(&("a", "bc")), key(&("", "abc"))];
        let all: HashSet<_> = numbers.chain(texts).chain(swapped).collect();
        assert_eq!(all.len(), 101_003);
        let halves: HashSet<u64> = all.iter().flatten().copied().collect();
        assert_eq!(halves.len(), 202_006);
    }
}
