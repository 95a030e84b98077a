//! From one sparse layout to another, lines of matrices, and tensors of zeros.

use super::arithmetic::give;
use super::entries::nothing;
use super::packed::Packed;
use crate::arg;
use crate::dtype::{default_dtype, DType, Scalar};
use crate::error::Result;
use crate::meta::Form;
use crate::ops::shape::create::Options;
use crate::schema::{Args, Dest, Signature, Value};
use crate::shape::{self, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};

/// `x` in another layout; errors begin with the conversion's name, of which `suffix` is the end.
fn convert(
    x: &Tensor,
    form: Form,
    block: Option<&[i64]>,
    rest: Option<i64>,
    suffix: &str,
) -> Result<Tensor> {
    let (from, to) = (x.form(), form);
    let name = match (from, suffix) {
        (from, _) if from == to => format!("to_sparse{suffix}"),
        (Form::Strided, _) => format!("dense_to_sparse{suffix}"),
        (Form::Coo, "") => "sparse_coo_to_sparse".to_string(),
        (Form::Coo, _) => format!("coo_to_sparse{suffix}"),
        _ => format!("sparse_compressed_to_sparse{suffix}"),
    };
    let what = format!("{name}: conversion from {} to {}", from.title(), to.title());
    if from == Form::Coo && to.is_packed() {
        ensure!(
            x.lead()? == 2,
            Runtime,
            "{what} for input tensors with sparse_dim()!=2 is not supported"
        );
    }
    let most = x.ndim() as i64 - 2 * to.is_packed() as i64;
    ensure!(
        from.is_sparse() || most >= 0,
        Index,
        "Dimension out of range (expected to be in range of [{}, {}], but got {}): {what} is of matrices",
        -(x.ndim().max(1) as i64),
        x.ndim().max(1) as i64 - 1,
        -2
    );
    let sides = match block {
        None => None,
        Some(&[h, w]) => {
            ensure!(
                h > 0 && w > 0,
                Runtime,
                "{name}: blocksize needs to be positive, but got [{h}, {w}]"
            );
            Some([h as usize, w as usize])
        }
        Some(other) => bail!(
            Runtime,
            "{name}: blocksize needs to be a tuple of size 2, but got {}",
            other.len()
        ),
    };
    ensure!(
        to.in_blocks() == sides.is_some(),
        Runtime,
        "{what} {} blocksize argument given is not supported",
        if to.in_blocks() { "without" } else { "with" }
    );
    if let Some(rest) = rest {
        ensure!(
            !from.is_sparse(),
            Runtime,
            "{what} with dense_dim argument given is not supported"
        );
        ensure!(
            (0..=most).contains(&rest),
            Runtime,
            "{name}: dense_dim argument must be in [0,{most}] range, but {rest} is given"
        );
    }
    let rest = rest.unwrap_or(0) as usize;
    if let Some(sides) = sides {
        let own = x.block()?.unwrap_or(sides);
        ensure!(
            own == sides,
            Runtime,
            "{what} with blocksize changed from {own:?} to {sides:?} is not supported"
        );
        let at = match from.is_sparse() {
            true => x.lead()? - 2,
            false => x.ndim() - rest - 2,
        };
        let size = [x.size(at), x.size(at + 1)];
        ensure!(
            size[0].is_multiple_of(sides[0]) && size[1].is_multiple_of(sides[1]),
            Runtime,
            "{name}: tensor sparse size ({},{}) must be divisible by given blocksize ({},{})",
            size[0],
            size[1],
            sides[0],
            sides[1]
        );
        ensure!(
            !from.is_packed() || from.in_blocks() || at == 0,
            Runtime,
            "{what} for batched inputs is not supported"
        );
    }
    ensure!(
        !from.in_blocks() || !to.is_packed() || to.in_blocks(),
        Runtime,
        "sparse_compressed_to_{}: expected SparseCsr or SparseCsc layout but got {}",
        to.name(),
        from.title()
    );
    x.in_form(to, sides, rest)
}

