//! Random numbers: PyTorch's CPU numbers for the same seed, drawn in the order of memory.

use super::create::{check_range, like, zero_grads, Options};
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::{default_dtype, DType};
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Derivative, Grads, Metas, Op, TensorMeta};
use crate::rng::{Generator, Sample};
use crate::schema::{Args, Dest, MemoryFormat, Value};
use crate::shape;
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;
use std::sync::Arc;

/// Runs the body with `$T` bound to the sampled type of a dtype.
macro_rules! with_sample {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::Bool => { type $T = bool; $body }
            DType::U8 => { type $T = u8; $body }
            DType::I8 => { type $T = i8; $body }
            DType::I16 => { type $T = i16; $body }
            DType::I32 => { type $T = i32; $body }
            DType::I64 => { type $T = i64; $body }
            other => with_sample_float!(other, $T => $body),
        }
    };
}
macro_rules! with_sample_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = half::f16;
                $body
            }
            DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            other => bail!(NotImplemented, "random numbers: no sampler for {other}"),
        }
    };
}

/// A distribution with its parameters.
#[derive(Clone, Copy, Debug)]
enum Distribution {
    Uniform(f64, f64),
    Normal(f64, f64),
    LogNormal(f64, f64),
    Exponential(f64),
    Geometric(f64),
    Cauchy(f64, f64),
    Bernoulli(f64),
    /// Integers from a base on; a range of 0 is all of 64 bits.
    Range(i64, u64),
    /// What `random_()` draws from.
    Full,
}

/// Numbers of a distribution in place of what was there.
#[derive(Clone)]
struct Draw {
    name: &'static str,
    what: Distribution,
    generator: Arc<Generator>,
}

impl std::fmt::Debug for Draw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({:?})", self.name, self.what)
    }
}

impl Derivative for Draw {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        zero_grads(g, 1)
    }
}

impl Op for Draw {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, _x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let whole = y[0].is_contiguous();
        in_memory_order(&y[0], |t| match t.dtype().is_complex() {
            true => self.pairs(t, whole),
            false => self.fill(t, whole),
        })
    }
    fn pointwise(&self) -> bool {
        true
    }
}

impl Draw {
    /// Fills contiguous complex memory: real and imaginary parts are numbers of their own. Normal
    /// ones share the variance.
    fn pairs(&self, t: &Tensor, whole: bool) -> Result<()> {
        let real = if t.dtype() == DType::C128 {
            DType::F64
        } else {
            DType::F32
        };
        let mut layout = Layout::contiguous(&[t.numel() * 2]);
        layout.offset = t.offset() * 2;
        let what = match self.what {
            Distribution::Normal(mean, std) => {
                Distribution::Normal(mean, std * std::f64::consts::FRAC_1_SQRT_2)
            }
            other => other,
        };
        Draw {
            what,
            ..self.clone()
        }
        .fill(&t.alias_as(layout, real), whole)
    }

    /// Fills contiguous memory.
    fn fill(&self, t: &Tensor, whole: bool) -> Result<()> {
        use Distribution as D;
        let g = &*self.generator;
        if t.dtype() == DType::Bool {
            // Fresh memory may hold bytes that are no bools.
            // SAFETY: contiguous host memory of this many bytes.
            unsafe { std::ptr::write_bytes(t.bytes_ptr(), 0, t.numel()) };
        }
        match self.what {
            D::Geometric(p) => with_sample!(t.dtype(), T => g.geometric(slice::<T>(t), p)),
            D::Bernoulli(p) => with_sample!(t.dtype(), T => g.bernoulli(slice::<T>(t), p)),
            D::Range(base, range) => {
                with_sample!(t.dtype(), T => g.random_range(slice::<T>(t), base, range))
            }
            D::Full => with_sample!(t.dtype(), T => g.random_full(slice::<T>(t))),
            _ => with_sample_float!(t.dtype(), T => {
                let y = slice::<T>(t);
                match self.what {
                    D::Uniform(a, b) => g.uniform(y, a, b),
                    D::Normal(mean, std) if whole => g.normal(y, mean, std),
                    D::Normal(mean, std) => g.normal_serial(y, mean, std),
                    D::LogNormal(mean, std) => g.log_normal(y, mean, std),
                    D::Exponential(rate) => g.exponential(y, rate),
                    D::Cauchy(median, sigma) => g.cauchy(y, median, sigma),
                    _ => {}
                }
            }),
        }
        Ok(())
    }
}

