//! The class `Tensor`, and making and freeing its objects: every op makes one, and PyO3's general way
//! costs as much as a small kernel.

use crate::cell::PyTensor;
use crate::slot::{self, Found};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use pytensorlib_core::dtype::DType;
use pytensorlib_core::tensor::{Tensor, OWNED};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void, CStr};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(Py_GIL_DISABLED)]
use std::time::{Duration, Instant};

/// Whether there ever was a [`Held`].
static HELD: AtomicBool = AtomicBool::new(false);

/// A Python object that memory or a graph of the core's holds, so that freeing a tensor may free it.
pub struct Held(Py<PyAny>);

impl Held {
    pub fn new(object: Py<PyAny>) -> Held {
        note_held();
        Held(object)
    }
}

impl Deref for Held {
    type Target = Py<PyAny>;
    fn deref(&self) -> &Py<PyAny> {
        &self.0
    }
}

/// Notes that the core holds what only an attached thread may free.
pub fn note_held() {
    HELD.store(true, Ordering::Relaxed);
}

/// Most freed objects that are kept for reuse.
#[cfg(not(Py_GIL_DISABLED))]
const KEPT: usize = 64;

struct Class {
    ty: *mut ffi::PyTypeObject,
    /// From an object's start to its `PyTensor`, its dict and its list of weak references.
    offset: usize,
    dict: usize,
    weak: usize,
    /// Where there is no lock, each thread's allocator keeps what it frees.
    #[cfg(not(Py_GIL_DISABLED))]
    free: [*mut ffi::PyObject; KEPT],
    #[cfg(not(Py_GIL_DISABLED))]
    len: usize,
}

struct Cell(UnsafeCell<Class>);

// SAFETY: written while the module is made, before there are objects; the list of freed objects only while the
// interpreter is held.
unsafe impl Sync for Cell {}

static CLASS: Cell = Cell(UnsafeCell::new(Class {
    ty: std::ptr::null_mut(),
    offset: 0,
    dict: 0,
    weak: 0,
    #[cfg(not(Py_GIL_DISABLED))]
    free: [std::ptr::null_mut(); KEPT],
    #[cfg(not(Py_GIL_DISABLED))]
    len: 0,
}));

/// A new object of the class itself around a tensor that has none.
#[cfg(not(Py_GIL_DISABLED))]
#[inline]
fn make(py: Python<'_>, t: Tensor) -> PyResult<Py<PyAny>> {
    // SAFETY: the interpreter is held. An object from the list had all of it freed but its memory;
    // a fresh one is zeros, which `__traverse__` expects until it is filled.
    unsafe {
        // No reference: allocating may run the collector, which frees other objects.
        let class = CLASS.0.get();
        if (*class).len == 0 {
            let object = ffi::PyType_GenericAlloc((*class).ty, 0);
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            let at = object.byte_add((*class).offset).cast::<PyTensor>();
            slot::put(t.wrapper(), object);
            at.write(PyTensor::of(t, object));
            return Ok(Bound::from_owned_ptr(py, object).unbind());
        }
        (*class).len -= 1;
        let object = (*class).free[(*class).len];
        let at = object.byte_add((*class).offset).cast::<PyTensor>();
        ffi::PyObject_Init(object, (*class).ty);
        slot::put(t.wrapper(), object);
        at.write(PyTensor::of(t, object));
        ffi::PyObject_GC_Track(object.cast());
        Ok(Bound::from_owned_ptr(py, object).unbind())
    }
}

