//! Errors of the core as Python exceptions, and what the core asks of Python.

use pyo3::exceptions::*;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use pytensorlib_core::error::{Error, Kind};

/// Ctrl-C, on every system.
const SIGINT: i32 = 2;
static LINALG: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static ACCELERATOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static MEMORY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// An exception of a class that the Python package defines.
fn own(py: Python<'_>, cell: &'static PyOnceLock<Py<PyType>>, name: &str, text: String) -> PyErr {
    match cell.import(py, "pytensorlib._errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), text),
        Err(e) => e,
    }
}

/// The Python exception for an error.
pub fn to_py(mut e: Error) -> PyErr {
    Python::attach(|py| {
        let text = e.to_string();
        match e.kind {
            Kind::Host => match e.host.take().and_then(|h| h.downcast::<PyErr>().ok()) {
                Some(err) => *err,
                None => PyRuntimeError::new_err(text),
            },
            Kind::Runtime => PyRuntimeError::new_err(text),
            Kind::Value => PyValueError::new_err(text),
            Kind::Type => PyTypeError::new_err(text),
            Kind::Index => PyIndexError::new_err(text),
            Kind::NotImplemented | Kind::NoKernel => PyNotImplementedError::new_err(text),
            Kind::Overflow => PyOverflowError::new_err(text),
            Kind::Assertion => PyAssertionError::new_err(text),
            Kind::Buffer => PyBufferError::new_err(text),
            Kind::Attribute => PyAttributeError::new_err(text),
            Kind::Key => PyKeyError::new_err(text),
            Kind::Accelerator => own(py, &ACCELERATOR, "AcceleratorError", text),
            Kind::LinAlg => own(py, &LINALG, "LinAlgError", text),
            Kind::OutOfMemory => own(py, &MEMORY, "OutOfMemoryError", text),
        }
    })
}

/// The Python exception for what ended a call by unwinding: a workspace that could not be had, or
/// a panic.
fn of_panic(cause: Box<dyn std::any::Any + Send>, op: &'static str) -> PyErr {
    match cause.downcast::<Error>() {
        Ok(e) => to_py(e.of(op)),
        Err(_) => to_py(Error::runtime("internal panic; please report").of(op)),
    }
}

/// Runs what Python calls as `op`: what ends it by unwinding is raised.
pub fn caught<R>(op: &'static str, f: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
        .unwrap_or_else(|cause| Err(of_panic(cause, op)))
}

/// Carries a Python exception through the core.
pub fn from_py(e: PyErr) -> Error {
    let text = Python::attach(|py| e.value(py).to_string());
    let mut error = Error::new(Kind::Host, text);
    error.host = Some(Box::new(e));
    error
}

/// Shorthand for results that cross into Python.
pub trait IntoPy<T> {
    fn py(self) -> PyResult<T>;
    /// The same for a call of a public function.
    fn py_of(self, op: &'static str) -> PyResult<T>;
}
impl<T> IntoPy<T> for pytensorlib_core::error::Result<T> {
    fn py(self) -> PyResult<T> {
        self.map_err(to_py)
    }
    fn py_of(self, op: &'static str) -> PyResult<T> {
        self.map_err(|e| to_py(e.of(op)))
    }
}

pub fn unlocked(f: &mut dyn FnMut()) {
    struct Here<'a>(&'a mut dyn FnMut());
    // SAFETY: the function runs on this thread.
    unsafe impl Send for Here<'_> {}
    impl Here<'_> {
        fn run(self) {
            (self.0)()
        }
    }
    let here = Here(f);
    // SAFETY: asks only whether this thread holds the interpreter.
    if unsafe { ffi::PyGILState_Check() } == 0 {
        return here.run();
    }
    // PyO3 gives the lock away, so that it knows: whatever attaches meanwhile takes the lock again.
    // SAFETY: this thread holds the interpreter.
    unsafe { Python::assume_attached() }.detach(move || here.run());
}

