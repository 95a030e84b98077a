//! Complex numbers as pairs of real ones over the same memory, and back.

use super::{grads, AsStrided};
use crate::arg;
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Asked, Derivative, Grads};
use crate::ops::pointwise::{apply, binary, unary};
use crate::schema::{Args, Signature, Value};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use std::sync::Arc;

/// A complex tensor as real numbers, with a last dimension for the two parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ViewAsReal;

impl Derivative for ViewAsReal {
    fn name(&self) -> &'static str {
        "ViewAsRealBackward0"
    }
    fn view_of_many(&self, _x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        Some(Arc::new(self.clone()))
    }
    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("view_as_real").with([x[0].clone().into()]))
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        grads(g.contiguous()?.as_complex()?)
    }
}

/// Pairs of real numbers as complex ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ViewAsComplex;

impl Derivative for ViewAsComplex {
    fn name(&self) -> &'static str {
        "ViewAsComplexBackward0"
    }
    fn view_of_many(&self, _x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        Some(Arc::new(self.clone()))
    }
    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("view_as_complex").with([x[0].clone().into()]))
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        grads(g.as_real()?)
    }
}

/// A view of a base whose elements are complex where the view's are real, or the reverse, made
/// again after the base's history changed. `region` is the view in the real numbers of the base.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reinterpret {
    pub base: Layout,
    pub region: Layout,
    pub complex_base: bool,
}

impl Derivative for Reinterpret {
    fn name(&self) -> &'static str {
        "AsStridedBackward0"
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (view, base) = (self.region.clone(), &self.base);
        if self.complex_base {
            let base = base.pairs();
            let d = AsStrided { base, view }.vjp(cx, &[Some(g.clone())])?;
            return match d.into_iter().next().flatten() {
                Some(d) => grads(d.contiguous()?.as_complex()?),
                None => Ok(Grads::new()),
            };
        }
        let base = base.clone();
        AsStrided { base, view }.vjp(cx, &[Some(g.as_real()?)])
    }
}

impl Tensor {
    /// `view_as_real`.
    pub fn as_real(&self) -> Result<Tensor> {
        let dtype = self.dtype();
        ensure!(
            dtype.is_complex(),
            Runtime,
            "view_as_real is only supported for complex tensors, got {dtype}"
        );
        dispatch::view_under(self, self.layout().pairs(), dtype.part(), || Ok(ViewAsReal))
    }

    /// `view_as_complex`.
    pub fn as_complex(&self) -> Result<Tensor> {
        let dtype = match self.dtype() {
            DType::F16 | DType::F32 | DType::F64 => self.dtype().complex(),
            other => bail!(
                Runtime,
                "view_as_complex is only supported for half, float and double tensors, but got a \
                 tensor of scalar type: {}",
                other.scalar_name()
            ),
        };
        ensure!(
            self.ndim() > 0,
            Runtime,
            "Input tensor must have one or more dimensions"
        );
        let mut l = self.layout().clone();
        let (n, step) = (l.shape.pop(), l.strides.pop());
        ensure!(
            n == Some(2),
            Runtime,
            "Tensor must have a last dimension of size 2"
        );
        ensure!(
            step == Some(1),
            Runtime,
            "Tensor must have a last dimension with stride 1"
        );
        let sizes = l.shape.iter().zip(&l.strides);
        ensure!(
            sizes.into_iter().all(|(&n, s)| n < 2 || s % 2 == 0),
            Runtime,
            "Tensor must have a stride divisible by 2 for all but last dimension"
        );
        ensure!(
            l.offset.is_multiple_of(2),
            Runtime,
            "Tensor must have a storage_offset divisible by 2"
        );
        l.strides.iter_mut().for_each(|s| *s /= 2);
        l.offset /= 2;
        dispatch::view_under(self, l, dtype, || Ok(ViewAsComplex))
    }

    /// The real (0) or imaginary (1) parts, which share memory with a complex tensor.
    pub fn real_part(&self, which: i64) -> Result<Tensor> {
        self.as_real()?.select(-1, which)
    }

    /// `conj`: itself where the type is real.
    pub fn conj(&self) -> Result<Tensor> {
        match self.dtype().is_complex() {
            true => apply(unary::Conj, [self]),
            false => Ok(self.clone()),
        }
    }

    /// `complex`: the numbers with these parts.
    pub fn of_parts(re: &Tensor, im: &Tensor) -> Result<Tensor> {
        let shape = crate::shape::broadcast(re.shape(), im.shape())?;
        let parts = [re.expand_to(&shape)?, im.expand_to(&shape)?];
        crate::ops::shape::join::stack(&parts, -1)?.as_complex()
    }
}

fn same_float(name: &str, half: bool, x: &Tensor, y: &Tensor) -> Result<()> {
    for t in [x, y] {
        ensure!(
            matches!(t.dtype(), DType::F32 | DType::F64) || half && t.dtype() == DType::F16,
            Runtime,
            "Expected both inputs to be {} tensors but got {} and {}",
            "Half, Float or Double",
            x.dtype().scalar_name(),
            y.dtype().scalar_name()
        );
    }
    ensure!(
        x.dtype() == y.dtype(),
        Runtime,
        "Expected object of scalar type {} but got scalar type {} for second argument of {name}",
        x.dtype().scalar_name(),
        y.dtype().scalar_name()
    );
    Ok(())
}

fn polar<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (r, angle) = (a.tensor(arg!(abs))?, a.tensor(arg!(angle))?);
    same_float("polar", false, r, angle)?;
    let re = apply(binary::Mul, [r, &apply(unary::Cos, [angle])?])?;
    let im = apply(binary::Mul, [r, &apply(unary::Sin, [angle])?])?;
    Ok(Tensor::of_parts(&re, &im)?.into())
}

crate::entries! {
    /// A complex tensor as real numbers over the same memory: the last dimension holds the real
    /// and the imaginary part.
    "view_as_real(Tensor self) -> Tensor", FN,
    |a| Ok(a.tensor(arg!(self))?.as_real()?.into());
    /// Pairs of real numbers, in the last dimension, as complex numbers over the same memory.
    "view_as_complex(Tensor self) -> Tensor", FN,
    |a| Ok(a.tensor(arg!(self))?.as_complex()?.into());
    /// The complex numbers with these real and imaginary parts.
    "complex(Tensor real, Tensor imag) -> Tensor", FN | OUT,
    |a| {
        same_float("complex", true, a.tensor(arg!(real))?, a.tensor(arg!(imag))?)?;
        Ok(Tensor::of_parts(a.tensor(arg!(real))?, a.tensor(arg!(imag))?)?.into())
    };
    /// The complex numbers with these moduli and angles.
    "polar(Tensor abs, Tensor angle) -> Tensor", FN | OUT,
    polar;
}
