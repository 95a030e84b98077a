//! Kernels that combine elements: rows into one value, rows into columns, partial results.

mod group;
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
mod registers;
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
mod streams;

use super::elements::{converts_f16, Bool, Compute, Element, NativeF16};
use super::math::{f32x, f64x};
use crate::dtype::DType;
use crate::error::{self, Error};
use crate::per_isa;
pub use group::{Group, GROUP, LEAST};
use half::{bf16, f16};

/// How elements are combined. `c` below is a value given for each result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Sum,
    Prod,
    /// The largest; NaN if any is.
    Max,
    /// The smallest; NaN if any is.
    Min,
    /// 1 if any is not zero.
    Any,
    /// 1 if all are not zero.
    All,
    /// The sum of what is not NaN.
    NanSum,
    /// How many are not NaN.
    Present,
    SumSquares,
    SumAbs,
    MaxAbs,
    MinAbs,
    /// The sum of (x - c)^2.
    SumSquaredFrom,
    /// The sum of e^(x - c).
    SumExpFrom,
}

pub type Columns<T> =
    unsafe fn(acc: *mut T, x: *const u8, c: *const T, n: usize, rows: usize, step: isize);

/// Kernels of one kind.
#[derive(Clone, Copy)]
pub struct Kernels<T> {
    pub init: T,
    /// The type of the elements that `row` and `columns` read, and widen in registers.
    pub source: DType,
    /// Combines `n` elements.
    pub row: unsafe fn(x: *const u8, n: usize, c: T) -> T,
    /// Combines element `j` of `rows` rows, `step` bytes apart, into `acc[j]`, row after row.
    pub columns: Columns<T>,
    /// Combines partial results.
    pub merge: unsafe fn(acc: *mut T, x: *const T, n: usize),
    /// `row` of rows one after another, where there is such a kernel; it knows no `c`.
    pub lines: Option<Lines<T>>,
    /// `row` of rows that are streams, where there is such a kernel.
    pub rows: Option<Rows<T>>,
    /// `row` of [`GROUP`] short rows at once, where there is such a kernel.
    pub group: Option<Group<T>>,
}

/// A kernel for `count` rows of `n` elements, at least [`LANES`], which lie `step` bytes apart, with the
/// results of `row`, bit for bit.
pub type Lines<T> = unsafe fn(x: *const u8, step: isize, n: usize, count: usize, out: *mut T);

/// A kernel that goes along `count` rows of one length, at least [`LANES`], in turn, with the results of
/// `row`, bit for bit.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    pub count: usize,
    pub run: unsafe fn(x: &[*const u8; MOST_ROWS], n: usize, out: &mut [T; MOST_ROWS]),
}

/// Rows that a kernel reads at once.
pub const MOST_ROWS: usize = 4;

trait Fold<T> {
    fn init() -> T;
    fn step(acc: T, x: T, c: T) -> T;
    fn join(a: T, b: T) -> T;
}

/// A type that reductions compute in.
pub trait Reducible: Compute {
    /// Kernels that read elements of `source` where there are such, and of this type else.
    fn kernels(kind: Kind, source: DType) -> Kernels<Self>;
    fn is_nan(self) -> bool;
}

/// An element that becomes a wider one in a few instructions, without a branch.
trait Widen<T: Copy>: Element {
    fn widen(self) -> T;
    /// Whether [`Widen::eight`] is quicker than what the compiler makes of one after the other.
    const IN_EIGHTS: bool = false;
    /// # Safety
    /// There are eight elements at `x`.
    #[inline(always)]
    unsafe fn eight(x: *const Self) -> [T; 8] {
        // SAFETY: there are eight elements at `x`.
        std::array::from_fn(|i| unsafe { *x.add(i) }.widen())
    }
}
#[cfg(target_arch = "x86_64")]
impl Widen<f32> for NativeF16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
    const IN_EIGHTS: bool = true;
    #[inline(always)]
    unsafe fn eight(x: *const Self) -> [f32; 8] {
        use std::arch::x86_64::*;
        // SAFETY: eight elements; who makes such a number asked for the instructions.
        unsafe {
            let wide = _mm256_cvtph_ps(_mm_loadu_si128(x.cast()));
            std::mem::transmute::<__m256, [f32; 8]>(wide)
        }
    }
}
macro_rules! widen {
    ($($t:ty => $w:ty: |$x:ident| $e:expr;)*) => { $(
        impl Widen<$w> for $t {
            #[inline(always)]
            fn widen(self) -> $w {
                let $x = self;
                $e
            }
        }
    )* };
}
widen! {
    f32 => f32: |x| x;
    f64 => f64: |x| x;
    i64 => i64: |x| x;
    i32 => i64: |x| x as i64;
    i16 => i64: |x| x as i64;
    i8 => i64: |x| x as i64;
    u8 => i64: |x| x as i64;
    Bool => i64: |x| (x.0 != 0) as i64;
    bf16 => f32: |x| f32::from_bits((x.to_bits() as u32) << 16);
    f16 => f32: |x| {
        let bits = x.to_bits() as u32;
        let size = (bits & 0x7fff) << 13;
        // Exponents are 112 apart. Subnormals get theirs by a subtraction, infinity and NaN by
        // the same distance once more.
        let tiny = f32::from_bits(size + (113 << 23)) - f32::from_bits(113 << 23);
        let more = if size >= 0x7c00 << 13 { 224 << 23 } else { 112 << 23 };
        let size = if size < 0x400 << 13 { tiny.to_bits() } else { size + more };
        f32::from_bits(size | (bits & 0x8000) << 16)
    };
}

