//! What the rule of a tangent sees.

use crate::dispatch;
use crate::error::Result;
use crate::op::{Op, Tensors};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::OnceCell;

/// One tangent for each output; `None` is a zero that nobody had to write down.
pub type Tangents = SmallVec<[Option<Tensor>; 1]>;

/// Results of ops, with their tangents.
pub type Followed = (Tensors, Tangents);

/// What stands for a tensor that is computed later, of tangents that are yet to come: which program does so,
/// and where it keeps the tensor.
pub struct Promised {
    pub level: u64,
    pub slot: usize,
}

impl Promised {
    /// Whether it is such a tensor. Ops on it may be recorded later, and what is computed without it is
    /// computed once.
    pub fn is(t: &Tensor) -> bool {
        t.held::<Promised>().is_some()
    }
}

/// Follows what a function computes of the inputs.
pub type Follow<'a> = dyn Fn(&dyn Fn(&[&Tensor]) -> Result<Tensors>) -> Result<Followed> + 'a;

/// What the rule of a tangent sees: the op, its inputs, their tangents, and what it computes.
pub struct Jvp<'a> {
    op: &'a dyn Op,
    x: &'a [&'a Tensor],
    t: &'a [Option<Tensor>],
    y: OnceCell<Tensors>,
    follow: &'a Follow<'a>,
}

impl<'a> Jvp<'a> {
    pub fn new(
        op: &'a dyn Op,
        x: &'a [&'a Tensor],
        t: &'a [Option<Tensor>],
        follow: &'a Follow<'a>,
    ) -> Jvp<'a> {
        let y = OnceCell::new();
        Jvp {
            op,
            x,
            t,
            y,
            follow,
        }
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.x.len()
    }

    pub fn input(&self, i: usize) -> &'a Tensor {
        self.x[i]
    }

    /// The tangent of input `i`, if it is more than zeros.
    pub fn tangent(&self, i: usize) -> Option<&'a Tensor> {
        self.t.get(i).and_then(Option::as_ref)
    }

    /// The tangent of input `i`, zeros where it has none.
    pub fn tangent_or_zeros(&self, i: usize) -> Result<Tensor> {
        match self.tangent(i) {
            Some(t) => Ok(t.clone()),
            None => {
                let x = self.x[i];
                Tensor::zeros(x.shape(), x.dtype(), x.device())
            }
        }
    }

    /// The outputs, which are computed where they are first asked for.
    pub fn outputs(&self) -> Result<&Tensors> {
        if self.y.get().is_none() {
            let y = dispatch::call_kept(self.op.keep(), self.x)?;
            let _ = self.y.set(y);
        }
        Ok(self.y.get().expect("they were just put there"))
    }

    pub fn output(&self, i: usize) -> Result<&Tensor> {
        Ok(&self.outputs()?[i])
    }

    /// The outputs, and that no rule was asked for them.
    pub fn computed(self) -> Option<Tensors> {
        self.y.into_inner()
    }

    /// The rule of an op that is linear in these inputs together: the op of their tangents, and of the other
    /// inputs as they are. `None` where one of the others has a tangent.
    pub fn linear(&self, which: &[usize]) -> Result<Option<Tangents>> {
        if (0..self.t.len()).any(|i| self.t[i].is_some() && !which.contains(&i)) {
            return Ok(None);
        }
        let mut x: SmallVec<[Tensor; 4]> = self.x.iter().map(|t| (*t).clone()).collect();
        for &i in which.iter().filter(|&&i| i < self.x.len()) {
            x[i] = self.tangent_or_zeros(i)?;
        }
        self.again(self.op, &x)
    }

    /// The rule of an op that is linear in each of these inputs by itself: the sum, over them, of the op with
    /// one in the place of its tangent. `None` where another input has a tangent.
    pub fn product(&self, op: &dyn Op, which: &[usize]) -> Result<Option<Tensor>> {
        if (0..self.t.len()).any(|i| self.t[i].is_some() && !which.contains(&i)) {
            return Ok(None);
        }
        let mut sum: Option<Tensor> = None;
        for &i in which {
            let Some(t) = self.tangent(i) else { continue };
            let mut x: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(self.x);
            x[i] = t;
            let part = dispatch::call_kept(op.keep(), &x)?.swap_remove(0);
            sum = Some(plus(sum, part)?);
        }
        Ok(sum)
    }

    /// What an op gives of tangents.
    fn again(&self, op: &dyn Op, x: &[Tensor]) -> Result<Option<Tangents>> {
        let x: SmallVec<[&Tensor; 4]> = x.iter().collect();
        let y = dispatch::call_kept(op.keep(), &x)?;
        Ok(Some(y.into_iter().map(Some).collect()))
    }

    /// The rule of an op that other ops compute as well, which have rules: `f` computes it of its inputs.
    pub fn by_ops(&self, f: &dyn Fn(&[&Tensor]) -> Result<Tensors>) -> Result<Option<Tangents>> {
        let (y, t) = (self.follow)(f)?;
        let _ = self.y.set(y);
        Ok(Some(t))
    }
}

/// A sum whose first part may be missing.
pub fn plus(sum: Option<Tensor>, part: Tensor) -> Result<Tensor> {
    match sum {
        Some(sum) => sum.add(&part),
        None => Ok(part),
    }
}

/// The tangent of one output.
pub fn along(t: Tensor) -> Result<Option<Tangents>> {
    Ok(Some(SmallVec::from_elem(Some(t), 1)))
}
