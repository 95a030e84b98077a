//! Sums, products and functions that leave zeros zero: all that works on values at coordinates.

use super::coo::{make, rows_of, values_at, with_rows, Parts};
use super::packed;
use super::places;
use crate::alloc;
use crate::arg;
use crate::autograd::mode;
use crate::dispatch;
use crate::dtype::{DType, Promotion, Scalar};
use crate::error::Result;
use crate::layout::Layout;
use crate::meta::Form;
use crate::op::Repeats;
use crate::ops::index::{Bounds, IndexPut, Mode};
use crate::ops::shape::join::cat;
use crate::schema::{Args, Dest, Signature, Value};
use crate::shape::{expandable, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

const ONE: Scalar = Scalar::Int(1);

/// Brings a result to its destination.
pub fn give(a: &Args, y: Tensor) -> Result<Value> {
    let (target, inplace) = match a.dest {
        Dest::New => return Ok(y.into()),
        Dest::InPlace => (a.first()?, true),
        Dest::Out(out) => (&out[0], false),
    };
    if inplace && !target.is_sparse() && y.is_sparse() {
        target.copy_from(&y.to_dense()?)?;
        return Ok(target.clone().into());
    }
    ensure!(
        target.is_sparse() == y.is_sparse(),
        Runtime,
        "{}: expected a {} tensor for the result, got a {} one",
        a.schema.name,
        kind(&y),
        kind(target)
    );
    ensure!(
        !inplace || target.shape() == y.shape(),
        Runtime,
        "output with shape {} doesn't match the broadcast shape {}",
        Show(target.shape()),
        Show(y.shape())
    );
    if target.is_sparse() {
        return Ok(target.become_sparse(&y)?.into());
    }
    if inplace {
        target.copy_from(&y)?;
        return Ok(target.clone().into());
    }
    Ok(dispatch::deliver(&y, target)?.into())
}

fn kind(x: &Tensor) -> &'static str {
    match x.is_sparse() {
        true => "sparse",
        false => "dense",
    }
}

fn promote(x: &Tensor, o: &Tensor) -> Result<DType> {
    let mut dtypes = Promotion::default();
    for t in [x, o] {
        dtypes.add(t.dtype(), t.ndim(), t.is_wrapped());
    }
    dtypes.result()
}

fn scaled(x: &Tensor, alpha: Scalar) -> Result<Tensor> {
    match alpha.f64() == 1.0 {
        true => Ok(x.clone()),
        false => Ok(x.mul_scalar(alpha)?.to_dtype(x.dtype())?),
    }
}

fn same_shape(x: &Tensor, o: &Tensor) -> Result<()> {
    ensure!(
        x.shape() == o.shape(),
        Runtime,
        "add: expected sizes of 'self' and 'other' to match, but {} != {}; a sum of sparse \
         tensors does not broadcast",
        Show(x.shape()),
        Show(o.shape())
    );
    Ok(())
}

/// A dense tensor plus the values of a sparse one at their coordinates.
fn into_rows(at: &Tensor, rows: &Tensor, values: &Tensor, into: bool) -> Result<Tensor> {
    let op = IndexPut {
        dims: SmallVec::from_elem(0, 1),
        mode: Mode::Add,
        bounds: Bounds::Select,
        repeats: Repeats::Refused,
        name: "AddBackward0",
    };
    match into {
        true => dispatch::call_into(op, &[rows, values, at], rows, true),
        false => op.call(rows, values, std::slice::from_ref(at)),
    }
}

