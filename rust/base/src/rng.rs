//! Random numbers: mt19937 that gives PyTorch's CPU numbers, and counter-based Philox.
//!
//! [`Generator`] is the public handle; `engine` turns a seed into words; `fill` turns words into
//! distributions by PyTorch's recipes, down to which draw feeds which element.

mod engine;
mod fill;
mod philox;
mod reject;

pub use fill::{Sample, Share};
pub use philox::Philox;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::{alloc, bail, ensure};
use engine::{Engine, STATE_BYTES};
use parking_lot::Mutex;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// The seed of a generator that nobody seeded.
pub const DEFAULT_SEED: u64 = 67_280_421_310_721;

/// A stream of random numbers, made on the CPU; every draw locks it.
pub struct Generator {
    engine: Mutex<Engine>,
    /// What it was asked for: tensors of any device draw from it.
    device: Device,
}

// One generator is no other, whatever its state.
impl PartialEq for Generator {
    fn eq(&self, other: &Generator) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Generator {}
impl Hash for Generator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self, state)
    }
}

impl Default for Generator {
    fn default() -> Self {
        Generator::new(DEFAULT_SEED)
    }
}

/// The generators of GPUs, by their numbers, and the seed with which new ones start.
static OF_GPUS: Mutex<(Vec<Arc<Generator>>, u64)> = Mutex::new((Vec::new(), DEFAULT_SEED));

/// Returns the generator that is used on a device where none is named: each GPU has its own, and all other devices
/// share one.
pub fn default_generator(device: Device) -> Arc<Generator> {
    static DEFAULT: OnceLock<Arc<Generator>> = OnceLock::new();
    let Device::Wgpu(index) = device else {
        return DEFAULT.get_or_init(Default::default).clone();
    };
    let (all, seed) = &mut *OF_GPUS.lock();
    while all.len() <= index as usize {
        let device = Device::Wgpu(all.len() as u8);
        all.push(Arc::new(Generator::on(device, *seed)));
    }
    all[index as usize].clone()
}

/// Seeds the generators of all GPUs, also of those that are yet to be used.
pub fn seed_gpus(seed: u64) {
    let (all, first) = &mut *OF_GPUS.lock();
    *first = seed;
    all.iter().for_each(|g| g.manual_seed(seed));
}

