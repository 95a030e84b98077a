//! The layouts of elements that fused kernels read and write.

use super::View;
use smallvec::SmallVec;

/// Where the elements of a view lie, one for each logical index.
#[derive(Clone, PartialEq)]
pub(super) struct Place {
    pub offset: usize,
    /// Bytes of an element.
    pub size: usize,
    pub walk: Walk,
}

#[derive(Clone, PartialEq)]
pub(super) enum Walk {
    /// Every logical index is the same element.
    Still,
    /// In the order of logical indices, without gaps.
    Linear,
    /// By the strides over the group's shape.
    Strided(SmallVec<[isize; 6]>),
}

impl Place {
    pub fn of(v: &View) -> Place {
        let walk = if v.is_contiguous() {
            Walk::Linear
        } else if v
            .shape
            .iter()
            .zip(v.strides)
            .all(|(&n, &s)| n == 1 || s == 0)
        {
            Walk::Still
        } else {
            let steps = v.shape.iter().zip(v.strides);
            Walk::Strided(steps.map(|(&n, &s)| if n == 1 { 0 } else { s }).collect())
        };
        Place {
            offset: v.offset,
            size: v.dtype.size(),
            walk,
        }
    }

    pub fn is_strided(&self) -> bool {
        matches!(self.walk, Walk::Strided(_))
    }

    /// The bytes between its first element and its last one.
    fn span(&self, n: usize, shape: &[usize]) -> (isize, isize) {
        let (mut low, mut high) = (0, 0);
        match &self.walk {
            Walk::Still => {}
            Walk::Linear => high = n as isize - 1,
            Walk::Strided(steps) => {
                for (&n, &s) in shape.iter().zip(steps) {
                    let reach = (n as isize - 1) * s;
                    *(if reach < 0 { &mut low } else { &mut high }) += reach;
                }
            }
        }
        let at = |i| (self.offset as isize + i) * self.size as isize;
        (at(low), at(high + 1))
    }

    /// Whether they have no element in common, as far as that is easily told.
    pub fn is_apart(&self, other: &Place, n: usize, shape: &[usize]) -> bool {
        let ((a, b), (c, d)) = (self.span(n, shape), other.span(n, shape));
        if b <= c || d <= a {
            return true;
        }
        let (Walk::Strided(steps), true) = (&self.walk, self.walk == other.walk) else {
            return false;
        };
        let mut dims: SmallVec<[(isize, isize); 6]> = shape
            .iter()
            .zip(steps)
            .map(|(&n, s)| (s.abs(), n as isize - 1))
            .collect();
        dims.sort_by_key(|d| std::cmp::Reverse(d.0));
        let apart = self.offset as isize - other.offset as isize;
        self.size == other.size && !meet(apart, &dims)
    }

    /// Whether one invocation can write whole words of it, for a run of logical indices.
    pub fn is_writable(&self, shape: &[usize]) -> bool {
        match &self.walk {
            Walk::Linear => (self.offset * self.size).is_multiple_of(4),
            Walk::Still => false,
            Walk::Strided(steps) => {
                let moves = |(&n, &s): (&usize, &isize)| n == 1 || s != 0;
                self.size >= 4 && shape.iter().zip(steps).all(moves)
            }
        }
    }
}

/// Whether some steps along these dimensions, at most so many each way, come to `distance`.
fn meet(distance: isize, dims: &[(isize, isize)]) -> bool {
    let [(step, most), inner @ ..] = dims else {
        return distance == 0;
    };
    if *step == 0 || *most == 0 {
        return meet(distance, inner);
    }
    let reach: isize = inner.iter().map(|(step, most)| step * most).sum();
    let first = -(reach - distance).div_euclid(*step);
    let last = (distance + reach).div_euclid(*step);
    // Where strides do not nest there are many ways.
    last - first > 2
        || (first.max(-most)..=last.min(*most)).any(|k| meet(distance - k * step, inner))
}
