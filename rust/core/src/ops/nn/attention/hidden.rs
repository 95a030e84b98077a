//! Products that do not read what a mask hides, where attention is composed of other ops: zero times NaN is NaN.

use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Keep, Mask, Metas, Op, Part, Save, TensorMeta, Tensors};
use crate::ops::linalg::matmul::swapped;
use crate::ops::pointwise::ternary::where_;
use crate::tensor::Tensor;
use crate::{bail, dispatch, transfer, typed};
use smallvec::smallvec;
use std::sync::Arc;

/// The rows of the first input times those of the second, and a number in the places that the third, of the result's
/// shape, hides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scores {
    fill: Bitwise<f64>,
}

/// The first input times the second without the terms that the third, of the first one's shape, hides; those of the
/// first are zero or NaN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Weighted;

/// The first input, a product of the second and the third, where it is finite: else that product without the terms
/// that the fourth hides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Mended;

/// The rows of `a` times those of `b`, and `fill` where the result is hidden.
pub fn scores(a: &Tensor, b: &Tensor, hidden: Option<&Tensor>, fill: f64) -> Result<Tensor> {
    let fill = Bitwise(fill);
    match hidden {
        None => a.matmul(&swapped(b)?),
        Some(hidden) => dispatch::call1(Scores { fill }, &[a, b, hidden]),
    }
}

/// `a` times `b` without the terms that are hidden in `a`, which has zero or NaN there.
pub fn weighted(a: &Tensor, b: &Tensor, hidden: Option<&Tensor>) -> Result<Tensor> {
    match hidden {
        None => a.matmul(b),
        Some(hidden) => dispatch::call1(Weighted, &[a, b, hidden]),
    }
}

/// [`weighted`] with the rows and columns of `a`, and of what is hidden in it, in each other's place.
pub fn weighted_columns(a: &Tensor, b: &Tensor, hidden: Option<&Tensor>) -> Result<Tensor> {
    weighted(&swapped(a)?, b, hidden.map(swapped).transpose()?.as_ref())
}

fn blank(hidden: &Tensor, value: f64, x: &Tensor) -> Result<Tensor> {
    where_(hidden, &Tensor::number(value.into())?, x)
}

impl Scores {
    fn composed(&self, x: &[&Tensor]) -> Result<Tensor> {
        blank(x[2], *self.fill, &x[0].matmul(&swapped(x[1])?)?)
    }
}

impl Derivative for Scores {
    fn name(&self) -> &'static str {
        "HiddenScoresBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1, 2])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None, None, None]);
        };
        let hidden = cx.input(2)?;
        let g = blank(&hidden, 0.0, g)?;
        Ok(smallvec![
            Some(weighted(&g, &cx.input(1)?, Some(&hidden))?),
            Some(weighted_columns(&g, &cx.input(0)?, Some(&hidden))?),
            None
        ])
    }
}

impl Op for Scores {
    /// Dimensions before the last two are those of separate products.
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut y = TensorMeta::of(x[0]);
        let n = x[1].ndim();
        if let Some(last) = y.shape.last_mut() {
            *last = x[1].size(n - 2);
        }
        Ok(Metas::from_elem(y, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        y[0].write_from(&self.composed(x)?)
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        Ok(Some(Tensors::from_elem(self.composed(x)?, 1)))
    }
}

impl Derivative for Weighted {
    fn name(&self) -> &'static str {
        "HiddenWeightedBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1, 2])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None, None, None]);
        };
        let hidden = cx.input(2)?;
        Ok(smallvec![
            Some(scores(g, &cx.input(1)?, Some(&hidden), 0.0)?),
            Some(weighted_columns(&cx.input(0)?, g, Some(&hidden))?),
            None
        ])
    }
}

impl Op for Weighted {
    /// Dimensions before the last two are those of separate products.
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let mut y = TensorMeta::of(x[0]);
        let n = x[1].ndim();
        if let Some(last) = y.shape.last_mut() {
            *last = x[1].size(n - 1);
        }
        Ok(Metas::from_elem(y, 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        y[0].write_from(&x[0].matmul(x[1])?)?;
        mend(&y[0], x)
    }
    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let product = x[0].matmul(x[1])?;
        let y = dispatch::call1(Mended, &[&product, x[0], x[1], x[2]])?;
        Ok(Some(Tensors::from_elem(y, 1)))
    }
}

impl Derivative for Mended {
    fn name(&self) -> &'static str {
        "HiddenMendedBackward0"
    }
    /// The product is what [`Weighted`] is made of, which knows its gradients.
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        Ok(smallvec![g[0].clone(), None, None, None])
    }
}

