//! Shapes: counting, broadcasting, dimension arguments.

use crate::error::{Error, Kind, Result};
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Sizes of each dimension.
pub type Dims = SmallVec<[usize; 5]>;
/// Distance in elements between neighbours along each dimension.
pub type Strides = SmallVec<[isize; 5]>;

/// The number of elements, or an error where it does not fit a signed 64-bit integer.
#[inline]
pub fn numel(shape: &[usize]) -> Result<usize> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let mut n = 1usize;
    for &d in shape {
        n = n
            .checked_mul(d)
            .filter(|&n| n <= i64::MAX as usize)
            .ok_or_else(|| {
                Error::runtime(format!(
                "Storage size calculation overflowed with sizes={} (numel does not fit 64 bits)",
                Show(shape)
            ))
            })?;
    }
    Ok(n)
}

/// A shape seen from one dimension: how many elements lie outside it, its length, and how many lie
/// inside.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub outer: usize,
    pub length: usize,
    pub inner: usize,
}

impl Span {
    /// A 0-d tensor has one dimension of one element.
    pub fn of(shape: &[usize], dim: usize) -> Span {
        Span {
            outer: shape[..dim].iter().product(),
            length: shape.get(dim).copied().unwrap_or(1),
            inner: shape.get(dim + 1..).unwrap_or(&[]).iter().product(),
        }
    }

    /// How many lines run along the dimension.
    pub fn lines(self) -> usize {
        self.outer * self.inner
    }
}

/// A dimension that operands walk together: its size, and the step of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk<const N: usize> {
    pub n: usize,
    pub step: [isize; N],
}

/// Dimensions, outermost first, brought into the fewest: those of one element go, and neighbours
/// that every operand walks in one step become one.
pub fn coalesce<const N: usize>(dims: impl IntoIterator<Item = Walk<N>>) -> SmallVec<[Walk<N>; 5]> {
    let mut out: SmallVec<[Walk<N>; 5]> = SmallVec::new();
    for mut d in dims {
        if d.n == 1 {
            continue;
        }
        let whole = d.step.map(|s| s.wrapping_mul(d.n as isize));
        match out.last_mut() {
            Some(outer) if outer.step == whole => {
                d.n = d.n.wrapping_mul(outer.n);
                *outer = d;
            }
            _ => out.push(d),
        }
    }
    out
}

/// Prints as PyTorch prints sizes: `[2, 3]`.
pub struct Show<'a, T>(pub &'a [T]);

