//! `vmap`: a function of one slice, computed for many slices at once. A tensor of slices is to the
//! function a tensor of one of them, which has no memory of its own: all slices, along a dimension in
//! front, stand for it. Requests for such tensors are computed on all of the slices, with the histories
//! that these have, so that gradients pass both through what is mapped and within it.

mod call;
mod derived;
mod draw;

use crate::autograd::mode;
use crate::device::Device;
use crate::dispatch::{self, InForce, Interpreter, Request, RequestKind, Run};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Derivative, Op, Tensors};
use crate::ops::shape::view::AsStrided;
use crate::schema::Value;
use crate::tensor::{Creation, Tensor};
use crate::{bail, ensure};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub use call::{loops, set_loops, Loops};

/// What stands for the elements of a tensor of slices.
pub struct Batched {
    /// Which `vmap` made it.
    level: u64,
    /// All slices, along the first dimension; or the one tensor that is the same for all.
    whole: Tensor,
    shared: bool,
    /// What was mapped, and the dimension of its slices.
    given: Option<(Tensor, usize)>,
}

impl Batched {
    /// What stands for a tensor, if that is one of slices.
    pub fn of(t: &Tensor) -> Option<&Batched> {
        t.held().filter(|b: &&Batched| !b.shared)
    }
    pub fn level(&self) -> u64 {
        self.level
    }
    /// What the slices are slices of, and their dimension.
    pub fn given(&self) -> (&Tensor, usize) {
        match &self.given {
            Some((t, dim)) => (t, *dim),
            None => (&self.whole, 0),
        }
    }
}

/// Whether a tensor has slices wherever another one has them.
pub fn covers(t: &Tensor, other: &Tensor) -> bool {
    fn levels(t: &Tensor) -> SmallVec<[u64; 4]> {
        let Some(b) = t.held::<Batched>() else {
            return SmallVec::new();
        };
        let mut found = levels(&b.whole);
        if !b.shared {
            found.push(b.level);
        }
        found
    }
    let own = levels(t);
    levels(other).iter().all(|level| own.contains(level))
}

/// Whether a gradient is asked for of the tensor, or of what stands for it.
pub fn tracked(t: &Tensor) -> bool {
    t.requires_grad() || t.held().is_some_and(|b: &Batched| tracked(&b.whole))
}

/// Whether slices may draw random numbers, and whether each gets the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Randomness {
    Error,
    Same,
    Different,
}

/// A function at work on `size` slices: an interpreter of what it asks for.
pub struct Batch {
    level: u64,
    size: usize,
    randomness: Randomness,
    /// Whether something that a gradient is asked for took part.
    tracked: AtomicBool,
    me: Weak<Batch>,
}

/// A tensor for a function that is mapped.
struct Input {
    t: Tensor,
    mapped: bool,
}

impl Batch {
    pub fn new(size: usize, randomness: Randomness) -> Arc<Batch> {
        static LEVEL: AtomicU64 = AtomicU64::new(1);
        Arc::new_cyclic(|me| Batch {
            level: LEVEL.fetch_add(1, Ordering::Relaxed),
            size,
            randomness,
            tracked: AtomicBool::new(false),
            me: me.clone(),
        })
    }

    /// Begins to interpret what the thread asks for.
    pub fn start(this: &Arc<Batch>) {
        InForce::here().above(this.clone()).put();
    }

    /// Ends that.
    pub fn stop(this: &Arc<Batch>) {
        let me: Arc<dyn Interpreter> = this.clone();
        InForce::here().without(&me).put();
    }

    pub fn level(&self) -> u64 {
        self.level
    }
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether something that a gradient is asked for took part so far.
    pub fn tracks(&self) -> bool {
        self.tracked.load(Ordering::Relaxed)
    }

    /// The tensor of one slice that `t` is to the function, whose slices lie along `dim`. It is asked for
    /// below this interpreter.
    pub fn enter(&self, t: &Tensor, dim: usize) -> Result<Tensor> {
        let given = Some((t.clone(), dim));
        let whole = match dim {
            0 => t.clone(),
            _ => t.movedim(&[dim as i64], &[0])?,
        };
        Ok(self.one(whole, given))
    }

