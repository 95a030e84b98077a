//! The tensor: a layout over a shared storage, with a slot for its place in a graph.

mod cleared;
mod elements;
mod slot;

use crate::autograd::mode;
use crate::autograd::Dual;
use crate::autograd::History;
use crate::cpu::strided::Strided;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::error::{self, Result};
use crate::layout::Layout;
use crate::meta::{Form, Meta};
use crate::shape::numel;
use crate::shared::{Shared, Weak};
use crate::storage::Storage;
use slot::Slot;
use std::any::Any;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// How a view came about; decides whether it may be modified in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    Default,
    NoGrad,
    Inference,
    /// One of several outputs of a view op such as `unbind`.
    Multiple,
    /// Returned from a custom `Function`.
    Custom,
}

impl Creation {
    const ALL: [Creation; 5] = [
        Creation::Default,
        Creation::NoGrad,
        Creation::Inference,
        Creation::Multiple,
        Creation::Custom,
    ];
}

/// A view's tie to the tensor that owns the storage.
pub struct ViewOf {
    pub base: Tensor,
    creation: AtomicU8,
    /// The version at which the view's `grad_fn` was last right.
    pub seen: AtomicU32,
}

impl ViewOf {
    pub fn creation(&self) -> Creation {
        Creation::ALL[self.creation.load(Ordering::Relaxed) as usize]
    }

    /// Says that a custom `Function` returned the view, which is known once that has run.
    pub fn set_creation(&self, creation: Creation) {
        self.creation.store(creation as u8, Ordering::Relaxed);
    }
}

pub struct TensorImpl {
    storage: Storage,
    meta: Meta,
    inference: bool,
    /// Its own counter where it must not share its storage's (`.data`).
    version: Option<Arc<AtomicU32>>,
    view: Option<ViewOf>,
    autograd: Slot,
    /// The host language's object for this tensor, if one is alive; the host keeps it right. With
    /// [`OWNED`] set, nobody else keeps the object and it goes with the tensor.
    wrapper: AtomicPtr<c_void>,
}

/// The bit of [`Tensor::wrapper`] that says that the tensor keeps its object, and not the other way
/// round.
pub const OWNED: usize = 1;

/// What makes a tensor without a place in the graph, whose object is like that of another; `None` where
/// that is gone.
type Twin = fn(&Tensor) -> Option<Tensor>;
static TWIN: OnceLock<Twin> = OnceLock::new();

/// Tells how the host's objects that answer for tensors are doubled.
pub fn set_twin(twin: Twin) {
    let _ = TWIN.set(twin);
}

/// What the class of a tensor's object in the host language says that a function of tensors is: one
/// number.
type Number = fn(&str, &[&Tensor]) -> Result<Scalar>;
static NUMBER: OnceLock<Number> = OnceLock::new();

/// Tells how the host's objects that answer for tensors are asked for numbers.
pub fn set_number(number: Number) {
    let _ = NUMBER.set(number);
}

/// The number that a function of tensors gives where the class of one that has no memory answers.
pub fn asked_number(name: &str, x: &[&Tensor]) -> Option<Result<Scalar>> {
    match x.iter().any(|t| t.answers() && t.stands()) {
        true => NUMBER.get().map(|number| number(name, x)),
        false => None,
    }
}

impl Drop for TensorImpl {
    #[inline]
    fn drop(&mut self) {
        if self.wrapper.get_mut().addr() & OWNED != 0 {
            let object = self.wrapper.get_mut().map_addr(|a| a & !OWNED);
            crate::host::free_object(object);
        }
        if let Some(history) = self.autograd.get() {
            History::leave(history);
        }
    }
}

/// A cheap handle: clones share everything, in-place changes included.
#[derive(Clone)]
pub struct Tensor(Shared<TensorImpl>);

impl Strided for Tensor {
    #[inline]
    fn bytes_ptr(&self) -> *mut u8 {
        Tensor::bytes_ptr(self)
    }
}

impl Deref for Tensor {
    type Target = Meta;
    #[inline]
    fn deref(&self) -> &Meta {
        &self.0.meta
    }
}

impl AsRef<Meta> for Tensor {
    #[inline]
    fn as_ref(&self) -> &Meta {
        &self.0.meta
    }
}

/// A handle that does not keep the tensor.
pub struct WeakTensor(Weak<TensorImpl>);

impl WeakTensor {
    pub fn upgrade(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }
}

impl Tensor {
    pub fn downgrade(&self) -> WeakTensor {
        WeakTensor(Shared::downgrade(&self.0))
    }

    pub fn from_storage(storage: Storage, layout: Layout, dtype: DType) -> Tensor {
        let inference = mode::inference();
        let meta = Meta::new(layout, dtype, storage.device());
        Tensor::build(storage, meta, inference, None, None)
    }

