//! The one way in. Whatever computes, writes to a tensor or looks at one in another way is a
//! [`Request`] that the interpreters in force on the thread see first, the latest before the
//! others. Histories are attached above them, so that what `vjp` computes is seen as well.

use crate::autograd::mode;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Derivative, Op, TensorMeta, Tensors};
use crate::schema::Value;
use crate::tensor::{Creation, Tensor};
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

/// What is asked for, of the tensors `x`.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub x: &'a [&'a Tensor],
    pub kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// New tensors with the results.
    Compute { op: &'a dyn Op },
    /// The results in tensors that are there, which may be among `x`; `metas` is what the op infers.
    Into {
        op: &'a dyn Op,
        y: &'a [Tensor],
        metas: &'a [TensorMeta],
    },
    /// Other layouts over the memory of `x[0]`, which may be read as another type.
    View {
        op: &'a dyn Derivative,
        layouts: &'a [Layout],
        dtype: DType,
        creation: Creation,
    },
}

/// What stands between a request and its answer: a tracer, a batch, tangents.
pub trait Interpreter: Any + Send + Sync {
    /// The tensors asked for; none for [`Kind::Into`]. What it asks for itself, by [`apply`] or by
    /// calling ops, goes to the interpreters below.
    fn apply(&self, request: &Request) -> Result<Tensors>;
    /// Whether it looks at what is done with these tensors; it is asked all the same.
    fn heeds(&self, x: &[&Tensor]) -> bool {
        let _ = x;
        true
    }
    /// A function that reads elements, for each of many slices; `None` where that cannot be.
    fn by_slices(&self, name: &str, values: &[Value], run: &Run) -> Option<Result<Value>> {
        by_slices(name, values, run)
    }
    /// Whether it follows tangents through what is computed.
    fn follows(&self) -> bool {
        false
    }
    /// Whether it answers calls of PyTorch's operators by name, among which are no ops that only we have.
    fn names(&self) -> bool {
        false
    }
    /// Results that an op computed in its own way, which `record` puts behind such inputs in a graph.
    fn recorded(
        &self,
        name: &'static str,
        record: &Record,
        x: &[&Tensor],
        y: &[Tensor],
    ) -> Result<()> {
        recorded(name, record, x, y)
    }
    /// Memory for random numbers that are drawn now; `out` says that they go on to what is there.
    fn fresh(&self, shape: &[usize], dtype: DType, device: Device, out: bool) -> Result<Tensor> {
        fresh(shape, dtype, device, out)
    }
    /// What stands for the elements of a tensor, if it is one of this interpreter's.
    fn beneath(&self, t: &Tensor) -> Result<Option<Tensor>> {
        let _ = t;
        Ok(None)
    }
}

thread_local!(static STACK: RefCell<Vec<Arc<dyn Interpreter>>> = const { RefCell::new(Vec::new()) });

/// Answers a request, through the interpreters in force.
pub fn apply(request: &Request) -> Result<Tensors> {
    match pop() {
        None => request.answer(),
        Some(top) => {
            let above = Above(Some(top));
            above.interpreter().apply(request)
        }
    }
}

/// Puts results in a graph, behind inputs.
pub type Record<'a> = dyn Fn(&[&Tensor], &[Tensor]) -> Result<()> + 'a;

/// Shows the interpreters in force what an op computed in its own way.
pub fn recorded(name: &'static str, record: &Record, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    match pop() {
        None => Ok(()),
        Some(top) => {
            let above = Above(Some(top));
            above.interpreter().recorded(name, record, x, y)
        }
    }
}

/// A function of arguments.
pub type Run<'a> = dyn Fn(&[Value]) -> Result<Value> + 'a;

/// Runs a function that reads elements for each slice of its arguments, as the interpreters in force have it.
pub fn by_slices(name: &str, values: &[Value], run: &Run) -> Option<Result<Value>> {
    let above = Above(Some(pop()?));
    above.interpreter().by_slices(name, values, run)
}

/// Memory for random numbers that are drawn now: as the interpreters in force have it.
pub fn fresh(shape: &[usize], dtype: DType, device: Device, out: bool) -> Result<Tensor> {
    match pop() {
        None => Tensor::empty(shape, dtype, device),
        Some(top) => {
            let above = Above(Some(top));
            above.interpreter().fresh(shape, dtype, device, out)
        }
    }
}

/// What is at the bottom of a tensor for which others stand: memory, unless nobody in force knows.
pub fn beneath(t: &Tensor) -> Result<Tensor> {
    let Some(top) = pop() else {
        return Ok(t.clone());
    };
    let above = Above(Some(top));
    match above.interpreter().beneath(t)? {
        Some(under) => beneath(&under),
        None => beneath(t),
    }
}

/// Runs `f` with `interpreter` in force above the others.
pub fn interpreted<R>(interpreter: Arc<dyn Interpreter>, f: impl FnOnce() -> R) -> R {
    push(interpreter);
    struct Below;
    impl Drop for Below {
        fn drop(&mut self) {
            pop();
        }
    }
    let _below = Below;
    f()
}