macro_rules! folds {
    ($($name:ident<$t:ident> { $init:expr, |$acc:pat_param, $x:pat_param, $c:pat_param| $step:expr, |$a:pat_param, $b:pat_param| $join:expr })*) => {
        $(
            impl Fold<$t> for $name {
                #[inline(always)]
                fn init() -> $t { $init }
                #[inline(always)]
                fn step($acc: $t, $x: $t, $c: $t) -> $t { $step }
                #[inline(always)]
                fn join($a: $t, $b: $t) -> $t { $join }
            }
        )*
    };
}

struct Sum;
struct Prod;
struct Max;
struct Min;
struct Any;
struct All;
struct NanSum;
struct Present;
struct SumSquares;
struct SumAbs;
struct MaxAbs;
struct MinAbs;
struct SumSquaredFrom;
struct SumExpFrom;

/// The first where it is before or equal; NaN if either is. The bits of a second NaN are set, rather than
/// chosen: a choice that leaves a number of memory as it is becomes a branch around the store.
macro_rules! extreme {
    ($t:ident, $a:ident $before:tt $b:expr) => {{
        let b = $b;
        let y = if b $before $a { b } else { $a };
        let nan = if b.is_nan() { $t::NAN.to_bits() } else { 0 };
        $t::from_bits(y.to_bits() | nan)
    }};
}

macro_rules! float_folds {
    ($t:ident, $m:ident) => {
        folds! {
            Sum<$t> { 0.0, |a, x, _| a + x, |a, b| a + b }
            Prod<$t> { 1.0, |a, x, _| a * x, |a, b| a * b }
            Max<$t> { $t::NEG_INFINITY, |a, x, _| extreme!($t, a > x), |a, b| extreme!($t, a > b) }
            Min<$t> { $t::INFINITY, |a, x, _| extreme!($t, a < x), |a, b| extreme!($t, a < b) }
            Any<$t> { 0.0, |a, x, _| if x != 0.0 { 1.0 } else { a }, |a, b| a.max(b) }
            All<$t> { 1.0, |a, x, _| if x == 0.0 { 0.0 } else { a }, |a, b| a.min(b) }
            NanSum<$t> { 0.0, |a, x, _| a + if x.is_nan() { 0.0 } else { x }, |a, b| a + b }
            Present<$t> { 0.0, |a, x, _| a + if x.is_nan() { 0.0 } else { 1.0 }, |a, b| a + b }
            SumSquares<$t> { 0.0, |a, x, _| a + x * x, |a, b| a + b }
            SumAbs<$t> { 0.0, |a, x, _| a + x.abs(), |a, b| a + b }
            MaxAbs<$t> { 0.0, |a, x, _| extreme!($t, a > x.abs()), |a, b| extreme!($t, a > b) }
            MinAbs<$t> { $t::INFINITY, |a, x, _| extreme!($t, a < x.abs()), |a, b| extreme!($t, a < b) }
            SumSquaredFrom<$t> { 0.0, |a, x, c| a + (x - c) * (x - c), |a, b| a + b }
            SumExpFrom<$t> { 0.0, |a, x, c| a + $m::exp(x - c), |a, b| a + b }
        }
    };
}
float_folds!(f32, f32x);
float_folds!(f64, f64x);
folds! {
    Sum<i64> { 0, |a, x, _| a.wrapping_add(x), |a, b| a.wrapping_add(b) }
    Prod<i64> { 1, |a, x, _| a.wrapping_mul(x), |a, b| a.wrapping_mul(b) }
    Max<i64> { i64::MIN, |a, x, _| a.max(x), |a, b| a.max(b) }
    Min<i64> { i64::MAX, |a, x, _| a.min(x), |a, b| a.min(b) }
    Any<i64> { 0, |a, x, _| a | (x != 0) as i64, |a, b| a | b }
    All<i64> { 1, |a, x, _| a & (x != 0) as i64, |a, b| a & b }
    Present<i64> { 0, |a, _, _| a + 1, |a, b| a + b }
    SumSquares<i64> { 0, |a, x, _| a.wrapping_add(x.wrapping_mul(x)), |a, b| a.wrapping_add(b) }
    SumAbs<i64> { 0, |a, x, _| a.wrapping_add(x.wrapping_abs()), |a, b| a.wrapping_add(b) }
    MaxAbs<i64> { 0, |a, x, _| a.max(x.wrapping_abs()), |a, b| a.max(b) }
    MinAbs<i64> { i64::MAX, |a, x, _| a.min(x.wrapping_abs()), |a, b| a.min(b) }
    SumSquaredFrom<i64> {
        0,
        |a, x, c| a.wrapping_add(x.wrapping_sub(c).wrapping_mul(x.wrapping_sub(c))),
        |a, b| a.wrapping_add(b)
    }
}