    #[inline]
    fn build(
        storage: Storage,
        meta: Meta,
        inference: bool,
        version: Option<Arc<AtomicU32>>,
        view: Option<ViewOf>,
    ) -> Tensor {
        Tensor(Shared::new(TensorImpl {
            storage,
            meta,
            inference,
            version,
            view,
            autograd: Slot::default(),
            wrapper: AtomicPtr::new(std::ptr::null_mut()),
        }))
    }

    /// Uninitialised; its layout fills a block of memory.
    pub fn of(meta: Meta) -> Result<Tensor> {
        let bytes = byte_count(meta.shape(), meta.dtype())?;
        let storage = Storage::empty(bytes, meta.device())?;
        storage.label(meta.shape(), meta.dtype());
        let inference = mode::inference();
        Ok(Tensor::build(storage, meta, inference, None, None))
    }

    /// Uninitialised, contiguous.
    pub fn empty(shape: &[usize], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::of(Meta::new(Layout::contiguous(shape), dtype, device))
    }

    /// A tensor without memory: `held` stands for its elements.
    pub fn holding<T: Any + Send + Sync>(
        shape: &[usize],
        dtype: DType,
        device: Device,
        form: Form,
        held: T,
    ) -> Result<Tensor> {
        byte_count(shape, dtype)?;
        let meta = Meta::new(Layout::contiguous(shape), dtype, device).with_form(form);
        let inference = mode::inference();
        let storage = Storage::holding(Box::new(held), device);
        Ok(Tensor::build(storage, meta, inference, None, None))
    }

    /// A tensor without memory, for which its object in the host language answers.
    pub fn answered(layout: Layout, dtype: DType, device: Device) -> Result<Tensor> {
        byte_count(&layout.shape, dtype)?;
        let meta = Meta::new(layout, dtype, device).with_answers(true);
        let inference = mode::inference();
        let storage = Storage::holding(Box::new(()), device);
        Ok(Tensor::build(storage, meta, inference, None, None))
    }

    /// A tensor without memory, for which `held` stands; nothing reads the layout but views.
    pub fn standing<T: Any + Send + Sync>(meta: Meta, held: T) -> Tensor {
        let inference = mode::inference();
        let storage = Storage::holding(Box::new(held), meta.device());
        Tensor::build(storage, meta, inference, None, None)
    }

    /// As [`Tensor::view_as`], of a tensor without memory: `held` stands for the view.
    pub fn view_standing<T: Any + Send + Sync>(
        &self,
        layout: Layout,
        dtype: DType,
        creation: Creation,
        held: T,
    ) -> Tensor {
        let like = self.view_as(layout, dtype, creation);
        let i = &*like.0;
        let version = i.version.clone().unwrap_or_else(|| i.storage.counter());
        let view = i.view.as_ref().map(|v| ViewOf {
            base: v.base.clone(),
            creation: AtomicU8::new(v.creation() as u8),
            seen: AtomicU32::new(self.version()),
        });
        let storage = Storage::holding(Box::new(held), self.device());
        Tensor::build(storage, i.meta.clone(), i.inference, Some(version), view)
    }

    /// Whether something else stands for the elements, which takes part in all that is asked of them.
    pub fn stands(&self) -> bool {
        !self.is_sparse() && self.storage().held().is_some()
    }

    /// The same tensor in the same place of the graph, for which its object answers or not.
    pub fn answering(&self, answers: bool) -> Tensor {
        let meta = self.meta().clone().with_answers(answers);
        self.replaced(&self.sharing(meta, None))
    }

    /// What stands for the elements of a tensor without memory.
    pub fn held<T: Any>(&self) -> Option<&T> {
        self.storage().held()?.downcast_ref()
    }

    /// A contiguous tensor on the CPU from a slice whose type has the same size as `dtype`.
    pub fn from_slice<T: Copy>(data: &[T], shape: &[usize], dtype: DType) -> Result<Tensor> {
        assert_eq!(std::mem::size_of::<T>(), dtype.size());
        assert_eq!(data.len(), numel(shape)?);
        let out = Tensor::empty(shape, dtype, Device::Cpu)?;
        // SAFETY: `out` is a fresh contiguous allocation of the same number of bytes.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), out.ptr::<T>(), data.len()) };
        Ok(out)
    }

