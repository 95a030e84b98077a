//! Elements in memory and the types that kernels compute in.

use crate::dtype::DType;
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
    if (-9223372036854775808.0..9223372036854775808.0).contains(&v) {
        v as i64
    } else {
        i64::MIN
    }
}
#[inline(always)]
fn i32_of(v: f64) -> i32 {
    if v > -2147483649.0 && v < 2147483648.0 {
        v as i32
    } else {
        i32::MIN
    }
}

macro_rules! ints {
    ($($t:ty => $d:ident, $via:ident;)*) => { $(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn of_f32(v: f32) -> Self { $via(v as f64) as $t }
            #[inline(always)]
            fn of_f64(v: f64) -> Self { $via(v) as $t }
            #[inline(always)]
            fn of_i64(v: i64) -> Self { v as $t }
        }
    )* };
}
ints! {
    u8 => U8, i32_of;
    i8 => I8, i32_of;
    i16 => I16, i32_of;
    i32 => I32, i32_of;
    i64 => I64, i64_of;
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
    ($($t:ty => $d:ident;)*) => { $(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f32(self) -> f32 { <$t>::to_f32(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { <$t>::to_f64(self) }
            #[inline(always)]
            fn to_i64(self) -> i64 { i64_of(<$t>::to_f64(self)) }
            #[inline(always)]
            fn of_f32(v: f32) -> Self { <$t>::from_f32(v) }
            #[inline(always)]
            fn of_f64(v: f64) -> Self { <$t>::from_f32(v as f32) }
            #[inline(always)]
            fn of_i64(v: i64) -> Self { <$t>::from_f32(v as f32) }
        }
    )* };
}
halves! { f16 => F16; bf16 => BF16; }

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
/// and bool.
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

/// Runs the body with `$T` bound to the Rust type of a dtype. Complex types give an error.
#[macro_export]
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::dtype::DType as D;
        match $dtype {
            D::Bool => {
                type $T = $crate::cpu::elements::Bool;
                $body
            }
            D::U8 => {
                type $T = u8;
                $body
            }
            D::I8 => {
                type $T = i8;
                $body
            }
            D::I16 => {
                type $T = i16;
                $body
            }
            D::I32 => {
                type $T = i32;
                $body
            }
            D::I64 => {
                type $T = i64;
                $body
            }
            D::F16 => {
                type $T = half::f16;
                $body
            }
            D::BF16 => {
                type $T = half::bf16;
                $body
            }
            D::F32 => {
                type $T = f32;
                $body
            }
            D::F64 => {
                type $T = f64;
                $body
            }
            D::C64 | D::C128 => $crate::bail!(
                NotImplemented,
                "complex tensors are not supported yet, got {}",
                $dtype
            ),
        }
    }};
}

/// Runs the body with `$T` bound to the type that kernels compute this dtype in.
#[macro_export]
macro_rules! with_compute {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::dtype::DType as D;
        match $dtype.compute() {
            D::F32 => {
                type $T = f32;
                $body
            }
            D::F64 => {
                type $T = f64;
                $body
            }
            D::I64 => {
                type $T = i64;
                $body
            }
            _ => $crate::bail!(
                NotImplemented,
                "complex tensors are not supported yet, got {}",
                $dtype
            ),
        }
    }};
}

/// Runs the body with `$T` bound to `f32` or `f64`; other dtypes raise PyTorch's error for `$op`.
#[macro_export]
macro_rules! with_float {
    ($dtype:expr, $op:expr, $T:ident => $body:expr) => {{
        use $crate::dtype::DType as D;
        match $dtype {
            D::F16 | D::BF16 | D::F32 => {
                type $T = f32;
                $body
            }
            D::F64 => {
                type $T = f64;
                $body
            }
            other => $crate::bail!(
                NotImplemented,
                "\"{}\" not implemented for '{}'",
                $op,
                other.scalar_name()
            ),
        }
    }};
}

/// Reads `n` elements `step` bytes apart.
///
/// # Safety
/// The source holds such elements, `dst` has room for `n`.
pub unsafe fn load<T: Compute>(dtype: DType, src: *const u8, step: isize, n: usize, dst: *mut T) {
    unsafe fn typed<S: Element, T: Compute>(src: *const u8, step: isize, n: usize, dst: *mut T) {
        if step == std::mem::size_of::<S>() as isize {
            let src = src.cast::<S>();
            for i in 0..n {
                *dst.add(i) = T::from_element(*src.add(i));
            }
        } else if step == 0 {
            let v = T::from_element(*src.cast::<S>());
            for i in 0..n {
                *dst.add(i) = v;
            }
        } else {
            for i in 0..n {
                *dst.add(i) = T::from_element(*src.offset(i as isize * step).cast::<S>());
            }
        }
    }
    match dtype {
        DType::Bool => typed::<Bool, T>(src, step, n, dst),
        DType::U8 => typed::<u8, T>(src, step, n, dst),
        DType::I8 => typed::<i8, T>(src, step, n, dst),
        DType::I16 => typed::<i16, T>(src, step, n, dst),
        DType::I32 => typed::<i32, T>(src, step, n, dst),
        DType::I64 => typed::<i64, T>(src, step, n, dst),
        DType::F16 => typed::<f16, T>(src, step, n, dst),
        DType::BF16 => typed::<bf16, T>(src, step, n, dst),
        DType::F32 => typed::<f32, T>(src, step, n, dst),
        DType::F64 => typed::<f64, T>(src, step, n, dst),
        DType::C64 | DType::C128 => unreachable!("complex is refused before kernels run"),
    }
}

/// Writes `n` elements `step` bytes apart.
///
/// # Safety
/// The destination holds such elements, `src` has `n`.
pub unsafe fn store<T: Compute>(dtype: DType, dst: *mut u8, step: isize, n: usize, src: *const T) {
    unsafe fn typed<S: Element, T: Compute>(dst: *mut u8, step: isize, n: usize, src: *const T) {
        if step == std::mem::size_of::<S>() as isize {
            let dst = dst.cast::<S>();
            for i in 0..n {
                *dst.add(i) = (*src.add(i)).to_element();
            }
        } else {
            for i in 0..n {
                *dst.offset(i as isize * step).cast::<S>() = (*src.add(i)).to_element();
            }
        }
    }
    match dtype {
        DType::Bool => typed::<Bool, T>(dst, step, n, src),
        DType::U8 => typed::<u8, T>(dst, step, n, src),
        DType::I8 => typed::<i8, T>(dst, step, n, src),
        DType::I16 => typed::<i16, T>(dst, step, n, src),
        DType::I32 => typed::<i32, T>(dst, step, n, src),
        DType::I64 => typed::<i64, T>(dst, step, n, src),
        DType::F16 => typed::<f16, T>(dst, step, n, src),
        DType::BF16 => typed::<bf16, T>(dst, step, n, src),
        DType::F32 => typed::<f32, T>(dst, step, n, src),
        DType::F64 => typed::<f64, T>(dst, step, n, src),
        DType::C64 | DType::C128 => unreachable!("complex is refused before kernels run"),
    }
}
