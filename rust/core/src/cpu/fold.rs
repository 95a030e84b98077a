//! Kernels that combine elements: rows into one value, rows into columns, partial results.

use super::elements::Compute;
use super::math::{f32x, f64x};
use super::{level, Level};

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
    SumSquares,
    SumAbs,
    MaxAbs,
    MinAbs,
    /// The sum of (x - c)^2.
    SumSquaredFrom,
    /// The sum of e^(x - c).
    SumExpFrom,
}

/// Kernels of one kind.
#[derive(Clone, Copy)]
pub struct Kernels<T> {
    pub init: T,
    /// Combines `n` elements.
    pub row: unsafe fn(x: *const T, n: usize, c: T) -> T,
    /// Combines element `j` into `acc[j]`.
    pub columns: unsafe fn(acc: *mut T, x: *const T, c: *const T, n: usize),
    /// Combines partial results.
    pub merge: unsafe fn(acc: *mut T, x: *const T, n: usize),
}

trait Fold<T> {
    fn init() -> T;
    fn step(acc: T, x: T, c: T) -> T;
    fn join(a: T, b: T) -> T;
}

/// A type that reductions compute in.
pub trait Reducible: Compute {
    fn kernels(kind: Kind) -> Kernels<Self>;
    fn is_nan(self) -> bool;
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
struct SumSquares;
struct SumAbs;
struct MaxAbs;
struct MinAbs;
struct SumSquaredFrom;
struct SumExpFrom;

/// The larger; NaN if either is. One comparison decides, which vectorises.
macro_rules! larger {
    ($a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        if (b > a) | (b != b) {
            b
        } else {
            a
        }
    }};
}
macro_rules! smaller {
    ($a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        if (b < a) | (b != b) {
            b
        } else {
            a
        }
    }};
}

