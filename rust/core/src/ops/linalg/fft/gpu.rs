//! Transforms on the GPU: lengths of factors 2, 3 and 5 by passes of [`most`] elements at most, others as
//! convolutions of such a length. Roots are made in float64, exact where they are whole or symmetric.

use super::{Fft, Half};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::launch::WORKGROUP;
use crate::gpu::Operand;
use crate::gpu::{copy, params, shader, Acc, Gpu, Scratch, View};
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{dense, whole};
use rustfft::num_complex::Complex;
use rustfft::FftPlanner;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::f64::consts::FRAC_PI_2;
use std::sync::{Arc, Mutex};

params! {
    struct Block {
        transforms: u32,
        n: u32,
        radix: u32,
        done: u32,
        each: u32,
        stages: u32,
        read: u32,
        kept: u32,
        x_inner: u32,
        x_length: u32,
        x_offset: u32,
        y_inner: u32,
        y_length: u32,
        y_offset: u32,
        x_across: u32,
        y_across: u32,
        x_half: u32,
        y_half: u32,
        x_factor: u32,
        y_factor: u32,
        conjugates: u32,
        low: u32,
        high: u32,
        bits: u32,
        scale: [u32; 2],
        radices: [u32; 2],
    }
}
shader! { static FFT: Block = "fft.wgsl", Acc::COMPLEX }

/// Elements that a workgroup transforms: twice as many fit into what every adapter has.
fn most(acc: Acc) -> usize {
    8192 / acc.dtype().size()
}
const NONE: u32 = u32::MAX;

/// One end of a transform: memory of lines of (outer, length, inner), and what is done with an element.
#[derive(Clone, Copy)]
struct Side<'a> {
    memory: Operand<'a>,
    inner: usize,
    length: usize,
    offset: usize,
    /// Elements of a line that are read or written.
    count: usize,
    half: usize,
    /// Where the factors of elements begin.
    factor: u32,
    /// Whether their conjugates are meant.
    conjugate: bool,
}

