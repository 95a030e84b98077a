//! Forward mode: tangents beside values. A tensor that carries a tangent has the memory of its values, and
//! stands for two tensors below the interpreter that follows it: the primal and the tangent, with the
//! histories that these have. So gradients pass both through what is followed and within it.

mod linear;
mod transposed;

pub use linear::Linear;

use crate::autograd::jvp::Followed;
use crate::autograd::{mode, Dual, Jvp, Tangent, Tangents};
use crate::batch;
use crate::dispatch::{self, InForce, Interpreter, Record, Request, RequestKind};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{function_name, Derivative, Op, Tensors};
use crate::ops::shape::view::AsStrided;
use crate::shape::Strides;
use crate::tensor::{Creation, Tensor};
use crate::{bail, ensure};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A level of forward mode: an interpreter that follows the tangents of tensors that are its own.
pub struct Forward {
    level: u64,
    me: Weak<Forward>,
    /// Tensors that got a tangent by being written to.
    written: Mutex<Vec<Tensor>>,
}

/// What tensors are below an interpreter: primals, and tangents where they have any.
struct Parts {
    x: SmallVec<[Tensor; 4]>,
    t: SmallVec<[Option<Tensor>; 4]>,
}

impl Parts {
    fn refs(&self) -> SmallVec<[&Tensor; 4]> {
        self.x.iter().collect()
    }
    fn moves(&self) -> bool {
        self.t.iter().any(Option::is_some)
    }

    /// Whether gradients of these may be asked for.
    fn tracked(&self) -> bool {
        mode::grad()
            && self
                .x
                .iter()
                .chain(self.t.iter().flatten())
                .any(batch::tracked)
    }

    /// The same, with copies of what lies in the memory of `y`, which is written to.
    fn apart(&self, logical: &[&Tensor], y: &[Tensor]) -> Result<Parts> {
        let written = |k: usize| y.iter().any(|y| y.shares_storage(logical[k]));
        let copy = |k: usize, t: &Tensor| match written(k) {
            true => t.copy_dense(),
            false => Ok(t.clone()),
        };
        let x = self.x.iter().enumerate().map(|(k, t)| copy(k, t));
        let t = self.t.iter().enumerate();
        let t = t.map(|(k, t)| t.as_ref().map(|t| copy(k, t)).transpose());
        Ok(Parts {
            x: x.collect::<Result<_>>()?,
            t: t.collect::<Result<_>>()?,
        })
    }
}

impl Forward {
    pub fn new() -> Arc<Forward> {
        static LEVEL: AtomicU64 = AtomicU64::new(1);
        Arc::new_cyclic(|me| Forward {
            level: LEVEL.fetch_add(1, Ordering::Relaxed),
            me: me.clone(),
            written: Mutex::default(),
        })
    }

    /// Begins to follow what the thread computes.
    pub fn start(this: &Arc<Forward>) {
        InForce::here().above(this.clone()).put();
    }

    /// Ends that.
    pub fn stop(this: &Arc<Forward>) {
        let me: Arc<dyn Interpreter> = this.clone();
        InForce::here().without(&me).put();
    }

    /// Tensors from outside that got a tangent by being written to, and that others than `inside` have.
    pub fn captured(&self, inside: &[Tensor]) -> bool {
        let written = std::mem::take(&mut *self.written.lock());
        written.into_iter().any(|t| {
            let known = inside.iter().any(|i| i.shares_storage(&t));
            !known && t.handles() > 1
        })
    }

    /// A tensor like `x`, in its memory, with a tangent.
    pub fn enter(&self, x: &Tensor, tangent: Option<&Tensor>) -> Result<Tensor> {
        let primal = match x.layout().overlaps_itself() {
            // Its elements have tangents of their own.
            true => x.copy_dense()?,
            false => x.clone(),
        };
        let tangent = match tangent {
            Some(t) => Tangent::Some(fit(t, &primal, &[])?),
            None => Tangent::None,
        };
        Ok(self.one(&primal, tangent))
    }

    /// Gives `x` a tangent, or another one.
    pub fn give(&self, x: &Tensor, tangent: Option<&Tensor>) -> Result<()> {
        let primal = match self.own(x) {
            Some(d) => under(&d.primal, d.primal.layout(), x)?,
            None => below(x)?,
        };
        let tangent = match tangent {
            Some(t) => Tangent::Some(fit(t, &primal, &[])?),
            None => Tangent::None,
        };
        x.set_dual(self.dual(primal, tangent));
        Ok(())
    }

