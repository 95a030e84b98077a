//! Recording calls and running what was recorded, for `pytensorlib.graph` and `torch.compile`.

use crate::convert::tensor;
use crate::error::{from_py, IntoPy};
use crate::object::{note_held, Held};
use crate::tensor::{wrap, PyTensor};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{ffi, PyClass, PyTraverseError, PyVisit};
use pytensorlib_core::autograd::{mode, saved};
use pytensorlib_core::dispatch::heeded;
use pytensorlib_core::graph::{
    peek, set_tiny, Again, End, Ending, Matched, Recorder, Runs, Source, Trace,
};
use pytensorlib_core::op::{Grads, Rate};
use pytensorlib_core::tensor::Tensor;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

fn tensors(list: &Bound<'_, PyList>) -> Vec<Tensor> {
    list.iter().filter_map(|o| tensor(&o)).collect()
}

/// Either what was asked for or a sentence that says why not.
#[derive(IntoPyObject)]
enum Answer<'py, T: PyClass> {
    Found(Bound<'py, T>),
    Not(String),
}

/// A number that the host read while a call was recorded.
struct Read {
    /// The element, in the memory that it was read from.
    element: Tensor,
    number: Py<PyAny>,
    /// Where in Python.
    frame: (Py<PyAny>, Py<PyAny>),
}

thread_local! {
    /// What is read of tensors, while a call is recorded.
    static READS: RefCell<Option<(Arc<Recorder>, Vec<Read>)>> = const { RefCell::new(None) };
}

/// The number that `read` gives of a tensor; who records the call hears of it.
#[cold]
pub fn reading(
    py: Python<'_>,
    t: &Tensor,
    read: impl FnOnce() -> PyResult<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    if t.is_wrapped() || t.is_sparse() || READS.with_borrow(Option::is_none) {
        return read();
    }
    let before = mode::has_looked();
    let number = read()?;
    mode::has_looked();
    if before || !t.has_data() {
        mode::look();
    }
    let frame = py.import("sys")?.call_method0("_getframe")?;
    let frame = (
        frame.getattr("f_code")?.unbind(),
        frame.getattr("f_lasti")?.unbind(),
    );
    READS.with_borrow_mut(|reads| {
        if let Some((recorder, reads)) = reads {
            recorder.read();
            reads.push(Read {
                element: Tensor::from_storage(t.storage().clone(), t.layout().clone(), t.dtype()),
                number: number.clone_ref(py),
                frame,
            });
        }
    });
    Ok(number)
}

/// Notes what one call asks for.
#[pyclass(name = "_Recorder", module = "pytensorlib._C", frozen)]
struct PyRecorder(Arc<Recorder>);

#[pymethods]
impl PyRecorder {
    #[new]
    fn new(inputs: &Bound<'_, PyList>, before: Option<&PyTrace>) -> PyRecorder {
        let before = before.map(|b| b.0.lock());
        let before = before.as_ref().and_then(|b| b.as_deref());
        PyRecorder(Arc::new(Recorder::new(&tensors(inputs), before)))
    }
    fn start(&self) {
        Recorder::start(&self.0);
        READS.set(Some((self.0.clone(), Vec::new())));
    }
    fn stop(&self) {
        Recorder::stop(&self.0);
        drop(READS.take());
    }
    /// What the host read: each number with its tensor, and the code and the place in it that asked.
    fn reads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        READS.with_borrow(|reads| {
            for r in reads.iter().flat_map(|r| &r.1) {
                let (code, at) = &r.frame;
                list.append((&r.number, wrap(py, r.element.clone())?, code, at))?;
            }
            Ok(list)
        })
    }
    /// What comes until the next call takes this learning rate, and momentum, others perhaps next time.
    #[pyo3(signature = (lr, momentum=None))]
    fn rated(&self, lr: Option<f64>, momentum: Option<f64>) {
        self.0.rated(lr.map(|lr| Rate { lr, momentum }));
    }
    /// The number in a tensor, whoever asks for which tells by itself what hangs on it.
    #[staticmethod]
    fn peek(t: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        tensor(t).map(|t| peek(&t)).transpose().py()
    }
    /// What comes until the next call is left out where this is not zero; tells whether it is not now.
    #[pyo3(signature = (by))]
    fn guarded(&self, by: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        self.0.guarded(by.and_then(tensor)).py()
    }
    fn refuse(&self, why: String) {
        self.0.refuse(why);
    }
    /// Records the way back from results that have a graph.
    fn walk_back(&self, outputs: &Bound<'_, PyList>) -> PyResult<()> {
        self.0.walk_back(&tensors(outputs)).py()
    }
    /// The record of a call with these results, or why it cannot be run again. With `reads` what the
    /// host read last is among them.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        outputs: &Bound<'py, PyList>,
        reads: bool,
    ) -> PyResult<Answer<'py, PyTrace>> {
        Ok(match self.0.finish(&tensors(outputs), reads).py()? {
            Ending::Refused(why) => Answer::Not(why),
            Ending::Done(trace) => Answer::Found(Bound::new(py, PyTrace(Mutex::new(Some(trace))))?),
        })
    }
}

