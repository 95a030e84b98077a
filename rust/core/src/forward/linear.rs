//! What forward mode computes of tangents that are yet to come: a program, linear in them, that runs for as many
//! tangents as are asked about. The function itself runs once, on primals.

use super::{alike, placed};
use crate::autograd::jvp::Promised;
use crate::autograd::mode;
use crate::dispatch::{self, InForce, Interpreter, Request, RequestKind};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{function_name, Op, Tensors};
use crate::tensor::{Creation, Tensor};
use crate::{bail, ensure};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// An interpreter below a level of forward mode: it writes down what is asked of tangents, and of what is
/// computed of them. What is asked of other tensors goes on, and is done once.
pub struct Linear {
    level: u64,
    program: Mutex<Program>,
    finished: OnceLock<Program>,
}

#[derive(Default)]
struct Program {
    /// The slots of the tangents come first; whether the program writes to them.
    inputs: Vec<bool>,
    slots: Vec<Slot>,
    constants: Vec<Constant>,
    steps: Vec<Step>,
    outputs: Vec<Option<Operand>>,
}

/// A tensor of the program, and which one's memory it lies in.
struct Slot {
    layout: Layout,
    dtype: DType,
    root: usize,
}

/// What the program reads, as long as nobody writes to it.
struct Constant {
    t: Option<Tensor>,
    version: u32,
}

impl Constant {
    fn of(t: Tensor) -> Constant {
        let version = t.version();
        Constant {
            t: Some(t),
            version,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
    Slot(usize),
    Constant(usize),
}

enum What {
    Compute(Arc<dyn Op>),
    /// Into slots that are there, of which the first is the first operand if it is `in_place`.
    Into {
        op: Arc<dyn Op>,
        in_place: bool,
    },
    View {
        severs: bool,
    },
}

struct Step {
    what: What,
    x: SmallVec<[Operand; 4]>,
    y: SmallVec<[usize; 1]>,
    /// Slots that nobody asks for afterwards.
    ends: SmallVec<[usize; 2]>,
}

impl Linear {
    pub fn new() -> Arc<Linear> {
        static LEVEL: AtomicU64 = AtomicU64::new(1);
        Arc::new(Linear {
            level: LEVEL.fetch_add(1, Ordering::Relaxed),
            program: Mutex::default(),
            finished: OnceLock::new(),
        })
    }

    /// Begins to write down what the thread asks for.
    pub fn start(this: &Arc<Linear>) {
        InForce::here().above(this.clone()).put();
    }

    /// Ends that.
    pub fn stop(this: &Arc<Linear>) {
        let me: Arc<dyn Interpreter> = this.clone();
        InForce::here().without(&me).put();
    }

    /// The tangent of `x`, the program's next input. All are asked for before anything else.
    pub fn input(&self, x: &Tensor) -> Result<Tensor> {
        if x.is_sparse() {
            dispatch::refuse_sparse("linearize", x)?;
        }
        let mut layout = Layout::contiguous(x.shape());
        if !x.layout().overlaps_itself() {
            layout.strides = x.strides().clone();
        }
        let mut program = self.program.lock();
        program.inputs.push(false);
        let meta = Meta::new(layout, x.dtype(), x.device());
        let slot = program.slot(&meta, None);
        drop(program);
        Ok(self.promised(meta, slot))
    }

    /// Ends the program, whose results these are; `None` are zeros. The `others` are the caller's, who may
    /// write to them.
    pub fn finish(&self, results: &[Option<Tensor>], others: &[Tensor]) -> Result<()> {
        let outputs = results.iter().map(|t| t.as_ref().map(|t| self.operand(t)));
        let outputs: Vec<_> = outputs.map(Option::transpose).collect::<Result<_>>()?;
        self.keep_apart(others)?;
        let mut program = std::mem::take(&mut *self.program.lock());
        program.outputs = outputs;
        program.prune();
        let _ = self.finished.set(program);
        Ok(())
    }

    /// The results for tangents; `None` are zeros.
    pub fn run(&self, tangents: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        match self.finished.get() {
            Some(program) => program.run(tangents),
            None => bail!(Assertion, "linearize: the function is still at work"),
        }
    }

    fn own<'a>(&self, t: &'a Tensor) -> Option<&'a Promised> {
        t.held().filter(|p: &&Promised| p.level == self.level)
    }

    fn promised(&self, meta: Meta, slot: usize) -> Tensor {
        let level = self.level;
        Tensor::standing(meta, Promised { level, slot })
    }

    fn operand(&self, t: &Tensor) -> Result<Operand> {
        let mut program = self.program.lock();
        let Some(own) = self.own(t) else {
            // What is not recorded now is not recorded later.
            let t = if mode::grad() { t.clone() } else { t.detach() };
            program.constants.push(Constant::of(t));
            return Ok(Operand::Constant(program.constants.len() - 1));
        };
        let slot = &program.slots[own.slot];
        if slot.layout == *t.layout() && slot.dtype == t.dtype() {
            return Ok(Operand::Slot(own.slot));
        }
        // An alias, which was no request.
        Ok(Operand::Slot(program.view(own.slot, t.meta(), false)))
    }

