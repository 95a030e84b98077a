//! Element types in memory, and the types that kernels compute in.

use crate::dtype::{DType, FLOAT8};
use crate::float8::{self, F8};
use half::{bf16, f16};

/// A bool in memory: zero or not.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct Bool(pub u8);

/// A type that tensors hold, with PyTorch's conversions.
pub trait Element: Copy + Send + Sync + 'static {
    const DTYPE: DType;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
    fn of_f32(v: f32) -> Self;
    fn of_f64(v: f64) -> Self;
    fn of_i64(v: i64) -> Self;
}

/// As x86's truncating conversion: out of range and NaN give the smallest value.
#[inline(always)]
fn i64_of(v: f64) -> i64 {
    let fits = (-9223372036854775808.0..9223372036854775808.0).contains(&v);
    let safe = if fits { v } else { 0.0 };
    // SAFETY: the number fits the type.
    let i = unsafe { safe.to_int_unchecked::<i64>() };
    if fits {
        i
    } else {
        i64::MIN
    }
}
#[inline(always)]
fn i32_of(v: f64) -> i32 {
    let fits = (v > -2147483649.0) & (v < 2147483648.0);
    let safe = if fits { v } else { i32::MIN as f64 };
    // SAFETY: the number fits the type.
    unsafe { safe.to_int_unchecked::<i32>() }
}
#[inline(always)]
fn i32_of_f32(v: f32) -> i32 {
    let fits = (v >= i32::MIN as f32) & (v < 2147483648.0);
    let safe = if fits { v } else { i32::MIN as f32 };
    // SAFETY: the number fits the type.
    unsafe { safe.to_int_unchecked::<i32>() }
}

/// As compilers for x86 convert to u64: negative numbers wrap.
#[inline(always)]
fn u64_of(v: f64) -> u64 {
    const TOP: f64 = 9223372036854775808.0;
    if v >= TOP {
        (i64_of(v - TOP) as u64) ^ 1 << 63
    } else {
        i64_of(v) as u64
    }
}

macro_rules! ints {
    ($($t:ty => $d:ident, $of_f32:expr, $via:ident;)*) => { $(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn of_f32(v: f32) -> Self { $of_f32(v) as $t }
            #[inline(always)]
            fn of_f64(v: f64) -> Self { $via(v) as $t }
            #[inline(always)]
            fn of_i64(v: i64) -> Self { v as $t }
        }
    )* };
}
ints! {
    u8 => U8, i32_of_f32, i32_of;
    i8 => I8, i32_of_f32, i32_of;
    i16 => I16, i32_of_f32, i32_of;
    i32 => I32, i32_of_f32, i32_of;
    i64 => I64, |v: f32| i64_of(v as f64), i64_of;
    u16 => U16, i32_of_f32, i32_of;
    u32 => U32, |v: f32| i64_of(v as f64), i64_of;
    u64 => U64, |v: f32| u64_of(v as f64), u64_of;
}

macro_rules! floats {
    ($($t:ty => $d:ident;)*) => { $(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { i64_of(self as f64) }
            #[inline(always)]
            fn of_f32(v: f32) -> Self { v as $t }
            #[inline(always)]
            fn of_f64(v: f64) -> Self { v as $t }
            #[inline(always)]
            fn of_i64(v: i64) -> Self { v as $t }
        }
    )* };
}
floats! { f32 => F32; f64 => F64; }