/// The elements of contiguous host memory that this call alone writes.
fn slice<T: Sample>(t: &Tensor) -> &mut [T] {
    // SAFETY: callers pass contiguous tensors of this type and hold the only use of the slice.
    unsafe { t.slice_mut::<T>() }
}

/// Calls `f` with the elements of `y` in the order in which they lie in memory, as one contiguous
/// tensor: its own memory where it has no gaps, else a temporary.
fn in_memory_order(y: &Tensor, f: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let t = y.alias(reorder(y.layout(), &memory_order(y.layout())));
    if t.is_contiguous() {
        return f(&t);
    }
    let fresh = Tensor::empty(t.shape(), t.dtype(), t.device())?;
    f(&fresh)?;
    t.write_from(&fresh)
}

/// The dimensions from the largest stride to the smallest.
fn memory_order(layout: &Layout) -> SmallVec<[usize; 5]> {
    let mut order: SmallVec<[usize; 5]> = (0..layout.ndim()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(layout.strides[d]));
    order
}

fn reorder(layout: &Layout, order: &[usize]) -> Layout {
    Layout {
        shape: order.iter().map(|&d| layout.shape[d]).collect(),
        strides: order.iter().map(|&d| layout.strides[d]).collect(),
        offset: layout.offset,
    }
}

/// Ones with the probabilities of the second input.
#[derive(Clone)]
struct BernoulliEach(Arc<Generator>);

impl std::fmt::Debug for BernoulliEach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BernoulliEach")
    }
}

impl Derivative for BernoulliEach {
    fn name(&self) -> &'static str {
        "BernoulliBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let mut grads = zero_grads(g, 1)?;
        grads.push(grads[0].clone());
        Ok(grads)
    }
}

impl Op for BernoulliEach {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let p = x[1];
        let wide = p.prepared(DType::F64)?;
        // SAFETY: prepared contiguous float64 memory, read only.
        let valid = unsafe { wide.slice::<f64>() }
            .iter()
            .all(|v| (0.0..=1.0).contains(v));
        ensure!(
            valid,
            Runtime,
            "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false: all \
             probabilities must be in [0, 1]"
        );
        let order = memory_order(y[0].layout());
        let p = p.alias(reorder(&p.layout().expand_to(y[0].shape()), &order));
        let p = p.prepared(p.dtype())?;
        in_memory_order(&y[0], |t| {
            if t.dtype() == DType::Bool {
                t.write_scalar(false.into())?;
            }
            with_sample_float!(p.dtype(), P => {
                // SAFETY: prepared contiguous memory, read only.
                let p = unsafe { p.slice::<P>() };
                with_sample!(t.dtype(), T => self.0.bernoulli_each(slice::<T>(t), p));
            });
            Ok(())
        })
    }
    fn pointwise(&self) -> bool {
        true
    }
}

/// A node through which a gradient of zero reaches each input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unmoved {
    name: &'static str,
    inputs: usize,
}

impl Derivative for Unmoved {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let zero = zero_grads(g, 1)?.swap_remove(0);
        Ok(SmallVec::from_elem(zero, self.inputs))
    }
}

/// Fills a new tensor.
fn fill(y: &Tensor, what: Distribution, generator: Arc<Generator>) -> Result<()> {
    check(y.dtype(), what)?;
    let draw = Draw {
        name: "Draw",
        what,
        generator,
    };
    dispatch::run(&draw, &[], std::slice::from_ref(y))
}

/// Fills the first argument in place; the generator is argument `g`.
fn fill_(a: &Args, name: &'static str, what: Distribution, g: usize) -> Result<Value> {
    let x = a.tensor(0)?;
    check(x.dtype(), what)?;
    let draw = Draw {
        name,
        what,
        generator: a.generator(g),
    };
    dispatch::call_into(draw, &[x], x, true)?;
    Ok(x.clone().into())
}