/// Bytes of running results of columns that eight registers hold.
pub const HELD: usize = 512;
/// Running results of a row.
pub const LANES: usize = 64;

/// Sixty-four running results, then their tree: short dependency chains and small error.
#[inline(always)]
unsafe fn row<S: Widen<T>, T: Copy, F: Fold<T>>(x: *const u8, n: usize, c: T) -> T {
    // SAFETY: `x` has `n` elements of `S`; whole groups of lanes end at `n`.
    unsafe {
        let x = x.cast::<S>();
        if n < LANES {
            let mut acc = F::init();
            for i in 0..n {
                acc = F::step(acc, (*x.add(i)).widen(), c);
            }
            return acc;
        }
        let mut lanes = [F::init(); LANES];
        let mut i = 0;
        while i + LANES <= n {
            if S::IN_EIGHTS {
                for (g, lanes) in lanes.chunks_exact_mut(8).enumerate() {
                    let x = S::eight(x.add(i + 8 * g));
                    for (acc, x) in lanes.iter_mut().zip(x) {
                        *acc = F::step(*acc, x, c);
                    }
                }
            } else {
                for (l, acc) in lanes.iter_mut().enumerate() {
                    *acc = F::step(*acc, (*x.add(i + l)).widen(), c);
                }
            }
            i += LANES;
        }
        total::<S, T, F>(lanes, x.add(i), n - i, c)
    }
}

/// The tree over the running results and the last `n` elements, fewer than there are lanes.
#[inline(always)]
unsafe fn total<S: Widen<T>, T: Copy, F: Fold<T>>(
    mut lanes: [T; LANES],
    x: *const S,
    n: usize,
    c: T,
) -> T {
    // SAFETY: `x` has `n` elements of `S`, fewer than there are lanes.
    unsafe {
        for (l, acc) in lanes.iter_mut().enumerate().take(n) {
            *acc = F::step(*acc, (*x.add(l)).widen(), c);
        }
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                lanes[l] = F::join(lanes[l], lanes[l + half]);
            }
            half /= 2;
        }
        lanes[0]
    }
}

#[inline(always)]
unsafe fn columns<S: Widen<T>, T: Copy, F: Fold<T>>(
    acc: *mut T,
    x: *const u8,
    c: *const T,
    n: usize,
    rows: usize,
    step: isize,
) {
    // SAFETY: `acc`, a row of `x` (of `S`) and `c` have `n` elements, and `acc` overlaps neither.
    unsafe {
        for r in 0..rows {
            let x = x.offset(r as isize * step).cast::<S>();
            let mut done = 0;
            while S::IN_EIGHTS && done + 8 <= n {
                let at = acc.add(done).cast::<[T; 8]>();
                let (mut y, c) = (at.read(), c.add(done).cast::<[T; 8]>().read());
                for (j, x) in S::eight(x.add(done)).into_iter().enumerate() {
                    y[j] = F::step(y[j], x, c[j]);
                }
                at.write(y);
                done += 8;
            }
            for j in done..n {
                *acc.add(j) = F::step(*acc.add(j), (*x.add(j)).widen(), *c.add(j));
            }
        }
    }
}

