//! Tensors put together from parts, and taken apart: the adjoints of views, `cat`, `split`.

use super::asked;
use crate::autograd::{mode, Jvp, Tangents, Vjp};
use crate::cpu::non_temporal;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::strided_copy::{rows::run, strided_copy};
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{
    Asked, Batching, Derivative, Grads, Mapped, Metas, Op, Rare, TensorMeta, Tensors, Traits,
};
use crate::ops::shape::copy::copy_host;
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{ensure, per_isa};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// A contiguous tensor of `shape` whose `parts` are the inputs, zero elsewhere. Parts do not
/// overlap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assemble {
    pub name: &'static str,
    pub shape: Dims,
    pub parts: SmallVec<[Layout; 2]>,
    pub dtype: DType,
}

impl Derivative for Assemble {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let g = g.contiguous()?;
        let mut out = Grads::new();
        for (i, part) in self.parts.iter().enumerate() {
            out.push(match cx.needs(i.min(63)) {
                true => Some(take_part(&g, part)?),
                false => None,
            });
        }
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        let all: SmallVec<[usize; 4]> = (0..cx.inputs()).collect();
        cx.linear(&all)
    }
}

/// The view of a contiguous tensor under a layout that is relative to its first element.
fn take_part(x: &Tensor, part: &Layout) -> Result<Tensor> {
    let layout = Layout {
        offset: x.offset() + part.offset,
        ..part.clone()
    };
    let op = super::Part {
        name: "SliceBackward0",
        part: part.clone(),
    };
    dispatch::view(op, x, layout)
}

impl Op for Assemble {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let meta = TensorMeta {
            shape: self.shape.clone(),
            dtype: self.dtype,
            device: dispatch::device(x),
        };
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let y = &y[0];
        let covered: usize = self.parts.iter().map(Layout::numel).sum();
        if covered < y.numel() {
            // SAFETY: a contiguous result of this many bytes, written by this call alone.
            unsafe { y.bytes_ptr().write_bytes(0, y.numel() * y.dtype().size()) };
        }
        if let Some(rows) = self.band(x) {
            self.place_in_bands(x, y, rows);
            return Ok(());
        }
        for (x, part) in x.iter().zip(&self.parts) {
            if part.numel() > 0 {
                place(x, y, part)?;
            }
        }
        Ok(())
    }

    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let y = &y[0];
        let covered: usize = self.parts.iter().map(Layout::numel).sum();
        if covered < y.numel() {
            y.write_scalar(0.into())?;
        }
        for (x, part) in x.iter().zip(&self.parts) {
            let offset = y.offset() + part.offset;
            let part = part.clone();
            y.alias(Layout { offset, ..part }).write_from(x)?;
        }
        Ok(true)
    }
}

impl Batching for Assemble {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let step = shape::numel(&self.shape)? as isize;
        let (name, dtype) = (self.name, self.dtype);
        let parts = self.parts.iter();
        let many = Assemble {
            name,
            dtype,
            shape: shape::of_many(x.size, &self.shape),
            parts: parts.map(|p| p.of_many(x.size, step)).collect(),
        };
        x.call(many).map(Some)
    }
}

/// Bytes that stay in the second cache.
const BAND: usize = 1 << 17;
/// Bytes of a piece of a row below which many rows of one input, and from which a whole piece, are
/// copied better by themselves.
const WOVEN: Range<usize> = 96..4096;

/// What of a row of the result comes from one input, as bytes next to each other.
struct Piece {
    from: *const u8,
    /// From one row to the next.
    step: isize,
    at: usize,
    bytes: usize,
}
// SAFETY: an address of memory that outlives the copy; what is there is only read.
unsafe impl Sync for Piece {}

impl Piece {
    fn of(from: *const u8, x: &Layout, part: &Layout, size: usize) -> Option<Piece> {
        let one = |l: &Layout| {
            let mut n = 1;
            (1..l.ndim()).rev().all(|d| {
                let next = l.shape[d] == 1 || l.strides[d] == n;
                n *= l.shape[d] as isize;
                next
            })
        };
        let bytes = part.shape[1..].iter().product::<usize>() * size;
        (WOVEN.contains(&bytes) && one(x) && one(part)).then(|| Piece {
            from,
            step: x.strides[0] * size as isize,
            at: part.offset * size,
            bytes,
        })
    }
}

per_isa! {
    /// Writes rows of `row` bytes, each of a piece of every input.
    ///
    /// # Safety
    /// The inputs have these rows, and there is room for them at `to`.
    unsafe fn weave[](pieces: &[Piece], to: *mut u8, row: usize, rows: Range<usize>) {
        for (k, i) in rows.enumerate() {
            for p in pieces {
                // SAFETY: the inputs have these rows, and there is room for them at `to`.
                unsafe { run(p.from.offset(i as isize * p.step), to.add(k * row + p.at), p.bytes) };
            }
        }
    }
}

