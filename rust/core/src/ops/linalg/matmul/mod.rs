//! Products of matrices and vectors: one op for all of them, whose gradients are products again.

mod check;
pub mod cooperative;
mod entries;
mod forms;
pub mod gpu;
mod many;
mod plan;
mod stacks;
mod windows;

pub use entries::ENTRIES;
pub use forms::multi_dot;

use plan::{Plan, Stack};

use crate::autograd::{mode, Jvp, Tangents, Vjp};
use crate::cpu::gemm::{product, Mat, Problem};
use crate::cpu::pool::Ptr;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    Asked, Batching, Derivative, Fast, Fusion, Grads, Large, Mapped, Mask, Metas, Op, Save,
    TensorMeta, Tensors, Traits,
};
use crate::schema::Value as Argument;
use crate::shape::{self, Dims, Strides};
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;
use std::sync::Arc;

const ONE: Scalar = Scalar::Int(1);

/// `alpha * A B (+ beta * C)`. Inputs are A and B, or C, A and B.
///
/// Dimensions before the last two are a batch and broadcast. A vector stands for a row (A) or a
/// column (B), whose dimension the result lacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

impl MatMul {
    fn operands<'a, T>(&self, x: &[&'a T]) -> (&'a T, &'a T) {
        (x[self.plus as usize], x[self.plus as usize + 1])
    }

    /// The steps of what is added, for each dimension of the batch, rows and columns.
    fn added(&self, c: &Tensor, a: &Tensor, b: &Tensor, shape: &[usize]) -> Strides {
        let mut steps = c.layout().expand_to(shape).strides;
        // Vectors lack the dimension of their row or column.
        if a.ndim() == 1 {
            steps.insert(steps.len() - (b.ndim() > 1) as usize, 0);
        }
        if b.ndim() == 1 {
            steps.push(0);
        }
        steps
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
    t.transpose(-2, -1)
}

/// The conjugate of the transpose.
pub(crate) fn adjoint(t: &Tensor) -> Result<Tensor> {
    swapped(t)?.conj()
}

impl MatMul {
    /// Complex numbers are multiplied part by part, by `run`.
    fn complex(
        &self,
        x: &[&Tensor],
        y: &Tensor,
        run: impl Fn(&MatMul, &[&Tensor], &[Tensor]) -> Result<bool>,
    ) -> Result<bool> {
        let (a, b) = self.operands(x);
        let part = |t: &Tensor, which| t.detach().component(which);
        let dtype = part(y, 0).dtype();
        let negative = match self.alpha {
            Scalar::Float(v) => Scalar::Float(-v),
            other => Scalar::Int(-other.i64()),
        };
        for (which, pairs) in [(0, [(0, 0), (1, 1)]), (1, [(0, 1), (1, 0)])] {
            let empty = || Tensor::empty(y.shape(), dtype, y.device());
            let mut sum = empty()?;
            for (i, (p, q)) in pairs.into_iter().enumerate() {
                let (p, q) = (part(a, p), part(b, q));
                let alpha = match which == 0 && i == 1 {
                    true => negative,
                    false => self.alpha,
                };
                let (plus, beta) = match i {
                    0 => (self.plus, self.beta),
                    _ => (true, ONE),
                };
                let op = MatMul {
                    alpha,
                    plus,
                    beta,
                    ..self.clone()
                };
                if i == 1 && y.device().is_gpu() {
                    // Only on the host what is added to may be what is written to.
                    let (op, more) = (MatMul { plus: false, ..op }, empty()?);
                    if !run(&op, &[&p, &q], std::slice::from_ref(&more))? {
                        return Ok(false);
                    }
                    sum = sum.add(&more)?;
                    continue;
                }
                let out = std::slice::from_ref(&sum);
                let done = match (plus, i) {
                    (false, _) => run(&op, &[&p, &q], out)?,
                    (true, 0) => run(&op, &[&part(x[0], which), &p, &q], out)?,
                    (true, _) => run(&op, &[&sum, &p, &q], out)?,
                };
                if !done {
                    return Ok(false);
                }
            }
            y.component(which).write_from(&sum)?;
        }
        Ok(true)
    }
}