/// Coordinates in the first `lead` dimensions.
fn to_sparse_dim(x: &Tensor, lead: i64) -> Result<Tensor> {
    if x.is_sparse() {
        let own = match x.form() {
            Form::Coo => x.lead()? as i64,
            _ => 2,
        };
        ensure!(
            own == lead,
            Runtime,
            "{}: conversion from {} to Sparse with sparse_dim argument !={} is not supported; got {lead}",
            match x.form() {
                Form::Coo => "to_sparse",
                _ => "sparse_compressed_to_sparse",
            },
            x.form().title(),
            match x.form() {
                Form::Coo => "self.sparse_dim()",
                _ => "2",
            }
        );
        return x.list();
    }
    ensure!(
        lead != 0 || x.ndim() == 0,
        Runtime,
        "dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0"
    );
    ensure!(
        (0..=x.ndim() as i64).contains(&lead),
        Runtime,
        "dense_to_sparse: sparse_dim argument must be in [0,{}] range, but {lead} is given",
        x.ndim()
    );
    x.to_sparse(lead as usize)
}

/// The lines of the matrix that is the first argument, if it is told by them.
fn lines<Sig: Signature>(a: &Args<Sig>, by_rows: bool) -> Result<Packed> {
    let x = a.tensor(arg!(self))?;
    ensure!(
        x.form().is_packed() && x.form().by_rows() == by_rows,
        Runtime,
        "{} expected sparse {} compressed tensor layout but got {}, of shape {}; make it one with to_sparse_{}()",
        a.schema.name.trim_end_matches("_copy"),
        if by_rows { "row" } else { "column" },
        x.form().title(),
        Show(x.shape()),
        if by_rows { "csr" } else { "csc" }
    );
    x.raw_lines()
}

/// A copy of an argument's lines or places.
fn copied<Sig: Signature>(a: &Args<Sig>, by_rows: bool, starts: bool) -> Result<Value> {
    let own = lines(a, by_rows)?;
    let y = if starts { own.starts } else { own.plain }.copy_dense()?;
    match a.dest {
        Dest::New => Ok(y.into()),
        _ => give(a, y),
    }
}

/// Refuses a layout with blocks, whose size nothing tells.
fn without_blocks(name: &str, form: Form) -> Result<()> {
    ensure!(
        !form.in_blocks(),
        Runtime,
        "{name} expected sparse compressed (non-block) tensor layout but got {}; use \
         to_sparse(layout=, blocksize=) of a dense tensor",
        form.title()
    );
    Ok(())
}

/// Zeros without entries in this layout.
pub fn zeros(
    name: &str,
    size: &[usize],
    form: Form,
    dtype: DType,
    o: &Options,
    a: &Args,
) -> Result<Value> {
    let device = o.device_or(a);
    ensure!(
        !form.is_packed() || size.len() >= 2,
        Runtime,
        "torch.{}: Only batched sparse compressed (non-block) tensors are supported, but got size {}",
        a.schema.name.trim_start_matches("new_"),
        Show(size)
    );
    without_blocks(name, form)?;
    let y = match form {
        Form::Strided => Tensor::zeros(size, dtype, device)?,
        Form::Coo => nothing(size, size.len(), dtype, device)?,
        _ => nothing(size, size.len(), dtype, device)?.in_form(form, None, 0)?,
    };
    o.give_sparse(a, y)
}

