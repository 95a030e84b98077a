//! Convolution. One op in three roles, which are each other's derivatives: the convolution, its
//! gradient for the input (the transposed convolution) and its gradient for the weight.

mod cpu;
mod gpu;
mod host;
mod many;
mod parts;
mod planes;

use crate::arg;
use crate::autograd::jvp::plus;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    Asked, Batching, Cut, Derivative, Grads, Mapped, Mask, Metas, Op, Part, Save, TensorMeta,
    Tensors,
};
use crate::schema::{Args, Signature, Value};
use crate::shape::{DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::transfer::{self, small_floats};
use crate::{bail, ensure};
use smallvec::SmallVec;

type Sizes = SmallVec<[usize; 3]>;

/// Which of the three factors of `sum w[o, c, k] x[n, c, s l + d k - p] y[n, o, l]` is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// Inputs are x, w and perhaps a bias.
    Output,
    /// Inputs are y, w and perhaps a bias: a transposed convolution.
    Input,
    /// Inputs are x and y.
    Weight,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Conv {
    role: Role,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: usize,
    /// Spatial sizes of x, of w and of y.
    input: Sizes,
    kernel: Sizes,
    output: Sizes,
}

impl Conv {
    fn with_role(&self, role: Role) -> Conv {
        Conv {
            role,
            ..self.clone()
        }
    }
}

impl Derivative for Conv {
    fn name(&self) -> &'static str {
        match self.role {
            Role::Weight => "ConvolutionBackwardBackward0",
            _ => "ConvolutionBackward0",
        }
    }

    fn asked(&self, x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        // The gradient of the input is a transposed convolution: a call has a bias, or was public.
        let gradient = matches!(self.role, Role::Weight);
        if gradient {
            return Ok(Asked::named("convolution_backward"));
        }
        let sizes = |v: &Sizes| Value::from(&v[..]);
        let transposed = matches!(self.role, Role::Input);
        // What a transposed convolution adds at the end of its result.
        let more = |d: usize| {
            let reach = self.dilation[d] * (self.kernel[d].saturating_sub(1))
                + 1
                + self.stride[d] * (self.output[d].saturating_sub(1));
            (self.input[d] + 2 * self.padding[d]).saturating_sub(reach)
        };
        let rest: Sizes = match transposed {
            true => (0..self.stride.len()).map(more).collect(),
            false => self.stride.iter().map(|_| 0).collect(),
        };
        let bias = x.get(2).map_or(Value::None, |&b| b.clone().into());
        Ok(Asked::named("convolution").with([
            x[0].clone().into(),
            x[1].clone().into(),
            bias,
            sizes(&self.stride),
            sizes(&self.padding),
            sizes(&self.dilation),
            Value::Bool(transposed),
            sizes(&rest),
            Value::Int(self.groups as i64),
        ]))
    }

    fn save(&self, needs: Mask) -> Save {
        Save {
            inputs: (needs & 1) << 1 | needs >> 1 & 1,
            outputs: 0,
        }
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out = Grads::from_elem(None, 3);
        let Some(g) = &g[0] else { return Ok(out) };
        let call = |role, a: &Tensor, b: &Tensor| dispatch::call1(self.with_role(role), &[a, b]);
        if cx.needs(0) {
            let b = cx.input(1)?;
            out[0] = Some(match self.role {
                Role::Output => call(Role::Input, g, &b)?,
                Role::Input => call(Role::Output, g, &b)?,
                Role::Weight => call(Role::Input, &b, g)?,
            });
        }
        if cx.needs(1) {
            let a = cx.input(0)?;
            out[1] = Some(match self.role {
                Role::Output => call(Role::Weight, &a, g)?,
                Role::Input => call(Role::Weight, g, &a)?,
                Role::Weight => call(Role::Output, &a, g)?,
            });
        }
        if cx.needs(2) {
            let mask = DimSet::of(g.ndim(), |d| d != 1)?;
            out[2] = Some(g.sum_mask(mask, false, Some(g.dtype()))?);
        }
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let (mut sum, mut bias) = (None, cx.tangent(2));
        for i in 0..2 {
            let Some(t) = cx.tangent(i) else { continue };
            let operand = |k: usize| if k == i { t } else { cx.input(k) };
            let mut x: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(&[operand(0), operand(1)]);
            x.extend(bias.take());
            sum = Some(plus(sum, dispatch::call1(self.clone(), &x)?)?);
        }
        if let Some(t) = bias {
            let mut shape = Dims::from_elem(1, cx.output(0)?.ndim());
            shape[1] = t.numel();
            sum = Some(plus(sum, t.reshape_to(&shape)?)?);
        }
        Ok(Some(Tangents::from_elem(sum, 1)))
    }
}