macro_rules! float_folds {
    ($t:ident, $m:ident) => {
        folds! {
            Sum<$t> { 0.0, |a, x, _| a + x, |a, b| a + b }
            Prod<$t> { 1.0, |a, x, _| a * x, |a, b| a * b }
            Max<$t> { $t::NEG_INFINITY, |a, x, _| larger!(a, x), |a, b| larger!(a, b) }
            Min<$t> { $t::INFINITY, |a, x, _| smaller!(a, x), |a, b| smaller!(a, b) }
            Any<$t> { 0.0, |a, x, _| if x != 0.0 { 1.0 } else { a }, |a, b| a.max(b) }
            All<$t> { 1.0, |a, x, _| if x == 0.0 { 0.0 } else { a }, |a, b| a.min(b) }
            NanSum<$t> { 0.0, |a, x, _| if x.is_nan() { a } else { a + x }, |a, b| a + b }
            SumSquares<$t> { 0.0, |a, x, _| a + x * x, |a, b| a + b }
            SumAbs<$t> { 0.0, |a, x, _| a + x.abs(), |a, b| a + b }
            MaxAbs<$t> { 0.0, |a, x, _| larger!(a, x.abs()), |a, b| larger!(a, b) }
            MinAbs<$t> { $t::INFINITY, |a, x, _| smaller!(a, x.abs()), |a, b| smaller!(a, b) }
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
    SumAbs<i64> { 0, |a, x, _| a.wrapping_add(x.wrapping_abs()), |a, b| a.wrapping_add(b) }
}

/// Thirty-two running results, then their tree: short dependency chains and small error.
// SAFETY: `x` has `n` elements.
#[inline(always)]
unsafe fn row<T: Copy, F: Fold<T>>(x: *const T, n: usize, c: T) -> T {
    const LANES: usize = 32;
    if n < LANES {
        let mut acc = F::init();
        for i in 0..n {
            acc = F::step(acc, *x.add(i), c);
        }
        return acc;
    }
    let mut lanes = [F::init(); LANES];
    let mut i = 0;
    while i + LANES <= n {
        for (l, acc) in lanes.iter_mut().enumerate() {
            *acc = F::step(*acc, *x.add(i + l), c);
        }
        i += LANES;
    }
    for (l, acc) in lanes.iter_mut().enumerate().take(n - i) {
        *acc = F::step(*acc, *x.add(i + l), c);
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

// SAFETY: `acc`, `x` and `c` have `n` elements, and `acc` overlaps neither.
#[inline(always)]
unsafe fn columns<T: Copy, F: Fold<T>>(acc: *mut T, x: *const T, c: *const T, n: usize) {
    for j in 0..n {
        *acc.add(j) = F::step(*acc.add(j), *x.add(j), *c.add(j));
    }
}

// SAFETY: `acc` and `x` have `n` elements and do not overlap.
#[inline(always)]
unsafe fn merge<T: Copy, F: Fold<T>>(acc: *mut T, x: *const T, n: usize) {
    for j in 0..n {
        *acc.add(j) = F::join(*acc.add(j), *x.add(j));
    }
}

mod portable {
    use super::*;
    // SAFETY: `x` has `n` elements.
    pub unsafe fn row<T: Copy, F: Fold<T>>(x: *const T, n: usize, c: T) -> T {
        super::row::<T, F>(x, n, c)
    }
    // SAFETY: `acc`, `x` and `c` have `n` elements, and `acc` overlaps neither.
    pub unsafe fn columns<T: Copy, F: Fold<T>>(a: *mut T, x: *const T, c: *const T, n: usize) {
        super::columns::<T, F>(a, x, c, n)
    }
    // SAFETY: `acc` and `x` have `n` elements and do not overlap.
    pub unsafe fn merge<T: Copy, F: Fold<T>>(a: *mut T, x: *const T, n: usize) {
        super::merge::<T, F>(a, x, n)
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::*;
    // SAFETY: `x` has `n` elements.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn row<T: Copy, F: Fold<T>>(x: *const T, n: usize, c: T) -> T {
        super::row::<T, F>(x, n, c)
    }
    // SAFETY: `acc`, `x` and `c` have `n` elements, and `acc` overlaps neither.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn columns<T: Copy, F: Fold<T>>(a: *mut T, x: *const T, c: *const T, n: usize) {
        super::columns::<T, F>(a, x, c, n)
    }
    // SAFETY: `acc` and `x` have `n` elements and do not overlap.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn merge<T: Copy, F: Fold<T>>(a: *mut T, x: *const T, n: usize) {
        super::merge::<T, F>(a, x, n)
    }
}

fn kernels<T: Copy, F: Fold<T>>() -> Kernels<T> {
    let init = F::init();
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        return Kernels {
            init,
            row: avx2::row::<T, F>,
            columns: avx2::columns::<T, F>,
            merge: avx2::merge::<T, F>,
        };
    }
    Kernels {
        init,
        row: portable::row::<T, F>,
        columns: portable::columns::<T, F>,
        merge: portable::merge::<T, F>,
    }
}

macro_rules! reducible_float {
    ($t:ident) => {
        impl Reducible for $t {
            fn kernels(kind: Kind) -> Kernels<$t> {
                match kind {
                    Kind::Sum => kernels::<$t, Sum>(),
                    Kind::Prod => kernels::<$t, Prod>(),
                    Kind::Max => kernels::<$t, Max>(),
                    Kind::Min => kernels::<$t, Min>(),
                    Kind::Any => kernels::<$t, Any>(),
                    Kind::All => kernels::<$t, All>(),
                    Kind::NanSum => kernels::<$t, NanSum>(),
                    Kind::SumSquares => kernels::<$t, SumSquares>(),
                    Kind::SumAbs => kernels::<$t, SumAbs>(),
                    Kind::MaxAbs => kernels::<$t, MaxAbs>(),
                    Kind::MinAbs => kernels::<$t, MinAbs>(),
                    Kind::SumSquaredFrom => kernels::<$t, SumSquaredFrom>(),
                    Kind::SumExpFrom => kernels::<$t, SumExpFrom>(),
                }
            }
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
        }
    };
}
reducible_float!(f32);
reducible_float!(f64);

impl Reducible for i64 {
    /// The kinds that make sense for floats only sum instead; callers convert before.
    fn kernels(kind: Kind) -> Kernels<i64> {
        match kind {
            Kind::Prod => kernels::<i64, Prod>(),
            Kind::Max => kernels::<i64, Max>(),
            Kind::Min => kernels::<i64, Min>(),
            Kind::Any => kernels::<i64, Any>(),
            Kind::All => kernels::<i64, All>(),
            Kind::SumAbs => kernels::<i64, SumAbs>(),
            _ => kernels::<i64, Sum>(),
        }
    }
    fn is_nan(self) -> bool {
        false
    }
}