impl MatMul {
    /// Whether the gradient of what is added, a row, comes with that of B, a transposed matrix.
    fn sums_along(&self, cx: &Vjp, g: &Tensor, a: &Tensor) -> bool {
        let plain = |t: &Tensor| t.device().is_gpu() && t.dtype() == DType::F32 && t.numel() > 0;
        self.plus
            && cx.needs(0)
            && !mode::traced()
            && plain(g)
            && plain(a)
            && (self.beta, self.alpha) == (ONE, ONE)
            && (self.ta, self.tb, self.sum, self.columns[1]) == (false, true, false, false)
            && a.ndim() == g.ndim()
            && a.ndim() > 1
            && cx.input_meta(2).is_ok_and(|b| b.shape.len() == 2)
            && cx
                .input_meta(0)
                .is_ok_and(|c| c.shape[..] == g.shape()[g.ndim() - 1..])
    }
}

/// The gradients `g' x` of the weight and `sum(g)` of the bias of a linear map of the rows of `x`.
pub fn slopes_of_linear(g: &Tensor, x: &Tensor) -> Result<[Tensor; 2]> {
    let mut d = dispatch::compute(&Slopes, &[g, x])?;
    match (d.pop(), d.pop()) {
        (Some(bias), Some(weight)) => Ok([weight, bias]),
        _ => bail!(Assertion, "matmul: a gradient is missing"),
    }
}

/// The gradients of a matrix that rows were multiplied with, and of a row that was added: G' A and
/// the sums of the rows of G'. Inputs are the matrices G and A.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slopes;

impl Derivative for Slopes {
    fn name(&self) -> &'static str {
        "AddmmBackward0"
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(Assertion, "matmul: the fused gradient is never recorded")
    }
}

impl Op for Slopes {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let of = |shape: &[usize]| TensorMeta::new(shape, x[0].dtype(), x[0].device());
        let n = x[0].size(1);
        Ok(Metas::from_iter([of(&[n, x[1].size(1)]), of(&[n])]))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let product = MatMul {
            ta: true,
            ..MatMul::new(self.name())
        };
        product.cpu(x, &y[..1])?;
        y[1].write_from(&x[0].sum_mask([0].into(), false, None)?)
    }
    fn large(&self) -> Option<&dyn Large> {
        Some(self)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let stack = |t: &Tensor, transposed: bool| -> Result<Tensor> {
            let layout = t.layout().unsqueeze(0)?;
            Ok(t.alias(match transposed {
                true => layout.transpose(1, 2)?,
                false => layout,
            }))
        };
        let (a, b, to) = (
            stack(x[0], true)?,
            stack(x[1], false)?,
            stack(&y[0], false)?,
        );
        transfer::ran(gpu::matmul(gpu, &a, &b, None, 1.0, &to, Some(&y[1])))
    }
}

impl Large for Slopes {
    fn gpu_windows(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let product = MatMul {
            ta: true,
            ..MatMul::new(self.name())
        };
        if !product.gpu_windows(gpu, x, &y[..1])? {
            return Ok(false);
        }
        y[1].write_from(&x[0].sum_mask([0].into(), false, None)?)?;
        Ok(true)
    }
}

impl Batching for Slopes {
    fn map_by_ops(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let product = MatMul {
            ta: true,
            ..MatMul::new(self.name())
        };
        let weight = dispatch::call1(product, x)?;
        let bias = x[0].sum_mask([0].into(), false, None)?;
        Ok(Some(Tensors::from_iter([weight, bias])))
    }
}