    /// What a tensor is below this level, and its tangent if it has one.
    pub fn leave(&self, x: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let Some(d) = self.own(x) else {
            return Ok((x.clone(), None));
        };
        self.part(&d, x)
    }

    /// Whether it is a tensor of this level.
    pub fn has(&self, x: &Tensor) -> bool {
        self.own(x).is_some()
    }

    fn own(&self, x: &Tensor) -> Option<Arc<Dual>> {
        let mut dual = x.dual().filter(|_| x.dtype().differentiable())?;
        // A level that has ended may have left one on top.
        while dual.level != self.level {
            dual = dual.primal.dual()?;
        }
        Some(dual)
    }

    fn part(&self, d: &Dual, x: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let base = d.primal.layout();
        let primal = under(&d.primal, base, x)?;
        let tangent = d.tangent.lock().clone();
        let tangent = match tangent {
            Tangent::None => None,
            Tangent::Some(t) => Some(under(&t, base, x)?),
            Tangent::Lost(name) => return unknown(name, ""),
        };
        Ok((primal, tangent))
    }

    fn parts(&self, x: &[&Tensor]) -> Result<Parts> {
        let on = mode::forward();
        let mut parts = Parts {
            x: SmallVec::new(),
            t: SmallVec::new(),
        };
        for t in x {
            let (x, t) = self.leave(t)?;
            parts.x.push(x);
            parts.t.push(t.filter(|_| on));
        }
        Ok(parts)
    }

    fn dual(&self, primal: Tensor, tangent: Tangent) -> Arc<Dual> {
        Arc::new(Dual {
            level: self.level,
            primal,
            tangent: Mutex::new(tangent),
        })
    }

    fn one(&self, primal: &Tensor, tangent: Tangent) -> Tensor {
        let y = primal.alias(primal.layout().clone());
        y.set_dual(self.dual(primal.clone(), tangent));
        y
    }

    /// Results that have no tangent.
    fn still(&self, op: &dyn Op, y: Tensors, tangent: &Tangent) -> Tensors {
        let carries = |k: usize, t: &Tensor| tracked(op, k, t);
        let each = y.into_iter().enumerate();
        each.map(|(k, t)| match carries(k, &t) {
            true => self.one(&t, tangent.clone()),
            false => t,
        })
        .collect()
    }

    fn compute(&self, op: &dyn Op, x: &[&Tensor]) -> Result<Tensors> {
        let parts = self.parts(x)?;
        let x = parts.refs();
        if let Some(y) = op.batching().and_then(|b| b.find(&x)) {
            let tangent = match parts.moves() {
                true => Tangent::Lost(op.name()),
                false => Tangent::None,
            };
            return Ok(self.still(op, y?, &tangent));
        }
        if !parts.moves() {
            let y = dispatch::call_kept(op.keep(), &x)?;
            return Ok(self.still(op, y, &Tangent::None));
        }
        let (y, t) = self.followed(op, &x, &parts.t)?;
        let mut all = Tensors::new();
        for (k, mut y) in y.into_iter().enumerate() {
            if y.layout().overlaps_itself() {
                // Its elements have tangents of their own.
                y = y.copy_dense()?;
            }
            all.push(match tracked(op, k, &y) {
                true => {
                    let t = slope(t.get(k).and_then(Option::as_ref), &y, &parts.t)?;
                    self.one(&y, Tangent::Some(t))
                }
                false => y,
            });
        }
        Ok(all)
    }

    /// The results of an op, and their tangents: by its rule, as a linear op, or by two transposes.
    fn followed(&self, op: &dyn Op, x: &[&Tensor], t: &[Option<Tensor>]) -> Result<Followed> {
        let by_ops = |f: &dyn Fn(&[&Tensor]) -> Result<Tensors>| self.by_ops(x, t, f);
        let cx = Jvp::new(op, x, t, &by_ops);
        let mut rule = op.jvp(&cx)?;
        let linear = op.traits().linear;
        if rule.is_none() && !linear.is_empty() {
            rule = cx.linear(linear)?;
        }
        if let Some(t) = rule {
            cx.outputs()?;
            return Ok((cx.computed().unwrap_or_default(), t));
        }
        let run = |x: &[&Tensor]| dispatch::call_kept(op.keep(), x);
        transposed::along(op.name(), &run, x, t)
    }

