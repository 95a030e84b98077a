//! What a pointwise op declares, and the macro that declares it.

use super::cpu::complex::Parts;
use super::{Complex, Half, Integer, Polynomial, Real, Special, Special2};
use crate::cpu::pointwise::Kernel;
use crate::dtype::{DType, Scalar};
use crate::error::{self, Error, Kind, Result};
use crate::meta::Meta;
use crate::op::{Mask, Repeats, Value as OpValue};
use crate::tensor::Tensor;
use std::hash::Hash;

/// How the types of inputs and result are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// The promoted type of the inputs.
    Same,
    /// As `Same`; integers and bool raise.
    FloatOnly,
    /// As `Same`; integers and bool become the default floating type.
    Float,
    /// Computed in the promoted type; the result is bool.
    Bool,
    /// As `Same`; floating types raise.
    IntOnly,
}

/// A pointwise op of `N` inputs.
pub trait Pointwise<const N: usize>: OpValue + Clone + Eq + Hash {
    const NODE: &'static str;
    const TYPES: Types;
    /// Whether `int` is written; without it integers raise.
    const INT: bool;
    /// Whether integers divide by the second input, so that zeros there raise.
    const DIVIDES: bool = false;
    /// Whether `int` is a loop of its own.
    const ITERATES: bool = false;
    /// Inputs without a derivative: asking for their gradient raises.
    const OPAQUE: Mask = 0;
    /// Whether the result never needs a gradient.
    const DETACHED: bool = false;
    /// Whether loops use the vector code of functions that does not reach every argument; without
    /// it such functions (`sin`, `cos`, `tan`) are exact everywhere and scalar.
    const GUARDED: bool = false;
    /// Up to this absolute value, where it is not 0, [`close`](Pointwise::close) computes what a guarded op of one
    /// input does.
    const CLOSE: f64 = 0.0;
    /// Whether `half` is written.
    const HALF: bool = false;
    /// Whether there are loops for a second input that is a number.
    const NUMBERS: bool = false;
    /// Whether `int` on the bits of wide unsigned integers gives theirs, or they keep their order.
    const UNSIGNED: bool = false;
    /// Whether it takes the floating types of 8 bits.
    const FLOAT8: bool = false;
    /// Inputs whose numbers keep the digits that a half type lacks, as factors and addends do.
    const EXACT: Mask = 0;
    /// Whether `out=` may have another type; ops that leave a number's type alone take its own only.
    const CASTS: bool = N != 1 || matches!(Self::TYPES, Types::Float | Types::Bool);
    /// Whether it may write to elements that share memory.
    const REPEATS: Repeats = Repeats::Refused;
    /// What the op means for complex numbers.
    const COMPLEX: Complex = Complex::No;
    fn f<R: Real>(&self, x: [R; N]) -> R;
    /// The formula of inputs of which none is beyond [`CLOSE`](Pointwise::CLOSE).
    #[inline(always)]
    fn close<R: Real>(&self, x: [R; N]) -> R {
        self.f(x)
    }
    /// Whether the gradient steps with what it reads: under `create_graph` it depends on that, with
    /// a slope of nothing.
    fn steps(&self) -> bool {
        false
    }
    /// The op as exact as float16 and bfloat16 ask for, where that is cheaper.
    #[inline(always)]
    fn half(&self, x: [f32; N]) -> f32 {
        self.f(x)
    }
    /// The same of many numbers at once, where the compiler makes no whole vectors of one after
    /// another.
    #[inline(always)]
    fn halves<const W: usize>(&self, x: [[f32; W]; N]) -> [f32; W] {
        let mut y = [0.0; W];
        for j in 0..W {
            let mut a = [x[0][j]; N];
            let mut k = 1;
            while k < N {
                a[k] = x[k][j];
                k += 1;
            }
            y[j] = self.half(a);
        }
        y
    }
    /// The op on integers and bool, with wrapping arithmetic.
    fn int(&self, _x: [i64; N]) -> i64 {
        error::unwind(Error::new(
            Kind::NotImplemented,
            format!(
                "{} is not implemented for integers",
                std::any::type_name::<Self>()
            ),
        ))
    }
    /// The same in the type of narrow integers, where that is another computation.
    #[inline(always)]
    fn narrow<I: Integer>(&self, x: [I; N]) -> I {
        let mut wide = [0; N];
        for (wide, x) in wide.iter_mut().zip(x) {
            *wide = x.to_i64();
        }
        I::of_i64(self.int(wide))
    }
    /// The op that divides on integers of up to 50 bits, and no zero as their divisor: quotients of
    /// such numbers do not round to an integer that they do not reach.
    #[inline(always)]
    fn divided(&self, x: [f64; N]) -> f64 {
        self.f(x)
    }
    /// A loop written by hand for this machine.
    fn own(_which: Own) -> Option<Kernel<f32>> {
        None
    }
    /// The same over float64.
    fn own64(_which: Own) -> Option<Kernel<f64>> {
        None
    }
    /// The same over the bits of float16 or bfloat16.
    fn own_bits(&self, _dtype: DType) -> Option<Kernel<u16>> {
        None
    }
    /// A loop over complex numbers in the precision of their parts.
    fn own_parts(&self, _dtype: DType) -> Option<Parts> {
        None
    }
    /// Gradients of the inputs for gradient `g` of the output `y`.
    fn df<R: Real>(&self, x: [R; N], y: R, g: R) -> [R; N];
    /// The same op with numbers of one kind, which loops need not tell apart again and again.
    fn settled(&self, integers: bool) -> Self;
    /// Refuses inputs that the op does not take; `dtype` is their promoted type.
    fn check<M: AsRef<Meta>>(&self, _dtype: DType, _x: &[M]) -> Result<()> {
        Ok(())
    }
    /// The op on integers as shader text over `t0`, `t1`, ... where `f` does not say it.
    fn wgsl(&self) -> Option<&'static str> {
        None
    }
    /// See [`Derivative::overwritten`].
    fn overwritten(&self) -> Result<()> {
        Ok(())
    }
    /// The gradient of input `i` where it needs no kernel (`add` hands it on).
    fn direct(&self, _i: usize, _g: &Tensor) -> Option<Result<Tensor>> {
        None
    }
}

