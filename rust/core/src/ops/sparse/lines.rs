//! Making matrices of lines, and what lines must be.

use super::packed::{self, Packed};
use super::places;
use crate::arg;
use crate::dtype::DType;
use crate::error::Result;
use crate::meta::Form;
use crate::schema::{Args, Signature, Value};
use crate::shape::{self, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};

/// What errors call lines and the places in them.
struct Names {
    starts: &'static str,
    plain: &'static str,
    line: &'static str,
    lines: &'static str,
    across: &'static str,
}

fn names(form: Form) -> Names {
    let (starts, plain) = match form.by_rows() {
        true => ("crow_indices", "col_indices"),
        false => ("ccol_indices", "row_indices"),
    };
    let (line, lines, across) = match (form.by_rows(), form.in_blocks()) {
        (true, false) => ("row", "nrows", "ncols"),
        (true, true) => ("row block", "nrows", "ncols"),
        (false, false) => ("column", "ncols", "nrows"),
        (false, true) => ("column block", "ncols", "nrows"),
    };
    Names {
        starts,
        plain,
        line,
        lines,
        across,
    }
}

/// Refuses lines whose shapes and types are not those of matrices of this size.
fn check_shapes(lines: &Packed, size: &[i64], form: Form) -> Result<()> {
    let Packed {
        starts,
        plain,
        values,
    } = lines;
    let n = names(form);
    for (name, x) in [(n.plain, plain), (n.starts, starts), ("values", values)] {
        ensure!(
            !x.is_sparse(),
            Runtime,
            "expected {name} to be a strided tensor but got {} tensor",
            x.form().title()
        );
    }
    ensure!(
        starts.ndim() >= 1,
        Runtime,
        "{} must have dimensionality >= 1 but got {}",
        n.starts,
        starts.ndim()
    );
    ensure!(
        starts.ndim() == plain.ndim(),
        Runtime,
        "{} and {} dimensionalities must be equal but got {} and {}, respectively",
        n.starts,
        n.plain,
        starts.ndim(),
        plain.ndim()
    );
    let (batch, block) = (starts.ndim() - 1, 2 * form.in_blocks() as usize);
    for (name, x) in [(n.plain, plain), (n.starts, starts)] {
        ensure!(
            x.size(batch) <= 1 || x.stride(batch) == 1,
            Runtime,
            "expected {name} to be a contiguous tensor per batch"
        );
    }
    ensure!(
        values.ndim() > batch + block,
        Runtime,
        "values must have dimensionality > sum of batch and block dimensionalities (={batch} + \
         {block}) but got {}",
        values.ndim()
    );
    let rest = values.ndim() - batch - block - 1;
    ensure!(
        size.len() == batch + 2 + rest,
        Runtime,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + \
         2 + {rest}) but got {}",
        size.len()
    );
    let sides = &values.shape()[batch + 1..batch + 1 + block];
    for (d, &side) in sides.iter().enumerate() {
        let own = size[batch + d];
        ensure!(
            side > 0 && own % side as i64 == 0,
            Runtime,
            "tensor shape[{}] (={own}) must be divisible with blocksize[{d}] (={side}) as defined \
             by values shape",
            batch + d
        );
    }
    let front = |x: &Tensor| Dims::from_slice(&x.shape()[..batch]);
    let same = |x: &Tensor| front(x).iter().zip(size).all(|(&a, &b)| a as i64 == b);
    ensure!(
        same(starts) && same(plain) && same(values),
        Runtime,
        "all batch dimensions of {} (={}), {} (={}), and values (={}) must be equal to tensor \
         batch dimensions (={:?})",
        n.starts,
        Show(&front(starts)),
        n.plain,
        Show(&front(plain)),
        Show(&front(values)),
        &size[..batch]
    );
    let at = batch + !form.by_rows() as usize;
    let side = sides.get(!form.by_rows() as usize).map_or(1, |&s| s as i64);
    let wanted = size[at] / side + 1;
    ensure!(
        starts.size(batch) as i64 == wanted,
        Runtime,
        "{}.shape[-1] must be equal to the number of {}s + 1 (={wanted}), but got {}",
        n.starts,
        n.line,
        starts.size(batch)
    );
    ensure!(
        plain.size(batch) == values.size(batch),
        Runtime,
        "{}.shape[-1] must be equal to nnz (={}) as defined by values.shape[{batch}], but got {}",
        n.plain,
        values.size(batch),
        plain.size(batch)
    );
    let dense = &values.shape()[batch + 1 + block..];
    ensure!(
        dense
            .iter()
            .zip(&size[batch + 2..])
            .all(|(&a, &b)| a as i64 == b),
        Runtime,
        "values must have the dense dimensions of the tensor: got {} and {:?}",
        Show(dense),
        &size[batch + 2..]
    );
    ensure!(
        starts.dtype() == plain.dtype(),
        Runtime,
        "{} and {} must have the same dtype, bot got {} and {}, respectively",
        n.starts,
        n.plain,
        starts.dtype().scalar_name(),
        plain.dtype().scalar_name()
    );
    ensure!(
        matches!(starts.dtype(), DType::I32 | DType::I64),
        Runtime,
        "{} and {} dtype must be Int or Long, but got {}",
        n.starts,
        n.plain,
        starts.dtype().scalar_name()
    );
    ensure!(
        starts.device() == values.device() && plain.device() == values.device(),
        Runtime,
        "device of {} (={}) must match device of values (={})",
        n.starts,
        starts.device(),
        values.device()
    );
    Ok(())
}