/// What one call asked for.
#[pyclass(name = "_Trace", module = "pytensorlib._C", frozen)]
struct PyTrace(Mutex<Option<Box<Trace>>>);

#[pymethods]
impl PyTrace {
    /// The program of this call, which ends the record, or how it differs from the call before.
    fn program<'py>(&self, py: Python<'py>, before: &PyTrace) -> PyResult<Answer<'py, PyProgram>> {
        let gone = || PyRuntimeError::new_err("the record has become a program");
        let now = self.0.lock();
        let before = before.0.lock();
        let (trace, old) = (
            now.as_ref().ok_or_else(gone)?,
            before.as_ref().ok_or_else(gone)?,
        );
        if let Some(what) = trace.differs(old).py()? {
            return Ok(Answer::Not(what));
        }
        let old = before.as_ref().ok_or_else(gone)?;
        let mut now = now;
        let trace = now.take().ok_or_else(gone)?;
        let runs = Runs::new(trace.program(old)).py()?;
        Ok(Answer::Found(Bound::new(py, PyProgram(runs))?))
    }
}

/// Asks Python for the gradients, with a graph, of a call whose arguments it knows.
fn by_python(function: Py<PyAny>) -> Arc<Again> {
    let function = Held::new(function);
    Arc::new(move |results, grads, ends| {
        Python::attach(|py| {
            let made = PyList::empty(py);
            for (i, t) in results {
                let t = t.clone().map(|t| wrap(py, t)).transpose()?;
                made.append((i, t))?;
            }
            let given = PyList::empty(py);
            for g in grads {
                given.append(g.clone().map(|g| wrap(py, g)).transpose()?)?;
            }
            let places = PyList::empty(py);
            for end in ends {
                match end {
                    End::Input(i) => places.append(i)?,
                    End::Leaf(t) => places.append(wrap(py, t.clone())?)?,
                }
            }
            let found: Vec<Option<Bound<'_, PyAny>>> =
                function.call1(py, (made, given, places))?.extract(py)?;
            Ok(found
                .iter()
                .map(|g| g.as_ref().and_then(tensor))
                .collect::<Grads>())
        })
        .map_err(from_py)
    })
}

/// A recorded call that can be run again.
#[pyclass(name = "_Program", module = "pytensorlib._C", frozen)]
struct PyProgram(Arc<Runs>);

#[pymethods]
impl PyProgram {
    /// Why a call with these tensors is not the recorded one.
    fn misfit(&self, inputs: &Bound<'_, PyList>) -> Option<&'static str> {
        self.0.program().misfit(&tensors(inputs))
    }
    /// The results of the program for these tensors at these learning rates; `None` where they do not
    /// fit it, or where it is at work. Second derivatives are what `again` gives.
    #[pyo3(signature = (inputs, rates, again=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyList>,
        rates: Vec<(f64, Option<f64>)>,
        again: Option<Py<PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let rates = rates
            .into_iter()
            .map(|(lr, momentum)| Rate { lr, momentum });
        let rates: Vec<Rate> = rates.collect();
        let again = again.map(by_python);
        let Some(outputs) = self.0.call(&tensors(inputs), &rates, again).py()? else {
            return Ok(None);
        };
        let list = PyList::empty(py);
        for t in outputs {
            list.append(wrap(py, t)?)?;
        }
        Ok(Some(list))
    }
    /// The number of kernels, of those on the way back too.
    #[getter]
    fn steps(&self) -> usize {
        self.0.program().steps().len()
    }
    /// Whether results have a graph.
    #[getter]
    fn differentiable(&self) -> bool {
        self.0.program().is_differentiable()
    }
    /// Whether it draws random numbers.
    #[getter]
    fn draws(&self) -> bool {
        self.0.program().draws()
    }
    /// Whether memory that it works on is gone with its GPU.
    #[getter]
    fn lost(&self) -> bool {
        self.0.is_lost()
    }
    /// The number of dispatches of a GPU that are kept, to be recorded again without asking the ops.
    #[getter]
    fn kept(&self) -> usize {
        self.0.kept()
    }
    /// Bytes of memory that kernels make, each by itself, and bytes that are held for them.
    #[getter]
    fn bytes(&self) -> (usize, usize) {
        (self.0.program().made(), self.0.held())
    }
}