impl Op for Mended {
    /// Dimensions before the last two are those of separate products.
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(Metas::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        y[0].write_from(x[0])?;
        mend(&y[0], &x[1..])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        launch(gpu, x, &y[0])
    }
    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let (row, column) = (x[0].ndim() - 2, x[0].ndim() - 1);
        let mut all = Cut::along(0..row, 4, 1);
        let (rows, columns, whole) = (Part::Along(row), Part::Along(column), Part::Whole);
        all.push(Cut::new([rows, rows, whole, rows], [rows]));
        all.push(Cut::new([columns, whole, columns, whole], [columns]));
        all
    }
}

/// As planes of matrices.
fn planes(x: &Tensor) -> Result<Tensor> {
    let n = x.ndim();
    let lead = x.shape()[..n - 2].iter().product();
    x.reshape_to(&[lead, x.size(n - 2), x.size(n - 1)])
}

/// Computes the elements of the product `y` that are not finite again, without hidden terms.
fn mend(y: &Tensor, x: &[&Tensor]) -> Result<()> {
    typed!(y.dtype(), T => {
        // SAFETY: a contiguous tensor of this type of this call's own.
        let y_all = unsafe { y.slice_mut::<T>() };
        let is_finite = |v: T| v.to_f64().is_finite();
        if y_all.iter().all(|&v| is_finite(v)) {
            return Ok(());
        }
        let wide = |t: &Tensor| planes(&t.prepared(DType::F64)?);
        let (a, b, hidden) = (wide(x[0])?, wide(x[1])?, planes(&x[2].contiguous()?)?);
        let [rows, terms, columns] = [a.size(1), a.size(2), b.size(2)];
        // SAFETY: contiguous tensors of these types, read only.
        let (a, b, hidden) = unsafe { (a.slice::<f64>(), b.slice::<f64>(), hidden.slice::<u8>()) };
        for (i, v) in y_all.iter_mut().enumerate().filter(|(_, v)| !is_finite(**v)) {
            let (row, column) = (i / columns, i % columns);
            let of_b = &b[row / rows * terms * columns..];
            let seen = (0..terms).filter(|j| hidden[row * terms + j] == 0);
            let sum = seen.map(|j| a[row * terms + j] * of_b[j * columns + column]).sum();
            *v = T::of_f64(sum);
        }
        Ok(())
    }, [F16 => half::f16, BF16 => half::bf16, F32 => f32, F64 => f64], other => bail!(
        NoKernel,
        "\"scaled_dot_product_attention\" not implemented for '{}'",
        other.scalar_name()
    ))
}

params! {
    struct Params {
        n: u32,
        rows: u32,
        columns: u32,
        terms: u32,
        a_step: [u32; 4],
        b_step: [u32; 4],
        m_step: [u32; 4],
        x_offset: u32,
        y_offset: u32,
        pad: [u32; 2],
    }
}
shader! { static MENDED: Params = "mended.wgsl", &[Acc::F32, Acc::F64] }

/// Strides along matrices, rows and columns, and where the first element is.
fn step(x: &Tensor) -> [u32; 4] {
    let s = &x.layout().strides;
    [s[0] as u32, s[1] as u32, s[2] as u32, x.offset() as u32]
}

fn launch(gpu: &Gpu, x: &[&Tensor], y: &Tensor) -> Result<bool> {
    let product = x[0].contiguous()?;
    let (a, b, m) = (planes(x[1])?, planes(x[2])?, planes(x[3])?);
    let all = [&product, &a, &b, &m];
    let most = all.iter().map(|t| t.numel().max(t.offset())).max();
    if most.is_none_or(|n| n >= 1 << 31) {
        return Ok(false);
    }
    if y.numel() == 0 {
        return Ok(true);
    }
    if a.numel() == 0 {
        // A sum of nothing is what the product has.
        y.write_from(&product)?;
        return Ok(true);
    }
    let p = Params {
        n: y.numel() as u32,
        rows: a.size(1) as u32,
        columns: b.size(2) as u32,
        terms: a.size(2) as u32,
        a_step: step(&a),
        b_step: step(&b),
        m_step: step(&m),
        x_offset: product.offset() as u32,
        y_offset: y.offset() as u32,
        pad: [0; 2],
    };
    let done = MENDED
        .launch(Acc::of(y.dtype())?)
        .writes("Y", y)
        .reads("X", &product)
        .reads_words(&a)
        .reads_words(&b)
        .reads_words(&m)
        .each(gpu, &p, y.offset(), y.numel());
    transfer::ran(done)
}
