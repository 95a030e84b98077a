//! Complex numbers: formulas of analytic functions hold for them as they are. The gradient of an
//! analytic function is `conj(df(x, y, conj(g)))`, PyTorch's convention.

use super::cpu::complex::BLOCK;
use super::{Formula, Pointwise, Real, Special, Special2};
use crate::cpu::convert;
use crate::cpu::pointwise::MAX_INPUTS;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::dtype::DType;
use crate::error::{self, Error, Kind, Result};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What an op means for complex numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complex {
    /// Nothing: they raise.
    No,
    /// Formula and derivative hold, or the result is a truth value.
    Analytic,
    /// The formula holds, the derivative does not.
    Forward,
    /// The result is real.
    Modulus,
}

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct C(pub f64, pub f64);

const ONE: C = C(1.0, 0.0);
/// From here on `z * z + 1` is `z * z`.
const LARGE: f64 = 1e150;

impl Add for C {
    type Output = C;
    fn add(self, o: C) -> C {
        C(self.0 + o.0, self.1 + o.1)
    }
}
impl Sub for C {
    type Output = C;
    fn sub(self, o: C) -> C {
        C(self.0 - o.0, self.1 - o.1)
    }
}
impl Mul for C {
    type Output = C;
    fn mul(self, o: C) -> C {
        C(self.0 * o.0 - self.1 * o.1, self.0 * o.1 + self.1 * o.0)
    }
}
impl Div for C {
    type Output = C;
    /// Smith's method: no overflow of the squared modulus.
    fn div(self, o: C) -> C {
        if o.0.abs() >= o.1.abs() {
            if o.0 == 0.0 && o.1 == 0.0 {
                return C(self.0 / o.0.abs(), self.1 / o.0.abs());
            }
            let q = o.1 / o.0;
            let d = o.0 + o.1 * q;
            C((self.0 + self.1 * q) / d, (self.1 - self.0 * q) / d)
        } else {
            let q = o.0 / o.1;
            let d = o.0 * q + o.1;
            C((self.0 * q + self.1) / d, (self.1 * q - self.0) / d)
        }
    }
}
impl Neg for C {
    type Output = C;
    fn neg(self) -> C {
        C(-self.0, -self.1)
    }
}

impl C {
    /// i z, with the sign of each zero: a product would add zeros of both signs.
    fn times_i(self) -> C {
        C(-self.1, self.0)
    }
    /// -i z.
    fn over_i(self) -> C {
        C(self.1, -self.0)
    }
    fn scaled(self, k: f64) -> C {
        C(self.0 * k, self.1 * k)
    }
    fn is_large(self) -> bool {
        self.0.abs() > LARGE || self.1.abs() > LARGE
    }
    /// log |2 z| for a large z, whose modulus may overflow.
    fn log_twice(self) -> f64 {
        (self.0 / 2.0).hypot(self.1 / 2.0).ln() + 2.0 * std::f64::consts::LN_2
    }
}

/// x y where a y of zero wins: the axes map to themselves, also at infinities and NaN.
fn unless_zero(x: f64, y: f64) -> f64 {
    match y == 0.0 {
        true => y.copysign(y) * 1f64.copysign(x),
        false => x * y,
    }
}

/// sinh x and cosh x times (cos y, sin y), without overflow in between.
fn hyperbolic(f: fn(f64) -> f64, x: f64, part: f64) -> f64 {
    match x.is_finite() && x.abs() > 700.0 {
        true => f(x.signum() * (x.abs() - 350.0)) * part * 350f64.exp(),
        false => unless_zero(f(x), part),
    }
}

/// Functions that no complex op calls: the ops that need them declare [`Complex::No`].
macro_rules! none {
    ($($f:ident($($x:ident: $t:ty),*))*) => { $(
        fn $f(self $(, $x: $t)*) -> C {
            $(let _ = $x;)*
            error::unwind(Error::new(
                Kind::NotImplemented,
                concat!("\"", stringify!($f), "\" not implemented for complex numbers"),
            ))
        }
    )* };
}

