//! Where elements lie in a storage: shape, strides and offset. Views are layout to layout.

use crate::error::{Error, Result};
use crate::shape::{self, numel, Dims, Show, Strides};
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Element `i` lies at `offset + sum(i[d] * strides[d])`, in elements. Strides are not negative.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub shape: Dims,
    pub strides: Strides,
    pub offset: usize,
}

impl Clone for Layout {
    // `SmallVec::clone` goes through an iterator; this copies bytes.
    fn clone(&self) -> Self {
        Layout {
            shape: Dims::from_slice(&self.shape),
            strides: Strides::from_slice(&self.strides),
            offset: self.offset,
        }
    }
}

/// Dimensions of a batch of images, (N, C, H, W), in channels-last order, the innermost first.
pub const CHANNELS_LAST: [usize; 4] = [1, 3, 2, 0];
/// The same of volumes, (N, C, D, H, W).
pub const CHANNELS_LAST_3D: [usize; 5] = [1, 4, 3, 2, 0];

/// Strides without gaps for dimensions in this order, the innermost first; a size of zero counts as one.
pub fn packed_strides(shape: &[usize], order: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(1, shape.len());
    let mut step = 1isize;
    for &d in order {
        strides[d] = step;
        step = step.saturating_mul(shape[d].max(1) as isize);
    }
    strides
}

/// Row-major strides; a size of zero counts as one.
#[inline]
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    let mut strides = match shape.len() {
        n @ 0..=5 => Strides::from_slice(&[1; 5][..n]),
        n => Strides::from_elem(1, n),
    };
    let mut step = 1isize;
    for (s, &n) in strides.iter_mut().zip(shape).rev() {
        *s = step;
        step = step.saturating_mul(n.max(1) as isize);
    }
    strides
}

impl Layout {
    /// A layout of complex numbers as one of real numbers, with a last dimension for the two parts.
    pub fn pairs(&self) -> Layout {
        let mut l = self.clone();
        // The stride of a dimension of one element may be any number; it is never applied.
        l.strides.iter_mut().for_each(|s| *s = s.saturating_mul(2));
        l.offset = l.offset.saturating_mul(2);
        l.shape.push(2);
        l.strides.push(1);
        l
    }

    #[inline]
    pub fn contiguous(shape: &[usize]) -> Self {
        Layout {
            shape: Dims::from_slice(shape),
            strides: contiguous_strides(shape),
            offset: 0,
        }
    }

    #[inline]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements. Layouts are checked when they are made, so only a part of the
    /// product of an empty one can wrap around.
    #[inline]
    pub fn numel(&self) -> usize {
        self.shape.iter().fold(1, |n: usize, &d| n.wrapping_mul(d))
    }

    /// Each element once where the others repeat it by stride 0.
    pub fn once(&self) -> Layout {
        let mut l = self.clone();
        for (n, &s) in l.shape.iter_mut().zip(&self.strides) {
            if s == 0 {
                *n = (*n).min(1);
            }
        }
        l
    }

    /// That of `size` such tensors, `step` elements apart, along a dimension in front.
    pub fn of_many(&self, size: usize, step: isize) -> Layout {
        let (mut shape, mut strides) = (self.shape.clone(), self.strides.clone());
        shape.insert(0, size);
        strides.insert(0, step);
        let offset = self.offset;
        Layout {
            shape,
            strides,
            offset,
        }
    }

    /// That of the first slice along the dimension in front.
    pub fn of_one(&self) -> Layout {
        Layout {
            shape: Dims::from_slice(&self.shape[1..]),
            strides: Strides::from_slice(&self.strides[1..]),
            offset: self.offset,
        }
    }

