//! Convolutions of many slices at once: more images where they share a weight, more groups where they do
//! not.

use super::{Conv, Role};
use crate::dispatch;
use crate::error::Result;
use crate::op::{Mapped, Tensors};
use crate::ops::shape::many::{merged, parted};
use crate::shape::signed;
use crate::tensor::Tensor;
use smallvec::SmallVec;

impl Conv {
    /// The results of all slices.
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Tensors> {
        let size = x.size;
        let one = |y: Tensor| Ok(Tensors::from_buf([y]));
        if self.role == Role::Weight {
            return match (x.has(0), x.has(1), self.groups) {
                // Slices are more channels of one side.
                (true, false, 1) => one(parted(
                    &self.on(&[merged(&x.x[0], 1)?, x.x[1].clone()])?,
                    1,
                    size,
                )?),
                (false, true, 1) => one(parted(
                    &self.on(&[x.x[0].clone(), merged(&x.x[1], 1)?])?,
                    0,
                    size,
                )?),
                _ => {
                    let all = [
                        merged(&x.with_slices(0)?, 1)?,
                        merged(&x.with_slices(1)?, 1)?,
                    ];
                    one(parted(&self.grouped(size).on(&all)?, 0, size)?)
                }
            };
        }
        let bias = x.x.get(2);
        if !x.has(1) {
            // A bias of each slice is added to what all share.
            let apart = bias.is_some() && x.has(2);
            let images = merged(&x.with_slices(0)?, 0)?;
            let mut all: SmallVec<[Tensor; 3]> = SmallVec::from_iter([images, x.x[1].clone()]);
            all.extend(bias.filter(|_| !apart).cloned());
            let y = parted(&self.on(&all)?, 0, size)?;
            return match bias {
                Some(bias) if apart => {
                    let mut shape = signed(bias.shape());
                    shape.insert(1, 1);
                    shape.resize(y.ndim(), 1);
                    one(y.add(&bias.reshape(&shape)?)?)
                }
                _ => one(y),
            };
        }
        let shared = !x.has(0) && self.groups == 1 && matches!(self.role, Role::Output);
        let op = match shared {
            // More weights of the same images.
            true => self.clone(),
            false => self.grouped(size),
        };
        let images = match shared {
            true => x.x[0].clone(),
            false => merged(&x.with_slices(0)?, 1)?,
        };
        let mut all: SmallVec<[Tensor; 3]> = SmallVec::from_iter([images, merged(&x.x[1], 0)?]);
        if bias.is_some() {
            all.push(merged(&x.with_slices(2)?, 0)?);
        }
        one(parted(&op.on(&all)?, 1, size)?)
    }

    fn grouped(&self, size: usize) -> Conv {
        Conv {
            groups: self.groups * size,
            ..self.clone()
        }
    }

    fn on(&self, x: &[Tensor]) -> Result<Tensor> {
        let x: SmallVec<[&Tensor; 3]> = x.iter().collect();
        dispatch::call1(self.clone(), &x)
    }
}