macro_rules! halves {
    ($($t:ty => $d:ident, $widen:expr, $narrow:expr;)*) => { $(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f32(self) -> f32 { $widen(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { $widen(self) as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { i64_of($widen(self) as f64) }
            #[inline(always)]
            fn of_f32(v: f32) -> Self { $narrow(v) }
            #[inline(always)]
            fn of_f64(v: f64) -> Self { $narrow(v as f32) }
            #[inline(always)]
            fn of_i64(v: i64) -> Self { $narrow(v as f32) }
        }
    )* };
}
halves! {
    f16 => F16, f16::to_f32, f16::from_f32;
    bf16 => BF16, widen_bf16, narrow_bf16;
}

/// A float16 that x86's instructions convert: for machines that have them, see [`converts_f16`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct NativeF16(pub u16);
/// Elsewhere it is like any other.
#[cfg(not(target_arch = "x86_64"))]
pub type NativeF16 = f16;

/// Whether this machine converts [`NativeF16`].
pub fn converts_f16() -> bool {
    cfg!(target_arch = "x86_64") && crate::machine::level() >= crate::isa::Level::Avx2
}

// In assembly: the compiler loads into a register whose old bits it keeps, so that each conversion
// would wait for the one before.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn widen_native(v: NativeF16) -> f32 {
    let wide: f32;
    // SAFETY: who makes such a number asked for the instructions, which touch registers alone.
    unsafe {
        std::arch::asm!(
            "vmovd {y}, {x:e}", "vcvtph2ps {y}, {y}",
            x = in(reg) v.0 as u32, y = out(xmm_reg) wide,
            options(pure, nomem, nostack, preserves_flags)
        )
    };
    wide
}
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn narrow_native(v: f32) -> NativeF16 {
    let narrow: u32;
    // SAFETY: who makes such a number asked for the instructions, which touch registers alone.
    unsafe {
        std::arch::asm!(
            "vcvtps2ph {t}, {x}, 0", "vmovd {y:e}, {t}",
            x = in(xmm_reg) v, t = out(xmm_reg) _, y = lateout(reg) narrow,
            options(pure, nomem, nostack, preserves_flags)
        )
    };
    NativeF16(narrow as u16)
}
#[cfg(target_arch = "x86_64")]
halves! { NativeF16 => F16, widen_native, narrow_native; }

/// A bfloat16 is the upper half of a float32.
#[inline(always)]
fn widen_bf16(v: bf16) -> f32 {
    f32::from_bits((v.to_bits() as u32) << 16)
}

/// To the nearest, ties to even, without branches. The instruction for this would flush
/// subnormal numbers to zero.
#[inline(always)]
fn narrow_bf16(v: f32) -> bf16 {
    let bits = v.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    bf16::from_bits(if v.is_nan() { quiet } else { rounded } as u16)
}

impl<const K: usize> Element for F8<K> {
    const DTYPE: DType = FLOAT8[K];
    #[inline(always)]
    fn to_f32(self) -> f32 {
        float8::decode(K, self.0)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64_of(self.to_f64())
    }
    #[inline(always)]
    fn of_f32(v: f32) -> Self {
        F8(float8::encode(K, v))
    }
    #[inline(always)]
    fn of_f64(v: f64) -> Self {
        Self::of_f32(v as f32)
    }
    #[inline(always)]
    fn of_i64(v: i64) -> Self {
        Self::of_f32(v as f32)
    }
}

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn to_f32(self) -> f32 {
        (self.0 != 0) as u8 as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        (self.0 != 0) as u8 as f64
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        (self.0 != 0) as i64
    }
    #[inline(always)]
    fn of_f32(v: f32) -> Self {
        Bool((v != 0.0) as u8)
    }
    #[inline(always)]
    fn of_f64(v: f64) -> Self {
        Bool((v != 0.0) as u8)
    }
    #[inline(always)]
    fn of_i64(v: i64) -> Self {
        Bool((v != 0) as u8)
    }
}

