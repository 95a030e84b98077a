//! The GPU against the host, request by request.

use super::apply::{apply, interpreted_below, InForce, Interpreter, Kind, Request};
use crate::autograd::mode;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{function_name, Op, TensorMeta, Tensors};
use crate::shape::Show;
use crate::tensor::Tensor;
use crate::{bail, ensure, host};
use std::sync::atomic::{AtomicU64, Ordering};

/// An interpreter that computes what the GPU is asked for on the host as well, from the same inputs,
/// and stops at the first result that differs.
#[derive(Default)]
pub struct Compare {
    /// What may differ, in parts of the expected element and of the largest one, and a tenth of
    /// that in parts of the largest input, for what cancels; by type where it is not given.
    tolerance: Option<f64>,
    compared: AtomicU64,
}

impl Compare {
    pub fn new(tolerance: Option<f64>) -> Compare {
        Compare {
            tolerance,
            ..Compare::default()
        }
    }

    /// How many requests were compared.
    pub fn compared(&self) -> u64 {
        self.compared.load(Ordering::Relaxed)
    }

    fn allowed(&self, dtype: DType) -> f64 {
        self.tolerance.unwrap_or(match dtype {
            DType::F64 => 1e-10,
            DType::F32 => 2e-5,
            DType::F16 => 2e-3,
            DType::BF16 => 1.6e-2,
            _ => 0.0,
        })
    }

    /// Raises where `got` is not what the host computed from `x`, as the function of this name in these modules.
    fn check(
        &self,
        (name, modules): (&str, &str),
        x: &[Tensor],
        got: &[Tensor],
        want: &[Tensor],
    ) -> Result<()> {
        self.compared.fetch_add(1, Ordering::Relaxed);
        let floats = x.iter().filter(|t| t.dtype().is_float());
        let inputs = floats
            .map(largest)
            .try_fold(0.0, |a, b| b.map(|b| f64::max(a, b)))?;
        let of = |t: &Tensor| format!("{} of shape {}", t.dtype(), Show(t.shape()));
        let place = match modules {
            "" => String::new(),
            modules => format!(" in {modules}"),
        };
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            ensure!(
                got.shape() == want.shape(),
                Assertion,
                "{name}{place} gives another result on {} than on the CPU: result {i} is {} instead of {}.",
                got.device(),
                of(got),
                of(want)
            );
            let tolerance = self.allowed(want.dtype());
            let Some(d) = difference(got, want, tolerance, inputs)? else {
                continue;
            };
            let inputs: Vec<String> = x.iter().map(of).collect();
            bail!(
                Assertion,
                "{} gives another result on {} than on the CPU: {} of {} elements of result {i} \
                 ({}) differ by more than {tolerance:e} of it and of the largest one. The largest \
                 difference is {:e}, at flat index {}: {:e} instead of {:e}. Its inputs are {}; \
                 it is op number {} since the comparison began{place}.",
                name,
                got.device(),
                d.count,
                want.numel(),
                of(want),
                d.size,
                d.at,
                d.got,
                d.want,
                inputs.join(", "),
                self.compared()
            );
        }
        Ok(())
    }
}

/// Whether what this thread asks a GPU for is compared.
pub fn comparing() -> bool {
    mode::interpreted() && InForce::here().each::<Compare>().next().is_some()
}

/// Copies on the host of what a function that is no op is about to be given.
pub fn before_comparing(x: &[&Tensor]) -> Result<Vec<Tensor>> {
    interpreted_below(|| copied(x))
}

/// Compares what a function that is no op, called in these modules, gave on a GPU with what it gave on the host
/// from copies `x` of its inputs.
pub fn compare(
    name: &str,
    modules: &str,
    x: &[Tensor],
    got: &[Tensor],
    want: &[Tensor],
) -> Result<()> {
    let here = InForce::here();
    interpreted_below(|| {
        let want = std::iter::zip(got, want).map(|(g, w)| w.to_dtype(g.dtype()));
        let want: Vec<Tensor> = want.collect::<Result<_>>()?;
        let mut each = here.each::<Compare>();
        each.try_for_each(|c| c.check((name, modules), x, got, &want))
    })
}

struct Difference {
    count: usize,
    size: f64,
    at: usize,
    got: f64,
    want: f64,
}

