//! Programs whose results have a graph: its node keeps the memory of the call until it has gone the
//! way back.

use super::{End, Output, Program, Run};
use crate::autograd::node::{Backward, Edges};
use crate::autograd::{mode, Edge, Node};
use crate::device::Device;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::op::{Grads, TensorMeta};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// A program, and those of its runs that nobody uses.
pub struct Runs {
    program: Arc<Program>,
    idle: Mutex<Vec<Run>>,
    /// The GPUs that it works on, and which life of each.
    lives: SmallVec<[(u8, u32); 1]>,
}

impl Runs {
    pub fn new(mut program: Program) -> Result<Arc<Runs>> {
        program.fuse();
        let program = Arc::new(program);
        let idle = Mutex::new(vec![Run::new(program.clone())?]);
        let mut lives = SmallVec::new();
        for slot in program.slots() {
            if let Device::Wgpu(index) = slot.device {
                if lives.iter().all(|(known, _)| *known != index) {
                    lives.push((index, Gpu::at(index)?.life()));
                }
            }
        }
        Ok(Arc::new(Runs {
            program,
            idle,
            lives,
        }))
    }

    /// Whether a GPU that it works on was lost, and its memory with it.
    pub fn is_lost(&self) -> bool {
        let same = |(index, life): &(u8, u32)| Gpu::at(*index).is_ok_and(|g| g.life() == *life);
        !self.lives.iter().all(same)
    }

    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The bytes that the idle runs hold for what steps make.
    pub fn held(&self) -> usize {
        self.idle.lock().iter().map(Run::held).sum()
    }

    /// How many dispatches of a GPU its idle runs keep, to record them again without asking the ops.
    pub fn kept(&self) -> usize {
        self.idle.lock().iter().map(Run::kept).sum()
    }

    /// The results for these inputs; `None` where they do not fit, or where another thread is at work and
    /// the program changes what is there.
    pub fn call(self: &Arc<Self>, inputs: &[Tensor]) -> Result<Option<Vec<Tensor>>> {
        if self.program.misfit(inputs).is_some() {
            return Ok(None);
        }
        if self.is_lost() {
            self.idle.lock().clear();
            return Ok(None);
        }
        let idle = self.idle.lock().pop();
        let mut run = match (idle, &self.program.back) {
            (Some(run), _) => run,
            (None, Some(_)) => Run::new(self.program.clone())?,
            (None, None) => return Ok(None),
        };
        let results = run.call(inputs);
        let Some(back) = &self.program.back else {
            self.idle.lock().push(run);
            return results.map(Some);
        };
        let results = match results {
            Ok(results) => results,
            Err(e) => {
                self.idle.lock().push(run);
                return Err(e);
            }
        };
        let mut edges = Edges::new();
        for (end, _) in &back.ends {
            edges.push(match end {
                End::Input(i) => inputs[*i].edge()?,
                End::Leaf(t) => t.edge()?,
            });
        }
        let metas = back.roots.iter().map(|(i, _)| TensorMeta::of(&results[*i]));
        let metas: SmallVec<[TensorMeta; 1]> = metas.collect();
        let call = Call {
            versions: run.versions(),
            runs: self.clone(),
            run: Mutex::new(Some(run)),
        };
        let node = Node::new(edges, metas, call);
        for (nr, (i, _)) in back.roots.iter().enumerate() {
            let node = node.clone();
            results[*i].set_edge(Edge { node, nr });
        }
        Ok(Some(results))
    }
}

/// The node of a call.
struct Call {
    runs: Arc<Runs>,
    run: Mutex<Option<Run>>,
    /// Slots that others can write to and that the way back reads, with their versions.
    versions: Vec<(usize, u32)>,
}

impl Backward for Call {
    fn name(&self) -> String {
        "CompiledFunctionBackward".into()
    }

    fn backward(&self, node: &Node, g: Grads) -> Result<Grads> {
        let mut held = self.run.lock();
        let Some(run) = held.as_mut() else {
            bail!(
                Runtime,
                "Trying to backward through the graph a second time (or directly access saved \
                 tensors after they have already been freed). Saved intermediate values of the \
                 graph are freed when you call .backward() or autograd.grad(). Specify \
                 retain_graph=True if you need to backward through the graph a second time or if \
                 you need to access saved tensors after calling backward."
            );
        };
        for (s, version) in &self.versions {
            let now = run.memory(*s).map_or(*version, |m| m.version());
            ensure!(
                now == *version,
                Runtime,
                "one of the variables needed for gradient computation has been modified by an \
                 inplace operation: it is at version {now}; expected version {version} instead. \
                 (It is read by the gradient of a call that torch.graph recorded.)"
            );
        }
        ensure!(
            !mode::grad(),
            Runtime,
            "torch.graph: a recorded call has no second derivative; call the function as it is where \
             backward runs with create_graph=True"
        );
        let program = self.runs.program.clone();
        let Some(back) = &program.back else {
            return Ok(Grads::new());
        };
        let mut seeds = Vec::with_capacity(back.roots.len());
        for (k, (_, v)) in back.roots.iter().enumerate() {
            let m = &node.outputs[k];
            seeds.push(match g.get(k).and_then(Option::as_ref) {
                Some(g) if g.meta() == &v.meta => g.clone(),
                Some(g) => {
                    let copy = Tensor::empty(&m.shape, m.dtype, m.device)?;
                    copy.write_from(g)?;
                    copy
                }
                None => Tensor::zeros(&m.shape, m.dtype, m.device)?,
            });
        }
        run.bind_inputs(program.inputs.len(), &seeds);
        run.renew(true)?;
        run.steps(back.from..program.steps.len())?;
        let mut grads = Grads::new();
        for (_, v) in &back.ends {
            grads.push(v.as_ref().map(|v| run.made(v)).transpose()?);
        }
        run.give_away();
        Ok(grads)
    }

    fn release(&self) {
        if let Some(run) = self.run.lock().take().filter(|_| !self.runs.is_lost()) {
            self.runs.idle.lock().push(run);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.release();
    }
}

impl Program {
    /// Whether a result is one that the program makes with a graph.
    pub fn has_graph(&self, i: usize) -> bool {
        let roots = self.back.iter().flat_map(|b| &b.roots);
        matches!(self.outputs[i], Output::Made(..)) && roots.into_iter().any(|(r, _)| *r == i)
    }
}