fn need_float(dtype: DType, name: &str) -> Result<()> {
    ensure!(
        dtype.is_float(),
        NotImplemented,
        "\"{name}\" not implemented for '{}'",
        dtype.scalar_name()
    );
    Ok(())
}

/// What parameters each distribution allows for a type.
fn check(dtype: DType, what: Distribution) -> Result<()> {
    use Distribution as D;
    let pairs = matches!(what, D::Uniform(0.0, 1.0) | D::Normal(0.0, _));
    ensure!(
        !dtype.is_complex() || pairs,
        NotImplemented,
        "random numbers: no sampler for {dtype}"
    );
    let dtype = match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    };
    match what {
        D::Uniform(from, to) => {
            need_float(dtype, "check_uniform_bounds")?;
            let most = match dtype {
                DType::F16 => 65504.0,
                DType::BF16 => half::bf16::MAX.to_f64(),
                DType::F32 => f32::MAX as f64,
                _ => f64::MAX,
            };
            for (v, name) in [(from, "from"), (to, "to")] {
                ensure!(
                    v.abs() <= most,
                    Runtime,
                    "{name} is out of bounds for {}: got {v}",
                    dtype.c_name()
                );
            }
            ensure!(
                from <= to,
                Runtime,
                "uniform_ expects to return a [from, to) range, but found from={from} > to={to}"
            );
            ensure!(
                to - from <= most,
                Runtime,
                "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={to} \
                 and from={from} which result in to-from to exceed the limit",
                dtype.scalar_name()
            );
        }
        D::Normal(_, std) => {
            ensure!(
                std >= 0.0,
                Runtime,
                "normal expects std >= 0.0, but found std {std}"
            );
            need_float(dtype, "normal_kernel_cpu")?;
        }
        D::LogNormal(_, std) => {
            ensure!(
                std > 0.0,
                Runtime,
                "log_normal_ expects std > 0.0, but found std={std}"
            );
            need_float(dtype, "log_normal_cpu")?;
        }
        D::Exponential(rate) => {
            ensure!(
                dtype.is_float(),
                Runtime,
                "Exponential distribution is a continuous probability distribution. dtype must be \
                 a floating point but you specified {}",
                dtype.scalar_name()
            );
            ensure!(
                rate > 0.0,
                Runtime,
                "exponential_ expects lambda > 0.0, but found lambda={rate}"
            );
        }
        D::Cauchy(_, sigma) => {
            ensure!(
                sigma > 0.0,
                Runtime,
                "cauchy_ expects sigma > 0.0, but found sigma={sigma}"
            );
            ensure!(
                dtype.is_float(),
                Runtime,
                "Cauchy distribution is a continuous probability distribution. dtype must be a \
                 floating point but you specified {}",
                dtype.c_name()
            );
        }
        D::Geometric(p) => {
            ensure!(
                p > 0.0 && p < 1.0,
                Runtime,
                "geometric_ expects p to be in (0, 1), but got p={p}"
            );
            ensure!(
                dtype != DType::Bool,
                NotImplemented,
                "\"geometric_cpu\" not implemented for 'Bool'"
            );
        }
        D::Bernoulli(p) => ensure!(
            (0.0..=1.0).contains(&p),
            Runtime,
            "bernoulli_ expects p to be in [0, 1], but got p={p}"
        ),
        D::Range(..) | D::Full => {}
    }
    Ok(())
}

/// Digits of a floating type's significand.
fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 => 24,
        _ => 53,
    }
}

