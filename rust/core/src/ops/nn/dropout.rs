//! Dropout. Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
//! overfitting". Masks are PyTorch's: Bernoulli numbers of the CPU's generator, in the order in which
//! the input lies in memory; on the GPU those of a counter-based stream.

use crate::arg;
use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::convert::{load, store};
use crate::cpu::pointwise::chain::{erased, Body, Loop};
use crate::cpu::pointwise::{Kernel, GRAIN, MAX_INPUTS};
use crate::cpu::pool::{parallel_for, Ptr};
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::error::Result;
use crate::gpu::pointwise::pointwise;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    Derivative, Drawn, Fusion, Grads, Keep, Mask, Metas, Op, Replay, ReplayArgs, Save, TensorMeta,
    Tensors, Traits,
};
use crate::ops::pointwise::{output_layout, Float};
use crate::ops::random::gpu::{below, bernoulli, PHILOX};
use crate::ops::random::{in_memory_order, memory_order, reorder};
use crate::ops::shape::create::dense_strides;
use crate::rng::{default_generator, Generator};
use crate::schema::Value;
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::{ensure, per_isa, transfer, with_float};
use smallvec::SmallVec;
use std::sync::Arc;

/// Elements are handled in blocks of this many.
const BLOCK: usize = 256;

per_isa! {
    /// Multiplies by `scale` where kept, else by zero.
    fn masked[T: Float](x: &mut [T], kept: &[u8], scale: T) {
        for (v, &k) in x.iter_mut().zip(kept) {
            *v = *v * if k != 0 { scale } else { T::ZERO };
        }
    }
}

/// `x * mask * scale` with a mask drawn here; the mask is the second result.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Dropout {
    p: Bitwise,
    scale: Bitwise,
    generator: Arc<Generator>,
}

impl std::fmt::Debug for Dropout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dropout({})", self.p.0)
    }
}

impl Derivative for Dropout {
    fn name(&self) -> &'static str {
        "NativeDropoutBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::outputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let mask = cx.output(1)?;
        let y = dispatch::call1(Masked { scale: self.scale }, &[g, &mask])?;
        Ok(SmallVec::from_elem(Some(y), 1))
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let Some(t) = cx.tangent(0) else {
            return Ok(None);
        };
        let masked = Masked { scale: self.scale };
        Ok(Some(Tangents::from_vec(vec![
            Some(dispatch::call1(masked, &[t, cx.output(1)?])?),
            None,
        ])))
    }
}

impl Op for Dropout {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn traits(&self) -> Traits {
        Traits {
            draws: true,
            detached: 2,
            ..Traits::NONE
        }
    }
    fn replay(&self) -> Option<&dyn Replay> {
        Some(self)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta::of(x[0]);
        let mut mask = meta.clone();
        mask.dtype = DType::Bool;
        Ok(SmallVec::from_vec(vec![meta, mask]))
    }
    /// The mask lies as what `empty_like` makes, the result as a product with it.
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        if x[0].layout().is_plain() {
            return None;
        }
        let mut like = Layout::contiguous(&y.shape);
        like.strides = dense_strides(x[0].layout());
        match y.dtype == DType::Bool {
            true => Some(like),
            false => output_layout(&[x[0], &Meta::new(like, y.dtype, y.device)], &y.shape),
        }
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        self.draw(&y[1])?;
        multiply(x[0], &y[1], self.scale.0, &y[0])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (mask, keep) = (&y[1], 1.0 - self.p.0);
        // Pointwise kernels are cut where they have to be, with the same numbers.
        let bound = transfer::is_bound_whole;
        let whole = |t: &Tensor| t.is_contiguous() && t.offset() == 0 && bound(t);
        let plain = x[0].is_contiguous() && x[0].numel() < 1 << 31 && bound(x[0]);
        if plain && y.iter().all(whole) {
            return transfer::ran(self.at_once(gpu, x[0], y));
        }
        let acc = Acc::of(x[0].dtype())?;
        transfer::ran(
            bernoulli(gpu, self.generator.philox(), keep, mask).and_then(|()| {
                let body = "fn op(x: Acc, m: Acc) -> Acc { return x * m * scalar(0u); }\n";
                let views = [transfer::whole(x[0])?, transfer::whole(mask)?];
                let scale = [acc.words(self.scale.0)];
                pointwise(gpu, acc, body, &views, transfer::whole(&y[0])?, &scale)
            }),
        )
    }
}

