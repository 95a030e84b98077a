//! Padding with a constant; the other modes are maps along each dimension (see `resample`).

use crate::arg;
use crate::autograd::jvp::along;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::dispatch;
use crate::dtype::{check_range, Bitwise, DType, Scalar};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Keep, Metas, Op, Rare, TensorMeta, Traits};
use crate::ops::nn::resample::Axis;
use crate::ops::pointwise::types::{fits, held};
use crate::ops::shape::create::dense_strides;
use crate::ops::shape::join::stack;
use crate::schema::{Args, MemoryFormat, Signature, Value};
use crate::shape::{Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;
use std::sync::Arc;

/// `pad` holds (before, after) pairs, the last dimension first; negative ones crop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConstantPad {
    pad: SmallVec<[i64; 6]>,
    value: Scalar,
    /// Of complex numbers.
    imaginary: Bitwise,
}

impl ConstantPad {
    /// (before, after) of dimension `d` of `n`.
    fn of(&self, d: usize, n: usize) -> (i64, i64) {
        match self.pad.get(2 * (n - 1 - d)..2 * (n - d)) {
            Some(p) => (p[0], p[1]),
            None => (0, 0),
        }
    }
}

impl Derivative for ConstantPad {
    fn name(&self) -> &'static str {
        "ConstantPadNdBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::from_elem(None, 1));
        };
        let back: SmallVec<[i64; 6]> = self.pad.iter().map(|&p| -p).collect();
        Ok(Grads::from_elem(
            Some(g.pad_constant(&back, Scalar::Int(0))?),
            1,
        ))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let blank = ConstantPad {
            value: Scalar::Int(0),
            imaginary: Bitwise(0.0),
            ..self.clone()
        };
        along(dispatch::call1(blank, &[&cx.tangent_or_zeros(0)?])?)
    }
}

impl Op for ConstantPad {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let n = x[0].ndim();
        let mut shape = Dims::new();
        for d in 0..n {
            let (before, after) = self.of(d, n);
            let size = (x[0].size(d) as i64)
                .checked_add(before)
                .and_then(|s| s.checked_add(after));
            ensure!(
                size.is_some_and(|s| s >= 0),
                Runtime,
                "constant_pad_nd: narrow(): length must be non-negative. The input size {}, plus \
                 negative padding {before} and {after} resulted in a negative output size, which \
                 is invalid. Check dimension {d} of your input.",
                x[0].size(d)
            );
            shape.push(size.unwrap_or(0) as usize);
        }
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

    /// A part of the input lies as its copy would.
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        if x[0].layout().is_plain() || self.pad.iter().any(|&p| p > 0) {
            return None;
        }
        let mut part = x[0].layout().clone();
        part.shape = y.shape.clone();
        let mut layout = Layout::contiguous(&y.shape);
        layout.strides = dense_strides(&part);
        Some(layout)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        self.write(x[0], &y[0])
    }

    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        self.write(x[0], &y[0]).map(|()| true)
    }
}

impl ConstantPad {
    fn write(&self, x: &Tensor, y: &Tensor) -> Result<()> {
        let n = x.ndim();
        y.write_scalar(self.value)?;
        if *self.imaginary != 0.0 {
            y.component(1)
                .write_scalar(Scalar::Float(*self.imaginary))?;
        }
        let (mut from, mut to): (Layout, Layout) = (x.layout().clone(), y.layout().clone());
        for d in 0..n {
            let (before, after) = self.of(d, n);
            let size = x.size(d) as i64;
            // The part of the input that stays, as a range of the input and of the output.
            let (start, end) = (
                before.saturating_neg().max(0),
                size - after.saturating_neg().max(0),
            );
            if end <= start {
                return Ok(());
            }
            from = from.slice(d as i64, Some(start), Some(end), 1)?;
            let at = start + before;
            to = to.slice(d as i64, Some(at), Some(at + end - start), 1)?;
        }
        y.alias(to).write_from(&x.alias(from))
    }
}

