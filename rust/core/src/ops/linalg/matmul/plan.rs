//! From tensors to products: batches, broadcasting and what is added.

use crate::cpu::gemm::{product, GemmElem, Mat, Problem};
use crate::cpu::pool::{num_threads, parallel_for, Ptr};
use crate::layout::contiguous_strides;
use crate::meta::Meta;
use smallvec::SmallVec;

/// One operand as a stack of matrices.
pub(super) struct Stack<'a> {
    pub batch: &'a [usize],
    strides: &'a [isize],
    pub rows: usize,
    pub cols: usize,
    pub rs: isize,
    pub cs: isize,
}

impl<'a> Stack<'a> {
    pub fn new(t: &'a Meta, transposed: bool, left: bool) -> Stack<'a> {
        let n = t.ndim();
        let (shape, strides) = (&t.shape()[..], &t.strides()[..]);
        if n < 2 {
            let (k, s) = (t.size(0), t.stride(0));
            let (rows, cols, rs, cs) = if left { (1, k, 0, s) } else { (k, 1, s, 0) };
            return Stack {
                batch: &[],
                strides: &[],
                rows,
                cols,
                rs,
                cs,
            };
        }
        let (i, j) = if transposed {
            (n - 1, n - 2)
        } else {
            (n - 2, n - 1)
        };
        Stack {
            batch: &shape[..n - 2],
            strides: &strides[..n - 2],
            rows: shape[i],
            cols: shape[j],
            rs: strides[i],
            cs: strides[j],
        }
    }

    /// The stride along dimension `d` of a batch of `n` dimensions that this one broadcasts to.
    fn step(&self, d: usize, n: usize) -> isize {
        match (d + self.batch.len()).checked_sub(n) {
            Some(i) if self.batch[i] != 1 => self.strides[i],
            _ => 0,
        }
    }
}

/// Steps of A, B, the result and what is added to it.
#[derive(Clone, Copy, PartialEq)]
struct Steps {
    a: isize,
    b: isize,
    y: isize,
    d: isize,
}

impl Steps {
    fn times(self, n: usize) -> Steps {
        let n = n as isize;
        Steps {
            a: self.a * n,
            b: self.b * n,
            y: self.y * n,
            d: self.d * n,
        }
    }
}

/// All multiplications of one call.
pub(super) struct Plan {
    /// Dimensions of the batch: sizes and steps.
    batch: SmallVec<[(usize, Steps); 4]>,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: (isize, isize),
    pub b: (isize, isize),
    pub y: (isize, isize),
    d: (isize, isize),
    sum: bool,
}

impl Plan {
    /// `d` are the steps of what is added, one for each dimension of the batch (none with `sum`),
    /// and then of rows and columns.
    pub fn new(a: &Stack, b: &Stack, batch: &[usize], sum: bool, d: &[isize]) -> Plan {
        let (m, n, k) = (a.rows, b.cols, a.cols);
        let (d_batch, d) = d.split_at(d.len().saturating_sub(2));
        let outer = contiguous_strides(batch);
        let mut plan = Plan {
            batch: SmallVec::new(),
            m,
            n,
            k,
            a: (a.rs, a.cs),
            b: (b.rs, b.cs),
            y: (n as isize, 1),
            d: if d.is_empty() { (0, 0) } else { (d[0], d[1]) },
            sum,
        };
        for (i, &count) in batch.iter().enumerate() {
            if count == 1 {
                continue;
            }
            let next = Steps {
                a: a.step(i, batch.len()),
                b: b.step(i, batch.len()),
                y: if sum { 0 } else { outer[i] * (m * n) as isize },
                d: d_batch.get(i).copied().unwrap_or(0),
            };
            match plan.batch.last_mut() {
                Some((n, s)) if *s == next.times(count) => (*n, *s) = (*n * count, next),
                _ => plan.batch.push((count, next)),
            }
        }
        plan.fold();
        plan
    }

    /// Takes inner dimensions of the batch for more rows of A, or for more depth of a sum.
    fn fold(&mut self) {
        while let Some(&(count, l)) = self.batch.last() {
            if self.sum {
                let k = self.k as isize;
                if self.k == 1 {
                    (self.a.1, self.b.0) = (l.a, l.b);
                } else if l.a != self.a.1 * k || l.b != self.b.0 * k {
                    return;
                }
                self.k *= count;
            } else {
                let m = self.m as isize;
                if l.b != 0 {
                    return;
                }
                if self.m == 1 {
                    (self.a.0, self.y.0, self.d.0) = (l.a, l.y, l.d);
                } else if l.a != self.a.0 * m || l.y != self.y.0 * m || l.d != self.d.0 * m {
                    return;
                }
                self.m *= count;
            }
            self.batch.pop();
        }
    }

    /// The one dimension that is left of the batch, as its size and the steps of A, B and the
    /// result, or none if there are more.
    pub fn single(&self) -> Option<(usize, isize, isize, isize)> {
        match self.batch[..] {
            [] => Some((1, 0, 0, 0)),
            [(count, s)] => Some((count, s.a, s.b, s.y)),
            _ => None,
        }
    }

    /// Multiplies: A, B, what is added and the result lie at `at`.
    ///
    /// # Safety
    /// The addresses are those of the tensors that the plan was made for. What is added is not
    /// read where `beta` is zero.
    pub unsafe fn run<T: GemmElem>(
        &self,
        at: [Ptr<u8>; 4],
        alpha: T::Acc,
        beta: T::Acc,
        one: T::Acc,
    ) {
        let count: usize = self.batch.iter().map(|s| s.0).product();
        let k = if count == 0 { 0 } else { self.k };
        let one_of = |i: usize| {
            let [mut a, mut b, mut d, mut y] = at.map(|p| p.get().cast::<T>());
            let mut rest = i;
            for (n, s) in self.batch.iter().rev().filter(|s| s.0 > 0) {
                let j = (rest % n) as isize;
                rest /= n;
                a = a.wrapping_offset(j * s.a);
                b = b.wrapping_offset(j * s.b);
                y = y.wrapping_offset(j * s.y);
                d = d.wrapping_offset(j * s.d);
            }
            let c = Mat::new(y, self.y.0, self.y.1);
            let mut p = Problem {
                m: self.m,
                n: self.n,
                k,
                alpha,
                a: Mat::new(a, self.a.0, self.a.1),
                b: Mat::new(b, self.b.0, self.b.1),
                beta,
                d: Mat::new(d, self.d.0, self.d.1),
                c,
                reduced: true,
            };
            if self.sum && i > 0 {
                (p.beta, p.d) = (one, Mat::new(y as *const T, c.rs, c.cs));
            }
            // SAFETY: matrix `i` lies in each tensor, of these sizes and steps, and D is read only
            // where `beta` is not zero.
            unsafe { product(&p) };
        };
        if self.sum {
            // An empty batch sums to nothing, but what is added still counts.
            (0..count.max(1)).for_each(one_of);
            return;
        }
        let each = self.m.saturating_mul(self.n).saturating_mul(self.k).max(1);
        if count > 1 && (count >= 2 * num_threads() || each < 1 << 18) {
            parallel_for(count, ((1 << 18) / each).max(1), |r| r.for_each(one_of));
        } else {
            (0..count).for_each(one_of);
        }
    }
}
