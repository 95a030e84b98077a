//! Matrices by rows or by columns, of numbers or of blocks (compressed layouts, `torch.sparse_csr` and its
//! kin): where each line begins, and the place in its line that each entry has. There may be batches of
//! them, with as many entries each, and values may have dimensions of their own.

use super::coo::{self, hold, with_rows, Held, Parts};
use super::places;
use crate::alloc;
use crate::autograd::Vjp;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::meta::Form;
use crate::op::{one, Derivative, Grads, Mask, Save};
use crate::shape::{numel, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

#[derive(Clone)]
pub struct Packed {
    /// Where the entries of each line begin and, last, end, of shape (batch..., lines + 1).
    pub starts: Tensor,
    /// The place of each entry in its line, of shape (batch..., entries).
    pub plain: Tensor,
    /// The entries, of shape (batch..., entries, block..., dense dimensions...).
    pub values: Tensor,
}

/// The tensor of these lines. Gradients flow to their values.
pub fn make(shape: &[usize], form: Form, lines: Packed) -> Result<Tensor> {
    let held = Packed {
        starts: lines.starts.detach(),
        plain: lines.plain.detach(),
        values: lines.values.detach(),
    };
    let y = hold(shape, &lines.values, form, Held::Lines(held))?;
    let inputs = [&lines.starts, &lines.plain, &lines.values];
    dispatch::record(Make { form }, &inputs, std::slice::from_ref(&y))?;
    Ok(y)
}

/// Of lines and values a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Make {
    form: Form,
}

impl Derivative for Make {
    fn name(&self) -> &'static str {
        "SparseCompressedTensorBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([0, 1])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (starts, plain) = (cx.input(0)?, cx.input(1)?);
        let values = values_at(g, self.form, &starts, &plain, &cx.input_meta(2)?.shape)?;
        Ok(Grads::from_iter([None, None, Some(values)]))
    }
}

/// Of a matrix its values; the other inputs are its lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Values {
    form: Form,
}

impl Derivative for Values {
    fn name(&self) -> &'static str {
        "ValuesBackward0"
    }
    fn save(&self, _needs: Mask) -> Save {
        Save::inputs([1, 2])
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let lines = Packed {
            starts: cx.input(1)?,
            plain: cx.input(2)?,
            values: g.clone(),
        };
        one(make(&cx.input_meta(0)?.shape, self.form, lines)?)
    }
}

/// The values, of this shape, that `g`, sparse or dense, has at the places of these lines; zeros where
/// it has none.
pub fn values_at(
    g: &Tensor,
    form: Form,
    starts: &Tensor,
    plain: &Tensor,
    shape: &[usize],
) -> Result<Tensor> {
    let same = |a: &Tensor, b: &Tensor| a.shares_storage(b) && a.layout() == b.layout();
    if g.form() == form {
        let own = g.raw_lines()?;
        if same(&own.starts, starts) && same(&own.plain, plain) && own.values.shape()[..] == *shape
        {
            return Ok(g.lines()?.values);
        }
    }
    let at = coordinates(form, starts, plain)?;
    let Some(block) = block_of(form, starts.ndim() - 1, shape) else {
        return coo::values_at(g, &at)?.reshape_to(shape);
    };
    let grid = in_grid(&g.to_dense()?, starts.ndim() - 1, block)?;
    coo::values_at(&grid, &at)?.reshape_to(shape)
}

fn block_of(form: Form, batch: usize, values: &[usize]) -> Option<[usize; 2]> {
    form.in_blocks()
        .then(|| [values[batch + 1], values[batch + 2]])
}