impl<'a> Side<'a> {
    fn of(t: &'a Tensor, dim: usize, count: usize, half: usize) -> Side<'a> {
        let Span { length, inner, .. } = Span::of(t.shape(), dim);
        Side {
            memory: t.into(),
            inner,
            length,
            offset: t.offset(),
            count,
            half,
            factor: NONE,
            conjugate: false,
        }
    }

    /// Whole lines, one behind the other.
    fn between(lines: &'a Scratch, n: usize) -> Side<'a> {
        Side {
            memory: lines.view().into(),
            inner: 1,
            length: n,
            offset: 0,
            count: n,
            half: 0,
            factor: NONE,
            conjugate: false,
        }
    }

    fn times(self, factor: usize, conjugate: bool) -> Side<'a> {
        Side {
            factor: factor as u32,
            conjugate,
            ..self
        }
    }
}

/// `exp(-2 pi i k / n)` for `k` below `n`, by the angle of the octant that it lies in.
fn root(k: usize, n: usize) -> Complex<f64> {
    let (quarter, rest) = (4 * k / n, 4 * k % n);
    let angle = |part: usize| FRAC_PI_2 * part as f64 / n as f64;
    let (sin, cos) = match 2 * rest <= n {
        true => angle(rest).sin_cos(),
        false => {
            let (sin, cos) = angle(n - rest).sin_cos();
            (cos, sin)
        }
    };
    match quarter {
        0 => Complex::new(cos, -sin),
        1 => Complex::new(-sin, -cos),
        2 => Complex::new(-cos, sin),
        _ => Complex::new(sin, cos),
    }
}

type Words = Arc<[u32]>;

type Key = (Acc, usize, usize);

/// The words of a table, kept from when it was first made.
fn table(key: Key, make: impl FnOnce() -> Vec<Complex<f64>>) -> Words {
    /// Of all that are kept; then they are forgotten.
    const KEPT: usize = 1 << 22;
    static MADE: Mutex<Option<(HashMap<Key, Words>, usize)>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(|e| e.into_inner());
    if made.as_ref().is_some_and(|(_, sum)| *sum > KEPT) {
        *made = None;
    }
    let (tables, sum) = made.get_or_insert_with(Default::default);
    let words = tables.entry(key).or_insert_with(|| {
        let parts = make().into_iter().flat_map(|z| [z.re, z.im]);
        let size = key.0.dtype().size() / 8;
        let words: Words = parts
            .flat_map(|v| key.0.words(v).into_iter().take(size))
            .collect();
        *sum += words.len();
        words
    });
    words.clone()
}

fn upload(gpu: &Gpu, words: &[u32]) -> Result<Tensor> {
    Tensor::from_slice(words, &[words.len()], DType::I32)?.to_device(gpu.device())
}

/// Bits of the lower of the two numbers that tell a power of a root of `n` elements.
pub(super) fn low_bits(n: usize) -> u32 {
    n.next_power_of_two().ilog2().div_ceil(2)
}

/// The roots of `radix`; behind `done` elements those of their product too, in two tables.
pub(super) fn roots(acc: Acc, radix: usize, done: usize) -> Words {
    table((acc, radix, done), || {
        let mut all: Vec<Complex<f64>> = (0..radix).map(|k| root(k, radix)).collect();
        if done > 1 {
            let n = radix * done;
            let low = 1 << low_bits(n);
            all.extend((0..low.min(n)).map(|k| root(k, n)));
            all.extend((0..n.div_ceil(low)).map(|k| root(k * low, n)));
        }
        all
    })
}

/// The chirp of `n` elements, and the transform of its reciprocal in a line of `m`, over `m`.
pub(super) fn chirp(acc: Acc, n: usize, m: usize) -> Words {
    table((acc, usize::MAX - n, m), || {
        let square = |k: usize| (k as u64 * k as u64 % (2 * n as u64)) as usize;
        let mut all: Vec<Complex<f64>> = (0..n).map(|k| root(square(k), 2 * n)).collect();
        let mut line = vec![Complex::new(0.0, 0.0); m];
        for (k, c) in all.iter().enumerate() {
            line[k] = c.conj() / m as f64;
            line[(m - k) % m] = line[k];
        }
        FftPlanner::new().plan_fft_forward(m).process(&mut line);
        all.extend(line);
        all
    })
}

/// The prime factors of a length that has none but 2, 3 and 5.
fn primes(mut n: usize) -> Option<SmallVec<[usize; 32]>> {
    let mut all = SmallVec::new();
    for p in [5, 3, 2] {
        while n.is_multiple_of(p) {
            all.push(p);
            n /= p;
        }
    }
    (n == 1).then_some(all)
}

/// The lengths of as few passes as can be, near each other, of `most` elements at most.
fn passes(primes: &[usize], most: usize) -> SmallVec<[usize; 4]> {
    let n: usize = primes.iter().product();
    let mut count = 1;
    while most.pow(count) < n {
        count += 1;
    }
    loop {
        let mut parts: SmallVec<[usize; 4]> = SmallVec::from_elem(1, count as usize);
        for p in primes {
            if let Some(least) = parts.iter_mut().min() {
                *least *= p;
            }
        }
        if parts.iter().all(|&part| part <= most) {
            return parts;
        }
        count += 1;
    }
}

/// How long the convolution is that gives a transform of `n` elements.
pub(super) fn convolved(n: usize) -> usize {
    let least = 2 * n - 1;
    let of = |odd: usize| odd * least.div_ceil(odd).next_power_of_two();
    [1, 3, 5, 9, 15].map(of).into_iter().min().unwrap_or(least)
}

/// Radices of the stages of a pass, four bits each, and how many they are.
fn stages(mut n: usize) -> ([u32; 2], u32) {
    let (mut words, mut count) = ([0; 2], 0);
    for radix in [4, 2, 3, 5] {
        while n.is_multiple_of(radix) {
            words[count / 8] |= (radix as u32) << (4 * (count % 8));
            n /= radix;
            count += 1;
        }
    }
    (words, count as u32)
}

/// Lines whose length has no factors but 2, 3 and 5.
struct Lines<'a> {
    gpu: &'a Gpu,
    acc: Acc,
    lines: usize,
    primes: &'a [usize],
    factors: Option<&'a Tensor>,
}

