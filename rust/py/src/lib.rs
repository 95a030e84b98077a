//! The extension module `pytensorlib._C`: a thin skin over the core crate.

// Python's name for the module.
#![allow(non_snake_case)]
// Documentation is read in Python: `>>>` starts an example there, not a quotation.
#![allow(clippy::doc_lazy_continuation)]
#![warn(unsafe_op_in_unsafe_fn)]

mod autograd;
mod batch;
mod bind;
mod cell;
mod convert;
mod data;
mod dispatch;
mod dlpack;
mod docs;
mod dtype;
mod error;
mod forward;
mod function;
mod generator;
mod graph;
mod hooks;
mod index;
mod libpython;
mod lists;
mod module;
mod node;
mod numpy;
mod object;
mod operands;
mod operators;
mod optim;
mod overrides;
mod pickle;
mod profile;
mod settings;
mod signature;
mod slot;
mod storage;
mod tensor;
mod thread;
mod wgpu;

use pyo3::prelude::*;
use pytensorlib_core::host::Host;

// What relies on the interpreter's lock has a form without, under `cfg(Py_GIL_DISABLED)`.
#[pymodule(gil_used = false)]
fn _C(m: &Bound<'_, PyModule>) -> PyResult<()> {
    pytensorlib_core::machine::check().map_err(error::to_py)?;
    pytensorlib_core::device::check().map_err(error::to_py)?;
    install();
    dtype::register(m)?;
    generator::register(m)?;
    graph::register(m)?;
    tensor::register(m)?;
    autograd::register(m)?;
    function::register(m)?;
    node::register(m)?;
    module::register(m)?;
    data::register(m)?;
    dispatch::register(m)?;
    dlpack::register(m)?;
    numpy::register(m)?;
    optim::register(m)?;
    overrides::register(m)?;
    pickle::register(m)?;
    batch::register(m)?;
    forward::register(m)?;
    profile::register(m)?;
    settings::register(m)?;
    storage::register(m)?;
    wgpu::register(m)?;
    bind::register(m)?;
    Ok(())
}

/// Tells the core what to ask of Python.
fn install() {
    convert::set_look(dispatch::look_here);
    pytensorlib_core::tensor::set_twin(dispatch::twin);
    pytensorlib_core::tensor::set_number(dispatch::number);
    pytensorlib_core::host::install(Host {
        unlocked: error::unlocked,
        elsewhere: thread::elsewhere,
        interruption: error::interruption,
        traceback: error::traceback,
        place: error::place,
        frames: error::frames,
        modules: module::at_work,
        warn: error::warn,
        free_object: object::free_object,
    });
}
