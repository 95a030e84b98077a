//! Products of matrices and vectors: one op for all of them, whose gradients are products again.

use crate::autograd::Vjp;
use crate::cpu::gemm::{gemm, GemmElem};
use crate::cpu::pool::{num_threads, parallel_for};
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::kernels::matmul::matmul;
use crate::gpu::kernels::reduce::{reduce, Combine, Map};
use crate::gpu::kernels::View;
use crate::gpu::Gpu;
use crate::layout::contiguous_strides;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;

const ONE: Scalar = Scalar::Int(1);

/// `alpha * A B (+ beta * C)`. Inputs are A and B, or C, A and B.
///
/// Dimensions before the last two are a batch and broadcast. A vector stands for a row (A) or a
/// column (B), whose dimension the result lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct MatMul {
    pub name: &'static str,
    /// Take A or B transposed; of no effect on vectors.
    pub ta: bool,
    pub tb: bool,
    /// Sum over the batch.
    pub sum: bool,
    pub alpha: Scalar,
    pub beta: Scalar,
    /// Whether C is there.
    pub plus: bool,
    /// Whether A or B is stored by columns, so that its gradient should be, too.
    pub columns: [bool; 2],
}

impl MatMul {
    pub fn new(name: &'static str) -> MatMul {
        let columns = [false; 2];
        let (ta, tb, sum, plus) = (false, false, false, false);
        MatMul {
            name,
            ta,
            tb,
            sum,
            alpha: ONE,
            beta: ONE,
            plus,
            columns,
        }
    }

    /// With C: `beta * C + alpha * A B`.
    pub fn plus(name: &'static str, beta: Scalar, alpha: Scalar) -> MatMul {
        MatMul {
            alpha,
            beta,
            plus: true,
            ..MatMul::new(name)
        }
    }

    /// With the gradients' layout taken from the operands'.
    fn like(mut self, a: &Tensor, b: &Tensor) -> MatMul {
        self.columns = [by_columns(a), by_columns(b)];
        self
    }
}

fn by_columns(t: &Tensor) -> bool {
    t.ndim() == 2 && !t.is_contiguous() && t.stride(0) == 1 && t.stride(1) >= t.size(0) as isize
}

/// One operand as a stack of matrices.
struct Stack<'a> {
    batch: &'a [usize],
    strides: &'a [isize],
    rows: usize,
    cols: usize,
    rs: isize,
    cs: isize,
}

