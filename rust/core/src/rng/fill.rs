//! Distributions over slices, by the recipes of PyTorch's CPU kernels.

use super::engine::Engine;
use half::{bf16, f16};

/// Words are drawn in blocks of this many, so that their conversion is a vector loop.
const BLOCK: usize = 1024;

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
    fn normal_blocks(engine: &mut Engine, out: &mut [Self], mean: f64, std: f64) {
        half_normal(engine, out, mean as f32, std as f32);
    }
}

macro_rules! integers {
    ($($t:ty = $range:expr),*) => {$(
        impl Sample for $t {
            const FULL_RANGE: u64 = $range;
            fn from_f64(x: f64) -> Self { x as $t }
            fn from_i64(x: i64) -> Self { x as $t }
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
    fn from_f64(x: f64) -> Self {
        x != 0.0
    }
    fn from_i64(x: i64) -> Self {
        x != 0
    }
    fn to_f64(self) -> f64 {
        self as u8 as f64
    }
}

macro_rules! halves {
    ($($t:ty = $digits:literal),*) => {$(
        impl Sample for $t {
            const FULL_RANGE: u64 = (1 << $digits) + 1;
            fn from_f64(x: f64) -> Self { <$t>::from_f32(x as f32) }
            fn from_i64(x: i64) -> Self { <$t>::from_f32(x as f32) }
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
    fn from_i64(x: i64) -> Self {
        x as f32
    }
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
    fn normal_blocks(engine: &mut Engine, out: &mut [f32], mean: f64, std: f64) {
        Self::uniform(engine, out, 0.0, 1.0);
        let (mean, std) = (mean as f32, std as f32);
        let last = out.len() - 16;
        box_muller(&mut out[..last + 16], mean, std);
        if !out.len().is_multiple_of(16) {
            Self::uniform(engine, &mut out[last..], 0.0, 1.0);
            box_muller(&mut out[last..], mean, std);
        }
    }
}

impl Sample for f64 {
    const FULL_RANGE: u64 = (1 << 53) + 1;
    const DOUBLE: bool = true;
    fn from_f64(x: f64) -> Self {
        x
    }
    fn from_i64(x: i64) -> Self {
        x as f64
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn uniform(engine: &mut Engine, out: &mut [f64], lo: f64, hi: f64) {
        let width = hi - lo;
        out.fill_with(|| engine.next_uniform().mul_add(width, lo));
    }
    fn normal_blocks(engine: &mut Engine, out: &mut [f64], mean: f64, std: f64) {
        Self::uniform(engine, out, 0.0, 1.0);
        let pairs = |block: &mut [f64]| {
            for j in 0..8 {
                let radius = (-2.0 * (1.0 - block[j]).ln()).sqrt();
                let angle = 2.0 * std::f64::consts::PI * block[j + 8];
                block[j] = (radius * angle.cos()).mul_add(std, mean);
                block[j + 8] = (radius * angle.sin()).mul_add(std, mean);
            }
        };
        out.chunks_exact_mut(16).for_each(pairs);
        if !out.len().is_multiple_of(16) {
            let last = out.len() - 16;
            Self::uniform(engine, &mut out[last..], 0.0, 1.0);
            pairs(&mut out[last..]);
        }
    }
}

/// The half types fill and transform 16 numbers at a time; a ragged end makes its last 16 anew.
fn half_normal<T: Sample>(engine: &mut Engine, out: &mut [T], mean: f32, std: f32) {
    let mut one = |part: &mut [T]| {
        let mut block = [0f32; 16];
        f32::uniform(engine, &mut block, 0.0, 1.0);
        box_muller(&mut block, mean, std);
        for (y, x) in part.iter_mut().zip(block) {
            *y = T::from_f64(x as f64);
        }
    };
    out.chunks_exact_mut(16).for_each(&mut one);
    if !out.len().is_multiple_of(16) {
        let last = out.len() - 16;
        one(&mut out[last..]);
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

/// Compiles a loop for AVX2 with FMA and for AVX-512 too, and picks at run time.
macro_rules! vector_loop {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $t:ty),*) $body:block) => {
        $(#[$doc])*
        fn $name($($arg: $t),*) {
            #[inline(always)]
            fn plain($($arg: $t),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $t),*) { plain($($arg),*) }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($arg: $t),*) { plain($($arg),*) }
                if is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the features were detected just now.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

vector_loop! {
    fn uniform_loop(block: &[u32], out: &mut [f32], lo: f32, width: f32) {
        for (y, &u) in out.iter_mut().zip(block) {
            *y = unit(u).mul_add(width, lo);
        }
    }
}

vector_loop! {
    /// Turns each 16 uniforms into 16 normal numbers; a ragged end stays as it is.
    fn box_muller(out: &mut [f32], mean: f32, std: f32) {
        for block in out.chunks_exact_mut(16) {
            let (first, second) = block.split_at_mut(8);
            for (a, b) in first.iter_mut().zip(second) {
                let radius = (-2.0 * log(1.0 - *a)).sqrt();
                let (sin, cos) = sin_cos(std::f32::consts::TAU * *b);
                *a = (radius * cos).mul_add(std, mean);
                *b = (radius * sin).mul_add(std, mean);
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
    let (zero, one) = (T::from_i64(0), T::from_i64(1));
    out.fill_with(|| if engine.next_uniform() < p { one } else { zero });
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
        let range = range as u32;
        words(e, out, |u| {
            T::from_i64(base.wrapping_add((u % range) as i64))
        });
    }
}

/// Fisher-Yates. Large sizes draw 64 bits, so that the remainder stays all but uniform.
pub(super) fn randperm<T: Sample>(engine: &mut Engine, out: &mut [T]) {
    let n = out.len() as u64;
    for (i, y) in out.iter_mut().enumerate() {
        *y = T::from_i64(i as i64);
    }
    let wide = n >= u32::MAX as u64 / 20;
    for i in 0..n.saturating_sub(1) {
        let draw = if wide {
            engine.next_u64()
        } else {
            engine.next_u32() as u64
        };
        out.swap(i as usize, (i + draw % (n - i)) as usize);
    }
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
        let mut race: Vec<(f64, i64)> = Vec::with_capacity(weights.len());
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
        race.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (y, (_, i)) in out.iter_mut().zip(race) {
            *y = i;
        }
        return;
    }
    // Half types add up in float32.
    let round = |x: f64| if T::DOUBLE { x } else { x as f32 as f64 };
    let mut total = 0.0;
    let mut steps: Vec<f64> = weights
        .iter()
        .map(|w| {
            total = round(total + w.to_f64());
            total
        })
        .collect();
    steps.iter_mut().for_each(|s| *s = round(*s / total));
    // Rounding must not let a draw fall behind the last category that has a weight.
    let last = weights.iter().rposition(|w| w.to_f64() > 0.0).unwrap_or(0);
    for y in out {
        let u = engine.next_uniform();
        *y = steps.partition_point(|&s| s < u).min(last) as i64;
    }
}
