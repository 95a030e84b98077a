//! Attention as one op: its result and the each row's statistics from which backward makes the
//! weights again.

use super::super::gpu::{self, Dropped};
use super::super::{hidden, hides, of_type, parts, repeat_heads, SafeSoftmax};
use super::product::PAD;
use super::{backward, forward, Attention, Gradients, Planes};
use crate::autograd::{mode, Vjp};
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::{packed_strides, Layout};
use crate::meta::Meta;
use crate::op::{
    mask, Asked, Batching, Cut, Derivative, Grads, Mapped, Mask, Metas, Op, Part, Replay,
    ReplayArgs, Save, TensorMeta, Tensors, Traits,
};
use crate::ops::shape::create::dense_strides;
use crate::ops::shape::many::{merged, parted};
use crate::shape::of_many;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::{alloc, bail, ensure, with_float};
use smallvec::SmallVec;
use std::sync::Arc;

/// Inputs are queries, keys and values, then the mask and the factors of the weights where there
/// are any. The last dimensions are (heads, rows, width); those before are equal. Heads of keys
/// and values may be fewer, if they divide those of queries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flash {
    pub scale: Bitwise,
    pub causal: bool,
    /// By how many rows queries are ahead of keys, for a causal mask: 0 but for parts on the GPU.
    pub ahead: isize,
    pub mask: bool,
    pub factor: bool,
    /// Dropout on the GPU, whose kernels count its numbers instead.
    pub dropped: Option<Dropped>,
}

impl Flash {
    fn keyed(&self, key: Option<[u32; 4]>) -> Option<Flash> {
        let dropped = Some(self.dropped.as_ref()?.keyed(key));
        Some(Flash {
            dropped,
            ..self.clone()
        })
    }
}

/// The gradients of [`Flash`]: inputs are g, the output and its statistics, then its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlashGrad(pub Flash);

/// The results for all slices. Of the inputs, `alike` have one shape, as slices of one dimension more or, for
/// kernels take no more than four dimensions, as more of the first one; what follows broadcasts.
fn of_slices<O: Op + Clone>(op: &O, x: &Mapped, alike: usize) -> Result<Tensors> {
    let ndim = x.ndim(alike - 1);
    let whole = ndim == 4;
    let first = x.x[alike - 1].size(x.has(alike - 1) as usize);
    let mut all: SmallVec<[Tensor; 8]> = SmallVec::new();
    for i in 0..x.x.len() {
        all.push(match (whole, i < alike) {
            (true, true) => merged(&x.with_slices(i)?, 0)?,
            (false, true) => x.with_slices(i)?,
            (true, false) => {
                let t = x.aligned(i, ndim)?;
                let own = t.ndim() - x.has(i) as usize;
                match x.has(i) || own == ndim && t.size(0) != 1 {
                    false => t,
                    true => {
                        let mut shape = of_many(x.size, &t.shape()[x.has(i) as usize..]);
                        shape[1] = first;
                        merged(&t.expand_to(&shape)?, 0)?
                    }
                }
            }
            (false, false) => x.aligned(i, ndim)?,
        });
    }
    let all: SmallVec<[&Tensor; 8]> = all.iter().collect();
    let y = dispatch::call(op.clone(), &all)?;
    match whole {
        true => y.iter().map(|t| parted(t, 0, x.size)).collect(),
        false => Ok(y),
    }
}

/// A tensor's shape and steps with broadcasting to `shape`.
struct Spread {
    shape: Dims,
    steps: SmallVec<[isize; 5]>,
}

impl Spread {
    fn of(t: &Tensor) -> Spread {
        Spread::to(t, t.shape())
    }
    fn to(t: &Tensor, shape: &[usize]) -> Spread {
        let layout = t.layout().expand_to(shape);
        Spread {
            shape: Dims::from_slice(shape),
            steps: layout.strides.iter().copied().collect(),
        }
    }
    fn planes(&mut self, t: &Tensor) -> Planes<'_> {
        Planes::new(t, &self.shape, &mut self.steps)
    }
}

/// The shape of the scores.
fn scores_shape(q: &Meta, k: &Meta) -> Dims {
    let mut shape = q.shape().clone();
    if let Some(last) = shape.last_mut() {
        *last = k.size(k.ndim() - 2);
    }
    shape
}

fn heads(t: &Tensor) -> usize {
    t.ndim().checked_sub(3).map_or(1, |d| t.size(d))
}

