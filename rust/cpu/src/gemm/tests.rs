use super::*;
use crate::pool::set_num_threads;

/// Numbers from -8 to 7 in sixteenths, exact in every type but the integers.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut s = seed * 2 + 1;
    let mut next = || {
        s = s
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((s >> 56) & 15) as f64 - 8.0
    };
    (0..n).map(|_| next()).collect()
}

/// Rows first, columns first, and every second element.
fn steps(rows: usize, cols: usize) -> [(isize, isize); 3] {
    [
        (cols as isize, 1),
        (1, rows as isize),
        (2 * cols as isize, 2),
    ]
}

/// Operands with the steps of theirs, and the product without factors, in rows.
struct Case {
    size: (usize, usize, usize),
    a: (Vec<f64>, (isize, isize)),
    b: (Vec<f64>, (isize, isize)),
    sums: Vec<f64>,
}

impl Case {
    fn new((m, n, k): (usize, usize, usize), sa: (isize, isize), sb: (isize, isize)) -> Case {
        let (a, b) = (numbers(m * k * 2, 1), numbers(k * n * 2, 2));
        let mut sums = vec![0.0; m * n];
        for i in 0..m {
            for q in 0..k {
                let x = a[(i as isize * sa.0 + q as isize * sa.1) as usize];
                let from = q as isize * sb.0;
                for (j, sum) in sums[i * n..(i + 1) * n].iter_mut().enumerate() {
                    *sum += x * b[(from + j as isize * sb.1) as usize];
                }
            }
        }
        Case {
            size: (m, n, k),
            a: (a, sa),
            b: (b, sb),
            sums,
        }
    }

    fn check<T: GemmElem + PartialEq + std::fmt::Debug>(
        &self,
        from: fn(f64) -> T,
        acc: fn(f64) -> T::Acc,
    ) {
        let (m, n, k) = self.size;
        let c = numbers(m * n * 2, 3);
        let typed = |x: &[f64]| x.iter().map(|&x| from(x)).collect::<Vec<T>>();
        let (a, b) = (typed(&self.a.0), typed(&self.b.0));
        for ((cr, cc), beta) in steps(m, n).into_iter().zip([0.0, 1.0, 2.0]) {
            let mut y = typed(&c);
            // SAFETY: the buffers have twice the elements that the densest steps need.
            unsafe {
                gemm(
                    m,
                    n,
                    k,
                    acc(2.0),
                    a.as_ptr(),
                    self.a.1 .0,
                    self.a.1 .1,
                    b.as_ptr(),
                    self.b.1 .0,
                    self.b.1 .1,
                    acc(beta),
                    y.as_mut_ptr(),
                    cr,
                    cc,
                );
            }
            for i in 0..m {
                for j in 0..n {
                    let at = (i as isize * cr + j as isize * cc) as usize;
                    let want = from(2.0 * self.sums[i * n + j] + beta * c[at]);
                    assert_eq!(y[at], want, "{m} {n} {k}, row {i}, column {j}");
                }
            }
        }
    }
}

#[test]
fn short_products_agree_with_plain_loops() {
    agree(&[
        (1, 1, 1),
        (1, 7, 5),
        (9, 1, 130),
        (3, 4, 5),
        (16, 17, 15),
        (33, 70, 65),
        (2, 530, 9),
        (300, 2, 64),
        (5, 3, 0),
        (1, 1, 40_000),
        (1, 70, 66),
        (1, 4500, 300),
        (13, 9, 130),
        // Fewer rows than two tiles have, which then share them.
        (7, 530, 300),
        (8, 530, 260),
        (16, 5, 200),
    ]);
    // In blocks of rows and columns.
    let case = Case::new((150, 40, 270), (270, 1), (40, 1));
    case.check::<f32>(|x| x as f32, |x| x as f32);
    case.check::<f64>(|x| x, |x| x);
}

#[test]
fn long_products_agree_with_plain_loops() {
    agree(&[
        (150, 40, 270),
        (3, 300, 1000),
        (70, 67, 130),
        (130, 129, 300),
        (5, 7, 9000),
    ]);
}

fn agree(sizes: &[(usize, usize, usize)]) {
    set_num_threads(4);
    for &s in sizes {
        for sa in steps(s.0, s.2) {
            for sb in steps(s.2, s.1) {
                let case = Case::new(s, sa, sb);
                case.check::<f32>(|x| x as f32, |x| x as f32);
                case.check::<f64>(|x| x, |x| x);
                case.check::<bf16>(bf16::from_f64, |x| x as f32);
                case.check::<f16>(f16::from_f64, |x| x as f32);
                case.check::<i64>(|x| x as i64, |x| x as i64);
                case.check::<i32>(|x| x as i32, |x| x as i32);
                // Wraps as the low bits of the exact sum do.
                case.check::<i8>(|x| x as i64 as i8, |x| x as i8);
                case.check::<u8>(|x| x as i64 as u8, |x| x as u8);
            }
        }
    }
}

