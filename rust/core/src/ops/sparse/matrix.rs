//! The product of a sparse matrix, given by coordinates and values, with a dense one, and its adjoint.
//! Each row is summed in the order of its entries, whatever the number of threads.

use super::places::numbers;
use crate::alloc;
use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::cpu::number::Number;
use crate::cpu::pool::parallel_chunks;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Tensors};
use crate::tensor::Tensor;
use crate::{bail, per_isa, with_compute};

/// Multiplications that are worth a thread of their own.
const GRAIN: usize = 1 << 15;

/// Inputs are coordinates (2, entries), values and a matrix B; the result has `rows` rows, of which
/// each is the sum of its values times B's rows in their columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub rows: usize,
    /// Take the sparse matrix transposed: coordinates are columns and rows.
    pub transposed: bool,
}

/// Inputs are coordinates and two matrices A and B: for each entry the product of A's row in its row
/// and B's in its column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sampled {
    pub transposed: bool,
}

impl Product {
    /// As an op of its own, for values and a matrix of one type.
    pub fn call(self, indices: &Tensor, values: &Tensor, b: &Tensor) -> Result<Tensor> {
        dispatch::call1(self, &[indices, values, b])
    }
}

impl Derivative for Product {
    fn name(&self) -> &'static str {
        "SparseAddmmBackward0"
    }
    fn save(&self, needs: Mask) -> Save {
        let mut save = Save::inputs([0]);
        save.inputs |= (needs >> 1 & 1) << 2 | (needs >> 2 & 1) << 1;
        save
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (indices, transposed) = (cx.input(0)?, self.transposed);
        let mut grads = Grads::from_elem(None, 3);
        if cx.needs(1) {
            let b = cx.input(2)?.conj()?;
            grads[1] = Some(dispatch::call1(Sampled { transposed }, &[&indices, g, &b])?);
        }
        if cx.needs(2) {
            let adjoint = Product {
                rows: cx.input_meta(2)?.shape[0],
                transposed: !transposed,
            };
            grads[2] = Some(adjoint.call(&indices, &cx.input(1)?.conj()?, g)?);
        }
        Ok(grads)
    }
}

impl Derivative for Sampled {
    fn name(&self) -> &'static str {
        "SparseSampledAddmmBackward0"
    }
    fn save(&self, needs: Mask) -> Save {
        let mut save = Save::inputs([0]);
        save.inputs |= (needs >> 1 & 1) << 2 | (needs >> 2 & 1) << 1;
        save
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let (indices, transposed) = (cx.input(0)?, self.transposed);
        let mut grads = Grads::from_elem(None, 3);
        if cx.needs(1) {
            let rows = cx.input_meta(1)?.shape[0];
            let b = cx.input(2)?.conj()?;
            grads[1] = Some(Product { rows, transposed }.call(&indices, g, &b)?);
        }
        if cx.needs(2) {
            let (rows, transposed) = (cx.input_meta(2)?.shape[0], !transposed);
            let a = cx.input(1)?.conj()?;
            grads[2] = Some(Product { rows, transposed }.call(&indices, g, &a)?);
        }
        Ok(grads)
    }
}

fn result(shape: &[usize], x: &Meta) -> Metas {
    Metas::from_elem(TensorMeta::new(shape, x.dtype(), x.device()), 1)
}

/// Rows and columns of the entries.
fn sides(indices: &Tensor, transposed: bool) -> Result<[Tensor; 2]> {
    let (row, column) = (indices.select(0, 0)?, indices.select(0, 1)?);
    Ok(match transposed {
        true => [column, row],
        false => [row, column],
    })
}

impl Op for Product {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(result(&[self.rows, x[2].size(1)], x[2]))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let entries = Entries::read(x[0], self.transposed, self.rows, x[2].size(0))?;
        by_parts(x[1], x[2], &y[0], |v, b| {
            let y = Tensor::empty(y[0].shape(), v.dtype(), Device::Cpu)?;
            with_compute!(v.dtype(), T => {
                // SAFETY: contiguous host memory of this type; the result is this call's own.
                unsafe {
                    multiply::<T>(&entries, v.slice(), b.slice(), y.slice_mut(), b.size(1));
                }
            });
            Ok(y)
        })
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let [row, column] = sides(x[0], self.transposed)?;
        let terms = x[2].index_select(0, &column)?.mul(&x[1].unsqueeze(1)?)?;
        let y = super::places::put_rows(self.rows, &row, &terms, false, "IndexAddBackward0")?;
        Ok(Some(Tensors::from_buf([y])))
    }

    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        x[1].numel()
            .saturating_mul(x[2].size(1))
            .saturating_add(self.rows)
    }
}

impl Op for Sampled {
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        Ok(result(&[x[0].size(1)], x[1]))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let entries = Entries::read(x[0], self.transposed, x[1].size(0), x[2].size(0))?;
        by_parts(x[1], x[2], &y[0], |a, b| {
            let y = Tensor::empty(y[0].shape(), a.dtype(), Device::Cpu)?;
            with_compute!(a.dtype(), T => {
                // SAFETY: contiguous host memory of this type; the result is this call's own.
                unsafe { sample::<T>(&entries, a.slice(), b.slice(), y.slice_mut(), b.size(1)) };
            });
            Ok(y)
        })
    }

    fn decompose(&self, x: &[&Tensor]) -> Result<Option<Tensors>> {
        let [row, column] = sides(x[0], self.transposed)?;
        let (a, b) = (x[1].index_select(0, &row)?, x[2].index_select(0, &column)?);
        Ok(Some(Tensors::from_buf([a.mul(&b)?.sum_dim(1, false)?])))
    }

    fn work(&self, x: &[&Meta], _y: &[&Meta]) -> usize {
        x[0].size(1).saturating_mul(x[2].size(1))
    }
}

