//! Products with few rows, where reading the other operand is the work: each of its elements is
//! read once, in the order of memory.

use super::drive::sums;
#[cfg(target_arch = "x86_64")]
use super::kernel::pairs::Pairs;
use super::kernel::{Fused, Step, Strided};
use super::native::{Dots, Gemv, Native};
#[cfg(target_arch = "x86_64")]
use super::pack::Paired;
use super::pack::Source;
use super::{part, Acc, GemmElem, Mat, Problem};
use crate::alloc::Scratch;
use crate::machine::machine;
use crate::pool::{look, num_threads, parallel_blocks, parallel_for, Ptr};
use crate::simd::{fetch, Simd};
#[cfg(target_arch = "aarch64")]
use crate::simd::{F32x8, F64x4};
use half::{bf16, f16};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Rows up to which a product is one of a matrix and few vectors.
pub(super) const ROWS: usize = 16;
/// Elements of the large operand that a second thread is worth.
const GRAIN: usize = 1 << 15;
/// Rows of the large operand that are read side by side.
const STREAMS: usize = 8;
/// Depth of sums that are added up before they meet others, for their accuracy.
const SUMS: usize = 256;
/// Depth that vectors of sums run over.
const RUN: usize = 2048;
/// Elements of B that are asked for ahead of their use.
const AHEAD: usize = 256;
/// The fewest lanes of a kernel for many.
const MANY: usize = 8;
/// Depth up to which one row meets many lanes at a time: else the sums across vectors would be most of the work.
const SHALLOW: usize = 512;
/// Bytes of sums of a row that stay in the first cache.
const RUNS: usize = 16 << 10;
/// Elements of a piece of a long sum.
const PIECE: usize = 1 << 15;

#[inline(always)]
unsafe fn dots<V: Simd, S: Source<V>, P: Step<V>, const M: usize, const N: usize>(
    k: usize,
    a: *const V::Elem,
    a_rs: usize,
    b: *const S,
    ls: isize,
    sums: *mut V::Elem,
) where
    V::Elem: Acc,
{
    // SAFETY: A has M rows of `k` packed elements and B N lanes of them, `sums` has room for M * N; the
    // caller has the instructions of `V`.
    unsafe {
        let zero = V::splat(V::Elem::ZERO);
        let mut sum = [[zero; N]; M];
        let (mut q, step) = (0, S::EACH * V::LANES);
        // Many lanes are shallow: the next ones are asked for.
        let ahead = match N >= MANY {
            true => N as isize * ls,
            false => AHEAD as isize,
        };
        while q + step <= k {
            let mut y = [zero; N];
            for j in 0..N {
                let b = b.offset(j as isize * ls).add(q);
                fetch(b.wrapping_offset(ahead));
                y[j] = S::along_depth(b, step);
            }
            for i in 0..M {
                let x = V::load(a.add(i * a_rs + q / S::EACH));
                for j in 0..N {
                    sum[i][j] = P::one(x, y[j], sum[i][j]);
                }
            }
            q += step;
        }
        if q < k {
            let mut y = [zero; N];
            for j in 0..N {
                y[j] = S::along_depth(b.offset(j as isize * ls).add(q), k - q);
            }
            for i in 0..M {
                let x = V::load_first(a.add(i * a_rs + q / S::EACH), (k - q).div_ceil(S::EACH));
                for j in 0..N {
                    sum[i][j] = P::one(x, y[j], sum[i][j]);
                }
            }
        }
        // Sixteen vectors become one of their sums.
        let sum = sum.as_ptr().cast::<V>();
        let mut block = [zero; 16];
        let mut from = 0;
        while from < M * N {
            let n = (M * N - from).min(V::LANES);
            for i in 0..V::LANES {
                block[i] = if i < n { *sum.add(from + i) } else { zero };
            }
            V::transpose(block.as_mut_ptr());
            total::<V>(&mut block).store_first(sums.add(from), n);
            from += n;
        }
    }
}

/// The sum of `LANES` vectors, in pairs.
#[inline(always)]
unsafe fn total<V: Simd>(x: &mut [V; 16]) -> V
where
    V::Elem: Acc,
{
    // SAFETY: all of `x` are vectors; the caller has their instructions.
    unsafe {
        let one = V::splat(V::Elem::ONE);
        let mut n = V::LANES;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                x[i] = x[i].fma(one, x[i + n]);
            }
        }
        x[0]
    }
}

