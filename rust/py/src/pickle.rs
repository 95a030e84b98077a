//! Python objects from the pickles of checkpoints.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PySet, PyString, PyTuple, PyType};
use pytensorlib_core::pickle::check::{check, Role, Signature, Use};
use pytensorlib_core::pickle::crowd::{Crowd, FEW};
use pytensorlib_core::pickle::{parse, Change, Error, Fault, Kind, Node, Program, Step};
use std::collections::HashMap;

static CORRUPT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static TRUNCATED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static REFUSED: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn to_py(py: Python<'_>, e: Error) -> PyErr {
    let (cell, module, name) = match e.fault {
        Fault::Corrupt => (
            &CORRUPT,
            "pytensorlib._serialization.machine",
            "CorruptCheckpointError",
        ),
        Fault::Truncated => (
            &TRUNCATED,
            "pytensorlib._serialization.machine",
            "TruncatedCheckpointError",
        ),
        Fault::Refused => (&REFUSED, "pickle", "UnpicklingError"),
    };
    match cell.import(py, module, name) {
        Ok(class) => PyErr::from_type(class.clone(), e.text),
        Err(e) => e,
    }
}

fn corrupt(py: Python<'_>, text: String) -> PyErr {
    let fault = Fault::Corrupt;
    to_py(py, Error { fault, text })
}

/// A value becomes an object where its turn comes; objects are taken by the number of their node.
struct Maker<'a, 'py> {
    py: Python<'py>,
    program: &'a Program,
    data: &'a [u8],
    roles: &'a [Role],
    found: Vec<Bound<'py, PyAny>>,
    load_storage: &'a Bound<'py, PyAny>,
    build: &'a Bound<'py, PyAny>,
    /// Of the strings of Python 2.
    encoding: &'a str,
    made: Vec<Bound<'py, PyAny>>,
    crowds: HashMap<u32, Crowd>,
}

