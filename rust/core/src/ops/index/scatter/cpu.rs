//! The loops of reading and writing along one dimension.

use crate::alloc;
use crate::cpu::indices::Indices;
use crate::cpu::pool::{num_threads, parallel_for, Ptr};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::index::{with_cell, Cell, Mode};
use crate::ops::shape::view::parts::each_offset;
use crate::tensor::Tensor;
use crate::{with_element, with_float};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 14;
/// Elements of a row that one task takes.
const BLOCK: usize = 1 << 10;

/// A dimension of the index tensor.
#[derive(Clone, Copy)]
struct Dim {
    n: usize,
    /// Strides of the index, of the tensor that it names places in (zero along the indexed
    /// dimension) and of the other one.
    index: usize,
    place: usize,
    other: usize,
    /// Whether this is the indexed dimension.
    along: bool,
}

/// The places that an index tensor names in another, as rows of the last dimension.
struct Plan<'a> {
    index: Indices<'a>,
    /// The size and the stride of the indexed dimension.
    n: usize,
    stride: usize,
    lead: SmallVec<[Dim; 5]>,
    inner: Dim,
    dim: usize,
}

impl<'a> Plan<'a> {
    /// `other` has a stride for each dimension of the contiguous `index`.
    fn new(x: &Tensor, dim: usize, index: &'a Tensor, other: impl Fn(usize) -> usize) -> Plan<'a> {
        let mut dims: SmallVec<[Dim; 5]> = SmallVec::new();
        for d in 0..index.ndim() {
            let along = d == dim;
            let next = Dim {
                n: index.size(d),
                index: index.stride(d) as usize,
                place: if along { 0 } else { x.stride(d) as usize },
                other: other(d),
                along,
            };
            if next.n == 1 {
                continue;
            }
            match dims.last_mut() {
                Some(o)
                    if !o.along
                        && !along
                        && o.index == next.index * next.n
                        && o.place == next.place * next.n
                        && o.other == next.other * next.n =>
                {
                    *o = Dim {
                        n: o.n * next.n,
                        ..next
                    }
                }
                _ => dims.push(next),
            }
        }
        let one = Dim {
            n: 1,
            index: 1,
            place: 0,
            other: 0,
            along: true,
        };
        let inner = dims.pop().unwrap_or(one);
        Plan {
            index: Indices::of(index),
            n: x.size(dim),
            stride: x.stride(dim) as usize,
            lead: dims,
            inner,
            dim,
        }
    }

    fn rows(&self) -> usize {
        self.lead.iter().map(|d| d.n).product()
    }

    /// Where row `r` begins: in the index, the tensor of places, and the other.
    fn row(&self, mut r: usize) -> (usize, usize, usize) {
        let mut at = (0, 0, 0);
        for d in self.lead.iter().rev() {
            let i = r % d.n;
            r /= d.n;
            at = (at.0 + i * d.index, at.1 + i * d.place, at.2 + i * d.other);
        }
        at
    }

    /// The error for the first index that does not fit.
    fn refusal(&self) -> Error {
        match self.index.iter().find(|&i| i < 0 || i >= self.n as i64) {
            None => Error::runtime("an index changed while it was read"),
            Some(i) => Error::runtime(format!(
                "index {i} is out of bounds for dimension {} with size {}",
                self.dim, self.n
            )),
        }
    }
}

/// Calls `f` with each number of a row and the place that its index names, up to the eight among
/// which one does not fit; whether all did.
#[inline(always)]
fn each_place(index: Indices, n: usize, mut f: impl FnMut(usize, usize)) -> bool {
    let (eights, rest) = index.eights();
    for (j, eight) in eights.enumerate() {
        let eight = eight.map(|i| i as usize);
        if !eight.iter().fold(true, |fit, &i| fit & (i < n)) {
            return false;
        }
        for (k, i) in eight.into_iter().enumerate() {
            f(8 * j + k, i);
        }
    }
    for (j, i) in rest.iter().map(|i| i as usize).enumerate() {
        if i >= n {
            return false;
        }
        f(index.len() - rest.len() + j, i);
    }
    true
}

/// `y[..] = x[.., index[..], ..]` for a contiguous int64 index and a contiguous `y` of its shape.
pub fn gather(x: &Tensor, dim: usize, index: &Tensor, y: &Tensor) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let p = Plan::new(x, dim, index, |d| index.stride(d) as usize);
    let blocks = p.inner.n.div_ceil(BLOCK);
    let bad = AtomicBool::new(false);
    with_element!(super::bits(x.dtype()), T => {
        let (from, to) = (Ptr::new(x.ptr::<T>()), Ptr::new(y.ptr::<T>()));
        parallel_for(p.rows() * blocks, GRAIN / p.inner.n.min(BLOCK) + 1, |range| {
            for u in range {
                let (r, start) = (u / blocks, u % blocks * BLOCK);
                let (at, place, _) = p.row(r);
                let n = BLOCK.min(p.inner.n - start);
                let index = p.index.part(at + start..at + start + n);
                // SAFETY: the places fit; each element is written once.
                let good = unsafe {
                    let from = from.at(place + start * p.inner.place);
                    let to = to.at(at + start);
                    match (p.inner.place, p.stride) {
                        (0, 1) => each_place(index, p.n, |j, i| *to.add(j) = *from.add(i)),
                        (step, stride) => each_place(index, p.n, |j, i| {
                            *to.add(j) = *from.add(j * step + i * stride)
                        }),
                    }
                };
                if !good {
                    return bad.store(true, Ordering::Relaxed);
                }
            }
        });
    });
    match bad.into_inner() {
        true => Err(p.refusal()),
        false => Ok(()),
    }
}