/// A new object of the class itself around a tensor, or the one that another thread made meanwhile.
#[cfg(Py_GIL_DISABLED)]
fn make(py: Python<'_>, t: Tensor) -> PyResult<Py<PyAny>> {
    // SAFETY: attached. A fresh object is zeros, which `__traverse__` and `dealloc` expect until it is filled; that is
    // before another thread can find it.
    unsafe {
        let class = &*CLASS.0.get();
        let object = ffi::PyType_GenericAlloc(class.ty, 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        let own = Bound::from_owned_ptr(py, object);
        let at = object.byte_add(class.offset).cast::<PyTensor>();
        at.write(PyTensor::of(t.clone(), object));
        match slot::find_or_put(t.wrapper(), object) {
            Found::Nothing => Ok(own.unbind()),
            Found::Living(other) => Ok(Bound::from_owned_ptr(py, other).unbind()),
            Found::Left(other) => Ok(take_back(t, other)),
        }
    }
}

/// The content of an object of the class or of one below it.
///
/// # Safety
/// The interpreter is held, and the object is of the class.
pub unsafe fn content(object: *mut ffi::PyObject) -> *const PyTensor {
    // SAFETY: all objects of the class have their content at this offset.
    unsafe { object.byte_add((*CLASS.0.get()).offset).cast() }
}

/// A new object of the class or of one below it, without its constructors. The tensor's slot knows nothing of it.
pub fn make_of(class: &Bound<'_, PyType>, t: Tensor) -> PyResult<Py<PyAny>> {
    let (py, ty) = (class.py(), class.as_type_ptr());
    // SAFETY: a fresh object is zeros, which `__traverse__` expects until it is filled; classes below this one have
    // its content at the same offset.
    unsafe {
        if ffi::PyType_IsSubtype(ty, (*CLASS.0.get()).ty) == 0 {
            let text = format!("expected a subclass of Tensor, got {}", class.name()?);
            return Err(PyTypeError::new_err(text));
        }
        let object = ffi::PyType_GenericAlloc(ty, 0);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        content(object).cast_mut().write(PyTensor::new(t));
        Ok(Bound::from_owned_ptr(py, object).unbind())
    }
}

// SAFETY: the interpreter calls this for an object without references, attached.
unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    // SAFETY: nobody else has the object, whose parts lie where its class says; the interpreter is
    // held.
    unsafe {
        let (offset, dict, weak, plain) = {
            let class = &*CLASS.0.get();
            (class.offset, class.dict, class.weak, class.ty)
        };
        let ty = ffi::Py_TYPE(object);
        let attributes = object.byte_add(dict).cast::<*mut ffi::PyObject>().read();
        ffi::PyObject_GC_UnTrack(object.cast());
        let own = ty != plain || !attributes.is_null() && ffi::PyDict_Size(attributes) > 0;
        if own && keep(object, weak) {
            return;
        }
        if !object
            .byte_add(weak)
            .cast::<*mut ffi::PyObject>()
            .read()
            .is_null()
        {
            ffi::PyObject_ClearWeakRefs(object);
        }
        let dict = object.byte_add(dict).cast::<*mut ffi::PyObject>();
        let own = dict.replace(std::ptr::null_mut());
        ffi::Py_XDECREF(own);
        let tensor = object.byte_add(offset).cast::<PyTensor>();
        // An object whose making failed half-way holds no tensor.
        if !tensor.cast::<*const ()>().read().is_null() {
            // Python objects may go with it, which PyO3 frees only where it knows of the thread; while
            // the interpreter ends it keeps them.
            let attached = HELD.load(Ordering::Relaxed)
                && Python::try_attach(|_| tensor.drop_in_place()).is_some();
            if !attached {
                tensor.drop_in_place();
            }
        }
        if !set_aside(ty, object) {
            if let Some(free) = (*ty).tp_free {
                free(object.cast());
            }
        }
        ffi::Py_DECREF(ty.cast());
    }
}

/// Keeps the memory of an object of the class itself for the next one.
// SAFETY: `dealloc` calls this, attached, when all of the object was freed but its memory.
#[inline(always)]
unsafe fn set_aside(ty: *mut ffi::PyTypeObject, object: *mut ffi::PyObject) -> bool {
    #[cfg(Py_GIL_DISABLED)]
    let _ = (ty, object);
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: the interpreter is held.
    unsafe {
        let class = &mut *CLASS.0.get();
        if ty == class.ty && class.len < KEPT {
            class.free[class.len] = object;
            class.len += 1;
            return true;
        }
    }
    false
}

/// Leaves an object that is more than its tensor to that, if it lives on.
// SAFETY: `dealloc` calls this, attached, for an object without references that is not tracked.
#[cold]
unsafe fn keep(object: *mut ffi::PyObject, weak: usize) -> bool {
    // SAFETY: the object's parts lie where its class says, and nobody else has them.
    unsafe {
        let tensor = content(object);
        let filled = !tensor.cast::<*const ()>().read().is_null();
        if !filled || (*tensor).with(|t| t.handles()) < 2 {
            return false;
        }
        let references = object.byte_add(weak).cast::<*mut ffi::PyObject>();
        if !references.read().is_null() {
            #[cfg(Py_GIL_DISABLED)]
            let before = LEAVING.replace(true);
            ffi::PyObject_ClearWeakRefs(object);
            #[cfg(Py_GIL_DISABLED)]
            LEAVING.set(before);
        }
        leave_to_tensor(tensor, object)
    }
}

/// What `help` says of the class.
const DOC: &CStr = c"Tensor(*args, **kwargs)
--

A multi-dimensional array of one element type, with automatic differentiation.

`tensor`, `zeros` and the like make one. The class itself takes data or sizes, as older code has
it, and gives the default dtype.

Examples
--------
>>> import pytensorlib as torch
>>> torch.Tensor([1, 2])
tensor([1., 2.])";

/// A slot of a class.
pub fn type_slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

// SAFETY: the interpreter calls this with a live object, of which only the address is asked.
unsafe extern "C" fn hash(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    object as ffi::Py_hash_t >> 4
}

