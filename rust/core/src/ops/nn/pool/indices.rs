//! Elements by their indices in a plane, there and back.

use super::gpu;
use crate::arg;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::simd::Lane;
use crate::dispatch;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{Cut, Derivative, Grads, Keep, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::ops::nn::resample::gpu::Pool2d;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::Eq;
use crate::ops::pointwise::ternary::where_;
use crate::schema::{Args, Signature};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure, host, transfer, with_compute, with_element};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The place of what is in no plane: a max over padding alone.
pub(super) const NOWHERE: i64 = -1;

/// Puts the elements of each plane of `x` where the second input says, in planes of zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scatter {
    pub(super) name: &'static str,
    pub(super) plane: Dims,
    /// Elements that meet are summed, and those that are [`NOWHERE`] are dropped; else the last one
    /// stays.
    pub(super) add: bool,
    /// The windows of the max pool whose gradient this is.
    pub(super) grid: Option<Pool2d>,
}

/// The adjoint: reads each plane of `x` where the second input says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Gather {
    pub(super) name: &'static str,
    pub(super) n: usize,
    pub(super) add: bool,
    pub(super) grid: Option<Pool2d>,
}

impl Derivative for Scatter {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn steps(&self) -> Mask {
        !self.add as Mask
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        let op = Gather {
            name: self.name,
            n: self.plane.len(),
            add: self.add,
            grid: self.grid,
        };
        Ok(Grads::from_iter([
            Some(dispatch::call1(op, &[g, &cx.input(1)?])?),
            None,
        ]))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        match self.add {
            true => cx.linear(&[0]),
            false => Ok(None),
        }
    }
}

impl Derivative for Gather {
    fn name(&self) -> &'static str {
        self.name
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 2));
        };
        let shape = &cx.input_meta(0)?.shape;
        let plane = Dims::from_slice(&shape[shape.len() - self.n..]);
        let op = Scatter {
            name: self.name,
            plane,
            add: self.add,
            grid: self.grid,
        };
        Ok(Grads::from_iter([
            Some(dispatch::call1(op, &[g, &cx.input(1)?])?),
            None,
        ]))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        match self.add {
            true => cx.linear(&[0]),
            false => Ok(None),
        }
    }
}

/// Checks that every index lies within a plane of `len` elements, or may be [`NOWHERE`].
fn check_indices(
    mut at: impl Iterator<Item = i64>,
    len: usize,
    plane: &[usize],
    nowhere: bool,
) -> Result<()> {
    let least = if nowhere { NOWHERE } else { 0 };
    if let Some(bad) = at.find(|&i| i < least || i >= len as i64) {
        let sizes = plane
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join("x");
        bail!(
            Runtime,
            "Found an invalid max index: {bad} (output volumes are of size {sizes})"
        );
    }
    Ok(())
}

