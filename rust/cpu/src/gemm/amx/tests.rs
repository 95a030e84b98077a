//! The tiles' arithmetic is a model here; packing, blocks, bounds and results are the real ones.

use super::tiles::{agree, tdpbf16ps};
use super::*;

/// The largest error of PyTorch's products of 1024 terms, and of 70 terms summed in order, as
/// shares of the sum of magnitudes.
const PYTORCH: f64 = 1.3e-7;
const SEQUENTIAL: f64 = 3e-7;

/// The product by the model, and beside it in float64: the sum and the sum of magnitudes.
struct Case {
    m: usize,
    n: usize,
    k: usize,
    a: Vec<f32>,
    b: Vec<f32>,
}

fn noise(n: usize, seed: u64) -> impl Iterator<Item = f64> {
    let mut s = seed * 2 + 1;
    let mut next = move || {
        s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
        (s >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    };
    (0..n).map(move |_| next() + next() + next() + next())
}

impl Case {
    fn new((m, n, k): (usize, usize, usize)) -> Case {
        let vector = |n, seed| noise(n, seed).map(|x| x as f32).collect();
        let (a, b) = (vector(m * k, 1), vector(k * n, 2));
        Case { m, n, k, a, b }
    }

    /// C = A B with A and B stored by rows or columns, or wide apart.
    fn run(&self, terms: usize, layouts: (usize, usize)) -> Option<Vec<f32>> {
        let mut c = vec![f32::NAN; self.m * self.n];
        let c_at = Mat::new(c.as_mut_ptr(), self.n as isize, 1);
        self.product(
            terms,
            layouts,
            (1.0, 0.0),
            Mat::new(c_at.ptr, c_at.rs, 1),
            c_at,
        )?;
        Some(c)
    }

    fn product(
        &self,
        terms: usize,
        layouts: (usize, usize),
        (alpha, beta): (f32, f32),
        d: Mat<*mut f32>,
        c: Mat<*mut f32>,
    ) -> Option<()> {
        let laid = |x: &[f32], rows: usize, columns: usize, layout| -> (Vec<f32>, isize, isize) {
            let (rs, cs) = match layout {
                0 => (columns, 1),
                1 => (1, rows),
                _ => (3 * columns + 1, 3),
            };
            let mut y = vec![f32::NAN; rows * rs.max(1) + columns * cs];
            for (i, &x) in x.iter().enumerate() {
                y[i / columns * rs + i % columns * cs] = x;
            }
            (y, rs as isize, cs as isize)
        };
        let (a, a_rs, a_cs) = laid(&self.a, self.m, self.k, layouts.0);
        let (b, b_rs, b_cs) = laid(&self.b, self.k, self.n, layouts.1);
        let p = Problem {
            m: self.m,
            n: self.n,
            k: self.k,
            alpha,
            a: Mat::new(a.as_ptr(), a_rs, a_cs),
            b: Mat::new(b.as_ptr(), b_rs, b_cs),
            beta,
            d: Mat::new(d.ptr.cast_const(), d.rs, d.cs),
            c,
            reduced: false,
        };
        // SAFETY: the buffers hold what the sizes and steps name.
        unsafe { run::<f32, Model>(&f32::native()?, &p, terms) };
        Some(())
    }

    /// The largest error as a share of the sum of magnitudes.
    fn error(&self, c: &[f32]) -> f64 {
        let mut worst = 0f64;
        for (at, &c) in c.iter().enumerate() {
            let (mut sum, mut size) = (0f64, 0f64);
            for q in 0..self.k {
                let x = self.a[at / self.n * self.k + q] as f64;
                let x = x * self.b[q * self.n + at % self.n] as f64;
                sum += x;
                size += x.abs();
            }
            let error = (c as f64 - sum).abs() / size.max(f64::MIN_POSITIVE);
            assert!(error >= 0.0, "{c} for {sum}");
            worst = worst.max(error);
        }
        worst
    }
}

#[test]
fn model_rounds_and_flushes_as_specified() {
    let number = |x: f32| bf16::from_f32(x).to_bits();
    let (mut a, mut b) = ([[0u16; 32]; 16], [[0u16; 32]; 16]);
    let mut c = [[0f32; 16]; 16];
    // Row 3 of A: 1 + 2^-24 at even depths, 2^-24 + 2^-24 at odd ones. Ties go to even: first 1,
    // then 2^-23, then their sum, which one sum in order of depth would not find.
    for (i, (x, y)) in [
        (0, (1.0, 2f32.powi(-24))),
        (5, (2f32.powi(-24), 2f32.powi(-24))),
    ] {
        (a[3][2 * i], a[3][2 * i + 1]) = (number(x), number(y));
        (b[i][14], b[i][15]) = (number(1.0), number(1.0));
    }
    c[3][7] = 2.0;
    tdpbf16ps(&mut c, &a, &b);
    let mut want = [[0f32; 16]; 16];
    want[3][7] = 3.0 + 2f32.powi(-22) * 0.5;
    assert_eq!(want[3][7], 3.0);
    assert_eq!(c, want);
    c[3][7] = 0.0;
    tdpbf16ps(&mut c, &a, &b);
    assert_eq!(c[3][7], 1.0 + 2f32.powi(-23));
    // Denormal operands, products and sums are zero.
    for (x, y, to) in [
        (f32::MIN_POSITIVE / 2.0, 1e30, 0.0),
        (1e-20, 1e-20, 0.0),
        (f32::MIN_POSITIVE, 1.0, 1.0 + 2f32.powi(-23)),
    ] {
        (a, b) = ([[0; 32]; 16], [[0; 32]; 16]);
        (a[0][0], b[0][0]) = (number(x), number(y));
        let mut c = [[f32::MIN_POSITIVE / 2.0; 16]; 16];
        c[3][7] = 1.0 + 2f32.powi(-23);
        tdpbf16ps(&mut c, &a, &b);
        let first = if to == 0.0 { 0.0 } else { x * y };
        assert_eq!(
            (c[0][0], c[3][7], c[1][1]),
            (first, 1.0 + 2f32.powi(-23), 0.0)
        );
    }
}

#[test]
fn engines_agree_with_plain_sums() {
    /// Sums in float64, without tiles; or the columns of B exchanged.
    struct Plain<const WRONG: bool>(Model, [[f64; SIDE]; SIDE]);
    impl<const WRONG: bool> Engine for Plain<WRONG> {
        fn new() -> Self {
            Plain(Model::default(), [[0.0; SIDE]; SIDE])
        }
        unsafe fn begin() {}
        unsafe fn end() {}
        unsafe fn zero(&mut self) {
            self.1 = [[0.0; SIDE]; SIDE];
        }
        unsafe fn load_a(&mut self, p: *const u16) {
            // SAFETY: `p` has PAIR numbers.
            unsafe {
                self.0.load_a(p);
            }
        }
        unsafe fn load_b(&mut self, p: *const u16) {
            // SAFETY: `p` has PAIR numbers.
            unsafe {
                self.0.load_b(p);
            }
        }
        unsafe fn dot(&mut self) {
            let wide = |x: u16| bf16::from_bits(x).to_f64();
            for i in 0..SIDE {
                for j in 0..SIDE {
                    for q in 0..SIDE {
                        let x = self.0.a[i / 16][i % 16][q];
                        let y = self.0.b[(j / 16) ^ WRONG as usize][q / 2][j % 16 * 2 + q % 2];
                        self.1[i][j] += wide(x) * wide(y);
                    }
                }
            }
        }
        unsafe fn store(&self, c: *mut f32) {
            // SAFETY: `c` has room for SIDE rows of SIDE numbers.
            unsafe {
                for (i, x) in self.1.as_flattened().iter().enumerate() {
                    *c.add(i) = *x as f32;
                }
            }
        }
    }
    // SAFETY: neither needs instructions.
    assert!(unsafe { agree::<Plain<false>, Model>() && !agree::<Plain<true>, Model>() });
}

#[test]
fn float32_is_as_exact_as_its_own_products() {
    for size in [
        (33, 70, 65),
        (32, 32, 32),
        (1, 5, 300),
        (50, 17, 1),
        (64, 40, 1100),
    ] {
        let case = Case::new(size);
        for layouts in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)] {
            let Some(c) = case.run(3, layouts) else {
                return;
            };
            let error = case.error(&c);
            assert!(error < PYTORCH, "{size:?} {layouts:?} {error}");
        }
    }
    // Blocks of rows, columns and depth.
    let case = Case::new((1300, 40, 33));
    assert!(case.error(&case.run(3, (0, 1)).unwrap()) < SEQUENTIAL);
    let case = Case::new((32, 1300, 33));
    assert!(case.error(&case.run(3, (1, 0)).unwrap()) < SEQUENTIAL);
}

