//! What some ops can do beyond being computed. An op hands out each as an object, so that the others need
//! not know of it.

use super::{Mask, Op, Tensors};
use crate::cpu::pointwise::chain::Loop;
use crate::cpu::reduce::Fold;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::meta::Meta;
use crate::shape::DimSet;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;

/// What is left of an op once its random numbers are drawn.
pub struct Drawn {
    /// It takes `more` inputs, and gives the op's first result.
    pub op: Arc<dyn Op>,
    pub more: Tensors,
    /// The op's other results.
    pub rest: Tensors,
}

/// The inputs of an op for many slices at once: those of `mapped` have their slices along a dimension
/// in front, the others are the same for all.
pub struct Mapped<'a> {
    pub x: &'a [Tensor],
    pub mapped: Mask,
    pub size: usize,
}

impl Mapped<'_> {
    /// Whether input `i` has slices.
    pub fn has(&self, i: usize) -> bool {
        // All beyond the mask's bits count as one.
        self.mapped >> i.min(63) & 1 == 1
    }
    /// The dimensions of input `i` in one slice.
    pub fn ndim(&self, i: usize) -> usize {
        self.x[i].ndim() - self.has(i) as usize
    }
}

/// Words of the parameters of kernels that are replayed.
pub type ReplayArgs = SmallVec<[u32; 4]>;

/// The way of small calls, past what large ones need.
pub trait Fast {
    /// The result of a small call of the plainest kind; `None` where the usual way must be taken.
    fn call(&self, _x: &[&Tensor]) -> Option<Result<Tensor>> {
        None
    }

    /// The same into `y`, which may be one of the inputs; `false` where the usual way must be taken.
    fn call_into(&self, _x: &[&Tensor], _y: &Tensor) -> Result<bool> {
        Ok(false)
    }
}

/// How an op can be one kernel with its neighbours.
pub trait Fusion {
    /// What computes one element of its one result from those of its inputs, whatever lies around them;
    /// `None` where it is more than that, or may fail. What it gives is read while the op is there.
    fn element_loop(&self, _x: &[&Meta]) -> Option<Loop> {
        None
    }

    /// The reduction that it is, along which dimensions of its one input.
    fn reduction(&self, _x: &Meta) -> Option<(Fold, DimSet)> {
        None
    }

    /// The same op with one more input in front that its result is added to; that may be the
    /// output's own memory.
    fn accumulating(&self) -> Option<Arc<dyn Op>> {
        None
    }

    /// Whether its kernel on the host runs pointwise chains in its tiles
    /// ([`Fused`](crate::cpu::pointwise::fusion::Fused)): a prologue that computes its first input, and an
    /// epilogue that reads its first result.
    fn prologue_epilogue(&self) -> [bool; 2] {
        [false; 2]
    }
}

/// Rules of `vmap` beyond [`Op::of_many`].
pub trait Batching {
    /// The results for many slices at once, along a dimension in front; `None` where the op has no such
    /// rule of its own.
    fn map(&self, _x: &Mapped) -> Result<Option<Tensors>> {
        Ok(None)
    }

    /// The results written with ops that have such rules, for slices too; `None` where the op has a rule or
    /// must run for one after another.
    fn map_by_ops(&self, _x: &[&Tensor]) -> Result<Option<Tensors>> {
        Ok(None)
    }

    /// The results where their shapes are known only once it ran, which it does here.
    fn find(&self, _x: &[&Tensor]) -> Option<Result<Tensors>> {
        None
    }
}

/// Work on tensors that may be larger than a GPU's kernel can bind, beyond [`Op::cuts`].
pub trait Large {
    /// [`Op::gpu`] through windows on them that the op chooses: for work that cutting in two again and
    /// again would do in many more parts. `false` where it is cut as [`Op::cuts`] says.
    fn gpu_windows(&self, _gpu: &Gpu, _x: &[&Tensor], _y: &[Tensor]) -> Result<bool> {
        Ok(false)
    }

    /// The same op for such a half of its inputs, where it knows their sizes.
    fn part(&self, _x: &[&Meta]) -> Option<Arc<dyn Op>> {
        None
    }
}

/// Replaying what an op dispatched to a GPU, where words of its kernels' parameters are other ones in
/// each call: a random key that is drawn then, numbers of an optimiser's step.
pub trait Replay {
    /// These words, by whose places its launches name them
    /// ([`Launch::told`](crate::gpu::launch::Launch::told)). In the place of a call, where what that
    /// dispatches is kept.
    fn args(&self, x: &[&Tensor]) -> Result<ReplayArgs>;

    /// Whether they are the numbers of the host among its inputs, as its kernel has them.
    fn args_are_inputs(&self) -> bool {
        false
    }

    /// The same op with fixed numbers for those that are its own: where two are equal so, what one
    /// dispatches can be kept for the other.
    fn without_args(&self) -> Option<Arc<dyn Op>> {
        self.with_key(Some([0; 4]))
    }

    /// The key of random numbers that its kernels make, where it was drawn when the op was made.
    fn key(&self) -> Option<[u32; 4]> {
        None
    }

    /// The same op with this key, or with one that is drawn now.
    fn with_key(&self, _key: Option<[u32; 4]>) -> Option<Arc<dyn Op>> {
        None
    }

    /// Draws its random numbers now, for a call whose inputs are computed later; `None` where they are
    /// drawn with the rest.
    fn drawn(&self, _x: &[&Meta]) -> Result<Option<Drawn>> {
        Ok(None)
    }
}