impl Real for C {
    type Mask = bool;
    fn lit(v: f64) -> C {
        C(v, 0.0)
    }
    fn lt(self, o: C) -> bool {
        self.0 < o.0
    }
    fn le(self, o: C) -> bool {
        self.0 <= o.0
    }
    fn equal(self, o: C) -> bool {
        self == o
    }
    fn is_nan(self) -> bool {
        self.0.is_nan() || self.1.is_nan()
    }
    fn is_infinite(self) -> bool {
        self.0.is_infinite() || self.1.is_infinite()
    }
    fn is_finite(self) -> bool {
        self.0.is_finite() && self.1.is_finite()
    }
    fn both(a: bool, b: bool) -> bool {
        a && b
    }
    fn either(a: bool, b: bool) -> bool {
        a || b
    }
    fn not(a: bool) -> bool {
        !a
    }
    fn select(m: bool, yes: C, no: C) -> C {
        if m {
            yes
        } else {
            no
        }
    }
    fn conj(self) -> C {
        C(self.0, -self.1)
    }
    fn finite(self, nan: f64, high: f64, low: f64) -> C {
        let of = |part: f64| part.finite(nan, high, low);
        C(of(self.0), of(self.1))
    }
    fn abs(self) -> C {
        C(self.0.hypot(self.1), 0.0)
    }
    fn sign(self) -> C {
        let r = self.0.hypot(self.1);
        if r == 0.0 {
            return C(0.0, 0.0);
        }
        C(self.0 / r, self.1 / r)
    }
    fn sqrt(self) -> C {
        let C(x, y) = self;
        if x == 0.0 && y == 0.0 {
            return C(0.0, y);
        }
        if y.is_infinite() {
            return C(f64::INFINITY, y);
        }
        if x.is_infinite() {
            let other = if y.is_nan() { y } else { 0.0 };
            return match x > 0.0 {
                true => C(x, other.copysign(y)),
                false => C(other, f64::INFINITY.copysign(y)),
            };
        }
        // Scaled so that the modulus neither overflows nor loses digits.
        let scale = match x.abs().max(y.abs()) {
            m if m > 1e300 => (0.0625, 4.0),
            m if m < 1e-290 => (2f64.powi(108), 2f64.powi(-54)),
            _ => (1.0, 1.0),
        };
        let (x, y) = (x * scale.0, y * scale.0);
        let s = ((x.abs() + x.hypot(y)) / 2.0).sqrt();
        let (a, b) = (s * scale.1, y.abs() / (2.0 * s) * scale.1);
        match x >= 0.0 {
            true => C(a, b.copysign(y)),
            false => C(b, a.copysign(y)),
        }
    }
    fn exp(self) -> C {
        let C(x, y) = self;
        if y == 0.0 {
            return C(x.exp(), y);
        }
        if x.is_infinite() && !y.is_finite() {
            return match x > 0.0 {
                true => C(x, f64::NAN),
                false => C(0.0, 0.0),
            };
        }
        if x.is_finite() && x > 700.0 {
            // e^x overflows before its product with a small sine does.
            let half = (x / 2.0).exp();
            return C(half * y.cos() * half, half * y.sin() * half);
        }
        let e = x.exp();
        C(e * y.cos(), e * y.sin())
    }
    fn exp2(self) -> C {
        self.scaled(std::f64::consts::LN_2).exp()
    }
    fn expm1(self) -> C {
        if self.1 == 0.0 {
            return C(self.0.exp_m1(), self.1);
        }
        if self.0.abs() > 40.0 {
            return self.exp() - ONE;
        }
        let h = (0.5 * self.1).sin();
        let e = self.0.exp();
        C(self.0.exp_m1() - 2.0 * e * h * h, e * self.1.sin())
    }
    fn ln(self) -> C {
        let (a, b) = (self.0.abs(), self.1.abs());
        let (m, n) = (a.max(b), a.min(b));
        let modulus = match m {
            _ if m > 1e300 && m.is_finite() => self.log_twice() - std::f64::consts::LN_2,
            // The modulus is near 1, where the logarithm keeps only what differs from it.
            _ if m > 0.5 && m < 2.0 && !self.is_nan() => {
                0.5 * ((m - 1.0) * (m + 1.0) + n * n).ln_1p()
            }
            _ => a.hypot(b).ln(),
        };
        C(modulus, self.1.atan2(self.0))
    }
    fn log2(self) -> C {
        self.ln().scaled(std::f64::consts::LOG2_E)
    }
    fn log10(self) -> C {
        self.ln().scaled(std::f64::consts::LOG10_E)
    }
    fn log1p(self) -> C {
        let near = self.0.abs() < 0.5 && self.1.abs() < 0.5;
        let modulus = match near {
            true => 0.5 * (self.0 * (2.0 + self.0) + self.1 * self.1).ln_1p(),
            false => (self.0 + 1.0).hypot(self.1).ln(),
        };
        C(modulus, self.1.atan2(self.0 + 1.0))
    }
    fn sin(self) -> C {
        self.times_i().sinh().over_i()
    }
    fn cos(self) -> C {
        self.times_i().cosh()
    }
    fn tan(self) -> C {
        self.times_i().tanh().over_i()
    }
    fn sinh(self) -> C {
        let C(x, y) = self;
        match y == 0.0 {
            true => C(x.sinh(), y),
            false if x == 0.0 => C(x * if y.is_finite() { y.cos() } else { 1.0 }, y.sin()),
            false if x.is_infinite() && !y.is_finite() => C(x, f64::NAN),
            false => C(
                hyperbolic(f64::sinh, x, y.cos()),
                hyperbolic(f64::cosh, x, y.sin()),
            ),
        }
    }
    fn cosh(self) -> C {
        let C(x, y) = self;
        match y == 0.0 {
            true => C(x.cosh(), y * 1f64.copysign(x)),
            false if x == 0.0 => C(y.cos(), if y.is_finite() { x * y.sin() } else { 0.0 }),
            false if x.is_infinite() && !y.is_finite() => C(f64::INFINITY, f64::NAN),
            false => C(
                hyperbolic(f64::cosh, x, y.cos()),
                hyperbolic(f64::sinh, x, y.sin()),
            ),
        }
    }
    fn tanh(self) -> C {
        if self.1 == 0.0 {
            return C(self.0.tanh(), self.1);
        }
        if self.0.abs() > 20.0 {
            let e = 4.0 * (-2.0 * self.0.abs()).exp();
            return match self.1.is_finite() {
                true => C(1f64.copysign(self.0), e * self.1.sin() * self.1.cos()),
                false if self.0.is_infinite() => C(1f64.copysign(self.0), 0f64.copysign(self.1)),
                false => C(f64::NAN, f64::NAN),
            };
        }
        if self.0 == 0.0 {
            return C(self.0, self.1.tan());
        }
        let t = self.1.tan();
        let (s, c) = (self.0.sinh(), self.0.cosh());
        let d = 1.0 / (1.0 + t * t);
        let r = s * s + d;
        C(s * c / r, t * d / r)
    }
    fn asin(self) -> C {
        self.times_i().asinh().over_i()
    }
    fn acos(self) -> C {
        if self.is_large() {
            return C(
                self.1.abs().atan2(self.0),
                self.log_twice().copysign(-self.1),
            );
        }
        let (a, b) = (
            C(1.0 - self.0, -self.1).sqrt(),
            C(1.0 + self.0, self.1).sqrt(),
        );
        let re = match self.0 == 0.0 {
            true => std::f64::consts::FRAC_PI_2,
            false => 2.0 * a.0.atan2(b.0),
        };
        C(re, (b.0 * a.1 - b.1 * a.0).asinh())
    }
    fn atan(self) -> C {
        self.times_i().atanh().over_i()
    }
    /// The inverse functions after Kahan, "Branch cuts for complex elementary functions", 1987:
    /// no square is formed, and each root tells the sides of its cut apart by the sign of zero.
    fn asinh(self) -> C {
        if self.is_large() {
            return C(
                self.log_twice().copysign(self.0),
                self.1.atan2(self.0.abs()),
            );
        }
        if self.1 == 0.0 {
            return C(self.0.asinh(), self.1);
        }
        let (a, b) = (
            C(1.0 + self.1, -self.0).sqrt(),
            C(1.0 - self.1, self.0).sqrt(),
        );
        C(
            (a.0 * b.1 - b.0 * a.1).asinh(),
            self.1.atan2(a.0 * b.0 - a.1 * b.1),
        )
    }
    fn acosh(self) -> C {
        if self.is_large() {
            return C(self.log_twice(), self.1.atan2(self.0));
        }
        if self.0 == 0.0 && self.1.is_nan() {
            return C(self.1, std::f64::consts::FRAC_PI_2);
        }
        let (a, b) = (
            C(self.0 - 1.0, self.1).sqrt(),
            C(self.0 + 1.0, self.1).sqrt(),
        );
        C((a.0 * b.0 + a.1 * b.1).asinh(), 2.0 * a.1.atan2(b.0))
    }
    fn atanh(self) -> C {
        let (x, y) = (self.0.abs(), self.1.abs());
        let (re, im) = if self.is_large() {
            let h = (x / 2.0).hypot(y / 2.0);
            let re = if h.is_infinite() {
                0.0
            } else {
                x / 4.0 / h / h
            };
            let known = y.is_infinite() || !self.is_nan();
            (
                re,
                if known {
                    std::f64::consts::FRAC_PI_2
                } else {
                    f64::NAN
                },
            )
        } else if x == 1.0 && y < 1e-150 {
            // (1 - x)^2 + y^2 underflows.
            let im = if y == 0.0 { y } else { 2f64.atan2(-y) / 2.0 };
            (2f64.ln() / 2.0 - y.ln() / 2.0, im)
        } else {
            let re = match x == 0.0 {
                true => 0.0,
                false => (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p() / 4.0,
            };
            (re, (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) / 2.0)
        };
        // A point of the cut beyond 1 is above it for +0 and below it for -0.
        C(re.copysign(self.0), im.copysign(self.1))
    }
    fn sigmoid(self) -> C {
        // By what does not overflow.
        match self.0 < 0.0 {
            true => {
                let e = self.exp();
                e / (ONE + e)
            }
            false => ONE / (ONE + (-self).exp()),
        }
    }
    fn pow(self, e: C) -> C {
        if e == C(0.0, 0.0) {
            return ONE;
        }
        if self == C(0.0, 0.0) {
            return match e.0 > 0.0 {
                true => C(0.0, 0.0),
                false => C(f64::NAN, f64::NAN),
            };
        }
        (e * self.ln()).exp()
    }
    none! {
        floor() ceil() trunc() round() erf() erfc() erfinv() lgamma() digamma()
        polygamma(n: u32) atan2(x: C) fmod(o: C) copysign(sign: C)
        special(f: Special) special2(o: C, f: Special2)
    }
}

/// A loop over complex numbers: parameters, operands, results, how many.
pub type Loop = unsafe fn(*const (), *const *const C, *mut C, usize);

/// The loop of an op's formula.
///
/// # Safety
/// `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
pub unsafe fn formula<P: Pointwise<N>, const N: usize>(
    params: *const (),
    x: *const *const C,
    y: *mut C,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
    unsafe {
        let op = &*params.cast::<P>();
        let x = *x.cast::<[*const C; N]>();
        for i in 0..n {
            *y.add(i) = op.f(std::array::from_fn(|j| *x[j].add(i)));
        }
    }
}

/// A block of numbers.
type Room = [C; BLOCK];

/// Computes `y` from `x`, at least one of which is complex: in the precision of their type where the
/// op has a loop for that, else in float64.
pub fn compute(
    op: &dyn Formula,
    (t, output): (DType, DType),
    x: &[&Tensor],
    y: &Tensor,
) -> Result<()> {
    let single = |t: &Tensor| t.numel() == 1 && y.numel() > 1;
    let operands: SmallVec<[Tensor; 4]> = x
        .iter()
        .map(|x| {
            let x = x.detach().prepared(t)?;
            match single(&x) {
                true => Ok(x),
                false => x.expand_to(y.shape())?.contiguous(),
            }
        })
        .collect::<Result<_>>()?;
    let out = match y.dtype() == output && y.is_contiguous() {
        true => y.clone(),
        false => Tensor::empty(y.shape(), output, y.device())?,
    };
    let own = op.loop_parts(t);
    let (size, out_size, part) = (t.size(), output.size(), t.part());
    // Whether one number stands for all.
    let from: SmallVec<[(Ptr<u8>, bool); 4]> = operands
        .iter()
        .map(|x| (Ptr::new(x.bytes_ptr()), single(x)))
        .collect();
    let (to, params) = (Ptr::new(out.bytes_ptr()), Ptr::read(op.params()));
    let (run, grain) = (op.loop_complex(), op.grain(true));
    let grain = if own.is_some() { grain } else { grain / 4 };
    parallel_for(out.numel(), grain, |range| {
        let mut rooms: SmallVec<[Room; 3]> = SmallVec::new();
        for &(at, single) in &from {
            let mut room = [C(0.0, 0.0); BLOCK];
            if single {
                let (to, from) = (room.as_mut_ptr().cast::<u8>(), at.get());
                for i in 0..BLOCK {
                    // SAFETY: one number, of at most the size of `C`.
                    unsafe { std::ptr::copy_nonoverlapping(from, to.add(i * size), size) };
                }
                if own.is_none() {
                    let packed = room;
                    // SAFETY: a block of numbers of this type, and room for as many wide ones.
                    unsafe { widen(part, packed.as_ptr().cast(), BLOCK, &mut room) };
                }
            }
            rooms.push(room);
        }
        let mut result = [C(0.0, 0.0); BLOCK];
        let block = match own.is_some() && from.iter().all(|x| !x.1) {
            true => range.len(),
            false => BLOCK,
        };
        for start in range.clone().step_by(block) {
            let n = block.min(range.end - start);
            let mut x = [std::ptr::null::<C>(); MAX_INPUTS];
            // SAFETY: operands and results are contiguous and have these numbers, which are read before
            // their results are written; ranges of different threads are disjoint.
            unsafe {
                for ((room, &(at, single)), x) in rooms.iter_mut().zip(&from).zip(&mut x) {
                    let at = at.at(if single { 0 } else { start * size }).cast_const();
                    *x = match (single, own) {
                        (false, Some(_)) => at.cast(),
                        (false, None) => {
                            widen(part, at, n, room);
                            room.as_ptr()
                        }
                        (true, _) => room.as_ptr(),
                    };
                }
                let to = to.at(start * out_size);
                match own {
                    Some(run) => run(x.as_ptr().cast(), to, n),
                    None => {
                        run(params.get(), x.as_ptr(), result.as_mut_ptr(), n);
                        narrow(output, &result[..n], to);
                    }
                }
            }
        }
    });
    match out.shares_storage(y) {
        true => Ok(()),
        false => y.write_from(&out),
    }
}

/// Numbers of this type of part as those of float64.
// SAFETY: there are `n` at `x`, at most BLOCK.
unsafe fn widen(part: DType, x: *const u8, n: usize, to: &mut Room) {
    // SAFETY: twice as many parts, one after the other.
    unsafe { convert::load::<f64>(part, x, part.size() as isize, 2 * n, to.as_mut_ptr().cast()) }
}

/// Results as their type has them: complex, their real part, or whether that is not zero.
// SAFETY: there is room at `to`.
unsafe fn narrow(output: DType, x: &[C], to: *mut u8) {
    // SAFETY: as many elements of this type, one after the other.
    unsafe {
        if output.is_complex() {
            let (part, n) = (output.part(), x.len());
            let x = x.as_ptr().cast::<f64>();
            return convert::store(part, to, part.size() as isize, 2 * n, x);
        }
        let mut real = [0.0; BLOCK];
        for (to, z) in real.iter_mut().zip(x) {
            *to = z.0;
        }
        convert::store(output, to, output.size() as isize, x.len(), real.as_ptr());
    }
}

/// The argument of complex numbers.
pub fn angle(z: &Tensor) -> Result<Tensor> {
    super::apply(super::binary::Atan2, [&z.real_part(1)?, &z.real_part(0)?])
}