impl Assemble {
    /// How many rows of the first dimension stay in the second cache, where each is made of a piece
    /// of every part: so that none of its lines is written to, left and fetched again.
    fn band(&self, x: &[&Tensor]) -> Option<usize> {
        let (n, size) = (*self.shape.first()?, self.dtype.size());
        let row = self.shape[1..].iter().product::<usize>() * size;
        let pieces = |part: &Layout| {
            let bytes = part.numel() / n.max(1) * size;
            (part.ndim() == self.shape.len() || WOVEN.contains(&bytes))
                && part.shape.first() == Some(&n)
                && part.strides[0] as usize * size == row
                && part.numel() > 0
        };
        // Long pieces of large results go past the caches, as whole lines.
        let long = |part: &Layout| part.numel() / n.max(1) * size >= WOVEN.end;
        let past = |part: &Layout| long(part) && non_temporal::is_worth(part.numel() * size);
        let fits = self.parts.len() > 1
            && !self.parts.iter().all(past)
            && (1..=BAND / 2).contains(&row)
            && n * row > 2 * BAND
            && self.parts.iter().all(pieces)
            && x.iter().all(|x| x.dtype() == self.dtype);
        fits.then(|| BAND / row)
    }

    /// Copies the inputs to their parts, `rows` rows of all of them at a time.
    fn place_in_bands(&self, x: &[&Tensor], y: &Tensor, rows: usize) {
        let (n, size) = (self.shape[0], self.dtype.size());
        let to = Ptr::new(y.bytes_ptr());
        let wide = x.iter().zip(&self.parts).map(|(x, part)| {
            let from = Ptr::new(x.bytes_ptr());
            (from, x.layout().expand_to(&part.shape), part)
        });
        let wide: SmallVec<[_; 4]> = wide.collect();
        let row = self.shape[1..].iter().product::<usize>() * size;
        let pieces: Option<SmallVec<[Piece; 4]>> = (wide
            .iter()
            .map(|(from, x, part)| Piece::of(from.get(), x, part, size)))
        .collect();
        if let Some(pieces) = pieces {
            return parallel_for(n, (BAND / row).max(1), |range| {
                // SAFETY: rows of host memory, the result's written by this call alone, each once.
                unsafe { weave(&pieces, to.at(range.start * row), row, range) };
            });
        }
        parallel_for(n.div_ceil(rows), 1, |range| {
            for first in range.map(|b| b * rows) {
                for (from, x, part) in &wide {
                    let (mut x, mut part) = (x.clone(), (*part).clone());
                    (x.shape[0], part.shape[0]) = (rows.min(n - first), rows.min(n - first));
                    // SAFETY: host memory of one type; rows of the input, and of a part that lies
                    // within `y`, which this call alone writes, each band once.
                    unsafe {
                        let from = from
                            .get()
                            .offset(first as isize * x.strides[0] * size as isize);
                        let at = part.offset + first * part.strides[0] as usize;
                        strided_copy(size, from, &x, to.at(at * size), &part);
                    }
                }
            }
        });
    }
}

/// Copies `x` to a part of the contiguous `y`.
fn place(x: &Tensor, y: &Tensor, part: &Layout) -> Result<()> {
    if x.dtype() != y.dtype() {
        let offset = y.offset() + part.offset;
        return copy_host(
            x,
            &y.alias(Layout {
                offset,
                ..part.clone()
            }),
        );
    }
    let size = y.dtype().size();
    let wide = x.layout().expand_to(&part.shape);
    // SAFETY: host memory of one type; the part lies within `y`, which this call alone writes.
    unsafe {
        let to = y.bytes_ptr().add(part.offset * size);
        strided_copy(size, x.bytes_ptr(), &wide, to, part);
    }
    Ok(())
}

/// Calls `f` with the offset of every element in row-major order.
pub fn each_offset(layout: &Layout, mut f: impl FnMut(usize)) {
    let n = layout.numel();
    let k = layout.ndim();
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, k);
    let mut offset = layout.offset as isize;
    for i in 0..n {
        f(offset as usize);
        if i + 1 == n {
            break;
        }
        for d in (0..k).rev() {
            at[d] += 1;
            offset += layout.strides[d];
            if at[d] < layout.shape[d] {
                break;
            }
            offset -= at[d] as isize * layout.strides[d];
            at[d] = 0;
        }
    }
}