#[inline(always)]
unsafe fn merge<T: Copy, F: Fold<T>>(acc: *mut T, x: *const T, n: usize) {
    // SAFETY: `acc` and `x` have `n` elements and do not overlap.
    unsafe {
        for j in 0..n {
            *acc.add(j) = F::join(*acc.add(j), *x.add(j));
        }
    }
}

per_isa! {
    fn best_row[S: Widen<T>, T: Copy, F: Fold<T>] -> unsafe fn(*const u8, usize, T) -> T
        = (x: *const u8, n: usize, c: T) -> T {
        // SAFETY: a kernel's caller has `n` elements of `S` at `x`.
        unsafe { row::<S, T, F>(x, n, c) }
    }
}
per_isa! {
    fn best_lines[S: Widen<T>, T: Compute, F: Fold<T>] -> Lines<T>, at most avx2
        = (x: *const u8, step: isize, n: usize, count: usize, out: *mut T) {
        // SAFETY: a kernel's caller has `count` rows of `n` elements of `S`, and room for as many results.
        unsafe {
            for r in 0..count {
                *out.add(r) = row::<S, T, F>(x.offset(r as isize * step), n, T::default());
            }
        }
    }
}
per_isa! {
    fn best_columns[S: Widen<T>, T: Copy, F: Fold<T>] -> Columns<T>
        = (acc: *mut T, x: *const u8, c: *const T, n: usize, rows: usize, step: isize) {
        // SAFETY: a kernel's caller has `n` elements at `acc`, in a row of `x` (of `S`) and at `c`;
        // `acc` overlaps neither.
        unsafe { columns::<S, T, F>(acc, x, c, n, rows, step) }
    }
}
per_isa! {
    fn best_merge[T: Copy, F: Fold<T>] -> unsafe fn(*mut T, *const T, usize)
        = (acc: *mut T, x: *const T, n: usize) {
        // SAFETY: a kernel's caller has `n` elements at `acc` and `x`, which do not overlap.
        unsafe { merge::<T, F>(acc, x, n) }
    }
}

fn kernels<S: Widen<T>, T: Compute, F: Fold<T>>() -> Kernels<T> {
    Kernels {
        init: F::init(),
        source: S::DTYPE,
        row: best_row::<S, T, F>(),
        columns: best_columns::<S, T, F>(),
        merge: best_merge::<T, F>(),
        lines: None,
        rows: None,
        group: None,
    }
}

/// [`kernels`], with one for groups of short rows.
fn with_group<S: Widen<T>, T: Compute, F: Fold<T>>() -> Kernels<T> {
    Kernels {
        group: Some(group::best::<S, T, F>()),
        ..kernels::<S, T, F>()
    }
}