    /// What the function returned, with the slices along `dim`; it is asked for below this interpreter.
    pub fn leave(&self, t: &Tensor, dim: usize) -> Result<Tensor> {
        let Input { t: whole, mapped } = self.input(t)?;
        if !mapped {
            let mut shape = crate::shape::signed(t.shape());
            shape.insert(0, self.size as i64);
            return whole.expand(&shape)?.movedim(&[0], &[dim as i64]);
        }
        let own = self.own(t).filter(|b| b.whole.same(&whole));
        match own.and_then(|b| b.given.as_ref()) {
            Some((given, place)) if *place == dim => Ok(given.clone()),
            _ if dim == 0 => Ok(whole),
            _ => whole.movedim(&[0], &[dim as i64]),
        }
    }

    /// What a tensor of the function is outside of it, and the dimension of its slices where it has them.
    pub fn outside(&self, t: &Tensor) -> Result<(Tensor, Option<usize>)> {
        let Input { t: whole, mapped } = self.input(t)?;
        if !mapped {
            return Ok((whole, None));
        }
        let own = self.own(t).filter(|b| b.whole.same(&whole));
        Ok(match own.and_then(|b| b.given.clone()) {
            Some((given, dim)) => (given, Some(dim)),
            None => (whole, Some(0)),
        })
    }