/// Refuses lines that do not begin at 0 or fall, and places outside of them; with `ordered`, also
/// those that are out of order or there twice.
fn check_numbers(
    starts: &Tensor,
    plain: &Tensor,
    form: Form,
    (across, entries): (i64, i64),
    ordered: bool,
) -> Result<()> {
    let (n, batch) = (names(form), starts.ndim() - 1);
    let (first, places) = (places::numbers(starts)?, places::numbers(plain)?);
    // SAFETY: contiguous host memory of this type.
    let (first, places) = unsafe { (first.slice::<i64>(), places.slice::<i64>()) };
    let (width, each) = (starts.size(batch).max(1), plain.size(batch));
    for (b, own) in first.chunks(width).enumerate() {
        ensure!(
            own[0] == 0,
            Runtime,
            "`{}[..., 0] == 0` is not satisfied.",
            n.starts
        );
        ensure!(
            own[own.len() - 1] == entries,
            Runtime,
            "`{}[..., -1] == nnz` is not satisfied.",
            n.starts
        );
        ensure!(
            own.windows(2)
                .all(|w| (0..=across).contains(&w[1].wrapping_sub(w[0]))),
            Runtime,
            "`0 <= {0}[..., 1:] - {0}[..., :-1] <= {1}` is not satisfied.",
            n.starts,
            n.across
        );
        let places = places.get(b * each..(b + 1) * each).unwrap_or(&[]);
        ensure!(
            places.iter().all(|i| (0..across).contains(i)),
            Runtime,
            "`0 <= {} < {}` is not satisfied.",
            n.plain,
            n.across
        );
        let line = |w: &[i64]| places.get(w[0] as usize..w[1] as usize).unwrap_or(&[]);
        ensure!(
            !ordered
                || own
                    .windows(2)
                    .all(|w| line(w).windows(2).all(|p| p[0] < p[1])),
            Runtime,
            "`{0}[..., {1}[..., i - 1]:{1}[..., i]] for all i = 1, ..., {2} are sorted and \
             distinct along the last dimension values` is not satisfied.",
            n.plain,
            n.starts,
            n.lines
        );
    }
    Ok(())
}

fn check_lines(lines: &Packed, size: &[i64], form: Form, ordered: bool) -> Result<()> {
    check_shapes(lines, size, form)?;
    let batch = lines.starts.ndim() - 1;
    let at = form.by_rows() as usize;
    let side = lines.block(form).map_or(1, |block| block[at]) as i64;
    let across = size[batch + at] / side;
    let entries = lines.values.size(batch) as i64;
    check_numbers(
        &lines.starts,
        &lines.plain,
        form,
        (across, entries),
        ordered,
    )
}

/// The least size that has all places of these lines.
fn fitting(lines: &Packed, form: Form) -> Result<Vec<i64>> {
    let (starts, plain, values) = (&lines.starts, &lines.plain, &lines.values);
    let block = 2 * form.in_blocks() as usize;
    ensure!(
        starts.ndim() > 0 && plain.ndim() > 0 && values.ndim() >= starts.ndim() + block,
        Runtime,
        "values must have dimensionality > sum of batch and block dimensionalities (={} + \
         {block}) but got {}",
        starts.ndim().saturating_sub(1),
        values.ndim()
    );
    let batch = starts.ndim() - 1;
    let host = places::numbers(plain)?;
    // SAFETY: contiguous host memory of this type.
    let across = unsafe { host.slice::<i64>() }
        .iter()
        .max()
        .map_or(0, |&i| i.saturating_add(1));
    let mut matrix = [starts.size(batch) as i64 - 1, across];
    if !form.by_rows() {
        matrix.swap(0, 1);
    }
    if let Some(block) = lines.block(form) {
        matrix = [0, 1].map(|d| matrix[d].saturating_mul(block[d] as i64));
    }
    let front = starts.shape()[..batch].iter().map(|&s| s as i64);
    let rest = values.shape()[batch + 1 + block..]
        .iter()
        .map(|&s| s as i64);
    Ok(front.chain(matrix).chain(rest).collect())
}

