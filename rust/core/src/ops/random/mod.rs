//! Random numbers: PyTorch's CPU numbers for the same seed, drawn in the order of memory.

crate::ops::family! { sample gamma rrelu; ENTRIES }
pub(super) mod gpu;
mod implicit;

use crate::arg;
use crate::autograd::Vjp;
use crate::cpu::pool::parallel_for;
use crate::dispatch;
use crate::dtype::check_range;
use crate::dtype::{default_dtype, DType};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Metas, Op, Rare, Replay, ReplayArgs, TensorMeta, Traits};
use crate::ops::shape::create::{drawn_like, zero_grads, Options};
use crate::rng::{Generator, Sample};
use crate::schema::{Args, Dest, Signature, Value};
use crate::shape;
use crate::tensor::Tensor;
use crate::{bail, ensure, transfer};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Runs the body with `$T` bound to the sampled type of a dtype.
macro_rules! with_sample {
    ($dtype:expr, $T:ident => $body:expr) => {
        crate::typed!(
            $dtype,
            $T => $body,
            [Bool => bool, U8 => u8, I8 => i8, I16 => i16, I32 => i32, I64 => i64],
            other => with_sample_float!(other, $T => $body)
        )
    };
}
macro_rules! with_sample_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        crate::typed!(
            $dtype,
            $T => $body,
            [F16 => half::f16, BF16 => half::bf16, F32 => f32, F64 => f64],
            other => bail!(NotImplemented, "random numbers: no sampler for {other}")
        )
    };
}

pub(super) use {with_sample, with_sample_float};

/// Blocks of 16 normal numbers below which a second thread costs more than it gains.
const NORMAL_GRAIN: usize = 1 << 9;

/// A distribution with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Distribution {
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
    /// The integers below the number of elements, each once.
    Permutation,
}

impl Distribution {
    /// What tells two of them apart.
    fn bits(self) -> (std::mem::Discriminant<Distribution>, u64, u64) {
        use Distribution::*;
        let (a, b) = match self {
            Uniform(a, b) | Normal(a, b) | LogNormal(a, b) | Cauchy(a, b) => {
                (a.to_bits(), b.to_bits())
            }
            Exponential(a) | Geometric(a) | Bernoulli(a) => (a.to_bits(), 0),
            Range(base, range) => (base as u64, range),
            Full | Permutation => (0, 0),
        };
        (std::mem::discriminant(&self), a, b)
    }
}
impl PartialEq for Distribution {
    fn eq(&self, other: &Distribution) -> bool {
        self.bits() == other.bits()
    }
}
impl Eq for Distribution {}
impl Hash for Distribution {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state)
    }
}

/// Numbers of a distribution in place of what was there.
#[derive(Clone, PartialEq, Eq, Hash)]
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
    fn traits(&self) -> Traits {
        Traits {
            draws: true,
            elementwise: self.what != Distribution::Permutation,
            rare: Rare::COMPLEX,
            ..Traits::POINTWISE
        }
    }
    fn replay(&self) -> Option<&dyn Replay> {
        Some(self)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, _x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let whole = y[0].is_contiguous();
        in_memory_order(&y[0], |t| match t.dtype().is_complex() {
            true => self.pairs(t, whole),
            false => self.fill(t, whole),
        })
    }
    /// Numbers of a counter-based stream: others than the CPU's, as in PyTorch.
    fn gpu(&self, gpu: &Gpu, _x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let (y, key) = (&y[0], self.generator.philox());
        transfer::ran(match y.dtype().is_complex() {
            true => {
                let pairs = y.alias_as(y.layout().pairs(), y.dtype().part());
                gpu::draw(gpu, key, self.of_parts(), &pairs)
            }
            false => gpu::draw(gpu, key, self.what, y),
        })
    }
}

impl Replay for Draw {
    fn args(&self, _x: &[&Tensor]) -> Result<ReplayArgs> {
        Ok(self.generator.philox().words().into())
    }
}

impl Draw {
    /// What real and imaginary parts are, numbers of their own: normal ones share the variance.
    fn of_parts(&self) -> Distribution {
        match self.what {
            Distribution::Normal(mean, std) => {
                Distribution::Normal(mean, std * std::f64::consts::FRAC_1_SQRT_2)
            }
            other => other,
        }
    }