impl Derivative for MatMul {
    fn name(&self) -> &'static str {
        self.name
    }

    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        let (a, b) = self.operands(x);
        let transposed = |t: &Tensor, on: bool| match on && t.ndim() > 1 {
            false => Ok(t.clone()),
            true if t.ndim() == 2 => t.t(),
            true => swapped(t),
        };
        let plain = self.alpha == ONE && self.beta == ONE;
        let value = |t: &Tensor| Argument::from(t.clone());
        if self.tb && !self.ta && !self.sum && plain && b.ndim() == 2 && a.ndim() > 2 {
            // What PyTorch computes by views and a product of matrices.
            let bias = self.plus.then(|| value(x[0]));
            return Ok(Asked::named("linear").with([value(a), value(b)].into_iter().chain(bias)));
        }
        let (a, b) = (transposed(a, self.ta)?, transposed(b, self.tb)?);
        let name = match (self.plus, self.sum, a.ndim(), b.ndim()) {
            (false, false, 1, 1) => "dot",
            (false, false, 2, 1) => "mv",
            (false, false, 2, 2) => "mm",
            (false, false, 3, 3) if a.size(0) == b.size(0) => "bmm",
            (false, false, ..) => "matmul",
            (true, false, 2, 1) => "addmv",
            (true, false, 2, 2) => "addmm",
            (true, false, 3, 3) if a.size(0) == b.size(0) => "baddbmm",
            (true, true, 3, 3) => "addbmm",
            _ => return Ok(Asked::of_node(self.name)),
        };
        if !self.plus && self.alpha != ONE {
            return Ok(Asked::of_node(self.name));
        }
        let first = self.plus.then(|| value(x[0]));
        let all = first.into_iter().chain([value(&a), value(&b)]);
        let mut asked = Asked::named(name).with(all);
        for (option, factor) in [("beta", self.beta), ("alpha", self.alpha)] {
            if self.plus && factor != ONE {
                asked = asked.option(option, factor.into());
            }
        }
        Ok(asked)
    }

    fn save(&self, needs: Mask) -> Save {
        let (a, b) = self.index();
        Save {
            inputs: (needs >> a & 1) << b | (needs >> b & 1) << a,
            outputs: 0,
        }
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
        if !cx.needs(ia) && !cx.needs(ib) {
            return Ok(out);
        }
        let a = if cx.needs(ib) {
            Some(cx.input(ia)?.conj()?)
        } else {
            None
        };
        let b = if cx.needs(ia) {
            Some(cx.input(ib)?.conj()?)
        } else {
            None
        };
        let rank = |i: usize, t: &Option<Tensor>| match t {
            Some(t) => Ok(t.ndim()),
            None => cx.input_meta(i).map(|m| m.shape.len()),
        };
        let (na, nb) = (rank(ia, &a)?, rank(ib, &b)?);
        if na == 1 && nb == 1 && self.alpha == ONE {
            // Of two vectors each is the other times a number.
            let times = |t: Option<Tensor>| t.map(|t| g.mul(&t)).transpose();
            (out[ia], out[ib]) = (times(b)?, times(a)?);
            return Ok(out);
        }
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
        // The product for a leaf that has a gradient is added to it.
        let product = |i: usize, x: &Tensor, tx: bool, y: &Tensor, ty: bool, rank: usize| {
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
            let transposed = self.columns[i - ia];
            match transposed {
                true => dispatch::call1(op, &[x, y]).map(Some),
                false => cx.grad_from(i, op, &[x, y]),
            }
        };
        let fit = |d: Tensor, i: usize| -> Result<Tensor> {
            let d = if self.columns[i - ia] {
                swapped(&d)?
            } else {
                d
            };
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
            let transposed = self.ta && na > 1;
            let d = if transposed != self.columns[0] {
                // A' = B G'
                product(ia, &b, tb, &g, true, na)?
            } else {
                product(ia, &g, false, &b, !tb, na)?
            };
            out[ia] = d.map(|d| fit(d, ia)).transpose()?;
        }
        if let Some(a) = a.as_ref().filter(|a| self.sums_along(cx, &g, a)) {
            let rows = |t: &Tensor| t.reshape(&[-1, t.size(t.ndim() - 1) as i64]);
            let [weight, bias] = slopes_of_linear(&rows(&g)?, &rows(a)?)?;
            (out[ib], out[0]) = (Some(weight), Some(bias));
        } else if let Some(a) = a {
            let a = matrix(&a, true)?;
            let ta = self.ta && na > 1;
            let transposed = self.tb && nb > 1;
            let d = if transposed != self.columns[1] {
                product(ib, &g, true, &a, ta, nb)?
            } else {
                product(ib, &a, !ta, &g, false, nb)?
            };
            out[ib] = d.map(|d| fit(d, ib)).transpose()?;
        }
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let (ia, ib) = self.index();
        let mut sum = match cx.tangent(0).filter(|_| self.plus) {
            Some(t) if self.beta != ONE => Some(t.mul_scalar(self.beta)?),
            t => t.cloned(),
        };
        for i in [ia, ib] {
            let Some(t) = cx.tangent(i) else { continue };
            let operand = |k: usize| if k == i { t } else { cx.input(k) };
            let op = MatMul {
                plus: sum.is_some(),
                beta: ONE,
                ..self.clone()
            };
            let y = match &sum {
                Some(sum) => dispatch::call1(op, &[sum, operand(ia), operand(ib)])?,
                None => dispatch::call1(op, &[operand(ia), operand(ib)])?,
            };
            sum = Some(y);
        }
        Ok(Some(Tangents::from_elem(sum, 1)))
    }
}

