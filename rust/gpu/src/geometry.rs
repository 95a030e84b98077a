//! Strided shapes brought into the fewest dimensions.

use crate::shape::{self, Walk};
use smallvec::SmallVec;

/// Invocations of a workgroup, of kernels with one for each element.
pub const WORKGROUP: usize = 256;

/// Dimensions, innermost first, over which several tensors run together.
#[derive(Clone, Debug, PartialEq)]
pub struct Dims<const N: usize> {
    pub sizes: SmallVec<[usize; 8]>,
    pub strides: [SmallVec<[isize; 8]>; N],
}

impl<const N: usize> Dims<N> {
    /// The sizes as a parameter block holds them: at most eight.
    pub fn words(&self) -> [u32; 8] {
        std::array::from_fn(|d| self.sizes.get(d).map_or(0, |&n| n as u32))
    }

    /// The strides of tensor `t` as a parameter block holds them.
    pub fn stride_words(&self, t: usize) -> [u32; 8] {
        std::array::from_fn(|d| self.strides[t].get(d).map_or(0, |&s| s as u32))
    }

    /// The strides as the `strided` part of the preludes takes them: a vector for each dimension.
    pub fn stride_vectors(&self) -> [[u32; 4]; 8] {
        let stride = |d: usize, t: usize| self.strides.get(t)?.get(d).map(|&s| s as u32);
        std::array::from_fn(|d| std::array::from_fn(|t| stride(d, t).unwrap_or(0)))
    }
}

/// [`shape::coalesce`] of the dimensions that `keep` picks.
pub fn coalesce<const N: usize>(
    shape: &[usize],
    strides: [&[isize]; N],
    keep: impl Fn(usize) -> bool,
) -> Dims<N> {
    let walk = |d: usize| Walk {
        n: shape[d],
        step: strides.map(|s| s[d]),
    };
    let mut walks = shape::coalesce((0..shape.len()).filter(|&d| keep(d)).map(walk));
    walks.reverse();
    Dims {
        sizes: walks.iter().map(|w| w.n).collect(),
        strides: std::array::from_fn(|t| walks.iter().map(|w| w.step[t]).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coalesce_contiguous_is_one_dimension() {
        let d = coalesce(&[2, 3, 4], [&[12, 4, 1], &[0, 0, 0]], |_| true);
        assert_eq!(d.sizes.as_slice(), [24]);
        assert_eq!(d.strides[0].as_slice(), [1]);
        assert_eq!(d.strides[1].as_slice(), [0]);
    }

    #[test]
    fn coalesce_broadcast_row_keeps_two_dimensions() {
        let d = coalesce(&[2, 1, 4], [&[4, 4, 1], &[0, 7, 1]], |_| true);
        assert_eq!(d.sizes.as_slice(), [4, 2]);
        assert_eq!(d.strides[1].as_slice(), [1, 0]);
    }
}
