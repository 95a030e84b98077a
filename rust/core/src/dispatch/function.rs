//! Functions of whole tensors whose results' shapes may depend on data.

use super::{compute, device, heeded, interpreted_below};
use crate::autograd::{mode, Vjp};
use crate::device::Device;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::host;
use crate::meta::Meta;
use crate::op::{Batching, Derivative, Grads, Metas, Op, Rare, TensorMeta, Tensors, Traits, Value};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use std::hash::{Hash, Hasher};

type Run<P, R> = fn(&P, &[&Tensor]) -> Result<R>;

/// What a function returns.
pub trait Results: 'static {
    fn list(self) -> Tensors;
    fn of(all: Tensors) -> Self;
}

impl Results for Tensor {
    fn list(self) -> Tensors {
        Tensors::from_buf([self])
    }
    fn of(mut all: Tensors) -> Self {
        all.swap_remove(0)
    }
}

impl Results for Vec<Tensor> {
    fn list(self) -> Tensors {
        self.into()
    }
    fn of(all: Tensors) -> Self {
        all.into_vec()
    }
}

impl<const N: usize> Results for [Tensor; N] {
    fn list(self) -> Tensors {
        self.into_iter().collect()
    }
    fn of(all: Tensors) -> Self {
        let all: [Tensor; N] = all.into_vec().try_into().expect("as many as were made");
        all
    }
}

/// Calls `run` with what it is given beside tensors without a place in a graph. To interpreters it
/// is an op that is known by its name, one of whose parameters is what came out. On meta there is
/// nothing to run it on.
pub fn function<P: Value + Clone, R: Results>(
    name: &'static str,
    given: P,
    x: &[&Tensor],
    run: Run<P, R>,
) -> Result<R> {
    mode::look();
    let unknown = |_: &P| -> Result<Metas> {
        bail!(
            NotImplemented,
            "the shape of the result depends on data, and meta tensors have none"
        )
    };
    function_of(name, given, x, unknown, run)
}

/// As [`function`], where what the results will be does not depend on data: on meta that is the
/// answer.
pub fn function_of<P: Value + Clone, R: Results>(
    name: &'static str,
    given: P,
    x: &[&Tensor],
    plan: impl FnOnce(&P) -> Result<Metas>,
    run: Run<P, R>,
) -> Result<R> {
    let on_meta = device(x) == Device::Meta;
    if !on_meta && !heeded(x) {
        return unlocked(x, || run(&given, x));
    }
    let results = match on_meta {
        true => plan(&given)?,
        // Whoever answers for a tensor knows what comes out.
        false if x.iter().any(|t| t.answers() || t.stands()) => Metas::new(),
        false => {
            let y = interpreted_below(|| run(&given, x))?.list();
            y.iter().map(|t| TensorMeta::of(t)).collect()
        }
    };
    let function = Function {
        name,
        given,
        results,
        run,
    };
    compute(&function, x).map(R::of)
}

/// Runs `f`, which reads `x`, without the host's lock where that is worth it.
fn unlocked<R>(x: &[&Tensor], f: impl FnOnce() -> R) -> R {
    match x.iter().map(|t| t.numel()).sum::<usize>() >= host::WORTH_UNLOCKING {
        true => host::unlocked(f),
        false => f(),
    }
}

struct Function<P, R> {
    name: &'static str,
    given: P,
    results: Metas,
    run: Run<P, R>,
}

impl<P: Clone, R> Clone for Function<P, R> {
    fn clone(&self) -> Self {
        Function {
            name: self.name,
            given: self.given.clone(),
            results: self.results.clone(),
            run: self.run,
        }
    }
}

impl<P: Value, R> std::fmt::Debug for Function<P, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({:?})", self.name, self.given)
    }
}
impl<P: Value, R> PartialEq for Function<P, R> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.given.equals(&other.given) && self.results == other.results
    }
}
impl<P: Value, R> Eq for Function<P, R> {}
impl<P: Value, R> Hash for Function<P, R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.given.digest(state);
    }
}

impl<P: Value + Clone, R: Results> Function<P, R> {
    fn write(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let found = unlocked(x, || (self.run)(&self.given, x))?.list();
        for ((to, from), planned) in y.iter().zip(&found).zip(&self.results) {
            // An interpreter may run it where other tensors live than those it was planned with.
            ensure!(
                from.shape() == &planned.shape && from.dtype() == planned.dtype,
                Runtime,
                "{}: expected a result of {planned:?}, but other data gives {:?}",
                self.name,
                TensorMeta::of(from)
            );
            to.write_from(from)?;
        }
        Ok(())
    }
}

impl<P: Value + Clone, R: Results> Derivative for Function<P, R> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(
            NotImplemented,
            "the derivative for '{}' is not implemented.",
            crate::op::function_name(self.name)
        )
    }
}

impl<P: Value + Clone, R: Results> Op for Function<P, R> {
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, _x: &[&Meta]) -> Result<Metas> {
        Ok(self.results.clone())
    }
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        self.write(x, y)
    }
    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        self.write(x, y).map(|()| true)
    }
}

impl<P: Value + Clone, R: Results> Batching for Function<P, R> {
    fn find(&self, x: &[&Tensor]) -> Option<Result<Tensors>> {
        let y = function(self.name, self.given.clone(), x, self.run);
        Some(y.map(Results::list))
    }
}