impl Op for Scatter {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        // Indices of a max pool are its own.
        Ok(self.grid.is_some())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let lead = x[0].ndim() - self.plane.len();
        let shape: Dims = x[0].shape()[..lead]
            .iter()
            .chain(&self.plane)
            .copied()
            .collect();
        crate::shape::numel(&shape)?;
        Ok(Metas::from_elem(
            TensorMeta {
                shape,
                dtype: x[0].dtype(),
                device: x[0].device(),
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, at, y) = (x[0], x[1].prepared(DType::I64)?, &y[0]);
        let lead = x.ndim() - self.plane.len();
        let small: usize = x.shape()[lead..].iter().product();
        let large: usize = self.plane.iter().product();
        let at = Indices::of(&at);
        let t = y.dtype().compute();
        let x = x.prepared(t)?;
        let out = y.draft(t)?;
        let bad = AtomicBool::new(false);
        with_compute!(t, T => {
            // SAFETY: contiguous tensors of type T; the output is this call's own.
            let (x, out) = unsafe { (x.slice::<T>(), Ptr::new(out.ptr::<T>())) };
            let planes = x.len() / small.max(1);
            parallel_for(planes, (1 << 14) / (small + large).max(1) + 1, |range| {
                for p in range {
                    // SAFETY: planes belong to this range alone.
                    let to = unsafe { out.part(p * large..(p + 1) * large) };
                    to.fill(T::default());
                    let from = p * small..(p + 1) * small;
                    for (&v, place) in x[from.clone()].iter().zip(at.part(from).iter()) {
                        match to.get_mut(place as usize) {
                            Some(to) if self.add => *to = Lane::plus(*to, v),
                            Some(to) => *to = v,
                            None if self.add && place == NOWHERE => (),
                            None => bad.store(true, Ordering::Relaxed),
                        }
                    }
                }
            });
            // Without elements to put there, all are zeros.
            if x.is_empty() {
                // SAFETY: planes belong to this range alone.
                unsafe { out.part(0..y.numel()) }.fill(T::default());
            }
        });
        if bad.into_inner() {
            check_indices(at.iter(), large, &self.plane, self.add)?;
            bail!(Runtime, "{}: an index changed while it was read", self.name);
        }
        y.write_from(&out)
    }

    fn cuts(&self, x: &[&Meta], y: &[&Meta]) -> Vec<Cut> {
        Cut::along(0..x[0].ndim() - self.plane.len(), x.len(), y.len())
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (Some(grid), true) = (&self.grid, transfer::small_floats(&x[..1])) else {
            return Ok(false);
        };
        let (g, at) = (transfer::dense(gpu, x[0])?, transfer::dense(gpu, x[1])?);
        transfer::ran(gpu::max_backward(gpu, grid, &g, &at, &y[0]))
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let (g, at) = (x[0], x[1]);
        if g.dtype().is_complex() || g.numel() == 0 {
            return Ok(None);
        }
        let lead = g.ndim() - self.plane.len();
        let planes: usize = g.shape()[..lead].iter().product();
        let small = [planes, g.numel() / planes];
        let large = [planes, self.plane.iter().product()];
        let (g, at) = (g.reshape_to(&small)?, at.reshape_to(&small)?);
        let (at, nowhere) = inside(&at)?;
        let zeros = Tensor::zeros(&large, g.dtype(), g.device())?;
        let y = match self.add {
            true => {
                let zero = Tensor::zeros(&[], g.dtype(), g.device())?;
                zeros.scatter_add(1, &at, &where_(&nowhere, &zero, &g)?)?
            }
            false => zeros.scatter(1, &at, &g)?,
        };
        let shape: Dims = x[0].shape()[..lead]
            .iter()
            .chain(&self.plane)
            .copied()
            .collect();
        Ok(Some(Tensors::from_elem(y.reshape_to(&shape)?, 1)))
    }
}

/// Indices that all lie in a plane, and which of them were [`NOWHERE`]; others stay wrong.
fn inside(at: &Tensor) -> Result<(Tensor, Tensor)> {
    let number = |v| Tensor::full(&[], Scalar::Int(v), at.dtype(), at.device());
    let nowhere = apply(Eq, [at, &number(NOWHERE)?])?;
    Ok((where_(&nowhere, &number(0)?, at)?, nowhere))
}

impl Op for Gather {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        // Indices of a max pool are its own.
        Ok(self.grid.is_some())
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::of(x[1]);
        Ok(Metas::from_elem(
            TensorMeta {
                dtype: x[0].dtype(),
                ..meta
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, at, y) = (
            x[0].prepared(x[0].dtype())?,
            x[1].prepared(DType::I64)?,
            &y[0],
        );
        let lead = x.ndim() - self.n;
        let plane = &x.shape()[lead..];
        let large: usize = plane.iter().product();
        let small: usize = y.shape()[lead..].iter().product();
        let at = Indices::of(&at).own();
        check_indices(at.iter().copied(), large, plane, self.add)?;
        with_element!(y.dtype(), T => {
            // SAFETY: contiguous tensors of type T; the output is this call's own.
            let (x, y) = unsafe { (x.slice::<T>(), y.slice_mut::<T>()) };
            for (i, y) in y.iter_mut().enumerate() {
                *y = match at[i] {
                    NOWHERE => T::of_i64(0),
                    at => x[i / small * large + at as usize],
                };
            }
        });
        Ok(())
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let (from, at) = (x[0], x[1]);
        if from.dtype().is_complex() || at.numel() == 0 || from.numel() == 0 {
            return Ok(None);
        }
        let lead = from.ndim() - self.n;
        let planes: usize = from.shape()[..lead].iter().product();
        let small = [planes, at.numel() / planes];
        let from = from.reshape_to(&[planes, from.numel() / planes])?;
        let (index, nowhere) = inside(&at.reshape_to(&small)?)?;
        let zero = Tensor::zeros(&[], from.dtype(), from.device())?;
        let y = where_(&nowhere, &zero, &from.gather(1, &index)?)?;
        Ok(Some(Tensors::from_elem(y.reshape_to(at.shape())?, 1)))
    }
}

pub(super) fn max_unpool<Sig: Signature>(n: usize, a: &Args<Sig>) -> Result<Tensor> {
    let (x, at, size) = (
        a.tensor(arg!(self))?,
        a.tensor(arg!(indices))?,
        a.ints(arg!(output_size))?,
    );
    let node = if n == 2 {
        "MaxUnpool2DBackward0"
    } else {
        "MaxUnpool3DBackward0"
    };
    host::left_open(&format!("max_unpooling{n}d_forward_out"))?;
    ensure!(
        at.dtype() == DType::I64,
        Runtime,
        "elements in indices should be type int64 but got: {}",
        at.dtype().scalar_name()
    );
    ensure!(
        size.len() == n,
        Runtime,
        "There should be exactly {n} elements in output_size, but got {} elements.",
        size.len()
    );
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2,
        Runtime,
        "Input to max_unpooling{n}d should be a {}d or {}d Tensor, but got {} dimensions",
        n + 1,
        n + 2,
        x.ndim()
    );
    ensure!(
        x.shape() == at.shape(),
        Runtime,
        "Expected shape of indices to be same as that of the input tensor ({}) but got indices \
         tensor with shape: {}",
        Show(x.shape()),
        Show(at.shape())
    );
    let first = x.ndim() - n - 1;
    if let Some(d) = (first..x.ndim()).find(|&d| x.size(d) == 0) {
        bail!(
            Runtime,
            "max_unpooling{n}d_forward_out_cpu(): Expected input to have non-zero size for \
             non-batch dimensions, but got {} with dimension {d} being empty.",
            Show(x.shape())
        );
    }
    let plane = crate::shape::sizes(size)?;
    dispatch::call1(
        Scatter {
            name: node,
            plane,
            add: false,
            grid: None,
        },
        &[x, at],
    )
}
