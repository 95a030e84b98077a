//! Products in AMX tiles: of bfloat16, and of float32 and float16 as sums of bfloat16 terms.
//!
//! A float32 number is the sum of three bfloat16 terms of 8 bits each, exactly. Of the nine
//! products of terms six are summed, in float32; the others are below 2^-23 of the whole. With
//! lower precision set, two terms and three products are taken, or one. A float16 number is the sum
//! of two terms, exactly, and all four products are summed.
//!
//! Tiles flush denormals. So float32 is scaled by [`SCALE`], and a block of a product whose numbers
//! are so large or so small that a sum could overflow, or a term or sum be denormal, is multiplied
//! by the other kernels ([`Bounds`]).

mod tiles;

use super::drive::{blocked, vectors, Grid, Side, Way};
use super::kernel::{finish, Tile};
use super::native::Native;
use super::pack::From;
use super::{GemmElem, Mat, Problem, TERMS};
use crate::machine::{machine, Amx};
use crate::simd::Simd;
use crate::{compiled, per_isa};
use crate::{level, Level};
use half::{bf16, f16};
use std::arch::x86_64::{__m256, __m512};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;
use tiles::{available, sum, Engine, Machine, Model, Products, ALL_OF_TWO, PRODUCTS};

/// What float32 operands are multiplied by, so that small numbers keep all of their terms.
const SCALE: f32 = (1u32 << 24) as f32;
/// Rows and columns of four tiles of C, and the depth of the tiles that they are summed from.
const SIDE: usize = 32;
/// Numbers in the tiles of one operand: two of 16 rows of 64 bytes.
const PAIR: usize = SIDE * SIDE;

/// The largest and the smallest of the magnitudes that were packed, as bits; zeros do not count
/// for the smallest, which is kept less one.
struct Bounds {
    most: AtomicU32,
    least: AtomicU32,
}

impl Bounds {
    const fn new() -> Bounds {
        Bounds {
            most: AtomicU32::new(0),
            least: AtomicU32::new(u32::MAX),
        }
    }
    fn add(&self, (most, least): (u32, u32)) {
        self.most.fetch_max(most, Relaxed);
        self.least.fetch_min(least, Relaxed);
    }
    /// The bounds, which start anew; none if a number is not finite, or terms would not be.
    fn take(&self) -> Option<(f64, f64)> {
        let most = self.most.swap(0, Relaxed);
        let least = self.least.swap(u32::MAX, Relaxed).wrapping_add(1);
        let number = |bits| f32::from_bits(bits) as f64;
        (number(most) < 2f64.powi(127)).then(|| (number(most), number(least)))
    }
}

/// Whether sums of `k` products in tiles are as exact as others.
///
/// Numbers from 2^-103 on split without a remainder into terms that are not denormal. Each term of
/// an x of at least 2^e is a multiple of 2^(e-23). So all sums of products are multiples of
/// 2^-126, which are never denormal, if the least operands' exponents add up to -80. Terms add at
/// most 3 % to the magnitude of a sum of products.
fn exact(k: usize, a: Option<(f64, f64)>, b: Option<(f64, f64)>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return false;
    };
    if a.0 == 0.0 || b.0 == 0.0 {
        return true;
    }
    let splits = a.1.min(b.1) >= 2f64.powi(-103);
    splits && a.1 * b.1 >= 2f64.powi(-78) && a.0 * b.0 * k as f64 * 1.04 < 2f64.powi(127)
}

/// What tiles are packed from.
pub(super) trait Operand: GemmElem<Acc = f32> {
    /// What sums are multiplied by, where operands were scaled.
    const UNSCALE: f32;
    /// Whether numbers must lie within bounds.
    const BOUNDED: bool;
    /// Depth that is summed before a tile of C is written.
    const DEPTH: usize;
    /// Terms of a number.
    fn terms(p: &Problem<Self>) -> usize;
    /// The products of as many terms that are summed.
    fn products(terms: usize) -> Products {
        PRODUCTS[terms - 1]
    }
    /// Packs up to 32 lanes in blocks of 32 elements of depth: rows of A, or pairs of rows of B.
    /// Returns the bounds of what it saw.
    ///
    /// # Safety
    /// The operand is readable; `dst` has room for the padded blocks.
    unsafe fn fill(x: &From<Self>, side: Side, terms: usize, dst: *mut u16) -> (u32, u32);
}