/// A type that kernels compute in: `f32` for itself and half types, `f64`, `i64` for integers
/// and bool, which kernels that need not see more also compute in as they are.
pub trait Compute: Element + PartialOrd + Default {
    fn from_element<S: Element>(v: S) -> Self;
    fn to_element<S: Element>(self) -> S;
    fn of_scalar(v: crate::dtype::Scalar) -> Self;
}
impl Compute for f32 {
    #[inline(always)]
    fn from_element<S: Element>(v: S) -> Self {
        v.to_f32()
    }
    #[inline(always)]
    fn to_element<S: Element>(self) -> S {
        S::of_f32(self)
    }
    fn of_scalar(v: crate::dtype::Scalar) -> Self {
        v.f64() as f32
    }
}
impl Compute for f64 {
    #[inline(always)]
    fn from_element<S: Element>(v: S) -> Self {
        v.to_f64()
    }
    #[inline(always)]
    fn to_element<S: Element>(self) -> S {
        S::of_f64(self)
    }
    fn of_scalar(v: crate::dtype::Scalar) -> Self {
        v.f64()
    }
}
impl Compute for i64 {
    #[inline(always)]
    fn from_element<S: Element>(v: S) -> Self {
        v.to_i64()
    }
    #[inline(always)]
    fn to_element<S: Element>(self) -> S {
        S::of_i64(self)
    }
    fn of_scalar(v: crate::dtype::Scalar) -> Self {
        v.i64()
    }
}

/// The narrow integers compute as `i64` does and keep the low bits.
macro_rules! narrow {
    ($($t:ty)*) => { $(
        impl Compute for $t {
            #[inline(always)]
            fn from_element<S: Element>(v: S) -> Self {
                Self::of_i64(v.to_i64())
            }
            #[inline(always)]
            fn to_element<S: Element>(self) -> S {
                S::of_i64(self.to_i64())
            }
            fn of_scalar(v: crate::dtype::Scalar) -> Self {
                Self::of_i64(v.i64())
            }
        }
    )* };
}
narrow! { i32 i16 i8 u8 Bool }

/// Runs the body with `$T` bound to the type that stands beside a dtype.
#[macro_export]
macro_rules! typed {
    ($dtype:expr, $T:ident => $body:expr, [$($($D:ident)|+ => $t:ty),*], $rest:pat => $other:expr) => {
        match $dtype {
            $($($crate::dtype::DType::$D)|+ => {
                type $T = $t;
                $body
            })*
            $rest => $other,
        }
    };
}

/// Runs the body with `$T` bound to the Rust type of a dtype. Complex and rare types give an error.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::typed!(
            $dtype,
            $T => $body,
            [
                Bool => $crate::elements::Bool, U8 => u8, I8 => i8, I16 => i16, I32 => i32,
                I64 => i64, F16 => half::f16, BF16 => half::bf16, F32 => f32, F64 => f64
            ],
            other => $crate::no_loop!(other)
        )
    };
}

/// Runs the body with `$T` bound to the type that kernels compute this dtype in.
#[macro_export]
macro_rules! with_compute {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::typed!(
            $dtype.compute(),
            $T => $body,
            [F32 => f32, F64 => f64, I64 => i64],
            _ => $crate::no_loop!($dtype)
        )
    };
}

/// Runs the body with `$T` bound to `f32` or `f64`; other dtypes raise PyTorch's error for `$op`.
#[macro_export]
macro_rules! with_float {
    ($dtype:expr, $op:expr, $T:ident => $body:expr) => {
        $crate::typed!(
            $dtype,
            $T => $body,
            [F16 | BF16 | F32 => f32, F64 => f64],
            other => $crate::bail!(
                NoKernel,
                "\"{}\" not implemented for '{}'",
                $op,
                other.scalar_name()
            )
        )
    };
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn machines_convert_float16_as_software_does() {
        if !converts_f16() {
            return;
        }
        for bits in 0..=u16::MAX {
            let (x, y) = (f16::from_bits(bits), NativeF16(bits));
            let wide = (x.to_f32(), y.to_f32());
            assert!(
                wide.0 == wide.1 || wide.0.is_nan() && wide.1.is_nan(),
                "{bits:x}"
            );
            // Between this number and the next, and beyond the last.
            for v in [wide.0 * 1.000_2, wide.0 * 1.000_6, wide.0 * 2.0] {
                let (x, y) = (f16::from_f32(v), NativeF16::of_f32(v).0);
                assert!(
                    x.to_bits() == y || x.is_nan() && f16::from_bits(y).is_nan(),
                    "{v}"
                );
            }
        }
    }
}
