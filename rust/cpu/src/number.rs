//! The numbers that kernels compute with.

use crate::elements::Compute;
use crate::gemm::{Acc, GemmElem};
use crate::simd::Lane;

/// float32, float64, or int64, whose arithmetic wraps: as elements, in products and in vectors.
pub trait Number: Compute + Lane + GemmElem<Acc = Self> + Acc {
    /// What long sums are kept in.
    type Wide: Number;
    /// Less than any other.
    const LEAST: Self;
    fn is_finite(self) -> bool;
    /// self / d; 0 for integers divided by 0.
    fn over(self, d: Self) -> Self;
    /// self + a * b.
    #[inline(always)]
    fn plus_product(self, a: Self, b: Self) -> Self {
        self.plus(a.times(b))
    }
    #[inline(always)]
    fn wide(self) -> Self::Wide {
        Self::Wide::from_element(self)
    }
    #[inline(always)]
    fn narrow_from(v: Self::Wide) -> Self {
        v.to_element()
    }
}

macro_rules! floats {
    ($($t:ident)*) => { $(
        impl Number for $t {
            type Wide = f64;
            const LEAST: $t = $t::NEG_INFINITY;
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            #[inline(always)]
            fn over(self, d: $t) -> $t {
                self / d
            }
        }
    )* };
}
floats! { f32 f64 }

impl Number for i64 {
    type Wide = i64;
    const LEAST: i64 = i64::MIN;
    #[inline(always)]
    fn is_finite(self) -> bool {
        true
    }
    #[inline(always)]
    fn over(self, d: i64) -> i64 {
        self.checked_div(d).unwrap_or(0)
    }
}