impl<'a> Stack<'a> {
    fn new(t: &'a Tensor, transposed: bool, left: bool) -> Stack<'a> {
        let n = t.ndim();
        let (shape, strides) = (&t.shape()[..], &t.strides()[..]);
        if n < 2 {
            let (k, s) = (t.size(0), t.stride(0));
            let (batch, strides): (&[usize], &[isize]) = (&[], &[]);
            return match left {
                true => Stack {
                    batch,
                    strides,
                    rows: 1,
                    cols: k,
                    rs: 0,
                    cs: s,
                },
                false => Stack {
                    batch,
                    strides,
                    rows: k,
                    cols: 1,
                    rs: s,
                    cs: 0,
                },
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

/// A dimension of the batch: its size and the steps of A, B and the result.
struct Step {
    count: usize,
    a: isize,
    b: isize,
    y: isize,
}

/// All multiplications of one call.
struct Plan {
    batch: SmallVec<[Step; 4]>,
    m: usize,
    n: usize,
    k: usize,
    a: (isize, isize),
    b: (isize, isize),
    y: (isize, isize),
    sum: bool,
}

impl Plan {
    fn new(a: &Stack, b: &Stack, batch: &[usize], sum: bool) -> Plan {
        let (m, n, k) = (a.rows, b.cols, a.cols);
        let outer = contiguous_strides(batch);
        let mut plan = Plan {
            batch: SmallVec::new(),
            m,
            n,
            k,
            a: (a.rs, a.cs),
            b: (b.rs, b.cs),
            y: (n as isize, 1),
            sum,
        };
        for (d, &count) in batch.iter().enumerate() {
            if count == 1 {
                continue;
            }
            let y = if sum { 0 } else { outer[d] * (m * n) as isize };
            let (sa, sb) = (a.step(d, batch.len()), b.step(d, batch.len()));
            let next = Step {
                count,
                a: sa,
                b: sb,
                y,
            };
            match plan.batch.last_mut() {
                Some(l)
                    if l.a == sa * count as isize
                        && l.b == sb * count as isize
                        && l.y == y * count as isize =>
                {
                    *l = Step {
                        count: l.count * count,
                        ..next
                    };
                }
                _ => plan.batch.push(next),
            }
        }
        plan.fold();
        plan
    }

    /// Takes inner dimensions of the batch for more rows of A, or for more depth of a sum.
    fn fold(&mut self) {
        while let Some(l) = self.batch.last() {
            if self.sum {
                let k = self.k as isize;
                if self.k == 1 {
                    (self.a.1, self.b.0) = (l.a, l.b);
                } else if l.a != self.a.1 * k || l.b != self.b.0 * k {
                    return;
                }
                self.k *= l.count;
            } else {
                let m = self.m as isize;
                if l.b != 0 {
                    return;
                }
                if self.m == 1 {
                    (self.a.0, self.y.0) = (l.a, l.y);
                } else if l.a != self.a.0 * m || l.y != self.y.0 * m {
                    return;
                }
                self.m *= l.count;
            }
            self.batch.pop();
        }
    }

    /// # Safety
    /// The addresses are those of the tensors that the plan was made for.
    unsafe fn run<T: GemmElem>(
        &self,
        at: (usize, usize, usize),
        alpha: T::Acc,
        beta: T::Acc,
        one: T::Acc,
    ) {
        let count: usize = self.batch.iter().map(|s| s.count).product();
        let one_of = |i: usize, beta: T::Acc| {
            let (mut a, mut b, mut y) = (at.0 as *const T, at.1 as *const T, at.2 as *mut T);
            let mut rest = i;
            for s in self.batch.iter().rev().filter(|s| s.count > 0) {
                let j = (rest % s.count) as isize;
                rest /= s.count;
                a = a.offset(j * s.a);
                b = b.offset(j * s.b);
                y = y.offset(j * s.y);
            }
            let k = if count == 0 { 0 } else { self.k };
            gemm::<T>(
                self.m, self.n, k, alpha, a, self.a.0, self.a.1, b, self.b.0, self.b.1, beta, y,
                self.y.0, self.y.1,
            );
        };
        if self.sum {
            // An empty batch sums to nothing, but C still counts.
            for i in 0..count.max(1) {
                one_of(i, if i == 0 { beta } else { one });
            }
            return;
        }
        let each = self.m.saturating_mul(self.n).saturating_mul(self.k).max(1);
        if count >= 2 * num_threads() || each < 1 << 18 {
            parallel_for(count, ((1 << 17) / each).max(1), |r| {
                for i in r {
                    one_of(i, beta);
                }
            });
        } else {
            for i in 0..count {
                one_of(i, beta);
            }
        }
    }
}

impl MatMul {
    fn operands<'a>(&self, x: &[&'a Tensor]) -> (&'a Tensor, &'a Tensor) {
        (x[self.plus as usize], x[self.plus as usize + 1])
    }

    /// What `save` and `vjp` number the operands by.
    fn index(&self) -> (usize, usize) {
        (self.plus as usize, self.plus as usize + 1)
    }
}

/// A vector as the matrix that it stands for.
fn matrix(t: &Tensor, left: bool) -> Result<Tensor> {
    match t.ndim() {
        1 if left => t.reshape(&[1, -1]),
        1 => t.reshape(&[-1, 1]),
        _ => Ok(t.clone()),
    }
}

/// The last two dimensions exchanged.
pub(crate) fn swapped(t: &Tensor) -> Result<Tensor> {
    ensure!(
        t.ndim() >= 2,
        Runtime,
        "a batch of matrices must have at least 2 dimensions, got {}D",
        t.ndim()
    );
    let n = t.ndim() as i64;
    let mut order: SmallVec<[i64; 5]> = (0..n).collect();
    order.swap(n as usize - 1, n as usize - 2);
    t.permute(&order)
}

impl Derivative for MatMul {
    fn name(&self) -> &'static str {
        self.name
    }

    fn save(&self, needs: Mask) -> Save {
        let (a, b) = self.index();
        Save::inputs((needs >> a & 1) << b | (needs >> b & 1) << a)
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let (ia, ib) = self.index();
        let mut out: Grads = SmallVec::from_elem(None, ib + 1);
        let Some(g) = &g[0] else { return Ok(out) };
        if self.plus && cx.needs(0) {
            out[0] = Some(if self.beta == ONE {
                g.clone()
            } else {
                g.mul_scalar(self.beta)?
            });
        }
        let a = if cx.needs(ib) {
            Some(cx.input(ia)?)
        } else {
            None
        };
        let b = if cx.needs(ia) {
            Some(cx.input(ib)?)
        } else {
            None
        };
        let rank = |i: usize, t: &Option<Tensor>| match t {
            Some(t) => Ok(t.ndim()),
            None => cx.input_meta(i).map(|m| m.shape.len()),
        };
        let (na, nb) = (rank(ia, &a)?, rank(ib, &b)?);
        // The gradient as a stack of matrices: vectors get their dimension back.
        let mut shape: SmallVec<[usize; 5]> = g.shape().clone();
        if na == 1 {
            let at = shape.len() - (nb > 1) as usize;
            shape.insert(at, 1);
        }
        if nb == 1 {
            shape.push(1);
        }
        let g = if shape == *g.shape() {
            g.clone()
        } else {
            g.reshape_to(&shape)?
        };
        let product = |x: &Tensor, tx: bool, y: &Tensor, ty: bool, rank: usize| {
            let sum = rank <= 2 && (x.ndim() > 2 || y.ndim() > 2);
            let name = if sum || x.ndim().max(y.ndim()) > 2 {
                "BmmBackward0"
            } else {
                "MmBackward0"
            };
            let op = MatMul {
                ta: tx,
                tb: ty,
                sum,
                alpha: self.alpha,
                ..MatMul::new(name)
            };
            dispatch::call1(op, &[x, y])
        };
        let fit = |d: Tensor, i: usize| -> Result<Tensor> {
            let shape = &cx.input_meta(i)?.shape;
            if shape.len() == 1 {
                return d.reshape_to(shape);
            }
            // A batch that was summed over has the same gradient throughout.
            if self.sum && d.shape() != shape && shape::expandable(d.shape(), shape) {
                return d.expand_to(shape);
            }
            Ok(d)
        };
        if let Some(b) = b {
            let b = matrix(&b, false)?;
            let tb = self.tb && nb > 1;
            let turned = self.ta && na > 1;
            let d = if turned != self.columns[0] {
                // A' = B G'
                product(&b, tb, &g, true, na)?
            } else {
                product(&g, false, &b, !tb, na)?
            };
            out[ia] = Some(fit(if self.columns[0] { swapped(&d)? } else { d }, ia)?);
        }
        if let Some(a) = a {
            let a = matrix(&a, true)?;
            let ta = self.ta && na > 1;
            let turned = self.tb && nb > 1;
            let d = if turned != self.columns[1] {
                product(&g, true, &a, ta, nb)?
            } else {
                product(&a, !ta, &g, false, nb)?
            };
            out[ib] = Some(fit(if self.columns[1] { swapped(&d)? } else { d }, ib)?);
        }
        Ok(out)
    }
}

impl Op for MatMul {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let (a, b) = self.operands(x);
        let (p, q) = (Stack::new(a, self.ta, true), Stack::new(b, self.tb, false));
        ensure!(
            p.cols == q.rows,
            Runtime,
            "matmul: matrices of {}x{} and {}x{} cannot be multiplied",
            p.rows,
            p.cols,
            q.rows,
            q.cols
        );
        let mut shape = match self.sum {
            true => Dims::new(),
            false => shape::broadcast(p.batch, q.batch)?,
        };
        if a.ndim() > 1 {
            shape.push(p.rows);
        }
        if b.ndim() > 1 {
            shape.push(q.cols);
        }
        let device = dispatch::device(x);
        Ok(SmallVec::from_elem(
            TensorMeta {
                shape,
                dtype: a.dtype(),
                device,
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (a, b) = self.operands(x);
        let (p, q) = (Stack::new(a, self.ta, true), Stack::new(b, self.tb, false));
        let batch = shape::broadcast(p.batch, q.batch)?;
        let y = &y[0];
        if y.numel() == 0 {
            return Ok(());
        }
        let plan = Plan::new(&p, &q, &batch, self.sum);
        let zero = !self.plus || self.beta.f64() == 0.0;
        if !zero {
            super::copy::copy_host(x[0], y)?;
        }
        let at = (
            a.bytes_ptr() as usize,
            b.bytes_ptr() as usize,
            y.bytes_ptr() as usize,
        );
        let beta = if zero { Scalar::Int(0) } else { self.beta };
        macro_rules! run {
            ($T:ty, $Acc:ty, $get:ident) => {
                // SAFETY: the plan holds these tensors' own sizes and steps; `y` is fresh.
                unsafe {
                    let (alpha, beta) = (self.alpha.$get() as $Acc, beta.$get() as $Acc);
                    plan.run::<$T>(at, alpha, beta, 1 as $Acc)
                }
            };
        }
        match a.dtype() {
            DType::F32 => run!(f32, f32, f64),
            DType::F64 => run!(f64, f64, f64),
            DType::F16 => run!(half::f16, f32, f64),
            DType::BF16 => run!(half::bf16, f32, f64),
            DType::U8 => run!(u8, u8, i64),
            DType::I8 => run!(i8, i8, i64),
            DType::I16 => run!(i16, i16, i64),
            DType::I32 => run!(i32, i32, i64),
            DType::I64 => run!(i64, i64, i64),
            t => unsupported("addmm_impl_cpu_", t)?,
        }
        Ok(())
    }

    fn gpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (a, b) = self.operands(x);
        let (p, q) = (Stack::new(a, self.ta, true), Stack::new(b, self.tb, false));
        let batch = shape::broadcast(p.batch, q.batch)?;
        let plan = Plan::new(&p, &q, &batch, self.sum);
        if plan.batch.len() > 1 {
            // Batches that no single stride walks: spread out and dense they have one.
            let spread = |t: &Tensor| -> Result<Tensor> {
                let n = t.ndim();
                if n < 2 {
                    return transfer::dense(t);
                }
                let mut shape = batch.clone();
                shape.extend_from_slice(&t.shape()[n - 2..]);
                transfer::dense(&t.alias(t.layout().expand_to(&shape)))
            };
            let (a, b) = (spread(a)?, spread(b)?);
            let mut x: SmallVec<[&Tensor; 3]> = x.into();
            let (ia, ib) = self.index();
            (x[ia], x[ib]) = (&a, &b);
            return self.gpu(&x, y);
        }
        let one = Step {
            count: 1,
            a: 0,
            b: 0,
            y: 0,
        };
        let step = plan.batch.first().unwrap_or(&one);
        let (n, m, k, l) = (step.count, plan.m, plan.k, plan.n);
        let sums = self.sum && n != 1;
        if sums && self.plus {
            return Ok(false);
        }
        let (a_shape, a_strides) = ([n, m, k], [step.a, plan.a.0, plan.a.1]);
        let (b_shape, b_strides) = ([n, k, l], [step.b, plan.b.0, plan.b.1]);
        let (y_shape, y_strides) = ([n, m, l], [step.y, plan.y.0, plan.y.1]);
        let operand = |t, shape, strides| -> Result<View> {
            Ok(View {
                shape,
                strides,
                ..transfer::whole(t)?
            })
        };
        let a = operand(a, &a_shape, &a_strides)?;
        let b = operand(b, &b_shape, &b_strides)?;
        let (gpu, alpha) = (Gpu::get()?, self.alpha.f64());
        if sums {
            let each = Tensor::empty(&y_shape, y[0].dtype(), y[0].device())?;
            let done = matmul(gpu, a, b, None, alpha, transfer::whole(&each)?).and_then(|()| {
                let (from, to) = (transfer::whole(&each)?, transfer::whole(&y[0])?);
                reduce(gpu, Combine::Sum, Map::Keep, 1.0, from, 1, to)
            });
            return transfer::ran(done);
        }
        let beta = self.beta.f64();
        let c = match self.plus && beta != 0.0 {
            true => {
                let wide = x[0].to_device(y[0].device())?;
                let wide = wide.alias(wide.layout().expand_to(y[0].shape()));
                Some(match wide.layout().reshape(&y_shape) {
                    Some(layout) => wide.alias(layout),
                    None => transfer::dense(&wide)?.reshape_to(&y_shape)?,
                })
            }
            false => None,
        };
        let c = match &c {
            Some(c) => Some((transfer::whole(c)?, beta)),
            None => None,
        };
        let y = operand(&y[0], &y_shape, &y_strides)?;
        transfer::ran(matmul(gpu, a, b, c, alpha, y))
    }

    fn work(&self, x: &[&Tensor], y: &[Tensor]) -> usize {
        let (a, _) = self.operands(x);
        y[0].numel()
            .saturating_mul(a.size(a.ndim().saturating_sub(1)))
    }
}

fn unsupported(what: &str, dtype: DType) -> Result<()> {
    bail!(
        NotImplemented,
        "\"{what}\" not implemented for '{}'",
        dtype.scalar_name()
    )
}

fn numeric(what: &str, dtype: DType) -> Result<()> {
    if dtype == DType::Bool || dtype.is_complex() {
        unsupported(what, dtype)?;
    }
    Ok(())
}

fn same_type(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        a.dtype().c_name(),
        b.dtype().c_name()
    );
    numeric("addmm_impl_cpu_", a.dtype())
}

fn fits(rows: usize, k: usize, l: usize, cols: usize) -> Result<()> {
    ensure!(
        k == l,
        Runtime,
        "mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {l}x{cols})"
    );
    Ok(())
}

fn check_mm(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() == 2,
        Runtime,
        "mm: self must be a matrix, got {}-D",
        a.ndim()
    );
    ensure!(
        b.ndim() == 2,
        Runtime,
        "mm: mat2 must be a matrix, got {}-D",
        b.ndim()
    );
    fits(a.size(0), a.size(1), b.size(0), b.size(1))?;
    same_type(a, b)
}

fn check_bmm(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    for (t, i) in [(a, 1), (b, 2)] {
        ensure!(
            t.ndim() == 3,
            Runtime,
            "{name}: batch{i} must be a 3D tensor, got {}D",
            t.ndim()
        );
    }
    ensure!(
        a.size(0) == b.size(0) && a.size(2) == b.size(1),
        Runtime,
        "{name}: Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but \
         got: [{}, {}].",
        a.size(0),
        a.size(2),
        b.size(0),
        b.size(1)
    );
    same_scalar(name, a, b)
}

fn same_scalar(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "{name}: expected scalar type {} but found {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    numeric(name, a.dtype())
}

fn check_dot(a: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        a.ndim() == 1 && b.ndim() == 1,
        Runtime,
        "dot: 1D tensors expected, but got {}D and {}D tensors",
        a.ndim(),
        b.ndim()
    );
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "dot : expected both vectors to have same dtype, but found {} and {}",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    let (m, n) = (a.size(0), b.size(0));
    ensure!(
        m == n,
        Runtime,
        "inconsistent tensor size, expected tensor [{m}] and src [{n}] to have the same number of \
         elements, but got {m} and {n} elements respectively"
    );
    numeric("dot", a.dtype())
}