/// A vector of float32, or of pairs of bfloat16.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Row([u32; 16]);

const ZERO: Row = Row([0; 16]);

/// Rows become columns.
#[inline(always)]
fn transpose(x: &mut [Row; 16]) {
    if level() == Level::Avx512 {
        // SAFETY: the instructions are there, and vectors have the layout of rows.
        return unsafe { __m512::transpose(x.as_mut_ptr().cast()) };
    }
    let y = *x;
    for i in 0..16 {
        for j in 0..16 {
            x[i].0[j] = y[j].0[i];
        }
    }
}

/// A number of 16 bits as one of 32. A choice by its bits: loops over it become vectors, and no
/// denormal float32 is read.
#[inline(always)]
fn wide(h: u16) -> u32 {
    const EXPONENT: u32 = 0x7c00 << 13;
    const BIAS: u32 = (127 - 15) << 23;
    let (sign, size) = ((h as u32 & 0x8000) << 16, (h as u32 & 0x7fff) << 13);
    let top = size & EXPONENT;
    // 2^-14 and more with the digits of a denormal, less 2^-14.
    let least = BIAS + (1 << 23);
    let tiny = (f32::from_bits((size & !EXPONENT) + least) - f32::from_bits(least)).to_bits();
    let size = size + if top == EXPONENT { 2 * BIAS } else { BIAS };
    sign | if top == 0 { tiny } else { size }
}

/// What is split into terms.
trait Split: Copy {
    /// What numbers are multiplied by.
    const SCALE: f32;
    fn bits(self) -> u32;
}