/// A function whose calls are matched with those before.
#[pyclass(name = "_Matched", module = "pytensorlib._C", frozen)]
struct PyMatched(Arc<Matched>);

#[pymethods]
impl PyMatched {
    #[new]
    fn new() -> PyMatched {
        PyMatched(Matched::new())
    }
    /// Calls a function; what it asks for is put off while it is what calls before asked for.
    #[pyo3(signature = (function, args, kwargs))]
    fn call(
        &self,
        function: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let (result, done) = self.0.call(|| function.call(args, kwargs));
        let result = result?.unbind();
        done.py().map(|()| result)
    }
    /// Sets the elements up to which work is done at once, for tests.
    #[staticmethod]
    fn set_tiny(elements: usize) {
        set_tiny(elements);
    }
    /// Forgets all calls.
    fn forget(&self) {
        self.0.forget();
    }
    /// Requests that were matched, others, programs, and how often one ran: of calls, and of the backward
    /// passes that followed them.
    #[getter]
    fn counts(&self) -> [(u64, u64, usize, u64); 2] {
        let counts = self.0.counts();
        counts.map(|c| (c.matched, c.others, c.programs, c.runs))
    }
}

/// What a recorded call is taken to depend on.
enum Guard {
    /// An entry of a dictionary.
    Item(Py<PyDict>, Py<PyAny>, Py<PyAny>),
    /// That a dictionary has no such entry.
    Absent(Py<PyDict>, Py<PyAny>),
    /// All entries of a dictionary, in their order.
    All(Py<PyDict>, Vec<(Py<PyAny>, Py<PyAny>)>),
    /// The number of its entries.
    Entries(Py<PyDict>, usize),
    /// The items of a list.
    Items(Py<PyList>, Vec<Py<PyAny>>),
    /// A variable of an enclosing function, which may not have a value.
    Cell(Py<PyAny>, Option<Py<PyAny>>),
    /// The class of an object, and the dictionary of its attributes.
    Own(Py<PyAny>, Py<PyType>, Option<Py<PyAny>>),
    /// The memory behind a tensor, whether it requires grad, and its hooks.
    Memory(Py<PyTensor>, Tensor, bool, u64),
    /// What a function gives for an object.
    Call(Py<PyAny>, Py<PyAny>, Py<PyAny>),
}

/// Conditions under which a recorded call is the next one.
#[pyclass(name = "_Guards", module = "pytensorlib._C", frozen)]
struct PyGuards(Mutex<Vec<Guard>>);

/// Whether a value is as it was: the same object, an equal number or text, or a tuple of such.
fn unchanged(now: &Bound<'_, PyAny>, then: &Py<PyAny>) -> bool {
    let then = then.bind(now.py());
    if now.is(then) {
        return true;
    }
    if !now.get_type().is(then.get_type()) {
        return false;
    }
    if let (Ok(a), Ok(b)) = (now.cast_exact::<PyFloat>(), then.cast_exact::<PyFloat>()) {
        // Zero has a sign, and NaN is no other number than NaN.
        return a.value().to_bits() == b.value().to_bits();
    }
    if let (Ok(a), Ok(b)) = (now.cast_exact::<PyTuple>(), then.cast_exact::<PyTuple>()) {
        let same = |(a, b): (Bound<'_, PyAny>, Bound<'_, PyAny>)| unchanged(&a, &b.unbind());
        return a.len() == b.len() && a.iter().zip(b.iter()).all(same);
    }
    let plain = then.is_exact_instance_of::<PyInt>()
        || then.is_exact_instance_of::<PyString>()
        || then.is_exact_instance_of::<PyBytes>()
        || then.is_exact_instance_of::<PyBool>();
    plain && now.eq(then).unwrap_or(false)
}

/// The first key under which a dictionary has something else than these entries in their order.
fn changed<'py>(
    dict: &Bound<'py, PyDict>,
    pairs: &[(Py<PyAny>, Py<PyAny>)],
) -> Option<Bound<'py, PyAny>> {
    let py = dict.py();
    for ((key, value), (known, then)) in dict.iter().zip(pairs) {
        if !unchanged(&key, known) || !unchanged(&value, then) {
            return Some(key);
        }
    }
    let new = || dict.iter().nth(pairs.len()).map(|(key, _)| key);
    let gone = || pairs.get(dict.len()).map(|(key, _)| key.bind(py).clone());
    new().or_else(gone)
}