/// An interpreter that is at work on a request: out of force until it is done.
struct Above(Option<Arc<dyn Interpreter>>);

impl Above {
    fn interpreter(&self) -> &dyn Interpreter {
        &**self.0.as_ref().expect("taken only when it is dropped")
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        if let Some(top) = self.0.take() {
            push(top);
        }
    }
}

fn push(interpreter: Arc<dyn Interpreter>) {
    STACK.with_borrow_mut(|s| {
        s.push(interpreter);
        tell(s);
    });
}

/// Tells the thread what is in force.
fn tell(stack: &[Arc<dyn Interpreter>]) {
    mode::set_interpreted(!stack.is_empty());
    mode::set_followed(stack.iter().any(|i| i.follows()));
}

fn pop() -> Option<Arc<dyn Interpreter>> {
    STACK.with_borrow_mut(|s| {
        let top = s.pop();
        tell(s);
        top
    })
}

/// Runs `f` with the latest interpreter in force, if it is a `T`, which is out of force meanwhile.
pub fn asking<T: Interpreter, R>(f: impl FnOnce(&T) -> R) -> Option<R> {
    let is = |top: &Arc<dyn Interpreter>| (&**top as &dyn Any).is::<T>();
    if !STACK.with_borrow(|s| s.last().is_some_and(is)) {
        return None;
    }
    let above = Above(Some(pop()?));
    (above.interpreter() as &dyn Any).downcast_ref().map(f)
}

/// Whether an interpreter in force on the thread looks at what is done with these tensors.
pub fn heeded(x: &[&Tensor]) -> bool {
    mode::interpreted() && STACK.with_borrow(|s| s.iter().any(|i| i.heeds(x)))
}

/// Whether one that answers by name looks at these tensors: what PyTorch composes of several operators is asked
/// for as those.
pub fn by_name(x: &[&Tensor]) -> bool {
    let asks = |i: &Arc<dyn Interpreter>| i.names() && i.heeds(x);
    mode::interpreted() && STACK.with_borrow(|s| s.iter().any(asks))
}

/// Puts an interpreter in force below all others of the thread, once and for all.
pub fn underlie(interpreter: &Arc<dyn Interpreter>) {
    STACK.with_borrow_mut(|s| {
        if !s.iter().any(|i| Arc::ptr_eq(i, interpreter)) {
            s.insert(0, interpreter.clone());
        }
        tell(s);
    });
}

/// Runs `f` with no interpreter in force.
pub fn interpreted_below<R>(f: impl FnOnce() -> R) -> R {
    struct Above(Option<InForce>);
    impl Drop for Above {
        fn drop(&mut self) {
            if let Some(above) = self.0.take() {
                above.put();
            }
        }
    }
    let _above = Above(Some(InForce::here()));
    InForce(Vec::new()).put();
    f()
}

/// The interpreters in force on a thread, to be put in force on another.
pub struct InForce(Vec<Arc<dyn Interpreter>>);

impl InForce {
    pub fn here() -> InForce {
        InForce(STACK.with_borrow(Clone::clone))
    }

    /// These with one more above them.
    pub fn above(mut self, interpreter: Arc<dyn Interpreter>) -> InForce {
        self.0.push(interpreter);
        self
    }

    /// Those of one kind, the latest last.
    pub fn each<T: Interpreter>(&self) -> impl Iterator<Item = &T> {
        self.0
            .iter()
            .filter_map(|i| (&**i as &dyn Any).downcast_ref())
    }

    /// Whether one that follows tangents and looks at `x` is in force above the latest of a kind.
    pub fn follow_above<T: Interpreter>(&self, x: &Tensor) -> bool {
        let above = self.0.iter().rev();
        let mut above = above.take_while(|i| !(&***i as &dyn Any).is::<T>());
        above.any(|i| i.follows() && i.heeds(&[x]))
    }

    /// These without those of one kind.
    pub fn without_each<T: Interpreter>(mut self) -> InForce {
        self.0.retain(|i| !(&**i as &dyn Any).is::<T>());
        self
    }

    /// These without one of them.
    pub fn without(mut self, interpreter: &Arc<dyn Interpreter>) -> InForce {
        self.0.retain(|i| !Arc::ptr_eq(i, interpreter));
        self
    }

    /// Puts them in force on this thread, in the place of what was.
    pub fn put(self) {
        tell(&self.0);
        let old = STACK.replace(self.0);
        drop(old);
    }
}

impl Request<'_> {
    /// The answer where no interpreter is left.
    fn answer(&self) -> Result<Tensors> {
        let x = self.x;
        match self.kind {
            Kind::Compute { op } => super::computed(op, x),
            Kind::Into { op, y, metas } => {
                super::write::write(op, x, y, metas)?;
                Ok(Tensors::new())
            }
            Kind::View {
                layouts,
                dtype,
                creation,
                ..
            } => {
                let view = |l: &Layout| x[0].view_as(l.clone(), dtype, creation);
                Ok(layouts.iter().map(view).collect())
            }
        }
    }
}