impl<T: std::fmt::Display> std::fmt::Display for Show<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        for (i, x) in self.0.iter().enumerate() {
            write!(f, "{}{x}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

/// A dimension argument as an index; negative counts from the end. A 0-d tensor accepts 0 and -1.
pub fn dim(d: i64, ndim: usize) -> Result<usize> {
    let n = ndim.max(1) as i64;
    if d < -n || d >= n {
        return Err(Error::index(format!(
            "Dimension out of range (expected to be in range of [{}, {}], but got {d})",
            -n,
            n - 1
        )));
    }
    Ok(if d < 0 { d + n } else { d } as usize)
}

/// Several dimension arguments; a repeated one raises. An empty list stays empty.
pub fn dims(ds: &[i64], ndim: usize) -> Result<SmallVec<[usize; 5]>> {
    let mut out = SmallVec::new();
    for &d in ds {
        let d = dim(d, ndim)?;
        ensure!(
            !out.contains(&d),
            Runtime,
            "dim {d} appears multiple times in the list of dims"
        );
        out.push(d);
    }
    Ok(out)
}

/// A set of dimensions; of more than 64, all or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DimSet(u64);

impl DimSet {
    pub const NONE: DimSet = DimSet(0);

    pub fn all(ndim: usize) -> DimSet {
        DimSet(match ndim {
            0..64 => (1 << ndim) - 1,
            _ => u64::MAX,
        })
    }

    /// Those of `ndim` dimensions that `f` picks.
    pub fn of(ndim: usize, f: impl Fn(usize) -> bool) -> Result<DimSet> {
        ensure!(
            ndim <= 64,
            Runtime,
            "only tensors with up to 64 dims are supported, got one with {ndim}"
        );
        Ok(DimSet((0..ndim).fold(0, |s, d| s | (f(d) as u64) << d)))
    }

    /// The dimension `d` of `ndim` alone.
    pub fn one(d: usize, ndim: usize) -> Result<DimSet> {
        DimSet::of(ndim, |k| k == d)
    }

    /// The last `n` of `ndim` dimensions.
    pub fn last(n: usize, ndim: usize) -> Result<DimSet> {
        DimSet::of(ndim, |d| d + n >= ndim)
    }

    /// The same dimensions behind one more in front.
    pub fn of_many(self) -> DimSet {
        DimSet(self.0 << 1)
    }
    pub fn has(self, d: usize) -> bool {
        self.0 >> d.min(63) & 1 == 1
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl<const N: usize> From<[usize; N]> for DimSet {
    fn from(ds: [usize; N]) -> DimSet {
        DimSet(ds.iter().fold(0, |s, &d| s | 1 << d))
    }
}

/// The dimensions of a reduction: none or an empty list means all.
pub fn reduced(ds: Option<&[i64]>, ndim: usize) -> Result<DimSet> {
    match ds {
        Some(ds) if !ds.is_empty() => {
            let ds = dims(ds, ndim)?;
            DimSet::of(ndim, |d| ds.contains(&d))
        }
        _ => Ok(DimSet::all(ndim)),
    }
}

/// A shape as calls of views take it.
pub fn signed(shape: &[usize]) -> SmallVec<[i64; 5]> {
    shape.iter().map(|&n| n as i64).collect()
}

/// That of `size` such tensors along a dimension in front.
pub fn of_many(size: usize, shape: &[usize]) -> Dims {
    let mut many = Dims::from_slice(shape);
    many.insert(0, size);
    many
}

/// The shape that two shapes broadcast to. Of several dimensions that do not fit the error names the last.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Dims> {
    if a == b {
        return Ok(Dims::from_slice(a));
    }
    let n = a.len().max(b.len());
    let mut out = Dims::from_elem(1, n);
    for i in (0..n).rev() {
        let x = if i + a.len() >= n {
            a[i + a.len() - n]
        } else {
            1
        };
        let y = if i + b.len() >= n {
            b[i + b.len() - n]
        } else {
            1
        };
        out[i] = match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => bail!(
                Runtime,
                "The size of tensor a ({x}) must match the size of tensor b ({y}) at \
                 non-singleton dimension {i}"
            ),
        };
    }
    Ok(out)
}

/// Whether a tensor of shape `from` expands to shape `to`.
pub fn expandable(from: &[usize], to: &[usize]) -> bool {
    from.len() <= to.len()
        && from
            .iter()
            .rev()
            .zip(to.iter().rev())
            .all(|(&f, &t)| f == t || f == 1)
}

/// Sizes from a factory's arguments: negative ones raise.
pub fn sizes(size: &[i64]) -> Result<Dims> {
    let mut out = Dims::with_capacity(size.len());
    for &s in size {
        ensure!(
            s >= 0,
            Runtime,
            "Trying to create tensor with negative dimension {s}: {}",
            Show(size)
        );
        out.push(s as usize);
    }
    numel(&out)?;
    if out.contains(&0) {
        let step =
            |n: usize, &d: &usize| n.checked_mul(d.max(1)).filter(|&n| n <= i64::MAX as usize);
        let fits = out.iter().try_fold(1, step).is_some();
        ensure!(
            fits,
            Runtime,
            "Stride calculation overflowed with sizes={}",
            Show(size)
        );
    }
    Ok(out)
}

/// Resolves one `-1` in the arguments of `view` and `reshape`.
pub fn infer(size: &[i64], count: usize) -> Result<Dims> {
    let mut out = Dims::with_capacity(size.len());
    let mut unknown = None;
    let mut known = 1usize;
    for (i, &s) in size.iter().enumerate() {
        if s == -1 {
            ensure!(
                unknown.is_none(),
                Runtime,
                "only one dimension can be inferred"
            );
            unknown = Some(i);
            out.push(1);
        } else {
            ensure!(
                s >= 0,
                Runtime,
                "invalid shape dimension {s} at index {i} of shape {}",
                Show(size)
            );
            known = known.saturating_mul(s as usize);
            out.push(s as usize);
        }
    }
    let invalid = || {
        Error::new(
            Kind::Runtime,
            format!(
                "shape '{}' is invalid for input of size {count}",
                Show(size)
            ),
        )
    };
    match unknown {
        Some(i) => {
            ensure!(
                known != 0 || count != 0,
                Runtime,
                "cannot reshape tensor of 0 elements into shape {} because the unspecified \
                 dimension size -1 can be any value and is ambiguous",
                Show(size)
            );
            if known == 0 || !count.is_multiple_of(known) {
                return Err(invalid());
            }
            out[i] = count / known;
        }
        None if known != count => return Err(invalid()),
        None => {}
    }
    Ok(out)
}