#[test]
fn fewer_terms_are_less_exact() {
    let case = Case::new((64, 64, 512));
    let Some(c) = case.run(2, (0, 1)) else { return };
    let error = case.error(&c);
    assert!(1e-7 < error && error < 4e-6, "{error}");
    let error = case.error(&case.run(1, (1, 0)).unwrap());
    assert!(1e-5 < error && error < 1e-3, "{error}");
}

#[test]
fn bounds_keep_sums_exact() {
    let range = |most: i32, least: i32| Some((2f64.powi(most), 2f64.powi(least)));
    assert!(exact(64, range(60, -39), range(60, -39)));
    assert!(!exact(64, range(61, -39), range(60, -39)));
    assert!(!exact(64, range(60, -39), range(60, -40)));
    assert!(exact(1, range(0, -103), range(30, 25)));
    assert!(!exact(1, range(0, -104), range(30, 30)));
    // Nothing but zeros: but what is not finite counts.
    assert!(exact(64, Some((0.0, 0.0)), range(120, -100)));
    assert!(!exact(64, Some((0.0, 0.0)), None));
    for (x, finite) in [(2f32.powi(127), false), (f32::NAN, false), (1e38, true)] {
        let bounds = Bounds::new();
        bounds.add((x.to_bits(), 0x100));
        bounds.add((0, u32::MAX));
        assert_eq!(bounds.take().is_some(), finite);
        assert_eq!(bounds.take(), Some((0.0, 0.0)));
    }
}