    /// Follows what `f` computes of inputs with tangents.
    fn by_ops(
        &self,
        x: &[&Tensor],
        t: &[Option<Tensor>],
        f: &dyn Fn(&[&Tensor]) -> Result<Tensors>,
    ) -> Result<Followed> {
        let Some(me) = self.me.upgrade() else {
            bail!(Assertion, "forward mode: the level has ended");
        };
        let one = |(x, t): (&&Tensor, &Option<Tensor>)| match t {
            Some(t) => self.one(x, Tangent::Some(t.clone())),
            None => (*x).clone(),
        };
        let inside: SmallVec<[Tensor; 4]> = x.iter().zip(t).map(one).collect();
        let inside: SmallVec<[&Tensor; 4]> = inside.iter().collect();
        let found = dispatch::interpreted(me, || f(&inside))?;
        let (mut y, mut along) = (Tensors::new(), Tangents::new());
        for t in &found {
            let (primal, tangent) = self.leave(t)?;
            y.push(primal);
            along.push(tangent);
        }
        Ok((y, along))
    }

    fn views(
        &self,
        op: &dyn Derivative,
        x: &Tensor,
        layouts: &[Layout],
        creation: Creation,
        request: &Request,
    ) -> Result<Tensors> {
        let RequestKind::View { dtype, .. } = request.kind else {
            bail!(Assertion, "forward mode: expected a view");
        };
        if op.severs() {
            let (primal, _) = self.leave(x)?;
            let request = Request {
                x: &[&primal],
                kind: request.kind,
            };
            return dispatch::apply(&request);
        }
        // They find primal and tangent by their layouts.
        let view = |l: &Layout| x.view_as(l.clone(), dtype, creation);
        Ok(layouts.iter().map(view).collect())
    }

    /// Writes the results of an op to `y`, and their tangents to those of `y`.
    fn into(&self, op: &dyn Op, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let parts = self.parts(x)?;
        let moves = parts.moves();
        let own: SmallVec<[Option<Arc<Dual>>; 1]> = y.iter().map(|t| self.own(t)).collect();
        let primals: SmallVec<[Tensor; 1]> = (y.iter().zip(&own))
            .map(|(y, d)| match d {
                Some(d) => under(&d.primal, d.primal.layout(), y),
                None => Ok(y.clone()),
            })
            .collect::<Result<_>>()?;
        if moves && !x.iter().any(|x| y.iter().any(|y| y.same(x))) {
            if (0..y.len()).all(|k| !tracked(op, k, &y[k])) {
                return dispatch::compute_into(op, &parts.refs(), &primals);
            }
            bail!(
                NotImplemented,
                "Trying to use forward AD with {}_out that does not support it because it is an out= \
                 function",
                function_name(op.name())
            );
        }
        if !mode::forward() {
            // Tangents stay as they are.
            return plainly(op, &parts, x, y, &primals);
        }
        let versions: SmallVec<[u32; 1]> = y.iter().map(Tensor::version).collect();
        self.write(op, &parts, x, y, &own, &primals)?;
        // Whoever asked counts the change.
        for (t, version) in y.iter().zip(versions) {
            if t.version() != version {
                t.set_version(version);
            }
        }
        Ok(())
    }

    fn write(
        &self,
        op: &dyn Op,
        parts: &Parts,
        logical: &[&Tensor],
        y: &[Tensor],
        own: &[Option<Arc<Dual>>],
        primals: &[Tensor],
    ) -> Result<()> {
        let statistics = y.len() > 1;
        if op.traits().draws || !parts.moves() || statistics {
            plainly(op, parts, logical, y, primals)?;
            return match statistics {
                true => Ok(()),
                false => own.iter().zip(y).try_for_each(|(d, y)| match d {
                    Some(d) => self.write_tangent(d, y, None),
                    None => Ok(()),
                }),
            };
        }
        // What is written may be what gradients read.
        let copies = match parts.tracked() {
            true => Some(parts.apart(logical, y)?),
            false => None,
        };
        let parts = copies.as_ref().unwrap_or(parts);
        let (found, t) = self.followed(op, &parts.refs(), &parts.t)?;
        let pairs = primals.iter().zip(y).zip(own).zip(found.iter().zip(t));
        for (((primal, y), dual), (found, t)) in pairs {
            // What was written may be what a tangent reads.
            let t = t.map(|t| fit(&t, found, &parts.t)).transpose()?;
            primal.copy_from(found)?;
            if !y.dtype().differentiable() {
                continue;
            }
            match dual {
                Some(d) => self.write_tangent(d, y, t.as_ref())?,
                None => self.begin(y, t.as_ref())?,
            }
        }
        Ok(())
    }