    fn operands(&self, x: &[&Tensor]) -> Result<SmallVec<[Operand; 4]>> {
        x.iter().map(|t| self.operand(t)).collect()
    }

    fn compute(&self, op: &dyn Op, x: &[&Tensor]) -> Result<Tensors> {
        let metas = dispatch::plan(op, &dispatch::metas(x))?;
        // What reads elements does not know yet what comes out.
        ensure!(
            !metas.is_empty() && !op.traits().draws,
            NotImplemented,
            "linearize: {} would read elements of a tangent, or draw random numbers for it, and tangents are \
             yet to come. torch.func.jvp computes the product for one tangent",
            function_name(op.name())
        );
        let x = self.operands(x)?;
        let mut program = self.program.lock();
        let y: SmallVec<[usize; 1]> = metas.iter().map(|m| program.slot(m, None)).collect();
        program.step(What::Compute(op.keep()), x, y.clone());
        drop(program);
        let each = metas.into_iter().zip(y);
        Ok(each.map(|(meta, slot)| self.promised(meta, slot)).collect())
    }

    fn views(
        &self,
        x: &Tensor,
        layouts: &[Layout],
        dtype: DType,
        creation: Creation,
        severs: bool,
    ) -> Result<Tensors> {
        let Operand::Slot(base) = self.operand(x)? else {
            bail!(Assertion, "linearize: expected a view of a tangent");
        };
        let each = layouts.iter().map(|layout| {
            let meta = Meta::new(layout.clone(), dtype, x.device());
            let slot = self.program.lock().view(base, &meta, severs);
            let level = self.level;
            x.view_standing(layout.clone(), dtype, creation, Promised { level, slot })
        });
        Ok(each.collect())
    }

    fn into(&self, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let to = y.iter().map(|t| match self.operand(t)? {
            Operand::Slot(slot) => Ok(slot),
            Operand::Constant(_) => bail!(
                NotImplemented,
                "linearize: {} would write what depends on tangents to a tensor that does not. Write it \
                 out of place",
                function_name(op.name())
            ),
        });
        let to: SmallVec<[usize; 1]> = to.collect::<Result<_>>()?;
        let in_place = x.first().is_some_and(|x| x.same(&y[0]));
        let x = self.operands(x)?;
        let op = op.keep();
        let mut program = self.program.lock();
        program.step(What::Into { op, in_place }, x, to);
        Ok(())
    }

    /// Copies what the program reads of the memory that tensors lie in, which others may write to.
    fn keep_apart(&self, tensors: &[Tensor]) -> Result<()> {
        let base = |t: &Tensor| t.view_of().map_or_else(|| t.clone(), |v| v.base.clone());
        let bases: SmallVec<[Tensor; 2]> = tensors.iter().map(base).collect();
        let shared = |c: &Constant| {
            let of = c.t.as_ref().map(base);
            of.is_some_and(|c| bases.iter().any(|t| t.shares_storage(&c)))
        };
        let mut places = Vec::new();
        for (i, c) in self.program.lock().constants.iter().enumerate() {
            if shared(c) {
                places.extend(c.t.clone().map(|t| (i, t)));
            }
        }
        for (i, t) in places {
            let own = match t.layout().overlaps_itself() {
                true => t.copy_dense()?,
                false => t.copy_with_layout(t.layout())?,
            };
            let own = Constant::of(own.with_wrapped(t.is_wrapped()));
            let old = std::mem::replace(&mut self.program.lock().constants[i], own);
            drop(old);
        }
        Ok(())
    }
}

impl Program {
    fn slot(&mut self, meta: &Meta, root: Option<usize>) -> usize {
        let own = self.slots.len();
        self.slots.push(Slot {
            layout: meta.layout().clone(),
            dtype: meta.dtype(),
            root: root.unwrap_or(own),
        });
        own
    }

    fn view(&mut self, base: usize, meta: &Meta, severs: bool) -> usize {
        let slot = self.slot(meta, Some(self.slots[base].root));
        let x = SmallVec::from_elem(Operand::Slot(base), 1);
        self.step(What::View { severs }, x, SmallVec::from_elem(slot, 1));
        slot
    }

    fn step(&mut self, what: What, x: SmallVec<[Operand; 4]>, y: SmallVec<[usize; 1]>) {
        let ends = SmallVec::new();
        self.steps.push(Step { what, x, y, ends });
    }

