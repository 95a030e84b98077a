//! Products of many slices at once.

use super::{MatMul, ONE};
use crate::dispatch;
use crate::error::Result;
use crate::op::{Mapped, Tensors};
use crate::shape::{of_many, signed, DimSet};
use crate::tensor::Tensor;
use smallvec::SmallVec;

impl MatMul {
    /// The products of all slices.
    pub(super) fn of_slices(&self, x: &Mapped) -> Result<Tensors> {
        let first = self.plus as usize;
        let (na, nb) = (x.ndim(first), x.ndim(first + 1));
        let (a, b) = (&x.x[first], &x.x[first + 1]);
        if self.sum {
            return self.sums_of_slices(x);
        }
        if self.plus && !x.has(first) && !x.has(first + 1) {
            // Only what is added has slices.
            let plus = false;
            let own = MatMul {
                plus,
                ..self.clone()
            };
            let y = dispatch::call1(own, &[a, b])?;
            return self.added_to(x, y);
        }
        let plain = !self.plus || !x.has(0) && x.ndim(0) < 2 && na > 1;
        let call = |op: MatMul, a: &Tensor, b: &Tensor| {
            let mut all: SmallVec<[&Tensor; 3]> = SmallVec::new();
            if op.plus {
                all.push(&x.x[0]);
            }
            all.extend([a, b]);
            dispatch::call(op, &all)
        };
        // Slices of one factor alone are rows, or a batch, of one product.
        match (x.has(first), x.has(first + 1)) {
            (true, false) if plain && nb <= 2 && na > 1 => return call(self.clone(), a, b),
            (true, false) if !self.plus && na == 1 && nb <= 2 => {
                let ta = false;
                return call(MatMul { ta, ..self.clone() }, a, b);
            }
            (false, true) if !self.plus && nb == 1 && na <= 2 => {
                // A b is the row b A'.
                let op = MatMul {
                    ta: false,
                    tb: !self.ta,
                    columns: [false; 2],
                    ..self.clone()
                };
                return call(op, b, a);
            }
            (false, true) if plain && nb > 1 && na == 2 => return call(self.clone(), a, b),
            _ => {}
        }
        // Vectors become matrices, and batches broadcast behind the slices.
        let rank = na.max(nb).max(2);
        let a = self.factor(x, first, rank, true)?;
        let b = self.factor(x, first + 1, rank, false)?;
        let op = MatMul {
            ta: self.ta && na > 1,
            tb: self.tb && nb > 1,
            columns: [false; 2],
            ..self.clone()
        };
        let mut all: SmallVec<[Tensor; 3]> = SmallVec::new();
        if self.plus {
            let one = rank - (na == 1) as usize - (nb == 1) as usize;
            let c = x.aligned(0, one)?;
            let behind = c.ndim() - x.has(0) as usize;
            let mut shape = signed(c.shape());
            let lead = shape.len() - behind;
            // A row or a column that the result lacks.
            if na == 1 {
                let at = shape.len() - ((nb > 1) as usize).min(behind);
                shape.insert(at.max(lead), 1);
            }
            if nb == 1 {
                shape.push(1);
            }
            all.push(c.reshape(&shape)?);
        }
        all.extend([a, b]);
        let all: SmallVec<[&Tensor; 3]> = all.iter().collect();
        let y = dispatch::call1(op, &all)?;
        let mut shape = signed(y.shape());
        if nb == 1 {
            shape.pop();
        }
        if na == 1 {
            shape.remove(shape.len() - 1 - (nb > 1) as usize);
        }
        Ok(Tensors::from_buf([y.reshape(&shape)?]))
    }

    /// A factor as matrices with `rank` dimensions, behind its slices if it has them.
    fn factor(&self, x: &Mapped, i: usize, rank: usize, left: bool) -> Result<Tensor> {
        let t = &x.x[i];
        let t = match x.ndim(i) {
            1 if left => t.unsqueeze(-2)?,
            1 => t.unsqueeze(-1)?,
            _ => t.clone(),
        };
        if !x.has(i) || t.ndim() > rank {
            return Ok(t);
        }
        let mut shape = signed(t.shape());
        for _ in t.ndim()..=rank {
            shape.insert(1, 1);
        }
        t.reshape(&shape)
    }

    /// The same where products are summed over their batch.
    fn sums_of_slices(&self, x: &Mapped) -> Result<Tensors> {
        let first = self.plus as usize;
        let own = Mapped {
            x: &x.x[first..],
            mapped: x.mapped >> first,
            size: x.size,
        };
        let rank = own.ndim(0).max(own.ndim(1));
        let product = MatMul {
            sum: false,
            plus: false,
            columns: [false; 2],
            ..self.clone()
        };
        let alike = own.ndim(0) == rank
            && own.ndim(1) == rank
            && own.x[0].shape()[own.has(0) as usize..][..rank - 2]
                == own.x[1].shape()[own.has(1) as usize..][..rank - 2];
        let y = if alike && rank > 2 && self.ta && !self.tb {
            // A' B summed over a batch: rows of all of it under each other.
            let rows = |i: usize| -> Result<Tensor> {
                let t = &own.x[i];
                let lead = own.has(i) as usize;
                let mut shape = signed(&t.shape()[..lead]);
                shape.extend([-1, t.size(t.ndim() - 1) as i64]);
                t.reshape(&shape)
            };
            dispatch::call1(product, &[&rows(0)?, &rows(1)?])?
        } else {
            let each = product.of_slices(&own)?.swap_remove(0);
            let lead = (own.mapped != 0) as usize;
            let over = DimSet::of(each.ndim(), |d| d >= lead && d + 2 < each.ndim())?;
            match over.is_empty() {
                true => each,
                false => each.sum_mask(over, false, Some(each.dtype()))?,
            }
        };
        match self.plus {
            true => self.added_to(x, y),
            false => Ok(Tensors::from_buf([y])),
        }
    }

    /// What is added, with its factor, and a product.
    fn added_to(&self, x: &Mapped, y: Tensor) -> Result<Tensors> {
        let mapped = (1..x.x.len()).any(|i| x.has(i));
        if self.beta.f64() == 0.0 {
            let many = of_many(x.size, y.shape());
            let y = if mapped { y } else { y.expand_to(&many)? };
            return Ok(Tensors::from_buf([y]));
        }
        let c = x.aligned(0, y.ndim() - mapped as usize)?;
        let c = match self.beta == ONE {
            true => c,
            false => c.mul_scalar(self.beta)?,
        };
        Ok(Tensors::from_buf([y.add(&c)?]))
    }
}