/// The tensor that `x` are the parts of already: kernels may write gradients of parts side by side.
fn in_place(shape: &[usize], parts: &[Layout], x: &[&Tensor]) -> Option<Tensor> {
    let first = x[0].offset().checked_sub(parts[0].offset)?;
    let covered: usize = parts.iter().map(Layout::numel).sum();
    let lies = |(t, part): (&&Tensor, &Layout)| {
        let steps = t.strides().iter().zip(&part.strides);
        t.shares_storage(x[0])
            && t.dtype() == x[0].dtype()
            && t.offset() == first + part.offset
            && t.shape() == &part.shape
            && steps.zip(t.shape()).all(|((a, b), &n)| a == b || n == 1)
    };
    let whole = x.len() > 1
        && !mode::traced()
        && !dispatch::heeded(x)
        && covered == shape.iter().product::<usize>()
        && x.iter().zip(parts).all(lies);
    whole.then(|| {
        x[0].alias(Layout {
            offset: first,
            ..Layout::contiguous(shape)
        })
    })
}

/// A tensor of `shape` that is zero but for `parts`, which are `x`.
pub fn assemble(shape: &[usize], parts: &[Layout], x: &[&Tensor]) -> Result<Tensor> {
    if let Some(whole) = in_place(shape, parts, x) {
        return Ok(whole);
    }
    let op = Assemble {
        name: "AssembleBackward0",
        shape: Dims::from_slice(shape),
        parts: parts.into(),
        dtype: x[0].dtype(),
    };
    dispatch::call1(op, x)
}

/// Several parts of one tensor. Layouts are relative to a contiguous tensor of its shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    pub name: &'static str,
    pub parts: SmallVec<[Layout; 2]>,
}

impl Derivative for Parts {
    fn name(&self) -> &'static str {
        self.name
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        Ok(asked::parts(Asked::of_node(self.name), x[0], y))
    }
    fn view_of_many(&self, x: &Layout, size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        let parts = self.parts.iter();
        Some(Arc::new(Parts {
            name: self.name,
            parts: parts.map(|p| p.of_many(size, x.numel() as isize)).collect(),
        }))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let m = cx.input_meta(0)?;
        let mut parts = SmallVec::<[Layout; 2]>::new();
        let mut given = Vec::new();
        for (g, part) in g.iter().zip(&self.parts) {
            if let Some(g) = g {
                given.push(g);
                parts.push(part.clone());
            }
        }
        if given.is_empty() {
            return Ok(Grads::new());
        }
        super::grads(assemble(&m.shape, &parts, &given)?)
    }
}

/// The input with one part replaced by the second input (`select_scatter` and the like). `part` is
/// relative to a contiguous tensor of the input's shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Patch {
    pub name: &'static str,
    pub part: Layout,
}

impl Derivative for Patch {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let mut out = Grads::new();
        out.push(match cx.needs(0) {
            true => {
                let zeros = Tensor::zeros(&[], g.dtype(), g.device())?;
                let zeros = zeros.expand_to(&self.part.shape)?;
                Some(dispatch::call1(self.clone(), &[g, &zeros])?)
            }
            false => None,
        });
        out.push(match cx.needs(1) {
            true => Some(take_part(&g.contiguous()?, &self.part)?),
            false => None,
        });
        Ok(out)
    }
    fn jvp(&self, cx: &Jvp) -> Result<Option<Tangents>> {
        cx.linear(&[0, 1])
    }
}

impl Op for Patch {
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn traits(&self) -> Traits {
        Traits {
            rare: Rare::ALL,
            ..Traits::NONE
        }
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(SmallVec::from_elem(TensorMeta::of(x[0]), 1))
    }
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        copy_host(x[0], &y[0])?;
        let offset = y[0].offset() + self.part.offset;
        copy_host(
            x[1],
            &y[0].alias(Layout {
                offset,
                ..self.part.clone()
            }),
        )
    }
    fn gpu(&self, _gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        y[0].write_from(x[0])?;
        let offset = y[0].offset() + self.part.offset;
        let part = self.part.clone();
        y[0].alias(Layout { offset, ..part }).write_from(x[1])?;
        Ok(true)
    }
}

impl Batching for Patch {
    fn map(&self, x: &Mapped) -> Result<Option<Tensors>> {
        let step = x.x[0].numel() / if x.has(0) { x.size.max(1) } else { 1 };
        let many = Patch {
            name: self.name,
            part: self.part.of_many(x.size, step as isize),
        };
        x.call(many).map(Some)
    }
}

impl Tensor {
    /// Several views of this tensor by layouts made from its own.
    pub fn parts(
        &self,
        name: &'static str,
        count: usize,
        f: impl Fn(&Layout, usize) -> Result<Layout>,
    ) -> Result<Vec<Tensor>> {
        let all = |l: &Layout| (0..count).map(|i| f(l, i)).collect::<Result<Vec<_>>>();
        let layouts = all(self.layout())?;
        let parts = match dispatch::needs(&[self]) {
            0 if !mode::interpreted() => SmallVec::new(),
            _ => all(&Layout::contiguous(self.shape()))?.into(),
        };
        dispatch::views(Parts { name, parts }, self, layouts)
    }