impl Tensor {
    /// `self + alpha * o`, where one of them is sparse: dense where the other is dense.
    pub fn add_sparse(&self, o: &Tensor, alpha: Scalar) -> Result<Tensor> {
        one_sparse("add", self, o)?;
        let dtype = promote(self, o)?;
        match (self.is_sparse(), o.is_sparse()) {
            (true, true) => {}
            (true, false) if o.is_wrapped() => bail!(
                Runtime,
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead: a number \
                 would be added to every element of the sparse tensor of shape {}; convert it \
                 with to_dense()",
                Show(self.shape())
            ),
            (false, true) => {
                let dense = match self.shape() == o.shape() {
                    true => self.clone(),
                    false if expandable(self.shape(), o.shape()) && !self.is_wrapped() => {
                        self.expand_to(o.shape())?
                    }
                    false => bail!(
                        Runtime,
                        "add: expected 'self' and 'other' to have same size, but self has size {} \
                         while other has size {} (FYI: dense-sparse addition does not currently \
                         support broadcasting)",
                        Show(self.shape()),
                        Show(o.shape())
                    ),
                };
                let (at, values) = (o.rows()?, scaled(&o.entries()?.values, alpha)?);
                let (rows, rest) = rows_of(o.shape(), o.lead()?)?;
                let dense = dense.to_dtype(dtype)?.reshape_to(&with_rows(rows, rest))?;
                let y = into_rows(&at, &dense, &values.to_dtype(dtype)?, false)?;
                return y.reshape_to(o.shape());
            }
            _ => return scaled(o, alpha)?.add_sparse(self, ONE),
        }
        same_shape(self, o)?;
        let (x, o) = (&self.to_dtype(dtype)?, &o.to_dtype(dtype)?);
        let (a, b) = (x.entries()?, o.entries()?);
        ensure!(
            a.lead() == b.lead(),
            Runtime,
            "add: expected 'self' and 'other' to have same density, but 'self' has {} sparse \
             dimensions while 'other' has {} sparse dimensions",
            a.lead(),
            b.lead()
        );
        let same = a.indices.shares_storage(&b.indices) && a.indices.layout() == b.indices.layout();
        if same && self.form() == Form::Coo && o.form() == Form::Coo {
            let values = a.values.add(&scaled(&b.values, alpha)?)?;
            return make(self.shape(), Parts { values, ..a });
        }
        let y = make(
            self.shape(),
            Parts {
                indices: cat(&[a.indices, b.indices], 1)?,
                values: cat(&[a.values, scaled(&b.values, alpha)?], 0)?,
                coalesced: false,
            },
        )?;
        let packed = [self, o].into_iter().find(|t| t.form().is_packed());
        match packed {
            Some(like) => y.like_form(like),
            None if a.coalesced && b.coalesced => y.coalesced(),
            None => Ok(y),
        }
    }

    /// Adds `alpha * o`, which is sparse, in place.
    pub fn add_sparse_into(&self, o: &Tensor, alpha: Scalar) -> Result<()> {
        let recorded = mode::grad() && (self.requires_grad() || o.requires_grad());
        if self.is_sparse() || recorded || !self.is_contiguous() {
            let y = self.add_sparse(o, alpha)?;
            return match self.is_sparse() {
                // What is added to again and again, such as a momentum, must not grow.
                true => self.become_sparse(&y.coalesced()?).map(drop),
                false => self.copy_from(&y),
            };
        }
        same_shape(self, o)?;
        let parts = o.sparse_parts()?;
        let (rows, rest) = rows_of(o.shape(), parts.lead())?;
        let flat = Layout {
            offset: self.offset(),
            ..Layout::contiguous(&with_rows(rows, rest))
        };
        let dtype = promote(self, o)?;
        ensure!(
            dtype.can_cast(self.dtype()),
            Runtime,
            "result type {} can't be cast to the desired output type {}",
            dtype.scalar_name(),
            self.dtype().scalar_name()
        );
        let values = scaled(&parts.values, alpha)?.to_dtype(self.dtype())?;
        into_rows(&o.rows()?, &self.alias(flat), &values, true).map(drop)
    }

    /// The row that each entry has among all, where the dimensions with coordinates are one.
    pub fn rows(&self) -> Result<Tensor> {
        let parts = self.sparse_parts()?;
        places::places(&parts.indices, self.shape())?.to_device(self.device())
    }
}

fn negative(s: Scalar) -> Scalar {
    match s {
        Scalar::Int(i) => Scalar::Int(i.wrapping_neg()),
        Scalar::Bool(b) => Scalar::Int(-(b as i64)),
        other => Scalar::Float(-other.f64()),
    }
}