/// Row and column of each entry, behind the place of its matrix in the batch.
fn coordinates(form: Form, starts: &Tensor, plain: &Tensor) -> Result<Tensor> {
    let batch = starts.ndim() - 1;
    let (n, lines) = (plain.size(batch), starts.size(batch).saturating_sub(1));
    let sizes = &plain.shape()[..batch];
    let count = numel(sizes)?;
    let (first, across) = (places::numbers(starts)?, places::numbers(plain)?);
    let y = Tensor::empty(
        &[batch + 2, count * n],
        DType::I64,
        crate::device::Device::Cpu,
    )?;
    // SAFETY: contiguous host memory of this type; nobody else has the fresh result.
    let (first, across, to) = unsafe {
        (
            first.slice::<i64>(),
            across.slice::<i64>(),
            y.slice_mut::<i64>(),
        )
    };
    let total = count * n;
    let (line_at, across_at) = match form.by_rows() {
        true => (batch, batch + 1),
        false => (batch + 1, batch),
    };
    to[across_at * total..(across_at + 1) * total].copy_from_slice(across);
    for b in 0..count {
        let own = &first[b * (lines + 1)..(b + 1) * (lines + 1)];
        let rises = own.windows(2).all(|w| w[0] <= w[1]);
        ensure!(
            own.first() == Some(&0) && own[lines] == n as i64 && rises,
            Runtime,
            "the lines of a sparse matrix must begin at 0, not fall and end at the number of \
             entries, {n}; got {own:?}"
        );
        let mut rest = b;
        for d in (0..batch).rev() {
            to[d * total + b * n..][..n].fill((rest % sizes[d]) as i64);
            rest /= sizes[d];
        }
        for (line, w) in own.windows(2).enumerate() {
            to[line_at * total + b * n..][w[0] as usize..w[1] as usize].fill(line as i64);
        }
    }
    y.to_device(starts.device())
}

/// Of dense matrices their blocks: (batch..., rows, columns, height, width, dense dimensions...).
fn in_grid(x: &Tensor, batch: usize, [h, w]: [usize; 2]) -> Result<Tensor> {
    let shape = x.shape();
    let mut split = Dims::from_slice(&shape[..batch]);
    split.extend([shape[batch] / h, h, shape[batch + 1] / w, w]);
    split.extend_from_slice(&shape[batch + 2..]);
    swapped_inside(&x.reshape_to(&split)?, batch)
}

/// The reverse of [`in_grid`].
fn of_grid(x: &Tensor, batch: usize, shape: &[usize]) -> Result<Tensor> {
    swapped_inside(x, batch)?.reshape_to(shape)
}

/// The second and third dimensions behind the batch in each other's place.
fn swapped_inside(x: &Tensor, batch: usize) -> Result<Tensor> {
    let mut order: SmallVec<[i64; 5]> = (0..x.ndim() as i64).collect();
    order.swap(batch + 1, batch + 2);
    x.permute(&order)
}

/// Sizes of the batch, and the rows and columns of blocks.
fn grid_size(shape: &[usize], batch: usize, block: Option<[usize; 2]>) -> Dims {
    let mut size = Dims::from_slice(&shape[..batch + 2]);
    if let Some(block) = block {
        for (size, side) in size[batch..].iter_mut().zip(block) {
            *size /= side.max(1);
        }
    }
    size
}

impl Packed {
    fn batch(&self) -> usize {
        self.starts.ndim() - 1
    }

    pub fn block(&self, form: Form) -> Option<[usize; 2]> {
        block_of(form, self.batch(), self.values.shape())
    }

    /// Entries, or blocks, with the coordinates that they have among their like.
    fn grid(&self, form: Form) -> Result<Parts> {
        let batch = self.batch();
        let indices = coordinates(form, &self.starts, &self.plain)?;
        let shape = with_rows(indices.size(1), &self.values.shape()[batch + 1..]);
        let coalesced = form.by_rows() && places::rise(&indices)?;
        Ok(Parts {
            indices,
            values: self.values.reshape_to(&shape)?,
            coalesced,
        })
    }

    /// As a list of coordinates, blocks taken apart.
    pub fn list(&self, form: Form) -> Result<Parts> {
        let (grid, batch) = (self.grid(form)?, self.batch());
        let Some([h, w]) = self.block(form) else {
            return Ok(grid);
        };
        let (n, each) = (grid.entries(), h * w);
        let host = places::numbers(&grid.indices)?;
        let y = Tensor::empty(
            &[batch + 2, n * each],
            DType::I64,
            crate::device::Device::Cpu,
        )?;
        // SAFETY: contiguous host memory of this type; nobody else has the fresh result.
        let (from, to) = unsafe { (host.slice::<i64>(), y.slice_mut::<i64>()) };
        for (d, (from, to)) in from
            .chunks(n.max(1))
            .zip(to.chunks_mut((n * each).max(1)))
            .enumerate()
        {
            for (&i, to) in from.iter().zip(to.chunks_mut(each.max(1))) {
                for (k, to) in to.iter_mut().enumerate() {
                    *to = match d.checked_sub(batch) {
                        None => i,
                        Some(0) => i.wrapping_mul(h as i64) + (k / w) as i64,
                        Some(_) => i.wrapping_mul(w as i64) + (k % w) as i64,
                    };
                }
            }
        }
        let shape = with_rows(n * each, &grid.values.shape()[3..]);
        Ok(Parts {
            indices: y.to_device(grid.indices.device())?,
            values: grid.values.reshape_to(&shape)?,
            coalesced: false,
        })
    }