    /// What stands for a tensor of this function.
    fn own<'a>(&self, t: &'a Tensor) -> Option<&'a Batched> {
        t.held().filter(|b: &&Batched| b.level == self.level)
    }

    /// Whether a tensor is another one for each slice of this function.
    pub fn has(&self, t: &Tensor) -> bool {
        self.own(t).is_some_and(|b| !b.shared)
    }

    /// The same tensor for all slices, whose history within the function is nothing to what is outside.
    fn shared(&self, t: &Tensor) -> Tensor {
        self.note(t);
        let meta = Meta::new(t.layout().clone(), t.dtype(), t.device());
        let (level, whole) = (self.level, t.clone());
        Tensor::standing(
            meta,
            Batched {
                level,
                whole,
                shared: true,
                given: None,
            },
        )
    }

    /// The tensor of one slice for which `whole` stands.
    fn one(&self, whole: Tensor, given: Option<(Tensor, usize)>) -> Tensor {
        self.note(&whole);
        let meta = Meta::new(whole.layout().of_one(), whole.dtype(), whole.device());
        let level = self.level;
        Tensor::standing(
            meta,
            Batched {
                level,
                whole,
                shared: false,
                given,
            },
        )
    }

    fn note(&self, whole: &Tensor) {
        if tracked(whole) {
            self.tracked.store(true, Ordering::Relaxed);
        }
    }

    /// What a tensor is below this interpreter.
    fn input(&self, t: &Tensor) -> Result<Input> {
        let Some(b) = self.own(t) else {
            let (t, mapped) = (t.clone(), false);
            return Ok(Input { t, mapped });
        };
        let (whole, mapped) = (&b.whole, !b.shared);
        let layout = match mapped {
            true => wide(whole, t.layout(), t.dtype()),
            false => t.layout().clone(),
        };
        if *whole.layout() == layout && whole.dtype() == t.dtype() {
            let t = whole.clone();
            return Ok(Input { t, mapped });
        }
        // An alias, which was no request.
        let op = AsStrided {
            base: whole.layout().clone(),
            view: layout.clone(),
        };
        let t = dispatch::view_under(whole, layout, t.dtype(), || Ok(op))?;
        Ok(Input { t, mapped })
    }

    /// What a tensor is in one slice, below this interpreter.
    fn slice(&self, t: &Tensor, i: usize) -> Result<Tensor> {
        let Input { t, mapped } = self.input(t)?;
        match mapped {
            true => t.select(0, i as i64),
            false => Ok(t),
        }
    }

    fn inputs(&self, x: &[&Tensor]) -> Result<SmallVec<[Input; 4]>> {
        x.iter().map(|t| self.input(t)).collect()
    }

    /// All slices of a tensor of them.
    fn whole(&self, t: &Tensor) -> Result<Option<Tensor>> {
        let Input { t, mapped } = self.input(t)?;
        Ok(mapped.then_some(t))
    }

    /// What is asked for of tensors that are the same for all slices.
    fn once(&self, request: &Request) -> Result<Tensors> {
        let inputs = self.inputs(request.x)?;
        let x: SmallVec<[&Tensor; 4]> = inputs.iter().map(|i| &i.t).collect();
        let y = match request.kind {
            RequestKind::Compute { op } => call::found(op, &x)?,
            RequestKind::View {
                layouts,
                dtype,
                creation,
                ..
            } => {
                let view = |l: &Layout| {
                    let op = AsStrided {
                        base: x[0].layout().clone(),
                        view: l.clone(),
                    };
                    let whole = dispatch::view_under(x[0], l.clone(), dtype, || Ok(op))?;
                    self.note(&whole);
                    let batched = Batched {
                        level: self.level,
                        whole,
                        shared: true,
                        given: None,
                    };
                    Ok(request.x[0].view_standing(l.clone(), dtype, creation, batched))
                };
                return layouts.iter().map(view).collect();
            }
            RequestKind::Into { op, y, .. } => {
                if y.iter().all(|t| self.own(t).is_none()) {
                    dispatch::compute_into(op, &x, y)?;
                    return Ok(Tensors::new());
                }
                let found = dispatch::call_kept(op.keep(), &x)?;
                for (to, from) in y.iter().zip(&found) {
                    self.input(to)?.t.copy_from(from)?;
                }
                return Ok(Tensors::new());
            }
        };
        Ok(y.iter().map(|t| self.shared(t)).collect())
    }

    fn views(
        &self,
        op: &dyn Derivative,
        x: &Tensor,
        layouts: &[Layout],
        dtype: DType,
        creation: Creation,
    ) -> Result<Tensors> {
        let whole = self.whole(x)?.expect("the input of a view is mapped");
        let step = whole.stride(0);
        let all: Vec<Layout> = layouts.iter().map(|l| wide(&whole, l, dtype)).collect();
        let many = match op.view_of_many(x.layout(), self.size, step) {
            Some(op) => op,
            None => {
                ensure!(
                    all.len() == 1,
                    NotImplemented,
                    "vmap: {} has no rule for views of slices",
                    op.name()
                );
                Arc::new(AsStrided {
                    base: whole.layout().clone(),
                    view: all[0].clone(),
                })
            }
        };
        let wholes = dispatch::views_kept(many, &whole, &all, dtype, creation)?;
        let each = wholes.into_iter().zip(layouts).map(|(whole, layout)| {
            self.note(&whole);
            let level = self.level;
            let batched = Batched {
                level,
                whole,
                shared: false,
                given: None,
            };
            x.view_standing(layout.clone(), dtype, creation, batched)
        });
        Ok(each.collect())
    }

    /// Writes the results of an op to `y`, of which all slices are written.
    fn into(&self, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let inputs: SmallVec<[Input; 4]> =
            x.iter().map(|t| self.input(t)).collect::<Result<_>>()?;
        for t in y {
            if !self.has(t) {
                return self.refuse_shared(op, t);
            }
        }
        if let ([y], true) = (
            y,
            op.traits().pointwise && x.first().is_some_and(|x| x.same(&y[0])),
        ) {
            if let Some(x) = call::aligned_in_place(op, &inputs)? {
                let refs: SmallVec<[&Tensor; 4]> = x.iter().collect();
                let target = &refs[0];
                dispatch::call_kept_into(&op.keep(), &refs, target, true)?;
                self.note(target);
                debug_assert!(self.has(y));
                return Ok(());
            }
        }
        let logical: SmallVec<[&Tensor; 4]> = x.iter().copied().collect();
        let results = call::results(self, op, &inputs, &logical)?;
        for (to, from) in y.iter().zip(&results) {
            let to = self.whole(to)?.expect("it is mapped");
            to.copy_from(from)?;
            self.note(&to);
        }
        Ok(())
    }

    /// Refuses to write what is another thing for each slice to what they share.
    fn refuse_shared(&self, op: &dyn Op, y: &Tensor) -> Result<()> {
        let name = crate::op::function_name(op.name());
        let own = match name.as_str() {
            "fill" => "fill_",
            "bernoulli" => "inplace bernoulli",
            _ => "inplace arithmetic",
        };
        bail!(
            Runtime,
            "vmap: {own}(self, *extra_args) is not possible because there exists a Tensor `other` in \
             extra_args that has more elements than `self`. This happened due to `other` being \
             vmapped over but `self` not being vmapped over in a vmap. Please try to use \
             out-of-place operators instead of {own}, or map `self` too: output with shape {} \
             doesn't match the broadcast shape {}",
            crate::shape::Show(y.shape()),
            crate::shape::Show(&crate::shape::of_many(self.size, y.shape()))
        )
    }
}