/// Combines `src` (a 0-d one stands for all) into `y[.., index[..], ..]` for a contiguous int64
/// index. Duplicates act one after the other: threads share out the other dimensions.
pub fn scatter(y: &Tensor, dim: usize, index: &Tensor, src: &Tensor, mode: Mode) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let p = Plan::new(y, dim, index, |d| src.stride(d) as usize);
    let (outer, rows) = (
        p.lead
            .iter()
            .take_while(|d| !d.along)
            .map(|d| d.n)
            .product::<usize>(),
        p.rows(),
    );
    let each = rows / outer;
    let bad = AtomicBool::new(false);
    with_cell!(y.dtype(), T => {
        let (to, from) = (Ptr::new(y.ptr::<T>()), Ptr::new(src.ptr::<T>()));
        let run = |r: usize, columns: Range<usize>| -> bool {
            let (at, place, other) = p.row(r);
            let (start, index) = (columns.start, p.index.part(at + columns.start..at + columns.end));
            // SAFETY: the places fit; rows lie within both tensors.
            unsafe {
                let to = to.at(place + start * p.inner.place);
                let from = from.at(other + start * p.inner.other);
                row(index, p.n, to, from, (p.inner.place, p.stride, p.inner.other), mode)
            }
        };
        if outer >= 2 * num_threads() || p.inner.along {
            parallel_for(outer, GRAIN / (each * p.inner.n) + 1, |range| {
                if !(range.start * each..range.end * each).all(|r| run(r, 0..p.inner.n)) {
                    bad.store(true, Ordering::Relaxed);
                }
            });
        } else {
            let grain = p.inner.n.div_ceil(num_threads()).max(GRAIN / rows + 1);
            parallel_for(p.inner.n, grain.next_multiple_of(16), |columns| {
                if !(0..rows).all(|r| run(r, columns.clone())) {
                    bad.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    match bad.into_inner() {
        true => Err(p.refusal()),
        false => Ok(()),
    }
}

/// `y` times the source, both complex, at the places of `index`.
pub fn multiply_complex(y: &Tensor, dim: usize, index: &Tensor, src: &Tensor) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let p = Plan::new(y, dim, index, |_| 0);
    // Read once: other threads may write to the index meanwhile.
    let ids: Vec<usize> = alloc::gathered(p.index.iter().map(|i| i as usize));
    if ids.iter().any(|&i| i >= p.n) {
        return Err(p.refusal());
    }
    let (to, from) = (y.component(0), src.component(0));
    // Offsets of the elements that the index names, without what it says itself.
    let offsets = |t: &Tensor, along: bool| {
        let mut layout = Layout::contiguous(index.shape());
        for (d, step) in layout.strides.iter_mut().enumerate() {
            let own = t.strides().get(d).copied().unwrap_or(0);
            *step = if along || d != dim { own } else { 0 };
        }
        let mut out = alloc::room(index.numel());
        each_offset(&layout, |o| out.push(o));
        out
    };
    let (places, others) = (offsets(&to, false), offsets(&from, true));
    let stride = to.strides().get(dim).copied().unwrap_or(0) as usize;
    with_float!(to.dtype(), "scatter", T => {
        let (to, from) = (to.ptr::<T>(), from.ptr::<T>());
        for ((&i, &place), &other) in ids.iter().zip(&places).zip(&others) {
            // SAFETY: the index is checked, and elements are pairs of parts of this type.
            unsafe {
                let (at, by) = (to.add(place + i * stride), from.add(other));
                let (a, b, c, d) = (*at, *at.add(1), *by, *by.add(1));
                (*at, *at.add(1)) = (a * c - b * d, a * d + b * c);
            }
        }
    });
    Ok(())
}

/// Combines a row into the places that its index names; whether all fit.
unsafe fn row<T: Cell>(
    index: Indices,
    n: usize,
    to: *mut T,
    from: *const T,
    (step, stride, other): (usize, usize, usize),
    mode: Mode,
) -> bool {
    // SAFETY: the places of an index that fits, and those of the steps, lie within both tensors.
    unsafe {
        macro_rules! each {
            ($name:ident $(, $mode:expr)?) => {
                if (step, stride, other) == (0, 1, 1) {
                    each_place(index, n, |j, i| {
                        let to = to.add(i);
                        *to = (*to).$name(*from.add(j) $(, $mode)?);
                    })
                } else {
                    each_place(index, n, |j, i| {
                        let to = to.add(j * step + i * stride);
                        *to = (*to).$name(*from.add(j * other) $(, $mode)?);
                    })
                }
            };
        }
        match mode {
            Mode::Set => each!(combine, Mode::Set),
            Mode::Add => each!(add_one),
            Mode::Max => each!(combine, Mode::Max),
            Mode::Min => each!(combine, Mode::Min),
            mode => each!(combine, mode),
        }
    }
}