/// Seeds the default generators of all devices.
pub fn manual_seed(seed: u64) {
    default_generator(Device::Cpu).manual_seed(seed);
    seed_gpus(seed);
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Generator::on(Device::Cpu, seed)
    }

    pub fn on(device: Device, seed: u64) -> Self {
        Generator {
            engine: Mutex::new(Engine::new(seed)),
            device,
        }
    }

    /// The device that it was asked for.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Starts the stream that belongs to the seed; mt19937 uses its low 32 bits.
    pub fn manual_seed(&self, seed: u64) {
        *self.engine.lock() = Engine::new(seed);
    }

    /// Seeds from the system and the clock, and returns the seed.
    pub fn seed(&self) -> u64 {
        // Every RandomState has fresh keys from the system.
        let mut hash = std::collections::hash_map::RandomState::new().build_hasher();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        hash.write_u128(now.map_or(0, |d| d.as_nanos()));
        let seed = hash.finish();
        self.manual_seed(seed);
        seed
    }

    pub fn initial_seed(&self) -> u64 {
        self.engine.lock().seed
    }

    /// Returns the state in the 5056 bytes that PyTorch's CPU generator uses.
    pub fn get_state(&self) -> Vec<u8> {
        self.engine.lock().to_bytes()
    }

    /// Continues from a state made by [`Generator::get_state`] or by PyTorch.
    pub fn set_state(&self, bytes: &[u8]) -> Result<()> {
        let engine = Engine::from_bytes(bytes)?;
        *self.engine.lock() = engine;
        Ok(())
    }

    /// Returns the next 32 bits.
    pub fn random(&self) -> u32 {
        self.engine.lock().next_u32()
    }

    /// Returns the next 64 bits, the first word uppermost.
    pub fn random64(&self) -> u64 {
        self.engine.lock().next_u64()
    }

    /// Fills with numbers uniform in [lo, hi).
    pub fn uniform<T: Sample>(&self, out: &mut [T], lo: f64, hi: f64) {
        T::uniform(&mut self.engine.lock(), out, lo, hi);
    }

    /// Fills a contiguous tensor with normal numbers: in blocks of 16 from 16 elements on. `share`
    /// may spread the arithmetic over threads; draws are made by the caller alone.
    pub fn normal<T: Sample>(&self, out: &mut [T], mean: f64, std: f64, share: Share) {
        let engine = &mut *self.engine.lock();
        if out.len() < 16 {
            fill::each(engine, out, |e| e.next_normal().mul_add(std, mean));
        } else {
            T::normal_blocks(engine, out, mean, std, share);
        }
    }

    /// Fills a tensor that is not contiguous: always one float64 normal number after the other.
    pub fn normal_serial<T: Sample>(&self, out: &mut [T], mean: f64, std: f64) {
        fill::each(&mut self.engine.lock(), out, |e| {
            e.next_normal().mul_add(std, mean)
        });
    }

    /// Fills with exp of normal numbers.
    pub fn log_normal<T: Sample>(&self, out: &mut [T], mean: f64, std: f64) {
        let engine = &mut *self.engine.lock();
        fill::each(engine, out, |e| e.next_normal().mul_add(std, mean).exp());
    }

    /// Fills with numbers of density rate * exp(-rate * x).
    pub fn exponential<T: Sample>(&self, out: &mut [T], rate: f64) {
        let scale = -1.0 / rate;
        fill::each(&mut self.engine.lock(), out, |e| {
            scale * (-e.next_uniform()).ln_1p()
        });
    }

    /// Fills with the number of trials up to the first success of probability p.
    pub fn geometric<T: Sample>(&self, out: &mut [T], p: f64) {
        let scale = (-p).ln_1p();
        fill::each(&mut self.engine.lock(), out, |e| {
            (e.next_uniform().ln() / scale).ceil()
        });
    }

    /// Fills with median + sigma * tan(pi * (u - 1/2)).
    pub fn cauchy<T: Sample>(&self, out: &mut [T], median: f64, sigma: f64) {
        let pi = std::f64::consts::PI;
        fill::each(&mut self.engine.lock(), out, |e| {
            (pi * (e.next_uniform() - 0.5)).tan().mul_add(sigma, median)
        });
    }

    /// Fills with ones of probability p, else zeros.
    pub fn bernoulli<T: Sample>(&self, out: &mut [T], p: f64) {
        fill::bernoulli(&mut self.engine.lock(), out, p);
    }

    /// The same as bytes, each 0 or 1.
    pub fn bits(&self, out: &mut [u8], p: f64) {
        fill::bits(&mut self.engine.lock(), out, p);
    }

    /// Fills with ones of the probabilities in `p`; draws are float64 only where `p` is.
    pub fn bernoulli_each<T: Sample, P: Sample>(&self, out: &mut [T], p: &[P]) {
        let engine = &mut *self.engine.lock();
        if !P::DOUBLE {
            return fill::bernoulli_each(engine, out, p);
        }
        for (y, p) in out.iter_mut().zip(p) {
            *y = T::from_i64((engine.next_uniform() < p.to_f64()) as i64);
        }
    }

    /// Fills with numbers of events of the rates in `rate`, which are not negative.
    pub fn poisson<T: Sample>(&self, out: &mut [T], rate: &[T]) {
        let engine = &mut *self.engine.lock();
        for (y, r) in out.iter_mut().zip(rate) {
            *y = T::from_f64(fill::poisson(engine, r.to_f64()));
        }
    }

    /// Fills with gamma numbers of the shapes in `shape`, none smaller than `least`.
    pub fn gamma<T: Sample>(&self, out: &mut [T], shape: &[T], least: f64) {
        let engine = &mut *self.engine.lock();
        for (y, a) in out.iter_mut().zip(shape) {
            let x = reject::gamma::<T>(engine, a.to_f64());
            *y = T::from_f64(if x < least { least } else { x });
        }
    }

    /// Fills rows of `n` with numbers whose sum is 1, of a Dirichlet distribution's weights: gamma
    /// numbers in float64 over their sum, held between `least` and `most`.
    pub fn dirichlet<T: Sample>(
        &self,
        out: &mut [T],
        weights: &[T],
        n: usize,
        [least, most]: [f64; 2],
    ) {
        let engine = &mut *self.engine.lock();
        let mut row: Vec<f64> = alloc::room(n);
        for (out, weights) in out.chunks_mut(n.max(1)).zip(weights.chunks(n.max(1))) {
            row.clear();
            row.extend(weights.iter().map(|w| {
                let x = reject::gamma::<f64>(engine, w.to_f64());
                if x < f64::MIN_POSITIVE {
                    f64::MIN_POSITIVE
                } else {
                    x
                }
            }));
            let sum: f64 = row.iter().sum();
            for (y, x) in out.iter_mut().zip(&row) {
                *y = T::from_f64((x / sum).clamp(least, most));
            }
        }
    }

    /// Fills with numbers of successes in `count` trials of probability `prob`.
    pub fn binomial<T: Sample>(&self, out: &mut [T], count: &[T], prob: &[T]) {
        let engine = &mut *self.engine.lock();
        for ((y, n), p) in out.iter_mut().zip(count).zip(prob) {
            *y = T::from_f64(reject::binomial::<T>(engine, n.to_f64(), p.to_f64()));
        }
    }

    /// Fills with integers uniform in [base, base + range); range 0 stands for 2^64.
    pub fn random_range<T: Sample>(&self, out: &mut [T], base: i64, range: u64) {
        fill::random_range(&mut self.engine.lock(), out, base, range);
    }

    /// Fills with every integer from 0 that the dtype holds exactly.
    pub fn random_full<T: Sample>(&self, out: &mut [T]) {
        let engine = &mut *self.engine.lock();
        if T::FULL_RANGE >> 32 == 0 {
            fill::words(engine, out, |u| {
                T::from_i64((u as u64 % T::FULL_RANGE) as i64)
            });
        } else {
            out.fill_with(|| T::from_i64((engine.next_u64() % T::FULL_RANGE) as i64));
        }
    }

    /// Fills with a random permutation of 0..n.
    pub fn randperm<T: Sample>(&self, out: &mut [T]) {
        fill::randperm(&mut self.engine.lock(), out);
    }

    /// Draws indices of one row of weights. The weights need not sum to one.
    pub fn multinomial<T: Sample>(
        &self,
        weights: &[T],
        out: &mut [i64],
        replacement: bool,
    ) -> Result<()> {
        let weight = |w: &T| w.to_f64();
        let fine = |w: &T| weight(w) >= 0.0 && weight(w).is_finite();
        if !weights.iter().all(fine) {
            let infinite = weights.iter().all(|w| weight(w) >= 0.0);
            return Err(bad_weights(replacement && out.len() > 1, infinite));
        }
        check_sum(weights.iter().any(|w| weight(w) > 0.0))?;
        if !replacement && out.len() > weights.len() {
            bail!(
                Runtime,
                "multinomial: cannot sample n_sample > prob_dist.size(-1) samples \
                 without replacement"
            );
        }
        fill::multinomial(&mut self.engine.lock(), weights, out, replacement);
        Ok(())
    }

    /// Returns the key of a private stream, moving this one on by a word.
    pub fn philox(&self) -> Philox {
        Philox::new(self.random64(), 0)
    }
}