/// A tensor's elements on the host. An int64 beyond 2^53 is what a float64 sees of it.
fn wide(t: &Tensor) -> Result<Tensor> {
    t.to_host()?.prepared(DType::F64)
}

/// The largest finite element.
fn largest(t: &Tensor) -> Result<f64> {
    let t = wide(t)?;
    // SAFETY: contiguous host memory of this type.
    let all = unsafe { t.slice::<f64>() }.iter().map(|v| v.abs());
    Ok(all.filter(|v| v.is_finite()).fold(0.0, f64::max))
}

/// What differs, NaN being equal to itself.
fn difference(
    got: &Tensor,
    want: &Tensor,
    tolerance: f64,
    inputs: f64,
) -> Result<Option<Difference>> {
    if want.numel() == 0 || want.dtype().is_complex() {
        return Ok(None);
    }
    let scale = largest(want)? + inputs / 10.0;
    let (g, w) = (wide(got)?, wide(want)?);
    // SAFETY: both are contiguous host memory of this type.
    let (g, w) = unsafe { (g.slice::<f64>(), w.slice::<f64>()) };
    let mut found: Option<Difference> = None;
    for (at, (&got, &want)) in g.iter().zip(w).enumerate() {
        if got == want || got.is_nan() && want.is_nan() {
            continue;
        }
        let size = (got - want).abs();
        if size <= tolerance * (want.abs() + scale) {
            continue;
        }
        // A NaN or an infinity on one side only is the largest difference there can be.
        let size = if size.is_finite() {
            size
        } else {
            f64::INFINITY
        };
        let d = found.get_or_insert(Difference {
            count: 0,
            size: -1.0,
            at,
            got,
            want,
        });
        d.count += 1;
        if size > d.size {
            *d = Difference {
                count: d.count,
                size,
                at,
                got,
                want,
            };
        }
    }
    Ok(found)
}

/// What the op gives on the host: new tensors of these metas, or, of several results in place, what
/// was in their place.
fn on_host(
    op: &dyn Op,
    x: &[Tensor],
    y: &[TensorMeta],
    before: Option<Vec<Tensor>>,
) -> Result<Vec<Tensor>> {
    let fresh = || -> Result<Vec<Tensor>> {
        let made = y
            .iter()
            .map(|m| Tensor::empty(&m.shape, m.dtype, Device::Cpu));
        made.collect()
    };
    let results = before.map_or_else(fresh, Ok)?;
    let x: Vec<&Tensor> = x.iter().collect();
    host::unlocked(|| op.cpu(&x, &results))?;
    Ok(results)
}

fn copied(x: &[&Tensor]) -> Result<Vec<Tensor>> {
    x.iter()
        .map(|t| t.detach().to_host()?.detach().copy_dense())
        .collect()
}

impl Interpreter for Compare {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let on_gpu = |t: &Tensor| t.storage().buffer().is_some();
        let (op, into, metas) = match request.kind {
            Kind::Compute { op } => (op, [].as_slice(), None),
            Kind::Into { op, y, metas } => (op, y, Some(metas)),
            Kind::View { .. } => return apply(request),
        };
        let all = request.x.iter().copied().chain(into);
        if op.traits().draws || !all.clone().any(on_gpu) || all.clone().any(|t| t.is_sparse()) {
            return apply(request);
        }
        // What is written to is read before.
        let x = copied(request.x)?;
        let several = into.len() > 1;
        let before = several
            .then(|| copied(&into.iter().collect::<Vec<_>>()))
            .transpose()?;
        let made = apply(request)?;
        let got = if metas.is_some() {
            into
        } else {
            made.as_slice()
        };
        let metas = match metas {
            Some(metas) => metas.to_vec(),
            None => made.iter().map(|t| TensorMeta::of(t.meta())).collect(),
        };
        // What the host cannot compute from copies is not compared.
        let Ok(want) = on_host(op, &x, &metas, before) else {
            return Ok(made);
        };
        let want: Result<Vec<Tensor>> = got
            .iter()
            .zip(want)
            .map(|(g, w)| w.to_dtype(g.dtype()))
            .collect();
        let name = function_name(op.name());
        self.check((&name, &host::modules()), &x, got, &want?)?;
        Ok(made)
    }
}