fn add<Sig: Signature>(a: &Args<Sig>, alpha: Scalar) -> Result<Value> {
    let (x, o) = (a.tensor(arg!(self))?, a.tensor(arg!(other))?);
    if let (Dest::InPlace, true) = (a.dest, o.is_sparse()) {
        x.check_inplace(mode::grad() && (x.requires_grad() || o.requires_grad()))?;
        x.add_sparse_into(o, alpha)?;
        return Ok(x.clone().into());
    }
    give(a, x.add_sparse(o, alpha)?)
}

/// A sparse tensor repeated to a larger shape.
pub fn broadcast(x: &Tensor, shape: &[usize]) -> Result<Tensor> {
    if x.shape()[..] == *shape {
        return Ok(x.clone());
    }
    let more = shape.len().saturating_sub(x.ndim());
    for (d, &size) in x.shape().iter().enumerate() {
        let wanted = shape.get(d + more).copied();
        ensure!(
            wanted == Some(size) || size == 1 && wanted.is_some(),
            Runtime,
            "The input's length {size} at dimension {d} does not broadcast over the requested \
             shape of length {} at dimension {}",
            wanted.unwrap_or(0),
            d + more
        );
    }
    let mut parts = x.entries()?;
    let (lead, home) = (parts.lead(), x.device());
    // Sizes of the dimensions that entries are repeated along, as rows of indices.
    let mut rows = Vec::new();
    for d in 0..lead + more {
        let grows = d < more || x.size(d - more) == 1 && shape[d] != 1;
        let n = parts.entries();
        if !grows {
            rows.push(parts.indices.narrow(0, (d - more) as i64, 1)?);
            continue;
        }
        let each = (0..n * shape[d]).map(|k| (k / n.max(1)) as i64);
        let each = Tensor::from_slice(&alloc::gathered(each), &[1, n * shape[d]], DType::I64)?;
        let again = (0..n * shape[d]).map(|k| (k % n.max(1)) as i64);
        let again = Tensor::from_slice(&alloc::gathered(again), &[n * shape[d]], DType::I64)?;
        let again = again.to_device(home)?;
        for row in &mut rows {
            *row = Tensor::index_select(row, 1, &again)?;
        }
        rows.push(each.to_device(home)?);
        parts.indices = parts.indices.index_select(1, &again)?;
        parts.values = parts.values.index_select(0, &again)?;
    }
    let values = with_rows(parts.entries(), &shape[lead + more..]);
    let parts = Parts {
        indices: cat(&rows, 0)?,
        values: parts.values.expand_to(&values)?,
        coalesced: false,
    };
    make(shape, parts)
}

/// Refuses two dense operands, whose result goes to a sparse tensor.
fn one_sparse(name: &str, x: &Tensor, o: &Tensor) -> Result<()> {
    ensure!(
        x.is_sparse() || o.is_sparse(),
        Runtime,
        "{name}: expected a sparse operand where out is sparse, got dense ones of shapes {} and {}",
        Show(x.shape()),
        Show(o.shape())
    );
    Ok(())
}

