//! Decompositions of small and middling dense matrices, row-major, in double precision.

/// An `m` x `n` matrix.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub m: usize,
    pub n: usize,
    pub x: Vec<f64>,
}

impl Matrix {
    pub fn zeros(m: usize, n: usize) -> Matrix {
        Matrix {
            m,
            n,
            x: vec![0.0; m * n],
        }
    }
    pub fn eye(m: usize, n: usize) -> Matrix {
        let mut out = Matrix::zeros(m, n);
        for i in 0..m.min(n) {
            out.set(i, i, 1.0);
        }
        out
    }
    #[inline]
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.x[i * self.n + j]
    }
    #[inline]
    pub fn set(&mut self, i: usize, j: usize, v: f64) {
        self.x[i * self.n + j] = v;
    }
    pub fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.n..(i + 1) * self.n]
    }
    pub fn transposed(&self) -> Matrix {
        let mut out = Matrix::zeros(self.n, self.m);
        for i in 0..self.m {
            for j in 0..self.n {
                out.set(j, i, self.at(i, j));
            }
        }
        out
    }
    /// Row `i` minus `f` times row `k`, from column `from` on.
    fn subtract(&mut self, i: usize, k: usize, f: f64, from: usize) {
        let n = self.n;
        let (lo, hi) = (i.min(k), i.max(k));
        let (a, b) = self.x.split_at_mut(hi * n);
        let (lo, hi) = (&mut a[lo * n + from..lo * n + n], &mut b[from..n]);
        let (to, of) = if i < k { (lo, &*hi) } else { (hi, &*lo) };
        for (t, &o) in to.iter_mut().zip(of) {
            *t -= f * o;
        }
    }
    fn swap_rows(&mut self, i: usize, k: usize) {
        if i != k {
            for j in 0..self.n {
                self.x.swap(i * self.n + j, k * self.n + j);
            }
        }
    }
}

/// P A = L U in place: multipliers below the diagonal, U on and above it.
pub struct Lu {
    pub lu: Matrix,
    /// The row that was exchanged with row i, for each i.
    pub pivots: Vec<usize>,
    /// 1 + the first i with U(i, i) = 0, or 0.
    pub info: usize,
}

/// Gaussian elimination, with partial pivoting if wanted.
pub fn lu(mut a: Matrix, pivot: bool) -> Lu {
    let k = a.m.min(a.n);
    let (mut pivots, mut info) = (Vec::with_capacity(k), 0);
    for j in 0..k {
        let mut p = j;
        if pivot {
            for i in j + 1..a.m {
                if a.at(i, j).abs() > a.at(p, j).abs() {
                    p = i;
                }
            }
        }
        pivots.push(p);
        a.swap_rows(j, p);
        let d = a.at(j, j);
        if d == 0.0 {
            if info == 0 {
                info = j + 1;
            }
            continue;
        }
        for i in j + 1..a.m {
            let f = a.at(i, j) / d;
            a.set(i, j, f);
            if f != 0.0 {
                a.subtract(i, j, f, j + 1);
            }
        }
    }
    Lu {
        lu: a,
        pivots,
        info,
    }
}

impl Lu {
    /// Overwrites B with the solution of A X = B.
    pub fn solve(&self, b: &mut Matrix) {
        for (i, &p) in self.pivots.iter().enumerate() {
            b.swap_rows(i, p);
        }
        triangular(&self.lu, b, false, true);
        triangular(&self.lu, b, true, false);
    }

    /// Overwrites B with the solution of A' X = B.
    pub fn solve_transposed(&self, b: &mut Matrix) {
        let t = self.lu.transposed();
        triangular(&t, b, false, false);
        triangular(&t, b, true, true);
        for (i, &p) in self.pivots.iter().enumerate().rev() {
            b.swap_rows(i, p);
        }
    }

    /// The sign of the determinant and the logarithm of its absolute value.
    pub fn sign_and_log(&self) -> (f64, f64) {
        let (mut sign, mut log) = (1.0, 0.0);
        for (i, &p) in self.pivots.iter().enumerate() {
            let d = self.lu.at(i, i);
            if p != i {
                sign = -sign;
            }
            if d == 0.0 {
                sign = 0.0;
            } else {
                sign *= d.signum();
            }
            log += d.abs().ln();
        }
        (sign, log)
    }