#[test]
fn large_small_and_infinite_numbers_take_the_other_kernels() {
    if f32::native().is_none() {
        return;
    }
    let sizes = [
        (1e-30f32, 1e-8f32),
        (1e-38, 1.0),
        (1e-44, 1e30),
        (1e-22, 1e-22),
        (1e30, 1e6),
        (1e19, 1e18),
        (1e38, 1e-30),
        (1e-12, 1e-12),
        (1e9, 1e9),
    ];
    for (x, y) in sizes {
        let mut case = Case::new((40, 33, 70));
        case.a.iter_mut().for_each(|v| *v *= x);
        case.b.iter_mut().for_each(|v| *v *= y);
        let c = case.run(3, (0, 0)).unwrap();
        // Results that are denormal are rounded to multiples of 2^-149.
        if x * y > 1e-30 {
            let error = case.error(&c);
            assert!(error < SEQUENTIAL, "{x} {y} {error}");
        } else {
            for (at, &c) in c.iter().enumerate() {
                let (i, j) = (at / 33, at % 33);
                let term = |q| case.a[i * 70 + q] as f64 * case.b[q * 33 + j] as f64;
                let size: f64 = (0..70).map(|q| term(q).abs()).sum();
                let error = (c as f64 - (0..70).map(term).sum::<f64>()).abs();
                assert!(error < SEQUENTIAL * size + 70.0 * 2f64.powi(-149));
            }
        }
    }
    // One row of tiny numbers beside others, as exact as they are.
    let mut case = Case::new((40, 33, 70));
    case.a[..70].iter_mut().for_each(|v| *v *= 1e-36);
    assert!(case.error(&case.run(3, (0, 0)).unwrap()) < SEQUENTIAL);
    // Not finite: what sums in order give.
    for (at, v) in [(3, f32::INFINITY), (100, f32::NAN), (7, f32::MAX)] {
        let mut case = Case::new((40, 33, 70));
        case.a[at] = v;
        case.b[0] = 0.0;
        let c = case.run(3, (1, 0)).unwrap();
        for (at, &c) in c.iter().enumerate() {
            let (i, j) = (at / 33, at % 33);
            let term = |q| case.a[i * 70 + q] as f64 * case.b[q * 33 + j] as f64;
            let want = (0..70).map(term).sum::<f64>() as f32;
            let near = (c - want).abs() <= want.abs() * 1e-4 + 1e-4;
            assert!(
                c == want || c.is_nan() && want.is_nan() || near,
                "{c} {want}"
            );
        }
    }
}

#[test]
fn results_are_scaled_and_added() {
    let case = Case::new((45, 37, 600));
    let Some(plain) = case.run(3, (0, 0)) else {
        return;
    };
    let (m, n) = (case.m, case.n);
    let noise: Vec<f32> = noise(m * n, 5).map(|x| x as f32).collect();
    // What is added: C itself, a row, a column, a matrix by columns.
    for (which, steps) in [(0, (n, 1)), (1, (0, 1)), (2, (1, 0)), (3, (1, m))] {
        let mut c = noise.clone();
        let mut d = noise.clone();
        let at = Mat::new(c.as_mut_ptr(), n as isize, 1);
        let from = if which == 0 { at.ptr } else { d.as_mut_ptr() };
        let d_at = Mat::new(from, steps.0 as isize, steps.1 as isize);
        case.product(3, (1, 0), (-2.0, 0.5), d_at, at).unwrap();
        for i in 0..m {
            for j in 0..n {
                let want = -2.0 * plain[i * n + j] + 0.5 * noise[i * steps.0 + j * steps.1];
                let near = (c[i * n + j] - want).abs() < 2e-5;
                assert!(near, "{which} {i} {j} {} {want}", c[i * n + j]);
            }
        }
    }
    // Rows wider than the matrix: nothing is written beside it.
    let step = n + 3;
    let mut c = vec![7f32; m * step];
    let at = Mat::new(c.as_mut_ptr(), step as isize, 1);
    case.product(3, (0, 0), (1.0, 0.0), at, at).unwrap();
    for (i, row) in c.chunks(step).enumerate() {
        assert_eq!(row[..n], plain[i * n..][..n]);
        assert_eq!(row[n..], [7.0; 3]);
    }
}