impl Flash {
    /// Calls `f` with what the kernels take.
    fn with<R>(&self, x: &[&Tensor], f: impl FnOnce(&Attention) -> R) -> R {
        let (q, k, v) = (x[0], x[1], x[2]);
        let n = q.ndim();
        let scores = scores_shape(q, k);
        let [mut sq, mut sk, mut sv] = [Spread::of(q), Spread::of(k), Spread::of(v)];
        let mut rest = x[3..].iter();
        let mask = rest.next().filter(|_| self.mask);
        let factor = x[3 + self.mask as usize..].first();
        let mut sm = mask.map(|t| Spread::to(t, &scores));
        let mut sf = factor.map(|t| Spread::to(t, &scores));
        f(&Attention {
            batch: q.shape()[..n.saturating_sub(3)].iter().product(),
            heads: heads(q),
            group: heads(q) / heads(k).max(1),
            queries: q.size(n - 2),
            keys: k.size(n - 2),
            width: q.size(n - 1),
            value_width: v.size(n - 1),
            scale: self.scale.0,
            causal: self.causal,
            q: sq.planes(q),
            k: sk.planes(k),
            v: sv.planes(v),
            mask: sm.as_mut().zip(mask).map(|(s, t)| s.planes(t)),
            factor: sf.as_mut().zip(factor).map(|(s, t)| s.planes(t)),
        })
    }

    /// The host has no kernel that counts dropout's numbers.
    fn check_host(&self) -> Result<()> {
        ensure!(
            self.ahead == 0,
            NotImplemented,
            "scaled_dot_product_attention: the CPU has no kernel for a part of a causal mask"
        );
        ensure!(
            self.dropped.is_none(),
            NotImplemented,
            "scaled_dot_product_attention: what dropout drew on the GPU is known to its kernels \
             alone, which have no second derivative; apply dropout to the weights yourself"
        );
        Ok(())
    }

    /// The gradients as a graph, for second derivatives.
    fn composite(&self, g: &Tensor, x: &[&Tensor]) -> Result<[Tensor; 3]> {
        let q = x[0];
        let (k, v) = (repeat_heads(x[1], heads(q))?, repeat_heads(x[2], heads(q))?);
        let mask = match self.mask {
            true => Some(of_type(x[3], q.dtype())?),
            false => None,
        };
        let hidden = match self.mask || self.causal {
            true => Some(hides(mask.as_ref(), self.causal, &scores_shape(q, &k), q)?),
            false => None,
        };
        let hidden = hidden.as_ref();
        let mut scores =
            hidden::scores(&q.mul_scalar(self.scale.0)?, &k, hidden, f64::NEG_INFINITY)?;
        if let Some(mask) = mask.filter(|m| m.dtype() != DType::Bool) {
            scores = scores.add(&mask)?;
        }
        let p = dispatch::call1(SafeSoftmax, &[&scores])?;
        let mut used = p.clone();
        let mut d = hidden::scores(g, &v, hidden, 0.0)?;
        if self.factor {
            let f = x[3 + self.mask as usize];
            (used, d) = (used.mul(f)?, d.mul(f)?);
        }
        let d = p.mul(&d.sub(&d.mul(&p)?.sum_dim(-1, true)?)?)?;
        let d = d.mul_scalar(self.scale.0)?;
        let join = |t: Tensor, like: &Tensor| -> Result<Tensor> {
            if t.shape() == like.shape() {
                return Ok(t);
            }
            let at = like.ndim() - 3;
            let mut parts = like.shape().clone();
            parts.insert(at + 1, heads(q) / heads(like));
            t.reshape_to(&parts)?.sum_dim(at as i64 + 1, false)
        };
        let dq = hidden::weighted(&d, &k, hidden)?;
        let dk = join(hidden::weighted_columns(&d, q, hidden)?, x[1])?;
        let dv = join(hidden::weighted_columns(&used, g, hidden)?, x[2])?;
        Ok([dq, dk, dv])
    }
}

impl Flash {
    /// The dimensions of queries along which work can be cut: planes, whose numbers dropout goes by, and
    /// rows, from whose numbers a causal mask is made.
    fn dims(&self, q: &Meta) -> impl Iterator<Item = usize> {
        let rows = q.ndim() - 2;
        let plane = (0..rows).find(|&d| q.size(d) > 1);
        let plane = plane.filter(|_| self.dropped.is_none());
        let free = !self.causal && self.dropped.is_none();
        plane.into_iter().chain(free.then_some(rows))
    }