/// The smallest and largest number of a type, as 128-bit integers.
fn limits(dtype: DType) -> (i128, i128) {
    match dtype {
        DType::Bool => (0, 1),
        DType::U8 => (0, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (-32768, 32767),
        DType::I32 => (i32::MIN as i128, i32::MAX as i128),
        DType::F16 => (-65504, 65504),
        _ => (i64::MIN as i128, i64::MAX as i128),
    }
}

/// Through the type and back: the nearest number that it holds.
fn rounded(v: i64, dtype: DType) -> i64 {
    match dtype {
        DType::F16 => half::f16::from_f32(v as f32).to_f32() as i64,
        DType::BF16 => half::bf16::from_f32(v as f32).to_f32() as i64,
        DType::F32 => v as f32 as i64,
        _ => v as f64 as i64,
    }
}

/// The spacing of a floating type's numbers at `v`.
fn spacing(v: i64, dtype: DType) -> i64 {
    let n = v.unsigned_abs().max(1).ilog2();
    1i64 << (n + 1).saturating_sub(digits(dtype)).min(62)
}

fn raised(from: i64, dtype: DType) -> i64 {
    let next = from.saturating_add(1);
    match rounded(next, dtype) {
        near if near < from => near.saturating_add(spacing(next, dtype)),
        _ => from,
    }
}

fn lowered(to: i64, dtype: DType) -> i64 {
    let last = to.saturating_sub(1);
    match rounded(last, dtype) {
        near if near >= to => near.saturating_sub(spacing(last, dtype)),
        _ => to,
    }
}

/// Integers from `from` to below `to`; without `to`, up to the largest that the type holds.
fn range(mut from: i64, to: Option<i64>, dtype: DType) -> Result<Distribution> {
    let (low, high) = limits(dtype);
    let bounds = |v: i64, name: &str| -> Result<()> {
        ensure!(
            v as i128 >= low && v as i128 <= high,
            Runtime,
            "{name} is out of bounds for {}: got {v}",
            dtype.c_name()
        );
        Ok(())
    };
    let Some(mut to) = to else {
        if from == i64::MIN {
            return Ok(Distribution::Range(0, 0));
        }
        let last = match dtype {
            d if d.is_float() => 1i64 << digits(d),
            _ => high as i64,
        };
        if dtype.is_float() {
            from = raised(from, dtype);
            ensure!(
                from < last,
                Runtime,
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' \
                 casted to dtype, but got from={from} > to_inc={last}"
            );
        }
        bounds(from, "from")?;
        return Ok(Distribution::Range(
            from,
            (last.wrapping_sub(from) as u64).wrapping_add(1),
        ));
    };
    ensure!(
        from < to,
        Runtime,
        "random_ expects 'from' to be less than 'to', but got from={from} >= to={to}"
    );
    if dtype.is_float() {
        from = raised(from, dtype);
        to = lowered(to, dtype);
        ensure!(
            from < to,
            Runtime,
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got \
             from={from} >= to={to}"
        );
    }
    bounds(from, "from")?;
    bounds(to - 1, "to - 1")?;
    Ok(Distribution::Range(from, to.wrapping_sub(from) as u64))
}

/// A new tensor of random numbers: sizes are argument `size`, the generator `size + 1`.
fn random(a: &Args, size: usize, default: DType, what: Distribution) -> Result<Value> {
    let o = Options::read(a, size + 2)?;
    let shape = shape::sizes(a.ints(size)?)?;
    let dtype = o.dtype_or(a, || default)?;
    check(dtype, what)?;
    let y = Tensor::empty(&shape, dtype, o.device_or(a))?;
    fill(&y, what, a.generator(size + 1))?;
    o.give(a, y)
}

fn randint(a: &Args, low: i64, high: i64, size: usize) -> Result<Value> {
    let o = Options::read(a, size + 2)?;
    let shape = shape::sizes(a.ints(size)?)?;
    let dtype = o.dtype_or(a, || DType::I64)?;
    let y = Tensor::empty(&shape, dtype, o.device_or(a))?;
    fill(&y, range(low, Some(high), dtype)?, a.generator(size + 1))?;
    o.give(a, y)
}

fn randperm(a: &Args) -> Result<Value> {
    let o = Options::read(a, 2)?;
    let shape = shape::sizes(&[a.int(0)?])?;
    let dtype = o.dtype_or(a, || DType::I64)?;
    ensure!(
        dtype != DType::Bool,
        NotImplemented,
        "\"randperm\" not implemented for '{}'",
        dtype.scalar_name()
    );
    if dtype.is_float() {
        let most = (1usize << digits(dtype)) + 1;
        ensure!(
            shape[0] <= most,
            Runtime,
            "n cannot be greater than {most} for {} type.",
            dtype.scalar_name()
        );
    } else {
        check_range((shape[0] as i64).into(), dtype)?;
    }
    let y = Tensor::empty(&shape, dtype, crate::device::Device::Cpu)?;
    let g = a.generator(1);
    with_sample!(dtype, T => g.randperm(slice::<T>(&y)));
    o.give(a, y.to_device(o.device_or(a))?)
}

/// `normal` with a tensor for the mean, the deviation or both.
fn normal(a: &Args, mean: Option<&Tensor>, std: Option<&Tensor>) -> Result<Value> {
    let scale = if std.is_none() { a.float(1)? } else { 1.0 };
    ensure!(
        scale >= 0.0,
        Runtime,
        "normal expects std >= 0.0, but found std {scale}"
    );
    let first = mean.or(std).expect("one of them is a tensor");
    let shape = match (mean, std) {
        (Some(m), Some(s)) => shape::broadcast(m.shape(), s.shape())?,
        _ => first.shape().clone(),
    };
    if let Some(s) = std {
        ensure!(
            !s.dtype().is_complex(),
            Runtime,
            "normal expects standard deviation to be non-complex"
        );
        let s = s.to_host()?.prepared(DType::F64)?;
        // SAFETY: prepared contiguous float64 memory, read only.
        let fine = unsafe { s.slice::<f64>() }.iter().all(|v| *v >= 0.0);
        ensure!(fine, Runtime, "normal expects all elements of std >= 0.0");
    }
    let y = Tensor::empty(&shape, first.dtype(), first.device())?;
    fill(&y, Distribution::Normal(0.0, scale), a.generator(2))?;
    let y = crate::autograd::mode::with_grad(false, || -> Result<Tensor> {
        let y = match std {
            Some(s) => y.mul(s)?,
            None => y,
        };
        match mean {
            Some(m) => y.add(m),
            None => y.add_scalar(a.float(0)?),
        }
    })?
    .to_dtype(first.dtype())?;
    let inputs: SmallVec<[&Tensor; 2]> = mean.into_iter().chain(std).collect();
    let op = Unmoved {
        name: "NormalBackward0",
        inputs: inputs.len(),
    };
    dispatch::record(op, &inputs, std::slice::from_ref(&y))?;
    Ok(y.into())
}

fn poisson(a: &Args) -> Result<Value> {
    let x = a.tensor(0)?;
    need_float(x.dtype(), "poisson_cpu")?;
    let rate = x.to_host()?.prepared(x.dtype())?;
    let y = Tensor::empty(x.shape(), x.dtype(), crate::device::Device::Cpu)?;
    let g = a.generator(1);
    with_sample_float!(x.dtype(), T => {
        // SAFETY: prepared contiguous memory, read only.
        let rate = unsafe { rate.slice::<T>() };
        ensure!(
            rate.iter().all(|r| Sample::to_f64(*r) >= 0.0),
            Runtime,
            "invalid Poisson rate, expected rate to be non-negative"
        );
        g.poisson(slice::<T>(&y), rate);
    });
    let y = y.to_device(x.device())?;
    let op = Unmoved {
        name: "PoissonBackward0",
        inputs: 1,
    };
    dispatch::record(op, &[x], std::slice::from_ref(&y))?;
    Ok(y.into())
}

fn multinomial(a: &Args) -> Result<Value> {
    let (x, n) = (a.tensor(0)?, a.int(1)?);
    let replacement = a.bool(2)?;
    ensure!(
        x.ndim() == 1 || x.ndim() == 2,
        Runtime,
        "prob_dist must be 1 or 2 dim"
    );
    ensure!(
        x.dtype().is_float(),
        Runtime,
        "multinomial only supports floating-point dtypes for input, got: {}",
        x.dtype().scalar_name()
    );
    ensure!(n > 0, Runtime, "cannot sample n_sample <= 0 samples");
    let categories = x.size(x.ndim() - 1);
    ensure!(
        replacement || n as u64 <= categories as u64,
        Runtime,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
    );
    ensure!(
        categories <= 1 << 24,
        Runtime,
        "number of categories cannot exceed 2^24"
    );
    let weights = x.to_host()?.prepared(x.dtype())?;
    let rows = if x.ndim() == 2 { x.size(0) } else { 1 };
    let size: &[i64] = if x.ndim() == 2 {
        &[rows as i64, n]
    } else {
        &[n]
    };
    let y = Tensor::empty(&shape::sizes(size)?, DType::I64, crate::device::Device::Cpu)?;
    ensure!(
        categories > 0 || rows == 0,
        Runtime,
        "invalid multinomial distribution (with replacement={replacement}, no categories)"
    );
    let g = a.generator(3);
    with_sample_float!(x.dtype(), T => {
        // SAFETY: prepared contiguous memory, read only.
        let weights = unsafe { weights.slice::<T>() };
        let out = slice::<i64>(&y);
        for (row, out) in weights.chunks(categories.max(1)).zip(out.chunks_mut(n as usize)) {
            g.multinomial(row, out, replacement)?;
        }
    });
    let y = y.to_device(x.device())?;
    let Dest::Out(out) = a.dest else {
        return Ok(y.into());
    };
    ensure!(
        out[0].dtype() == DType::I64,
        Runtime,
        "multinomial expects Long tensor out, got: {}",
        out[0].dtype().scalar_name()
    );
    let target = dispatch::destination("multinomial", &out[0], &TensorMeta::of(&y), false)?;
    target.write_from(&y)?;
    target.bump_version();
    Ok(target.into())
}

/// A new tensor in the place of `self` whose elements are drawn with its probabilities.
fn bernoulli(x: &Tensor, p: &Tensor, generator: Arc<Generator>) -> Result<Tensor> {
    need_float(p.dtype(), "bernoulli_tensor_cpu_p_")?;
    let y = Tensor::empty(x.shape(), x.dtype(), x.device())?;
    dispatch::run(
        &BernoulliEach(generator),
        &[&y, p],
        std::slice::from_ref(&y),
    )?;
    let op = Unmoved {
        name: "BernoulliBackward0",
        inputs: 1,
    };
    dispatch::record(op, &[x], std::slice::from_ref(&y))?;
    Ok(y)
}

fn random_like(a: &Args, options: usize, what: Distribution) -> Result<Value> {
    like(a, options, |y| fill(y, what, a.generator(options + 6)))
}

fn randint_like(a: &Args, low: i64, high: i64, options: usize) -> Result<Value> {
    like(a, options, |y| {
        fill(
            y,
            range(low, Some(high), y.dtype())?,
            a.generator(options + 6),
        )
    })
}

const UNIT: Distribution = Distribution::Uniform(0.0, 1.0);
const NORMAL: Distribution = Distribution::Normal(0.0, 1.0);

crate::entries! {
    /// Uniform numbers in [0, 1).
    "rand(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| random(a, 0, default_dtype(), UNIT);
    /// Normal numbers of mean 0 and deviation 1.
    "randn(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| random(a, 0, default_dtype(), NORMAL);
    /// Integers from 0 (or `low`) to below `high`.
    "randint(int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| randint(a, 0, a.int(0)?, 1);
    "randint(int low, int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| randint(a, a.int(0)?, a.int(1)?, 2);
    /// A random permutation of the integers below `n`.
    "randperm(int n, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    randperm;
    /// Uniform numbers in [0, 1), shaped as `self`.
    "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| random_like(a, 1, UNIT);
    /// Normal numbers, shaped as `self`.
    "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| random_like(a, 1, NORMAL);
    /// Integers from 0 (or `low`) to below `high`, shaped as `self`.
    "randint_like(Tensor self, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| randint_like(a, 0, a.int(1)?, 2);
    "randint_like(Tensor self, int low, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| randint_like(a, a.int(1)?, a.int(2)?, 3);
    /// Normal numbers of the means and deviations given.
    "normal(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", FN | OUT,
    |a| normal(a, Some(a.tensor(0)?), Some(a.tensor(1)?));
    "normal(Tensor mean, float std=1.0, *, Generator? generator=None) -> Tensor", FN | OUT,
    |a| normal(a, Some(a.tensor(0)?), None);
    "normal(float mean, Tensor std, *, Generator? generator=None) -> Tensor", FN | OUT,
    |a| normal(a, None, Some(a.tensor(1)?));
    "normal(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| random(a, 2, default_dtype(), Distribution::Normal(a.float(0)?, a.float(1)?));
    /// Ones with the probabilities in `self`, else zeros.
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", FN | METHOD | OUT,
    |a| Ok(bernoulli(a.tensor(0)?, a.tensor(0)?, a.generator(1))?.into());
    /// Ones with probability `p`, shaped and typed as `self`.
    "bernoulli(Tensor self, float p, *, Generator? generator=None) -> Tensor", FN | METHOD,
    |a| {
        let x = a.tensor(0)?;
        let y = x.empty_like(x.dtype(), x.device(), MemoryFormat::Contiguous)?;
        fill(&y, Distribution::Bernoulli(a.float(1)?), a.generator(2))?;
        let op = Unmoved { name: "BernoulliBackward0", inputs: 1 };
        dispatch::record(op, &[x], std::slice::from_ref(&y))?;
        Ok(y.into())
    };
    /// Ones with probability `p`, else zeros.
    "bernoulli_(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor", METHOD,
    |a| {
        let (x, p) = (a.tensor(0)?, a.tensor(1)?);
        need_float(p.dtype(), "bernoulli_tensor_cpu_p_")?;
        ensure!(
            shape::expandable(p.shape(), x.shape()),
            Runtime,
            "bernoulli_: probabilities of shape {} do not broadcast to {}",
            shape::Show(p.shape()),
            shape::Show(x.shape())
        );
        dispatch::call_into(BernoulliEach(a.generator(2)), &[x, p], x, true)?;
        Ok(x.clone().into())
    };
    "bernoulli_(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "BernoulliBackward0", Distribution::Bernoulli(a.float(1)?), 2);
    /// Draws indices with probabilities in proportion to each row.
    "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor", FN | METHOD | OUT | DIRECT,
    multinomial;
    /// Numbers of events of the rates in `self`.
    "poisson(Tensor self, Generator? generator=None) -> Tensor", FN,
    poisson;
    /// Normal numbers.
    "normal_(Tensor self, float mean=0.0, float std=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "NormalBackward0", Distribution::Normal(a.float(1)?, a.float(2)?), 3);
    /// Uniform numbers in [from, to).
    "uniform_(Tensor self, float from=0.0, float to=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "UniformBackward0", Distribution::Uniform(a.float(1)?, a.float(2)?), 3);
    /// Integers: all that the type holds exactly, or those in [from, to).
    "random_(Tensor self, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "RandomBackward0", Distribution::Full, 1);
    "random_(Tensor self, int to, *, Generator? generator=None) -> Tensor", METHOD,
    |a| {
        let what = range(0, Some(a.int(1)?), a.tensor(0)?.dtype())?;
        fill_(a, "RandomBackward0", what, 2)
    };
    "random_(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor", METHOD,
    |a| {
        let what = range(a.int(1)?, a.opt_int(2), a.tensor(0)?.dtype())?;
        fill_(a, "RandomBackward0", what, 3)
    };
    /// Numbers of density lambd * exp(-lambd * x).
    "exponential_(Tensor self, float lambd=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "ExponentialBackward0", Distribution::Exponential(a.float(1)?), 2);
    /// Numbers of trials up to the first success of probability `p`.
    "geometric_(Tensor self, float p, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "GeometricBackward0", Distribution::Geometric(a.float(1)?), 2);
    /// Numbers of the Cauchy distribution.
    "cauchy_(Tensor self, float median=0.0, float sigma=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "CauchyBackward0", Distribution::Cauchy(a.float(1)?, a.float(2)?), 3);
    /// exp of normal numbers.
    "log_normal_(Tensor self, float mean=1.0, float std=2.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "LogNormalBackward0", Distribution::LogNormal(a.float(1)?, a.float(2)?), 3);
}