/// Tells the hooks on a tensor, or on the node where its gradient arrives, from others.
fn hooks(t: &Tensor) -> u64 {
    if !t.requires_grad() {
        return 0;
    }
    let Some(meta) = t.autograd() else { return 0 };
    // Numbers of hooks are small; an odd factor of 64 bits keeps their sequences apart.
    let mix = |all: u64, id: u64| all.wrapping_add(id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut all = {
        let s = meta.state.lock();
        let own = s.hooks.iter().map(|(id, _)| *id);
        let all = own.fold(0, mix);
        s.post_accumulate.iter().map(|(id, _)| *id).fold(all, mix)
    };
    if let Ok(Some(edge)) = t.edge() {
        if let Some(h) = edge.node.hooks_if_any() {
            let h = h.lock();
            let ids = h.tensor.iter().map(|(id, _)| *id);
            let ids = ids.chain(h.pre.iter().map(|(id, _)| *id));
            all = ids.chain(h.post.iter().map(|(id, _)| *id)).fold(all, mix);
        }
    }
    all
}

/// The dictionary of an object's attributes, where it has one.
fn attributes(py: Python<'_>, object: &Py<PyAny>) -> Option<Py<PyAny>> {
    // SAFETY: gives a new reference, or null with an exception set.
    let found = unsafe { ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut()) };
    // SAFETY: the reference is ours.
    let found = unsafe { Bound::from_owned_ptr_or_opt(py, found) };
    if found.is_none() {
        drop(PyErr::take(py));
    }
    found.map(Bound::unbind)
}

impl Guard {
    fn holds(&self, py: Python<'_>) -> bool {
        match self {
            Guard::Item(dict, key, value) => {
                matches!(dict.bind(py).get_item(key), Ok(Some(now)) if unchanged(&now, value))
            }
            Guard::All(dict, pairs) => changed(dict.bind(py), pairs).is_none(),
            Guard::Absent(dict, key) => matches!(dict.bind(py).get_item(key), Ok(None)),
            Guard::Entries(dict, n) => dict.bind(py).len() == *n,
            Guard::Items(list, values) => {
                let list = list.bind(py);
                list.len() == values.len()
                    && list.iter().zip(values).all(|(now, v)| unchanged(&now, v))
            }
            Guard::Cell(cell, value) => {
                // SAFETY: the object is a cell; the reference is a new one, or null where it is empty.
                let now =
                    unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyCell_Get(cell.as_ptr())) };
                match (now, value) {
                    (Some(now), Some(value)) => unchanged(&now, value),
                    (now, value) => now.is_none() && value.is_none(),
                }
            }
            Guard::Own(object, class, dict) => {
                let same = |d: &Py<PyAny>| attributes(py, object).is_some_and(|now| now.is(d));
                object.bind(py).get_type().is(class) && dict.as_ref().is_none_or(same)
            }
            Guard::Memory(object, t, requires, known) => {
                let now = object.get().get();
                now.same(t) && now.requires_grad() == *requires && hooks(&now) == *known
            }
            Guard::Call(function, object, value) => {
                let now = function.bind(py).call1((object,));
                now.is_ok_and(|now| unchanged(&now, value))
            }
        }
    }
}