    /// Writes to what has no tangent yet: it gets one, of zeros but for what is written, with all that it is
    /// a view of.
    fn begin(&self, y: &Tensor, t: Option<&Tensor>) -> Result<()> {
        let base = y.view_of().map_or(y, |v| &v.base);
        self.written.lock().push(base.clone());
        let dual = self.dual(below(base)?, Tangent::None);
        base.set_dual(dual.clone());
        if base.same(y) || y.dual().is_some_and(|d| Arc::ptr_eq(&d, &dual)) {
            return self.write_tangent(&dual, y, t);
        }
        y.set_dual(dual.clone());
        self.write_tangent(&dual, y, t)
    }

    /// Writes to the tangent of `y`, which is made where it is missing.
    fn write_tangent(&self, d: &Dual, y: &Tensor, t: Option<&Tensor>) -> Result<()> {
        let (old, base) = (d.tangent.lock().clone(), d.primal.layout());
        let Some(new) = t else {
            if let Tangent::Some(old) = old {
                under(&old, base, y)?.fill_(0.into(), "zero_")?;
            }
            return Ok(());
        };
        let wide = |old: Option<&Tensor>| -> Result<Tensor> {
            let like = &d.primal;
            let beside = match old {
                Some(old) => new.beside(old)?,
                None => new.clone(),
            };
            let zeros = beside.blank(like.shape(), 0.into(), new.dtype(), like.device())?;
            let whole = zeros.copy_with_layout(base)?;
            if let Some(old) = old {
                whole.copy_from(old)?;
            }
            under(&whole, base, y)?.copy_from(new)?;
            Ok(whole)
        };
        let whole = match old {
            Tangent::Some(old) if batch::covers(&old, new) => {
                return under(&old, base, y)?.copy_from(new);
            }
            Tangent::Some(old) => wide(Some(&old))?,
            _ => wide(None)?,
        };
        let old = std::mem::replace(&mut *d.tangent.lock(), Tangent::Some(whole));
        drop(old);
        Ok(())
    }
}

/// Writes the results of an op below a level: in place where it was asked for so.
fn plainly(
    op: &dyn Op,
    parts: &Parts,
    x: &[&Tensor],
    y: &[Tensor],
    primals: &[Tensor],
) -> Result<()> {
    let mut refs = parts.refs();
    match (x.first(), y, primals) {
        (Some(first), [y], [to]) if first.same(y) => {
            refs[0] = to;
            dispatch::call_kept_into(&op.keep(), &refs, to, true).map(drop)
        }
        _ => dispatch::compute_into(op, &refs, primals),
    }
}

/// Raises where the tangent of a function is not known.
pub(crate) fn unknown<T>(name: &str, why: &str) -> Result<T> {
    let colon = if why.is_empty() { "" } else { ": " };
    bail!(
        NotImplemented,
        "Trying to use forward AD with {} that does not support it because it has not been implemented \
         yet{colon}{why}",
        function_name(name)
    )
}

/// Whether output `k` may have a tangent.
fn tracked(op: &dyn Op, k: usize, y: &Tensor) -> bool {
    let detached = k < 64 && op.traits().detached >> k & 1 == 1;
    y.dtype().differentiable() && !detached
}

/// The same memory with the same history, as a view of nothing.
fn below(x: &Tensor) -> Result<Tensor> {
    let y = x.alias(x.layout().clone());
    if let Some(edge) = x.edge()? {
        y.set_edge(edge);
    }
    Ok(y)
}

/// Of a tensor that lies in memory as one with layout `base` does, what `x` is of that.
fn under(of: &Tensor, base: &Layout, x: &Tensor) -> Result<Tensor> {
    placed(of, base, x.layout(), x.dtype())
}

/// The same of what has such a layout and type.
fn placed(of: &Tensor, base: &Layout, layout: &Layout, dtype: DType) -> Result<Tensor> {
    if layout == base && dtype == of.dtype() {
        return Ok(of.clone());
    }
    let (whole, start) = match (of.dtype().is_complex(), dtype.is_complex()) {
        (true, false) => (of.as_real()?, 2 * base.offset),
        (false, true) => (of.as_complex()?, base.offset / 2),
        _ => (of.clone(), base.offset),
    };
    let mut view = layout.clone();
    let at = (whole.offset() + view.offset).checked_sub(start);
    view.offset = at.unwrap_or(usize::MAX / 2);
    ensure!(
        whole.dtype() == dtype && at.is_some() && view.extent()? <= whole.capacity(),
        NotImplemented,
        "forward AD: expected a view of what carries a tangent, got elements of the same memory that lie \
         beside that, or are read as another type"
    );
    let op = AsStrided {
        base: whole.layout().clone(),
        view: view.clone(),
    };
    dispatch::view_under(&whole, view, dtype, || Ok(op))
}