/// [`with_group`], and one for rows of any length.
fn with_lines<S: Widen<T>, T: Compute, F: Fold<T>>() -> Kernels<T> {
    Kernels {
        lines: Some(best_lines::<S, T, F>()),
        ..with_group::<S, T, F>()
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
use streams::{with_float_rows, with_rows};
#[cfg(not(all(target_arch = "x86_64", not(debug_assertions))))]
use {with_lines as with_float_rows, with_lines as with_rows};

macro_rules! reducible_float {
    ($t:ident, $rows:ident, [$($half:ident $(if $able:ident)?),*]) => {
        impl Reducible for $t {
            fn kernels(kind: Kind, source: DType) -> Kernels<$t> {
                match (kind, source) {
                    $(
                        (Kind::Sum, $half::DTYPE) $(if $able())? => $rows::<$half, $t, Sum>(),
                        (Kind::Max, $half::DTYPE) $(if $able())? => $rows::<$half, $t, Max>(),
                        (Kind::Min, $half::DTYPE) $(if $able())? => $rows::<$half, $t, Min>(),
                        (Kind::SumSquares, $half::DTYPE) $(if $able())? => kernels::<$half, $t, SumSquares>(),
                        (Kind::SumSquaredFrom, $half::DTYPE) $(if $able())? => {
                            kernels::<$half, $t, SumSquaredFrom>()
                        }
                    )*
                    (Kind::Sum, _) => $rows::<$t, $t, Sum>(),
                    (Kind::Prod, _) => with_lines::<$t, $t, Prod>(),
                    (Kind::Max, _) => $rows::<$t, $t, Max>(),
                    (Kind::Min, _) => $rows::<$t, $t, Min>(),
                    (Kind::Any, _) => kernels::<$t, $t, Any>(),
                    (Kind::All, _) => kernels::<$t, $t, All>(),
                    (Kind::NanSum, _) => kernels::<$t, $t, NanSum>(),
                    (Kind::Present, _) => kernels::<$t, $t, Present>(),
                    (Kind::SumSquares, _) => kernels::<$t, $t, SumSquares>(),
                    (Kind::SumAbs, _) => kernels::<$t, $t, SumAbs>(),
                    (Kind::MaxAbs, _) => kernels::<$t, $t, MaxAbs>(),
                    (Kind::MinAbs, _) => kernels::<$t, $t, MinAbs>(),
                    (Kind::SumSquaredFrom, _) => kernels::<$t, $t, SumSquaredFrom>(),
                    (Kind::SumExpFrom, _) => kernels::<$t, $t, SumExpFrom>(),
                }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
        }
    };
}
reducible_float!(f32, with_float_rows, [NativeF16 if converts_f16, f16, bf16]);
reducible_float!(f64, with_rows, []);

impl Reducible for i64 {
    fn kernels(kind: Kind, source: DType) -> Kernels<i64> {
        match (kind, source) {
            (Kind::Max, DType::I32) => with_group::<i32, i64, Max>(),
            (Kind::Max, DType::I16) => kernels::<i16, i64, Max>(),
            (Kind::Max, DType::I8) => kernels::<i8, i64, Max>(),
            (Kind::Max, DType::U8) => kernels::<u8, i64, Max>(),
            (Kind::Min, DType::I32) => with_group::<i32, i64, Min>(),
            (Kind::Min, DType::I16) => kernels::<i16, i64, Min>(),
            (Kind::Min, DType::I8) => kernels::<i8, i64, Min>(),
            (Kind::Min, DType::U8) => kernels::<u8, i64, Min>(),
            (Kind::Sum, DType::I32) => kernels::<i32, i64, Sum>(),
            (Kind::Sum, DType::I16) => kernels::<i16, i64, Sum>(),
            (Kind::Sum, DType::I8) => kernels::<i8, i64, Sum>(),
            (Kind::Sum, DType::U8) => kernels::<u8, i64, Sum>(),
            (Kind::Sum, DType::Bool) => kernels::<Bool, i64, Sum>(),
            (Kind::Prod, _) => with_group::<i64, i64, Prod>(),
            (Kind::Max, _) => with_group::<i64, i64, Max>(),
            (Kind::Min, _) => with_group::<i64, i64, Min>(),
            (Kind::Any, _) => kernels::<i64, i64, Any>(),
            (Kind::All, _) => kernels::<i64, i64, All>(),
            (Kind::Present, _) => kernels::<i64, i64, Present>(),
            (Kind::SumAbs, _) => kernels::<i64, i64, SumAbs>(),
            (Kind::SumSquares, _) => kernels::<i64, i64, SumSquares>(),
            (Kind::MaxAbs, _) => kernels::<i64, i64, MaxAbs>(),
            (Kind::MinAbs, _) => kernels::<i64, i64, MinAbs>(),
            (Kind::SumSquaredFrom, _) => kernels::<i64, i64, SumSquaredFrom>(),
            (Kind::Sum | Kind::NanSum, _) => with_rows::<i64, i64, Sum>(),
            (Kind::SumExpFrom, _) => error::unwind(Error::runtime(
                "a sum of exponentials has no integer kernel: convert to a float type first",
            )),
        }
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{caught, Kind as ErrorKind};

    #[test]
    fn integers_have_the_reductions_of_their_name() {
        let x = [3i64, -4, 2];
        let total = |kind| {
            let k = <i64 as Reducible>::kernels(kind, DType::I64);
            // SAFETY: three elements of this type.
            unsafe { (k.row)(x.as_ptr().cast(), x.len(), 1) }
        };
        use Kind::*;
        let want = [
            (Sum, 1),
            (Prod, -24),
            (Max, 3),
            (Min, -4),
            (Any, 1),
            (All, 1),
            (NanSum, 1),
            (Present, 3),
            (SumSquares, 29),
            (SumAbs, 9),
            (MaxAbs, 4),
            (MinAbs, 2),
            (SumSquaredFrom, 30),
        ];
        for (kind, want) in want {
            assert_eq!(total(kind), want, "{kind:?}");
        }
        let refused = caught(|| Ok(total(SumExpFrom))).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Runtime);
    }
}