/// The product of two vectors, over at most a piece. Asks for elements `AHEAD`, unless it is 0.
#[inline(always)]
unsafe fn inner<V: Simd, const AHEAD: usize>(
    k: usize,
    x: *const V::Elem,
    y: *const V::Elem,
) -> V::Elem
where
    V::Elem: Acc,
{
    // SAFETY: `x` and `y` have `k` elements, where the last vector ends; the caller has the
    // instructions of `V`.
    unsafe {
        // Sums by numbers that are known: those that are counted through would lie in memory, and the
        // next piece wait for them.
        const W: usize = 8;
        let mut sum = [V::splat(V::Elem::ZERO); W];
        let mut q = 0;
        while q + W * V::LANES <= k {
            for i in 0..W {
                let at = q + i * V::LANES;
                if AHEAD > 0 && (at - q) * size_of::<V::Elem>() % 64 == 0 {
                    fetch(x.wrapping_add(at + AHEAD));
                    fetch(y.wrapping_add(at + AHEAD));
                }
                sum[i] = V::load(x.add(at)).fma(V::load(y.add(at)), sum[i]);
            }
            q += W * V::LANES;
        }
        if q < k {
            for i in 0..W {
                let n = (k - q).min(V::LANES);
                sum[i] = V::load_first(x.add(q), n).fma(V::load_first(y.add(q), n), sum[i]);
                q += n;
            }
        }
        let one = V::splat(V::Elem::ONE);
        for i in 0..W / 2 {
            sum[i] = sum[i].fma(one, sum[i + W / 2]);
        }
        for i in 0..W / 4 {
            sum[i] = sum[i].fma(one, sum[i + W / 4]);
        }
        sum[0] = sum[0].fma(one, sum[1]);
        let mut lanes = [V::Elem::ZERO; 16];
        sum[0].store(lanes.as_mut_ptr());
        let mut n = V::LANES;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                lanes[i] = lanes[i].fma(V::Elem::ONE, lanes[i + n]);
            }
        }
        lanes[0]
    }
}