/// `mat` is a matrix, or a batch of matrices with as many rows in all as `rows`.
fn check_mv(c: Option<&Tensor>, mat: &Tensor, vec: &Tensor, rows: usize) -> Result<()> {
    let k = mat.size(mat.ndim().saturating_sub(1));
    let c_size = c.map_or(rows, Tensor::numel);
    ensure!(
        k == vec.size(0) && (c_size == rows || c_size == 1),
        Runtime,
        "size mismatch, got input ({c_size}), mat ({rows}x{k}), vec ({})",
        vec.size(0)
    );
    let t = c.unwrap_or(vec).dtype();
    ensure!(
        t == mat.dtype() && t == vec.dtype(),
        Runtime,
        "addmv input tensors must have the same dtype, but got {}, {}, and {}",
        t.scalar_name(),
        mat.dtype().scalar_name(),
        vec.dtype().scalar_name()
    );
    numeric("addmv_impl_cpu", t)
}

/// Checks the operands of `matmul` and names the op that multiplies them.
fn matmul_op(a: &Tensor, b: &Tensor) -> Result<MatMul> {
    let (p, q) = (a.ndim(), b.ndim());
    ensure!(
        p > 0 && q > 0,
        Runtime,
        "both arguments to matmul need to be at least 1D, but they are {p}D and {q}D"
    );
    let name = match (p, q) {
        (1, 1) => {
            check_dot(a, b)?;
            "DotBackward0"
        }
        (_, 1) => {
            check_mv(None, a, b, a.shape()[..p - 1].iter().product())?;
            "MvBackward0"
        }
        (_, 2) => {
            fits(
                a.shape()[..p - 1].iter().product(),
                a.size(p - 1),
                b.size(0),
                b.size(1),
            )?;
            same_type(a, b)?;
            "MmBackward0"
        }
        _ => {
            let (x, y) = (Stack::new(a, false, true), Stack::new(b, false, false));
            let batch = shape::broadcast(x.batch, y.batch)?;
            let count: usize = batch.iter().product();
            ensure!(
                x.cols == y.rows,
                Runtime,
                "Expected size for first two dimensions of batch2 tensor to be: [{count}, {}] but \
                 got: [{count}, {}]. (matmul of {} and {})",
                x.cols,
                y.rows,
                Show(a.shape()),
                Show(b.shape())
            );
            same_scalar("bmm", a, b)?;
            "BmmBackward0"
        }
    };
    Ok(MatMul::new(name).like(a, b))
}