impl Split for f32 {
    const SCALE: f32 = SCALE;
    #[inline(always)]
    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl Split for f16 {
    const SCALE: f32 = 1.0;
    #[inline(always)]
    fn bits(self) -> u32 {
        wide(self.to_bits())
    }
}

/// The terms of scaled numbers, in the upper halves; and bounds of the numbers.
#[inline(always)]
fn split<T: Split>(x: &Row, most: &mut Row, least: &mut Row) -> [Row; 3] {
    let mut y = [ZERO; 3];
    let term = |x: f32| {
        let bits = x.to_bits();
        bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000
    };
    for j in 0..16 {
        let v = f32::from_bits(x.0[j]) * T::SCALE;
        let size = v.to_bits() & 0x7fff_ffff;
        most.0[j] = most.0[j].max(size);
        least.0[j] = least.0[j].min(size.wrapping_sub(1));
        let high = term(v);
        let rest = v - f32::from_bits(high);
        let middle = term(rest);
        let rest = rest - f32::from_bits(middle);
        (y[0].0[j], y[1].0[j], y[2].0[j]) = (high, middle, term(rest));
    }
    y
}

per_isa! {
    unsafe fn fill_terms[T: Split](x: &From<T>, side: Side, terms: usize, dst: *mut u16) -> (u32, u32) {
        // SAFETY: lanes and depths of `x` may be read, the others are left zero; `dst` has room for
        // blocks of SIDE depths.
        unsafe {
            let (mut most, mut least) = (ZERO, Row([u32::MAX; 16]));
            // As it lies in memory, or else as it is wanted.
            let by_lane = x.ds == 1 || side == Side::A && x.ls != 1;
            for from in (0..x.depth.next_multiple_of(SIDE)).step_by(16) {
                let to = dst.add(from / SIDE * terms * PAIR);
                let half = from / 16 % 2;
                let depth = x.depth.saturating_sub(from).min(16);
                for t in 0..2 {
                    let lanes = x.lanes.saturating_sub(16 * t).min(16);
                    let p = x.p.wrapping_offset((16 * t) as isize * x.ls + from as isize * x.ds);
                    let (n, w, rs, cs) = match by_lane {
                        true => (lanes, depth, x.ls, x.ds),
                        false => (depth, lanes, x.ds, x.ls),
                    };
                    let mut rows = [ZERO; 16];
                    if n == 16 && w == 16 && cs == 1 {
                        for i in 0..16 {
                            let p = p.wrapping_offset(i as isize * rs);
                            let from = p.cast::<[T; 16]>().read_unaligned();
                            for j in 0..16 {
                                rows[i].0[j] = from[j].bits();
                            }
                        }
                    } else {
                        for i in 0..n {
                            for j in 0..w {
                                let at = i as isize * rs + j as isize * cs;
                                rows[i].0[j] = (*p.wrapping_offset(at)).bits();
                            }
                        }
                    }
                    if by_lane != (side == Side::A) {
                        transpose(&mut rows);
                    }
                    let to = to.add(t * PAIR / 2);
                    if side == Side::A {
                        for i in 0..16 {
                            let y = split::<T>(&rows[i], &mut most, &mut least);
                            for s in 0..terms {
                                let mut z = [0u16; 16];
                                for j in 0..16 {
                                    z[j] = (y[s].0[j] >> 16) as u16;
                                }
                                let to = to.add(s * PAIR + i * SIDE + half * 16);
                                to.cast::<[u16; 16]>().write_unaligned(z);
                            }
                        }
                    } else {
                        for i in 0..8 {
                            let even = split::<T>(&rows[2 * i], &mut most, &mut least);
                            let odd = split::<T>(&rows[2 * i + 1], &mut most, &mut least);
                            for s in 0..terms {
                                let mut z = [0u32; 16];
                                for j in 0..16 {
                                    z[j] = even[s].0[j] >> 16 | odd[s].0[j];
                                }
                                let to = to.add(s * PAIR + (half * 8 + i) * SIDE);
                                to.cast::<[u32; 16]>().write_unaligned(z);
                            }
                        }
                    }
                }
            }
            let mut bounds = (0, u32::MAX);
            for j in 0..16 {
                bounds = (bounds.0.max(most.0[j]), bounds.1.min(least.0[j]));
            }
            bounds
        }
    }
}

per_isa! {
    unsafe fn fill_bf16[](x: &From<bf16>, side: Side, dst: *mut u16) {
        // SAFETY: lanes and depths of `x` may be read, the others are left zero; `dst` has room for
        // blocks of SIDE depths.
        unsafe {
            // Rows are lanes of pairs, or pairs of lanes.
            let by_lane = x.ds == 1 || side == Side::A && x.ls != 1;
            for from in (0..x.depth).step_by(SIDE) {
                let depth = (x.depth - from).min(SIDE);
                for t in 0..2 {
                    let lanes = x.lanes.saturating_sub(16 * t).min(16);
                    let p = x.p.wrapping_offset((16 * t) as isize * x.ls + from as isize * x.ds);
                    let p = p.cast::<u16>();
                    let mut rows = [ZERO; 16];
                    if x.ds == 1 && depth == SIDE {
                        for i in 0..lanes {
                            let p = p.wrapping_offset(i as isize * x.ls);
                            rows[i] = Row(p.cast::<[u32; 16]>().read_unaligned());
                        }
                    } else if !by_lane && x.ls == 1 && lanes == 16 && depth == SIDE {
                        for q in 0..16 {
                            let p = p.wrapping_offset((2 * q) as isize * x.ds);
                            let even = p.cast::<[u16; 16]>().read_unaligned();
                            let p = p.wrapping_offset(x.ds);
                            let odd = p.cast::<[u16; 16]>().read_unaligned();
                            for j in 0..16 {
                                rows[q].0[j] = even[j] as u32 | (odd[j] as u32) << 16;
                            }
                        }
                    } else {
                        for q in 0..depth {
                            for l in 0..lanes {
                                let v = *p.wrapping_offset(l as isize * x.ls + q as isize * x.ds);
                                let (i, j) = if by_lane { (l, q / 2) } else { (q / 2, l) };
                                rows[i].0[j] |= (v as u32) << (q % 2 * 16);
                            }
                        }
                    }
                    if by_lane != (side == Side::A) {
                        transpose(&mut rows);
                    }
                    let to = dst.add(from * SIDE + t * PAIR / 2);
                    to.cast::<[Row; 16]>().write_unaligned(rows);
                }
            }
        }
    }
}

impl Operand for f32 {
    const UNSCALE: f32 = 1.0 / SCALE / SCALE;
    const BOUNDED: bool = true;
    const DEPTH: usize = 256;
    fn terms(p: &Problem<f32>) -> usize {
        if p.reduced {
            TERMS.load(Relaxed)
        } else {
            3
        }
    }
    unsafe fn fill(x: &From<f32>, side: Side, terms: usize, dst: *mut u16) -> (u32, u32) {
        // SAFETY: the elements of `x` may be read, and `dst` has room for `terms` pairs of tiles a
        // block.
        unsafe { fill_terms(x, side, terms, dst) }
    }
}

impl Operand for f16 {
    const UNSCALE: f32 = 1.0;
    // What is not finite has no terms.
    const BOUNDED: bool = true;
    const DEPTH: usize = 512;
    fn terms(_: &Problem<f16>) -> usize {
        2
    }
    fn products(_: usize) -> Products {
        ALL_OF_TWO
    }
    unsafe fn fill(x: &From<f16>, side: Side, terms: usize, dst: *mut u16) -> (u32, u32) {
        // SAFETY: the elements of `x` may be read, and `dst` has room for `terms` pairs of tiles a
        // block.
        unsafe { fill_terms(x, side, terms, dst) }
    }
}

impl Operand for bf16 {
    const UNSCALE: f32 = 1.0;
    const BOUNDED: bool = false;
    const DEPTH: usize = 1024;
    fn terms(_: &Problem<bf16>) -> usize {
        1
    }
    unsafe fn fill(x: &From<bf16>, side: Side, _: usize, dst: *mut u16) -> (u32, u32) {
        // SAFETY: the elements of `x` may be read, and `dst` has room for a pair of tiles a block.
        unsafe { fill_bf16(x, side, dst) };
        (0, u32::MAX)
    }
}

/// Writes the sums of a tile, whose columns are N vectors.
#[inline(always)]
unsafe fn rows<V: Simd<Elem = f32>, const N: usize>(
    sums: &[[f32; SIDE]; SIDE],
    rows: usize,
    unscale: f32,
    out: &Tile<f32>,
) {
    // SAFETY: `rows` is at most SIDE, and the tile's rows of N vectors lie in C; the caller has the
    // instructions of `V`.
    unsafe {
        let (zero, unscale) = (V::splat(0.0), V::splat(unscale));
        for i in 0..rows {
            let mut sum = [[zero; N]; 1];
            for j in 0..N {
                sum[0][j] = V::load(sums[i].as_ptr().add(j * V::LANES)).fma(unscale, zero);
            }
            let row = Tile {
                c: out.c.offset(i as isize * out.c_rs),
                d: out.d.wrapping_offset(i as isize * out.d_rs),
                ..*out
            };
            finish::<V, 1, N>(sum, &row);
        }
    }
}

type Finish = unsafe fn(&[[f32; SIDE]; SIDE], usize, f32, &Tile<f32>);

compiled! { avx512:
    unsafe fn finish_512(s: &[[f32; SIDE]; SIDE], m: usize, unscale: f32, out: &Tile<f32>) {
        // SAFETY: the rows of the tile, at most 32 columns, lie in C; `level` said AVX-512.
        unsafe {
            match out.width.div_ceil(16) {
                1 => rows::<__m512, 1>(s, m, unscale, out),
                _ => rows::<__m512, 2>(s, m, unscale, out),
            }
        }
    }
}

compiled! { avx2:
    unsafe fn finish_256(s: &[[f32; SIDE]; SIDE], m: usize, unscale: f32, out: &Tile<f32>) {
        // SAFETY: the rows of the tile, at most 32 columns, lie in C; `level` said AVX2.
        unsafe {
            match out.width.div_ceil(8) {
                1 => rows::<__m256, 1>(s, m, unscale, out),
                2 => rows::<__m256, 2>(s, m, unscale, out),
                3 => rows::<__m256, 3>(s, m, unscale, out),
                _ => rows::<__m256, 4>(s, m, unscale, out),
            }
        }
    }
}

struct Tiles<T: Operand, G> {
    a: Mat<*const T>,
    /// The transposed B.
    b: Mat<*const T>,
    terms: usize,
    bounds: [Bounds; 2],
    engine: std::marker::PhantomData<G>,
}

// SAFETY: the operands are only read.
unsafe impl<T: Operand, G> Sync for Tiles<T, G> {}

impl<T: Operand, G: Engine> Way<f32> for Tiles<T, G> {
    fn grid(&self) -> Grid {
        Grid {
            rows: SIDE,
            columns: SIDE,
            depth: T::DEPTH,
            units: (SIDE, SIDE, SIDE),
            halves: self.terms,
        }
    }
    unsafe fn pack(&self, side: Side, lanes: Range<usize>, depth: Range<usize>, dst: *mut f32) {
        // SAFETY: lanes and depths lie inside the operand, and `dst` has room for them, padded.
        unsafe {
            let x = match side {
                Side::A => &self.a,
                Side::B => &self.b,
            };
            let from = From {
                p: x.at(lanes.start, depth.start),
                ls: x.rs,
                ds: x.cs,
                lanes: lanes.len(),
                depth: depth.len(),
            };
            self.bounds[side as usize].add(T::fill(&from, side, self.terms, dst.cast()));
        }
    }
    fn fits(&self, depth: usize) -> bool {
        !T::BOUNDED || exact(depth, self.bounds[0].take(), self.bounds[1].take())
    }
    unsafe fn begin(&self) {
        // SAFETY: an engine is chosen where the machine has its instructions.
        unsafe {
            G::begin();
        }
    }
    unsafe fn end(&self) {
        // SAFETY: an engine is chosen where the machine has its instructions.
        unsafe {
            G::end();
        }
    }
    unsafe fn tile(&self, rows: usize, k: usize, a: *const f32, b: *const f32, out: &Tile<f32>) {
        // SAFETY: `a` and `b` hold `k` packed depths, `sums` is written whole, and the tile lies
        // inside C.
        unsafe {
            let mut sums = MaybeUninit::<[[f32; SIDE]; SIDE]>::uninit();
            let (k, c) = (k.div_ceil(SIDE), sums.as_mut_ptr().cast());
            let of = (self.terms, T::products(self.terms));
            sum(&mut G::new(), of, k, a.cast(), b.cast(), c);
            let sums = sums.assume_init_ref();
            // Products without vectors do not come here.
            let finish: Finish = match level() {
                Level::Avx512 => finish_512,
                _ => finish_256,
            };
            finish(sums, rows, T::UNSCALE, out);
        }
    }
}

/// Multiplies in tiles.
unsafe fn run<T: Operand, G: Engine>(x: &Native<T>, p: &Problem<T>, terms: usize) {
    // SAFETY: `p` names elements that may be read, or written in C, whose columns are contiguous;
    // the engine's instructions are there.
    unsafe {
        let tiles = Tiles::<T, G> {
            a: p.a,
            b: p.b.transposed(),
            terms,
            bounds: [Bounds::new(), Bounds::new()],
            engine: std::marker::PhantomData,
        };
        if T::BOUNDED {
            vectors(x, p, |other| blocked(&tiles, Some(other), p.k, p));
        } else {
            blocked(&tiles, None, p.k, p);
        }
    }
}

/// [`run`], unless padding costs more than tiles gain; returns whether.
unsafe fn worthwhile<T: Operand, G: Engine>(x: &Native<T>, p: &Problem<T>) -> bool {
    let terms = T::terms(p);
    let padded = |n: usize| n.next_multiple_of(SIDE) as f64 / n as f64;
    let cost = padded(p.m) * padded(p.n) * padded(p.k) * T::products(terms).len() as f64;
    if cost > 8.0 {
        return false;
    }
    // SAFETY: `p` names elements that may be read, or written in C, whose columns are contiguous;
    // the engine's instructions are there.
    unsafe { run::<T, G>(x, p, terms) };
    true
}

/// What multiplies in tiles on this machine, if anything does.
pub(super) fn multiply<T: Operand>() -> Option<unsafe fn(&Native<T>, &Problem<T>) -> bool> {
    static MACHINE: OnceLock<bool> = OnceLock::new();
    match machine().amx {
        Amx::Never => None,
        Amx::Machine => MACHINE
            .get_or_init(available)
            .then_some(worthwhile::<T, Machine>),
        Amx::Model => Some(worthwhile::<T, Model>),
    }
}

#[cfg(test)]
mod tests;