/// What a loop of an op of one input computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    Forward,
    /// As [`Pointwise::half`].
    Half,
    Gradient,
}

/// Declares pointwise ops. After the types: the formula, optionally the same on integers and on
/// narrow ones, and one gradient per input; what it reads is what backward will keep.
macro_rules! pointwise {
    ($(
        $(#[doc = $doc:literal])*
        op $name:ident $({ $($field:ident: $ty:ty),* })? [$n:literal] = $node:literal, $types:ident;
        f |$p:pat_param, $x:pat_param| $f:expr;
        $(int |$ip:pat_param, $ix:pat_param| $int:expr;)?
        $(narrow |$np:pat_param, $nx:pat_param| $narrow:expr;)?
        df |$dp:pat_param, $dx:pat_param, $dy:pat_param, $g:pat_param| $($d:expr),*;
        $(check |$cp:pat_param, $cd:pat_param, $cx:pat_param| $check:expr;)?
        $(divides |$zp:pat_param, $zx:pat_param| $divides:expr;)?
        $(iterates $iterates:literal;)?
        $(opaque $opaque:literal;)?
        $(overwritten |$op:pat_param| $overwritten:expr;)?
        $(detached $detached:literal;)?
        $(guarded $guarded:literal;)?
        $(close $close:path, |$lp:pat_param, $lx:pat_param| $lf:expr;)?
        $(steps |$sp:pat_param| $steps:expr;)?
        $(half |$hp:pat_param, $hx:pat_param| $half:expr;)?
        $(own $own:path;)?
        $(own64 $own64:path;)?
        $(halves |$vp:pat_param, $vx:pat_param| $halves:expr;)?
        $(bits |$bp:pat_param, $bt:pat_param| $bits:expr;)?
        $(numbers $numbers:literal;)?
        $(complex $complex:ident;)?
        $(parts |$kp:pat_param, $kt:pat_param| $parts:expr;)?
        $(unsigned $unsigned:literal;)?
        $(float8 $float8:literal;)?
        $(exact $exact:literal;)?
        $(casts $casts:literal;)?
        $(repeats $repeats:ident;)?
        $(wgsl |$wp:pat_param| $wgsl:expr;)?
        $(direct |$qp:pat_param, $qi:pat_param, $qg:pat_param| $direct:expr;)?
    )*) => { $(
        $crate::ops::pointwise::pointwise!(@struct [$(#[doc = $doc])*] $name $({ $($field: $ty),* })?);
        impl $crate::ops::pointwise::Pointwise<$n> for $name {
            const NODE: &'static str = $node;
            const TYPES: $crate::ops::pointwise::Types = $crate::ops::pointwise::Types::$types;
            const INT: bool = false $(|| { let _ = stringify!($int); true })?;
            const DIVIDES: bool = false $(|| { let _ = stringify!($divides); true })?;
            $(const ITERATES: bool = $iterates;)?
            $(const OPAQUE: $crate::op::Mask = $opaque;)?
            $(const DETACHED: bool = $detached;)?
            $(const GUARDED: bool = $guarded;)?
            $(const CLOSE: f64 = $close;)?
            const HALF: bool = false $(|| { let _ = stringify!($half); true })?;
            $(const NUMBERS: bool = $numbers;)?
            $(const UNSIGNED: bool = $unsigned;)?
            $(const FLOAT8: bool = $float8;)?
            $(const EXACT: $crate::op::Mask = $exact;)?
            $(const CASTS: bool = $casts;)?
            $(const REPEATS: $crate::op::Repeats = $crate::op::Repeats::$repeats;)?
            $(const COMPLEX: $crate::ops::pointwise::Complex =
                $crate::ops::pointwise::Complex::$complex;)?
            #[inline(always)]
            fn f<R: $crate::ops::pointwise::Real>(&self, $x: [R; $n]) -> R {
                let $p = self;
                $f
            }
            $(#[inline(always)]
            fn close<R: $crate::ops::pointwise::Real>(&self, $lx: [R; $n]) -> R {
                let $lp = self;
                $lf
            })?
            $(fn steps(&self) -> bool {
                let $sp = self;
                $steps
            })?
            $(#[inline(always)]
            fn half(&self, $hx: [f32; $n]) -> f32 {
                let $hp = self;
                $half
            })?
            $(#[inline(always)]
            fn own(
                which: $crate::ops::pointwise::Own,
            ) -> Option<$crate::cpu::pointwise::Kernel<f32>> {
                $own(which)
            })?
            $(#[inline(always)]
            fn own64(
                which: $crate::ops::pointwise::Own,
            ) -> Option<$crate::cpu::pointwise::Kernel<f64>> {
                $own64(which)
            })?
            $(#[inline(always)]
            fn halves<const W: usize>(&self, $vx: [[f32; W]; $n]) -> [f32; W] {
                let $vp = self;
                $halves
            })?
            $(fn own_bits(
                &self,
                $bt: $crate::dtype::DType,
            ) -> Option<$crate::cpu::pointwise::Kernel<u16>> {
                let $bp = self;
                $bits
            })?
            $(fn own_parts(
                &self,
                $kt: $crate::dtype::DType,
            ) -> Option<$crate::ops::pointwise::cpu::complex::Parts> {
                let $kp = self;
                $parts
            })?
            $(#[inline(always)]
            fn int(&self, $ix: [i64; $n]) -> i64 {
                let $ip = self;
                $int
            })?
            $(#[inline(always)]
            fn divided(&self, $zx: [f64; $n]) -> f64 {
                let $zp = self;
                $divides
            })?
            $(#[inline(always)]
            fn narrow<I: $crate::ops::pointwise::Integer>(&self, $nx: [I; $n]) -> I {
                let $np = self;
                $narrow
            })?
            #[inline(always)]
            fn df<R: $crate::ops::pointwise::Real>(&self, $dx: [R; $n], $dy: R, $g: R) -> [R; $n] {
                let $dp = self;
                [$($d),*]
            }
            #[inline(always)]
            fn settled(&self, integers: bool) -> Self {
                let _ = integers;
                $crate::ops::pointwise::pointwise!(@settled self integers $({ $($field),* })?)
            }
            $(fn check<M: AsRef<$crate::meta::Meta>>(
                &self,
                $cd: $crate::dtype::DType,
                $cx: &[M],
            ) -> $crate::error::Result<()> {
                let $cp = self;
                $check
            })?
            $(fn wgsl(&self) -> Option<&'static str> {
                let $wp = self;
                Some($wgsl)
            })?
            $(fn overwritten(&self) -> $crate::error::Result<()> {
                let $op = self;
                $overwritten
            })?
            $(fn direct(
                &self,
                $qi: usize,
                $qg: &$crate::tensor::Tensor,
            ) -> Option<$crate::error::Result<$crate::tensor::Tensor>> {
                let $qp = self;
                $direct
            })?
        }
    )* };
    (@settled $self:ident $integers:ident) => { $self.clone() };
    (@settled $self:ident $integers:ident { $($field:ident),* }) => {
        Self { $($field: $crate::ops::pointwise::Parameter::settled(&$self.$field, $integers)),* }
    };
    (@struct [$($doc:tt)*] $name:ident) => {
        $($doc)*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name;
    };
    (@struct [$($doc:tt)*] $name:ident { $($field:ident: $ty:ty),* }) => {
        $($doc)*
        #[derive(Clone, Debug)]
        pub struct $name { $(pub $field: $ty),* }
        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                use $crate::ops::pointwise::Parameter;
                ($(self.$field.value(),)*) == ($(other.$field.value(),)*)
            }
        }
        impl std::cmp::Eq for $name {}
        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                use $crate::ops::pointwise::Parameter;
                ($(self.$field.value(),)*).hash(state)
            }
        }
    };
}
pub(crate) use pointwise;

