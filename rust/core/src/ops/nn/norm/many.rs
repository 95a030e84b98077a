//! Normalisations of many slices at once.

use super::fused::{Norm, NormGrad, Over};
use crate::dispatch;
use crate::error::Result;
use crate::op::{Mapped, Tensors};
use crate::ops::shape::many::{merged, parted};
use crate::shape::signed;
use crate::tensor::Tensor;
use smallvec::SmallVec;

impl Norm {
    /// The results of all slices.
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Tensors> {
        let params = 1..x.x.len();
        let own = |i: usize| x.has(i);
        match self.over {
            Over::Rows { .. } => {}
            Over::Given if !params.clone().any(own) => {}
            _ => return self.of_more_channels(x),
        }
        let all = Norm {
            n: self.n * x.size,
            ..self.clone()
        };
        let input = x.with_slices(0)?.contiguous()?;
        let mut y = match params.clone().any(own) {
            false => {
                let mut list: SmallVec<[&Tensor; 5]> = SmallVec::from_iter([&input]);
                list.extend(&x.x[1..]);
                dispatch::call(all, &list)?
            }
            true => {
                let plain = Norm {
                    weight: false,
                    bias: false,
                    ..all
                };
                let mut y = dispatch::call(plain, &[&input])?;
                let whole = signed(y[0].shape());
                let (size, n) = (x.size as i64, self.n as i64);
                let channels = (self.groups * self.d) as i64;
                let planes = [size, n, channels, self.inner as i64];
                let mut t = y[0].reshape(&planes)?;
                for i in params {
                    let p = &x.x[i];
                    let lead = if x.has(i) { size } else { 1 };
                    let p = p.reshape(&[lead, 1, channels, 1])?;
                    t = match i == 1 && self.weight {
                        true => t.mul(&p)?,
                        false => t.add(&p)?,
                    };
                }
                y[0] = t.to_dtype(input.dtype())?.reshape(&whole)?;
                y
            }
        };
        for t in &mut y[1..] {
            *t = parted(t, 0, x.size)?;
        }
        Ok(y)
    }

    /// The same of channels over all of a batch: slices are more channels.
    fn of_more_channels(&self, x: &Mapped) -> Result<Tensors> {
        let mut all: SmallVec<[Tensor; 5]> =
            SmallVec::from_iter([merged(&x.with_slices(0)?, 1)?.contiguous()?]);
        for i in 1..x.x.len() {
            all.push(merged(&x.with_slices(i)?, 0)?);
        }
        let list: SmallVec<[&Tensor; 5]> = all.iter().collect();
        let y = dispatch::call(self.of_slices_beside(x.size), &list)?;
        let split = |(i, t): (usize, Tensor)| parted(&t, (i == 0) as usize, x.size);
        y.into_iter().enumerate().map(split).collect()
    }

    pub(super) fn of_slices_beside(&self, size: usize) -> Norm {
        Norm {
            d: self.d * self.groups * size,
            groups: 1,
            ..self.clone()
        }
    }
}

impl NormGrad {
    /// The gradients of all slices.
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Tensors> {
        let norm = &self.norm;
        let rows = matches!(norm.over, Over::Rows { .. });
        if !rows {
            let mut all: SmallVec<[Tensor; 5]> = SmallVec::new();
            for i in 0..x.x.len() {
                all.push(merged(&x.with_slices(i)?, (i < 2) as usize)?.contiguous()?);
            }
            let list: SmallVec<[&Tensor; 5]> = all.iter().collect();
            let y = {
                let norm = norm.of_slices_beside(x.size);
                dispatch::call(
                    NormGrad {
                        norm,
                        ..self.clone()
                    },
                    &list,
                )?
            };
            let split = |(i, t): (usize, Tensor)| parted(&t, (i == 0) as usize, x.size);
            return y.into_iter().enumerate().map(split).collect();
        }
        let (size, n) = (x.size as i64, norm.n as i64);
        let wide = |i: usize| x.with_slices(i)?.contiguous();
        let (g, input) = (wide(0)?, wide(1)?);
        let (mean, spread) = (merged(&wide(2)?, 0)?, merged(&wide(3)?, 0)?);
        let all = Norm {
            n: norm.n * x.size,
            ..norm.clone()
        };
        // A weight of each slice is a factor of what arrives.
        let planes = [
            size * n,
            norm.groups as i64,
            norm.d as i64,
            norm.inner as i64,
        ];
        let (scaled, weight) = match x.x.get(4) {
            Some(w) if x.has(4) => {
                let w = w.reshape(&[size, 1, norm.groups as i64, norm.d as i64, 1])?;
                let shape = [size, n, planes[1], planes[2], planes[3]];
                let t = g.reshape(&shape)?.mul(&w)?.to_dtype(g.dtype())?;
                (t.reshape(&signed(g.shape()))?, None)
            }
            other => (g.clone(), other),
        };
        let of = Norm {
            weight: norm.weight && weight.is_some(),
            ..all.clone()
        };
        let mut list: SmallVec<[&Tensor; 5]> =
            SmallVec::from_iter([&scaled, &input, &mean, &spread]);
        list.extend(weight);
        let mut y = {
            let affine = false;
            dispatch::call(NormGrad { norm: of, affine }, &list)?
        };
        if self.affine {
            // Sums over the rows of each slice.
            let t = g.dtype().compute();
            let g4 = g.to_dtype(t)?.reshape(&planes)?;
            let affine = true;
            let whole = NormGrad { norm: all, affine };
            let normal = whole.normal(&[&g, &input, &mean, &spread])?;
            for what in [g4.mul(&normal)?, g4] {
                let each = what.reshape(&[size, n, (norm.groups * norm.d) as i64, planes[3]])?;
                y.push(each.sum_mask([1, 3].into(), false, Some(t))?);
            }
        }
        Ok(y)
    }
}