    /// Whether elements lie in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (&n, &s) in self.shape.iter().zip(&*self.strides).rev() {
            if n == 0 {
                return true;
            }
            if n != 1 {
                if s != step {
                    return self.shape.contains(&0);
                }
                step = step.wrapping_mul(n as isize);
            }
        }
        true
    }

    /// Whether the strides are those of a new row-major tensor, also where a dimension has one element and
    /// its stride is never applied.
    #[inline]
    pub fn is_plain(&self) -> bool {
        let mut step = 1isize;
        for (&n, &s) in self.shape.iter().zip(&*self.strides).rev() {
            if s != step {
                return false;
            }
            step = step.wrapping_mul(n.max(1) as isize);
        }
        true
    }

    /// Whether elements lie without gaps with dimensions in this order, the innermost first.
    pub fn is_packed(&self, order: &[usize]) -> bool {
        let mut step = 1isize;
        self.ndim() == order.len()
            && order.iter().all(|&d| {
                let (n, stride) = (self.shape[d], self.strides[d]);
                let fits = n == 1 || stride == step;
                step = step.wrapping_mul(n as isize);
                fits
            })
    }

    /// Whether the strides of images or volumes, taken by themselves, say that channels lie innermost,
    /// as PyTorch reads them for the order of a result: from channels outwards to the batch none is less
    /// than what lies inside of it takes. Elements may have gaps, and a layout that could be either is not.
    pub fn suggests_channels_last(&self) -> bool {
        let order: &[usize] = match self.ndim() {
            4 => &CHANNELS_LAST,
            5 => &CHANNELS_LAST_3D,
            _ => return false,
        };
        let channels = self.strides[1];
        let mut least = 0;
        for &d in order {
            let (n, stride) = (self.shape[d], self.strides[d]);
            let either = d == 0 && least == channels;
            if n == 0 || stride < least || either {
                return false;
            }
            least = stride.saturating_mul(n as isize);
        }
        channels != 0
    }

    /// The first element used and one past the last, counted from the start of the storage.
    pub fn reach(&self) -> (usize, usize) {
        reach(self.offset, &self.shape, &self.strides)
    }

    /// One past the last element used, counted from the start of the storage; 0 when empty.
    pub fn extent(&self) -> Result<usize> {
        if self.shape.contains(&0) {
            return Ok(0);
        }
        let mut last = self.offset as i128;
        for (&n, &s) in self.shape.iter().zip(&self.strides) {
            last += (n as i128 - 1) * s as i128;
        }
        usize::try_from(last + 1)
            .ok()
            .filter(|&e| e <= i64::MAX as usize)
            .ok_or_else(|| {
                Error::runtime(format!(
                    "Storage size calculation overflowed with sizes={} and strides={}",
                    Show(&self.shape),
                    Show(&self.strides)
                ))
            })
    }

    /// Whether the elements fill a block of memory exactly once, in whatever order.
    pub fn is_dense(&self) -> bool {
        let mut order: SmallVec<[usize; 5]> =
            (0..self.ndim()).filter(|&d| self.shape[d] != 1).collect();
        order.sort_by_key(|&d| self.strides[d]);
        let mut step = 1isize;
        for d in order {
            if self.strides[d] != step {
                return self.shape.contains(&0);
            }
            step *= self.shape[d] as isize;
        }
        true
    }

    /// Whether two indices can mean the same element: an upper bound, as PyTorch's check.
    pub fn overlaps_itself(&self) -> bool {
        if self.shape.contains(&0) {
            return false;
        }
        let mut dims: SmallVec<[(isize, usize); 5]> = (0..self.ndim())
            .filter(|&d| self.shape[d] > 1)
            .map(|d| (self.strides[d], self.shape[d]))
            .collect();
        dims.sort_unstable();
        let mut reach = 0isize;
        for (stride, n) in dims {
            if stride <= reach {
                return true;
            }
            reach += stride * (n as isize - 1);
        }
        false
    }

    /// Whether an expanded (stride 0) dimension makes several indices share an element.
    pub fn is_expanded(&self) -> bool {
        self.numel() > 0
            && self
                .shape
                .iter()
                .zip(&self.strides)
                .any(|(&n, &s)| n > 1 && s == 0)
    }

    pub fn permute(&self, dims: &[i64]) -> Result<Layout> {
        ensure!(
            dims.len() == self.ndim(),
            Runtime,
            "permute(sparse_coo): number of dimensions in the tensor input does not match the \
             length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to \
             len(dims) = {}",
            self.ndim(),
            dims.len()
        );
        let mut seen = SmallVec::<[bool; 5]>::from_elem(false, self.ndim());
        let mut out = self.clone();
        for (i, &d) in dims.iter().enumerate() {
            let d = shape::dim(d, self.ndim())?;
            ensure!(
                !seen[d],
                Runtime,
                "permute(): duplicate dims are not allowed."
            );
            seen[d] = true;
            out.shape[i] = self.shape[d];
            out.strides[i] = self.strides[d];
        }
        Ok(out)
    }

    pub fn transpose(&self, a: i64, b: i64) -> Result<Layout> {
        let (a, b) = (shape::dim(a, self.ndim())?, shape::dim(b, self.ndim())?);
        let mut out = self.clone();
        if self.ndim() > 0 {
            out.shape.swap(a, b);
            out.strides.swap(a, b);
        }
        Ok(out)
    }

    pub fn expand(&self, size: &[i64]) -> Result<Layout> {
        let (n, k) = (size.len(), self.ndim());
        ensure!(
            n >= k,
            Runtime,
            "expand(tensor{{{}}}, size={}): the number of sizes provided ({n}) must be greater \
             or equal to the number of dimensions in the tensor ({k})",
            Show(&self.shape),
            Show(size)
        );
        let mut out = Layout {
            shape: Dims::from_elem(0, n),
            strides: Strides::from_elem(0, n),
            offset: self.offset,
        };
        for i in (0..n).rev() {
            let want = size[i];
            if i + k < n {
                ensure!(
                    want >= 0,
                    Runtime,
                    "The expanded size of the tensor ({want}) isn't allowed in a leading, \
                     non-existing dimension {i}"
                );
                out.shape[i] = want as usize;
                if want == 1 && k > 0 {
                    // As `unsqueeze` has it.
                    out.strides[i] = out.shape[i + 1] as isize * out.strides[i + 1];
                }
                continue;
            }
            let (have, stride) = (self.shape[i + k - n], self.strides[i + k - n]);
            if want == -1 || want == have as i64 {
                out.shape[i] = have;
                out.strides[i] = stride;
            } else {
                ensure!(
                    have == 1 && want >= 0,
                    Runtime,
                    "The expanded size of the tensor ({want}) must match the existing size \
                     ({have}) at non-singleton dimension {i}.  Target sizes: {}.  Tensor sizes: {}",
                    Show(size),
                    Show(&self.shape)
                );
                out.shape[i] = want as usize;
            }
        }
        numel(&out.shape)?;
        Ok(out)
    }

    /// Whether both name the same elements in the same order.
    pub fn same_places(&self, other: &Layout) -> bool {
        let strides = self.strides.iter().zip(&other.strides);
        self.offset == other.offset
            && self.shape == other.shape
            && std::iter::zip(&self.shape, strides).all(|(&n, (a, b))| n == 1 || a == b)
    }

    /// Broadcast to a shape already known to fit.
    pub fn expand_to(&self, shape: &[usize]) -> Layout {
        let k = shape.len() - self.ndim();
        let mut strides = Strides::from_elem(0, shape.len());
        for d in 0..self.ndim() {
            if self.shape[d] == shape[k + d] {
                strides[k + d] = self.strides[d];
            }
        }
        Layout {
            shape: Dims::from_slice(shape),
            strides,
            offset: self.offset,
        }
    }

    pub fn select(&self, d: i64, index: i64) -> Result<Layout> {
        ensure!(
            self.ndim() > 0,
            Index,
            "select() cannot be applied to a 0-dim tensor."
        );
        let d = shape::dim(d, self.ndim())?;
        let n = self.shape[d] as i64;
        ensure!(
            -n <= index && index < n,
            Index,
            "select(): index {index} out of range for tensor of size {} at dimension {d}",
            Show(&self.shape)
        );
        let i = if index < 0 { index + n } else { index };
        let mut out = self.clone();
        out.offset += i as usize * self.strides[d] as usize;
        out.shape.remove(d);
        out.strides.remove(d);
        Ok(out)
    }

    /// Python's slice: bounds are clamped, negative ones count from the end.
    pub fn slice(&self, d: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Layout> {
        ensure!(
            self.ndim() > 0,
            Index,
            "slice() cannot be applied to a 0-dim tensor."
        );
        ensure!(step > 0, Runtime, "slice step must be positive, got {step}");
        let d = shape::dim(d, self.ndim())?;
        let n = self.shape[d] as i64;
        let clamp = |v: i64| (if v < 0 { v.saturating_add(n) } else { v }).clamp(0, n);
        let start = clamp(start.unwrap_or(0));
        let end = clamp(end.unwrap_or(n)).max(start);
        let mut out = self.clone();
        out.shape[d] = (end - start) as usize / step as usize
            + !((end - start) as u64).is_multiple_of(step as u64) as usize;
        out.offset += start as usize * self.strides[d] as usize;
        if out.shape[d] > 1 {
            out.strides[d] = self.strides[d] * step as isize;
        } else {
            out.strides[d] = self.strides[d].saturating_mul(step as isize);
        }
        Ok(out)
    }

    pub fn narrow(&self, d: i64, start: i64, length: i64) -> Result<Layout> {
        ensure!(
            self.ndim() > 0,
            Runtime,
            "narrow() cannot be applied to a 0-dim tensor."
        );
        ensure!(
            length >= 0,
            Runtime,
            "narrow(): length must be non-negative."
        );
        let dim = shape::dim(d, self.ndim())?;
        let n = self.shape[dim] as i64;
        ensure!(
            -n <= start && start <= n,
            Index,
            "start out of range (expected to be in range of [{}, {n}], but got {start})",
            -n
        );
        let start = if start < 0 { start + n } else { start };
        ensure!(
            start.checked_add(length).is_some_and(|e| e <= n),
            Runtime,
            "start ({start}) + length ({length}) exceeds dimension size ({n})."
        );
        self.slice(d, Some(start), Some(start + length), 1)
    }

    pub fn unsqueeze(&self, d: i64) -> Result<Layout> {
        let d = shape::dim(d, self.ndim() + 1)?;
        let mut out = self.clone();
        let stride = match d < self.ndim() {
            true => self.shape[d] as isize * self.strides[d],
            false => 1,
        };
        out.shape.insert(d, 1);
        out.strides.insert(d, stride);
        Ok(out)
    }

    /// Drops the named dimensions that have size 1, or every one of size 1.
    pub fn squeeze(&self, ds: Option<&[i64]>) -> Result<Layout> {
        let ds = ds.map(|ds| shape::dims(ds, self.ndim())).transpose()?;
        let drops = |d| ds.as_ref().is_none_or(|ds| ds.contains(&d));
        let mut out = Layout {
            shape: Dims::new(),
            strides: Strides::new(),
            offset: self.offset,
        };
        for d in 0..self.ndim() {
            if !(self.shape[d] == 1 && drops(d)) {
                out.shape.push(self.shape[d]);
                out.strides.push(self.strides[d]);
            }
        }
        Ok(out)
    }

    /// Every window of `size` along `d`, `step` apart, as a new last dimension.
    pub fn unfold(&self, d: i64, size: i64, step: i64) -> Result<Layout> {
        let dim = shape::dim(d, self.ndim())?;
        let n = if self.ndim() == 0 {
            1
        } else {
            self.shape[dim] as i64
        };
        ensure!(size >= 0, Runtime, "size is {size} but must be >= 0");
        ensure!(
            size <= n,
            Runtime,
            "maximum size for tensor at dimension {dim} is {n} but size is {size}"
        );
        ensure!(step > 0, Runtime, "step is {step} but must be > 0");
        let mut out = self.clone();
        if self.ndim() == 0 {
            out.shape.push(size as usize);
            out.strides.push(1);
            return Ok(out);
        }
        out.shape[dim] = ((n - size) / step + 1) as usize;
        out.strides[dim] = self.strides[dim].saturating_mul(step as isize);
        out.shape.push(size as usize);
        out.strides.push(self.strides[dim]);
        Ok(out)
    }

    pub fn diagonal(&self, offset: i64, d1: i64, d2: i64) -> Result<Layout> {
        let (a, b) = (shape::dim(d1, self.ndim())?, shape::dim(d2, self.ndim())?);
        ensure!(
            a != b && self.ndim() >= 2,
            Runtime,
            "diagonal dimensions cannot be identical {d1}, {d2}"
        );
        let (rows, cols) = (self.shape[a] as i64, self.shape[b] as i64);
        let n = if offset >= 0 {
            rows.min(cols.saturating_sub(offset))
        } else {
            rows.saturating_add(offset).min(cols)
        }
        .max(0);
        let mut out = self.clone();
        if n > 0 {
            out.offset += if offset >= 0 {
                offset as usize * self.strides[b] as usize
            } else {
                offset.unsigned_abs() as usize * self.strides[a] as usize
            };
        }
        for d in [a.max(b), a.min(b)] {
            out.shape.remove(d);
            out.strides.remove(d);
        }
        out.shape.push(n as usize);
        out.strides
            .push(self.strides[a].saturating_add(self.strides[b]));
        Ok(out)
    }

    /// The layout that shows the same elements in row-major order under another shape, or `None`
    /// where that needs a copy.
    pub fn reshape(&self, shape: &[usize]) -> Option<Layout> {
        let (new, offset) = (Dims::from_slice(shape), self.offset);
        if self.numel() == 0 {
            let strides = if shape == &self.shape[..] {
                self.strides.clone()
            } else {
                contiguous_strides(shape)
            };
            return Some(Layout {
                shape: new,
                strides,
                offset,
            });
        }
        let mut strides = Strides::from_elem(1, shape.len());
        if self.ndim() == 0 {
            return Some(Layout {
                shape: new,
                strides,
                offset,
            });
        }
        // Walk both shapes from the right, matching runs of old dimensions that are contiguous
        // with each other against products of new ones.
        let mut view = shape.len() as isize - 1;
        let mut base = self.strides[self.ndim() - 1];
        let (mut old_count, mut new_count) = (1usize, 1usize);
        for d in (0..self.ndim()).rev() {
            old_count *= self.shape[d];
            let ends = d == 0
                || (self.shape[d - 1] != 1 && self.strides[d - 1] != old_count as isize * base);
            if ends {
                while view >= 0 && (new_count < old_count || shape[view as usize] == 1) {
                    strides[view as usize] = new_count as isize * base;
                    new_count *= shape[view as usize];
                    view -= 1;
                }
                if new_count != old_count {
                    return None;
                }
                if d > 0 {
                    base = self.strides[d - 1];
                    old_count = 1;
                    new_count = 1;
                }
            }
        }
        (view == -1).then_some(Layout {
            shape: new,
            strides,
            offset,
        })
    }

    /// `view`: as [`Layout::reshape`], with PyTorch's error where a copy would be needed.
    pub fn view(&self, size: &[i64]) -> Result<Layout> {
        let shape = shape::infer(size, self.numel())?;
        match self.reshape(&shape) {
            Some(l) => Ok(l),
            None => bail!(
                Runtime,
                "view size is not compatible with input tensor's size and stride (at least one \
                 dimension spans across two contiguous subspaces). Use .reshape(...) instead. \
                 Got sizes {} and strides {} for size {}",
                Show(&self.shape),
                Show(&self.strides),
                Show(size)
            ),
        }
    }

    /// An arbitrary layout over a storage of `capacity` elements.
    pub fn as_strided(
        size: &[i64],
        stride: &[i64],
        offset: i64,
        capacity: usize,
        item: usize,
    ) -> Result<Layout> {
        ensure!(
            size.len() == stride.len(),
            Runtime,
            "mismatch in length of strides and shape: got {} sizes and {} strides",
            size.len(),
            stride.len()
        );
        ensure!(
            stride.iter().all(|&s| s >= 0),
            Runtime,
            "as_strided: Negative strides are not supported at the moment, got strides: {}",
            Show(stride)
        );
        ensure!(
            offset >= 0,
            Runtime,
            "Tensor: invalid storage offset {offset}: it must be non-negative"
        );
        let shape = shape::sizes(size)?;
        let layout = Layout {
            shape,
            strides: stride.iter().map(|&s| s as isize).collect(),
            offset: offset as usize,
        };
        let extent = layout.extent()?;
        ensure!(
            extent <= capacity,
            Runtime,
            "setStorage: sizes {}, strides {}, storage offset {offset}, and itemsize {item} \
             requiring a storage size of {} are out of bounds for storage of size {}",
            Show(size),
            Show(stride),
            extent.saturating_mul(item),
            capacity * item
        );
        Ok(layout)
    }
}
/// The first element and one past the last of a strided tensor with elements.
pub fn reach(offset: usize, shape: &[usize], strides: &[isize]) -> (usize, usize) {
    let (mut low, mut high) = (offset as isize, offset as isize);
    for (&n, &stride) in shape.iter().zip(strides) {
        let reach = (n.max(1) - 1) as isize * stride;
        *(if reach < 0 { &mut low } else { &mut high }) += reach;
    }
    (low as usize, high as usize + 1)
}