    /// A Python number as a 0-d operand.
    pub fn number(value: Scalar) -> Result<Tensor> {
        let dtype = value.dtype();
        let storage = Storage::empty(dtype.size(), Device::Cpu)?;
        // SAFETY: the allocation holds one element of `dtype`.
        unsafe {
            match value {
                Scalar::Bool(b) => storage.ptr().write(b as u8),
                Scalar::Int(i) => storage.ptr().cast::<i64>().write(i),
                Scalar::UInt(u) => storage.ptr().cast::<u64>().write(u),
                Scalar::Float(f) => storage.ptr().cast::<f64>().write(f),
            }
        }
        let meta = Meta::new(Layout::contiguous(&[]), dtype, Device::Cpu).with_wrapped(true);
        let inference = mode::inference();
        Ok(Tensor::build(storage, meta, inference, None, None))
    }

    /// A number of this type as a 0-d operand on the host, which kernels of every device take among their
    /// parameters.
    pub fn constant(value: impl Into<Scalar>, dtype: DType) -> Result<Tensor> {
        Tensor::full(&[], value.into(), dtype, Device::Cpu)
    }

    /// A complex Python number as a 0-d operand.
    pub fn complex_number(re: f64, im: f64) -> Result<Tensor> {
        let out = Tensor::from_slice(&[[re, im]], &[], DType::C128)?;
        Ok(out.with_wrapped(true))
    }

    /// The same memory under another layout, with no history and not registered as a view.
    pub fn alias(&self, layout: Layout) -> Tensor {
        self.alias_as(layout, self.dtype())
    }

    /// The same memory read as another type of a size that `layout` accounts for.
    pub fn alias_as(&self, layout: Layout, dtype: DType) -> Tensor {
        self.sharing(Meta::new(layout, dtype, self.device()), None)
    }

    fn sharing(&self, meta: Meta, view: Option<ViewOf>) -> Tensor {
        let i = &*self.0;
        let (storage, version) = (i.storage.clone(), i.version.clone());
        let meta = meta.with_form(i.meta.form());
        let y = Tensor::build(storage, meta, i.inference, version, view);
        if let Some(dual) = i.autograd.get().and_then(|h| h.dual()) {
            y.set_dual(dual);
        }
        y
    }

    /// What the tensor is made of where it, or what it is a view of, carries a tangent.
    #[inline]
    pub fn dual(&self) -> Option<Arc<Dual>> {
        let of = |t: &Tensor| t.autograd().and_then(|h| h.dual());
        of(self).or_else(|| self.view_of().and_then(|v| of(&v.base)))
    }

    /// Makes the tensor, if its numbers have derivatives, one that carries a tangent.
    #[cold]
    pub fn set_dual(&self, dual: Arc<Dual>) {
        if self.dtype().differentiable() {
            self.autograd_mut().set_dual(dual);
        }
    }

    /// The real (0) or imaginary (1) parts of a complex tensor in place.
    pub fn component(&self, which: usize) -> Tensor {
        let mut l = self.layout().clone();
        // The stride of a dimension of one element may be any number; it is never applied.
        l.strides.iter_mut().for_each(|s| *s = s.saturating_mul(2));
        l.offset = l.offset.saturating_mul(2).saturating_add(which);
        self.alias_as(l, self.dtype().part())
    }

    /// The real and the imaginary parts of a complex tensor in place, as a last dimension of two.
    pub fn components(&self) -> Tensor {
        self.alias_as(self.layout().pairs(), self.dtype().part())
    }

    /// A view: like [`Tensor::alias`], and in-place changes reach the history of its base. A tensor
    /// of inference mode has none, so what is made of it is no view to autograd.
    pub fn view_as(&self, layout: Layout, dtype: DType, creation: Creation) -> Tensor {
        let i = &*self.0;
        if i.inference {
            return self.alias_as(layout, dtype);
        }
        let (base, inherited) = match &i.view {
            Some(v) => (v.base.clone(), v.creation()),
            None => (self.clone(), Creation::Default),
        };
        let creation = if creation == Creation::Default {
            inherited
        } else {
            creation
        };
        let view = ViewOf {
            base,
            creation: AtomicU8::new(creation as u8),
            seen: AtomicU32::new(self.version()),
        };
        self.sharing(Meta::new(layout, dtype, self.device()), Some(view))
    }

    /// Shares memory and version counter, without history (`detach`). Where the host's object answers
    /// for the tensor, one like it answers for the other.
    pub fn detach(&self) -> Tensor {
        let twin = || TWIN.get().and_then(|twin| twin(self));
        let answered = self.answers().then(twin).flatten();
        answered.unwrap_or_else(|| self.alias(self.layout().clone()))
    }

    /// Shares memory, but neither history nor version counter (`.data`).
    pub fn data(&self) -> Tensor {
        let i = &*self.0;
        self.storage().count_no_more();
        let version = Some(Arc::new(AtomicU32::new(0)));
        let meta = i.meta.clone().with_wrapped(false);
        Tensor::build(i.storage.clone(), meta, i.inference, version, None)
    }