    /// How the inputs take part in a cut along a dimension of queries.
    fn parts(&self, d: usize, x: &[&Meta]) -> SmallVec<[Part; 5]> {
        let of_mask = |mask: &Meta| {
            let own = (d + mask.ndim()).checked_sub(x[0].ndim());
            let own = own.filter(|&d| mask.size(d) > 1);
            own.map_or(Part::Whole, Part::Along)
        };
        let part = |(i, t): (usize, &&Meta)| match i {
            1..3 if d == x[0].ndim() - 2 => Part::Whole,
            0..3 => Part::Along(d),
            3 if self.mask => of_mask(t),
            _ => Part::Whole,
        };
        x.iter().enumerate().map(part).collect()
    }
}

impl Derivative for Flash {
    fn name(&self) -> &'static str {
        "ScaledDotProductFlashAttentionForCpuBackward0"
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named("_scaled_dot_product_flash_attention_for_cpu"))
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1, 2, 3, 4]).and_outputs([0, 1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut out = Grads::from_elem(None, 3 + self.mask as usize + self.factor as usize);
        let Some(g) = &g[0] else { return Ok(out) };
        let inputs: SmallVec<[Tensor; 5]> =
            (0..out.len()).map(|i| cx.input(i)).collect::<Result<_>>()?;
        let x: SmallVec<[&Tensor; 5]> = inputs.iter().collect();
        if mode::traced() {
            self.check_host()?;
            let d = self.composite(g, &x)?;
            out.iter_mut().zip(d).for_each(|(o, d)| *o = Some(d));
            return Ok(out);
        }
        let (y, stats) = (cx.output(0)?, cx.output(1)?);
        let mut all: SmallVec<[&Tensor; 8]> = SmallVec::from_slice(&[g, &y, &stats]);
        all.extend(&inputs);
        if g.device().is_gpu() {
            let d = gpu::places([&inputs[0], &inputs[1], &inputs[2]])?;
            dispatch::compute_into(&FlashGrad(self.clone()), &all, &d)?;
            out.iter_mut().zip(d).for_each(|(o, d)| *o = Some(d));
            return Ok(out);
        }
        let d = dispatch::compute(&FlashGrad(self.clone()), &all)?;
        out.iter_mut().zip(d).for_each(|(o, d)| *o = Some(d));
        Ok(out)
    }
}

impl Op for Flash {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn replay(&self) -> Option<&dyn Replay> {
        self.dropped.is_some().then_some(self as &dyn Replay)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let (q, v) = (x[0], x[2]);
        let n = q.ndim();
        let mut shape = q.shape().clone();
        shape[n - 1] = v.size(n - 1);
        crate::shape::numel(&shape)?;
        // With a dimension more they are in order where the result is not.
        let mut of_rows = Dims::from_slice(&q.shape()[..n - 1]);
        of_rows.extend([1, 2]);
        let stats = TensorMeta::new(&of_rows, q.dtype().compute(), q.device());
        Ok(Metas::from_iter([
            TensorMeta::new(&shape, q.dtype(), q.device()),
            stats,
        ]))
    }

    fn traits(&self) -> Traits {
        Traits {
            detached: mask([1]),
            ..Traits::NONE
        }
    }

    /// In the order of the queries: where the heads of one row lie together, they merge without a copy.
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        let q = x[0].layout();
        if q.ndim() != 4 || y.shape.len() != 4 || q.is_plain() || q.strides[3] != 1 {
            return None;
        }
        let mut layout = Layout::contiguous(&y.shape);
        layout.strides = match y.shape == q.shape {
            true => dense_strides(q),
            false if q.strides[2] > q.strides[1] => packed_strides(&y.shape, &[3, 1, 2, 0]),
            false => return None,
        };
        Some(layout)
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if y[1].numel() == 0 {
            return Ok(());
        }
        self.check_host()?;
        let widest = x[0].size(x[0].ndim() - 1).max(x[2].size(x[2].ndim() - 1));
        alloc::check(widest, 4096)?;
        with_float!(x[0].dtype(), "scaled_dot_product_attention", T => {
            let mut to = Spread::of(&y[0]);
            let to = to.planes(&y[0]);
            self.with(x, |a| {
                // SAFETY: the planes are those of tensors; statistics are contiguous.
                unsafe { forward::<T>(a, &to, y[1].slice_mut()) }
            });
        });
        Ok(())
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let cut = |d| Cut::new(self.parts(d, x), [Part::Along(d); 2]);
        self.dims(x[0]).map(cut).collect()
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        self.launch(gpu, x, y)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::forward(self, x)
    }

    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        scores_shape(x[0], x[1]).iter().product::<usize>() / 8
            + x.iter().map(|t| t.numel()).sum::<usize>()
    }
}

