//! A matrix as the product of triangles, by exchanges of rows.

use super::blocks::Part;
use super::plain::{self, SMALL};
use super::{blocks, columns, columns_mut, params, small, transpose, Precision, Room, SEQ};
use crate::alloc::{self, full};
use crate::cpu::pool::{parallel_chunks, Ptr};
use faer::linalg::lu::partial_pivoting::{factor as plu, inverse, solve};
use faer::perm::PermRef;
use faer::{Conj, MatMut};

/// P A = L U; the matrix lies in `x`, column after column where `blocked`, else in rows.
pub struct Lu<T> {
    x: Vec<T>,
    n: usize,
    blocked: bool,
    /// Whether it is of A, not of the transpose.
    direct: bool,
    /// The row that was exchanged with each.
    pub pivots: Vec<usize>,
    /// The permutation that they make, and its inverse.
    perm: Vec<usize>,
    inverse: Vec<usize>,
}

impl<T: Precision> Lu<T> {
    /// Of the matrix whose rows (`by_rows`) or columns lie in `a` one after another.
    pub fn new(
        a: &[T],
        m: usize,
        n: usize,
        by_rows: bool,
        pivot: bool,
        room: &mut Room<T>,
    ) -> Self {
        let mut out = Lu {
            x: std::mem::take(&mut room.x),
            n,
            direct: by_rows,
            blocked: pivot && m.min(n) > SMALL && m.max(n) > small::MOST,
            pivots: std::mem::take(&mut room.pivots),
            perm: Vec::new(),
            inverse: Vec::new(),
        };
        out.pivots.clear();
        alloc::reserve(&mut out.pivots, m.min(n));
        let load = |x: &mut Vec<T>, rows: bool| {
            x.clear();
            alloc::reserve(x, m * n);
            if rows == by_rows {
                x.extend_from_slice(a);
            } else {
                alloc::resize(x, m * n, T::default());
                let (m, n) = if by_rows { (m, n) } else { (n, m) };
                transpose(a, m, n, x);
            }
        };
        if out.blocked {
            load(&mut out.x, false);
            out.pivots.resize(m.min(n), 0);
            (out.perm, out.inverse) = (full(0, m), full(0, m));
            if m.min(n) < blocks::LEAST {
                let stack = room.get(plu::lu_in_place_scratch::<usize, T>(m, n, SEQ, params()));
                let x = columns_mut(&mut out.x, m, n);
                plu::lu_in_place(x, &mut out.perm, &mut out.inverse, SEQ, stack, params());
                blocks::exchanges(&out.perm, &mut out.pivots);
            } else {
                let all = Part {
                    at: Ptr::new(out.x.as_mut_ptr()),
                    m,
                    n,
                    step: m,
                };
                // SAFETY: `x` has `n` columns of `m`, and is this call's.
                unsafe { blocks::lu(all, &mut out.pivots) };
                out.perm = super::super::order(out.pivots.iter().copied(), m);
                for (i, &p) in out.perm.iter().enumerate() {
                    out.inverse[p] = i;
                }
            }
            // A pivot without an inverse spoils what comes after it.
            let sound = |d: T| d.finite() && d.abs() >= T::TINY;
            out.blocked = (0..m.min(n)).all(|i| sound(out.x[i * m + i]));
        }
        if !out.blocked {
            out.pivots.clear();
            load(&mut out.x, true);
            plain::lu(&mut out.x, m, n, pivot, &mut out.pivots);
        }
        out
    }

    /// Of a square matrix or, where that saves a copy, of its transpose.
    pub fn square(a: &[T], n: usize, room: &mut Room<T>) -> Self {
        Lu::new(a, n, n, n <= small::MOST, true, room)
    }

    /// The [`info`](Self::info) of a square matrix, by rows, where this one or its transpose gave `found`.
    pub fn info_of_rows(a: &[T], n: usize, found: i32, room: &mut Room<T>) -> i32 {
        if found == 0 || n <= small::MOST {
            return found;
        }
        let f = Lu::new(a, n, n, true, true, room);
        let first = f.info(n);
        f.end(room);
        // By rows rounding may leave what it did not by columns.
        if first == 0 {
            return found;
        }
        first
    }

    /// Leaves its memory to the next.
    pub fn end(self, room: &mut Room<T>) {
        (room.x, room.pivots) = (self.x, self.pivots);
    }

    pub fn at(&self, m: usize, i: usize, j: usize) -> T {
        self.x[if self.blocked {
            j * m + i
        } else {
            i * self.n + j
        }]
    }

    /// 1 + the first i with U(i, i) = 0, or 0.
    pub fn info(&self, m: usize) -> i32 {
        let zero = |&i: &usize| self.at(m, i, i) == T::default();
        (0..m.min(self.n)).find(zero).map_or(0, |i| i as i32 + 1)
    }