    pub fn det(&self) -> f64 {
        let swaps = self
            .pivots
            .iter()
            .enumerate()
            .filter(|&(i, &p)| p != i)
            .count();
        let start = if swaps % 2 == 0 { 1.0 } else { -1.0 };
        (0..self.lu.n).fold(start, |d, i| d * self.lu.at(i, i))
    }
}

/// Overwrites B with the solution of T X = B for the triangle T of `a`, whose diagonal is taken as
/// ones where `unit`.
pub fn triangular(a: &Matrix, b: &mut Matrix, upper: bool, unit: bool) {
    let n = a.n.min(a.m);
    for s in 0..n {
        let i = if upper { n - 1 - s } else { s };
        if !unit {
            let d = a.at(i, i);
            b.x[i * b.n..(i + 1) * b.n].iter_mut().for_each(|v| *v /= d);
        }
        let rest = if upper { 0..i } else { i + 1..n };
        for k in rest {
            let f = a.at(k, i);
            if f != 0.0 {
                b.subtract(k, i, f, 0);
            }
        }
    }
}

/// The lower Cholesky factor, and the order of the first leading minor that is not positive, or 0.
pub fn cholesky(a: &Matrix) -> (Matrix, usize) {
    let n = a.n;
    let mut l = Matrix::zeros(n, n);
    for j in 0..n {
        for i in j..n {
            let dot: f64 = l.row(i)[..j]
                .iter()
                .zip(&l.row(j)[..j])
                .map(|(x, y)| x * y)
                .sum();
            let v = a.at(i, j) - dot;
            if i == j {
                if v.is_nan() || v <= 0.0 {
                    return (l, j + 1);
                }
                l.set(j, j, v.sqrt());
            } else {
                l.set(i, j, v / l.at(j, j));
            }
        }
    }
    (l, 0)
}

/// Householder QR as LAPACK's: reflectors below R's diagonal, and their factors.
pub fn householder(a: &mut Matrix) -> Vec<f64> {
    let k = a.m.min(a.n);
    let mut tau = vec![0.0; k];
    for j in 0..k {
        let alpha = a.at(j, j);
        let tail = (j + 1..a.m).fold(0.0f64, |s, i| s.hypot(a.at(i, j)));
        if tail == 0.0 {
            continue;
        }
        let beta = -alpha.hypot(tail).copysign(alpha);
        tau[j] = (beta - alpha) / beta;
        for i in j + 1..a.m {
            let v = a.at(i, j) / (alpha - beta);
            a.set(i, j, v);
        }
        a.set(j, j, beta);
        for c in j + 1..a.n {
            let dot = a.at(j, c) + (j + 1..a.m).map(|i| a.at(i, j) * a.at(i, c)).sum::<f64>();
            let f = tau[j] * dot;
            a.set(j, c, a.at(j, c) - f);
            for i in j + 1..a.m {
                a.set(i, c, a.at(i, c) - f * a.at(i, j));
            }
        }
    }
    tau
}

/// The first `columns` columns of the product of the reflectors in `a`.
pub fn reflected(a: &Matrix, tau: &[f64], columns: usize) -> Matrix {
    let mut q = Matrix::eye(a.m, columns);
    for j in (0..tau.len()).rev() {
        if tau[j] == 0.0 {
            continue;
        }
        for c in 0..columns {
            let dot = q.at(j, c) + (j + 1..a.m).map(|i| a.at(i, j) * q.at(i, c)).sum::<f64>();
            let f = tau[j] * dot;
            q.set(j, c, q.at(j, c) - f);
            for i in j + 1..a.m {
                q.set(i, c, q.at(i, c) - f * a.at(i, j));
            }
        }
    }
    q
}