impl Tensor {
    /// `constant_pad_nd`.
    pub fn pad_constant(&self, pad: &[i64], value: Scalar) -> Result<Tensor> {
        constant(self, pad, value, 0.0)
    }
}

fn constant(x: &Tensor, pad: &[i64], value: Scalar, imaginary: f64) -> Result<Tensor> {
    ensure!(
        pad.len().is_multiple_of(2),
        Runtime,
        "Length of pad must be even but instead it equals {}",
        pad.len()
    );
    ensure!(
        pad.len() <= 2 * x.ndim(),
        Runtime,
        "Length of pad should be no more than twice the number of dimensions of the input. \
             Pad length is {} while the input has {} dimensions.",
        pad.len(),
        x.ndim()
    );
    check_range(value, x.dtype())?;
    dispatch::call1(
        ConstantPad {
            pad: pad.into(),
            value,
            imaginary: Bitwise(imaginary),
        },
        &[x],
    )
}

/// How a padded index reads the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    Reflect,
    Replicate,
    Circular,
}

/// Pads the last `pad.len() / 2` dimensions by reading the input again.
fn fold(name: &str, node: &'static str, how: Fold, x: &Tensor, pad: &[i64]) -> Result<Tensor> {
    let n = pad.len() / 2;
    ensure!(
        pad.len().is_multiple_of(2) && (x.ndim() == n + 1 || x.ndim() == n + 2),
        Runtime,
        "{name}: padding size is expected to be {} and input {}D or {}D, but got {} and input of \
         size {}",
        2 * n,
        n + 1,
        n + 2,
        Show(pad),
        Show(x.shape())
    );
    let lead = x.ndim() - n;
    ensure!(
        !x.shape()[x.ndim() - n - 1..].contains(&0),
        Runtime,
        "{name}: Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other \
         non-zero dimensions for input, but got: {}",
        n + 1,
        n + 2,
        Show(x.shape())
    );
    ensure!(
        how == Fold::Circular || x.dtype() != DType::Bool,
        NoKernel,
        "\"{name}\" not implemented for '{}'",
        x.dtype().scalar_name()
    );
    let mut axes = Vec::new();
    for d in 0..n {
        let size = x.size(lead + d) as i64;
        let (before, after) = (pad[2 * (n - 1 - d)], pad[2 * (n - 1 - d) + 1]);
        match how {
            Fold::Reflect => ensure!(
                before < size && after < size,
                Runtime,
                "{name}: Argument #4: Padding size should be less than the corresponding input \
                 dimension, but got: padding ({before}, {after}) at dimension {} of input {}",
                lead + d,
                Show(x.shape())
            ),
            Fold::Circular => {
                ensure!(
                    before <= size && after <= size,
                    Runtime,
                    "Padding value causes wrapping around more than once."
                );
            }
            Fold::Replicate => {}
        }
        let out = size.checked_add(before).and_then(|s| s.checked_add(after));
        let Some(out) = out.filter(|&o| (0..1 << 31).contains(&o)) else {
            bail!(
                Runtime,
                "{name}: input of size {} is too small: calculated output size {} at dimension {} \
                 (Negative padding value is resulting in an empty dimension)",
                Show(x.shape()),
                size.saturating_add(before).saturating_add(after),
                lead + d
            )
        };
        // Circular padding repeats what negative padding leaves.
        let first = (-before).max(0);
        let left = size - first - (-after).max(0);
        ensure!(
            how != Fold::Circular || left > 0 || out == 0,
            Runtime,
            "{name}: padding ({before}, {after}) of dimension {} of {} leaves nothing to repeat",
            lead + d,
            Show(x.shape())
        );
        axes.push(Axis::gather(size as usize, out as usize, |i| {
            let at = i as i64 - before;
            (match how {
                Fold::Replicate => at.clamp(0, size - 1),
                Fold::Circular => first + (at - first).rem_euclid(left),
                Fold::Reflect if at < 0 => -at,
                Fold::Reflect if at >= size => 2 * (size - 1) - at,
                Fold::Reflect => at,
            }) as usize
        })?);
    }
    ensure!(
        how == Fold::Circular || axes.iter().any(|a| a.outputs() > 0),
        Runtime,
        "{name}: input of size {} is too small: padding {} leaves nothing of it",
        Show(x.shape()),
        Show(pad)
    );
    match how {
        Fold::Circular => x.resample(node, axes),
        _ => x.resample_step(node, axes),
    }
}