impl<'py> Maker<'_, 'py> {
    fn run(mut self) -> PyResult<Bound<'py, PyAny>> {
        let program = self.program;
        let mut due = program.steps.iter().peekable();
        for (id, node) in program.nodes.iter().enumerate() {
            while let Some(step) = due.next_if(|s| s.when as usize <= id) {
                self.step(step)?;
            }
            let object = self.make(node)?;
            self.made.push(object);
        }
        for step in due {
            self.step(step)?;
        }
        Ok(self.made[program.result as usize].clone())
    }

    fn bytes(&self, node: &Node) -> &[u8] {
        &self.data[node.a as usize..][..node.n as usize]
    }

    fn made(&self, id: u32) -> &Bound<'py, PyAny> {
        &self.made[id as usize]
    }

    /// The objects in a part of `items`.
    fn items(&self, start: u32, n: u32) -> impl ExactSizeIterator<Item = &Bound<'py, PyAny>> {
        let ids = &self.program.items[start as usize..][..n as usize];
        ids.iter().map(|&i| self.made(i))
    }

    fn make(&mut self, node: &Node) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match node.kind {
            Kind::None => py.None().into_bound(py),
            Kind::Bool => (node.int() != 0).into_pyobject(py)?.to_owned().into_any(),
            Kind::Int => node.int().into_pyobject(py)?.into_any(),
            Kind::Long => {
                let named = PyDict::new(py);
                named.set_item("signed", true)?;
                let bytes = PyBytes::new(py, self.bytes(node));
                py.get_type::<pyo3::types::PyInt>().call_method(
                    "from_bytes",
                    (bytes, "little"),
                    Some(&named),
                )?
            }
            Kind::Float => PyFloat::new(py, node.float()).into_any(),
            Kind::Text => self.text(node)?,
            Kind::Latin => self.old_text(node)?,
            Kind::Tuple => PyTuple::new(py, self.items(node.a, node.n))?.into_any(),
            Kind::List => PyList::empty(py).into_any(),
            Kind::Dict => PyDict::new(py).into_any(),
            Kind::Set => PySet::empty(py)?.into_any(),
            Kind::Global => self.found[node.a as usize].clone(),
            Kind::Call | Kind::New => self.call(node)?,
            Kind::Stored => self.load_storage.call1((self.made(node.a),))?,
        })
    }

    /// A string of Python 2: bytes, which are text in an encoding that the caller names.
    fn old_text(&self, node: &Node) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.bytes(node);
        if bytes.is_ascii() && self.encoding != "bytes" {
            return self.text(node);
        }
        let bytes = PyBytes::new(self.py, bytes);
        if self.encoding == "bytes" {
            return Ok(bytes.into_any());
        }
        bytes
            .call_method1("decode", (self.encoding,))
            .map_err(|e| self.wrap(e, node.at, "a text"))
    }

    fn text(&self, node: &Node) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.bytes(node);
        // SAFETY: the bytes are valid for the call, which returns a new reference or an error.
        let text = unsafe {
            Bound::from_owned_ptr_or_err(
                self.py,
                ffi::PyUnicode_DecodeUTF8(
                    bytes.as_ptr().cast(),
                    bytes.len() as isize,
                    c"surrogatepass".as_ptr(),
                ),
            )
        };
        text.map_err(|e| self.wrap(e, node.at, "a text"))
    }

    fn call(&mut self, node: &Node) -> PyResult<Bound<'py, PyAny>> {
        let global = self.program.nodes[node.a as usize];
        let function = self.made(node.a).clone();
        let args = self.made(node.b).clone().cast_into::<PyTuple>()?;
        let Role::Function(signature) = &self.roles[global.a as usize] else {
            if node.kind == Kind::New {
                let mut class = vec![function.clone()];
                class.extend(args.iter());
                return function.call_method1("__new__", PyTuple::new(self.py, class)?);
            }
            return function.call1(args);
        };
        for (i, arg) in args.iter().enumerate() {
            if let Some(what) = signature.gathers(i) {
                self.gather(&arg, what, node.at)?;
            }
        }
        function.call1(args).map_err(|e| {
            let (module, name) = &self.program.globals[global.a as usize];
            self.wrap(e, node.at, &format!("{module}.{name}"))
        })
    }

    /// An error in what the file says, as damage of the file.
    fn wrap(&self, e: PyErr, at: u32, what: &str) -> PyErr {
        let py = self.py;
        let own = CORRUPT
            .import(
                py,
                "pytensorlib._serialization.machine",
                "CorruptCheckpointError",
            )
            .is_ok_and(|c| e.is_instance(py, c));
        if own
            || e.is_instance_of::<PyNotImplementedError>(py)
            || e.is_instance_of::<PyMemoryError>(py)
            || !e.is_instance_of::<pyo3::exceptions::PyException>(py)
        {
            return e;
        }
        let wrapped = corrupt(
            py,
            format!(
                "{what} at byte {at} of the pickle cannot be made: {}",
                e.value(py)
            ),
        );
        wrapped.set_cause(py, Some(e));
        wrapped
    }

    /// Refuses keys that would crowd in a set or a dict made of them.
    fn gather(&self, keys: &Bound<'py, PyAny>, what: Use, at: u32) -> PyResult<()> {
        if keys.is_instance_of::<PyDict>() || keys.len()? <= FEW {
            return Ok(());
        }
        let mut crowd = match what {
            Use::Keys => Crowd::of_set(),
            _ => Crowd::of_dict(),
        };
        for key in keys.try_iter()? {
            let key = match what {
                Use::Keys => key?,
                _ => key?.get_item(0)?,
            };
            self.admit(&mut crowd, &key, at)?;
        }
        Ok(())
    }

    fn admit(&self, crowd: &mut Crowd, key: &Bound<'py, PyAny>, at: u32) -> PyResult<()> {
        // The hashes of texts depend on a secret.
        if key.is_instance_of::<PyString>() || crowd.add(key.hash()? as i64) {
            return Ok(());
        }
        Err(corrupt(
            self.py,
            format!("keys at byte {at} of the pickle are made to have the same hash"),
        ))
    }

    fn step(&mut self, step: &Step) -> PyResult<()> {
        let target = self.made(step.target).clone();
        let kind = |name: &str| {
            let text = format!("byte {} of the pickle changes what is no {name}", step.at);
            let fault = Fault::Refused;
            to_py(self.py, Error { fault, text })
        };
        match step.change {
            Change::Append => {
                let list = target.cast::<PyList>().map_err(|_| kind("list"))?;
                for item in self.items(step.start, step.n) {
                    list.append(item)?;
                }
            }
            Change::Insert => {
                let dict = target.cast::<PyDict>().map_err(|_| kind("dict"))?;
                let mut crowd = None;
                if self.program.nodes[step.target as usize].n as usize > FEW {
                    let known = self.crowds.remove(&step.target);
                    crowd = Some(known.unwrap_or_else(Crowd::of_dict));
                }
                let plain = dict.is_exact_instance_of::<PyDict>();
                let mut items = self.items(step.start, step.n);
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    if let Some(crowd) = &mut crowd {
                        self.admit(crowd, key, step.at)?;
                    }
                    if plain {
                        dict.set_item(key, value)?;
                    } else {
                        dict.as_any().set_item(key, value)?;
                    }
                }
                drop(items);
                if let Some(crowd) = crowd {
                    self.crowds.insert(step.target, crowd);
                }
            }
            Change::State => {
                let state = self.items(step.start, 1).next();
                self.build.call1((&target, state))?;
            }
        }
        Ok(())
    }
}