impl Op for Conv {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let (lead, spatial): ([usize; 2], &Sizes) = match self.role {
            Role::Output => ([x[0].size(0), x[1].size(0)], &self.output),
            Role::Input => ([x[0].size(0), x[1].size(1) * self.groups], &self.input),
            Role::Weight => ([x[1].size(1), x[0].size(1) / self.groups], &self.kernel),
        };
        let shape: Dims = lead.iter().chain(spatial).copied().collect();
        Ok(Metas::from_elem(
            TensorMeta {
                shape,
                dtype: x[0].dtype(),
                device: dispatch::device(x),
            },
            1,
        ))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        self.on_host(x, &y[0])
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let along = Part::Along;
        let cut = |a, b, bias, y| Cut::new([a, b, bias].into_iter().take(x.len()), [y]);
        let batch = cut(along(0), Part::Whole, Part::Whole, along(0));
        let mut cuts = match self.role {
            Role::Weight if x[0].dtype().is_half() => vec![],
            Role::Weight => vec![cut(along(0), along(0), Part::Whole, Part::Sum)],
            _ => vec![batch],
        };
        if self.groups == 1 {
            cuts.push(match self.role {
                Role::Output => cut(Part::Whole, along(0), along(0), along(1)),
                Role::Input => cut(Part::Whole, along(1), along(0), along(1)),
                Role::Weight => cut(Part::Whole, along(1), Part::Whole, along(0)),
            });
            // The channels that are summed over.
            match self.role {
                Role::Weight => cuts.push(cut(along(1), Part::Whole, Part::Whole, along(1))),
                _ if x.len() > 2 || x[0].dtype().is_half() => {}
                Role::Output => cuts.push(cut(along(1), along(1), Part::Whole, Part::Sum)),
                Role::Input => cuts.push(cut(along(1), along(0), Part::Whole, Part::Sum)),
            }
        }
        cuts
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        if !matches!(self.kernel.len(), 1..=3) || !small_floats(x) {
            return Ok(false);
        }
        let y = &y[0];
        let (a, b) = (transfer::dense(gpu, x[0])?, transfer::dense(gpu, x[1])?);
        let bias = x.get(2).map(|b| transfer::dense(gpu, b)).transpose()?;
        let (in_channels, out_channels) = match self.role {
            Role::Output => (a.size(1), b.size(0)),
            Role::Input => (y.size(1), a.size(1)),
            Role::Weight => (a.size(1), b.size(1)),
        };
        let wide = |v: &Sizes, rest: usize| -> [usize; 3] {
            std::array::from_fn(|d| (d + v.len()).checked_sub(3).map_or(rest, |i| v[i]))
        };
        let c = gpu::Geometry {
            batch: a.size(0),
            in_channels,
            out_channels,
            groups: self.groups,
            input: wide(&self.input, 1),
            output: wide(&self.output, 1),
            kernel: wide(&self.kernel, 1),
            stride: wide(&self.stride, 1),
            padding: wide(&self.padding, 0),
            dilation: wide(&self.dilation, 1),
        };
        let bias = bias.as_ref();
        transfer::ran(match self.role {
            Role::Output => gpu::forward(gpu, &c, &a, &b, bias, y),
            Role::Input => gpu::backward_input(gpu, &c, &a, &b, bias, y),
            Role::Weight => gpu::backward_weight(gpu, &c, &a, &b, y),
        })
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        // What the GPU's kernel does not take, complex numbers apart.
        if x[0].dtype().is_complex() {
            return Ok(None);
        }
        let y = match matches!(self.kernel.len(), 1..=3) && small_floats(x) {
            true => self.by_halves(x)?,
            false => Some(self.by_planes(x)?),
        };
        Ok(y.map(|y| SmallVec::from_elem(y, 1)))
    }

    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        x[0].numel()
            .max(y[0].numel())
            .saturating_mul(self.kernel.iter().product())
    }
}

