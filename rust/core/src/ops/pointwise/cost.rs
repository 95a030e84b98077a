//! The cost of a formula for an element, and what it reads, found by running the formula.

use super::{Pointwise, Real, Special, Special2};
use crate::cpu::pointwise::GRAIN;
use crate::op::Mask;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What led to a value.
#[derive(Clone, Copy)]
struct Account {
    /// Vector instructions for one vector of elements, roughly.
    cost: u32,
    /// The arguments that were read, as bits.
    reads: u32,
}

impl Account {
    const NOTHING: Account = Account { cost: 0, reads: 0 };
    #[inline(always)]
    fn argument(i: usize) -> Account {
        Account {
            cost: 0,
            reads: 1 << i,
        }
    }
    #[inline(always)]
    fn more(self, by: u32) -> Account {
        Account {
            cost: self.cost.saturating_add(by),
            ..self
        }
    }
    #[inline(always)]
    fn and(self, o: Account, by: u32) -> Account {
        let reads = self.reads | o.reads;
        Account { reads, ..self }.more(o.cost).more(by)
    }
}

/// Which inputs, and whether the output, enter the formula of each input's gradient.
#[inline(always)]
pub fn reads<P: Pointwise<N>, const N: usize>(op: &P) -> [(Mask, bool); N] {
    let x = std::array::from_fn(Account::argument);
    let each = op.df(x, Account::argument(N), Account::NOTHING);
    each.map(|d| ((d.reads & ((1 << N) - 1)) as Mask, d.reads >> N & 1 == 1))
}

/// Elements of an op below which a second thread costs more than it gains.
pub fn grain<P: Pointwise<N>, const N: usize>(op: &P, double: bool) -> usize {
    grain_of(op.f([Account::NOTHING; N]).cost, double)
}

/// The same for a gradient.
pub fn gradient_grain<P: Pointwise<N>, const N: usize>(op: &P, i: usize, double: bool) -> usize {
    grain_of(
        op.df([Account::NOTHING; N], Account::NOTHING, Account::NOTHING)[i].cost,
        double,
    )
}

/// The same for integers of a size in bytes.
pub fn int_grain<P: Pointwise<N>, const N: usize>(op: &P, size: usize) -> usize {
    // Division has no vector instruction, and some ops are loops.
    if P::FACTS.iterates {
        GRAIN / 64
    } else if P::FACTS.divides || op.f([Account::NOTHING; N]).cost >= 8 {
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

impl Add for Account {
    type Output = Account;
    #[inline(always)]
    fn add(self, o: Account) -> Account {
        self.and(o, 1)
    }
}
impl Sub for Account {
    type Output = Account;
    #[inline(always)]
    fn sub(self, o: Account) -> Account {
        self.and(o, 1)
    }
}
impl Mul for Account {
    type Output = Account;
    #[inline(always)]
    fn mul(self, o: Account) -> Account {
        self.and(o, 1)
    }
}
impl Div for Account {
    type Output = Account;
    #[inline(always)]
    fn div(self, o: Account) -> Account {
        self.and(o, 8)
    }
}
impl Neg for Account {
    type Output = Account;
    #[inline(always)]
    fn neg(self) -> Account {
        self.more(1)
    }
}

macro_rules! costs {
    ($($f:ident $by:literal)*) => { $(
        #[inline(always)]
        fn $f(self) -> Account {
            self.more($by)
        }
    )* };
}

impl Real for Account {
    type Mask = Account;
    #[inline(always)]
    fn lit(_: f64) -> Account {
        Account::NOTHING
    }
    #[inline(always)]
    fn lt(self, o: Account) -> Account {
        self.and(o, 1)
    }
    #[inline(always)]
    fn le(self, o: Account) -> Account {
        self.and(o, 1)
    }
    #[inline(always)]
    fn equal(self, o: Account) -> Account {
        self.and(o, 1)
    }
    #[inline(always)]
    fn is_nan(self) -> Account {
        self.more(1)
    }
    #[inline(always)]
    fn both(a: Account, b: Account) -> Account {
        a.and(b, 1)
    }
    #[inline(always)]
    fn either(a: Account, b: Account) -> Account {
        a.and(b, 1)
    }
    #[inline(always)]
    fn not(a: Account) -> Account {
        a
    }
    #[inline(always)]
    fn select(m: Account, yes: Account, no: Account) -> Account {
        m.and(yes, 1).and(no, 0)
    }
    costs! {
        abs 1 floor 1 ceil 1 trunc 1 round 1 sqrt 12 rsqrt 16 exp 16 exp2 16 expm1 24 ln 24
        log2 24 log10 24 log1p 24 sin 40 cos 40 tan 60 asin 40 acos 40 atan 40 sinh 40 cosh 40
        tanh 24 asinh 60 acosh 60 atanh 60 sigmoid 24 erf 24 erfc 60 erfinv 100 lgamma 400
        digamma 400
    }
    #[inline(always)]
    fn polygamma(self, _: u32) -> Account {
        self.more(1000)
    }
    #[inline(always)]
    fn pow(self, e: Account) -> Account {
        self.and(e, 60)
    }
    #[inline(always)]
    fn atan2(self, x: Account) -> Account {
        self.and(x, 60)
    }
    #[inline(always)]
    fn fmod(self, o: Account) -> Account {
        self.and(o, 16)
    }
    #[inline(always)]
    fn copysign(self, o: Account) -> Account {
        self.and(o, 1)
    }
    #[inline(always)]
    fn special(self, _: Special) -> Account {
        self.more(1000)
    }
    #[inline(always)]
    fn special2(self, o: Account, _: Special2) -> Account {
        self.and(o, 2000)
    }
}