impl Replay for Dropout {
    fn args(&self, _x: &[&Tensor]) -> Result<ReplayArgs> {
        Ok(self.generator.philox().words().into())
    }

    fn drawn(&self, x: &[&Meta]) -> Result<Option<Drawn>> {
        let mut meta = TensorMeta::of(x[0]);
        meta.dtype = DType::Bool;
        let layout = self.layout(x, &meta);
        let layout = layout.unwrap_or_else(|| Layout::contiguous(&meta.shape));
        let mask = Tensor::of(Meta::new(layout, DType::Bool, meta.device))?;
        match meta.device {
            Device::Cpu => self.draw(&mask)?,
            Device::Wgpu(index) => {
                let gpu = Gpu::at(index)?;
                if !transfer::ran(bernoulli(
                    gpu,
                    self.generator.philox(),
                    1.0 - self.p.0,
                    &mask,
                ))? {
                    return Ok(None);
                }
            }
            Device::Meta => {}
        }
        let scale = self.scale;
        Ok(Some(Drawn {
            op: Arc::new(Masked { scale }),
            more: Tensors::from_iter([mask.clone()]),
            rest: Tensors::from_iter([mask]),
        }))
    }
}

impl Dropout {
    /// Draws a mask in host memory.
    fn draw(&self, mask: &Tensor) -> Result<()> {
        in_memory_order(mask, |mask| {
            // SAFETY: contiguous host memory of bools, which this call alone writes.
            let out = unsafe { std::slice::from_raw_parts_mut(mask.bytes_ptr(), mask.numel()) };
            self.generator.bits(out, 1.0 - self.p.0);
            Ok(())
        })
    }
}

params! {
    struct Block {
        n: u32,
        x_offset: u32,
        bound: u32,
        all: u32,
        scale: [u32; 2],
        dropped: [u32; 2],
        stream: [u32; 4],
    }
}
const FLOATS: &[Acc] = &[Acc::F32, Acc::F64];
shader! { static DROPOUT: Block = "dropout.wgsl", FLOATS; tail PHILOX }

impl Dropout {
    /// Mask and result of contiguous tensors in one dispatch, the same numbers as one after the other.
    fn at_once(&self, gpu: &Gpu, x: &Tensor, y: &[Tensor]) -> Result<()> {
        let acc = Acc::of(x.dtype())?;
        let (key, bound) = (self.generator.philox(), below(1.0 - self.p.0));
        let scale = acc.words(self.scale.0);
        let p = Block {
            n: x.numel() as u32,
            x_offset: x.offset() as u32,
            bound: bound.0,
            all: bound.1 as u32,
            scale,
            dropped: [0; 2],
            stream: key.words(),
        };
        DROPOUT
            .launch(acc)
            .followed_by(PHILOX)
            .writes("Y", &y[0])
            .writes_words(&y[1])
            .reads("X", x)
            .told(gpu, std::mem::offset_of!(Block, stream), 0, 4)
            .threads(gpu, &p, x.numel().div_ceil(4))
    }
}

/// Writes `x * mask * scale` to `y`, which has no gaps.
fn multiply(x: &Tensor, mask: &Tensor, scale: f64, y: &Tensor) -> Result<()> {
    let (dtype, n) = (x.dtype(), x.numel());
    let order = memory_order(y.layout());
    let ordered = |t: &Tensor| t.alias(reorder(t.layout(), &order));
    let (x, mask, y) = (
        ordered(x).prepared(dtype)?,
        ordered(mask).prepared(DType::Bool)?,
        ordered(y),
    );
    let size = dtype.size();
    let [from, mask, to] = [&x, &mask, &y].map(|t| Ptr::new(t.bytes_ptr()));
    with_float!(dtype, "dropout", T => {
        let scale = scale as T;
        parallel_for(n.div_ceil(BLOCK), 64, |blocks| {
            let mut buffer = [0 as T; BLOCK];
            for block in blocks {
                let start = block * BLOCK;
                let len = BLOCK.min(n - start);
                // SAFETY: blocks are disjoint parts of contiguous tensors of `n` elements.
                unsafe {
                    let kept = std::slice::from_raw_parts(mask.at(start), len);
                    load(dtype, from.at(start * size), size as isize, len, buffer.as_mut_ptr());
                    masked(&mut buffer[..len], kept, scale);
                    store(dtype, to.at(start * size), size as isize, len, buffer.as_ptr());
                }
            }
        });
    });
    Ok(())
}