    /// `unbind`.
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        let d = shape::dim(dim, self.ndim())?;
        ensure!(
            self.ndim() > 0,
            Index,
            "Dimension specified as 0 but tensor has no dimensions"
        );
        self.parts("UnbindBackward0", self.size(d), |l, i| {
            l.select(d as i64, i as i64)
        })
    }

    /// `split`: chunks of one size, the last one smaller where it must be.
    pub fn split(&self, size: i64, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            self.ndim() > 0,
            Runtime,
            "split expects at least a 1-dimensional tensor"
        );
        ensure!(
            size >= 0,
            Runtime,
            "split expects split_size be non-negative, but got split_size={size}"
        );
        let d = shape::dim(dim, self.ndim())?;
        let n = self.size(d) as i64;
        ensure!(
            size > 0 || n == 0,
            Runtime,
            "split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
        );
        let count = if n == 0 { 1 } else { (n - 1) / size + 1 };
        self.parts("SplitBackward0", count as usize, |l, i| {
            let start = i as i64 * size;
            l.slice(
                d as i64,
                Some(start),
                Some(start.saturating_add(size).min(n)),
                1,
            )
        })
    }

    /// `split_with_sizes`.
    pub fn split_sizes(&self, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            self.ndim() > 0,
            Runtime,
            "split expects at least a 1-dimensional tensor"
        );
        let d = shape::dim(dim, self.ndim())?;
        let n = self.size(d) as i64;
        let mut starts = Vec::with_capacity(sizes.len());
        let mut total = 0i64;
        for &s in sizes {
            ensure!(
                s >= 0,
                Runtime,
                "split_with_sizes expects split_sizes have only non-negative entries, but got \
                 split_sizes={}",
                Show(sizes)
            );
            starts.push(total);
            total = total.saturating_add(s);
        }
        ensure!(
            total == n,
            Runtime,
            "split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at \
             dimension {d}), but got split_sizes={}",
            Show(sizes)
        );
        self.parts("SplitWithSizesBackward0", sizes.len(), |l, i| {
            l.slice(d as i64, Some(starts[i]), Some(starts[i] + sizes[i]), 1)
        })
    }

    /// `chunk`: at most `chunks` parts of equal size.
    pub fn chunk(&self, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            self.ndim() > 0,
            Runtime,
            "chunk expects at least a 1-dimensional tensor"
        );
        ensure!(
            chunks > 0,
            Runtime,
            "chunk expects `chunks` to be greater than 0, got: {chunks}"
        );
        let d = shape::dim(dim, self.ndim())?;
        let n = self.size(d) as i64;
        let size = n / chunks + (n % chunks != 0) as i64;
        if size == 0 {
            ensure!(
                chunks <= 1 << 24,
                Runtime,
                "chunk: {chunks} parts of a dimension of size 0 are too many"
            );
            return self.split_sizes(&vec![0; chunks as usize], dim);
        }
        self.split(size, dim)
    }

    /// `tensor_split` at given places.
    pub fn split_at(&self, places: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            self.ndim() > 0,
            Runtime,
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        );
        shape::dim(dim, self.ndim())?;
        let mut start = 0;
        let mut out = Vec::with_capacity(places.len() + 1);
        for &end in places {
            out.push(self.slice_dim(dim, Some(start), Some(end), 1)?);
            start = end;
        }
        out.push(self.slice_dim(dim, Some(start), None, 1)?);
        Ok(out)
    }

    /// `tensor_split` into a number of parts, the first ones larger by one where it must be.
    pub fn split_into(&self, sections: i64, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(
            self.ndim() > 0,
            Runtime,
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        );
        ensure!(
            sections > 0,
            Runtime,
            "number of sections must be larger than 0, got {sections}"
        );
        let n = self.size(shape::dim(dim, self.ndim())?) as i64;
        ensure!(
            sections <= 1 << 24,
            Runtime,
            "tensor_split: {sections} sections are too many"
        );
        let (least, more) = (n / sections, n % sections);
        let mut start = 0;
        (0..sections)
            .map(|i| {
                let end = start + least + (i < more) as i64;
                let y = self.slice_dim(dim, Some(start), Some(end), 1);
                start = end;
                y
            })
            .collect()
    }

    /// This tensor with a part, by a layout made from its own, replaced by `src`.
    pub fn patched(
        &self,
        name: &'static str,
        src: &Tensor,
        f: impl Fn(&Layout) -> Result<Layout>,
    ) -> Result<Tensor> {
        let part = f(&Layout::contiguous(self.shape()))?;
        ensure!(
            part.shape == *src.shape(),
            Runtime,
            "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
            Show(src.shape()),
            Show(&part.shape)
        );
        let src = src.to_dtype(self.dtype())?;
        dispatch::call1(Patch { name, part }, &[self, &src])
    }
}