/// Zeros of a size, or what `out` becomes.
fn of_size<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (size, o) = (shape::sizes(a.ints(arg!(size))?)?, Options::read(a)?);
    let dtype = o.dtype_or(a, default_dtype)?;
    if let Dest::Out(out) = a.dest {
        ensure!(
            out[0].is_sparse()
                && a.form(arg!(layout))
                    .is_none_or(|form| form == out[0].form()),
            Runtime,
            "{}: expected out of the layout that is asked for, got {}",
            a.schema.name,
            out[0].form().title()
        );
        let y = nothing(&size, size.len(), dtype, out[0].device())?;
        let y = y.in_form(out[0].form(), None, 0)?;
        let y = out[0].become_sparse(&y)?;
        if o.requires_grad {
            y.require_grad()?;
        }
        return Ok(y.into());
    }
    zeros(
        "zeros_sparse_compressed",
        &size,
        a.form(arg!(layout)).unwrap_or(Form::Coo),
        dtype,
        &o,
        a,
    )
}

/// Zeros of the first argument's type and layout, of another size.
fn anew<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, size, mut o) = (
        a.tensor(arg!(self))?,
        shape::sizes(a.ints(arg!(size))?)?,
        Options::read(a)?,
    );
    o.device = o.device.or(Some(x.device()));
    let dtype = o.dtype.unwrap_or(x.dtype());
    let form = a.form(arg!(layout)).unwrap_or(x.form());
    zeros("empty_sparse_compressed", &size, form, dtype, &o, a)
}

/// As the first argument: without entries where `fill` gives nothing, which is asked for matrices alone.
fn like<Sig: Signature>(
    a: &Args<Sig>,
    fill: impl Fn(&Tensor) -> Result<Tensor>,
    always: bool,
) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    let o = Options::read(a)?;
    let (dtype, device) = (o.dtype.unwrap_or(x.dtype()), o.device.unwrap_or(x.device()));
    let form = a.form(arg!(layout)).unwrap_or(x.form());
    if form == Form::Strided {
        let y = Tensor::zeros(x.shape(), dtype, device)?;
        let y = if always { fill(&y)? } else { y };
        return o.give_sparse(a, y);
    }
    if form == x.form() && form.is_packed() {
        let y = x
            .detach()
            .to_device(device)?
            .to_dtype(dtype)?
            .with_values(fill)?;
        return o.give_sparse(a, y.copy_sparse()?);
    }
    ensure!(
        !always,
        NotImplemented,
        "Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend: {} of a \
         sparse tensor would have every entry; call it of to_dense()",
        a.schema.name
    );
    without_blocks(a.schema.name, form)?;
    let lead = if x.is_sparse() { x.lead()? } else { x.ndim() };
    let y = nothing(x.shape(), lead, dtype, device)?;
    let y = if form.is_packed() {
        y.in_form(form, None, 0)?
    } else {
        y
    };
    o.give_sparse(a, y)
}

fn zeros_like<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    if a.form(arg!(layout)).unwrap_or(x.form()) != x.form() || !x.form().is_packed() {
        return like(a, |v| Ok(v.clone()), false);
    }
    let o = Options::read(a)?;
    let (dtype, device) = (o.dtype.unwrap_or(x.dtype()), o.device.unwrap_or(x.device()));
    let y = nothing(x.shape(), x.lead()?, dtype, device)?;
    o.give_sparse(a, y.like_form(x)?)
}

impl Options {
    /// [`Options::give`] of a result that may be sparse.
    fn give_sparse(&self, a: &Args, y: Tensor) -> Result<Value> {
        match (a.dest, y.is_sparse()) {
            (Dest::Out(_), true) => give(a, y),
            _ => self.give(a, y),
        }
    }
}

