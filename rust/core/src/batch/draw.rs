//! Random numbers of slices: those of one call for all of them, the same ones for each, or none.

use super::{call, Batch, Input, Randomness};
use crate::bail;
use crate::dispatch;
use crate::error::Result;
use crate::op::{Op, Tensors};
use crate::tensor::Tensor;
use smallvec::SmallVec;

fn refuse_same<T>() -> Result<T> {
    bail!(
        Runtime,
        "Vmap does not currently support same randomness with a batched tensor input. Draw the \
         numbers outside, or ask for randomness='different'"
    )
}

impl Batch {
    pub(super) fn check_random(&self) -> Result<()> {
        match self.randomness {
            Randomness::Error => bail!(
                Runtime,
                "vmap: called random operation while in randomness error mode. Please either use \
                 the 'same' or 'different' randomness flags on vmap or perform the randomness \
                 operation out of vmap"
            ),
            _ => Ok(()),
        }
    }

    /// Results of random numbers.
    pub(super) fn draw(&self, op: &dyn Op, x: &[&Tensor]) -> Result<Tensors> {
        self.check_random()?;
        let mapped = x.iter().any(|t| self.has(t));
        if self.randomness == Randomness::Same {
            if !mapped {
                let inputs = self.inputs(x)?;
                let x: SmallVec<[&Tensor; 4]> = inputs.iter().map(|i| &i.t).collect();
                let y = dispatch::call_kept(op.keep(), &x)?;
                return Ok(y.iter().map(|t| self.shared(t)).collect());
            }
            // Numbers of one slice, for all of them.
            let x_metas = dispatch::metas(x);
            let Some(drawn) = op.replay().map_or(Ok(None), |r| r.drawn(&x_metas))? else {
                return refuse_same();
            };
            let all: SmallVec<[&Tensor; 4]> = x.iter().copied().chain(&drawn.more).collect();
            let inputs = self.inputs(&all)?;
            let y = call::results(self, &*drawn.op, &inputs, &all)?;
            let first = y.into_iter().take(1).map(|t| self.one(t, None));
            return Ok(first.chain(drawn.rest).collect());
        }
        let mut inputs: SmallVec<[Input; 4]> = SmallVec::new();
        for t in x {
            let input = self.input(t)?;
            inputs.push(match input.mapped {
                true => input,
                false => Input {
                    t: input
                        .t
                        .expand_to(&crate::shape::of_many(self.size, input.t.shape()))?,
                    mapped: true,
                },
            });
        }
        let y = call::results(self, op, &inputs, x)?;
        Ok(y.into_iter().map(|t| self.one(t, None)).collect())
    }

    /// Random numbers in the place of what is there.
    pub(super) fn draw_into(&self, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        self.check_random()?;
        let [to] = y else {
            bail!(
                NotImplemented,
                "vmap: {} draws several tensors in place",
                op.name()
            );
        };
        let others = || x.iter().filter(|t| !t.same(to));
        let mapped = others().any(|t| self.has(t));
        let same = self.randomness == Randomness::Same;
        match (self.whole(to)?, same) {
            (_, true) if mapped => refuse_same(),
            (None, true) => {
                let inputs = self.inputs(x)?;
                let x: SmallVec<[&Tensor; 4]> = inputs.iter().map(|i| &i.t).collect();
                dispatch::compute_into(op, &x, &[self.input(to)?.t])
            }
            (None, false) if mapped => self.refuse_shared(op, to),
            (None, false) => bail!(
                Runtime,
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will \
                 appear like same randomness. Fill a tensor that is mapped, or draw out of place"
            ),
            (Some(whole), true) => {
                let one = Tensor::empty(to.shape(), to.dtype(), to.device())?;
                let place = |t: &&Tensor| match t.same(to) {
                    true => one.clone(),
                    false => (*t).clone(),
                };
                let x: SmallVec<[Tensor; 2]> = x.iter().map(place).collect();
                let x: SmallVec<[&Tensor; 2]> = x.iter().collect();
                dispatch::compute_into(op, &x, std::slice::from_ref(&one))?;
                whole.copy_from(&one)
            }
            (Some(whole), false) => {
                let inputs = self.inputs(x)?;
                if let Some(mut x) = call::aligned_in_place(op, &inputs)? {
                    x[0] = whole.clone();
                    let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
                    return dispatch::call_kept_into(&op.keep(), &x, &whole, true).map(drop);
                }
                for i in 0..self.size {
                    let mut x: SmallVec<[Tensor; 2]> = SmallVec::new();
                    for input in &inputs {
                        x.push(match input.mapped {
                            true => input.t.select(0, i as i64)?,
                            false => input.t.clone(),
                        });
                    }
                    let target = x[0].clone();
                    let x: SmallVec<[&Tensor; 2]> = x.iter().collect();
                    dispatch::call_kept_into(&op.keep(), &x, &target, true)?;
                }
                Ok(())
            }
        }
    }
}