/// Checks the list's length and pads.
fn fold_n(n: usize, how: Fold, x: &Tensor, pad: &[i64]) -> Result<Tensor> {
    let (name, node) = match (how, n) {
        (Fold::Reflect, 1) => ("reflection_pad1d", "ReflectionPad1DBackward0"),
        (Fold::Reflect, 2) => ("reflection_pad2d", "ReflectionPad2DBackward0"),
        (Fold::Reflect, _) => ("reflection_pad3d", "ReflectionPad3DBackward0"),
        (Fold::Replicate, 1) => ("replication_pad1d", "ReplicationPad1DBackward0"),
        (Fold::Replicate, 2) => ("replication_pad2d", "ReplicationPad2DBackward0"),
        (Fold::Replicate, _) => ("replication_pad3d", "ReplicationPad3DBackward0"),
        (Fold::Circular, _) => ("_pad_circular", "PadCircularBackward0"),
    };
    let one: SmallVec<[i64; 6]> = match pad {
        [p] => SmallVec::from_elem(*p, 2 * n),
        _ => pad.into(),
    };
    ensure!(
        one.len() == 2 * n,
        Runtime,
        "{name}: padding size is expected to be {}, but got: {}",
        2 * n,
        pad.len()
    );
    fold(name, node, how, x, &one)
}

impl Tensor {
    /// `nn.functional.pad`.
    pub fn pad(&self, pad: &[i64], mode: &str, value: Option<Scalar>) -> Result<Tensor> {
        ensure!(
            pad.len().is_multiple_of(2),
            Runtime,
            "Padding length must be divisible by 2"
        );
        ensure!(
            pad.len() <= 2 * self.ndim(),
            Runtime,
            "Padding length should be less than or equal to two times the input dimension but got \
             padding length {} and input of dimension {}",
            pad.len(),
            self.ndim()
        );
        if mode == "constant" {
            return self.pad_constant(pad, value.unwrap_or(Scalar::Int(0)));
        }
        ensure!(
            value.is_none_or(|v| v.f64() == 0.0),
            Runtime,
            "Padding mode \"{mode}\" doesn't take in value argument"
        );
        let n = pad.len() / 2;
        let how = match mode {
            "reflect" => Fold::Reflect,
            "replicate" => Fold::Replicate,
            "circular" => Fold::Circular,
            _ => bail!(NotImplemented, "Unrecognised padding mode {mode}"),
        };
        ensure!(
            (1..=3).contains(&n) && (self.ndim() == n + 1 || self.ndim() == n + 2),
            NotImplemented,
            "Padding size {} is not supported for {}D input tensor.\nSupported combinations for \
             non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  \
             - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: \
             padding size = 6 (pads last 3 dimensions)",
            pad.len(),
            self.ndim()
        );
        fold_n(n, how, self, pad)
    }
}

