//! Indexing.

use crate::error::IntoPy;
use crate::tensor::{borrow, wrap, PyTensor};
use pyo3::prelude::*;

pub fn get_item(slf: &Bound<'_, PyTensor>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let t = slf.get().get();
    wrap(slf.py(), t.select(0, key.extract()?).py()?)
}

pub fn set_item(
    slf: &Bound<'_, PyTensor>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let t = slf.get().get().select(0, key.extract()?).py()?;
    t.copy_from(&borrow(value)?).py()
}