/// The layout of all slices of which one has a layout, as far apart as those of `whole`.
fn wide(whole: &Tensor, one: &Layout, dtype: DType) -> Layout {
    let bytes = whole.stride(0) * whole.dtype().size() as isize;
    one.of_many(whole.size(0), bytes / dtype.size() as isize)
}

impl Interpreter for Batch {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let x = request.x;
        let mapped = x.iter().any(|t| self.has(t));
        let own = x.iter().any(|t| self.own(t).is_some());
        match request.kind {
            RequestKind::Compute { op } if op.traits().draws => self.draw(op, x),
            RequestKind::Into { op, y, .. } if op.traits().draws => {
                self.draw_into(op, x, y).map(|()| Tensors::new())
            }
            RequestKind::Compute { op } if mapped => {
                let y = call::results(self, op, &self.inputs(x)?, x)?;
                Ok(y.into_iter().map(|t| self.one(t, None)).collect())
            }
            RequestKind::View {
                op,
                layouts,
                dtype,
                creation,
            } if mapped => self.views(op, x[0], layouts, dtype, creation),
            RequestKind::Into { op, y, .. } if mapped || y.iter().any(|t| self.has(t)) => {
                self.into(op, x, y).map(|()| Tensors::new())
            }
            RequestKind::Into { y, .. } if own || y.iter().any(|t| self.own(t).is_some()) => {
                self.once(request)
            }
            _ if own => self.once(request),
            _ => dispatch::apply(request),
        }
    }

    fn heeds(&self, x: &[&Tensor]) -> bool {
        x.iter().any(|t| self.own(t).is_some())
    }

    fn by_slices(&self, name: &str, values: &[Value], run: &Run) -> Option<Result<Value>> {
        call::values_by_slices(self, name, values, run)
    }

    fn fresh(&self, shape: &[usize], dtype: DType, device: Device, out: bool) -> Result<Tensor> {
        ensure!(
            !out || self.randomness == Randomness::Error,
            Runtime,
            "vmap: We do not support calling out variants of random operations inside of vmap. \
             Please use non-out variants as a workaround"
        );
        self.check_random()?;
        if self.randomness != Randomness::Different {
            return dispatch::fresh(shape, dtype, device, out);
        }
        let many = crate::shape::of_many(self.size, shape);
        Ok(self.one(dispatch::fresh(&many, dtype, device, out)?, None))
    }
    fn beneath(&self, t: &Tensor) -> Result<Option<Tensor>> {
        self.own(t).map(|_| Ok(self.input(t)?.t)).transpose()
    }
}

/// Whether something that a gradient is asked for took part in a function that is mapped on this thread.
pub fn tracks() -> bool {
    mode::interpreted() && InForce::here().each::<Batch>().any(Batch::tracks)
}

/// A leaf of what is differentiated within the functions that are mapped on this thread: the tensor without
/// its history there, and so that theirs is nothing to what is outside. `None` where none is mapped.
pub fn leaf(t: &Tensor) -> Option<Tensor> {
    if !mode::interpreted() {
        return None;
    }
    let here = InForce::here();
    let batch = here.each::<Batch>().last()?;
    if here.follow_above::<Batch>(t) {
        // What it stands for has no part in that.
        return Some(t.detach());
    }
    Some(match batch.own(t) {
        Some(_) => t.detach(),
        None => batch.shared(&t.detach()),
    })
}
