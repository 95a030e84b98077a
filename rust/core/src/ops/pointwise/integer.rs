//! Integers of at most 32 bits, which loops compute with as they are: a vector holds more of them
//! than of their wide equals, and divides them as floating numbers.

use crate::cpu::elements::Element;

/// An integer type whose numbers an `i32` holds.
pub trait Integer: Element + Ord {
    fn wide(self) -> i32;
    /// The low bits.
    fn low(v: i32) -> Self;
    /// The number of this type that is next to `v`.
    fn nearest(v: i64) -> Self;
    /// x / y toward zero for numbers of this type, by a floating type in which the quotient of two of
    /// them that is no integer rounds to none; of zero divisors x.
    fn quotient(x: i32, y: i32) -> i32;

    /// x / y toward zero, and 0 where y is 0.
    #[inline(always)]
    fn truncated(x: Self, y: Self) -> Self {
        let (x, y) = (x.wide(), y.wide());
        Self::low(if y == 0 { 0 } else { Self::quotient(x, y) })
    }
    /// What remains of x, with its sign, and 0 where y is 0.
    #[inline(always)]
    fn remains(x: Self, y: Self) -> Self {
        let (x, y) = (x.wide(), y.wide());
        let r = x.wrapping_sub(Self::quotient(x, y).wrapping_mul(y));
        Self::low(if y == 0 { 0 } else { r })
    }
    /// x / y rounded down, and 0 where y is 0.
    #[inline(always)]
    fn floored(x: Self, y: Self) -> Self {
        let (x, y) = (x.wide(), y.wide());
        let q = Self::quotient(x, y);
        let r = x.wrapping_sub(q.wrapping_mul(y));
        let below = (r != 0) & ((r ^ y) < 0);
        Self::low(if y == 0 {
            0
        } else {
            q.wrapping_sub(below as i32)
        })
    }
    /// What remains of x, with the sign of y, and 0 where y is 0.
    #[inline(always)]
    fn modulo(x: Self, y: Self) -> Self {
        let (x, y) = (x.wide(), y.wide());
        let r = x.wrapping_sub(Self::quotient(x, y).wrapping_mul(y));
        let below = (r != 0) & ((r ^ y) < 0);
        Self::low(if y == 0 {
            0
        } else {
            r + if below { y } else { 0 }
        })
    }
}

macro_rules! integers {
    ($($t:ident by $f:ident),*) => { $(
        impl Integer for $t {
            #[inline(always)]
            fn wide(self) -> i32 {
                self as i32
            }
            #[inline(always)]
            fn low(v: i32) -> $t {
                v as $t
            }
            #[inline(always)]
            fn nearest(v: i64) -> $t {
                v.clamp($t::MIN as i64, $t::MAX as i64) as $t
            }
            #[inline(always)]
            fn quotient(x: i32, y: i32) -> i32 {
                let safe = if y == 0 || y == -1 { 1 } else { y };
                // SAFETY: no larger than x, whatever it is divided by.
                let q = unsafe { (x as $f / safe as $f).to_int_unchecked::<i32>() };
                if y == -1 {
                    x.wrapping_neg()
                } else {
                    q
                }
            }
        }
    )* };
}
integers!(u8 by f32, i8 by f32, i16 by f32, i32 by f64);

#[cfg(test)]
mod tests {
    use super::Integer;
    use std::fmt::Debug;

    /// Every way to divide beside the processor's division of 64 bits.
    fn check<I: Integer + Debug>(x: &[i64], y: &[i64]) {
        for &a in x {
            for &b in y {
                let (p, q) = (I::of_i64(a), I::of_i64(b));
                let got = [
                    I::truncated(p, q),
                    I::remains(p, q),
                    I::floored(p, q),
                    I::modulo(p, q),
                ];
                let (a, b) = (a as i128, b as i128);
                let want = match b {
                    0 => [0; 4],
                    _ => {
                        let down = (a as f64 / b as f64).floor() as i128;
                        let down = down - (down * b > a && b > 0 || down * b < a && b < 0) as i128;
                        [a / b, a % b, down, a - down * b]
                    }
                };
                assert_eq!(got, want.map(|v| I::of_i64(v as i64)), "{a} {b}");
            }
        }
    }

    #[test]
    fn quotients_of_narrow_integers_are_exact() {
        let all: Vec<i64> = (-128..256).collect();
        check::<i8>(&all[..256], &all[..256]);
        check::<u8>(&all[128..], &all[128..]);
        // Around products, where a quotient that is nearly an integer is.
        for (least, most) in [(-32768i64, 32767i64), (-2147483648, 2147483647)] {
            let root = (most as f64).sqrt() as i64;
            let mut y: Vec<i64> = (-3..4).chain(root - 3..root + 4).collect();
            y.extend([
                least,
                least + 1,
                most / 2,
                most / 3,
                most - 1,
                most,
                7,
                10,
                1000,
            ]);
            let near = |v: i64| [v - 1, v, v + 1];
            let mut x: Vec<i64> = y.iter().flat_map(|&v| near(v)).collect();
            for &a in &y {
                for k in [1, 2, 3, 5, 1000, root, most / 7] {
                    x.extend(near(a.saturating_mul(k)));
                }
            }
            x.retain(|v| (least..=most).contains(v));
            y.retain(|v| (least..=most).contains(v));
            match least {
                -32768 => check::<i16>(&x, &y),
                _ => check::<i32>(&x, &y),
            }
        }
    }
}