/// `g * mask * scale`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Masked {
    scale: Bitwise,
}

impl Derivative for Masked {
    fn name(&self) -> &'static str {
        "NativeDropoutBackwardBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut grads: Grads = SmallVec::from_elem(None, 2);
        if let Some(g) = &g[0] {
            let op = Masked { scale: self.scale };
            grads[0] = Some(dispatch::call1(op, &[g, &cx.input(1)?])?);
        }
        Ok(grads)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0])
    }
}

impl Op for Masked {
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        Some(self.keep())
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn layout(&self, x: &[&Meta], y: &TensorMeta) -> Option<Layout> {
        output_layout(x, &y.shape)
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        multiply(x[0], x[1], self.scale.0, &y[0])
    }
    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let acc = Acc::of(x[0].dtype())?;
        let body = "fn op(g: Acc, m: Acc) -> Acc { return g * m * scalar(0u); }\n";
        let (views, scale) = (
            [transfer::whole(x[0])?, transfer::whole(x[1])?],
            [acc.words(self.scale.0)],
        );
        let y = transfer::whole(&y[0])?;
        transfer::ran(pointwise(gpu, acc, body, &views, y, &scale))
    }
    fn fusion(&self) -> Option<&dyn Fusion> {
        Some(self)
    }
}

impl Fusion for Masked {
    fn element_loop(&self, x: &[&Meta]) -> Option<Loop> {
        let (compute, kernel) = match x[0].dtype() {
            DType::F64 => (DType::F64, erased(scaled::<f64>())),
            DType::F32 | DType::F16 | DType::BF16 => (DType::F32, erased(scaled::<f32>())),
            _ => return None,
        };
        Some(Loop {
            compute,
            body: Body::Kernel(kernel, (&raw const self.scale.0).cast()),
            numbers: [None; MAX_INPUTS],
            grain: GRAIN,
        })
    }
}

per_isa! {
    /// As `masked`, for the scale that the parameters are.
    fn scaled[T: Float] -> Kernel<T> = (p: *const (), x: *const *const T, y: *mut T, n: usize) {
        // SAFETY: the caller gives a number, two operands of `n` elements and room for `n`.
        unsafe {
            let (from, kept, scale) = (*x, *x.add(1), T::lit(*p.cast::<f64>()));
            for i in 0..n {
                *y.add(i) = *from.add(i) * if *kept.add(i) != T::ZERO { scale } else { T::ZERO };
            }
        }
    }
}

/// 1 / (1 - p), rounded as where a mask of the type is divided.
fn raised(p: f64, dtype: DType) -> f64 {
    let narrow = 1.0 / (1.0 - p) as f32;
    match dtype {
        DType::F16 => half::f16::from_f32(narrow).to_f64(),
        DType::BF16 => half::bf16::from_f32(narrow).to_f64(),
        DType::F32 => narrow as f64,
        _ => 1.0 / (1.0 - p),
    }
}

fn check(p: f64) -> Result<()> {
    ensure!(
        (0.0..=1.0).contains(&p),
        Runtime,
        "dropout probability has to be between 0 and 1, but got {p}"
    );
    Ok(())
}

impl Tensor {
    /// Zeroes elements with probability `p` and scales the others by 1 / (1 - p). Gives the result
    /// and the mask.
    pub fn native_dropout(&self, p: f64) -> Result<(Tensor, Tensor)> {
        self.dropped(p, if p >= 1.0 { 0.0 } else { 1.0 / (1.0 - p) })
    }

    /// The same with another factor.
    fn dropped(&self, p: f64, scale: f64) -> Result<(Tensor, Tensor)> {
        ensure!(
            self.dtype().is_float(),
            Runtime,
            "result type Float can't be cast to the desired output type {}",
            self.dtype().scalar_name()
        );
        let op = Dropout {
            p: Bitwise(p),
            scale: Bitwise(scale),
            generator: default_generator(self.device()),
        };
        let mut y = dispatch::call(op, &[self])?;
        let mask = y.swap_remove(1);
        Ok((y.swap_remove(0), mask))
    }