    /// The elements in memory.
    pub fn dense(&self, form: Form, shape: &[usize]) -> Result<Tensor> {
        let (grid, batch, block) = (self.grid(form)?, self.batch(), self.block(form));
        let size = grid_size(shape, batch, block);
        let at = places::places(&grid.indices, &size)?.to_device(self.values.device())?;
        let rows = numel(&size)?;
        let y = places::put_rows(rows, &at, &grid.values, grid.coalesced, "ToDenseBackward0")?;
        let inside = size.iter().chain(&grid.values.shape()[1..]).copied();
        let y = y.reshape_to(&inside.collect::<Dims>())?;
        match block {
            Some(_) => of_grid(&y, batch, shape),
            None => Ok(y),
        }
    }

    /// The lines of entries, or of blocks, in row-major order, whose coordinates are of this size.
    fn pack(grid: &Parts, size: &[usize], form: Form, kind: DType) -> Result<Packed> {
        // Coordinates that lie outside raise.
        places::places(&grid.indices, size)?;
        let (batch, total) = (grid.lead() - 2, grid.entries());
        let host = places::numbers(&grid.indices)?;
        // SAFETY: contiguous host memory of this type.
        let from = unsafe { host.slice::<i64>() };
        let (line_at, across_at) = match form.by_rows() {
            true => (batch, batch + 1),
            false => (batch + 1, batch),
        };
        let (lines, count) = (size[line_at], numel(&size[..batch])?);
        let mut own = alloc::full(0usize, total);
        for d in (0..batch).chain([line_at]) {
            for (own, &i) in own.iter_mut().zip(&from[d * total..]) {
                *own = *own * size[d] + i as usize;
            }
        }
        // Entries by line; those of one line are in order already.
        let mut next = alloc::full(0usize, count * lines + 1);
        own.iter().for_each(|&line| next[line + 1] += 1);
        for line in 0..count * lines {
            next[line + 1] += next[line];
        }
        let n = total / count.max(1);
        let mut starts = alloc::room(count * (lines + 1));
        for b in 0..count {
            let first = next[b * lines];
            ensure!(
                first == b * n && next[(b + 1) * lines] == (b + 1) * n,
                Runtime,
                "Expect the same number of specified elements per batch."
            );
            starts.extend((0..=lines).map(|line| (next[b * lines + line] - first) as i64));
        }
        let mut order = alloc::full(0i64, total);
        for (e, &line) in own.iter().enumerate() {
            order[next[line]] = e as i64;
            next[line] += 1;
        }
        let across = &from[across_at * total..(across_at + 1) * total];
        let mut plain = alloc::room(total);
        plain.extend(order.iter().map(|&e| across[e as usize]));
        let mut values = grid.values.clone();
        if order.windows(2).any(|w| w[0] > w[1]) {
            let order = Tensor::from_slice(&order, &[total], DType::I64)?;
            values = values.index_select(0, &order.to_device(values.device())?)?;
        }
        let sizes =
            |last: &[usize]| -> Dims { size[..batch].iter().chain(last).copied().collect() };
        let index = |list: &[i64], last: usize| {
            let y = Tensor::from_slice(list, &sizes(&[last]), DType::I64)?;
            y.to_dtype(kind)?.to_device(values.device())
        };
        Ok(Packed {
            starts: index(&starts, lines + 1)?,
            plain: index(&plain, n)?,
            values: values.reshape_to(&sizes(&with_rows(n, &values.shape()[1..])))?,
        })
    }
}