/// Eigenvalues, ascending, and eigenvectors as columns of a symmetric matrix: cyclic Jacobi
/// rotations, which find small eigenvalues to high relative accuracy.
pub fn eigh(mut a: Matrix) -> (Vec<f64>, Matrix) {
    let n = a.n;
    // Rows of `v` are the vectors.
    let mut v = Matrix::eye(n, n);
    for _ in 0..64 {
        let off: f64 = (0..n)
            .flat_map(|i| (0..i).map(move |j| (i, j)))
            .map(|(i, j)| a.at(i, j).powi(2))
            .sum();
        let all: f64 = a.x.iter().map(|v| v * v).sum();
        if off <= all * 1e-32 || off.is_nan() {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a.at(p, q);
                if apq == 0.0 {
                    continue;
                }
                let theta = (a.at(q, q) - a.at(p, p)) / (2.0 * apq);
                let t = 1.0f64.copysign(theta) / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a.at(k, p), a.at(k, q));
                    a.set(k, p, c * x - s * y);
                    a.set(k, q, s * x + c * y);
                }
                rotate(&mut a, p, q, c, s);
                rotate(&mut v, p, q, c, s);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a.at(i, i).total_cmp(&a.at(j, j)));
    let values = order.iter().map(|&i| a.at(i, i)).collect();
    let mut vectors = Matrix::zeros(n, n);
    for (j, &i) in order.iter().enumerate() {
        for k in 0..n {
            vectors.set(k, j, v.at(i, k));
        }
    }
    (values, vectors)
}

/// Rows p and q become c p - s q and s p + c q.
fn rotate(a: &mut Matrix, p: usize, q: usize, c: f64, s: f64) {
    let n = a.n;
    let (lo, hi) = a.x.split_at_mut(q * n);
    for (x, y) in lo[p * n..p * n + n].iter_mut().zip(&mut hi[..n]) {
        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
    }
}

/// Singular values, descending, left vectors as columns and right vectors as rows; all of them
/// where `full`. One-sided Jacobi: Hestenes 1958.
pub fn svd(a: &Matrix, full: bool) -> (Matrix, Vec<f64>, Matrix) {
    if a.m < a.n {
        let (u, s, v) = svd(&a.transposed(), full);
        return (v.transposed(), s, u.transposed());
    }
    let (m, n) = (a.m, a.n);
    // Rows of `w` are the columns of A; rotations make them orthogonal.
    let mut w = a.transposed();
    let mut v = Matrix::eye(n, n);
    for _ in 0..64 {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (mut x, mut y, mut d) = (0.0, 0.0, 0.0);
                for (&a, &b) in w.row(p).iter().zip(w.row(q)) {
                    x += a * a;
                    y += b * b;
                    d += a * b;
                }
                if d == 0.0 || d.is_nan() || d.abs() <= 1e-16 * (x * y).sqrt() {
                    continue;
                }
                turned = true;
                let theta = (y - x) / (2.0 * d);
                let t = 1.0f64.copysign(theta) / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                rotate(&mut w, p, q, c, t * c);
                rotate(&mut v, p, q, c, t * c);
            }
        }
        if !turned {
            break;
        }
    }
    let norms: Vec<f64> = (0..n)
        .map(|i| w.row(i).iter().map(|v| v * v).sum::<f64>().sqrt())
        .collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    let s: Vec<f64> = order.iter().map(|&i| norms[i]).collect();
    let top = s.first().copied().unwrap_or(0.0);
    let columns = if full { m } else { n };
    // Left vectors as rows; those of vanishing singular values are chosen orthogonal to the rest.
    let mut u = Matrix::zeros(columns, m);
    let mut vh = Matrix::zeros(n, n);
    let mut missing = Vec::new();
    for (j, &i) in order.iter().enumerate() {
        vh.x[j * n..(j + 1) * n].copy_from_slice(v.row(i));
        if s[j] > top * 1e-15 && s[j] > 0.0 {
            for k in 0..m {
                u.set(j, k, w.at(i, k) / s[j]);
            }
        } else {
            missing.push(j);
        }
    }
    missing.extend(n..columns);
    let mut filled: Vec<usize> = (0..columns).filter(|j| !missing.contains(j)).collect();
    let mut axis = 0;
    for j in missing {
        while axis < m {
            let mut e = vec![0.0; m];
            e[axis] = 1.0;
            axis += 1;
            // Twice is enough: Kahan.
            for _ in 0..2 {
                for &k in &filled {
                    let d: f64 = u.row(k).iter().zip(&e).map(|(a, b)| a * b).sum();
                    e.iter_mut().zip(u.row(k)).for_each(|(e, u)| *e -= d * u);
                }
            }
            let norm = e.iter().map(|v| v * v).sum::<f64>().sqrt();
            if norm > 0.5 / (m as f64).sqrt() {
                for k in 0..m {
                    u.set(j, k, e[k] / norm);
                }
                filled.push(j);
                break;
            }
        }
    }
    (u.transposed(), s, vh)
}
