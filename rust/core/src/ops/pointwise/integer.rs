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
    /// The same rounded down.
    fn down(x: i32, y: i32) -> i32;
    /// x * 2^y in the bits of the type, and 0 where y is negative or not less than their number.
    fn left(x: Self, y: Self) -> Self;
    /// x / 2^y rounded down; the sign remains where y is negative or not less than the number of bits.
    fn right(x: Self, y: Self) -> Self;

    /// x / y toward zero, and 0 where y is 0.
    #[inline(always)]
    fn truncated(x: Self, y: Self) -> Self {
        let (x, y) = (x.wide(), y.wide());
        // Masked: what is only asked for where y is not 0 would be computed element by element.
        Self::low(Self::quotient(x, y) & -((y != 0) as i32))
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
        Self::low(Self::down(x, y) & -((y != 0) as i32))
    }
    /// What remains of x, with the sign of y, and 0 where y is 0.
    #[inline(always)]
    fn modulo(x: Self, y: Self) -> Self {
        let (x, y) = (x.wide(), y.wide());
        let r = x.wrapping_sub(Self::down(x, y).wrapping_mul(y));
        Self::low(if y == 0 { 0 } else { r })
    }
}

macro_rules! integers {
    ($($t:ident by $f:ident, $shift:ident $bits:ident;)*) => { $(
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
            #[inline(always)]
            fn down(x: i32, y: i32) -> i32 {
                // Where x / -1 fits nothing is asked about it: loops over questions stay scalar.
                let wraps = $t::BITS == 32 && y == -1;
                let safe = if y == 0 || wraps { 1 } else { y };
                let exact = x as $f / safe as $f;
                // SAFETY: no larger than x, whatever it is divided by.
                let q = unsafe { exact.to_int_unchecked::<i32>() };
                // Compared as floating numbers, for the same reason.
                let q = q - (q as $f > exact) as i32;
                if wraps {
                    x.wrapping_neg()
                } else {
                    q
                }
            }
            #[inline(always)]
            fn left(x: $t, y: $t) -> $t {
                // A negative number of bits is a large one.
                let y = y as $bits;
                let shifted = $shift!(x as $bits, y, <<);
                (if (y as u32) < $t::BITS { shifted } else { 0 }) as $t
            }
            #[inline(always)]
            fn right(x: $t, y: $t) -> $t {
                let (y, most) = (y as $bits, ($t::BITS - 1) as $bits);
                let within = if y < most { y } else { most };
                let shifted = $shift!(x, within, >>);
                if $t::MIN == 0 && y > most { 0 } else { shifted }
            }
        }
    )* };
}
/// Bytes have no instruction that shifts each by its own number: a step for each bit of it.
macro_rules! in_steps {
    ($x:expr, $y:expr, $by:tt) => {{
        let (mut x, y) = ($x, $y);
        for bit in [1, 2, 4] {
            x = if y & bit != 0 { x $by bit } else { x };
        }
        x
    }};
}
macro_rules! at_once {
    ($x:expr, $y:expr, >>) => {
        (($x as i32) >> ($y as u32 & 31)) as _
    };
    ($x:expr, $y:expr, <<) => {
        (($x as u32) << ($y as u32 & 31)) as _
    };
}
integers! {
    u8 by f32, in_steps u8;
    i8 by f32, in_steps u8;
    i16 by f32, at_once u16;
    i32 by f64, at_once u32;
}

/// Integer power with wrapping; a negative exponent gives 0 except for bases 1 and -1.
pub fn power(x: i64, e: i64) -> i64 {
    if e >= 0 {
        let (mut base, mut e, mut out) = (x, e as u64, 1i64);
        while e > 0 {
            if e & 1 == 1 {
                out = out.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            e >>= 1;
        }
        return out;
    }
    match x {
        1 => 1,
        -1 => {
            if e % 2 == 0 {
                1
            } else {
                -1
            }
        }
        _ => 0,
    }
}

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
                let bits = 8 * size_of::<I>() as i128;
                let fits = (0..bits).contains(&b);
                let by = if fits { b } else { bits };
                let want = [if fits { (a << b) as i64 } else { 0 }, (a >> by) as i64];
                let got = [I::left(p, q), I::right(p, q)];
                assert_eq!(got, want.map(I::of_i64), "{a} {b}");
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