/// Of entries in row-major order the blocks that they lie in.
fn in_blocks(list: &Parts, size: &[usize], [h, w]: [usize; 2]) -> Result<Parts> {
    let (batch, n) = (list.lead() - 2, list.entries());
    let host = places::numbers(&list.indices)?;
    // SAFETY: contiguous host memory of this type.
    let (_, from) = unsafe { host.slice::<i64>() }.split_at(batch * n);
    let (row, column) = from.split_at(n);
    let y = host.copy_dense()?;
    // SAFETY: contiguous host memory of this type; nobody else has the copy.
    let to = unsafe { y.slice_mut::<i64>() };
    for (to, side) in to[batch * n..].chunks_mut(n.max(1)).zip([h, w]) {
        to.iter_mut().for_each(|i| *i = i.div_euclid(side as i64));
    }
    let (indices, at) = places::distinct(&y, size)?;
    let blocks = indices.size(1);
    let host = places::numbers(&at)?;
    // SAFETY: contiguous host memory of this type.
    let own = unsafe { host.slice::<i64>() };
    let mut rows = alloc::room(n);
    rows.extend(
        own.iter()
            .zip(row.iter().zip(column))
            .map(|(&b, (&i, &j))| (b * h as i64 + i % h as i64) * w as i64 + j % w as i64),
    );
    let rows = Tensor::from_slice(&rows, &[n], DType::I64)?.to_device(list.values.device())?;
    let values = places::put_rows(
        blocks * h * w,
        &rows,
        &list.values,
        true,
        "ToSparseBackward0",
    )?;
    let mut shape = Dims::from_slice(&[blocks, h, w]);
    shape.extend_from_slice(&list.values.shape()[1..]);
    Ok(Parts {
        indices: indices.to_device(list.values.device())?,
        values: values.reshape_to(&shape)?,
        coalesced: true,
    })
}

impl Tensor {
    /// The lines of a matrix in a compressed layout, outside of any graph.
    pub fn raw_lines(&self) -> Result<Packed> {
        match self.form().is_packed() {
            true => match self.held_now()? {
                Held::Lines(lines) => Ok(lines),
                Held::List(_) => bail!(Assertion, "a list of coordinates in a compressed layout"),
            },
            false => bail!(
                Runtime,
                "expected a sparse tensor of a compressed layout, got {}, of shape {}; make one \
                 with to_sparse_csr()",
                self.form().title(),
                Show(self.shape())
            ),
        }
    }

    /// [`Tensor::raw_lines`] with values that gradients flow through.
    pub fn lines(&self) -> Result<Packed> {
        let mut lines = self.raw_lines()?;
        lines.values = lines.values.detach();
        let op = Values { form: self.form() };
        let inputs = [self, &lines.starts, &lines.plain];
        dispatch::record(op, &inputs, std::slice::from_ref(&lines.values))?;
        Ok(lines)
    }

    /// The sizes of a block, of a layout that has some.
    pub fn block(&self) -> Result<Option<[usize; 2]>> {
        match self.form().in_blocks() {
            true => Ok(self.raw_lines()?.block(self.form())),
            false => Ok(None),
        }
    }

    /// In the layout, of the same blocks and type of indices, that `like` has.
    pub fn like_form(&self, like: &Tensor) -> Result<Tensor> {
        match like.form() {
            form if form == self.form() && !form.in_blocks() => Ok(self.clone()),
            Form::Strided => self.to_dense(),
            Form::Coo => self.in_form(Form::Coo, None, 0),
            form => {
                let lines = like.raw_lines()?;
                let kind = lines.starts.dtype();
                self.packed_as(form, lines.block(form), like.ndim() - like.lead()?, kind)
            }
        }
    }

    /// The same elements in another layout, in blocks of this size where it has blocks; of a dense
    /// tensor the last `rest` dimensions become such of the values.
    pub fn in_form(&self, form: Form, block: Option<[usize; 2]>, rest: usize) -> Result<Tensor> {
        if !form.is_packed() {
            return match (form, self.form()) {
                (Form::Strided, _) => self.to_dense(),
                (_, Form::Strided) => self.to_sparse(self.ndim() - rest),
                _ => self.list(),
            };
        }
        let kind = match self.form().is_packed() {
            true => self.raw_lines()?.starts.dtype(),
            false => DType::I64,
        };
        self.packed_as(form, block, rest, kind)
    }