impl Lines<'_> {
    fn run(&self, forward: bool, scale: f64, x: Side, y: Side) -> Result<()> {
        let parts = passes(self.primes, most(self.acc));
        let n: usize = parts.iter().product();
        let room = |i: usize| match parts.len() > i + 1 {
            true => Scratch::new(self.gpu, &[self.lines * n], self.acc.dtype()).map(Some),
            false => Ok(None),
        };
        let rooms = [room(0)?, room(1)?];
        let between = |i: usize| rooms[i % 2].as_ref().map(|s| Side::between(s, n));
        let mut done = 1;
        for (i, &radix) in parts.iter().enumerate() {
            let last = i + 1 == parts.len();
            let from = if i == 0 { Some(x) } else { between(i - 1) };
            let to = if last { Some(y) } else { between(i) };
            if let (Some(x), Some(y)) = (from, to) {
                let scale = if last { scale } else { 1.0 };
                self.pass((n, radix, done), forward, scale, x, y)?;
            }
            done *= radix;
        }
        Ok(())
    }

    fn pass(
        &self,
        (n, radix, done): (usize, usize, usize),
        forward: bool,
        scale: f64,
        x: Side,
        y: Side,
    ) -> Result<()> {
        let most = most(self.acc);
        let (across, transforms) = (n / radix, self.lines * (n / radix));
        let roots = upload(self.gpu, &roots(self.acc, radix, done))?;
        let low = 1 << low_bits(radix * done);
        let each = (most / radix).min(transforms);
        let (radices, stages) = stages(radix);
        let p = Block {
            transforms: transforms as u32,
            n: n as u32,
            radix: radix as u32,
            done: done as u32,
            each: each as u32,
            stages,
            read: x.count as u32,
            kept: y.count as u32,
            x_inner: x.inner as u32,
            x_length: x.length as u32,
            x_offset: x.offset as u32,
            y_inner: y.inner as u32,
            y_length: y.length as u32,
            y_offset: y.offset as u32,
            x_across: (across > 1 || x.inner > 1) as u32,
            y_across: (done > 1 || across == 1 && y.inner > 1) as u32,
            x_half: x.half as u32,
            y_half: y.half as u32,
            x_factor: x.factor,
            y_factor: y.factor,
            conjugates: !forward as u32 | (x.conjugate as u32) << 1 | (y.conjugate as u32) << 2,
            low: radix as u32,
            high: (radix + low.min(radix * done)) as u32,
            bits: low_bits(radix * done),
            scale: self.acc.words(scale),
            radices,
        };
        FFT.launch(self.acc)
            .set("MOST", most as u32)
            .set("WG", WORKGROUP as u32)
            .writes("Y", y.memory)
            .reads("X", x.memory)
            .reads_words(&roots)
            .reads_words(self.factors.unwrap_or(&roots))
            .groups(self.gpu, &p, transforms.div_ceil(each))
    }
}

/// What elements of a type are computed in.
pub(super) fn acc_of(dtype: DType) -> Acc {
    match dtype {
        DType::F64 | DType::C128 => Acc::C128,
        _ => Acc::C64,
    }
}

/// Zeros in all of a contiguous tensor of whole words.
fn clear(gpu: &Gpu, y: &Tensor) -> Result<()> {
    let (view, words) = (whole(y)?, y.dtype().size() / 4);
    let y = View {
        shape: &[view.numel() * words],
        strides: &[1],
        offset: view.offset * words,
        dtype: DType::I32,
        ..view
    };
    copy::fill(gpu, y, [0; 2])
}