fn mul(x: &Tensor, o: &Tensor) -> Result<Tensor> {
    one_sparse("mul", x, o)?;
    if !x.is_sparse() || x.ndim() == 0 && o.is_sparse() && o.ndim() > 0 {
        return mul(o, x);
    }
    if o.ndim() == 0 {
        let o = o.to_dense()?;
        return x.with_values(|v| v.mul(&o));
    }
    if !o.is_sparse() {
        let both = [x.shape(), o.shape()].map(|s| s.as_slice());
        let shape = crate::shape::broadcast(both[0], both[1])?;
        let x = &broadcast(x, &shape)?;
        let o = o.expand_to(&shape)?;
        if x.form().is_packed() {
            let own = x.raw_lines()?;
            let (form, shape) = (x.form(), own.values.shape());
            let at = packed::values_at(&o, form, &own.starts, &own.plain, shape)?;
            return x.with_values(|v| v.mul(&at));
        }
        let at = values_at(&o, &x.sparse_parts()?.indices)?;
        return x.with_values(|v| v.mul(&at));
    }
    let (a, b) = (x.ordered_entries()?, o.ordered_entries()?);
    let lead = a.lead();
    ensure!(
        x.ndim() == o.ndim() && lead == b.lead() && x.shape()[..lead] == o.shape()[..lead],
        Runtime,
        "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, \
         number of sparse dimensions, and shape of sparse dimensions; got shapes {} and {} with \
         {lead} and {} sparse dimensions",
        Show(x.shape()),
        Show(o.shape()),
        b.lead()
    );
    let (of, at) = places::found(&a.indices, &b.indices, x.shape())?;
    let (of, at) = (of.to_device(x.device())?, at.to_device(x.device())?);
    let values = a.values.index_select(0, &of)?;
    let values = values.mul(&b.values.index_select(0, &at)?)?;
    let indices = b.indices.index_select(1, &at)?;
    let front = x.shape()[..lead].iter();
    let shape: Dims = front.chain(&values.shape()[1..]).copied().collect();
    let coalesced = true;
    let y = make(
        &shape,
        Parts {
            indices,
            values,
            coalesced,
        },
    )?;
    match [x, o].into_iter().find(|t| t.form().is_packed()) {
        Some(like) => y.like_form(like),
        None => Ok(y),
    }
}

fn div<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    divisor(a)?;
    // What is rounded is the quotient of a sum.
    match a.schema.name == "floor_divide" || arg!(rounding_mode?).is_some_and(|at| !a.is_none(at)) {
        true => on_values(a),
        false => on_each(a),
    }
}

/// What is divided and by what: a number.
fn divisor<'a, Sig: Signature>(a: &'a Args<Sig>) -> Result<(&'a Tensor, &'a Tensor)> {
    let (x, o) = (a.tensor(arg!(self))?, a.tensor(arg!(other))?);
    let what = match a.schema.name {
        "floor_divide" => "floor division",
        _ => "division",
    };
    ensure!(
        !o.is_sparse() || o.ndim() > 0,
        Runtime,
        "Sparse {what} requires a scalar or zero-dim dense tensor divisor (got a sparse divisor)"
    );
    ensure!(
        x.is_sparse() && o.ndim() == 0,
        Runtime,
        "Sparse {what} requires a scalar or zero-dim dense tensor divisor (got shape {} for divisor)",
        Show(o.shape())
    );
    Ok((x, o))
}

/// [`on_values`] of a function that in place wants each coordinate once, as its derivative or rounding
/// would not be that of a sum.
fn on_sums<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(self))?;
    if let (Dest::InPlace, Form::Coo) = (a.dest, x.form()) {
        ensure!(
            x.sparse_parts()?.coalesced,
            Runtime,
            "{}_ requires coalesced input; call coalesce() first",
            a.schema.name
        );
    }
    on_values(a)
}

/// [`on_values`] of a function of a sum that is the sum of what it makes of each term.
fn on_each<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    give(a, of_values(a, a.tensor(arg!(self))?)?)
}

/// What the function of dense tensors makes of the values, coordinates as they are.
fn on_values<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    give(a, of_values(a, &a.tensor(arg!(self))?.coalesced()?)?)
}

fn of_values(a: &Args, x: &Tensor) -> Result<Tensor> {
    let dense = crate::ops::table().iter().find(|op| {
        let takes_sparse = op.entry.flags & crate::schema::flag::SPARSE != 0;
        let params = (op.schema.params.len(), a.schema.params.len());
        op.schema.name == a.schema.name && !takes_sparse && params.0 == params.1
    });
    let Some(op) = dense else {
        bail!(Assertion, "{}: no function of dense tensors", a.schema.name);
    };
    x.with_values(|v| {
        let mut values = a.values().to_vec();
        values[0] = v.clone().into();
        match op.entry.invoke(&op.schema, &mut values, &Dest::New)? {
            Value::Tensor(y) => Ok(y),
            _ => bail!(Assertion, "{}: expected one tensor", a.schema.name),
        }
    })
}