impl Batching for Conv {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        self.of_slices(x).map(Some)
    }
}

/// Arguments of a convolution as they are called.
struct Call<'a> {
    name: &'a str,
    stride: &'a [i64],
    padding: &'a [i64],
    dilation: &'a [i64],
    transposed: bool,
    output_padding: &'a [i64],
    groups: i64,
}

/// The first two dimensions swapped, outside of any graph.
fn transposed(t: &Tensor) -> Result<Tensor> {
    Ok(t.detach().alias(t.layout().transpose(0, 1)?))
}

/// One number per spatial dimension.
fn per_dim(v: &[i64], n: usize, name: &str) -> Result<SmallVec<[i64; 3]>> {
    match v.len() {
        1 => Ok(SmallVec::from_elem(v[0], n)),
        len if len == n => Ok(SmallVec::from_slice(v)),
        _ => bail!(
            Runtime,
            "expected {name} to be a single integer value or a list of {n} values to match the \
             convolution dimensions, but got {name}={}",
            Show(v)
        ),
    }
}

fn join(v: &[i64]) -> String {
    v.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ")
}

fn too_large(name: &str) -> crate::error::Error {
    crate::error::Error::runtime(format!("{name}: sizes overflow a 64-bit integer"))
}

fn sizes(v: &[i64]) -> Sizes {
    v.iter().map(|&n| n as usize).collect()
}