    fn packed_as(
        &self,
        form: Form,
        block: Option<[usize; 2]>,
        rest: usize,
        kind: DType,
    ) -> Result<Tensor> {
        let own = self.block()?;
        if self.form() == form && own == block {
            return Ok(self.clone());
        }
        let batch = match self.is_sparse() {
            true => self.lead()? - 2,
            false => self.ndim() - rest - 2,
        };
        let shape = self.shape();
        if let Some(block) = block {
            for (d, side) in block.into_iter().enumerate() {
                ensure!(
                    side > 0 && shape[batch + d].is_multiple_of(side),
                    Runtime,
                    "tensor sparse size ({},{}) must be divisible by given blocksize ({},{})",
                    shape[batch],
                    shape[batch + 1],
                    block[0],
                    block[1]
                );
            }
        }
        let size = grid_size(shape, batch, block);
        let grid = match (self.form(), block) {
            (Form::Strided, None) => self.to_sparse(batch + 2)?.entries()?,
            (Form::Strided, Some(block)) => in_grid(self, batch, block)?
                .to_sparse(batch + 2)?
                .entries()?,
            (own_form, block) if own_form.is_packed() && own == block => {
                let grid = self.lines()?.grid(own_form)?;
                let shape: Dims = size
                    .iter()
                    .chain(&grid.values.shape()[1..])
                    .copied()
                    .collect();
                coo::make(&shape, grid)?.coalesced()?.entries()?
            }
            (_, None) => self.ordered_entries()?,
            (_, Some(block)) => in_blocks(&self.ordered_entries()?, &size, block)?,
        };
        make(shape, form, Packed::pack(&grid, &size, form, kind)?)
    }

    /// Dimensions in another order: two of the matrix, of the batch, or of the values.
    pub(super) fn permute_packed(&self, dims: &[usize]) -> Result<Tensor> {
        let (lines, form, lead) = (self.lines()?, self.form(), self.lead()?);
        let batch = lead - 2;
        let kind = |d: usize| (d >= batch) as usize + (d >= lead) as usize;
        const NAMES: [&str; 3] = ["Batch", "Sparse", "Dense"];
        for (to, &from) in dims.iter().enumerate() {
            ensure!(
                kind(to) == kind(from),
                Runtime,
                "transpose(): can only transpose dimensions of the same type (Batch, Sparse, \
                 Dense), got {to}({}) and {from}({})",
                NAMES[kind(to)],
                NAMES[kind(from)]
            );
        }
        let transposed = dims[batch] > dims[batch + 1];
        let inner = lines.values.ndim() - (self.ndim() - lead) - batch;
        let front = dims[..batch].iter().map(|&d| d as i64);
        let order: SmallVec<[i64; 5]> = front.clone().chain([batch as i64]).collect();
        let mut inside: SmallVec<[i64; 5]> = (0..inner as i64).map(|k| batch as i64 + k).collect();
        if transposed && form.in_blocks() {
            inside.swap(1, 2);
        }
        let back = dims[lead..]
            .iter()
            .map(|&d| (d - lead + batch + inner) as i64);
        let all: SmallVec<[i64; 5]> = front.chain(inside).chain(back).collect();
        let moved = Packed {
            starts: lines.starts.permute(&order)?,
            plain: lines.plain.permute(&order)?,
            values: lines.values.permute(&all)?,
        };
        let shape: Dims = dims.iter().map(|&d| self.size(d)).collect();
        make(
            &shape,
            if transposed { form.transposed() } else { form },
            moved,
        )
    }

    /// One slice: of the batch or of the values in the same layout, of the matrix as a list.
    pub(super) fn select_packed(&self, d: usize, i: i64) -> Result<Tensor> {
        let (lead, form) = (self.lead()?, self.form());
        let batch = lead - 2;
        if d >= batch && d < lead {
            ensure!(
                batch == 0,
                Runtime,
                "select(): selecting sparse dimensions is not supported for batched sparse \
                 compressed tensors."
            );
            return self.list()?.select_sparse(d as i64, i);
        }
        let mut lines = self.lines()?;
        let mut shape = self.shape().clone();
        shape.remove(d);
        if d < batch {
            lines = Packed {
                starts: lines.starts.select(d as i64, i)?,
                plain: lines.plain.select(d as i64, i)?,
                values: lines.values.select(d as i64, i)?,
            };
        } else {
            let at = d + lines.values.ndim() - self.ndim();
            lines.values = lines.values.select(at as i64, i)?;
        }
        make(&shape, form, lines)
    }
}
