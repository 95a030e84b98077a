//! Philox4x32-10 (Salmon et al. 2011): the n-th block of random words straight from n.

/// A stream of random words that any thread, or a GPU, may enter at any place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Philox {
    key: [u32; 2],
    stream: u64,
}

impl Philox {
    pub fn new(seed: u64, stream: u64) -> Self {
        Philox {
            key: [seed as u32, (seed >> 32) as u32],
            stream,
        }
    }

    /// Returns the key, as a shader takes it.
    pub fn key(&self) -> [u32; 2] {
        self.key
    }

    /// Returns the stream's number.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// Returns the key and the stream's number, as a shader takes them.
    pub fn words(&self) -> [u32; 4] {
        let [a, b] = self.key;
        [a, b, self.stream as u32, (self.stream >> 32) as u32]
    }

    /// Returns four random words, the `n`-th of the stream.
    #[inline(always)]
    pub fn block(&self, n: u64) -> [u32; 4] {
        let mut c = [
            n as u32,
            (n >> 32) as u32,
            self.stream as u32,
            (self.stream >> 32) as u32,
        ];
        let [mut k0, mut k1] = self.key;
        for _ in 0..10 {
            let a = 0xd251_1f53u64 * c[0] as u64;
            let b = 0xcd9e_8d57u64 * c[2] as u64;
            c = [
                (b >> 32) as u32 ^ c[1] ^ k0,
                b as u32,
                (a >> 32) as u32 ^ c[3] ^ k1,
                a as u32,
            ];
            k0 = k0.wrapping_add(0x9e37_79b9);
            k1 = k1.wrapping_add(0xbb67_ae85);
        }
        c
    }

    /// Returns the number in [0, 1) that belongs to element `i`.
    #[inline(always)]
    pub fn uniform(&self, i: u64) -> f32 {
        (self.block(i >> 2)[(i & 3) as usize] >> 8) as f32 * (1.0 / 16_777_216.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Philox;

    // The known answers published with the reference implementation.
    #[test]
    fn known_answers() {
        let words = Philox::new(0, 0).block(0);
        assert_eq!(words, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let all = Philox::new(u64::MAX, u64::MAX).block(u64::MAX);
        assert_eq!(all, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }
}