impl Replay for Flash {
    fn key(&self) -> Option<[u32; 4]> {
        self.dropped.map(|d| d.key())
    }

    fn with_key(&self, key: Option<[u32; 4]>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(Flash::keyed(self, key)?))
    }

    fn args(&self, _x: &[&Tensor]) -> Result<ReplayArgs> {
        Ok(self
            .dropped
            .map_or_else(ReplayArgs::new, |d| d.key().into()))
    }
}

impl Batching for Flash {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        of_slices(self, x, 3).map(Some)
    }
}

impl Derivative for FlashGrad {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::named(
            "_scaled_dot_product_flash_attention_for_cpu_backward",
        ))
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            Assertion,
            "scaled_dot_product_attention: the fused gradient is never recorded"
        )
    }
}

impl Op for FlashGrad {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn replay(&self) -> Option<&dyn Replay> {
        self.0.dropped.is_some().then_some(self as &dyn Replay)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(x[3..6].iter().map(|t| TensorMeta::of(t)).collect())
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        self.0.check_host()?;
        let stats = x[2];
        if stats.numel() == 0 || x[4].numel() == 0 || x[5].numel() == 0 {
            for t in y {
                t.write_scalar(0.into())?;
            }
            return Ok(());
        }
        let widest = x[3].size(x[3].ndim() - 1).max(x[5].size(x[5].ndim() - 1));
        let long = x[3].size(x[3].ndim() - 2).max(x[4].size(x[4].ndim() - 2));
        alloc::check(widest.next_multiple_of(PAD), 8 * (long + 1024))?;
        with_float!(x[3].dtype(), "scaled_dot_product_attention", T => {
            let stats = stats.prepared(<T as crate::cpu::elements::Element>::DTYPE)?;
            let mut spreads = [x[0], x[1], &y[0], &y[1], &y[2]].map(Spread::of);
            let [g, out, dq, dk, dv] = &mut spreads;
            // SAFETY: a contiguous tensor of this type.
            let stats = unsafe { stats.slice::<T>() };
            let to = Gradients {
                g: g.planes(x[0]),
                y: out.planes(x[1]),
                stats,
                dq: dq.planes(&y[0]),
                dk: dk.planes(&y[1]),
                dv: dv.planes(&y[2]),
            };
            self.0.with(&x[3..], |a| {
                // SAFETY: the planes are those of tensors; outputs are this call's own.
                unsafe { backward::<T>(a, &to) }
            });
        });
        Ok(())
    }

    fn cuts(&self, x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        let cut = |d| {
            let of = self.0.parts(d, &x[3..]);
            let shared = match of[1] {
                Part::Whole => Part::Sum,
                part => part,
            };
            let own = [Part::Along(d); 3].into_iter();
            Cut::new(own.chain(of), [Part::Along(d), shared, shared])
        };
        self.0.dims(x[3]).map(cut).collect()
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        self.0.launch_backward(gpu, x, y)
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        parts::backward(self, x)
    }

    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        self.0.work(&x[3..], y)
    }
}

impl Replay for FlashGrad {
    fn key(&self) -> Option<[u32; 4]> {
        self.0.key()
    }

    fn with_key(&self, key: Option<[u32; 4]>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(FlashGrad(Flash::keyed(&self.0, key)?)))
    }

    fn args(&self, x: &[&Tensor]) -> Result<ReplayArgs> {
        self.0.args(x)
    }
}

impl Batching for FlashGrad {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        of_slices(self, x, 6).map(Some)
    }
}

/// Whether the op takes these: what it does not take goes the long way, which also words errors.
pub fn fits(q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> bool {
    let n = q.ndim();
    let shapes = n == k.ndim()
        && n == v.ndim()
        && k.size(n - 1) == q.size(n - 1)
        && k.size(n - 1) > 0
        && k.size(n - 2) == v.size(n - 2)
        && heads(k) == heads(v)
        && heads(q).checked_rem(heads(k)).is_none_or(|rest| rest == 0)
        && q.shape()[..n.saturating_sub(3)] == k.shape()[..n.saturating_sub(3)]
        && q.shape()[..n.saturating_sub(3)] == v.shape()[..n.saturating_sub(3)];
    let broadcasts = |m: &Tensor| {
        let scores = scores_shape(q, k);
        let skip = scores.len().checked_sub(m.ndim());
        skip.is_some_and(|s| {
            m.shape()
                .iter()
                .zip(&scores[s..])
                .all(|(&a, &b)| a == b || a == 1)
        })
    };
    shapes && mask.is_none_or(broadcasts)
}