/// Checks the operands of `addmm`.
fn check_addmm(c: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    for (t, i) in [(a, 1), (b, 2)] {
        ensure!(
            t.ndim() == 2,
            Runtime,
            "mat{i} must be a matrix, got {}-D tensor",
            t.ndim()
        );
    }
    fits(a.size(0), a.size(1), b.size(0), b.size(1))?;
    same_as_self(c, b)?;
    same_type(a, b)?;
    expands(c, &[a.size(0), b.size(1)])
}

fn same_as_self(c: &Tensor, b: &Tensor) -> Result<()> {
    ensure!(
        c.dtype() == b.dtype(),
        Runtime,
        "self and mat2 must have the same dtype, but got {} and {}",
        c.dtype().scalar_name(),
        b.dtype().scalar_name()
    );
    Ok(())
}

fn expands(c: &Tensor, shape: &[usize]) -> Result<()> {
    if !shape::expandable(c.shape(), shape) {
        let size: SmallVec<[i64; 5]> = shape.iter().map(|&d| d as i64).collect();
        c.layout().expand(&size)?;
    }
    Ok(())
}

/// Checks the operands of `linear` with a weight matrix.
fn linear_op(x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<MatMul> {
    let n = x.ndim();
    ensure!(
        n > 0,
        Runtime,
        "both arguments to linear need to be at least 1D, got a 0D input"
    );
    let rows = x.shape()[..n - 1].iter().product();
    fits(rows, x.size(n - 1), w.size(1), w.size(0))?;
    if let Some(c) = bias {
        same_as_self(c, w)?;
        expands(c, &[rows, w.size(0)])?;
        ensure!(
            c.ndim() < 2 || n == 2,
            Runtime,
            "linear: the bias must have at most one dimension, got shape {}",
            Show(c.shape())
        );
    }
    same_type(x, w)?;
    let op = match bias {
        Some(_) => MatMul::plus("AddmmBackward0", ONE, ONE),
        None => MatMul::new("MmBackward0"),
    };
    Ok(MatMul { tb: true, ..op })
}

/// `outer`: the product of each element of one vector with each of the other.
fn outer(name: &str, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    for (t, which) in [(a, "self"), (b, "vec2")] {
        ensure!(
            t.ndim() == 1,
            Runtime,
            "{name}: Expected 1-D argument {which}, but got {}-D",
            t.ndim()
        );
    }
    a.reshape(&[-1, 1])?.mul(b)
}

fn addr(c: &Tensor, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    for (t, i) in [(a, 1), (b, 2)] {
        ensure!(
            t.ndim() == 1,
            Runtime,
            "addr: Expected 1-D argument vec{i}, but got {}-D",
            t.ndim()
        );
    }
    let dtype = c.dtype().promote(a.dtype()).promote(b.dtype());
    for (s, which) in [(beta, "beta"), (alpha, "alpha")] {
        ensure!(
            !(dtype.is_integral() && s.is_float()),
            Runtime,
            "For integral input tensors, argument {which} must not be a floating point number."
        );
        ensure!(
            dtype != DType::Bool || matches!(s, Scalar::Bool(_)) || s == ONE,
            Runtime,
            "Boolean {which} only supported for Boolean results."
        );
    }
    let shape = [a.size(0), b.size(0)];
    expands(c, &shape)?;
    let scaled = |t: Tensor, s: Scalar| {
        if s.f64() == 1.0 {
            Ok(t)
        } else {
            t.mul_scalar(s)
        }
    };
    let product = scaled(outer("addr", a, b)?, alpha)?.to_dtype(dtype)?;
    if beta.f64() == 0.0 {
        return Ok(product);
    }
    scaled(c.clone(), beta)?.add(&product)
}

fn inner(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.ndim() == 0 || b.ndim() == 0 {
        return a.mul(b);
    }
    let (k, l) = (a.size(a.ndim() - 1), b.size(b.ndim() - 1));
    ensure!(
        k == l,
        Runtime,
        "inner() the last dimension must match on both input tensors but got shapes {} and {}",
        Show(a.shape()),
        Show(b.shape())
    );
    if a.ndim() == 1 && b.ndim() == 1 {
        return a.dot(b);
    }
    ensure!(
        a.dtype() == b.dtype(),
        Runtime,
        "inner: both inputs should have same dtype"
    );
    numeric("addmm_impl_cpu_", a.dtype())?;
    let (p, q) = (&a.shape()[..a.ndim() - 1], &b.shape()[..b.ndim() - 1]);
    let rows = |s: &[usize]| s.iter().product::<usize>();
    let op = MatMul {
        tb: true,
        ..MatMul::new("MmBackward0")
    };
    let y = dispatch::call1(
        op,
        &[&a.reshape_to(&[rows(p), k])?, &b.reshape_to(&[rows(q), k])?],
    )?;
    let shape: Dims = p.iter().chain(q).copied().collect();
    y.reshape_to(&shape)
}

/// `linalg.multi_dot`: the product of a chain in the order with the fewest multiplications.
pub fn multi_dot(chain: &[Tensor]) -> Result<Tensor> {
    let n = chain.len();
    ensure!(
        n >= 2,
        Runtime,
        "multi_dot(): expected at least 2 tensors but got {n}"
    );
    let mut mats = Vec::with_capacity(n);
    for (i, t) in chain.iter().enumerate() {
        let end = i == 0 || i + 1 == n;
        if end {
            ensure!(
                t.ndim() == 1 || t.ndim() == 2,
                Runtime,
                "multi_dot(): the {} tensor must be 1D or 2D but got {}D",
                if i == 0 { "first" } else { "last" },
                t.ndim()
            );
        } else {
            ensure!(
                t.ndim() == 2,
                Runtime,
                "multi_dot(): tensor {i} must be 2D but got {}D",
                t.ndim()
            );
        }
        ensure!(
            t.dtype() == chain[0].dtype(),
            Runtime,
            "multi_dot(): all tensors must have be the same dtype but tensor 0 is {} and tensor \
             {i} {}",
            chain[0].dtype().scalar_name(),
            t.dtype().scalar_name()
        );
        mats.push(matrix(t, i == 0)?);
    }
    for i in 1..n {
        ensure!(
            mats[i - 1].size(1) == mats[i].size(0),
            Runtime,
            "multi_dot(): tensors {} and {i} with shapes {} and {} cannot be multiplied",
            i - 1,
            Show(chain[i - 1].shape()),
            Show(chain[i].shape())
        );
    }
    // Cormen et al., Introduction to Algorithms, section 15.2.
    let size = |i: usize| if i == 0 { mats[0].size(0) } else { mats[i - 1].size(1) } as f64;
    let mut cost = vec![vec![0.0f64; n]; n];
    let mut cut = vec![vec![0usize; n]; n];
    for len in 1..n {
        for i in 0..n - len {
            let j = i + len;
            cost[i][j] = f64::INFINITY;
            for s in i..j {
                let c = cost[i][s] + cost[s + 1][j] + size(i) * size(s + 1) * size(j + 1);
                if c < cost[i][j] {
                    (cost[i][j], cut[i][j]) = (c, s);
                }
            }
        }
    }
    fn product(mats: &[Tensor], cut: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
        if i == j {
            return Ok(mats[i].clone());
        }
        let s = cut[i][j];
        product(mats, cut, i, s)?.mm(&product(mats, cut, s + 1, j)?)
    }
    let y = product(&mats, &cut, 0, n - 1)?;
    let mut shape = Dims::new();
    if chain[0].ndim() == 2 {
        shape.push(y.size(0));
    }
    if chain[n - 1].ndim() == 2 {
        shape.push(y.size(1));
    }
    if shape == *y.shape() {
        Ok(y)
    } else {
        y.reshape_to(&shape)
    }
}

impl Tensor {
    /// `matmul`: the product of vectors, matrices or batches of matrices.
    pub fn matmul(&self, o: &Tensor) -> Result<Tensor> {
        dispatch::call1(matmul_op(self, o)?, &[self, o])
    }

    /// `mm`.
    pub fn mm(&self, o: &Tensor) -> Result<Tensor> {
        check_mm(self, o)?;
        dispatch::call1(MatMul::new("MmBackward0").like(self, o), &[self, o])
    }

    /// `bmm`.
    pub fn bmm(&self, o: &Tensor) -> Result<Tensor> {
        check_bmm("bmm", self, o)?;
        dispatch::call1(MatMul::new("BmmBackward0"), &[self, o])
    }

    /// `dot`.
    pub fn dot(&self, o: &Tensor) -> Result<Tensor> {
        check_dot(self, o)?;
        dispatch::call1(MatMul::new("DotBackward0"), &[self, o])
    }

    /// `linear`: `self w' + bias`.
    pub fn linear(&self, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        if w.ndim() == 1 {
            if let Some(c) = bias {
                bail!(
                    Runtime,
                    "linear: mat2 must be a matrix, got 1-D tensor for the weight with a bias of \
                     shape {}",
                    Show(c.shape())
                );
            }
            return self.matmul(w);
        }
        ensure!(
            w.ndim() == 2,
            Runtime,
            "linear: t() expects a tensor with <= 2 dimensions, but the weight is {}D",
            w.ndim()
        );
        let op = linear_op(self, w, bias)?;
        match bias {
            Some(c) => dispatch::call1(op, &[c, self, w]),
            None => dispatch::call1(op, &[self, w]),
        }
    }

    /// `addmm`.
    pub fn addmm(&self, a: &Tensor, b: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
        check_addmm(self, a, b)?;
        dispatch::call1(
            MatMul::plus("AddmmBackward0", beta, alpha).like(a, b),
            &[self, a, b],
        )
    }
}

crate::entries! {
    /// The product of two matrices.
    "mm(Tensor self, Tensor mat2) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        check_mm(x, y)?;
        a.call(MatMul::new("MmBackward0").like(x, y), &[x, y])
    };
    /// The products of two batches of matrices.
    "bmm(Tensor self, Tensor mat2) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        check_bmm("bmm", x, y)?;
        a.call(MatMul::new("BmmBackward0"), &[x, y])
    };
    /// The product of vectors, matrices or batches of matrices, which broadcast.
    "matmul(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| a.call(matmul_op(a.tensor(0)?, a.tensor(1)?)?, &[a.tensor(0)?, a.tensor(1)?]);
    /// The product of vectors, matrices or batches of matrices, which broadcast.
    "matmul(Tensor input, Tensor other) -> Tensor", LINALG | OUT | DIRECT,
    |a| a.call(matmul_op(a.tensor(0)?, a.tensor(1)?)?, &[a.tensor(0)?, a.tensor(1)?]);
    /// The product of a matrix and a vector.
    "mv(Tensor self, Tensor vec) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        let (x, y) = (a.tensor(0)?, a.tensor(1)?);
        ensure!(
            x.ndim() == 2 && y.ndim() == 1,
            Runtime,
            "mv: vector + matrix @ vector expected, got 1, {}, {}",
            x.ndim(),
            y.ndim()
        );
        check_mv(None, x, y, x.size(0))?;
        a.call(MatMul::new("MvBackward0").like(x, y), &[x, y])
    };
    /// The sum of the products of two vectors' elements.
    "dot(Tensor self, Tensor tensor) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        check_dot(a.tensor(0)?, a.tensor(1)?)?;
        a.call(MatMul::new("DotBackward0"), &[a.tensor(0)?, a.tensor(1)?])
    };
    /// The sum of the products of two vectors' elements.
    "vdot(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT | DIRECT,
    |a| {
        check_dot(a.tensor(0)?, a.tensor(1)?)?;
        a.call(MatMul::new("VdotBackward0"), &[a.tensor(0)?, a.tensor(1)?])
    };
    /// Sums of products over the last dimension of both.
    "inner(Tensor self, Tensor other) -> Tensor", FN | METHOD | OUT,
    |a| Ok(inner(a.tensor(0)?, a.tensor(1)?)?.into());
    /// The product of each element of one vector with each of the other.
    "outer(Tensor self, Tensor vec2) -> Tensor", FN | METHOD | OUT,
    |a| Ok(outer("outer", a.tensor(0)?, a.tensor(1)?)?.into());
    /// As `outer`.
    "ger(Tensor self, Tensor vec2) -> Tensor", FN | METHOD | OUT,
    |a| Ok(outer("outer", a.tensor(0)?, a.tensor(1)?)?.into());
    /// beta * self + alpha * (mat1 @ mat2). With beta 0, self is not read.
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT,
    |a| {
        let (c, x, y) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
        check_addmm(c, x, y)?;
        let op = MatMul::plus("AddmmBackward0", a.scalar(3)?, a.scalar(4)?);
        a.call(op.like(x, y), &[c, x, y])
    };
    /// beta * self + alpha * (mat @ vec). With beta 0, self is not read.
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT,
    |a| {
        let (c, x, y) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
        ensure!(
            x.ndim() == 2 && y.ndim() == 1 && c.ndim() <= 1,
            Runtime,
            "addmv: vector + matrix @ vector expected, got {}, {}, {}",
            c.ndim(),
            x.ndim(),
            y.ndim()
        );
        check_mv(Some(c), x, y, x.size(0))?;
        let op = MatMul::plus("AddmvBackward0", a.scalar(3)?, a.scalar(4)?);
        a.call(op.like(x, y), &[c, x, y])
    };
    /// beta * self + alpha * (batch1 @ batch2). With beta 0, self is not read.
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT,
    |a| {
        let (c, x, y) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
        check_bmm("baddbmm", x, y)?;
        same_scalar("baddbmm", x, c)?;
        expands(c, &[x.size(0), x.size(1), y.size(2)])?;
        a.call(MatMul::plus("BaddbmmBackward0", a.scalar(3)?, a.scalar(4)?), &[c, x, y])
    };
    /// beta * self + alpha * the sum of (batch1 @ batch2) over the batch.
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    ALL | DIRECT,
    |a| {
        let (c, x, y) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
        ensure!(
            x.ndim() != 3 || y.ndim() != 3 || x.size(0) == y.size(0),
            Runtime,
            "addbmm: batch1 and batch2 must have same number of batches, got {} and {}",
            x.size(0),
            y.size(0)
        );
        check_bmm("addbmm", x, y)?;
        same_scalar("addbmm", x, c)?;
        expands(c, &[x.size(1), y.size(2)])?;
        let op = MatMul::plus("AddbmmBackward0", a.scalar(3)?, a.scalar(4)?);
        a.call(MatMul { sum: true, ..op }, &[c, x, y])
    };
    /// beta * self + alpha * outer(vec1, vec2). With beta 0, self is not read.
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", ALL,
    |a| {
        let y = addr(a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.scalar(3)?, a.scalar(4)?)?;
        Ok(y.into())
    };
    /// input @ weight' + bias.
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", NN | OUT,
    |a| Ok(a.tensor(0)?.linear(a.tensor(1)?, a.opt_tensor(2))?.into());
    /// The product of a chain of matrices, in the order with the fewest multiplications.
    "multi_dot(Tensor[] tensors) -> Tensor", LINALG | OUT,
    |a| Ok(multi_dot(a.tensors(0)?)?.into());
    /// The product of a chain of matrices; deprecated in favour of `linalg.multi_dot`.
    "chain_matmul(Tensor[] matrices) -> Tensor", FN | OUT,
    |a| {
        let chain = a.tensors(0)?;
        ensure!(!chain.is_empty(), Runtime, "chain_matmul(): Expected one or more matrices");
        for t in chain {
            ensure!(
                t.ndim() == 2,
                Runtime,
                "chain_matmul: Tensor dimension is {}, expected 2 instead.",
                t.ndim()
            );
        }
        Ok(if chain.len() == 1 { chain[0].clone() } else { multi_dot(chain)? }.into())
    };
}