impl Call<'_> {
    fn check(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<()> {
        ensure!(
            x.dtype() == w.dtype(),
            Runtime,
            "{}: expected scalar type {} but found {}: input and weight must have one type",
            self.name,
            x.dtype().scalar_name(),
            w.dtype().scalar_name()
        );
        if let Some(b) = bias {
            ensure!(
                x.dtype() == b.dtype(),
                Runtime,
                "Input type ({}) and bias type ({}) should be the same",
                x.dtype().c_name(),
                b.dtype().c_name()
            );
        }
        ensure!(
            x.dtype() != DType::Bool,
            NoKernel,
            "\"{}\" not implemented for '{}'",
            self.name,
            x.dtype().scalar_name()
        );
        let ws = w.shape();
        let (groups, first) = (self.groups, ws[0] as i64);
        ensure!(
            first >= groups,
            Runtime,
            "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but \
             got weight of size {} instead",
            Show(ws)
        );
        ensure!(
            first % groups == 0,
            Runtime,
            "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, \
             but got weight of size [{}] instead",
            Show(ws)
        );
        let (want, outputs) = if self.transposed {
            (first, ws[1] as i64 * groups)
        } else {
            (ws[1] as i64 * groups, first)
        };
        let got = x.size(1) as i64;
        ensure!(
            got == want,
            Runtime,
            "Given {}, weight of size {}, expected input{} to have {want} channels, but got {got} \
             channels instead",
            if self.transposed {
                "transposed=1".into()
            } else {
                format!("groups={groups}")
            },
            Show(ws),
            Show(x.shape())
        );
        if let Some(b) = bias {
            ensure!(
                b.ndim() == 1 && b.size(0) as i64 == outputs,
                Runtime,
                "Given {}weight of size {}, expected bias to be 1-dimensional with {outputs} \
                 elements, but got bias of size {} instead",
                if self.transposed {
                    "transposed=1, "
                } else {
                    ""
                },
                Show(ws),
                Show(b.shape())
            );
        }
        Ok(())
    }

    /// Of complex numbers, by three convolutions of real ones.
    fn complex(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let parts = |t: &Tensor| -> Result<[Tensor; 2]> { Ok([t.real_part(0)?, t.real_part(1)?]) };
        let ([x, ix], [w, iw]) = (parts(x)?, parts(w)?);
        let bias = bias.map(parts).transpose()?;
        let sum = bias.as_ref().map(|[re, im]| re.add(im)).transpose()?;
        let re = self.run(&x, &w, bias.as_ref().map(|[re, _]| re))?;
        let im = self.run(&ix, &iw, None)?;
        let both = self.run(&x.add(&ix)?, &w.add(&iw)?, sum.as_ref())?;
        Tensor::of_parts(&re.sub(&im)?, &both.sub(&re)?.sub(&im)?)
    }

    fn run(&self, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let n = w.ndim().saturating_sub(2);
        ensure!(
            (1..=3).contains(&n),
            Runtime,
            "{}: weight should have 3, 4 or 5 dimensions, but got weight of size {}",
            self.name,
            Show(w.shape())
        );
        ensure!(
            x.ndim() == n + 2 || x.ndim() == n + 1,
            Runtime,
            "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {}",
            n + 1,
            n + 2,
            self.name,
            Show(x.shape())
        );
        if x.ndim() == n + 1 {
            let batch: Dims = std::iter::once(1)
                .chain(x.shape().iter().copied())
                .collect();
            let y = self.run(&x.reshape_to(&batch)?, w, bias)?;
            return y.reshape_to(&y.shape()[1..]);
        }
        let stride = per_dim(self.stride, n, "stride")?;
        let padding = per_dim(self.padding, n, "padding")?;
        let dilation = per_dim(self.dilation, n, "dilation")?;
        let extra = per_dim(self.output_padding, n, "output_padding")?;
        ensure!(
            padding.iter().all(|&p| p >= 0),
            Runtime,
            "negative padding is not supported"
        );
        ensure!(
            extra.iter().all(|&p| p >= 0),
            Runtime,
            "negative output_padding is not supported"
        );
        ensure!(
            stride.iter().all(|&s| s > 0),
            Runtime,
            "non-positive stride is not supported"
        );
        ensure!(
            dilation.iter().all(|&d| d > 0),
            Runtime,
            "dilation should be greater than zero, but got {}",
            Show(&dilation)
        );
        ensure!(
            self.groups > 0,
            Runtime,
            "non-positive groups is not supported"
        );
        self.check(x, w, bias)?;
        if x.dtype().is_complex() {
            return self.complex(x, w, bias);
        }
        let (mut near, mut far): (Sizes, Sizes) = (sizes(&[]), sizes(&[]));
        let mut bad = false;
        let (mut shown, mut kernels) = (Vec::new(), Vec::new());
        for d in 0..n {
            let (size, k) = (x.size(d + 2) as i64, w.size(d + 2) as i64);
            let (s, p, l, e) = (stride[d], padding[d], dilation[d], extra[d]);
            let all = || -> Option<(i64, i64, i64)> {
                let (reach, pad) = (l.checked_mul(k - 1)?, p.checked_mul(2)?);
                let padded = size.checked_add(pad)?;
                let far = if self.transposed {
                    (size - 1)
                        .checked_mul(s)?
                        .checked_add(reach)?
                        .checked_add(e)?
                        .checked_add(1)?
                        .checked_sub(pad)?
                } else {
                    padded.checked_sub(reach)?.checked_sub(1)?.div_euclid(s) + 1
                };
                Some((reach, padded, far))
            };
            let (reach, padded, out) = all().ok_or_else(|| too_large(self.name))?;
            let reach = reach.checked_add(1).ok_or_else(|| too_large(self.name))?;
            if self.transposed {
                ensure!(
                    e < s.max(l),
                    Runtime,
                    "output padding must be smaller than either stride or dilation, but got \
                     output_padding: {}, stride: {}, dilation: {}",
                    Show(&extra),
                    Show(&stride),
                    Show(&dilation)
                );
                shown.push(size);
                kernels.push(out);
                bad |= out < 1;
            } else {
                shown.push(padded);
                kernels.push(reach);
                bad |= padded < reach || k == 0;
            }
            near.push(size as usize);
            far.push(out.max(0) as usize);
        }
        if bad && self.transposed {
            bail!(
                Runtime,
                "Given input size per channel: ({}). Calculated output size per channel: ({}). \
                 Output size is too small",
                join(&shown),
                join(&kernels)
            );
        }
        ensure!(
            !bad,
            Runtime,
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't \
             be greater than actual input size",
            join(&shown),
            join(&kernels)
        );
        ensure!(
            !near.contains(&0),
            Runtime,
            "Only zero batch or zero channel inputs are supported, but got input shape: {}",
            Show(x.shape())
        );
        let kernel: Sizes = w.shape()[2..].iter().copied().collect();
        let (role, input, output) = match self.transposed {
            true => (Role::Input, far, near),
            false => (Role::Output, near, far),
        };
        let op = Conv {
            role,
            stride: sizes(&stride),
            padding: sizes(&padding),
            dilation: sizes(&dilation),
            groups: self.groups as usize,
            input,
            kernel,
            output,
        };
        let y = match bias {
            Some(b) => dispatch::call1(op, &[x, w, b]),
            None => dispatch::call1(op, &[x, w]),
        }?;
        // Of no channels PyTorch makes none, with gradients of zero.
        match !self.transposed && x.size(1) == 0 {
            true => y.slice_dim(1, Some(0), Some(0), 1),
            false => Ok(y),
        }
    }

    /// `padding='same'` or `'valid'`.
    fn run_named(
        &self,
        padding: &str,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
    ) -> Result<Tensor> {
        let n = w.ndim().saturating_sub(2).max(1);
        match padding {
            "valid" => {
                return Call {
                    padding: &[0],
                    ..*self
                }
                .run(x, w, bias)
            }
            "same" => {}
            _ => bail!(Runtime, "Invalid padding string: '{padding}'"),
        }
        let stride = per_dim(self.stride, n, "stride")?;
        ensure!(
            stride.iter().all(|&s| s == 1),
            Runtime,
            "padding='same' is not supported for strided convolutions"
        );
        let dilation = per_dim(self.dilation, n, "dilation")?;
        let mut pads: SmallVec<[i64; 3]> = SmallVec::new();
        // Where the total is odd, the side after the data gets one more.
        let mut more: SmallVec<[i64; 6]> = SmallVec::from_elem(0, 2 * n);
        for d in 0..n {
            let total = dilation[d]
                .checked_mul(w.size(d + 2) as i64 - 1)
                .ok_or_else(|| too_large(self.name))?;
            pads.push(total / 2);
            more[2 * (n - 1 - d) + 1] = total % 2;
        }
        let call = Call {
            padding: &pads,
            ..*self
        };
        if more.iter().any(|&m| m > 0) && x.ndim() >= n {
            return call.run(
                &x.pad_constant(&more, crate::dtype::Scalar::Int(0))?,
                w,
                bias,
            );
        }
        call.run(x, w, bias)
    }
}