/// Both ways cut depth alike, so they give the same bits, whatever packs and whoever takes part.
fn same_bits<T: GemmElem>(from: fn(f64) -> T, one: T::Acc, bits: fn(T) -> u64) {
    let Some(x) = T::native() else { return };
    let Some(stream) = x.stream else { return };
    let typed = |n: usize, seed| {
        let x = numbers(n, seed);
        let thirds = x.iter().enumerate().map(|(i, x)| x / (1 + i % 7) as f64);
        thirds.map(from).collect::<Vec<T>>()
    };
    let sizes = [
        (6, 16, 8),
        (7, 17, 9),
        (13, 50, 193),
        (64, 64, 64),
        (65, 400, 200),
    ];
    for (m, n, k) in sizes
        .into_iter()
        .chain([(600, 100, 31), (9, 1500, 12), (30, 33, 1100)])
    {
        // In rows, in columns, in rows 4 KB apart and so packed, and in no order.
        let steps = |rows: usize, columns: usize| {
            let apart = columns.next_multiple_of(1024) as isize;
            let odd = 3 * columns as isize + 1;
            [
                (columns as isize, 1),
                (1, rows as isize),
                (apart, 1),
                (odd, 3),
            ]
        };
        for (i, sa) in steps(m, k).into_iter().enumerate() {
            for (j, sb) in steps(k, n).into_iter().enumerate() {
                let room = |rows: usize, s: (isize, isize), columns: usize| {
                    rows * s.0 as usize + columns * s.1 as usize
                };
                let (a, b) = (typed(room(m, sa, k), 4), typed(room(k, sb, n), 5));
                let (d, bias) = (typed(m * n, 6), typed(m, 7));
                let (beta, d) = match (i + j) % 3 {
                    0 => (T::Acc::ZERO, Mat::new(d.as_ptr(), n as isize, 1)),
                    1 => (one, Mat::new(d.as_ptr(), n as isize, 1)),
                    _ => (one, Mat::new(bias.as_ptr(), 1, 0)),
                };
                let run = |f: &dyn Fn(&Problem<T>)| {
                    let mut c = typed(m * n, 8);
                    f(&Problem {
                        m,
                        n,
                        k,
                        alpha: one,
                        a: Mat::new(a.as_ptr(), sa.0, sa.1),
                        b: Mat::new(b.as_ptr(), sb.0, sb.1),
                        beta,
                        d,
                        c: Mat::new(c.as_mut_ptr(), n as isize, 1),
                        reduced: false,
                    });
                    c.into_iter().map(bits).collect::<Vec<_>>()
                };
                // SAFETY: the operands have the elements that the sizes and steps name.
                let want = run(&|p| unsafe {
                    drive::vectors(&x, p, |way| {
                        drive::blocked(way, None, k.div_ceil(x.each), p)
                    })
                });
                for threads in [1, 2, 5] {
                    set_num_threads(threads);
                    // SAFETY: the operands have the elements that the sizes and steps name; the
                    // machine has the kernels.
                    let got = run(&|p| unsafe { stream::streamed(stream, p) });
                    assert!(
                        got == want,
                        "{m} {n} {k} {sa:?} {sb:?} of {threads} threads"
                    );
                }
                set_num_threads(4);
            }
        }
    }
}

#[test]
fn streamed_products_are_those_of_shared_panels() {
    same_bits::<f32>(|x| x as f32, 1.0, |x| x.to_bits().into());
    same_bits::<f64>(|x| x, 1.0, f64::to_bits);
    same_bits::<f16>(f16::from_f64, 1.0, |x| x.to_bits().into());
    same_bits::<bf16>(bf16::from_f64, 1.0, |x| x.to_bits().into());
}