/// Calls `f`, which multiplies, on operands in the type that is computed in: once, or for the real
/// and imaginary parts.
fn by_parts(
    a: &Tensor,
    b: &Tensor,
    y: &Tensor,
    f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    if y.dtype() == DType::Bool {
        return Err(Error::no_loop(y.dtype()));
    }
    let (a, b) = (a.detach(), b.detach());
    if !y.dtype().is_complex() {
        let own = y.dtype().compute();
        return y.write_from(&f(&a.prepared(own)?, &b.prepared(own)?)?);
    }
    let part = |t: &Tensor, which: usize| {
        let part = t.prepared(y.dtype())?.component(which);
        part.prepared(part.dtype())
    };
    let (re, im) = ([part(&a, 0)?, part(&b, 0)?], [part(&a, 1)?, part(&b, 1)?]);
    y.component(0)
        .write_from(&f(&re[0], &re[1])?.sub(&f(&im[0], &im[1])?)?)?;
    y.component(1)
        .write_from(&f(&re[0], &im[1])?.add(&f(&im[0], &re[1])?)?)
}

/// Where entries lie in a matrix, in order of their rows.
struct Entries {
    /// Row and column of each entry, checked.
    at: Vec<(usize, usize)>,
    /// Entries by row, those of one row in their order; empty where that is the order they have.
    order: Vec<usize>,
    /// Where the entries of each row begin and, last, end.
    starts: Vec<usize>,
}

impl Entries {
    fn read(indices: &Tensor, transposed: bool, rows: usize, columns: usize) -> Result<Entries> {
        let (host, n) = (numbers(indices)?, indices.size(1));
        // SAFETY: contiguous host memory of this type.
        let (first, second) = unsafe { host.slice::<i64>() }.split_at(n);
        let (row, column) = match transposed {
            true => (second, first),
            false => (first, second),
        };
        let mut starts = alloc::full(0usize, rows + 1);
        let mut at = alloc::room(n);
        let mut sorted = true;
        for (&i, &j) in row.iter().zip(column) {
            if i < 0 || i as usize >= rows || j < 0 || j as usize >= columns {
                let shape = match transposed {
                    true => [columns, rows],
                    false => [rows, columns],
                };
                bail!(
                    Index,
                    "index ({i}, {j}) of a sparse matrix is out of bounds for shape {}",
                    crate::shape::Show(&shape)
                );
            }
            let (i, j) = (i as usize, j as usize);
            sorted &= at.last().is_none_or(|&(before, _)| before <= i);
            starts[i + 1] += 1;
            at.push((i, j));
        }
        for i in 0..rows {
            starts[i + 1] += starts[i];
        }
        let mut order = Vec::new();
        if !sorted {
            let mut next = alloc::gathered(starts.iter().copied());
            order = alloc::full(0usize, n);
            for (e, &(i, _)) in at.iter().enumerate() {
                order[next[i]] = e;
                next[i] += 1;
            }
        }
        Ok(Entries { at, order, starts })
    }

    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The entry that is the `k`th by row.
    #[inline(always)]
    fn entry(&self, k: usize) -> usize {
        self.order.get(k).copied().unwrap_or(k)
    }
}

per_isa! {
    /// Rows of `y`, from the `first` on, of rows of `b`; all have `width` elements.
    fn multiply_rows[T: Number](
        entries: &Entries, values: &[T], b: &[T], y: &mut [T], first: usize, width: usize
    ) {
        for (i, row) in y.chunks_mut(width).enumerate() {
            row.fill(T::default());
            for k in entries.starts[first + i]..entries.starts[first + i + 1] {
                let e = entries.entry(k);
                let (v, j) = (values[e], entries.at[e].1);
                for (y, &x) in row.iter_mut().zip(&b[j * width..(j + 1) * width]) {
                    *y = y.plus_product(v, x);
                }
            }
        }
    }
}

per_isa! {
    /// For entries from the `first` on the products of a row of `a` and one of `b`.
    fn sample_entries[T: Number](
        entries: &Entries, a: &[T], b: &[T], y: &mut [T], first: usize, width: usize
    ) {
        for (y, &(i, j)) in y.iter_mut().zip(&entries.at[first..]) {
            *y = dot(&a[i * width..(i + 1) * width], &b[j * width..(j + 1) * width]);
        }
    }
}

/// Partial sums, which are several vectors.
const LANES: usize = 16;

#[inline(always)]
fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::default(); LANES];
    let (mut a, mut b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (a, b) in (&mut a).zip(&mut b) {
        for k in 0..LANES {
            sums[k] = sums[k].plus_product(a[k], b[k]);
        }
    }
    let rest = a.remainder().iter().zip(b.remainder());
    let rest = rest.fold(T::default(), |sum, (&a, &b)| sum.plus_product(a, b));
    let one = <T as Element>::of_i64(1);
    sums.iter()
        .fold(rest, |sum, &part| sum.plus_product(one, part))
}

fn multiply<T: Number>(entries: &Entries, values: &[T], b: &[T], y: &mut [T], width: usize) {
    let (rows, each) = (entries.rows(), entries.at.len() / entries.rows().max(1) + 1);
    if width == 0 {
        return;
    }
    parallel_chunks(y, width, GRAIN / (each * width) + 1, |first, y| {
        multiply_rows(entries, values, b, y, first, width)
    });
    debug_assert_eq!(y.len(), rows * width);
}

fn sample<T: Number>(entries: &Entries, a: &[T], b: &[T], y: &mut [T], width: usize) {
    parallel_chunks(y, 1, GRAIN / width.max(1) + 1, |first, y| {
        sample_entries(entries, a, b, y, first, width)
    });
}