fn conv<Sig: Signature>(name: &str, n: usize, a: &Args<Sig>) -> Result<Value> {
    let call = Call {
        name,
        stride: a.ints(arg!(stride))?,
        padding: a.opt_ints(arg!(padding)).unwrap_or(&[0]),
        dilation: a.ints(arg!(dilation))?,
        transposed: false,
        output_padding: &[0],
        groups: a.int(arg!(groups))?,
    };
    let (x, w, b) = (
        a.tensor(arg!(input))?,
        a.tensor(arg!(weight))?,
        a.opt_tensor(arg!(bias)),
    );
    dims_fit(name, n, x, w)?;
    Ok(match a.opt_str(arg!(padding)) {
        Some(padding) => call.run_named(padding, x, w, b)?,
        None => call.run(x, w, b)?,
    }
    .into())
}

fn conv_transpose<Sig: Signature>(name: &str, n: usize, a: &Args<Sig>) -> Result<Value> {
    let call = Call {
        name,
        stride: a.ints(arg!(stride))?,
        padding: a.ints(arg!(padding))?,
        dilation: a.ints(arg!(dilation))?,
        transposed: true,
        output_padding: a.ints(arg!(output_padding))?,
        groups: a.int(arg!(groups))?,
    };
    let (x, w) = (a.tensor(arg!(input))?, a.tensor(arg!(weight))?);
    dims_fit(name, n, x, w)?;
    Ok(call.run(x, w, a.opt_tensor(arg!(bias)))?.into())
}

/// Refuses tensors that are no batch of `n` dimensions or one element of it.
fn dims_fit(name: &str, n: usize, x: &Tensor, w: &Tensor) -> Result<()> {
    ensure!(
        x.ndim() == n + 1 || x.ndim() == n + 2,
        Runtime,
        "Expected {}D (unbatched) or {}D (batched) input to {name}, but got input of size: {}",
        n + 1,
        n + 2,
        Show(x.shape())
    );
    ensure!(
        w.ndim() >= 3,
        Runtime,
        "weight should have at least three dimensions: {name} got a weight of size {}",
        Show(w.shape())
    );
    ensure!(
        w.ndim() == n + 2,
        Runtime,
        "Expected {}-dimensional input for {}-dimensional weight{}, but got {}-dimensional input \
         of size {} instead",
        w.ndim(),
        w.ndim(),
        Show(w.shape()),
        x.ndim(),
        Show(x.shape())
    );
    Ok(())
}