    /// The same memory, marked as a Python number (or no longer so).
    pub fn with_wrapped(&self, wrapped: bool) -> Tensor {
        self.sharing(self.meta().clone().with_wrapped(wrapped), None)
    }

    /// Another tensor's memory under this one's place in the graph and version counter (`x.data =
    /// y`, `x.resize_`).
    pub fn replaced(&self, with: &Tensor) -> Tensor {
        let (a, b) = (&*self.0, &*with.0);
        b.storage.count_no_more();
        let version = match &a.version {
            None if a.storage.same(&b.storage) && b.version.is_none() => None,
            None => Some(a.storage.counter()),
            own => own.clone(),
        };
        let meta = b.meta.clone().with_wrapped(false);
        let out = Tensor::build(b.storage.clone(), meta, b.inference, version, None);
        if let Some(history) = a.autograd.get() {
            let alike = self.dtype() == with.dtype() && self.device() == with.device();
            if !alike || self.shape() != with.shape() {
                history.forget_accumulator();
            }
            let _ = out.0.autograd.set(history.clone());
        }
        out
    }

    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }
    /// The tensor without its memory.
    #[inline]
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }
    #[inline]
    pub fn is_inference(&self) -> bool {
        self.0.inference
    }

    #[inline]
    pub fn version(&self) -> u32 {
        match &self.0.version {
            Some(v) => v.load(Ordering::Relaxed),
            None => self.0.storage.version(),
        }
    }

    pub fn bump_version(&self) {
        match &self.0.version {
            Some(v) => {
                v.fetch_add(1, Ordering::Relaxed);
            }
            None => self.0.storage.bump_version(),
        }
    }

    /// Puts back an earlier version, where one change was counted more than once.
    pub fn set_version(&self, version: u32) {
        match &self.0.version {
            Some(v) => v.store(version, Ordering::Relaxed),
            None => {
                self.0.storage.count_no_more();
                self.0.storage.counter().store(version, Ordering::Relaxed);
            }
        }
    }

    #[inline]
    pub fn view_of(&self) -> Option<&ViewOf> {
        self.0.view.as_ref()
    }

    /// Whether both are the very same tensor (not merely the same memory).
    pub fn same(&self, other: &Tensor) -> bool {
        Shared::same(&self.0, &other.0)
    }

    pub fn shares_storage(&self, other: &Tensor) -> bool {
        self.0.storage.same(&other.0.storage)
    }

    /// Whether nobody else can see this tensor or its memory.
    pub fn is_unique(&self) -> bool {
        Shared::handles(&self.0) == 1 && self.0.storage.is_unique()
    }

    /// The number of handles to this tensor.
    #[inline]
    pub fn handles(&self) -> usize {
        Shared::handles(&self.0)
    }

    #[inline]
    pub fn autograd(&self) -> Option<&Shared<History>> {
        self.0.autograd.get()
    }

    /// The slot for its place in a graph, made if missing.
    pub fn autograd_mut(&self) -> &Shared<History> {
        self.0.autograd.get_or_make()
    }

    /// Gives the tensor its place in a graph; gives it back where the tensor has one.
    pub fn set_autograd(
        &self,
        history: Shared<History>,
    ) -> std::result::Result<(), Shared<History>> {
        self.0.autograd.set(history)
    }

    #[inline]
    pub fn wrapper(&self) -> &AtomicPtr<c_void> {
        &self.0.wrapper
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({:?}, {})", &self.shape()[..], self.dtype())
    }
}

/// Bytes that a contiguous tensor takes, checked.
#[inline]
pub fn byte_count(shape: &[usize], dtype: DType) -> Result<usize> {
    let n = numel(shape)?;
    n.checked_mul(dtype.size())
        .filter(|&b| b <= isize::MAX as usize)
        .ok_or_else(|| {
            error::Error::runtime(format!(
                "Storage size calculation overflowed with sizes={}",
                crate::shape::Show(shape)
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{caught, Kind};

    #[test]
    fn what_asks_for_memory_where_there_is_none_raises() {
        let x = Tensor::empty(&[1 << 30, 1 << 20], DType::F32, Device::Meta).expect("a plan");
        assert_eq!(x.storage().bytes(), 1 << 52);
        assert_eq!(x.storage().address(), 0);
        let one = x.alias(Layout::contiguous(&[]));
        let asked: [&dyn Fn() -> Result<()>; 4] = [
            &|| caught(|| Ok(x.ptr::<f32>())).map(drop),
            &|| x.check_open(),
            &|| x.to_host().map(drop),
            &|| one.item().map(drop),
        ];
        for ask in asked {
            assert_eq!(ask().unwrap_err().kind, Kind::NotImplemented);
        }
    }
}