crate::entries! {
    /// The elements that are not zero, as a sparse tensor with coordinates in the first `sparse_dim`
    /// dimensions.
    "to_sparse(Tensor self, int sparse_dim) -> Tensor", METHOD | SPARSE,
    |a| Ok(to_sparse_dim(a.tensor(arg!(self))?, a.int(arg!(sparse_dim))?)?.into());
    /// The elements that are not zero, as a sparse tensor of any layout.
    "to_sparse(Tensor self, *, Layout? layout=None, int[]? blocksize=None, int? dense_dim=None) -> Tensor",
    METHOD | SPARSE,
    |a| {
        let form = a.form(arg!(layout)).unwrap_or(Form::Coo);
        Ok(convert(a.tensor(arg!(self))?, form, a.opt_ints(arg!(blocksize)), a.opt_int(arg!(dense_dim)), "")?.into())
    };
    /// The elements of a matrix that are not zero, by rows (layout `torch.sparse_csr`).
    "to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", METHOD | SPARSE,
    |a| Ok(convert(a.tensor(arg!(self))?, Form::Csr, None, a.opt_int(arg!(dense_dim)), "_csr")?.into());
    /// The elements of a matrix that are not zero, by columns (layout `torch.sparse_csc`).
    "to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor", METHOD | SPARSE,
    |a| Ok(convert(a.tensor(arg!(self))?, Form::Csc, None, a.opt_int(arg!(dense_dim)), "_csc")?.into());
    /// The blocks of a matrix that are not zero, by rows (layout `torch.sparse_bsr`).
    "to_sparse_bsr(Tensor self, int[] blocksize, int? dense_dim=None) -> Tensor", METHOD | SPARSE,
    |a| Ok(convert(a.tensor(arg!(self))?, Form::Bsr, Some(a.ints(arg!(blocksize))?), a.opt_int(arg!(dense_dim)), "_bsr")?.into());
    /// The blocks of a matrix that are not zero, by columns (layout `torch.sparse_bsc`).
    "to_sparse_bsc(Tensor self, int[] blocksize, int? dense_dim=None) -> Tensor", METHOD | SPARSE,
    |a| Ok(convert(a.tensor(arg!(self))?, Form::Bsc, Some(a.ints(arg!(blocksize))?), a.opt_int(arg!(dense_dim)), "_bsc")?.into());
    /// Where the entries of each row of a matrix by rows begin and, last, end.
    "crow_indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| Ok(lines(a, true)?.starts.into());
    /// The column of each entry of a matrix by rows.
    "col_indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| Ok(lines(a, true)?.plain.into());
    /// Where the entries of each column of a matrix by columns begin and, last, end.
    "ccol_indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| Ok(lines(a, false)?.starts.into());
    /// The row of each entry of a matrix by columns.
    "row_indices(Tensor self) -> Tensor", METHOD | SPARSE, |a| Ok(lines(a, false)?.plain.into());
    /// A copy of `crow_indices()`.
    "crow_indices_copy(Tensor self) -> Tensor", FN | OUT | SPARSE | DIRECT, |a| copied(a, true, true);
    /// A copy of `col_indices()`.
    "col_indices_copy(Tensor self) -> Tensor", FN | OUT | SPARSE | DIRECT, |a| copied(a, true, false);
    /// A copy of `ccol_indices()`.
    "ccol_indices_copy(Tensor self) -> Tensor", FN | OUT | SPARSE | DIRECT, |a| copied(a, false, true);
    /// A copy of `row_indices()`.
    "row_indices_copy(Tensor self) -> Tensor", FN | OUT | SPARSE | DIRECT, |a| copied(a, false, false);
    "zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | ALSO,
    zeros_like;
    "empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | ALSO,
    |a| like(a, |v| Ok(v.clone()), false);
    "ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | ALSO,
    |a| like(a, |v| Tensor::full(v.shape(), Scalar::Int(1), v.dtype(), v.device()), true);
    "full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | ALSO,
    |a| {
        let number = a.scalar(arg!(fill_value))?;
        like(a, |v| Tensor::full(v.shape(), number, v.dtype(), v.device()), true)
    };
    "zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", FN | OUT | ALSO,
    of_size;
    "empty(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False, MemoryFormat? memory_format=None) -> Tensor", FN | OUT | ALSO,
    of_size;
    "new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", METHOD | ALSO,
    anew;
    "new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? requires_grad=False) -> Tensor", METHOD | ALSO,
    anew;
}