crate::entries! {
    /// Convolution over one dimension: input (N, C, L) or (C, L), weight (O, C / groups, k).
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
    FN, |a| conv("conv1d", 1, a);
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding='valid', int[1] dilation=1, int groups=1) -> Tensor",
    FN, |a| conv("conv1d", 1, a);
    /// Convolution over two dimensions: input (N, C, H, W) or (C, H, W).
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    FN | FORMAT, |a| conv("conv2d", 2, a);
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str padding='valid', int[2] dilation=1, int groups=1) -> Tensor",
    FN | FORMAT, |a| conv("conv2d", 2, a);
    /// Convolution over three dimensions: input (N, C, D, H, W) or (C, D, H, W).
    "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, int[3] dilation=1, int groups=1) -> Tensor",
    FN | FORMAT, |a| conv("conv3d", 3, a);
    "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str padding='valid', int[3] dilation=1, int groups=1) -> Tensor",
    FN | FORMAT, |a| conv("conv3d", 3, a);
    /// Transposed convolution over one dimension: the gradient of `conv1d` for its input.
    "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
    FN, |a| conv_transpose("conv_transpose1d", 1, a);
    /// Transposed convolution over two dimensions: the gradient of `conv2d` for its input.
    "conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
    FN | FORMAT, |a| conv_transpose("conv_transpose2d", 2, a);
    /// Transposed convolution over three dimensions: the gradient of `conv3d` for its input.
    "conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
    FN | FORMAT, |a| conv_transpose("conv_transpose3d", 3, a);
    /// Convolution or transposed convolution; the weight says over how many dimensions.
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
    FN | FORMAT, |a| {
        let (x, w) = (a.tensor(arg!(input))?, a.tensor(arg!(weight))?);
        ensure!(
            x.ndim() == w.ndim(),
            Runtime,
            "convolution: expected a {}-dimensional input for the {}-dimensional weight of size \
             {}, but got an input of size {}",
            w.ndim(),
            w.ndim(),
            Show(w.shape()),
            Show(x.shape())
        );
        let call = Call {
            name: "convolution",
            stride: a.ints(arg!(stride))?,
            padding: a.ints(arg!(padding))?,
            dilation: a.ints(arg!(dilation))?,
            transposed: a.bool(arg!(transposed))?,
            output_padding: a.ints(arg!(output_padding))?,
            groups: a.int(arg!(groups))?,
        };
        Ok(call.run(x, w, a.opt_tensor(arg!(bias)))?.into())
    };
    /// Convolution over the first dimension: input (L, N, C), weight (k, C, O).
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    FN | METHOD, |a| {
        let (x, w, pad) = (a.tensor(arg!(self))?, a.tensor(arg!(weight))?, a.int(arg!(pad))?);
        ensure!(x.ndim() == 3, Runtime, "Input must have 3 dims: time, batch, in_channel");
        ensure!(w.ndim() == 3, Runtime, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
        let call = Call {
            name: "conv_tbc",
            stride: &[1],
            padding: &[pad],
            dilation: &[1],
            transposed: false,
            output_padding: &[0],
            groups: 1,
        };
        let (x, w) = (x.permute(&[1, 2, 0])?, w.permute(&[2, 1, 0])?);
        // A kernel longer by one element fits nowhere: the result has no element either.
        let length = (x.size(2) as i64).saturating_add(pad.saturating_mul(2));
        let none = pad >= 0 && length.checked_add(1) == Some(w.size(2) as i64);
        let y = match none {
            true => {
                let longer = x.pad_constant(&[0, 1], crate::dtype::Scalar::Int(0))?;
                call.run(&longer, &w, a.opt_tensor(arg!(bias)))?.slice_dim(2, Some(0), Some(0), 1)?
            }
            false => call.run(&x, &w, a.opt_tensor(arg!(bias)))?,
        };
        Ok(y.permute(&[2, 0, 1])?.into())
    };
}