/// Transforms `x` into `y`, of floats or pairs of them.
pub(super) fn run(gpu: &Gpu, op: &Fft, x: &Tensor, y: &Tensor) -> Result<()> {
    let n = op.n;
    let acc = acc_of(x.dtype());
    gpu.require(acc, "fft")?;
    let lines = match y.shape()[op.dim] {
        0 => return Ok(()),
        out => y.numel() / out,
    };
    if lines == 0 {
        return Ok(());
    }
    // Half a spectrum has no more elements than stand for all.
    let count = |side| if op.half == side { n / 2 + 1 } else { n };
    let (read, written) = (count(Half::Input), count(Half::Output));
    if x.numel() == 0 || op.out > written {
        clear(gpu, y)?;
    }
    if x.numel() == 0 {
        return Ok(());
    }
    let smooth = primes(n);
    let m = smooth.as_ref().map_or_else(|| convolved(n), |_| n);
    ensure!(
        (lines * m).max(x.numel()).max(y.numel()) < 1 << 30,
        NoKernel,
        "wgpu: fft: {lines} lines of {n} elements"
    );
    let x = dense(gpu, x)?;
    let scale = op.scale.f64();
    let half = |side| if op.half == side { n } else { 0 };
    let from = Side::of(&x, op.dim, x.shape()[op.dim].min(read), half(Half::Input));
    let to = Side::of(y, op.dim, op.out.min(written), half(Half::Output));
    if let Some(primes) = smooth {
        let all = Lines {
            gpu,
            acc,
            lines,
            primes: &primes,
            factors: None,
        };
        return all.run(op.forward, scale, from, to);
    }
    // Bluestein 1970: j k = (j^2 + k^2 - (j - k)^2) / 2 makes a convolution of the transform.
    let factors = upload(gpu, &chirp(acc, n, m))?;
    let room = Scratch::new(gpu, &[lines * m], acc.dtype())?;
    let all = Lines {
        gpu,
        acc,
        lines,
        primes: &primes(m).unwrap_or_default(),
        factors: Some(&factors),
    };
    let (back, between) = (!op.forward, Side::between(&room, m));
    all.run(true, 1.0, from.times(0, back), between.times(n, back))?;
    all.run(false, scale, between, to.times(0, back))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_quarters_are_exact_and_others_symmetric() {
        let parts = |k, n| (root(k, n).re, root(k, n).im);
        let quarters = [(1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0)];
        for n in [4, 12, 1020] {
            for (q, z) in quarters.iter().enumerate() {
                assert_eq!(parts(q * n / 4, n), *z);
            }
        }
        for n in [7, 12, 1021, 65536] {
            for k in 1..n {
                let (z, mirrored) = (root(k, n), root(n - k, n).conj());
                // As they are stored.
                assert_eq!(
                    (z.re as f32, z.im as f32),
                    (mirrored.re as f32, mirrored.im as f32)
                );
                let angle = -std::f64::consts::TAU * k as f64 / n as f64;
                assert!((z - Complex::cis(angle)).norm() < 2e-15);
            }
        }
    }

    #[test]
    fn passes_fit_and_make_the_whole() {
        for n in (1..5000).chain([1 << 20, 1 << 21, 3 << 25, 1594323, 9765625, 1 << 30]) {
            let Some(primes) = primes(n) else { continue };
            for most in [most(Acc::C64), most(Acc::C128)] {
                let parts = passes(&primes, most);
                assert_eq!(parts.iter().product::<usize>(), n);
                for part in parts {
                    assert!(part <= most);
                    let (words, count) = stages(part);
                    let radix = |i: usize| (words[i / 8] >> (4 * (i % 8)) & 15) as usize;
                    assert_eq!((0..count as usize).map(radix).product::<usize>(), part);
                }
            }
        }
    }

    #[test]
    fn convolutions_are_long_enough_and_have_passes() {
        for n in (2..3000).chain([131071, 1000003]) {
            let m = convolved(n);
            assert!(
                m >= 2 * n - 1 && 2 * m < 5 * n + 8 && primes(m).is_some(),
                "{n} {m}"
            );
        }
    }
}
