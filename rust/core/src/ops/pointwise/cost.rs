//! What an element of a formula costs, counted by the formula itself.

use super::{Pointwise, Real, Special, Special2};
use crate::cpu::pointwise::GRAIN;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Vector instructions for one vector of elements, roughly.
#[derive(Clone, Copy)]
struct Cost(u32);

impl Cost {
    const ZERO: Cost = Cost(0);
    fn more(self, by: u32) -> Cost {
        Cost(self.0.saturating_add(by))
    }
    fn and(self, o: Cost, by: u32) -> Cost {
        self.more(o.0).more(by)
    }
}

/// Elements of an op below which a second thread costs more than it gains.
pub fn grain<P: Pointwise<N>, const N: usize>(op: &P, double: bool) -> usize {
    grain_of(op.f([Cost::ZERO; N]).0, double)
}

/// The same for a gradient.
pub fn gradient_grain<P: Pointwise<N>, const N: usize>(op: &P, i: usize, double: bool) -> usize {
    grain_of(op.df([Cost::ZERO; N], Cost::ZERO, Cost::ZERO)[i].0, double)
}

/// The same for integers of a size in bytes.
pub fn int_grain<P: Pointwise<N>, const N: usize>(op: &P, size: usize) -> usize {
    // Division has no vector instruction, and some ops are loops.
    if P::ITERATES {
        GRAIN / 64
    } else if P::DIVIDES || op.f([Cost::ZERO; N]).0 >= 8 {
        GRAIN / 16
    } else {
        GRAIN * 4 / size
    }
}

fn grain_of(cost: u32, double: bool) -> usize {
    // Bringing elements from memory takes about as long as a dozen instructions.
    const MEMORY: usize = 12;
    let cost = cost as usize * if double { 4 } else { 1 };
    (GRAIN * MEMORY / (MEMORY + cost)).max(64)
}

impl Add for Cost {
    type Output = Cost;
    fn add(self, o: Cost) -> Cost {
        self.and(o, 1)
    }
}
impl Sub for Cost {
    type Output = Cost;
    fn sub(self, o: Cost) -> Cost {
        self.and(o, 1)
    }
}
impl Mul for Cost {
    type Output = Cost;
    fn mul(self, o: Cost) -> Cost {
        self.and(o, 1)
    }
}
impl Div for Cost {
    type Output = Cost;
    fn div(self, o: Cost) -> Cost {
        self.and(o, 8)
    }
}
impl Neg for Cost {
    type Output = Cost;
    fn neg(self) -> Cost {
        self.more(1)
    }
}

macro_rules! costs {
    ($($f:ident $by:literal)*) => { $(
        fn $f(self) -> Cost {
            self.more($by)
        }
    )* };
}

impl Real for Cost {
    type Mask = Cost;
    fn lit(_: f64) -> Cost {
        Cost::ZERO
    }
    fn lt(self, o: Cost) -> Cost {
        self.and(o, 1)
    }
    fn le(self, o: Cost) -> Cost {
        self.and(o, 1)
    }
    fn equal(self, o: Cost) -> Cost {
        self.and(o, 1)
    }
    fn is_nan(self) -> Cost {
        self.more(1)
    }
    fn both(a: Cost, b: Cost) -> Cost {
        a.and(b, 1)
    }
    fn either(a: Cost, b: Cost) -> Cost {
        a.and(b, 1)
    }
    fn not(a: Cost) -> Cost {
        a
    }
    fn select(m: Cost, yes: Cost, no: Cost) -> Cost {
        m.and(yes, 1).more(no.0)
    }
    costs! {
        abs 1 floor 1 ceil 1 trunc 1 round 1 sqrt 12 rsqrt 16 exp 16 exp2 16 expm1 24 ln 24
        log2 24 log10 24 log1p 24 sin 40 cos 40 tan 60 asin 40 acos 40 atan 40 sinh 40 cosh 40
        tanh 24 asinh 60 acosh 60 atanh 60 sigmoid 24 erf 24 erfc 60 erfinv 100 lgamma 400
        digamma 400
    }
    fn polygamma(self, _: u32) -> Cost {
        self.more(1000)
    }
    fn pow(self, e: Cost) -> Cost {
        self.and(e, 60)
    }
    fn atan2(self, x: Cost) -> Cost {
        self.and(x, 60)
    }
    fn fmod(self, o: Cost) -> Cost {
        self.and(o, 16)
    }
    fn copysign(self, o: Cost) -> Cost {
        self.and(o, 1)
    }
    fn special(self, _: Special) -> Cost {
        self.more(1000)
    }
    fn special2(self, o: Cost, _: Special2) -> Cost {
        self.and(o, 2000)
    }
}