/// The matrices of these lines.
fn of_lines<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let form = a.form(arg!(layout)).filter(|form| form.is_packed());
    let Some(form) = form else {
        bail!(
            Runtime,
            "sparse_compressed_tensor expected sparse compressed tensor layout but got {}",
            a.form(arg!(layout)).map_or("none", Form::title)
        );
    };
    let lines = read_lines(a)?;
    let size = match a.opt_ints(arg!(size)) {
        Some(size) => size.to_vec(),
        None => fitting(&lines, form)?,
    };
    // Where nobody asked, places need no order, as in PyTorch, but must lie inside.
    match a.is_none(arg!(check_invariants)) || a.bool(arg!(check_invariants))? {
        true => check_lines(&lines, &size, form, !a.is_none(arg!(check_invariants)))?,
        false => check_shapes(&lines, &size, form)?,
    }
    Ok(packed::make(&shape::sizes(&size)?, form, lines)?.into())
}

/// The numbers of the lines, under the names that the layout gives them.
fn read_lines<Sig: Signature>(a: &Args<Sig>) -> Result<Packed> {
    let starts = arg!(crow_indices | ccol_indices | compressed_indices);
    let plain = arg!(col_indices | row_indices | plain_indices);
    Ok(Packed {
        starts: a.tensor(starts)?.clone(),
        plain: a.tensor(plain)?.clone(),
        values: a.tensor(arg!(values))?.clone(),
    })
}

/// Checks lines that are not made a tensor.
fn validate<Sig: Signature>(a: &Args<Sig>, form: Option<Form>) -> Result<Value> {
    let Some(form) = form.filter(|form| form.is_packed()) else {
        bail!(
            Runtime,
            "validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got {}",
            form.map_or("none", Form::title)
        );
    };
    check_lines(&read_lines(a)?, a.ints(arg!(size))?, form, true)?;
    Ok(Value::None)
}

crate::entries! {
    /// A sparse tensor of lines (layouts `torch.sparse_csr`, `sparse_csc`, `sparse_bsr` and `sparse_bsc`).
    "_sparse_compressed_tensor(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[]? size=None, Layout? layout=None, bool? check_invariants=None) -> Tensor",
    FN | SPARSE, of_lines;
    /// Raises where lines are not those of a sparse tensor of this size and layout.
    "_validate_sparse_compressed_tensor_args(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[] size, Layout layout, bool? check_pinning=None) -> ()",
    FN | SPARSE, |a| validate(a, a.form(arg!(layout)));
    /// Raises where rows are not those of a matrix of this size.
    "_validate_sparse_csr_tensor_args(Tensor crow_indices, Tensor col_indices, Tensor values, int[] size, bool? check_pinning=None) -> ()",
    FN | SPARSE, |a| validate(a, Some(Form::Csr));
    /// Raises where columns are not those of a matrix of this size.
    "_validate_sparse_csc_tensor_args(Tensor ccol_indices, Tensor row_indices, Tensor values, int[] size, bool? check_pinning=None) -> ()",
    FN | SPARSE, |a| validate(a, Some(Form::Csc));
    /// Raises where rows of blocks are not those of a matrix of this size.
    "_validate_sparse_bsr_tensor_args(Tensor crow_indices, Tensor col_indices, Tensor values, int[] size, bool? check_pinning=None) -> ()",
    FN | SPARSE, |a| validate(a, Some(Form::Bsr));
    /// Raises where columns of blocks are not those of a matrix of this size.
    "_validate_sparse_bsc_tensor_args(Tensor ccol_indices, Tensor row_indices, Tensor values, int[] size, bool? check_pinning=None) -> ()",
    FN | SPARSE, |a| validate(a, Some(Form::Bsc));
    /// Raises where numbers are not those of lines of a sparse matrix.
    "_validate_compressed_sparse_indices(bool is_crow, Tensor compressed_idx, Tensor plain_idx, int cdim, int dim, int nnz) -> ()",
    FN | SPARSE,
    |a| {
        let form = if a.bool(arg!(is_crow))? { Form::Csr } else { Form::Csc };
        let (starts, plain) = (a.tensor(arg!(compressed_idx))?, a.tensor(arg!(plain_idx))?);
        ensure!(
            starts.ndim() > 0 && starts.ndim() == plain.ndim() && starts.size(starts.ndim() - 1) > 0,
            Runtime,
            "_validate_compressed_sparse_indices: expected lines and places in them of one number \
             of dimensions, got shapes {} and {}",
            Show(starts.shape()),
            Show(plain.shape())
        );
        check_numbers(starts, plain, form, (a.int(arg!(dim))?, a.int(arg!(nnz))?), true)?;
        Ok(Value::None)
    };
}