/// A field of a pointwise op.
pub trait Parameter: Clone {
    /// What is compared and hashed.
    type Value: Eq + Hash;
    fn value(&self) -> Self::Value;
    /// As the only kind of number that integers or floats ask for.
    fn settled(&self, _integers: bool) -> Self {
        self.clone()
    }
}
impl Parameter for Scalar {
    type Value = Scalar;
    fn value(&self) -> Scalar {
        *self
    }
    #[inline(always)]
    fn settled(&self, integers: bool) -> Scalar {
        match integers {
            true => Scalar::Int(self.i64()),
            false => Scalar::Float(self.f64()),
        }
    }
}
impl Parameter for f64 {
    type Value = u64;
    fn value(&self) -> u64 {
        self.to_bits()
    }
}
impl<T: Parameter> Parameter for Option<T> {
    type Value = Option<T::Value>;
    fn value(&self) -> Option<T::Value> {
        self.as_ref().map(T::value)
    }
    #[inline(always)]
    fn settled(&self, integers: bool) -> Option<T> {
        self.as_ref().map(|t| t.settled(integers))
    }
}
macro_rules! plain {
    ($($t:ty)*) => { $(impl Parameter for $t {
        type Value = $t;
        fn value(&self) -> $t {
            *self
        }
    })* };
}
plain! { i64 u32 bool Half Special Special2 Polynomial }