/// Makes the class, which beside its base, where PyO3's methods are, has these slots.
pub fn install(py: Python<'_>, sample: Tensor, mut slots: Vec<ffi::PyType_Slot>) -> PyResult<()> {
    let base = Bound::new(py, PyTensor::new(sample))?;
    slots.extend([
        type_slot(ffi::Py_tp_doc, DOC.as_ptr().cast_mut().cast()),
        type_slot(ffi::Py_tp_hash, hash as *mut c_void),
        type_slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        type_slot(0, std::ptr::null_mut()),
    ]);
    let mut spec = ffi::PyType_Spec {
        name: c"pytensorlib.Tensor".as_ptr(),
        basicsize: 0,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete; size, dict and weak references are those of its base, in which all objects
    // have one layout.
    unsafe {
        let class = ffi::PyType_FromSpecWithBases(&mut spec, base.get_type().as_ptr());
        let class = Bound::from_owned_ptr_or_err(py, class)?.cast_into_unchecked::<PyType>();
        let c = &mut *CLASS.0.get();
        c.ty = class.into_ptr().cast();
        c.offset = std::ptr::from_ref(base.get()).addr() - base.as_ptr().addr();
        c.dict = (*c.ty).tp_dictoffset as usize;
        c.weak = (*c.ty).tp_weaklistoffset as usize;
    }
    Ok(())
}

/// The class `Tensor`.
pub fn class(py: Python<'_>) -> Bound<'_, PyType> {
    // SAFETY: it is made while the module is, and lives for ever.
    unsafe { Bound::from_borrowed_ptr(py, (*CLASS.0.get()).ty.cast()).cast_into_unchecked() }
}

/// Leaves the object to its tensor where that goes on living: somebody else holds it, and the
/// object has attributes or a class of its own. The object then holds no handle but its bits.
///
/// # Safety
/// The interpreter is held; `me` is the object of `cell`, which nobody refers to any more and the
/// collector does not track.
pub unsafe fn leave_to_tensor(cell: *const PyTensor, me: *mut ffi::PyObject) -> bool {
    // SAFETY: nobody else has the object or its content; the handle read out is dropped once, for the object
    // holds no more than its bits from now on.
    unsafe {
        let inner = (*cell).place();
        let slot = (*inner).wrapper();
        let now = slot::lock(slot);
        if (*inner).handles() < 2 || now != me {
            if cfg!(Py_GIL_DISABLED) {
                slot::store(slot, now);
            }
            return false;
        }
        ffi::Py_INCREF(me);
        ffi::PyObject_GC_Track(me.cast());
        let handle = inner.read();
        slot::store(slot, me.map_addr(|a| a | OWNED));
        // Another thread may have dropped its handle meanwhile: then this frees tensor and object.
        drop(handle);
        true
    }
}

/// The reverse: `t`, whose object this is, moves back into it.
///
/// # Safety
/// The interpreter is held, and the object was left to this tensor.
#[cold]
#[inline(never)]
unsafe fn take_back(t: Tensor, me: *mut ffi::PyObject) -> Py<PyAny> {
    // SAFETY: the content is spent, so it may be written over; the object's own reference is handed out.
    unsafe {
        (*content(me)).with(|inner| std::ptr::write(inner, t));
        Bound::from_owned_ptr(Python::assume_attached(), me).unbind()
    }
}

/// Frees the object of a tensor that is going away and to which it was left.
pub fn free_object(me: *mut std::ffi::c_void) {
    let me = me.cast::<ffi::PyObject>();
    // While the interpreter ends, its objects stay.
    Python::try_attach(|_| {
        let cpu = pytensorlib_core::device::Device::Cpu;
        if let Ok(nothing) = Tensor::empty(&[0], DType::F32, cpu) {
            // SAFETY: the object's handle is spent; it gets one that it may drop.
            unsafe {
                (*content(me)).with(|inner| std::ptr::write(inner, nothing));
                ffi::Py_DECREF(me);
            }
        }
    });
}

/// The Python object of a tensor: the one it has, or a new one.
pub fn wrap(py: Python<'_>, t: Tensor) -> PyResult<Py<PyAny>> {
    #[cfg(Py_GIL_DISABLED)]
    wait_for_end(py, &t);
    // SAFETY: the slot is cleared when its object dies; what is found there is the caller's.
    unsafe {
        match slot::find(t.wrapper()) {
            Found::Left(me) => Ok(take_back(t, me)),
            Found::Living(me) => Ok(Bound::from_owned_ptr(py, me).unbind()),
            Found::Nothing => make(py, t),
        }
    }
}

#[cfg(Py_GIL_DISABLED)]
thread_local! {
    /// Whether this thread is leaving an object to its tensor, on which it must not wait for itself.
    static LEAVING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Waits while another thread leaves the object of a tensor, which is more than that, to it.
#[cfg(Py_GIL_DISABLED)]
fn wait_for_end(py: Python<'_>, t: &Tensor) {
    let slot = t.wrapper();
    // Nearly all are new.
    if slot.load(Ordering::Relaxed).is_null() {
        return;
    }
    // What runs at the end of an object may wait for us: not for ever. That thread may have to wait for a core.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        let old = slot::lock(slot);
        // SAFETY: what is in the slot has its memory, and its parts lie where its class says.
        let dying = unsafe {
            let class = &*CLASS.0.get();
            !old.is_null()
                && old.addr() & OWNED == 0
                && ffi::Py_REFCNT(old) == 0
                && (ffi::Py_TYPE(old) != class.ty
                    || !(old.byte_add(class.dict).cast::<*mut ffi::PyObject>())
                        .read()
                        .is_null())
        };
        slot::store(slot, old);
        if !dying || LEAVING.get() {
            return;
        }
        py.detach(|| std::thread::sleep(Duration::from_micros(20)));
    }
}
