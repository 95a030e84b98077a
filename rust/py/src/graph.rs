//! Recording calls and running what was recorded, for `pytensorlib.graph` and `torch.compile`.

use crate::convert::tensor;
use crate::error::IntoPy;
use crate::object::note_held;
use crate::tensor::{wrap, PyTensor};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use pyo3::{ffi, PyClass, PyTraverseError, PyVisit};
use pytensorlib_core::autograd::mode;
use pytensorlib_core::dispatch::heeded;
use pytensorlib_core::graph::{peek, Ending, Recorder, Runs, Trace};
use pytensorlib_core::op::Rate;
use pytensorlib_core::tensor::Tensor;
use std::cell::RefCell;
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
    /// fit it, or where it is at work.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyList>,
        rates: Vec<(f64, Option<f64>)>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let rates = rates
            .into_iter()
            .map(|(lr, momentum)| Rate { lr, momentum });
        let rates: Vec<Rate> = rates.collect();
        let Some(outputs) = self.0.call(&tensors(inputs), &rates).py()? else {
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

/// What a recorded call is taken to depend on.
enum Guard {
    /// An entry of a dictionary.
    Item(Py<PyDict>, Py<PyAny>, Py<PyAny>),
    /// The number of its entries.
    Entries(Py<PyDict>, usize),
    /// The items of a list.
    Items(Py<PyList>, Vec<Py<PyAny>>),
    /// A variable of an enclosing function.
    Cell(Py<PyAny>, Py<PyAny>),
    /// The memory behind a tensor, and whether it requires grad.
    Memory(Py<PyTensor>, Tensor, bool),
}

/// Conditions under which a recorded call is the next one.
#[pyclass(name = "_Guards", module = "pytensorlib._C", frozen)]
struct PyGuards(Mutex<Vec<Guard>>);

/// Whether a value is as it was: the same object, or an equal number or text.
fn unchanged(now: &Bound<'_, PyAny>, then: &Py<PyAny>) -> bool {
    let then = then.bind(now.py());
    if now.is(then) {
        return true;
    }
    let plain = then.is_exact_instance_of::<PyInt>()
        || then.is_exact_instance_of::<PyFloat>()
        || then.is_exact_instance_of::<PyString>()
        || then.is_exact_instance_of::<PyBool>();
    plain && now.get_type().is(then.get_type()) && now.eq(then).unwrap_or(false)
}

impl Guard {
    fn holds(&self, py: Python<'_>) -> bool {
        match self {
            Guard::Item(dict, key, value) => {
                matches!(dict.bind(py).get_item(key), Ok(Some(now)) if unchanged(&now, value))
            }
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
                now.is_some_and(|now| unchanged(&now, value))
            }
            Guard::Memory(object, t, requires) => {
                let now = object.get().get();
                now.same(t) && now.requires_grad() == *requires
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
    fn cell(&self, cell: &Bound<'_, PyAny>, value: Py<PyAny>) -> PyResult<()> {
        // SAFETY: asks only for the type of an object.
        if unsafe { ffi::PyCell_Check(cell.as_ptr()) } == 0 {
            return Err(PyRuntimeError::new_err("expected a cell"));
        }
        let guard = Guard::Cell(cell.clone().unbind(), value);
        self.0.lock().push(guard);
        Ok(())
    }
    fn memory(&self, object: &Bound<'_, PyTensor>) {
        note_held();
        let t = object.get().get();
        let requires = t.requires_grad();
        let guard = Guard::Memory(object.clone().unbind(), t, requires);
        self.0.lock().push(guard);
    }
    fn __len__(&self) -> usize {
        self.0.lock().len()
    }
    /// Whether everything is as it was.
    fn hold(&self, py: Python<'_>) -> bool {
        match self.0.try_lock() {
            Some(all) => all.iter().all(|g| g.holds(py)),
            None => false,
        }
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
                Guard::Entries(d, _) => visit.call(d)?,
                Guard::Items(l, values) => {
                    visit.call(l)?;
                    values.iter().try_for_each(|v| visit.call(v))?;
                }
                Guard::Cell(c, v) => {
                    visit.call(c)?;
                    visit.call(v)?;
                }
                Guard::Memory(t, ..) => visit.call(t)?,
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

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyRecorder>()?;
    m.add_class::<PyTrace>()?;
    m.add_class::<PyProgram>()?;
    m.add_class::<PyGuards>()?;
    m.add_function(wrap_pyfunction!(_is_interpreted, m)?)
}
