//! The declaration of a pointwise op, and the macro that makes it.

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

/// What there is to say of a pointwise op in a word.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub types: Types,
    /// Whether `int` is written; without it integers raise.
    pub int: bool,
    /// What the op means for complex numbers.
    pub complex: Complex,
    /// Whether integers divide by the second input, so that zeros there raise.
    pub divides: bool,
    /// Whether `int` is a loop of its own.
    pub iterates: bool,
    /// Inputs without a derivative: asking for their gradient raises.
    pub opaque: Mask,
    /// Whether the result never needs a gradient.
    pub detached: bool,
    /// Whether loops use the vector code of functions that does not reach every argument; without
    /// it such functions (`sin`, `cos`, `tan`) are exact everywhere and scalar.
    pub guarded: bool,
    /// Whether there are loops of the formula over the bits of float16 and bfloat16.
    pub half_loops: bool,
    /// Whether there are loops for a second input that is a number.
    pub numbers: bool,
    /// Whether `int` on the bits of wide unsigned integers gives theirs, or they keep their order.
    pub unsigned: bool,
    /// Whether it takes the floating types of 8 bits.
    pub float8: bool,
    /// Inputs whose numbers keep the digits that a half type lacks, as factors and addends do.
    pub exact: Mask,
    /// Whether a number of the program that comes first keeps them too.
    pub dividend: bool,
    /// Whether `out=` may have another type also where the op has one input and leaves its type alone.
    pub casts: bool,
    /// Whether it may write to elements that share memory.
    pub repeats: Repeats,
}

impl Facts {
    pub const NONE: Facts = Facts {
        types: Types::Same,
        int: false,
        complex: Complex::No,
        divides: false,
        iterates: false,
        opaque: 0,
        detached: false,
        guarded: false,
        half_loops: false,
        numbers: false,
        unsigned: false,
        float8: false,
        exact: 0,
        dividend: false,
        casts: false,
        repeats: Repeats::Refused,
    };

    /// Whether input `i`, a number or a tensor without dimensions, keeps the digits that a half type lacks;
    /// `wrapped` says that it is a number of the program.
    pub fn keeps(&self, i: usize, wrapped: bool) -> bool {
        let own = self.exact >> i & 1 == 1 || (i == 0 && wrapped && self.dividend);
        own && self.types != Types::Bool
    }
}

/// A pointwise op of `N` inputs.
pub trait Pointwise<const N: usize>: OpValue + Clone + Eq + Hash + Cpu<N> {
    const NODE: &'static str;
    const FACTS: Facts;
    fn f<R: Real>(&self, x: [R; N]) -> R;
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
    /// Gradients of the inputs for gradient `g` of the output `y`.
    fn df<R: Real>(&self, x: [R; N], y: R, g: R) -> [R; N];
    /// The same op with numbers of one kind, which loops need not tell apart again and again.
    fn settled(&self, integers: bool) -> Self;
    /// Refuses inputs that the op does not take; `dtype` is their promoted type.
    fn check<M: AsRef<Meta>>(&self, _dtype: DType, _x: &[M]) -> Result<()> {
        Ok(())
    }
    /// See [`Derivative::overwritten`].
    fn overwritten(&self) -> Result<()> {
        Ok(())
    }
    /// Whether the gradient steps with what it reads: under `create_graph` it depends on that, with
    /// a slope of nothing.
    fn steps(&self) -> bool {
        false
    }
    /// The op on integers as shader text over `t0`, `t1`, ... where `f` does not say it.
    fn wgsl(&self) -> Option<&'static str> {
        None
    }
    /// The gradient of input `i` where it needs no kernel (`add` hands it on).
    fn direct(&self, _i: usize, _g: &Tensor) -> Option<Result<Tensor>> {
        None
    }
}