/// What is said of a weight of `multinomial` that is none. Where several numbers are drawn with
/// replacement, PyTorch finds it while it adds the weights up, and tells infinities apart.
pub fn bad_weights(added_up: bool, infinite: bool) -> Error {
    Error::runtime(match (added_up, infinite) {
        (false, _) => "probability tensor contains either `inf`, `nan` or element < 0",
        (true, false) => "invalid multinomial distribution (encountering probability entry < 0)",
        (true, true) => {
            "invalid multinomial distribution (encountering probability entry = infinity or NaN)"
        }
    })
}

/// Raises where weights of `multinomial` leave nothing to draw.
pub fn check_sum(any: bool) -> Result<()> {
    ensure!(
        any,
        Runtime,
        "multinomial: invalid multinomial distribution (sum of probabilities <= 0)"
    );
    Ok(())
}

const _: () = assert!(STATE_BYTES == 5056);

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded() -> Generator {
        Generator::new(0)
    }

    // Recorded from PyTorch 2.13 after manual_seed(0).
    #[test]
    fn recorded_numbers() {
        let mut x = [0f32; 3];
        seeded().uniform(&mut x, 0.0, 1.0);
        assert_eq!(x, [0.496_256_6, 0.768_221_8, 0.088_477_43]);
        let mut n = [0f32; 16];
        seeded().normal(&mut n, 0.0, 1.0, &|n, f| f(0..n));
        assert_eq!(n[..3], [-1.125_839_8, -1.152_360_2, -0.250_578_58]);
        let mut p = [0i64; 5];
        seeded().randperm(&mut p);
        assert_eq!(p, [4, 0, 1, 3, 2]);
        let mut i = [0i64; 4];
        seeded().random_full(&mut i);
        assert_eq!(i[0], 900_450_186_894_289_455);
        assert_eq!(seeded().random(), 2_357_136_044);
    }

    #[test]
    fn state_continues_the_stream() {
        let a = Generator::new(7);
        let mut x = [0f64; 701];
        a.normal_serial(&mut x[..3], 0.0, 1.0);
        a.uniform(&mut x, 0.0, 1.0);
        let state = a.get_state();
        assert_eq!(state.len(), 5056);
        let b = Generator::default();
        b.set_state(&state).unwrap();
        assert_eq!(b.get_state(), state);
        let (mut x, mut y) = ([0f64; 20], [0f64; 20]);
        a.normal_serial(&mut x, 0.0, 1.0);
        b.normal_serial(&mut y, 0.0, 1.0);
        assert_eq!(x, y);
        assert!(b.set_state(&state[..100]).is_err());
        assert!(b.set_state(&[255; 5056]).is_err());
    }

    #[test]
    fn bulk_and_single_draws_agree() {
        let (a, b) = (Generator::new(3), Generator::new(3));
        let mut x = vec![0f32; 2000];
        a.uniform(&mut x, 0.0, 1.0);
        for v in x {
            assert_eq!(v, (b.random() & 0xff_ffff) as f32 / 16_777_216.0);
        }
        assert_eq!(a.get_state(), b.get_state());
    }

    #[test]
    fn multinomial_checks_and_never_picks_zero_weights() {
        let g = seeded();
        let mut out = [0; 3];
        for replacement in [true, false] {
            g.multinomial(&[0f32, 1.0, 2.0, 3.0], &mut out, replacement)
                .unwrap();
            assert!(out.iter().all(|&i| i > 0), "{out:?}");
        }
        for bad in [[1.0, -1.0], [f64::NAN, 1.0], [0.0, 0.0]] {
            assert!(g.multinomial(&bad, &mut out, true).is_err());
        }
        assert!(g.multinomial(&[1.0, 1.0], &mut out, false).is_err());
    }
}