    /// Leaves out what no result comes from, and notes what is asked for last where.
    fn prune(&mut self) {
        let mut needed = vec![false; self.slots.len()];
        let mut asked = vec![false; self.slots.len()];
        let mut read = vec![false; self.constants.len()];
        for output in self.outputs.iter().flatten() {
            match *output {
                Operand::Slot(i) => {
                    needed[self.slots[i].root] = true;
                    asked[i] = true;
                }
                Operand::Constant(i) => read[i] = true,
            }
        }
        let mut kept = Vec::new();
        for mut step in self.steps.drain(..).rev() {
            if !step.y.iter().any(|&i| needed[self.slots[i].root]) {
                continue;
            }
            let slots = step.x.iter().filter_map(|x| match x {
                Operand::Slot(i) => Some(*i),
                Operand::Constant(_) => None,
            });
            if let What::Into { .. } = step.what {
                for &i in &step.y {
                    if let Some(written) = self.inputs.get_mut(self.slots[i].root) {
                        *written = true;
                    }
                }
            }
            for i in slots.chain(step.y.iter().copied()) {
                needed[self.slots[i].root] = true;
                if !std::mem::replace(&mut asked[i], true) {
                    step.ends.push(i);
                }
            }
            for x in &step.x {
                if let Operand::Constant(i) = x {
                    read[*i] = true;
                }
            }
            kept.push(step);
        }
        kept.reverse();
        self.steps = kept;
        for (c, read) in self.constants.iter_mut().zip(read) {
            c.t = c.t.take().filter(|_| read);
        }
    }

    fn run(&self, tangents: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        for c in &self.constants {
            ensure!(
                c.t.as_ref().is_none_or(|t| t.version() == c.version),
                Runtime,
                "linearize: one of the tensors that the product is computed with has been modified by an \
                 inplace operation: one of shape {} is at version {}; expected version {} instead. Call \
                 linearize again, or write to a clone",
                crate::shape::Show(c.t.as_ref().map_or(&[], |t| t.shape())),
                c.t.as_ref().map_or(0, Tensor::version),
                c.version
            );
        }
        let mut slots: Vec<Option<Tensor>> = vec![None; self.slots.len()];
        for (i, (t, written)) in tangents.iter().zip(&self.inputs).enumerate() {
            let layout = &self.slots[i].layout;
            slots[i] = Some(match written {
                true => t.copy_with_layout(layout)?,
                false => laid(t.clone(), layout)?,
            });
        }
        for step in &self.steps {
            self.take(step, &mut slots)?;
            for &i in &step.ends {
                slots[i] = None;
            }
        }
        let outputs = self.outputs.iter().map(|output| match output {
            None => Ok(None),
            Some(Operand::Slot(_)) => Ok(output.map(|x| self.value(x, &slots).clone())),
            // It is the caller's, who may write to it.
            Some(x @ Operand::Constant(_)) => self.value(*x, &slots).copy_dense().map(Some),
        });
        outputs.collect()
    }

    fn value<'a>(&'a self, x: Operand, slots: &'a [Option<Tensor>]) -> &'a Tensor {
        let t = match x {
            Operand::Slot(i) => &slots[i],
            Operand::Constant(i) => &self.constants[i].t,
        };
        t.as_ref()
            .expect("an operand is there until it is asked for last")
    }

    fn take(&self, step: &Step, slots: &mut [Option<Tensor>]) -> Result<()> {
        let x: SmallVec<[Tensor; 4]> = step
            .x
            .iter()
            .map(|&x| self.value(x, slots).clone())
            .collect();
        let refs: SmallVec<[&Tensor; 4]> = x.iter().collect();
        match &step.what {
            What::Compute(op) => {
                for (t, &i) in dispatch::call_kept(op.clone(), &refs)?
                    .into_iter()
                    .zip(&step.y)
                {
                    slots[i] = Some(laid(t, &self.slots[i].layout)?);
                }
            }
            What::View { severs } => {
                let (Operand::Slot(base), to) = (step.x[0], step.y[0]) else {
                    bail!(Assertion, "linearize: expected a view of a tangent");
                };
                let (base, slot) = (&self.slots[base].layout, &self.slots[to]);
                let view = placed(&x[0], base, &slot.layout, slot.dtype)?;
                slots[to] = Some(if *severs { view.detached()? } else { view });
            }
            What::Into { op, in_place } => {
                let to = step
                    .y
                    .iter()
                    .map(|&i| self.value(Operand::Slot(i), slots).clone());
                let to: SmallVec<[Tensor; 1]> = to.collect();
                if *in_place {
                    dispatch::call_kept_into(op, &refs, &to[0], true)?;
                } else {
                    dispatch::call_in_place(&**op, &refs, &to)?;
                }
            }
        }
        Ok(())
    }
}

/// A tensor whose elements lie as those of a layout do.
fn laid(t: Tensor, layout: &Layout) -> Result<Tensor> {
    match alike(t.shape(), t.strides(), &layout.strides) {
        true => Ok(t),
        false => t.copy_with_layout(layout),
    }
}

impl Interpreter for Linear {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let x = request.x;
        match request.kind {
            RequestKind::Into { op, y, .. } => {
                if x.iter().copied().chain(y).any(|t| self.own(t).is_some()) {
                    return self.into(op, x, y).map(|()| Tensors::new());
                }
                self.keep_apart(y)?;
            }
            _ if !self.heeds(x) => {}
            RequestKind::Compute { op } => return self.compute(op, x),
            RequestKind::View {
                op,
                layouts,
                dtype,
                creation,
            } => return self.views(x[0], layouts, dtype, creation, op.severs()),
        }
        dispatch::apply(request)
    }

    fn heeds(&self, x: &[&Tensor]) -> bool {
        x.iter().any(|t| self.own(t).is_some())
    }

    /// So that what is written down has derivatives.
    fn follows(&self) -> bool {
        true
    }
}