/// What an op computes on the CPU in another way than its formula says: the same numbers, sooner.
pub trait Cpu<const N: usize> {
    /// Up to this absolute value, where it is not 0, [`close`](Cpu::close) computes what a guarded op of
    /// one input does.
    const CLOSE: f64 = 0.0;
    /// Whether `half` is written.
    const HALF: bool = false;
    /// The formula of inputs of which none is beyond [`CLOSE`](Cpu::CLOSE).
    #[inline(always)]
    fn close<R: Real>(&self, x: [R; N]) -> R
    where
        Self: Pointwise<N>,
    {
        self.f(x)
    }
    /// The op as exact as float16 and bfloat16 ask for, where that is cheaper.
    #[inline(always)]
    fn half(&self, x: [f32; N]) -> f32
    where
        Self: Pointwise<N>,
    {
        self.f(x)
    }
    /// The same of many numbers at once, where the compiler makes no whole vectors of one after
    /// another.
    #[inline(always)]
    fn halves<const W: usize>(&self, x: [[f32; W]; N]) -> [f32; W]
    where
        Self: Pointwise<N>,
    {
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
    /// `int` in the type of narrow integers, where that is another computation.
    #[inline(always)]
    fn narrow<I: Integer>(&self, x: [I; N]) -> I
    where
        Self: Pointwise<N>,
    {
        let mut wide = [0; N];
        for (wide, x) in wide.iter_mut().zip(x) {
            *wide = x.to_i64();
        }
        I::of_i64(self.int(wide))
    }
    /// The op that divides on integers of up to 50 bits, and no zero as their divisor: quotients of
    /// such numbers do not round to an integer that they do not reach.
    #[inline(always)]
    fn divided(&self, x: [f64; N]) -> f64
    where
        Self: Pointwise<N>,
    {
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
}

/// What a loop of an op of one input computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    Forward,
    /// As [`Cpu::half`].
    Half,
    Gradient,
}

/// Declares pointwise ops. After the types: the formula, optionally the same on integers, and one
/// gradient per input; what it reads is what backward will keep. The other clauses are methods of
/// [`Pointwise`], and its `facts`. `cpu impl` says that an `impl Cpu` follows.
macro_rules! pointwise {
    ($(
        $(#[doc = $doc:literal])*
        op $name:ident $({ $($field:ident: $ty:ty),* })? [$n:literal] = $node:literal, $types:ident;
        f |$p:pat_param, $x:pat_param| $f:expr;
        $(int |$ip:pat_param, $ix:pat_param| $int:expr;)?
        df |$dp:pat_param, $dx:pat_param, $dy:pat_param, $g:pat_param| $($d:expr),*;
        $(check |$cp:pat_param, $cd:pat_param, $cx:pat_param| $check:expr;)?
        $(overwritten |$op:pat_param| $overwritten:expr;)?
        $(steps |$sp:pat_param| $steps:expr;)?
        $(complex $complex:ident;)?
        $(wgsl |$wp:pat_param| $wgsl:expr;)?
        $(direct |$qp:pat_param, $qi:pat_param, $qg:pat_param| $direct:expr;)?
        $(facts { $($fact:ident: $value:expr),* $(,)? };)?
        $(cpu $by_hand:ident;)?
    )*) => { $(
        $crate::ops::pointwise::pointwise!(@struct [$(#[doc = $doc])*] $name $({ $($field: $ty),* })?);
        $crate::ops::pointwise::pointwise!(@cpu $name $n $($by_hand)?);
        impl $crate::ops::pointwise::Pointwise<$n> for $name {
            const NODE: &'static str = $node;
            const FACTS: $crate::ops::pointwise::Facts = $crate::ops::pointwise::Facts {
                types: $crate::ops::pointwise::Types::$types,
                int: false $(|| { let _ = stringify!($int); true })?,
                $(complex: $crate::ops::pointwise::Complex::$complex,)?
                $($($fact: $value,)*)?
                ..$crate::ops::pointwise::Facts::NONE
            };
            #[inline(always)]
            fn f<R: $crate::ops::pointwise::Real>(&self, $x: [R; $n]) -> R {
                let $p = self;
                $f
            }
            $(#[inline(always)]
            fn int(&self, $ix: [i64; $n]) -> i64 {
                let $ip = self;
                $int
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
            $(fn overwritten(&self) -> $crate::error::Result<()> {
                let $op = self;
                $overwritten
            })?
            $(fn steps(&self) -> bool {
                let $sp = self;
                $steps
            })?
            $(fn wgsl(&self) -> Option<&'static str> {
                let $wp = self;
                Some($wgsl)
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
    (@cpu $name:ident $n:literal) => {
        impl $crate::ops::pointwise::Cpu<$n> for $name {}
    };
    (@cpu $name:ident $n:literal impl) => {};
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
