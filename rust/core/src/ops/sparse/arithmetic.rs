//! Sums, products and functions that leave zeros zero: all that works on values at coordinates.

use super::coo::{make, rows_of, values_at, with_rows, Parts};
use super::places;
use crate::autograd::mode;
use crate::dispatch;
use crate::dtype::{DType, Promotion, Scalar};
use crate::error::Result;
use crate::layout::Layout;
use crate::op::Repeats;
use crate::ops::index::{Bounds, IndexPut, Mode};
use crate::ops::shape::join::cat;
use crate::schema::{Args, Dest, Value};
use crate::shape::{expandable, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

const ONE: Scalar = Scalar::Int(1);

/// Brings a result to its destination.
pub fn give(a: &Args, y: Tensor) -> Result<Value> {
    let (target, inplace) = match a.dest {
        Dest::New => return Ok(y.into()),
        Dest::InPlace => (a.tensor(0)?, true),
        Dest::Out(out) => (&out[0], false),
    };
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

fn same_shape(name: &str, x: &Tensor, o: &Tensor) -> Result<()> {
    ensure!(
        x.shape() == o.shape(),
        Runtime,
        "{name}: expected 'self' and 'other' to have same size, but self has size {} while other \
         has size {} (FYI: op(dense, sparse) with broadcasting is not supported)",
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
        let dtype = promote(self, o)?;
        match (self.is_sparse(), o.is_sparse()) {
            (true, true) => {}
            (false, true) => {
                let dense = match self.shape() == o.shape() {
                    true => self.clone(),
                    false if expandable(self.shape(), o.shape()) && !self.is_wrapped() => {
                        self.expand_to(o.shape())?
                    }
                    false => bail!(
                        Runtime,
                        "add: expected a dense tensor of the sparse one's shape {}, got {}; convert \
                         that with to_dense()",
                        Show(o.shape()),
                        Show(self.shape())
                    ),
                };
                let (at, values) = (o.rows()?, scaled(&o.entries()?.values, alpha)?);
                let (rows, rest) = rows_of(o.shape(), o.sparse_parts()?.lead())?;
                let dense = dense.to_dtype(dtype)?.reshape_to(&with_rows(rows, rest))?;
                let y = into_rows(&at, &dense, &values.to_dtype(dtype)?, false)?;
                return y.reshape_to(o.shape());
            }
            _ => return scaled(o, alpha)?.add_sparse(self, ONE),
        }
        same_shape("add", self, o)?;
        let (x, o) = (&self.to_dtype(dtype)?, &o.to_dtype(dtype)?);
        let (a, b) = (x.entries()?, o.entries()?);
        ensure!(
            a.lead() == b.lead(),
            Runtime,
            "add: expected 'self' and 'other' to have same number of sparse dimensions, got {} and {}",
            a.lead(),
            b.lead()
        );
        let y = make(
            self.shape(),
            Parts {
                indices: cat(&[a.indices, b.indices], 1)?,
                values: cat(&[a.values, scaled(&b.values, alpha)?], 0)?,
                coalesced: false,
            },
        )?;
        match a.coalesced && b.coalesced {
            true => y.coalesced()?.by_rows(self.is_by_rows() && o.is_by_rows()),
            false => Ok(y),
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
        same_shape("add", self, o)?;
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

fn add(a: &Args, alpha: Scalar) -> Result<Value> {
    let (x, o) = (a.tensor(0)?, a.tensor(1)?);
    if let (Dest::InPlace, true) = (a.dest, o.is_sparse()) {
        x.check_inplace(mode::grad() && (x.requires_grad() || o.requires_grad()))?;
        x.add_sparse_into(o, alpha)?;
        return Ok(x.clone().into());
    }
    give(a, x.add_sparse(o, alpha)?)
}

fn mul(x: &Tensor, o: &Tensor) -> Result<Tensor> {
    if !x.is_sparse() {
        return mul(o, x);
    }
    if !o.is_sparse() {
        if o.ndim() == 0 {
            return x.with_values(|v| v.mul(o));
        }
        ensure!(
            expandable(o.shape(), x.shape()),
            Runtime,
            "mul: expected a dense tensor that broadcasts to the sparse one's shape {}, got {}",
            Show(x.shape()),
            Show(o.shape())
        );
        let at = values_at(&o.expand_to(x.shape())?, &x.sparse_parts()?.indices)?;
        return x.with_values(|v| v.mul(&at));
    }
    same_shape("mul", x, o)?;
    let (a, b) = (x.coalesced()?.entries()?, o.coalesced()?.entries()?);
    ensure!(
        a.lead() == b.lead(),
        Runtime,
        "mul: expected 'self' and 'other' to have same number of sparse dimensions, got {} and {}",
        a.lead(),
        b.lead()
    );
    let (of, at) = places::found(&a.indices, &b.indices, x.shape())?;
    let (of, at) = (of.to_device(x.device())?, at.to_device(x.device())?);
    let values = a.values.index_select(0, &of)?;
    let values = values.mul(&b.values.index_select(0, &at)?)?;
    let indices = b.indices.index_select(1, &at)?;
    let coalesced = true;
    make(
        x.shape(),
        Parts {
            indices,
            values,
            coalesced,
        },
    )
}

fn div(a: &Args) -> Result<Value> {
    let (x, o) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(
        x.is_sparse() && !o.is_sparse() && o.ndim() == 0,
        Runtime,
        "div: Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {} for \
         divisor)",
        Show(o.shape())
    );
    on_values(a)
}

/// What the function of dense tensors makes of the values, coordinates as they are.
fn on_values(a: &Args) -> Result<Value> {
    let dense = crate::ops::table().iter().find(|op| {
        let takes_sparse = op.entry.flags & crate::schema::flag::SPARSE != 0;
        let params = (op.schema.params.len(), a.schema.params.len());
        op.schema.name == a.schema.name && !takes_sparse && params.0 == params.1
    });
    let Some(op) = dense else {
        bail!(Assertion, "{}: no function of dense tensors", a.schema.name);
    };
    let y = a.tensor(0)?.coalesced()?.with_values(|v| {
        let mut values = a.values.to_vec();
        values[0] = v.clone().into();
        match op.entry.invoke(&op.schema, &mut values, &Dest::New)? {
            Value::Tensor(y) => Ok(y),
            _ => bail!(Assertion, "{}: expected one tensor", a.schema.name),
        }
    })?;
    give(a, y)
}

/// A power leaves zeros zero where the exponent is positive.
fn pow(a: &Args) -> Result<Value> {
    ensure!(
        a.tensor(1)?.numel() == 1 && a.tensor(1)?.item()?.f64() > 0.0,
        Runtime,
        "pow: the exponent of a sparse tensor must be positive, got {:?}; convert it with to_dense()",
        a.values[1]
    );
    on_values(a)
}

crate::entries! {
    "add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", ALL | ALSO,
    |a| add(a, a.scalar(2)?);
    "sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", ALL | ALSO,
    |a| add(a, negative(a.scalar(2)?));
    "subtract(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", ALL | ALSO,
    |a| add(a, negative(a.scalar(2)?));
    "mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO,
    |a| give(a, mul(a.tensor(0)?, a.tensor(1)?)?);
    "multiply(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO,
    |a| give(a, mul(a.tensor(0)?, a.tensor(1)?)?);
    "div(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor", ALL | ALSO,
    div;
    "divide(Tensor|Scalar self, Tensor|Scalar other, *, str? rounding_mode=None) -> Tensor",
    ALL | ALSO, div;
    "true_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO, div;
    "floor_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor", ALL | ALSO, div;
    "pow(Tensor self, Tensor|Scalar exponent) -> Tensor", ALL | ALSO, pow;
    "neg(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "negative(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "positive(Tensor self) -> Tensor", FN | METHOD | ALSO, on_values;
    "abs(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "absolute(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "sqrt(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "square(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "sin(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "tan(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "asin(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "arcsin(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "atan(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "arctan(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "sinh(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "tanh(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "asinh(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "arcsinh(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "atanh(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "arctanh(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "expm1(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "log1p(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "erf(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "erfinv(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "sign(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "sgn(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "signbit(Tensor self) -> Tensor", FN | METHOD | OUT | ALSO, on_values;
    "ceil(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "floor(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "round(Tensor self, *, int decimals=0) -> Tensor", ALL | ALSO, on_values;
    "trunc(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "fix(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "frac(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "deg2rad(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "rad2deg(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "relu(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "conj_physical(Tensor self) -> Tensor", ALL | ALSO, on_values;
    "isnan(Tensor self) -> Tensor", FN | METHOD | ALSO, on_values;
    "isinf(Tensor self) -> Tensor", FN | METHOD | ALSO, on_values;
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    ALL | ALSO, on_values;
}