impl Op for MatMul {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
    fn traits(&self) -> Traits {
        Traits {
            overwrites: self.plus && self.beta == ONE,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
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
        let plus = self.plus && self.beta.f64() != 0.0;
        let added = if plus {
            self.added(x[0], a, b, y.shape())
        } else {
            Strides::new()
        };
        let plan = Plan::new(&p, &q, &batch, self.sum, &added);
        let at = [a, b, x[0], y].map(|t| Ptr::new(t.bytes_ptr()));
        let beta = if plus { self.beta } else { Scalar::Int(0) };
        macro_rules! run {
            ($T:ty, $Acc:ty, $get:ident) => {
                // SAFETY: the plan holds these tensors' own sizes and steps; `y` is fresh, or
                // what is added.
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
            DType::C64 | DType::C128 => {
                self.complex(x, y, |op, x, y| op.cpu(x, y).map(|()| true))?;
            }
            t => check::unsupported("addmm_impl_cpu_", t)?,
        }
        Ok(())
    }

    fn fast(&self) -> Option<&dyn Fast> {
        Some(self)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if y[0].dtype().is_complex() {
            return self.complex(x, &y[0], |op, x, y| op.gpu(gpu, x, y));
        }
        let Some(stacks) = self.stacks(gpu, x, &y[0])? else {
            return Ok(false);
        };
        transfer::ran(stacks.product(gpu))
    }

    fn large(&self) -> Option<&dyn Large> {
        Some(self)
    }

    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        let (a, _) = self.operands(x);
        y[0].numel()
            .saturating_mul(a.size(a.ndim().saturating_sub(1)))
    }
}

impl Large for MatMul {
    fn gpu_windows(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if y[0].dtype().is_complex() {
            return self.complex(x, &y[0], |op, x, y| op.gpu_windows(gpu, x, y));
        }
        match self.stacks(gpu, x, &y[0])? {
            // One matrix of the sum does not know what the others need.
            Some(stacks) if stacks.sums => {
                let (op, a, b) = self.in_depth(gpu, x)?;
                let x = op.with(x, &a, &b);
                op.gpu_windows(gpu, &x, y)
            }
            Some(stacks) => stacks.windows(gpu),
            None => Ok(false),
        }
    }
}

impl Batching for MatMul {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x).map(Some)
    }
}

impl Fusion for MatMul {
    fn accumulating(&self) -> Option<Arc<dyn Op>> {
        let op = MatMul {
            plus: true,
            ..self.clone()
        };
        (!self.plus).then(|| Arc::new(op) as Arc<dyn Op>)
    }
    fn prologue_epilogue(&self) -> [bool; 2] {
        [false, true]
    }
}

impl Fast for MatMul {
    fn call(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
        const SMALL: usize = 1 << 17;
        let (a, b) = self.operands(x);
        let plain = |t: &Tensor| t.dtype() == DType::F32 && t.device() == Device::Cpu;
        if self.sum || a.ndim() != 2 || b.ndim() != 2 || !plain(a) || !plain(b) {
            return None;
        }
        let (p, q) = (Stack::new(a, self.ta, true), Stack::new(b, self.tb, false));
        let (m, n, k) = (p.rows, q.cols, p.cols);
        let count = m.saturating_mul(n).saturating_mul(k);
        if k != q.rows || count == 0 || count > SMALL {
            return None;
        }
        let (mut beta, mut d) = (0.0, Mat::new(std::ptr::null(), 0, 0));
        if self.plus {
            let c = x[0];
            if !plain(c) || c.ndim() != 1 || c.size(0) != n {
                return None;
            }
            (beta, d) = (
                self.beta.f64() as f32,
                Mat::new(c.ptr::<f32>().cast_const(), 0, c.stride(0)),
            );
        }
        let y = match Tensor::empty(&[m, n], DType::F32, Device::Cpu) {
            Ok(y) => y,
            Err(e) => return Some(Err(e)),
        };
        let problem = Problem::<f32> {
            m,
            n,
            k,
            alpha: self.alpha.f64() as f32,
            a: Mat::new(a.ptr::<f32>().cast_const(), p.rs, p.cs),
            b: Mat::new(b.ptr::<f32>().cast_const(), q.rs, q.cs),
            beta,
            d,
            c: Mat::new(y.ptr(), n as isize, 1),
            reduced: true,
        };
        // SAFETY: sizes and steps are the tensors' own, and `y` is fresh.
        unsafe { product(&problem) };
        Some(Ok(y))
    }
}
