//! Distributions over slices, by the recipes of PyTorch's CPU kernels.

use super::engine::Engine;
use crate::ptr::Ptr;
use crate::{alloc, per_isa};
use half::{bf16, f16};
use std::ops::Range;

/// Words are drawn in blocks of this many, so that their conversion is a vector loop.
const BLOCK: usize = 1024;

/// Calls a function on ranges that together cover `0..n` once, on as many threads as it likes.
pub type Share<'a> = &'a dyn Fn(usize, &(dyn Fn(Range<usize>) + Sync));

/// Calls `f` on parts of whole blocks of 16 elements; the last part has the ragged end too.
fn share_blocks<T: Send + Sync>(out: &mut [T], share: Share, f: impl Fn(&mut [T]) + Sync) {
    let n = out.len();
    let blocks = n / 16;
    let to = Ptr::new(out.as_mut_ptr());
    share(blocks, &|range: Range<usize>| {
        let end = if range.end == blocks {
            n
        } else {
            range.end * 16
        };
        let start = range.start * 16;
        // SAFETY: ranges are disjoint parts of `out`, which is borrowed until all are done.
        f(unsafe { to.part(start..end) });
    });
}

/// An element type that can be sampled.
pub trait Sample: Copy + Send + Sync + 'static {
    /// How many integers from 0 on `random_()` draws from.
    const FULL_RANGE: u64;
    const DOUBLE: bool = false;
    fn from_f64(x: f64) -> Self;
    fn from_i64(x: i64) -> Self;
    fn to_f64(self) -> f64;
    /// Uniform in [lo, hi): 24 bits and float32 arithmetic but for float64. What rounds up to
    /// `hi` in a half type becomes `lo`.
    fn uniform(engine: &mut Engine, out: &mut [Self], lo: f64, hi: f64) {
        let (low, width) = (lo as f32, hi as f32 - lo as f32);
        let (first, end) = (Self::from_f64(lo), Self::from_f64(hi).to_f64());
        words(engine, out, |u| {
            let x = Self::from_f64(unit(u).mul_add(width, low) as f64);
            if x.to_f64() == end {
                first
            } else {
                x
            }
        });
    }
    /// Normal numbers for 16 or more elements.
    fn normal_blocks(engine: &mut Engine, out: &mut [Self], mean: f64, std: f64, _share: Share) {
        half_normal(engine, out, mean as f32, std as f32);
    }
}

macro_rules! integers {
    ($($t:ty = $range:expr),*) => {$(
        impl Sample for $t {
            const FULL_RANGE: u64 = $range;
            #[inline(always)]
            fn from_f64(x: f64) -> Self { x as $t }
            #[inline(always)]
            fn from_i64(x: i64) -> Self { x as $t }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
        }
    )*};
}
integers!(
    u8 = 1 << 8,
    i8 = 1 << 7,
    i16 = 1 << 15,
    i32 = 1 << 31,
    i64 = 1 << 63
);

impl Sample for bool {
    const FULL_RANGE: u64 = 2;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x != 0.0
    }
    #[inline(always)]
    fn from_i64(x: i64) -> Self {
        x != 0
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as u8 as f64
    }
}

macro_rules! halves {
    ($($t:ty = $digits:literal),*) => {$(
        impl Sample for $t {
            const FULL_RANGE: u64 = (1 << $digits) + 1;
            #[inline(always)]
            fn from_f64(x: f64) -> Self { <$t>::from_f32(x as f32) }
            #[inline(always)]
            fn from_i64(x: i64) -> Self { <$t>::from_f32(x as f32) }
            #[inline(always)]
            fn to_f64(self) -> f64 { self.to_f64() }
        }
    )*};
}
halves!(f16 = 11, bf16 = 8);

