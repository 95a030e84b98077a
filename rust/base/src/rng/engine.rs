//! mt19937 (Matsumoto and Nishimura 1998) with PyTorch's bookkeeping and state layout.

use crate::error::{Error, Result};
use crate::per_isa;

const N: usize = 624;
const M: usize = 397;
/// The size of PyTorch's CPU generator state, and of its older form.
pub(super) const STATE_BYTES: usize = 5056;
const LEGACY_BYTES: usize = 5048;

#[derive(Clone)]
pub struct Engine {
    pub seed: u64,
    words: [u32; N],
    /// Draws until the words run out, counting the one that makes new words: 1 to 624.
    left: usize,
    next: usize,
    /// The second half of a Box-Muller pair.
    normal: Option<f64>,
    /// PyTorch keeps a float32 sample as well; it is carried along and never used here.
    normal_f32: Option<f32>,
}

#[inline(always)]
fn temper(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

#[inline(always)]
fn twist(far: u32, upper: u32, lower: u32) -> u32 {
    let mixed = (upper & 0x8000_0000) | (lower & 0x7fff_ffff);
    far ^ (mixed >> 1) ^ (0x9908_b0df & 0u32.wrapping_sub(lower & 1))
}

per_isa! {
    fn twist_all[](w: &mut [u32; N]) {
        for i in 0..N - M {
            w[i] = twist(w[i + M], w[i], w[i + 1]);
        }
        for i in N - M..N - 1 {
            w[i] = twist(w[i + M - N], w[i], w[i + 1]);
        }
        w[N - 1] = twist(w[M - 1], w[N - 1], w[0]);
    }
}

per_isa! {
    fn temper_all[](words: &[u32], out: &mut [u32]) {
        for (y, &w) in out.iter_mut().zip(words) {
            *y = temper(w);
        }
    }
}

impl Engine {
    pub fn new(seed: u64) -> Self {
        let mut words = [0; N];
        words[0] = seed as u32;
        for i in 1..N {
            let last: u32 = words[i - 1];
            words[i] = (last ^ (last >> 30))
                .wrapping_mul(1_812_433_253)
                .wrapping_add(i as u32);
        }
        Engine {
            seed,
            words,
            left: 1,
            next: 0,
            normal: None,
            normal_f32: None,
        }
    }

    fn refill(&mut self) {
        twist_all(&mut self.words);
        self.left = N;
        self.next = 0;
    }

    #[inline(always)]
    pub fn next_u32(&mut self) -> u32 {
        self.left -= 1;
        if self.left == 0 {
            self.refill();
        }
        let y = self.words[self.next];
        self.next += 1;
        temper(y)
    }

    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let high = self.next_u32() as u64;
        high << 32 | self.next_u32() as u64
    }

    /// Fills with the next words: what as many calls of `next_u32` give.
    pub fn fill(&mut self, out: &mut [u32]) {
        let mut done = 0;
        while done < out.len() {
            if self.left == 1 {
                self.refill();
                self.left += 1;
            }
            let some = (self.left - 1).min(out.len() - done);
            let from = &self.words[self.next..self.next + some];
            temper_all(from, &mut out[done..done + some]);
            self.left -= some;
            self.next += some;
            done += some;
        }
    }

    /// A float64 uniform in [0, 1), from 53 bits.
    #[inline(always)]
    pub fn next_uniform(&mut self) -> f64 {
        (self.next_u64() & ((1 << 53) - 1)) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A float32 uniform in [0, 1), from 24 bits.
    #[inline(always)]
    pub fn next_uniform_f32(&mut self) -> f32 {
        (self.next_u32() & 0xff_ffff) as f32 * (1.0 / 16_777_216.0)
    }

    /// A standard normal number by Box-Muller, the second of each pair kept for the next call.
    #[inline]
    pub fn next_normal(&mut self) -> f64 {
        if let Some(kept) = self.normal.take() {
            return kept;
        }
        let angle = 2.0 * std::f64::consts::PI * self.next_uniform();
        let radius = (-2.0 * (-self.next_uniform()).ln_1p()).sqrt();
        self.normal = Some(radius * angle.sin());
        radius * angle.cos()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(STATE_BYTES);
        bytes.extend(self.seed.to_le_bytes());
        bytes.extend((self.left as u32).to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend((self.next as u64).to_le_bytes());
        for &w in &self.words {
            bytes.extend((w as u64).to_le_bytes());
        }
        bytes.extend(0f64.to_le_bytes());
        bytes.extend(self.normal.unwrap_or(0.0).to_le_bytes());
        bytes.extend(0f64.to_le_bytes());
        bytes.extend((self.normal.is_some() as u64).to_le_bytes());
        bytes.extend(self.normal_f32.unwrap_or(0.0).to_le_bytes());
        bytes.extend((self.normal_f32.is_some() as u32).to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != STATE_BYTES && bytes.len() != LEGACY_BYTES {
            return Err(Error::runtime(format!(
                "set_state: the RNG state must have {STATE_BYTES} or {LEGACY_BYTES} bytes, \
                 but found the input RNG state size to be {}",
                bytes.len()
            )));
        }
        let int = |at: usize| -> u64 {
            bytes[at..at + 8]
                .iter()
                .rev()
                .fold(0, |all, &b| all << 8 | b as u64)
        };
        let (left, seeded) = (int(8) as u32 as usize, int(8) >> 32);
        let next = int(16) as usize;
        let started = next <= N && (1..=N).contains(&left) && seeded != 0;
        // A fresh engine has one draw left and stands at 0; any other has used up N - left + 1.
        if !started || (next != N + 1 - left && (left, next) != (1, 0)) {
            return Err(Error::runtime("set_state: Invalid mt19937 state"));
        }
        let mut words = [0; N];
        for (i, w) in words.iter_mut().enumerate() {
            *w = int(24 + 8 * i) as u32;
        }
        let tail = 24 + 8 * N;
        let normal = (int(tail + 24) as u32 != 0).then(|| f64::from_bits(int(tail + 8)));
        let last = if bytes.len() == STATE_BYTES {
            int(tail + 32)
        } else {
            0
        };
        let normal_f32 = (last >> 32 != 0).then(|| f32::from_bits(last as u32));
        Ok(Engine {
            seed: int(0),
            words,
            left,
            next,
            normal,
            normal_f32,
        })
    }
}
