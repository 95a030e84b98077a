//! How the work of an op is cut in two.

use crate::meta::Meta;
use smallvec::SmallVec;

/// How a tensor takes part where the work of an op is cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Both halves see all of it; as a result, both write the same.
    Whole,
    /// Each half has its half of this dimension, whose length may be a multiple of that of others.
    Along(usize),
    /// A result that is the sum of what the halves give.
    Sum,
}

/// A way to cut the work of an op in two: how each input and each result takes part.
#[derive(Clone, Debug)]
pub struct Cut {
    pub x: SmallVec<[Part; 4]>,
    pub y: SmallVec<[Part; 4]>,
}

impl Cut {
    pub fn new(x: impl IntoIterator<Item = Part>, y: impl IntoIterator<Item = Part>) -> Cut {
        Cut {
            x: x.into_iter().collect(),
            y: y.into_iter().collect(),
        }
    }

    /// Of `x` inputs and `y` results that have these dimensions in common.
    pub fn along(dims: impl IntoIterator<Item = usize>, x: usize, y: usize) -> Vec<Cut> {
        let all = |n, d| std::iter::repeat_n(Part::Along(d), n);
        let dims = dims.into_iter();
        dims.map(|d| Cut::new(all(x, d), all(y, d))).collect()
    }

    /// Of lines along `dim`, which each give a line, or one number without it, to each of `y` results.
    pub fn of_lines(x: &[&Meta], dim: usize, y: &[&Meta]) -> Vec<Cut> {
        let n = x[0].ndim();
        let place = |t: &Meta, d: usize| d - (t.ndim() < n && d > dim) as usize;
        let dims = (0..n).filter(|&d| d != dim);
        let part = |t: &&Meta, d: usize| Part::Along(place(t, d));
        dims.map(|d| Cut::new(x.iter().map(|t| part(t, d)), y.iter().map(|t| part(t, d))))
            .collect()
    }
}