/// A power leaves zeros where they are, unless the exponent is zero.
fn pow<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    ensure!(
        a.tensor(arg!(exponent))?.numel() == 1 && !a.tensor(arg!(exponent))?.is_sparse(),
        Runtime,
        "pow: the exponent of a sparse tensor must be a number, got {:?}; convert it with to_dense()",
        a.value(arg!(exponent))
    );
    ensure!(
        a.tensor(arg!(exponent))?.item()?.f64() != 0.0,
        Runtime,
        "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
    );
    on_values(a)
}

/// An operator with assignment.
fn into<Sig>(a: &Args<Sig>, f: fn(&Args<Sig>) -> Result<Value>) -> Result<Value> {
    f(&a.to(&Dest::InPlace))
}

fn quotient<Sig: Signature>(a: &Args<Sig>) -> Result<Value> {
    let (x, o) = divisor(a)?;
    give(a, x.with_values(|v| v.div(o))?)
}

crate::entries! {
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", ALL | ALSO,
    |a| add(a, a.scalar(arg!(alpha))?);
    "sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", ALL | ALSO,
    |a| add(a, negative(a.scalar(arg!(alpha))?));
    "subtract(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", ALL | ALSO,
    |a| add(a, negative(a.scalar(arg!(alpha))?));
    "mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO,
    |a| give(a, mul(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?);
    "multiply(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO,
    |a| give(a, mul(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?);
    "div(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor", ALL | ALSO,
    div;
    "divide(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
    ALL | ALSO, div;
    "true_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO, div;
    "floor_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO, div;
    "pow(Tensor self, Tensor|Scalar exponent) -> Tensor", ALL | ALSO, pow;
    "neg(Tensor self) -> Tensor", ALL | ALSO, on_each;
    "negative(Tensor self) -> Tensor", ALL | ALSO, on_each;
    "positive(Tensor self) -> Tensor", FN | METHOD | ALSO, on_each;
    "abs(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "absolute(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "sqrt(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "square(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "sin(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "tan(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "asin(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "arcsin(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "atan(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "arctan(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "sinh(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "tanh(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "asinh(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "arcsinh(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "atanh(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "arctanh(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "expm1(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "log1p(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "erf(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "erfinv(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "sign(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "sgn(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "signbit(Tensor self) -> Tensor", FN | METHOD | OUT | ALSO, on_values;
    "ceil(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "floor(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "round(Tensor self, *, int decimals=0) -> Tensor", ALL | ALSO, on_sums;
    "trunc(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "fix(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "frac(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "deg2rad(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "rad2deg(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "relu(Tensor self) -> Tensor", ALL | ALSO, on_sums;
    "conj_physical(Tensor self) -> Tensor", ALL | ALSO, on_each;
    "conj(Tensor self) -> Tensor", FN | METHOD | ALSO, on_each;
    /// A sparse tensor repeated to a larger shape.
    "_sparse_broadcast_to(Tensor self, int[] size) -> Tensor", FN | SPARSE,
    |a| Ok(broadcast(a.tensor(arg!(self))?, &crate::shape::sizes(a.ints(arg!(size))?)?)?.into());
    "__iadd__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD | ALSO, |a| into(a, |a| add(a, ONE));
    "__isub__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD | ALSO, |a| into(a, |a| add(a, Scalar::Int(-1)));
    "__imul__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD | ALSO, |a| into(a, |a| give(a, mul(a.tensor(arg!(self))?, a.tensor(arg!(other))?)?));
    "__itruediv__(Tensor self, Tensor|Scalar other) -> Tensor", METHOD | ALSO, |a| into(a, quotient);
    "isnan(Tensor self) -> Tensor", FN | METHOD | ALSO, on_values;
    "isposinf(Tensor self) -> Tensor", FN | METHOD | OUT | ALSO, on_values;
    "isneginf(Tensor self) -> Tensor", FN | METHOD | OUT | ALSO, on_values;
    "angle(Tensor self) -> Tensor", FN | METHOD | OUT | ALSO, on_values;
    "isinf(Tensor self) -> Tensor", FN | METHOD | ALSO, on_values;
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    ALL | ALSO, on_sums;
}
