//! Holds ops to what they say of themselves.

use super::{apply, metas, plan, Interpreter, Request, RequestKind};
use crate::autograd::mode;
use crate::ensure;
use crate::error::Result;
use crate::meta::Meta;
use crate::op::{Op, TensorMeta, Tensors};
use crate::tensor::Tensor;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::fmt::Debug;

/// Raises where results, or those of the ops that an op is made of, are not what was planned from
/// metas of tensors that are not there. For tests.
pub struct Checks;

impl Interpreter for Checks {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let x: SmallVec<[Meta; 4]> = request.x.iter().map(|t| t.meta().clone()).collect();
        let y = apply(request)?;
        match request.kind {
            RequestKind::Compute { op } => {
                let planned = plan(op, &metas(&x))?;
                same(op, &metas(&planned)[..], &metas(&y)[..])?;
                let parts = mode::with_grad(false, || op.decompose(request.x))?;
                if let Some(made) = parts {
                    same(op, described(&planned), described(&made))?;
                }
            }
            RequestKind::Into { op, y, metas: told } => {
                let inferred = op.infer(&metas(&x))?;
                same(op, &inferred[..], told)?;
                let shapes: Vec<_> = told.iter().map(|m| &m.shape).collect();
                same(op, shapes, y.iter().map(|t| t.shape()).collect())?;
            }
            RequestKind::View { .. } => {}
        }
        Ok(y)
    }
}

/// Keeps what calls asked for, and the memory that this made or wrote. For tests.
#[derive(Default)]
pub struct Witness(Mutex<Seen>);

#[derive(Clone, Default)]
pub struct Seen {
    /// The ops, in order.
    pub names: Vec<&'static str>,
    /// Tensors that came out of requests.
    pub made: Vec<Tensor>,
    /// What requests read, and none had made before.
    pub read: Vec<Tensor>,
}

impl Witness {
    pub fn seen(&self) -> Seen {
        self.0.lock().clone()
    }
}

impl Interpreter for Witness {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let (name, into) = match request.kind {
            RequestKind::Compute { op } => (op.name(), [].as_slice()),
            RequestKind::Into { op, y, .. } => (op.name(), y),
            RequestKind::View { op, .. } => (op.name(), [].as_slice()),
        };
        let within = |all: &[Tensor], t: &Tensor| all.iter().any(|m| m.shares_storage(t));
        {
            let mut seen = self.0.lock();
            seen.names.push(name);
            for t in request.x {
                if !within(into, t) && !within(&seen.made, t) {
                    seen.read.push(t.detach());
                }
            }
        }
        let y = apply(request)?;
        let mut seen = self.0.lock();
        for t in into.iter().chain(&y) {
            // A view of what was not made is none that was.
            let view = matches!(request.kind, RequestKind::View { .. });
            if !within(&seen.made, t) && !view {
                seen.made.push(t.detach());
            }
        }
        Ok(y)
    }
}

fn described(x: &[impl AsRef<Meta>]) -> Vec<TensorMeta> {
    x.iter().map(|m| TensorMeta::of(m.as_ref())).collect()
}

fn same<T: Debug + PartialEq>(op: &dyn Op, planned: T, made: T) -> Result<()> {
    ensure!(
        planned == made,
        Assertion,
        "{op:?}: expected results of {planned:?}, got {made:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::Vjp;
    use crate::device::Device;
    use crate::dispatch::{call1, interpreted};
    use crate::dtype::DType;
    use crate::op::{Derivative, Fast, Grads, Metas};
    use std::sync::Arc;

    /// Copies its input; by `fast` in another type than it says.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Liar;

    impl Derivative for Liar {
        fn name(&self) -> &'static str {
            "LiarBackward0"
        }
        fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
            Ok(g.iter().cloned().collect())
        }
    }

    impl Op for Liar {
        fn infer(&self, x: &[&Meta]) -> Result<Metas> {
            Ok(x.iter().map(|x| TensorMeta::of(x)).collect())
        }
        fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
            y[0].write_from(x[0])
        }
        fn fast(&self) -> Option<&dyn Fast> {
            Some(self)
        }
    }

    impl Fast for Liar {
        fn call(&self, x: &[&Tensor]) -> Option<Result<Tensor>> {
            (x[0].ndim() == 0).then(|| Tensor::zeros(&[], DType::F64, Device::Cpu))
        }
    }

    #[test]
    fn a_result_that_was_not_planned_raises() {
        let checked = |shape: &[usize]| {
            let x = Tensor::zeros(shape, DType::F32, Device::Cpu).unwrap();
            interpreted(Arc::new(Checks), || call1(Liar, &[&x]))
        };
        assert!(checked(&[2]).is_ok());
        assert!(checked(&[]).unwrap_err().text.starts_with("Liar"));
    }
}