fn bytes_of(data: &PyBuffer<u8>) -> PyResult<&[u8]> {
    if !data.is_c_contiguous() {
        return Err(PyValueError::new_err("a pickle must lie in one piece"));
    }
    let n = data.len_bytes();
    if n == 0 {
        return Ok(&[]);
    }
    // SAFETY: contiguous bytes, held by the buffer; the caller lets nobody write into them.
    Ok(unsafe { std::slice::from_raw_parts(data.buf_ptr() as *const u8, n) })
}

fn parsed(py: Python<'_>, data: &[u8], at: usize, size: u64) -> PyResult<Program> {
    let result = py.detach(|| parse(data, at, size));
    result.map_err(|e| to_py(py, e))
}

/// The globals that the pickle at `at` of a file of `size` bytes names, and where it ends.
#[pyfunction]
fn _pickle_globals(
    py: Python<'_>,
    data: PyBuffer<u8>,
    at: usize,
    size: u64,
) -> PyResult<(Vec<(String, String)>, usize)> {
    let program = parsed(py, bytes_of(&data)?, at, size)?;
    Ok((program.globals, program.end))
}

/// The object that the pickle at `at` of a file of `size` bytes holds, and where it ends.
///
/// `find` tells for a module and a name what they stand for, and how the file may call it: `None`
/// for not at all, a signature, or an empty text for the user's own. `load_storage` is called with
/// the tuple that stands for a storage, `build` with an object and its state. `encoding` is that of
/// the strings of Python 2; in "bytes" they are none.
#[pyfunction]
fn _pickle_load<'py>(
    py: Python<'py>,
    data: PyBuffer<u8>,
    at: usize,
    size: u64,
    functions: [Bound<'py, PyAny>; 3],
    encoding: &str,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let [find, load_storage, build] = &functions;
    let bytes = bytes_of(&data)?;
    let mut program = parsed(py, bytes, at, size)?;
    let (mut found, mut roles) = (Vec::new(), Vec::new());
    for (module, name) in &program.globals {
        let (object, takes) = find
            .call1((module, name))?
            .extract::<(Bound<'py, PyAny>, Option<String>)>()?;
        found.push(object);
        roles.push(match takes.as_deref() {
            None => Role::Value,
            Some("") => Role::Open,
            Some(text) => match Signature::new(text) {
                Some(signature) => Role::Function(signature),
                None => return Err(PyRuntimeError::new_err(format!("no signature: {text}"))),
            },
        });
    }
    py.detach(|| check(&mut program, &roles, bytes, size))
        .map_err(|e| to_py(py, e))?;
    let maker = Maker {
        py,
        program: &program,
        data: bytes,
        roles: &roles,
        found,
        load_storage,
        build,
        encoding,
        made: Vec::with_capacity(program.nodes.len()),
        crowds: HashMap::new(),
    };
    Ok((maker.run()?, program.end))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_pickle_globals, m)?)?;
    m.add_function(wrap_pyfunction!(_pickle_load, m)?)?;
    Ok(())
}