/// What is packed lies in the cache that it is read from, for tiles of every processor: a block of B
/// in the room that the second cache gives, a tile of A in half of a first one of 32 KB, and, where panels are
/// shared, a panel of B and a tile of A in one of 48 KB (of 32 KB with AVX2).
#[test]
fn packed_operands_stay_in_their_caches() {
    for threads in [1, 2, 7, 64] {
        set_num_threads(threads);
        for (height, wide, size, depth) in [
            (8, 48, 4, native::DEPTH),
            (8, 24, 8, native::DEPTH),
            (6, 16, 4, native::DEPTH),
            (6, 8, 8, native::DEPTH),
            (8, 48, 4, 512),
        ] {
            for m in [1, 5, 64, 1000, 5000] {
                for n in [1, 17, 333, 1024, 9000] {
                    for k in [1, 100, 192, 193, 1024, 1025, 7777] {
                        let p = stream::Plan::new((m, n, k), (height, wide), size, depth);
                        assert!(p.deep <= depth, "{m} {n} {k}: {p:?}");
                        let panel = p.deep * wide * size;
                        let block = p.panels.div_ceil(p.across) * panel;
                        assert!(block <= stream::room(m).max(panel), "{m} {n} {k}: {p:?}");
                        assert!(p.down <= p.tiles && p.across <= p.panels.max(threads));
                        assert!(p.deep * height * size <= 16 << 10, "{m} {n} {k}: {p:?}");
                    }
                }
            }
        }
    }
    set_num_threads(4);
    for (rows, columns, size, cache) in [
        (14, 32, 4, 48),
        (14, 16, 8, 48),
        (6, 16, 4, 32),
        (6, 8, 8, 32),
    ] {
        assert!(native::DEPTH * (rows + columns) * size <= cache << 10);
    }
}

#[test]
fn beta_zero_overwrites_nan_and_empty_sums_are_zero() {
    let x = [1.0f32; 64];
    for (m, n, k) in [(8, 8, 8), (8, 1, 8), (1, 8, 8), (8, 8, 0)] {
        let mut c = [f32::NAN; 64];
        // SAFETY: all sizes stay within 64 elements.
        unsafe {
            gemm(
                m,
                n,
                k,
                1.0,
                x.as_ptr(),
                8,
                1,
                x.as_ptr(),
                n as isize,
                1,
                0.0,
                c.as_mut_ptr(),
                n as isize,
                1,
            );
        }
        assert!(c[..m * n].iter().all(|&y| y == k as f32));
    }
    // SAFETY: 64 elements each.
    assert_eq!(unsafe { dot(64, x.as_ptr(), 1, x.as_ptr(), 1) }, 64.0);
}

#[test]
fn half_values_widen_exactly() {
    for bits in 0..=u16::MAX {
        let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert!(x.widen() == x.to_f32() || x.is_nan() && x.widen().is_nan());
        assert!(y.widen() == y.to_f32() || y.is_nan() && y.widen().is_nan());
    }
}

/// A matrix of small whole numbers that is nowhere in memory.
struct Formula(usize);

impl Formula {
    fn at(&self, lane: usize, depth: usize) -> f32 {
        ((lane * 7 + depth * self.0) % 11) as f32 - 5.0
    }
}

impl Pack<f32> for Formula {
    unsafe fn pack(&self, lanes: Range<usize>, depth: Range<usize>, width: usize, dst: *mut f32) {
        // SAFETY: `dst` has room for `depth.len()` rows of `width`.
        unsafe {
            assert!(lanes.len() <= width && width <= 32 && depth.len() <= 256);
            for (i, q) in depth.enumerate() {
                for j in 0..width {
                    let x = if j < lanes.len() {
                        self.at(lanes.start + j, q)
                    } else {
                        0.0
                    };
                    dst.add(i * width + j).write(x);
                }
            }
        }
    }
}

#[test]
fn operands_may_pack_themselves() {
    set_num_threads(4);
    let (a, b) = (Formula(3), Formula(5));
    for (m, n, k) in [
        (1, 1, 1),
        (5, 40, 300),
        (70, 33, 64),
        (20, 1300, 20),
        (3, 4, 0),
    ] {
        let (mut c, bias) = (vec![f32::NAN; m * n], vec![2.0f32; m]);
        let p = Problem {
            m,
            n,
            k,
            alpha: 1.0,
            a: Mat::new(std::ptr::null(), 0, 0),
            b: Mat::new(std::ptr::null(), 0, 0),
            beta: 0.5,
            d: Mat::new(bias.as_ptr(), 1, 0),
            c: Mat::new(c.as_mut_ptr(), n as isize, 1),
            reduced: false,
        };
        // SAFETY: C has m x n elements, the bias m.
        unsafe { multiply_packed(&a, &b, &p) };
        for (at, &c) in c.iter().enumerate() {
            let sum: f32 = (0..k).map(|q| a.at(at / n, q) * b.at(at % n, q)).sum();
            assert_eq!(c, sum + 1.0, "{m} {n} {k}");
        }
    }
}
