//! Each operation of each kind of vector against the same on its elements.

use super::*;
use std::fmt::Debug;

/// An element whose bits can be compared.
trait Bits: Lane + Debug {
    const SPECIAL: [Self; 16];
    fn number(i: i32) -> Self;
    fn bits(self) -> u64;
    fn is_nan(self) -> bool;
    /// self * b + c rounded once, and twice.
    fn fused_or_not(self, b: Self, c: Self) -> [Self; 2];
}

macro_rules! floats {
    ($($t:ident)*) => { $(
        impl Bits for $t {
            const SPECIAL: [$t; 16] = [
                0.0, -0.0, 1.0, -1.0, 0.1, -3.7, $t::NAN, $t::INFINITY, $t::NEG_INFINITY,
                $t::MAX, $t::MIN, $t::MIN_POSITIVE, $t::from_bits(1), -$t::from_bits(3),
                $t::MIN_POSITIVE / 2.0, 1.5e30,
            ];
            fn number(i: i32) -> $t {
                i as $t
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            fn fused_or_not(self, b: $t, c: $t) -> [$t; 2] {
                [self.mul_add(b, c), self * b + c]
            }
        }
    )* };
}
floats!(f32 f64);

/// Whether two numbers are the same, -0 not being 0; a NaN is as good as another.
fn same<T: Bits>(a: T, b: T) -> bool {
    a.bits() == b.bits() || a.is_nan() && b.is_nan()
}

/// Operations on lanes, for every pair of special numbers.
// SAFETY: the machine has the instructions.
unsafe fn check_special<V: Simd>()
where
    V::Elem: Bits,
{
    let special = V::Elem::SPECIAL;
    let zero = V::Elem::default();
    for shift in 0..special.len() {
        for from in (0..special.len()).step_by(V::LANES) {
            let a: [V::Elem; MOST] = std::array::from_fn(|i| special[(from + i) % 16]);
            let b: [V::Elem; MOST] = std::array::from_fn(|i| special[(from + i + shift) % 16]);
            let c: [V::Elem; MOST] = std::array::from_fn(|i| special[(i * 5 + shift) % 16]);
            // SAFETY: the arrays have the lanes of any vector.
            unsafe {
                let load = |x: &[V::Elem; MOST]| V::load(x.as_ptr());
                let (x, y, z) = (load(&a), load(&b), load(&c));
                let check = |what: &str, v: V, want: &dyn Fn(usize) -> V::Elem| {
                    for (i, &got) in lanes(v)[..V::LANES].iter().enumerate() {
                        let want = want(i);
                        assert!(
                            same(got, want),
                            "{what} of {:?} and {:?}: {got:?}, not {want:?}",
                            a[i],
                            b[i]
                        );
                    }
                };
                check("load", x, &|i| a[i]);
                check("add", x.add(y), &|i| a[i].plus(b[i]));
                check("sub", x.sub(y), &|i| a[i].minus(b[i]));
                check("mul", x.mul(y), &|i| a[i].times(b[i]));
                check("abs", x.abs(), &|i| a[i].magnitude());
                check("max", x.max(y), &|i| if a[i] > b[i] { a[i] } else { b[i] });
                // A count begins at 0 and never is -0, to which not every machine adds a zero.
                check("count", z.add(V::splat(zero)).count(x), &|i| {
                    let one = if a[i] != zero { V::Elem::UNIT } else { zero };
                    c[i].plus(zero).plus(one)
                });
                check("splat", V::splat(a[0]), &|_| a[0]);
                let fma = lanes(x.fma(y, z));
                for i in 0..V::LANES {
                    let want = a[i].fused_or_not(b[i], c[i]);
                    let fits = want.iter().any(|&want| same(fma[i], want));
                    assert!(fits, "{:?} {:?} {:?}: {:?}", a[i], b[i], c[i], fma[i]);
                }
            }
        }
    }
}

/// What moves, adds up and leaves out elements, on small whole numbers, whose sums are exact in any
/// order, and on tails of every length.
/// Every number of both half types widened, and those and their neighbours' middles narrowed; where each type's
/// numbers come from, the crate `half`.
// SAFETY: the machine has the instructions.
unsafe fn check_halves<V: Simd>()
where
    V::Elem: Bits,
{
    for first in (0..=u16::MAX).step_by(MOST) {
        let bits: [u16; MOST] = std::array::from_fn(|i| first + i as u16);
        // SAFETY: the arrays have the lanes of any vector.
        unsafe {
            let widened = [V::widen_f16(bits.as_ptr()), V::widen_bf16(bits.as_ptr())];
            for (half, v) in widened.into_iter().enumerate() {
                let of = |b: u16| match half {
                    0 => half::f16::from_bits(b).to_f32(),
                    _ => half::bf16::from_bits(b).to_f32(),
                };
                let back = |x: f32| match half {
                    0 => half::f16::from_f32(x).to_bits(),
                    _ => half::bf16::from_f32(x).to_bits(),
                };
                for (&b, got) in bits.iter().zip(&lanes(v)[..V::LANES]) {
                    assert!(
                        same(*got, V::Elem::of_f32(of(b))),
                        "{b:#x} widened: {got:?}"
                    );
                }
                // The number itself, the middle to the next one, and a little more and less than that.
                for add in [0i32, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001] {
                    let near =
                        |b: u16| f32::from_bits((of(b).to_bits() as i32).wrapping_add(add) as u32);
                    let x: [V::Elem; MOST] =
                        std::array::from_fn(|i| V::Elem::of_f32(near(bits[i])));
                    let (v, mut got) = (V::load(x.as_ptr()), [0; MOST]);
                    match half {
                        0 => v.narrow_f16(got.as_mut_ptr()),
                        _ => v.narrow_bf16(got.as_mut_ptr()),
                    }
                    for (&b, got) in bits.iter().zip(&got[..V::LANES]) {
                        let nan = near(b).is_nan() && of(*got).is_nan();
                        assert!(
                            nan || *got == back(near(b)),
                            "{:e} narrowed: {got:#x}",
                            near(b)
                        );
                    }
                }
            }
            let (one, two) = (V::splat(V::Elem::number(1)), V::splat(V::Elem::number(2)));
            for n in 0..=V::LANES {
                let joined = lanes(one.with_last(two, n));
                let (front, back) = joined[..V::LANES].split_at(V::LANES - n);
                assert!(front.iter().all(|&x| same(x, V::Elem::number(1))));
                assert!(back.iter().all(|&x| same(x, V::Elem::number(2))));
            }
        }
    }
}

// SAFETY: the machine has the instructions.
unsafe fn check_moves<V: Simd>()
where
    V::Elem: Bits,
{
    let n = V::LANES;
    let zero = V::Elem::default();
    let x: Vec<V::Elem> = (0..400).map(|i| V::Elem::number(i * 37 % 19 - 9)).collect();
    let untouched = V::Elem::number(50);
    let total = |x: &[V::Elem]| x.iter().fold(zero, |a, &b| a.plus(b));
    // SAFETY: 400 elements are more than what is read, and each `out` has room for what is written.
    unsafe {
        let at = |i: usize| x.as_ptr().add(i);
        let (a, b) = (V::load(at(0)), V::load(at(20)));
        assert_eq!(a.sum(), total(&x[..n]));
        let largest = x[20..20 + n]
            .iter()
            .fold(x[20], |a, &b| if b > a { b } else { a });
        assert_eq!(b.largest(), largest);

        let mut square = [a; MOST];
        for (r, row) in square[..n].iter_mut().enumerate() {
            *row = V::load(at(17 * r));
        }
        V::transpose(square.as_mut_ptr());
        for (c, row) in square[..n].iter().enumerate() {
            for (r, &y) in lanes(*row)[..n].iter().enumerate() {
                assert_eq!(y, x[17 * r + c], "row {r}, column {c}");
            }
        }

        for hi in 0..=n {
            for (i, &y) in lanes(V::load_first(at(3), hi))[..n].iter().enumerate() {
                assert_eq!(y, if i < hi { x[3 + i] } else { zero }, "{i} of {hi}");
            }
            let mut out = [untouched; 3 * MOST];
            a.store_first(out.as_mut_ptr(), hi);
            assert_eq!(out[..hi], x[..hi]);
            assert!(out[hi..].iter().all(|&y| y == untouched), "{hi}");

            let mut out = [untouched; 3 * MOST];
            a.store_second(out.as_mut_ptr(), hi);
            for (i, &y) in out.iter().enumerate() {
                let want = if i % 2 == 0 && i / 2 < hi {
                    x[i / 2]
                } else {
                    untouched
                };
                assert_eq!(y, want, "{i} of {hi}");
            }

            for lo in 0..=hi {
                let mut out = [untouched; 3 * MOST];
                V::copy_part(at(7), lo, hi, out.as_mut_ptr());
                V::copy_second(at(9), lo, hi, out.as_mut_ptr().add(n));
                for i in 0..n {
                    let inside = lo <= i && i < hi;
                    assert_eq!(
                        out[i],
                        if inside { x[7 + i] } else { zero },
                        "{i} {lo} {hi}"
                    );
                    let second = out[n + i];
                    assert_eq!(
                        second,
                        if inside { x[9 + 2 * i] } else { zero },
                        "{i} {lo} {hi}"
                    );
                }
                assert!(out[2 * n..].iter().all(|&y| y == untouched), "{lo} {hi}");
            }
        }

        for mask in (0..1u32 << n).step_by(if n > 8 { 37 } else { 1 }) {
            let some: Vec<_> = (0..n)
                .filter(|i| mask >> i & 1 != 0)
                .map(|i| x[20 + i])
                .collect();
            let mut out = [untouched; 3 * MOST];
            b.store_some(out.as_mut_ptr(), mask, (1 << some.len()) - 1);
            assert_eq!(out[..some.len()], some, "{mask:b}");
            assert!(
                out[some.len()..].iter().all(|&y| y == untouched),
                "{mask:b}"
            );
        }

        let vectors: [V; 8] = std::array::from_fn(|i| V::load(at(11 * i)));
        let mut sums = [V::Elem::UNIT; 11];
        V::add_sums(&vectors, sums.as_mut_ptr());
        V::add_sums(&[a, b, a], sums.as_mut_ptr().add(8));
        for (i, &sum) in sums[..8].iter().enumerate() {
            assert_eq!(
                sum,
                V::Elem::UNIT.plus(total(&x[11 * i..11 * i + n])),
                "{i}"
            );
        }
        for (i, from) in [0, 20, 0].into_iter().enumerate() {
            assert_eq!(sums[8 + i], V::Elem::UNIT.plus(total(&x[from..from + n])));
        }
        check_outer::<V, 1>(&x);
        check_outer::<V, 2>(&x);
        check_outer::<V, 5>(&x);
        check_outer::<V, 6>(&x);
        check_outer::<V, 7>(&x);
    }
}

// SAFETY: the machine has the instructions; `x` has 400 elements.
unsafe fn check_outer<V: Simd, const M: usize>(x: &[V::Elem])
where
    V::Elem: Bits,
{
    // The numbers are the last ones of an allocation, behind which nothing may be read.
    let column: Box<[V::Elem]> = x[5..5 + M].into();
    // SAFETY: loads end within the 400 elements of `x` or the M of `column`.
    unsafe {
        let row = [V::load(x.as_ptr()), V::load(x.as_ptr().add(33))];
        let mut sum = [[V::splat(V::Elem::UNIT); 2]; M];
        V::add_outer(column.as_ptr(), &row, &mut sum);
        for (i, sum) in sum.iter().enumerate() {
            for (j, &sum) in sum.iter().enumerate() {
                for (l, &sum) in lanes(sum)[..V::LANES].iter().enumerate() {
                    let want = x[5 + i].times(x[33 * j + l]).plus(V::Elem::UNIT);
                    assert_eq!(sum, want, "{i} {j} {l}");
                }
            }
        }
    }
}

/// Runs the checks of a vector, compiled for its instruction set.
macro_rules! vectors {
    ($($name:ident $set:ident $level:ident: $($v:ty),*;)*) => { $(
        #[test]
        fn $name() {
            crate::compiled! { $set:
                // SAFETY: called where the machine has the instructions.
                unsafe fn run() {
                    // SAFETY: the test runs this where the machine has the instructions.
                    unsafe { $( check_special::<$v>(); check_moves::<$v>(); check_halves::<$v>(); )* }
                }
            }
            if crate::isa::Level::detect().runs(crate::isa::Level::$level) {
                // SAFETY: it has just been asked.
                unsafe { run() }
            }
        }
    )* };
}
vectors! {
    arrays_do_what_elements_do portable Portable: [f32; 4], [f64; 2], [f32; 16], [f64; 8];
}
#[cfg(target_arch = "aarch64")]
vectors! {
    neon_does_what_elements_do neon Neon: F32x8, F64x4;
}
#[cfg(target_arch = "x86_64")]
vectors! {
    sse2_does_what_elements_do portable Portable:
        std::arch::x86_64::__m128, std::arch::x86_64::__m128d;
    avx2_does_what_elements_do avx2 Avx2: std::arch::x86_64::__m256, std::arch::x86_64::__m256d;
    avx512_does_what_elements_do avx512 Avx512:
        std::arch::x86_64::__m512, std::arch::x86_64::__m512d;
}

#[test]
fn integers_wrap() {
    let most = [i64::MAX; 4];
    // SAFETY: arrays ask for no instructions.
    assert_eq!(unsafe { most.add([1; 4]) }, [i64::MIN; 4]);
}