impl Sample for f32 {
    const FULL_RANGE: u64 = (1 << 24) + 1;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn from_i64(x: i64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn uniform(engine: &mut Engine, out: &mut [f32], lo: f64, hi: f64) {
        let (lo, width) = (lo as f32, hi as f32 - lo as f32);
        let mut block = [0; BLOCK];
        for part in out.chunks_mut(BLOCK) {
            let block = &mut block[..part.len()];
            engine.fill(block);
            uniform_loop(block, part, lo, width);
        }
    }
    fn normal_blocks(engine: &mut Engine, out: &mut [f32], mean: f64, std: f64, share: Share) {
        Self::uniform(engine, out, 0.0, 1.0);
        let (mean, std) = (mean as f32, std as f32);
        let last = out.len() - 16;
        share_blocks(out, share, |part| box_muller(part, mean, std));
        if !out.len().is_multiple_of(16) {
            Self::uniform(engine, &mut out[last..], 0.0, 1.0);
            box_muller(&mut out[last..], mean, std);
        }
    }
}

impl Sample for f64 {
    const FULL_RANGE: u64 = (1 << 53) + 1;
    const DOUBLE: bool = true;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn from_i64(x: i64) -> Self {
        x as f64
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    fn uniform(engine: &mut Engine, out: &mut [f64], lo: f64, hi: f64) {
        let width = hi - lo;
        let mut block = [0; BLOCK];
        for part in out.chunks_mut(BLOCK / 2) {
            let block = &mut block[..2 * part.len()];
            engine.fill(block);
            uniform_loop_f64(block, part, lo, width);
        }
    }
    fn normal_blocks(engine: &mut Engine, out: &mut [f64], mean: f64, std: f64, share: Share) {
        Self::uniform(engine, out, 0.0, 1.0);
        let pairs = |block: &mut [f64]| {
            for j in 0..8 {
                let radius = (-2.0 * (1.0 - block[j]).ln()).sqrt();
                let angle = 2.0 * std::f64::consts::PI * block[j + 8];
                block[j] = (radius * angle.cos()).mul_add(std, mean);
                block[j + 8] = (radius * angle.sin()).mul_add(std, mean);
            }
        };
        share_blocks(out, share, |part| part.chunks_exact_mut(16).for_each(pairs));
        if !out.len().is_multiple_of(16) {
            let last = out.len() - 16;
            Self::uniform(engine, &mut out[last..], 0.0, 1.0);
            pairs(&mut out[last..]);
        }
    }
}

/// The half types transform in float32; a ragged end makes its last 16 numbers anew.
fn half_normal<T: Sample>(engine: &mut Engine, out: &mut [T], mean: f32, std: f32) {
    let mut block = [0f32; BLOCK];
    let mut make = |part: &mut [T]| {
        let block = &mut block[..part.len()];
        f32::uniform(engine, block, 0.0, 1.0);
        box_muller(block, mean, std);
        for (y, x) in part.iter_mut().zip(block) {
            *y = T::from_f64(*x as f64);
        }
    };
    let whole = out.len() / 16 * 16;
    out[..whole].chunks_mut(BLOCK).for_each(&mut make);
    if out.len() > whole {
        let last = out.len() - 16;
        make(&mut out[last..]);
    }
}

/// Makes one element of each word.
pub(super) fn words<T>(engine: &mut Engine, out: &mut [T], f: impl Fn(u32) -> T) {
    let mut block = [0; BLOCK];
    for part in out.chunks_mut(BLOCK) {
        let block = &mut block[..part.len()];
        engine.fill(block);
        for (y, &u) in part.iter_mut().zip(&*block) {
            *y = f(u);
        }
    }
}

/// Makes one element of each call of `f`, in float64.
pub(super) fn each<T: Sample>(e: &mut Engine, out: &mut [T], f: impl Fn(&mut Engine) -> f64) {
    out.fill_with(|| T::from_f64(f(e)));
}

/// The low 24 bits of a word as a float32 in [0, 1).
#[inline(always)]
fn unit(u: u32) -> f32 {
    (u & 0xff_ffff) as i32 as f32 * (1.0 / 16_777_216.0)
}

/// The low 53 bits of two words, the first uppermost.
#[inline(always)]
fn bits_53(high: u32, low: u32) -> u64 {
    ((high & 0x1f_ffff) as u64) << 32 | low as u64
}

per_isa! {
    fn uniform_loop[](block: &[u32], out: &mut [f32], lo: f32, width: f32) {
        for (y, &u) in out.iter_mut().zip(block) {
            *y = unit(u).mul_add(width, lo);
        }
    }
}

per_isa! {
    /// A number of 53 bits from each two words, the first uppermost.
    fn uniform_loop_f64[](block: &[u32], out: &mut [f64], lo: f64, width: f64) {
        let n = out.len().min(block.len() / 2);
        for (i, y) in out[..n].iter_mut().enumerate() {
            let bits = bits_53(block[2 * i], block[2 * i + 1]) as i64;
            *y = (bits as f64 * (1.0 / (1u64 << 53) as f64)).mul_add(width, lo);
        }
    }
}

per_isa! {
    /// Whether the number in [0, 1) of each two words is below a limit, given times 2^53.
    fn below_loop[](block: &[u32], out: &mut [u8], limit: u64) {
        let n = out.len().min(block.len() / 2);
        for (i, y) in out[..n].iter_mut().enumerate() {
            *y = (bits_53(block[2 * i], block[2 * i + 1]) < limit) as u8;
        }
    }
}

per_isa! {
    /// Each word modulo `m - step * i`. The quotient of two 32-bit integers in float64 never rounds
    /// up to an integer.
    fn remainders[](words: &mut [u32], m: u32, step: u32) {
        let (mut i, m) = (0u32, m as f64);
        for u in words {
            let v = *u as f64;
            let d = m - (step * i) as f64;
            *u = (v - d * (v / d).floor()) as u32;
            i += 1;
        }
    }
}

per_isa! {
    /// Turns each 16 uniforms into 16 normal numbers; a ragged end stays as it is.
    fn box_muller[](out: &mut [f32], mean: f32, std: f32) {
        let blocks = out.len() / 16;
        for k in 0..blocks {
            let block = &mut out[16 * k..16 * k + 16];
            for j in 0..8 {
                let (u, v) = (block[j], block[j + 8]);
                let radius = (-2.0 * log(1.0 - u)).sqrt();
                let (sin, cos) = sin_cos(std::f32::consts::TAU * v);
                block[j] = (radius * cos).mul_add(std, mean);
                block[j + 8] = (radius * sin).mul_add(std, mean);
            }
        }
    }
}

/// The logarithm of a number in (0, 1] as PyTorch's sampler rounds it: Cephes' polynomial.
#[inline(always)]
fn log(x: f32) -> f32 {
    const P: [f32; 9] = [
        7.037_683_6e-2,
        -1.151_461e-1,
        1.167_699_84e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_4e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ];
    let bits = x.to_bits() as i32;
    let mut e = ((bits >> 23) - 126) as f32;
    let m = f32::from_bits((bits & 0x7f_ffff) as u32 | 0x3f00_0000);
    let low = m < std::f32::consts::FRAC_1_SQRT_2;
    let x = (m - 1.0) + if low { m } else { 0.0 };
    e -= if low { 1.0 } else { 0.0 };
    let z = x * x;
    let mut y = P[0];
    for p in &P[1..] {
        y = y.mul_add(x, *p);
    }
    y = (y * x).mul_add(z, e * -2.121_944_4e-4);
    y = (-z).mul_add(0.5, y);
    e.mul_add(0.693_359_4, x + y)
}

/// Sine and cosine of an angle in [0, 2 pi), rounded likewise.
#[inline(always)]
fn sin_cos(x: f32) -> (f32, f32) {
    let octant = ((x * (4.0 / std::f32::consts::PI)) as i32 + 1) & !1;
    let y = octant as f32;
    let mut x = y.mul_add(-0.785_156_25, x);
    x = y.mul_add(-2.418_756_5e-4, x);
    x = y.mul_add(-3.774_895e-8, x);
    let z = x * x;
    let mut c = 2.443_315_7e-5f32;
    c = c.mul_add(z, -1.388_731_6e-3);
    c = c.mul_add(z, 4.166_664_6e-2) * z;
    c = c.mul_add(z, -(z * 0.5)) + 1.0;
    let mut s = -1.951_529_6e-4f32;
    s = s.mul_add(z, 8.332_161e-3);
    s = s.mul_add(z, -1.666_665_5e-1) * z;
    s = s.mul_add(x, x);
    let swap = octant & 2 != 0;
    let (sin, cos) = if swap { (c, s) } else { (s, c) };
    let sin = if octant & 4 != 0 { -sin } else { sin };
    let cos = if (octant + 2) & 4 != 0 { -cos } else { cos };
    (sin, cos)
}

pub(super) fn bernoulli<T: Sample>(engine: &mut Engine, out: &mut [T], p: f64) {
    let numbers = [T::from_i64(0), T::from_i64(1)];
    let mut ones = [0; BLOCK / 2];
    for part in out.chunks_mut(BLOCK / 2) {
        let ones = &mut ones[..part.len()];
        bits(engine, ones, p);
        for (y, &one) in part.iter_mut().zip(&*ones) {
            *y = numbers[one as usize & 1];
        }
    }
}

/// Ones of probability `p`, from 53 bits each.
pub(super) fn bits(engine: &mut Engine, out: &mut [u8], p: f64) {
    // Exact: a power of two times p, and the numbers below it are integers.
    let limit = (p * (1u64 << 53) as f64).ceil() as u64;
    let mut block = [0; BLOCK];
    for part in out.chunks_mut(BLOCK / 2) {
        let block = &mut block[..2 * part.len()];
        engine.fill(block);
        below_loop(block, part, limit);
    }
}

/// Ones of the probabilities in `p`, from 24 bits each.
pub(super) fn bernoulli_each<T: Sample, P: Sample>(e: &mut Engine, out: &mut [T], p: &[P]) {
    let numbers = [T::from_i64(0), T::from_i64(1)];
    let mut block = [0; BLOCK];
    for (part, p) in out.chunks_mut(BLOCK).zip(p.chunks(BLOCK)) {
        let block = &mut block[..part.len()];
        e.fill(block);
        for ((y, p), &u) in part.iter_mut().zip(p).zip(&*block) {
            *y = numbers[(unit(u) < p.to_f64() as f32) as usize];
        }
    }
}

/// One Poisson number: products of uniforms for small rates, from 10 on the transformed rejection
/// of Hormann (1993), "The transformed rejection method for generating Poisson random variables".
pub(super) fn poisson(e: &mut Engine, rate: f64) -> f64 {
    if rate == 0.0 {
        return 0.0;
    }
    if rate < 10.0 {
        let floor = (-rate).exp();
        let (mut count, mut product) = (0.0, e.next_uniform());
        while product > floor {
            count += 1.0;
            product *= e.next_uniform();
        }
        return count;
    }
    if !rate.is_finite() {
        return rate;
    }
    let (root, log_rate) = (rate.sqrt(), rate.ln());
    let b = 0.931 + 2.53 * root;
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let v_r = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let u = e.next_uniform() - 0.5;
        let v = e.next_uniform();
        let s = 0.5 - u.abs();
        let k = ((2.0 * a / s + b) * u + rate + 0.43).floor();
        if s >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || (s < 0.013 && v > s) {
            continue;
        }
        let accept = v.ln() + inverse_alpha.ln() - (a / (s * s) + b).ln();
        if accept <= -rate + k * log_rate - libm::lgamma(k + 1.0) {
            return k;
        }
    }
}

pub(super) fn random_range<T: Sample>(e: &mut Engine, out: &mut [T], base: i64, range: u64) {
    if range == 0 {
        out.fill_with(|| T::from_i64(base.wrapping_add(e.next_u64() as i64)));
    } else if range >> 28 != 0 {
        out.fill_with(|| T::from_i64(base.wrapping_add((e.next_u64() % range) as i64)));
    } else {
        let mut block = [0; BLOCK];
        for part in out.chunks_mut(BLOCK) {
            let block = &mut block[..part.len()];
            e.fill(block);
            remainders(block, range as u32, 0);
            for (y, &u) in part.iter_mut().zip(&*block) {
                *y = T::from_i64(base.wrapping_add(u as i64));
            }
        }
    }
}

/// Fisher-Yates. Large sizes draw 64 bits, so that the remainder stays all but uniform.
pub(super) fn randperm<T: Sample>(engine: &mut Engine, out: &mut [T]) {
    let n = out.len() as u64;
    if n >= u32::MAX as u64 / 20 {
        for (i, y) in out.iter_mut().enumerate() {
            *y = T::from_i64(i as i64);
        }
        for i in 0..n - 1 {
            out.swap(i as usize, (i + engine.next_u64() % (n - i)) as usize);
        }
        return;
    }
    // From here on half the memory to jump about in is worth a second pass.
    if std::mem::size_of::<T>() == 8 && n >= 1 << 16 {
        let mut order: Vec<u32> = alloc::gathered(0..n as u32);
        shuffle(engine, &mut order);
        for (y, i) in out.iter_mut().zip(order) {
            *y = T::from_i64(i as i64);
        }
        return;
    }
    for (i, y) in out.iter_mut().enumerate() {
        *y = T::from_i64(i as i64);
    }
    shuffle(engine, out);
}

fn shuffle<T>(engine: &mut Engine, out: &mut [T]) {
    let n = out.len();
    let draws = n.saturating_sub(1);
    let mut block = [0; 256];
    let mut at = 0;
    while at < draws {
        let block = &mut block[..256.min(draws - at)];
        engine.fill(block);
        remainders(block, (n - at) as u32, 1);
        for (i, &r) in block.iter().enumerate() {
            out.swap(at + i, at + i + r as usize);
        }
        at += block.len();
    }
}

/// The first `n` of a race in order, the largest first.
fn rank(race: &mut Vec<(f64, i64)>, n: usize) {
    let order = |a: &(f64, i64), b: &(f64, i64)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if n < race.len() / 4 && n > 0 {
        race.select_nth_unstable_by(n - 1, order);
        race.truncate(n);
    }
    race.sort_unstable_by(order);
}

/// `weights` are finite, not negative, not all zero.
pub(super) fn multinomial<T: Sample>(
    engine: &mut Engine,
    weights: &[T],
    out: &mut [i64],
    replacement: bool,
) {
    let round = |x: f64| T::from_f64(x).to_f64();
    if !replacement || out.len() == 1 {
        // A race of exponential clocks: the largest weight / clock wins.
        let mut race: Vec<(f64, i64)> = alloc::room(weights.len());
        for (i, w) in weights.iter().enumerate() {
            let clock = round(-(-engine.next_uniform()).ln_1p());
            race.push((
                if w.to_f64() > 0.0 {
                    round(w.to_f64() / clock)
                } else {
                    -1.0
                },
                i as i64,
            ));
        }
        rank(&mut race, out.len());
        for (y, (_, i)) in out.iter_mut().zip(race) {
            *y = i;
        }
        return;
    }
    // Half types add up in float32.
    let steps: Vec<f64> = match T::DOUBLE {
        true => {
            let mut total = 0.0f64;
            let mut steps: Vec<f64> = alloc::gathered(weights.iter().map(|w| {
                total += w.to_f64();
                total
            }));
            steps.iter_mut().for_each(|s| *s /= total);
            steps
        }
        false => {
            let mut total = 0.0f32;
            let steps: Vec<f32> = alloc::gathered(weights.iter().map(|w| {
                total += w.to_f64() as f32;
                total
            }));
            alloc::gathered(steps.iter().map(|&s| (s / total) as f64))
        }
    };
    // Rounding must not let a draw fall behind the last category that has a weight.
    let last = weights.iter().rposition(|w| w.to_f64() > 0.0).unwrap_or(0);
    for y in out {
        let u = engine.next_uniform();
        *y = steps.partition_point(|&s| s < u).min(last) as i64;
    }
}