macro_rules! gemv {
    ($($name:ident, $T:ty $(as $S:ty, $P:ty, $more:literal)?, $V:ty, $set:ident,
       [$($m:literal $n:literal),*], $wide:literal;)*) => {$(
        pub(super) mod $name {
            #[allow(unused_imports)]
            use super::*;
            type E = <$V as Simd>::Elem;
            crate::compiled! { $set:
                $(#[target_feature(enable = $more)])?
                unsafe fn kernel<const M: usize, const N: usize>(
                    k: usize, a: *const E, a_rs: usize, b: *const $T, ls: isize, sums: *mut E,
                ) {
                    // SAFETY: A has M rows of `k` elements and B N lanes of them, `sums` has room
                    // for M * N; who takes the kernel asked for the set.
                    unsafe { gemv!(@dots $V, $T $(as $S, $P)?, M, N)(k, a, a_rs, b.cast(), ls, sums) }
                }
            }
            pub static GEMV: Gemv<$T> = Gemv {
                lanes: &[$($n),*],
                many: &[$(kernel::<$m, $n>),*],
                one: &[$(kernel::<$m, 1>),*],
                wide: ($wide, kernel::<1, $wide>),
            };
        }
    )*};
    (@dots $V:ty, $T:ty, $M:ident, $N:ident) => { super::dots::<$V, $T, Fused, $M, $N> };
    (@dots $V:ty, $T:ty as $S:ty, $P:ty, $M:ident, $N:ident) => { super::dots::<$V, $S, $P, $M, $N> };
}
#[cfg(target_arch = "aarch64")]
gemv! {
    f32_neon, f32, F32x8, neon, [1 3, 2 3, 3 3, 4 3], 8;
    f64_neon, f64, F64x4, neon, [1 3, 2 3, 3 3, 4 3], 8;
    f16_neon, f16, F32x8, neon, [1 3, 2 3, 3 3, 4 3], 8;
    bf16_neon, bf16, F32x8, neon, [1 3, 2 3, 3 3, 4 3], 8;
}
#[cfg(target_arch = "x86_64")]
gemv! {
    f32_512, f32, __m512, avx512,
        [1 4, 2 4, 3 4, 4 3, 5 3, 6 3, 7 3, 8 3], 16;
    f64_512, f64, __m512d, avx512,
        [1 4, 2 4, 3 4, 4 3, 5 3, 6 3, 7 3, 8 3], 16;
    f16_512, f16, __m512, avx512,
        [1 4, 2 4, 3 4, 4 3, 5 3, 6 3, 7 3, 8 3], 16;
    bf16_512, bf16, __m512, avx512,
        [1 4, 2 4, 3 4, 4 3, 5 3, 6 3, 7 3, 8 3], 16;
    pairs_512, bf16 as Paired, Pairs, "avx512bf16", __m512, avx512,
        [1 4, 2 4, 3 4, 4 3, 5 3, 6 3, 7 3, 8 3], 16;
    f32_256, f32, __m256, avx2, [1 3, 2 3, 3 3, 4 3], 8;
    f64_256, f64, __m256d, avx2, [1 3, 2 3, 3 3, 4 3], 8;
    f16_256, f16, __m256, avx2, [1 3, 2 3, 3 3, 4 3], 8;
    bf16_256, bf16, __m256, avx2, [1 3, 2 3, 3 3, 4 3], 8;
}

/// Adds `k` rows of B, at most [`STREAMS`], times the numbers at `a` to `n` sums; the first rows make
/// the sums. Nothing is asked for ahead: the processor sees long runs by itself, and what is asked
/// for past the end of one is another thread's.
#[inline(always)]
unsafe fn sweep<V: Simd>(
    (k, n): (usize, usize),
    (a, a_cs): (*const V::Elem, isize),
    (b, b_rs): (*const V::Elem, isize),
    y: *mut V::Elem,
    first: bool,
) where
    V::Elem: Acc,
{
    // SAFETY: B has `k` rows of `n` elements, A as many numbers and `y` `n` sums; the caller has the
    // instructions of `V`.
    unsafe {
        macro_rules! rows {
            ($k:literal) => {{
                let mut x = [V::splat(V::Elem::ZERO); $k];
                let mut row = [b; $k];
                for r in 0..$k {
                    x[r] = V::splat(*a.offset(r as isize * a_cs));
                    row[r] = b.offset(r as isize * b_rs);
                }
                let (zero, one) = (V::splat(V::Elem::ZERO), V::splat(V::Elem::ONE));
                let mut j = 0;
                while j + V::LANES <= n {
                    let mut sum = zero;
                    for r in 0..$k {
                        sum = x[r].fma(V::load(row[r].add(j)), sum);
                    }
                    if !first {
                        sum = one.fma(sum, V::load(y.add(j)));
                    }
                    sum.store(y.add(j));
                    j += V::LANES;
                }
                if j < n {
                    let mut sum = zero;
                    for r in 0..$k {
                        sum = x[r].fma(V::load_first(row[r].add(j), n - j), sum);
                    }
                    if !first {
                        sum = one.fma(sum, V::load_first(y.add(j), n - j));
                    }
                    sum.store_first(y.add(j), n - j);
                }
            }};
        }
        match k {
            1 => rows!(1),
            2 => rows!(2),
            3 => rows!(3),
            4 => rows!(4),
            5 => rows!(5),
            6 => rows!(6),
            7 => rows!(7),
            _ => rows!(8),
        }
    }
}

macro_rules! sweeps {
    ($($name:ident, $V:ty, $set:ident;)*) => {$(
        crate::compiled! { $set:
            pub(super) unsafe fn $name(
                size: (usize, usize),
                a: (*const <$V as Simd>::Elem, isize),
                b: (*const <$V as Simd>::Elem, isize),
                y: *mut <$V as Simd>::Elem,
                first: bool,
            ) {
                // SAFETY: the operands have the elements that `size` says; who takes the function
                // asked for the set.
                unsafe { sweep::<$V>(size, a, b, y, first) }
            }
        }
    )*};
}
sweeps! {
    sweep_f32_512, __m512, avx512;
    sweep_f64_512, __m512d, avx512;
    sweep_f32_256, __m256, avx2;
    sweep_f64_256, __m256d, avx2;
    sweep_f32_neon, F32x8, neon;
    sweep_f64_neon, F64x4, neon;
}

macro_rules! inner {
    ($($name:ident, $V:ty, $set:ident, $ahead:literal;)*) => {$(
        crate::compiled! { $set:
            pub(super) unsafe fn $name(
                k: usize, x: *const <$V as Simd>::Elem, y: *const <$V as Simd>::Elem,
            ) -> <$V as Simd>::Elem {
                // SAFETY: `x` and `y` hold `k` elements; who takes the kernel asked for the set.
                unsafe { inner::<$V, $ahead>(k, x, y) }
            }
        }
    )*};
}
inner! {
    inner_f32_512, __m512, avx512, 0;
    inner_f64_512, __m512d, avx512, 0;
    inner_f32_256, __m256, avx2, 0;
    inner_f64_256, __m256d, avx2, 0;
    far_f32_256, __m256, avx2, 32;
    far_f64_256, __m256d, avx2, 16;
    inner_f32_neon, F32x8, neon, 0;
    inner_f64_neon, F64x4, neon, 0;
}

/// Multiplies if `p` has few rows and B lies in memory as this likes; returns whether.
pub(super) unsafe fn multiply<T: GemmElem>(x: &Native<T>, p: &Problem<T>) -> bool {
    // SAFETY: `p` names elements that may be read, or written in C; B lies as the kernel that is
    // called expects.
    unsafe {
        if p.m > ROWS {
            return false;
        }
        // A short depth is not worth the sums across vectors.
        if p.b.rs == 1 && (p.k >= 192 || p.m == 1) {
            if p.m * p.n == 1 && !T::NARROW && p.a.cs == 1 {
                dot(x, p);
            } else {
                by_lanes(x, p);
            }
            return true;
        }
        if p.b.cs == 1 && !T::NARROW && p.m == 1 {
            row(x, p);
            return true;
        }
        // More rows than a tile has would go past B twice, and with each the sums of all of C.
        if p.b.cs == 1 && !T::NARROW && p.m <= x.set.rows && p.n * p.k >= 1 << 18 {
            by_rows(x, p);
            return true;
        }
        false
    }
}

/// One product of two vectors.
unsafe fn dot<T: GemmElem>(x: &Native<T>, p: &Problem<T>) {
    // SAFETY: A and B have `k` contiguous elements, pieces of which end there; there is a sum for
    // each piece.
    unsafe {
        let (a, b): (*const T::Acc, *const T::Acc) = (p.a.ptr.cast(), p.b.ptr.cast());
        let [near, far] = x.inner;
        if p.k <= PIECE {
            return p.put(0, 0, near(p.k, a, b));
        }
        let inner = if machine().is_amd { far } else { near };
        let pieces = p.k.div_ceil(PIECE);
        let sums = Scratch::<T::Acc>::new(pieces);
        let (a, b, to) = (Ptr::read(a), Ptr::read(b), Ptr::new(sums.ptr()));
        parallel_blocks(pieces, 2, 2, |r| {
            for i in r {
                let from = i * PIECE;
                *to.at(i) = inner(PIECE.min(p.k - from), a.at(from), b.at(from));
            }
        });
        let sums = std::slice::from_raw_parts_mut(sums.ptr(), pieces);
        let mut n = pieces;
        while n > 1 {
            let half = n.div_ceil(2);
            for i in half..n {
                sums[i - half] = sums[i - half].fma(T::Acc::ONE, sums[i]);
            }
            n = half;
        }
        p.put(0, 0, sums[0]);
    }
}

/// Sums of `n` products over all of the depth.
#[inline]
unsafe fn run<T: GemmElem>(
    kernel: Dots<T, T::Acc>,
    (k, each): (usize, usize),
    (a, a_rs): (*const T::Acc, usize),
    (b, ls): (*const T, isize),
    n: usize,
    out: &mut [T::Acc; 32],
) {
    // SAFETY: A and B have `k` elements of depth, where the last run ends; a kernel writes at most
    // 32 sums.
    unsafe {
        kernel(k.min(RUN), a, a_rs, b, ls, out.as_mut_ptr());
        for q in (RUN..k).step_by(RUN) {
            let mut more = [T::Acc::ZERO; 32];
            kernel(
                RUN.min(k - q),
                a.add(q / each),
                a_rs,
                b.add(q),
                ls,
                more.as_mut_ptr(),
            );
            for i in 0..n {
                out[i] = out[i].fma(T::Acc::ONE, more[i]);
            }
        }
    }
}

/// B's depth is contiguous: sums of products of vectors along the depth.
unsafe fn by_lanes<T: GemmElem>(x: &Native<T>, p: &Problem<T>) {
    // SAFETY: `rows` holds m rows of depth k; groups of lanes lie inside B, and tasks write elements of C
    // of their own.
    unsafe {
        let (m, n, k) = (p.m, p.n, p.k);
        let gemv = x.gemv;
        let copy = T::NARROW || p.a.cs != 1 || p.a.rs < 0;
        let deep = k.div_ceil(x.each);
        let rows = Scratch::<T::Acc>::new(if copy { m * deep } else { 0 });
        let (a, a_rs) = if copy {
            for i in 0..m {
                let row = rows.ptr().add(i * deep);
                if x.each == 1 {
                    (0..k).for_each(|q| row.add(q).write(p.a.get(i, q)));
                    continue;
                }
                // Packed elements hold so many of T as they lie, the last one zeros behind them.
                row.add(deep - 1).write(T::Acc::ZERO);
                (0..k).for_each(|q| row.cast::<T>().add(q).write(*p.a.at(i, q)));
            }
            (Ptr::new(rows.ptr()), deep)
        } else {
            (Ptr::new(p.a.ptr.cast_mut().cast()), p.a.rs as usize)
        };
        let passes = m.div_ceil(gemv.many.len());
        let most = m.div_ceil(passes);
        let (lanes, wide) = match gemv.wide {
            (lanes, kernel) if m == 1 && k <= SHALLOW && n >= lanes => (lanes, Some(kernel)),
            _ => (gemv.lanes[most - 1], None),
        };
        let groups = n.div_ceil(lanes);
        let grain = GRAIN.div_ceil(k * lanes);
        parallel_for(groups, grain, |r| {
            let mut out = [T::Acc::ZERO; 32];
            for g in r {
                let from = g * lanes;
                // The last group reaches back for full width.
                let full = n >= lanes;
                let start = if full { from.min(n - lanes) } else { from };
                for pass in 0..passes {
                    let rows = part(m, passes, pass);
                    let w = rows.len();
                    let a = a.at(rows.start * a_rs);
                    // A pass may have a row less, whose kernel takes other lanes: the tall one's
                    // count.
                    let alike = gemv.lanes[w - 1] == lanes;
                    let kernel = wide.or(alike.then(|| gemv.many[w - 1]));
                    if let Some(kernel) = kernel.filter(|_| full) {
                        run(
                            kernel,
                            (k, x.each),
                            (a, a_rs),
                            (p.b.at(0, start), p.b.cs),
                            w * lanes,
                            &mut out,
                        );
                        for i in 0..w {
                            for j in from..(from + lanes).min(n) {
                                p.put(rows.start + i, j, out[i * lanes + j - start]);
                            }
                        }
                    } else {
                        for j in from..(from + lanes).min(n) {
                            run(
                                gemv.one[w - 1],
                                (k, x.each),
                                (a, a_rs),
                                (p.b.at(0, j), p.b.cs),
                                w,
                                &mut out,
                            );
                            for i in 0..w {
                                p.put(rows.start + i, j, out[i]);
                            }
                        }
                    }
                }
            }
        });
    }
}

/// One row times a B whose columns are contiguous: B's rows are added in runs as long as sums of them
/// stay in the first cache, cut only between threads.
unsafe fn row<T: GemmElem>(x: &Native<T>, p: &Problem<T>) {
    // SAFETY: pieces lie inside A and B, `sums` holds those of C once or twice, and tasks have
    // columns of their own.
    unsafe {
        let (n, k) = (p.n, p.k);
        let tasks = (n * k.min(GRAIN) / GRAIN).clamp(1, num_threads()).min(n);
        let runs = n
            .div_ceil(RUNS / size_of::<T::Acc>())
            .next_multiple_of(tasks);
        let blocks = k.div_ceil(SUMS);
        let room = Scratch::<T::Acc>::new(n * if blocks > 1 { 2 } else { 1 });
        let room = Ptr::new(room.ptr());
        parallel_for(tasks, 1, |r| {
            for run in r.start * runs / tasks..r.end * runs / tasks {
                // Between vectors, where whole ones lie in lines.
                let at = |i: usize| if i == runs { n } else { n * i / runs / 16 * 16 };
                let (left, right) = (at(run), at(run + 1));
                for block in 0..blocks {
                    look();
                    let block = part(k, blocks, block);
                    let sums = if block.start == 0 { left } else { n + left };
                    let pieces = block.len().div_ceil(STREAMS);
                    for q in 0..pieces {
                        let depth = part(block.len(), pieces, q);
                        let top = block.start + depth.start;
                        let a = (p.a.at(0, top).cast(), p.a.cs);
                        let b = (p.b.at(top, left).cast(), p.b.rs);
                        (x.sweep)((depth.len(), right - left), a, b, room.at(sums), q == 0);
                    }
                    if block.start > 0 {
                        super::plain::add::<T>(right - left, room.at(sums), room.at(left));
                    }
                }
                let part = p.block(0, left, 1, right - left);
                super::plain::narrow(&part, room.at(left), n);
            }
        });
    }
}

/// B's columns are contiguous: a few rows of B at a time are added to all of C.
unsafe fn by_rows<T: GemmElem>(x: &Native<T>, p: &Problem<T>) {
    // SAFETY: pieces lie inside A and B, `rows` holds the sums of C once or twice, and tasks have
    // columns of their own.
    unsafe {
        let (m, n, k) = (p.m, p.n, p.k);
        let set = x.set;
        let reach = set.reach(m.min(set.rows));
        let panels = n.div_ceil(reach);
        let grain = (GRAIN / k.min(GRAIN)).div_ceil(reach);
        let tasks = (panels / grain.max(1)).clamp(1, 4 * num_threads());
        // Sums of a block of depth, and of all blocks.
        let blocks = k.div_ceil(SUMS);
        let rows = Scratch::<T::Acc>::new(m * n * if blocks > 1 { 2 } else { 1 });
        let rows = Ptr::new(rows.ptr());
        let passes = m.div_ceil(set.rows);
        parallel_for(tasks, 1, |r| {
            for task in r {
                let columns = part(panels, tasks, task);
                let (left, right) = (columns.start * reach, n.min(columns.end * reach));
                for block in 0..blocks {
                    let block = part(k, blocks, block);
                    let at = if block.start == 0 { 0 } else { m * n };
                    let pieces = block.len().div_ceil(STREAMS);
                    for q in 0..pieces {
                        let depth = part(block.len(), pieces, q);
                        let top = block.start + depth.start;
                        for j in columns.clone() {
                            let from = j * reach;
                            let w = (n - from).min(reach);
                            for pass in 0..passes {
                                let r = part(m, passes, pass);
                                let s = Strided {
                                    a: p.a.at(r.start, top).cast(),
                                    a_rs: p.a.rs,
                                    a_ds: p.a.cs,
                                    b: p.b.at(top, from).cast(),
                                    b_ds: p.b.rs,
                                };
                                let tile = sums(rows.at(at + r.start * n + from), n, w, q == 0);
                                set.tile(r.len(), depth.len(), &s, &tile);
                            }
                        }
                    }
                    if at > 0 {
                        for i in 0..m {
                            let (x, y) = (rows.at(at + i * n + left), rows.at(i * n + left));
                            super::plain::add::<T>(right - left, x, y);
                        }
                    }
                }
                let part = p.block(0, left, m, right - left);
                super::plain::narrow(&part, rows.at(left), n);
            }
        });
    }
}

/// A product of little more than depth: pieces of it side by side, then their sum in order.
pub(super) unsafe fn deep<T: GemmElem>(x: &Native<T>, p: &Problem<T>) {
    // SAFETY: pieces of depth lie inside A and B, and each has room for all of C in `sums`.
    unsafe {
        let pieces = (p.k / 4096).min(64);
        let size = p.m * p.n;
        let sums = Scratch::<T>::new(pieces * size);
        let to = Ptr::new(sums.ptr());
        parallel_for(pieces, 1, |r| {
            for i in r {
                let depth = part(p.k, pieces, i);
                let c = Mat::new(to.at(i * size), p.n as isize, 1);
                let at = depth.start as isize;
                super::drive::direct(
                    x,
                    &Problem {
                        k: depth.len(),
                        alpha: T::Acc::ONE,
                        beta: T::Acc::ZERO,
                        a: Mat {
                            ptr: p.a.ptr.offset(at * p.a.cs),
                            ..p.a
                        },
                        b: Mat {
                            ptr: p.b.ptr.offset(at * p.b.rs),
                            ..p.b
                        },
                        d: Mat::new(c.ptr as *const T, c.rs, 1),
                        c,
                        ..*p
                    },
                );
            }
        });
        let sums: *mut T::Acc = sums.ptr().cast();
        let mut n = pieces;
        while n > 1 {
            let half = n.div_ceil(2);
            for i in half..n {
                let (x, y) = (sums.add((i - half) * size), sums.add(i * size));
                for l in 0..size {
                    *x.add(l) = (*x.add(l)).fma(T::Acc::ONE, *y.add(l));
                }
            }
            n = half;
        }
        super::plain::narrow(p, sums, p.n);
    }
}