/// Strides as far as they matter.
fn alike(shape: &[usize], a: &Strides, b: &Strides) -> bool {
    let mut each = shape.iter().zip(a.iter().zip(b.iter()));
    each.all(|(&n, (a, b))| a == b || n == 1) || shape.contains(&0)
}

/// A tangent in the type, shape and layout of its primal, in memory that it shares with no other's.
fn fit(t: &Tensor, y: &Tensor, others: &[Option<Tensor>]) -> Result<Tensor> {
    let mut t = t.clone();
    if t.dtype().is_complex() && !y.dtype().is_complex() {
        t = t.as_real()?.select(-1, 0)?;
    }
    t = t.to_dtype(y.dtype())?;
    if t.device() != y.device() {
        t = t.to_device(y.device())?;
    }
    if t.shape() != y.shape() {
        t = t.expand_to(y.shape())?;
    }
    let taken = |o: &Tensor| o.shares_storage(&t) || (t.stands() && t.view_of().is_some());
    let own = !t.shares_storage(y) && !others.iter().flatten().any(taken);
    match own && alike(t.shape(), t.strides(), y.strides()) && !t.layout().overlaps_itself() {
        true => Ok(t),
        false => t.copy_with_layout(y.layout()),
    }
}

/// The tangent of a result; zeros where its rule gave none.
fn slope(t: Option<&Tensor>, y: &Tensor, others: &[Option<Tensor>]) -> Result<Tensor> {
    match t {
        Some(t) => fit(t, y, others),
        None => {
            Tensor::full(y.shape(), 0.into(), y.dtype(), y.device())?.copy_with_layout(y.layout())
        }
    }
}

impl Interpreter for Forward {
    fn apply(&self, request: &Request) -> Result<Tensors> {
        let own = |t: &Tensor| self.own(t).is_some();
        let mut takes_part = request.x.iter().any(|t| own(t));
        if let RequestKind::Into { y, .. } = request.kind {
            takes_part |= y.iter().any(own);
        }
        if !takes_part {
            return dispatch::apply(request);
        }
        match request.kind {
            RequestKind::Compute { op } => self.compute(op, request.x),
            RequestKind::View {
                op,
                layouts,
                creation,
                ..
            } => self.views(op, request.x[0], layouts, creation, request),
            RequestKind::Into { op, y, .. } => self.into(op, request.x, y).map(|()| Tensors::new()),
        }
    }

    fn heeds(&self, x: &[&Tensor]) -> bool {
        x.iter().any(|t| self.own(t).is_some())
    }

    fn follows(&self) -> bool {
        true
    }

    fn recorded(
        &self,
        name: &'static str,
        record: &Record,
        x: &[&Tensor],
        y: &[Tensor],
    ) -> Result<()> {
        if !self.heeds(x) {
            return dispatch::recorded_by(name, record, x, y);
        }
        let known = |t: &Tensor| {
            let dual = self.own(t);
            dual.is_some_and(|d| matches!(&*d.tangent.lock(), Tangent::Some(_)))
        };
        let parts = self.parts(x)?;
        let tracked = |t: &Tensor| t.requires_grad();
        let outer =
            mode::grad() && (parts.x.iter().any(tracked) || parts.t.iter().flatten().any(tracked));
        if y.iter()
            .all(|t| known(t) && (!outer || t.shares_storage(x[0])))
        {
            return Ok(());
        }
        let primals: Tensors = y
            .iter()
            .map(|t| {
                self.own(t)
                    .map_or_else(|| t.detach(), |d| d.primal.detach())
            })
            .collect();
        if !parts.moves() {
            return record(&parts.refs(), &primals);
        }
        let run = |x: &[&Tensor]| {
            let y: Tensors = primals.iter().map(Tensor::detach).collect();
            record(x, &y)?;
            Ok(y)
        };
        let (found, t) = transposed::along(name, &run, &parts.refs(), &parts.t)?;
        for ((y, primal), t) in y.iter().zip(found).zip(t) {
            let t = slope(t.as_ref(), &primal, &parts.t)?;
            y.set_dual(self.dual(primal, Tangent::Some(t)));
        }
        Ok(())
    }
}