#[pymethods]
impl PyGuards {
    #[new]
    fn new() -> PyGuards {
        PyGuards(Mutex::new(Vec::new()))
    }
    fn item(&self, dict: Py<PyDict>, key: Py<PyAny>, value: Py<PyAny>) {
        self.0.lock().push(Guard::Item(dict, key, value));
    }
    fn absent(&self, dict: Py<PyDict>, key: Py<PyAny>) {
        self.0.lock().push(Guard::Absent(dict, key));
    }
    fn all(&self, dict: &Bound<'_, PyDict>) {
        let pairs = dict.iter().map(|(k, v)| (k.unbind(), v.unbind()));
        let guard = Guard::All(dict.clone().unbind(), pairs.collect());
        self.0.lock().push(guard);
    }
    fn entries(&self, dict: &Bound<'_, PyDict>) {
        let n = dict.len();
        self.0.lock().push(Guard::Entries(dict.clone().unbind(), n));
    }
    fn items(&self, list: &Bound<'_, PyList>) {
        let values = list.iter().map(Bound::unbind).collect();
        self.0
            .lock()
            .push(Guard::Items(list.clone().unbind(), values));
    }
    fn cell(&self, cell: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: asks only for the type of an object.
        if unsafe { ffi::PyCell_Check(cell.as_ptr()) } == 0 {
            return Err(PyRuntimeError::new_err("expected a cell"));
        }
        // SAFETY: the object is a cell; the reference is a new one, or null where it is empty.
        let value =
            unsafe { Bound::from_owned_ptr_or_opt(cell.py(), ffi::PyCell_Get(cell.as_ptr())) };
        let guard = Guard::Cell(cell.clone().unbind(), value.map(Bound::unbind));
        self.0.lock().push(guard);
        Ok(())
    }
    fn own(&self, object: &Bound<'_, PyAny>, dict: Option<Py<PyAny>>) {
        let class = object.get_type().unbind();
        let guard = Guard::Own(object.clone().unbind(), class, dict);
        self.0.lock().push(guard);
    }
    fn memory(&self, object: &Bound<'_, PyTensor>) {
        note_held();
        let t = object.get().get();
        let (requires, known) = (t.requires_grad(), hooks(&t));
        let guard = Guard::Memory(object.clone().unbind(), t, requires, known);
        self.0.lock().push(guard);
    }
    fn call(&self, function: Py<PyAny>, object: Py<PyAny>, value: Py<PyAny>) {
        self.0.lock().push(Guard::Call(function, object, value));
    }
    fn __len__(&self) -> usize {
        self.0.lock().len()
    }
    /// The number of the first that is not as it was; `None` where all are.
    fn broken(&self, py: Python<'_>) -> Option<usize> {
        match self.0.try_lock() {
            Some(all) => all.iter().position(|g| !g.holds(py)),
            None => Some(usize::MAX),
        }
    }
    /// The key of a dictionary by which guard number `i`, of all its entries, does not hold.
    fn changed<'py>(&self, py: Python<'py>, i: usize) -> Option<Bound<'py, PyAny>> {
        match self.0.try_lock()?.get(i)? {
            Guard::All(dict, pairs) => changed(dict.bind(py), pairs),
            _ => None,
        }
    }
    /// The bytes of each memory that a program keeps from call to call, and that belongs to no tensor
    /// here, to none of `others`, and to no gradient of these.
    fn strangers(&self, program: &PyProgram, others: &Bound<'_, PyList>) -> Vec<usize> {
        let mut known = HashSet::new();
        let mut note = |t: &Tensor| {
            known.insert(t.storage().id());
            if let Some(g) = t.grad() {
                known.insert(g.storage().id());
            }
        };
        tensors(others).iter().for_each(&mut note);
        for g in self.0.lock().iter() {
            if let Guard::Memory(_, t, ..) = g {
                note(t);
            }
        }
        let slots = program.0.program().slots().iter();
        slots
            .filter_map(|s| match &s.source {
                Source::State(m) if !known.contains(&m.id()) => Some(s.bytes),
                _ => None,
            })
            .collect()
    }
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(all) = self.0.try_lock() else {
            return Ok(());
        };
        for g in all.iter() {
            match g {
                Guard::Item(d, k, v) => {
                    visit.call(d)?;
                    visit.call(k)?;
                    visit.call(v)?;
                }
                Guard::Absent(d, k) => {
                    visit.call(d)?;
                    visit.call(k)?;
                }
                Guard::All(d, pairs) => {
                    visit.call(d)?;
                    for (k, v) in pairs {
                        visit.call(k)?;
                        visit.call(v)?;
                    }
                }
                Guard::Entries(d, _) => visit.call(d)?,
                Guard::Items(l, values) => {
                    visit.call(l)?;
                    values.iter().try_for_each(|v| visit.call(v))?;
                }
                Guard::Cell(c, v) => {
                    visit.call(c)?;
                    v.iter().try_for_each(|v| visit.call(v))?;
                }
                Guard::Own(o, c, d) => {
                    visit.call(o)?;
                    visit.call(c)?;
                    d.iter().try_for_each(|d| visit.call(d))?;
                }
                Guard::Memory(t, ..) => visit.call(t)?,
                Guard::Call(f, o, v) => {
                    visit.call(f)?;
                    visit.call(o)?;
                    visit.call(v)?;
                }
            }
        }
        Ok(())
    }
    fn __clear__(&self) {
        let gone = std::mem::take(&mut *self.0.lock());
        drop(gone);
    }
}

/// Whether interpreters are in force on this thread that look at all tensors.
#[pyfunction]
fn _is_interpreted() -> bool {
    heeded(&[])
}

/// Whether what this thread saves for backward goes through hooks.
#[pyfunction]
fn _has_saved_tensor_hooks() -> bool {
    saved::has_hooks()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRecorder>()?;
    m.add_class::<PyTrace>()?;
    m.add_class::<PyProgram>()?;
    m.add_class::<PyGuards>()?;
    m.add_class::<PyMatched>()?;
    m.add_function(wrap_pyfunction!(_has_saved_tensor_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(_is_interpreted, m)?)
}