/// Ctrl-C, where Python's own handler is to raise `KeyboardInterrupt` for it on this thread. Other
/// handlers are run when the call is done: it must not be cut short for one that does not raise. No
/// code in Python runs here, which could run handlers itself.
pub fn interruption() -> Option<Error> {
    static ASK: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let asked = |py: Python<'_>| -> PyResult<bool> {
        let (getsignal, raises) = ASK.get_or_try_init(py, || {
            let signal = py.import("_signal")?;
            let get = |name| signal.getattr(name).map(Bound::unbind);
            PyResult::Ok((get("getsignal")?, get("default_int_handler")?))
        })?;
        if !getsignal.bind(py).call1((SIGINT,))?.is(raises) {
            return Ok(false);
        }
        // SAFETY: attached. The interpreter forgets the signal; other threads are told no.
        Ok(unsafe { ffi::PyOS_InterruptOccurred() } != 0)
    };
    Python::attach(|py| match asked(py) {
        Ok(false) => None,
        Ok(true) => Some(from_py(PyKeyboardInterrupt::new_err(()))),
        Err(e) => Some(from_py(e)),
    })
}

pub fn traceback() -> Option<String> {
    Python::attach(|py| {
        let stack = py
            .import("traceback")
            .ok()?
            .call_method0("format_stack")
            .ok()?;
        let lines: Vec<String> = stack.extract().ok()?;
        Some(lines.concat())
    })
}

/// Looks at the Python code at work on this thread, the innermost first: file, line and code object; until
/// that gives something.
fn find_frame<R>(
    py: Python<'_>,
    mut look: impl FnMut(&str, i32, &Bound<'_, PyAny>) -> Option<R>,
) -> Option<R> {
    // SAFETY: attached; the first frame is borrowed, those behind it and their codes are new references.
    unsafe {
        let first = ffi::PyEval_GetFrame().cast();
        let mut frame = Bound::from_borrowed_ptr_or_opt(py, first)?;
        loop {
            let at = frame.as_ptr().cast();
            let code = Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetCode(at).cast())?;
            let file = code.getattr("co_filename").ok()?;
            let file = file.cast::<PyString>().ok()?.to_str().ok()?;
            if let Some(found) = look(file, ffi::PyFrame_GetLineNumber(at), &code) {
                return Some(found);
            }
            frame = Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetBack(at).cast())?;
        }
    }
}

/// The Python code at work on this thread, the innermost first.
pub fn frames() -> Vec<String> {
    Python::attach(|py| {
        let mut all = Vec::new();
        find_frame(py, |file, line, code| {
            let name = code.getattr("co_name").ok();
            let name = name.map_or(String::new(), |n| n.to_string());
            all.push(format!("{file}({line}): {name}"));
            None::<()>
        });
        all
    })
}

/// File and line of the Python code at work on this thread that is not of our package.
pub fn place() -> Option<String> {
    static OURS: PyOnceLock<String> = PyOnceLock::new();
    Python::attach(|py| {
        let ours = OURS.get_or_try_init(py, || {
            let init: String = py.import("pytensorlib")?.getattr("__file__")?.extract()?;
            PyResult::Ok(init.trim_end_matches("__init__.py").to_string())
        });
        let ours = ours.ok()?;
        let theirs = |file: &str| !file.starts_with(ours.as_str());
        find_frame(py, |file, line, _| {
            theirs(file).then(|| format!("{file}:{line}"))
        })
    })
}

pub fn warn(text: &str) {
    Python::attach(|py| {
        if let Ok(text) = std::ffi::CString::new(text) {
            let category = py.get_type::<PyUserWarning>();
            if let Err(e) = PyErr::warn(py, &category, &text, 2) {
                e.write_unraisable(py, None);
            }
        }
    });
}

/// Runs what Python calls as `op`: errors are raised, a panic becomes one.
pub fn guard(
    py: Python<'_>,
    op: &'static str,
    f: impl FnOnce() -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    match caught(op, f) {
        Ok(obj) => obj.into_ptr(),
        Err(e) => {
            e.restore(py);
            std::ptr::null_mut()
        }
    }
}