/// `pad_sequence`: stacks sequences filled up to the longest one; the first one's dtype and
/// further dimensions hold for all.
fn pad_sequence(
    sequences: &[Tensor],
    batch_first: bool,
    value: Scalar,
    side: &str,
) -> Result<Tensor> {
    let Some(first) = sequences.first() else {
        bail!(Runtime, "received an empty list of sequences");
    };
    ensure!(
        matches!(side, "left" | "right"),
        Runtime,
        "Expected padding_side to be one of left or right, but got {side}."
    );
    for s in sequences {
        ensure!(
            s.ndim() > 0,
            Index,
            "pad_sequence: Dimension specified as 0 but tensor has no dimensions"
        );
    }
    let longest = sequences.iter().map(|s| s.size(0)).max().unwrap_or(0);
    let rows = sequences.iter().map(|s| {
        let mut shape = first.shape().clone();
        shape[0] = s.size(0);
        let sizes: SmallVec<[i64; 6]> = shape.iter().map(|&n| n as i64).collect();
        let mut pad: SmallVec<[i64; 6]> = SmallVec::from_elem(0, 2 * shape.len());
        let end = pad.len() - if side == "left" { 2 } else { 1 };
        pad[end] = (longest - s.size(0)) as i64;
        s.to_dtype(first.dtype())?
            .expand(&sizes)?
            .pad_constant(&pad, value)
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    stack(&rows, if batch_first { 0 } else { 1 })
}

fn folded<Sig: Signature>(n: usize, how: Fold, a: &Args<Sig>) -> Result<Value> {
    Ok(fold_n(n, how, a.tensor(arg!(self))?, a.ints(arg!(padding))?)?.into())
}

crate::entries! {
    /// Pads with a constant: `pad` holds (before, after) pairs, the last dimension first.
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", FN | FORMAT | COMPLEX,
    |a| {
        let (x, pad) = (a.tensor(arg!(self))?, a.ints(arg!(pad))?);
        let number = a.number(arg!(value))?;
        fits(&number, x.dtype())?;
        let y = match *a.value(arg!(value)) {
            Value::Complex(re, im) if x.dtype().is_complex() => {
                constant(x, pad, Scalar::Float(re), im)?
            }
            _ => x.pad_constant(pad, held(&number, x.dtype())?.item()?)?,
        };
        Ok(y.into())
    };
    /// Pads the last dimensions: `mode` is constant, reflect, replicate or circular.
    "pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor", NN,
    |a| {
        let (x, mode) = (a.tensor(arg!(self))?, a.str(arg!(mode))?);
        let y = x.pad(a.ints(arg!(pad))?, mode, a.opt_scalar(arg!(value)))?;
        Ok(match mode {
            "circular" => y.in_format(MemoryFormat::Contiguous)?,
            _ if x.layout().suggests_channels_last() => y.in_channels_last()?,
            _ => y,
        }
        .into())
    };
    /// Stacks sequences of different lengths, filled up with a value.
    "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, \
     str padding_side='right') -> Tensor", NN,
    |a| Ok(pad_sequence(a.tensors(arg!(sequences))?, a.bool(arg!(batch_first))?, a.scalar(arg!(padding_value))?, a.str(arg!(padding_side))?)?.into());
    /// Pads the last dimension by reflection at the edge.
    "reflection_pad1d(Tensor self, int[] padding) -> Tensor", NN | OUT,
    |a| folded(1, Fold::Reflect, a);
    /// Pads the last two dimensions by reflection at the edge.
    "reflection_pad2d(Tensor self, int[] padding) -> Tensor", NN | FORMAT | OUT,
    |a| folded(2, Fold::Reflect, a);
    /// Pads the last three dimensions by reflection at the edge.
    "reflection_pad3d(Tensor self, int[] padding) -> Tensor", NN | OUT,
    |a| folded(3, Fold::Reflect, a);
    /// Pads the last dimension with the elements at the edge.
    "replication_pad1d(Tensor self, int[] padding) -> Tensor", NN | OUT,
    |a| folded(1, Fold::Replicate, a);
    /// Pads the last two dimensions with the elements at the edge.
    "replication_pad2d(Tensor self, int[] padding) -> Tensor", NN | FORMAT | OUT,
    |a| folded(2, Fold::Replicate, a);
    /// Pads the last three dimensions with the elements at the edge.
    "replication_pad3d(Tensor self, int[] padding) -> Tensor", NN | OUT,
    |a| folded(3, Fold::Replicate, a);
}