    /// `dropout`: itself where nothing is dropped.
    pub fn dropout(&self, p: f64, train: bool) -> Result<Tensor> {
        check(p)?;
        if p == 0.0 || !train || self.numel() == 0 {
            return Ok(self.clone());
        }
        if p == 1.0 {
            return self.mul(&Tensor::zeros(&[], self.dtype(), self.device())?);
        }
        Ok(self.dropped(p, raised(p, self.dtype()))?.0)
    }

    /// One factor for each channel (the first two dimensions), and its mask.
    fn channel_noise(&self, p: f64) -> Result<(Tensor, Tensor)> {
        ensure!(
            self.ndim() >= 2,
            Runtime,
            "Feature dropout requires at least 2 dimensions in the input"
        );
        let mut shape = Dims::from_elem(1, self.ndim());
        shape[0] = self.size(0);
        shape[1] = self.size(1);
        let ones = Tensor::full(&shape, 1.0.into(), self.dtype(), self.device())?;
        ones.dropped(p, raised(p, self.dtype()))
    }

    fn feature_dropout(&self, p: f64, train: bool) -> Result<Tensor> {
        check(p)?;
        if p == 0.0 || !train || self.numel() == 0 {
            return Ok(self.clone());
        }
        if p == 1.0 {
            return self.mul(&Tensor::zeros(&[], self.dtype(), self.device())?);
        }
        self.mul(&self.channel_noise(p)?.0)
    }

    /// Dropout that keeps mean and variance behind SELU. Klambauer et al. 2017, arXiv:1706.02515.
    fn alpha_dropout(&self, p: f64, train: bool, feature: bool) -> Result<Tensor> {
        const ALPHA: f64 = 1.758_099_340_847_376_6;
        check(p)?;
        if p == 0.0 || !train || self.numel() == 0 {
            return Ok(self.clone());
        }
        if p == 1.0 {
            return self.mul_scalar(0.0);
        }
        let (_, mask) = match feature {
            true => self.channel_noise(p)?,
            false => self.detach().native_dropout(p)?,
        };
        let keep = mask.to_dtype(self.dtype())?;
        let a = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
        let shift = keep
            .add_scalar(-1.0)?
            .mul_scalar(ALPHA * a)?
            .add_scalar(ALPHA * a * p)?;
        self.mul(&keep.mul_scalar(a)?)?.add(&shift)
    }
}

crate::entries! {
    /// Zeroes elements with probability `p` and scales the others by 1 / (1 - p).
    "dropout(Tensor self, float p, bool train) -> Tensor", FN | INPLACE,
    |a| Ok(a.tensor(arg!(self))?.dropout(a.float(arg!(p))?, a.bool(arg!(train))?)?.into());
    /// Dropout, and the mask of what it kept.
    "native_dropout(Tensor self, float p, bool? train) -> (Tensor, Tensor)", FN,
    |a| {
        let (x, p) = (a.tensor(arg!(self))?, a.float(arg!(p))?);
        check(p)?;
        if a.is_none(arg!(train)) || a.bool(arg!(train))? {
            let (y, mask) = x.native_dropout(p)?;
            return Ok(Value::Tuple(vec![y, mask]));
        }
        let mask = Tensor::full(x.shape(), true.into(), DType::Bool, x.device())?;
        Ok(Value::Tuple(vec![x.clone(), mask]))
    };
    /// Zeroes whole channels with probability `p` and scales the others by 1 / (1 - p).
    "feature_dropout(Tensor self, float p, bool train) -> Tensor", FN | INPLACE,
    |a| Ok(a.tensor(arg!(self))?.feature_dropout(a.float(arg!(p))?, a.bool(arg!(train))?)?.into());
    /// Dropout that keeps mean and variance behind SELU.
    "alpha_dropout(Tensor self, float p, bool train) -> Tensor", FN | INPLACE,
    |a| Ok(a.tensor(arg!(self))?.alpha_dropout(a.float(arg!(p))?, a.bool(arg!(train))?, false)?.into());
    /// Alpha dropout of whole channels.
    "feature_alpha_dropout(Tensor self, float p, bool train) -> Tensor", FN | INPLACE,
    |a| Ok(a.tensor(arg!(self))?.alpha_dropout(a.float(arg!(p))?, a.bool(arg!(train))?, true)?.into());
}