/// Products of a half type with `digits` beside sums in float64.
fn halves<T: Operand>(of: fn(f64) -> T, wide: fn(T) -> f64, terms: usize, digits: i32) {
    let Some(x) = T::native() else { return };
    for (m, n, k) in [(33, 70, 65), (40, 31, 2100), (5, 3, 1), (64, 33, 31)] {
        let vector = |n, seed| -> Vec<T> { noise(n, seed).map(of).collect() };
        let (a, b, d) = (vector(m * k * 2, 1), vector(k * n * 2, 2), vector(n, 3));
        for layout in 0..3 {
            // By rows, by columns, every second element.
            let steps = |r: usize, c: usize| match layout {
                0 => (c as isize, 1),
                1 => (1, r as isize),
                _ => (2 * c as isize, 2),
            };
            let ((a_rs, a_cs), (b_rs, b_cs)) = (steps(m, k), steps(k, n));
            let mut c = vec![of(f64::NAN); m * n];
            let p = Problem {
                m,
                n,
                k,
                alpha: 1.0,
                a: Mat::new(a.as_ptr(), a_rs, a_cs),
                b: Mat::new(b.as_ptr(), b_rs, b_cs),
                beta: 1.0,
                d: Mat::new(d.as_ptr(), 0, 1),
                c: Mat::new(c.as_mut_ptr(), n as isize, 1),
                reduced: false,
            };
            // SAFETY: the buffers hold what the sizes and steps name.
            unsafe { run::<T, Model>(&x, &p, terms) };
            for i in 0..m {
                for j in 0..n {
                    let (mut sum, mut size) = (wide(d[j]), wide(d[j]).abs());
                    for q in 0..k {
                        let x = wide(a[(i as isize * a_rs + q as isize * a_cs) as usize])
                            * wide(b[(q as isize * b_rs + j as isize * b_cs) as usize]);
                        sum += x;
                        size += x.abs();
                    }
                    let error = (wide(c[i * n + j]) - sum).abs();
                    let bound = sum.abs() * 2f64.powi(-digits) * 1.001 + size * 2e-7;
                    assert!(error <= bound, "{m} {n} {k} {i} {j} {error} {bound}");
                }
            }
        }
    }
}

#[test]
fn bfloat16_is_summed_in_float32_and_rounded_once() {
    halves(bf16::from_f64, bf16::to_f64, 1, 8);
}

#[test]
fn float16_is_two_terms_without_a_remainder() {
    for bits in 0..=u16::MAX {
        let (y, x) = (f32::from_bits(wide(bits)), f16::from_bits(bits).to_f32());
        assert!(
            y.to_bits() == x.to_bits() || y.is_nan() && x.is_nan(),
            "{bits:x}: {y}, not {x}"
        );
        let mut bounds = (ZERO, ZERO);
        let row = Row([wide(bits); 16]);
        let terms = split::<f16>(&row, &mut bounds.0, &mut bounds.1);
        if x.is_finite() {
            let [high, low, rest] = terms.map(|t| f32::from_bits(t.0[3]));
            assert_eq!((high + low, rest), (x, 0.0));
            assert!(!high.is_subnormal() && !low.is_subnormal());
        }
    }
    halves(f16::from_f64, f16::to_f64, 2, 11);
}

#[test]
fn float16_beyond_its_range_takes_the_other_kernels() {
    let Some(x) = f16::native() else { return };
    let (m, n, k) = (40, 33, 70);
    let mut a = vec![f16::from_f32(1.0); m * k];
    let b = vec![f16::from_f32(0.5); k * n];
    (a[3], a[k]) = (f16::INFINITY, f16::NAN);
    let mut c = vec![f16::ZERO; m * n];
    let p = Problem {
        m,
        n,
        k,
        alpha: 1.0,
        a: Mat::new(a.as_ptr(), k as isize, 1),
        b: Mat::new(b.as_ptr(), n as isize, 1),
        beta: 0.0,
        d: Mat::new(b.as_ptr(), 0, 0),
        c: Mat::new(c.as_mut_ptr(), n as isize, 1),
        reduced: false,
    };
    // SAFETY: the buffers hold what the sizes and steps name.
    unsafe { run::<f16, Model>(&x, &p, 2) };
    assert!(c[..n].iter().all(|&v| v == f16::INFINITY));
    assert!(c[n..2 * n].iter().all(|v| v.is_nan()));
    assert!(c[2 * n..].iter().all(|&v| v == f16::from_f32(35.0)));
}