    fn swaps(&self) -> usize {
        self.pivots
            .iter()
            .enumerate()
            .filter(|&(i, &p)| p != i)
            .count()
    }

    /// Overwrites the rows of `b` with the solution of A X = B, A square.
    pub fn solve(&self, b: &mut [T], k: usize, room: &mut Room<T>) {
        let n = self.n;
        if self.direct {
            for (i, &p) in self.pivots.iter().enumerate().filter(|&(i, &p)| p != i) {
                for j in 0..k {
                    b.swap(i * k + j, p * k + j);
                }
            }
            plain::triangular(&self.x, n, b, k, false, true);
            plain::triangular(&self.x, n, b, k, true, false);
            return;
        }
        if self.blocked {
            let lu = columns(&self.x, n, n);
            let perm = self.order();
            let run = |b: MatMut<T>, k, room: &mut Room<T>| {
                let need = solve::solve_transpose_in_place_scratch::<usize, T>(n, k, SEQ);
                let stack = room.get(need);
                solve::solve_transpose_in_place_with_conj(lu, lu, perm, Conj::No, b, SEQ, stack)
            };
            if k == 1 {
                return run(columns_mut(b, n, k), k, room);
            }
            let mut x = full(T::default(), n * k);
            transpose(b, n, k, &mut x);
            if n < blocks::LEAST || k <= blocks::CHUNK {
                run(columns_mut(&mut x, n, k), k, room);
            } else {
                parallel_chunks(&mut x, n * blocks::CHUNK, 1, |_, part| {
                    let mut room = Room::new();
                    for x in part.chunks_mut(n * blocks::CHUNK) {
                        let k = x.len() / n;
                        run(columns_mut(x, n, k), k, &mut room);
                    }
                });
            }
            transpose(&x, k, n, b);
            return;
        }
        let mut t = full(T::default(), n * n);
        transpose(&self.x, n, n, &mut t);
        plain::triangular(&t, n, b, k, false, false);
        plain::triangular(&t, n, b, k, true, true);
        for (i, &p) in self.pivots.iter().enumerate().rev() {
            for j in 0..k {
                b.swap(i * k + j, p * k + j);
            }
        }
    }

    /// Writes the inverse of a square matrix.
    pub fn inverse(&self, y: &mut [T], room: &mut Room<T>) {
        let n = self.n;
        if !self.blocked {
            // Of a singular matrix it is what dividing by zero gives, as `solve` has it.
            identity(y, n);
            return self.solve(y, n, room);
        }
        if n >= blocks::LEAST {
            let lu = Part {
                at: Ptr::read(self.x.as_ptr()),
                m: n,
                n,
                step: n,
            };
            let to = Ptr::new(y.as_mut_ptr());
            // SAFETY: the factors are only read, and each column has one place in `y`.
            return unsafe {
                blocks::inverse(lu, &self.perm, |j, x| {
                    to.part(j * n..(j + 1) * n).copy_from_slice(x.part(0..n));
                })
            };
        }
        let stack = room.get(inverse::inverse_scratch::<usize, T>(n, SEQ));
        let lu = columns(&self.x, n, n);
        inverse::inverse(columns_mut(y, n, n), lu, lu, self.order(), SEQ, stack);
    }

    fn order(&self) -> PermRef<'_, usize> {
        // SAFETY: both are permutations of 0..n, inverse to each other.
        unsafe { PermRef::new_unchecked(&self.perm, &self.inverse, self.n) }
    }

    /// Writes both triangles, row after row.
    pub fn rows(&self, m: usize, y: &mut [T]) {
        if self.blocked {
            transpose(&self.x, self.n, m, y);
        } else {
            y.copy_from_slice(&self.x);
        }
    }

    fn sign(&self) -> f64 {
        if self.swaps().is_multiple_of(2) {
            1.0
        } else {
            -1.0
        }
    }

    pub fn determinant(&self) -> T {
        let d = T::of_f64(self.sign());
        (0..self.n).fold(d, |d, i| d * self.at(self.n, i, i))
    }

    /// The sign of the determinant and the logarithm of its absolute value.
    pub fn sign_and_log(&self) -> (f64, f64) {
        let (mut sign, mut log) = (self.sign(), 0.0);
        for i in 0..self.n {
            let d = self.at(self.n, i, i).to_f64();
            sign *= if d == 0.0 { 0.0 } else { d.signum() };
            log += d.abs().ln();
        }
        (sign, log)
    }
}

fn identity<T: Precision>(x: &mut [T], n: usize) {
    x.fill(T::default());
    for i in 0..n {
        x[i * n + i] = T::of_f64(1.0);
    }
}
