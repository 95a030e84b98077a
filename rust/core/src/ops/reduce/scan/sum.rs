//! Running sums.

use super::sums::{is_long, long};
use super::{by_halves, launch, running, same_meta};
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::cpu::number::Number;
use crate::cpu::pool::Ptr;
use crate::cpu::reduce::filled;
use crate::cpu::simd::Lane;
use crate::dispatch;
use crate::dispatch::parts::by_parts;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::scan::Step;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::op::{one, Cut, Derivative, Grads, Metas, Op, Rare, Tensors, Traits};
use crate::tensor::Tensor;
use crate::with_compute;
use smallvec::smallvec;
use std::sync::Arc;

/// Running sums, from the end with `reverse`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cumsum {
    pub dim: usize,
    pub reverse: bool,
    pub dtype: DType,
}

impl Derivative for Cumsum {
    fn name(&self) -> &'static str {
        "CumsumBackward0"
    }
    fn vjp(&self, _cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(smallvec![None]);
        };
        let op = Cumsum {
            reverse: !self.reverse,
            dtype: g.dtype(),
            ..self.clone()
        };
        one(dispatch::call1(op, &[g])?)
    }
}

impl Op for Cumsum {
    along_lines!();

    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::UNSIGNED,
            linear: &[0],
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        same_meta(x[0], self.dtype)
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if self.dtype.is_complex() {
            let dtype = self.dtype.part();
            return by_parts(&Cumsum { dtype, ..*self }, x, &[0], &y[0]);
        }
        with_compute!(self.dtype, T => {
            let x = x[0].to_dtype(self.dtype)?.prepared(T::DTYPE)?;
            let along = (self.dim, self.reverse);
            if is_long(x.shape(), self.dim) {
                filled::<T>(&y[0], |y| {
                    long(x.shape(), along, Ptr::new(x.ptr::<T>()), Ptr::new(y.as_mut_ptr()));
                });
                return Ok(());
            }
            let init = <T as Number>::Wide::of_i64(0);
            running::<T, _, 1>([&x], &y[0], along, init, |[x], s| {
                *s = s.plus(x.wide());
                T::narrow_from(*s)
            })?;
        });
        Ok(())
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let along = (self.dim, self.reverse);
        by_halves(self, along, x[0], self.dtype, Tensor::add)
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let x = x[0].to_dtype(y[0].dtype())?;
        launch(gpu, (Step::Sum, ""), (self.dim, self.reverse), &[&x], y)
    }
}