    /// Fills contiguous complex memory.
    fn pairs(&self, t: &Tensor, whole: bool) -> Result<()> {
        let real = t.dtype().part();
        let mut layout = Layout::contiguous(&[t.numel() * 2]);
        layout.offset = t.offset() * 2;
        Draw {
            what: self.of_parts(),
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
            D::Permutation => with_sample!(t.dtype(), T => g.randperm(slice::<T>(t))),
            _ => with_sample_float!(t.dtype(), T => {
                let y = slice::<T>(t);
                match self.what {
                    D::Uniform(a, b) => g.uniform(y, a, b),
                    D::Normal(mean, std) if whole => {
                        g.normal(y, mean, std, &|n, f| parallel_for(n, NORMAL_GRAIN, f))
                    }
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
#[allow(clippy::mut_from_ref)]
pub(super) fn slice<T: Sample>(t: &Tensor) -> &mut [T] {
    // SAFETY: callers pass contiguous tensors of this type and hold the only use of the slice.
    unsafe { t.slice_mut::<T>() }
}

/// Calls `f` with the elements of `y` in the order in which they lie in memory, as one contiguous
/// tensor: its own memory where it has no gaps, else a temporary.
pub(super) fn in_memory_order(y: &Tensor, f: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let t = y.alias(reorder(y.layout(), &memory_order(y.layout())));
    if t.is_contiguous() {
        return f(&t);
    }
    let fresh = Tensor::empty(t.shape(), t.dtype(), t.device())?;
    f(&fresh)?;
    t.write_from(&fresh)
}

/// The dimensions from the largest stride to the smallest.
pub(super) fn memory_order(layout: &Layout) -> SmallVec<[usize; 5]> {
    let mut order: SmallVec<[usize; 5]> = (0..layout.ndim()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(layout.strides[d]));
    order
}

pub(super) fn reorder(layout: &Layout, order: &[usize]) -> Layout {
    Layout {
        shape: order.iter().map(|&d| layout.shape[d]).collect(),
        strides: order.iter().map(|&d| layout.strides[d]).collect(),
        offset: layout.offset,
    }
}

/// Fills a new tensor.
pub(super) fn fill(y: &Tensor, what: Distribution, generator: Arc<Generator>) -> Result<()> {
    check(y.dtype(), what)?;
    let draw = Draw {
        name: "Draw",
        what,
        generator,
    };
    dispatch::compute_into(&draw, &[y], std::slice::from_ref(y))
}

/// Fills the first argument in place.
fn fill_<Sig: Signature>(a: &Args<Sig>, name: &'static str, what: Distribution) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    check(x.dtype(), what)?;
    let draw = Draw {
        name,
        what,
        generator: a.generator(arg!(generator), x.device()),
    };
    dispatch::call_into(draw, &[x], x, true)?;
    Ok(x.clone().into())
}

pub(super) fn need_float(dtype: DType, name: &str) -> Result<()> {
    ensure!(
        dtype.is_float(),
        NoKernel,
        "\"{name}\" not implemented for '{}'",
        dtype.scalar_name()
    );
    Ok(())
}

/// What parameters each distribution allows for a type.
fn check(dtype: DType, what: Distribution) -> Result<()> {
    use Distribution as D;
    let pairs = matches!(what, D::Uniform(0.0, 1.0) | D::Normal(0.0, _));
    if dtype.is_complex() && !pairs {
        let name = dtype.scalar_name();
        let kernel = match what {
            D::Exponential(_) => bail!(
                Runtime,
                "Exponential distribution is a continuous probability distribution. dtype must be \
                 a floating point but you specified {name}"
            ),
            D::Cauchy(..) => bail!(
                Runtime,
                "Cauchy distribution is a continuous probability distribution. dtype must be a \
                 floating point but you specified {}",
                dtype.c_name()
            ),
            D::Uniform(..) => "check_uniform_bounds",
            D::Normal(..) => "normal_kernel_cpu",
            D::LogNormal(..) => "log_normal_cpu",
            D::Geometric(_) => "geometric_cpu",
            D::Bernoulli(_) => "bernoulli_scalar_cpu_",
            D::Range(..) => "random_from_to",
            D::Full => "random_full_64_bits_range",
            D::Permutation => "randperm",
        };
        bail!(NoKernel, "\"{kernel}\" not implemented for '{name}'");
    }
    let dtype = dtype.part();
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
                NoKernel,
                "\"geometric_cpu\" not implemented for 'Bool'"
            );
        }
        D::Bernoulli(p) => ensure!(
            (0.0..=1.0).contains(&p),
            Runtime,
            "bernoulli_ expects p to be in [0, 1], but got p={p}"
        ),
        D::Range(..) | D::Full | D::Permutation => {}
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

/// Whether what is drawn goes to `out=`.
fn goes_out(a: &Args) -> bool {
    matches!(a.dest, Dest::Out(_))
}

/// A new tensor of random numbers.
fn random<Sig: Signature>(a: &Args<Sig>, default: DType, what: Distribution) -> Result<Value> {
    let o = Options::read(a)?;
    let shape = shape::sizes(a.ints(arg!(size))?)?;
    let dtype = o.dtype_or(a, || default)?;
    check(dtype, what)?;
    let y = dispatch::fresh(&shape, dtype, o.device_or(a), goes_out(a))?;
    fill(&y, what, a.generator(arg!(generator), y.device()))?;
    o.give(a, y)
}

fn randint<Sig: Signature>(a: &Args<Sig>, low: i64, high: i64) -> Result<Value> {
    let o = Options::read(a)?;
    let shape = shape::sizes(a.ints(arg!(size))?)?;
    let dtype = o.dtype_or(a, || DType::I64)?;
    let y = dispatch::fresh(&shape, dtype, o.device_or(a), goes_out(a))?;
    fill(
        &y,
        range(low, Some(high), dtype)?,
        a.generator(arg!(generator), y.device()),
    )?;
    o.give(a, y)
}

fn randperm<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let o = Options::read(a)?;
    let shape = shape::sizes(&[a.int(arg!(n))?])?;
    let dtype = o.dtype_or(a, || DType::I64)?;
    ensure!(
        dtype != DType::Bool,
        NoKernel,
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
    let device = o.device_or(a);
    let y = dispatch::fresh(&shape, dtype, device, goes_out(a))?;
    fill(
        &y,
        Distribution::Permutation,
        a.generator(arg!(generator), device),
    )?;
    o.give(a, y)
}

fn random_like<Sig: Signature>(a: &Args<Sig>, what: Distribution) -> Result<Value> {
    drawn_like(a, |y| {
        fill(y, what, a.generator(arg!(generator), y.device()))
    })
}

fn randint_like<Sig: Signature>(a: &Args<Sig>, low: i64, high: i64) -> Result<Value> {
    drawn_like(a, |y| {
        fill(
            y,
            range(low, Some(high), y.dtype())?,
            a.generator(arg!(generator), y.device()),
        )
    })
}

const UNIT: Distribution = Distribution::Uniform(0.0, 1.0);
const NORMAL: Distribution = Distribution::Normal(0.0, 1.0);

crate::entries! {
    /// Uniform numbers in [0, 1).
    "rand(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| random(a, default_dtype(), UNIT);
    /// Normal numbers of mean 0 and deviation 1.
    "randn(int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| random(a, default_dtype(), NORMAL);
    /// Integers from 0 (or `low`) to below `high`.
    "randint(int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| randint(a, 0, a.int(arg!(high))?);
    "randint(int low, int high, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| randint(a, a.int(arg!(low))?, a.int(arg!(high))?);
    /// A random permutation of the integers below `n`.
    "randperm(int n, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    randperm;
    /// Uniform numbers in [0, 1), shaped as `self`.
    "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| random_like(a, UNIT);
    /// Normal numbers, shaped as `self`.
    "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| random_like(a, NORMAL);
    /// Integers from 0 (or `low`) to below `high`, shaped as `self`.
    "randint_like(Tensor self, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| randint_like(a, 0, a.int(arg!(high))?);
    "randint_like(Tensor self, int low, int high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor", FN,
    |a| randint_like(a, a.int(arg!(low))?, a.int(arg!(high))?);
    "normal(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | DIRECT,
    |a| random(a, default_dtype(), Distribution::Normal(a.float(arg!(mean))?, a.float(arg!(std))?));
    "bernoulli_(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "BernoulliBackward0", Distribution::Bernoulli(a.float(arg!(p))?));
    /// Normal numbers.
    "normal_(Tensor self, float mean=0.0, float std=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "NormalBackward0", Distribution::Normal(a.float(arg!(mean))?, a.float(arg!(std))?));
    /// Uniform numbers in [from, to).
    "uniform_(Tensor self, float from=0.0, float to=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "UniformBackward0", Distribution::Uniform(a.float(arg!(from))?, a.float(arg!(to))?));
    /// Integers: all that the type holds exactly, or those in [from, to).
    "random_(Tensor self, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "RandomBackward0", Distribution::Full);
    "random_(Tensor self, int to, *, Generator? generator=None) -> Tensor", METHOD,
    |a| {
        let what = range(0, Some(a.int(arg!(to))?), a.tensor(arg!(self))?.dtype())?;
        fill_(a, "RandomBackward0", what)
    };
    "random_(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor", METHOD,
    |a| {
        let what = range(a.int(arg!(from))?, a.opt_int(arg!(to)), a.tensor(arg!(self))?.dtype())?;
        fill_(a, "RandomBackward0", what)
    };
    /// Numbers of density lambd * exp(-lambd * x).
    "exponential_(Tensor self, float lambd=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "ExponentialBackward0", Distribution::Exponential(a.float(arg!(lambd))?));
    /// Numbers of trials up to the first success of probability `p`.
    "geometric_(Tensor self, float p, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "GeometricBackward0", Distribution::Geometric(a.float(arg!(p))?));
    /// Numbers of the Cauchy distribution.
    "cauchy_(Tensor self, float median=0.0, float sigma=1.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "CauchyBackward0", Distribution::Cauchy(a.float(arg!(median))?, a.float(arg!(sigma))?));
    /// exp of normal numbers.
    "log_normal_(Tensor self, float mean=1.0, float std=2.0, *, Generator? generator=None) -> Tensor", METHOD,
    |a| fill_(a, "LogNormalBackward0", Distribution::LogNormal(a.float(arg!(mean))?, a.float(arg!(std))?));
}
