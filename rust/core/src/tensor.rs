//! The tensor: a layout over a shared storage, with a slot for its place in a graph.

mod cleared;

use crate::autograd::mode;
use crate::autograd::Dual;
use crate::autograd::History;
use crate::cpu::strided::Strided;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::{self, Result};
use crate::float8;
use crate::layout::Layout;
use crate::meta::{Form, Meta};
use crate::shape::numel;
use crate::shared::{Shared, Weak};
use crate::storage::Storage;
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

/// A place that is filled once, by whoever comes first. `OnceLock` takes a call to be filled.
#[derive(Default)]
struct Slot(AtomicPtr<c_void>);

const _: () = assert!(size_of::<Shared<History>>() == size_of::<AtomicPtr<c_void>>());

impl Slot {
    #[inline]
    fn get(&self) -> Option<&Shared<History>> {
        if self.0.load(Ordering::Acquire).is_null() {
            return None;
        }
        // SAFETY: not null, so it holds what `set` put there: a handle, which is one pointer.
        Some(unsafe { &*(&raw const self.0).cast::<Shared<History>>() })
    }

    /// Fills the slot; gives `history` back where it is filled already.
    fn set(&self, history: Shared<History>) -> std::result::Result<(), Shared<History>> {
        // SAFETY: a handle is one pointer, which is not null; it goes back where it lost.
        unsafe {
            let new = std::mem::transmute::<Shared<History>, *mut c_void>(history);
            let (null, order) = (std::ptr::null_mut(), Ordering::AcqRel);
            match self.0.compare_exchange(null, new, order, Ordering::Acquire) {
                Ok(_) => Ok(()),
                Err(_) => Err(std::mem::transmute::<*mut c_void, Shared<History>>(new)),
            }
        }
    }

    #[inline]
    fn get_or_make(&self) -> &Shared<History> {
        loop {
            if let Some(history) = self.get() {
                return history;
            }
            let _ = self.set(Shared::default());
        }
    }
}

impl Drop for Slot {
    #[inline]
    fn drop(&mut self) {
        if !self.0.get_mut().is_null() {
            // SAFETY: what is not null is a handle that `set` left, and nobody else has the slot.
            unsafe { (&raw mut self.0).cast::<Shared<History>>().drop_in_place() };
        }
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

    /// The first element in host memory. `T` must have the size of the dtype.
    #[inline]
    pub fn ptr<T>(&self) -> *mut T {
        debug_assert!(std::mem::size_of::<T>() == self.dtype().size() || self.numel() == 0);
        self.bytes_ptr().cast()
    }

    /// The first element in host memory, as bytes.
    ///
    /// [Unwinds](error::unwind) with an error where the storage has become too small, and on meta.
    #[inline]
    pub fn bytes_ptr(&self) -> *mut u8 {
        let mut start = self.0.storage.open_ptr();
        if start.is_null() {
            start = self.checked_start();
        }
        start.wrapping_add(self.offset().wrapping_mul(self.dtype().size()))
    }

    /// The first byte of a storage in which not all of its tensors fit.
    #[cold]
    #[inline(never)]
    fn checked_start(&self) -> *mut u8 {
        self.check_open().unwrap_or_else(|e| error::unwind(e));
        let start = self.0.storage.ptr();
        // A host kernel that is given memory of the GPU must not write to address zero.
        assert!(!start.is_null(), "expected a tensor in host memory");
        start
    }

    /// As [`Tensor::bytes_ptr`], before memory is read where nothing could unwind.
    pub fn check_open(&self) -> Result<()> {
        if self.storage().open_ptr().is_null() {
            self.storage().flush_pending()?;
            self.check_held()?;
            match self.device() {
                Device::Cpu => self.check_fits()?,
                other => other.check_data()?,
            }
        }
        Ok(())
    }

    /// Raises where there is no memory for the elements, but a list of coordinates.
    pub fn check_held(&self) -> Result<()> {
        if self.stands() && !mode::interpreted() {
            return unread(
                "Cannot access data pointer of Tensor that doesn't have storage. Either your tensor may \
                 have escaped from inside a function being vmapped and this is a user error (return it \
                 from that function instead), or its class's __torch_dispatch__ does not compute this",
            );
        }
        if self.stands() {
            return unread(
                "Cannot access data pointer of Tensor that doesn't have storage: it stands for other \
                 tensors, the slices that vmap maps a function over or those that its class's \
                 __torch_dispatch__ computes with",
            );
        }
        ensure!(
            self.storage().held().is_none(),
            NotImplemented,
            "expected a tensor whose elements lie in memory, got a sparse one of shape {}; convert \
             it with to_dense()",
            crate::shape::Show(self.shape())
        );
        Ok(())
    }

    /// Whether there are elements to look at: not on meta, where what is asked of them holds.
    pub fn has_data(&self) -> bool {
        self.device() != Device::Meta
    }

    /// How many elements of its type its memory has room for; of slices, as many as may be.
    pub fn capacity(&self) -> usize {
        let bytes = match self.stands() {
            true => isize::MAX as usize,
            false => self.storage().bytes(),
        };
        bytes / self.dtype().size()
    }

    /// Whether there are elements to look at now: not of slices that are computed at once, whose values
    /// nothing may depend on but results.
    pub fn is_readable(&self) -> bool {
        self.has_data() && !self.stands()
    }

    /// Raises where the storage has been made smaller than this tensor needs.
    fn check_fits(&self) -> Result<()> {
        let (size, bytes) = (self.dtype().size(), self.storage().bytes());
        let needed = self.layout().extent()?.saturating_mul(size);
        ensure!(
            needed <= bytes,
            Runtime,
            "a tensor of shape {}, strides {:?}, storage offset {} and itemsize {size} needs a \
             storage of {needed} bytes, but its storage was resized to {bytes}; resize it again \
             first",
            crate::shape::Show(self.shape()),
            &self.strides()[..],
            self.offset()
        );
        Ok(())
    }

    /// A contiguous CPU tensor's elements. `T` must be the dtype's type.
    ///
    /// # Safety
    /// Nobody writes to the elements while the slice is in use.
    pub unsafe fn slice<T>(&self) -> &[T] {
        debug_assert!(self.is_contiguous());
        if self.numel() == 0 {
            return &[];
        }
        // SAFETY: a contiguous tensor has so many elements from here on, which nobody writes to.
        unsafe { std::slice::from_raw_parts(self.ptr::<T>(), self.numel()) }
    }

    /// As [`Tensor::slice`], for writing.
    ///
    /// # Safety
    /// Nobody else reads or writes the elements while the slice is in use.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut<T>(&self) -> &mut [T] {
        debug_assert!(self.is_contiguous());
        if self.numel() == 0 {
            return &mut [];
        }
        // SAFETY: a contiguous tensor has so many elements from here on, and nobody else uses them.
        unsafe { std::slice::from_raw_parts_mut(self.ptr::<T>(), self.numel()) }
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

    /// The value of a one-element CPU tensor.
    pub fn item(&self) -> Result<Scalar> {
        if self.stands() {
            return unread(
                "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over \
                 calling .item() on a Tensor, please try to rewrite what you're doing with other \
                 operations. If error is occurring somewhere inside PyTorch internals, please file a \
                 bug report.",
            );
        }
        ensure!(
            self.numel() == 1,
            Runtime,
            "a Tensor with {} elements cannot be converted to Scalar",
            self.numel()
        );
        if self.is_sparse() {
            return self.detach().to_dense()?.item();
        }
        if self.device() != Device::Cpu {
            return self.to_host()?.item();
        }
        self.look();
        self.check_open()?;
        let p = self.bytes_ptr();
        // SAFETY: the tensor holds one element of its dtype at `p`.
        Ok(unsafe {
            match self.dtype() {
                DType::Bool => Scalar::Bool(*p != 0),
                DType::U8 => Scalar::Int(*p as i64),
                DType::I8 => Scalar::Int(*p.cast::<i8>() as i64),
                DType::I16 => Scalar::Int(*p.cast::<i16>() as i64),
                DType::I32 => Scalar::Int(*p.cast::<i32>() as i64),
                DType::I64 => Scalar::Int(*p.cast::<i64>()),
                DType::U16 => Scalar::Int(*p.cast::<u16>() as i64),
                DType::U32 => Scalar::Int(*p.cast::<u32>() as i64),
                DType::U64 => Scalar::unsigned(*p.cast::<u64>()),
                DType::F16 => Scalar::Float((*p.cast::<half::f16>()).to_f64()),
                DType::BF16 => Scalar::Float((*p.cast::<half::bf16>()).to_f64()),
                DType::F32 => Scalar::Float(*p.cast::<f32>() as f64),
                DType::F64 => Scalar::Float(*p.cast::<f64>()),
                DType::C32 | DType::C64 | DType::C128 => {
                    let (re, im) = self.complex_item()?;
                    ensure!(
                        im == 0.0,
                        Runtime,
                        "value cannot be converted to type double without overflow: {re}{im:+}j \
                         has an imaginary part"
                    );
                    Scalar::Float(re)
                }
                rare => Scalar::Float(float8::decode(rare.float8().unwrap_or(0), *p) as f64),
            }
        })
    }

    /// The parts of the number in a one-element tensor of any type.
    pub fn complex_item(&self) -> Result<(f64, f64)> {
        if self.is_sparse() {
            return self.detach().to_dense()?.complex_item();
        }
        let host = self.to_host()?;
        let p = host.bytes_ptr();
        match self.dtype() {
            _ if self.numel() != 1 => Ok((self.item()?.f64(), 0.0)),
            // SAFETY: the tensor holds one element of its dtype at `p`.
            DType::C32 => Ok(unsafe {
                let p = p.cast::<half::f16>();
                ((*p).to_f64(), (*p.add(1)).to_f64())
            }),
            // SAFETY: the tensor holds one element of its dtype at `p`.
            DType::C64 => Ok(unsafe {
                let p = p.cast::<f32>();
                (*p as f64, *p.add(1) as f64)
            }),
            // SAFETY: the tensor holds one complex128, two float64, at `p`.
            DType::C128 => Ok(unsafe { (*p.cast::<f64>(), *p.cast::<f64>().add(1)) }),
            _ => Ok((self.item()?.f64(), 0.0)),
        }
    }

    /// Notes that the host reads elements, unless they are a number of its own.
    #[inline]
    pub fn look(&self) {
        if !self.is_wrapped() {
            mode::look();
        }
    }

    /// The same elements in host memory, without history; itself when they already are there.
    pub fn to_host(&self) -> Result<Tensor> {
        self.look();
        self.check_open()?;
        if self.device() == Device::Cpu {
            return Ok(self.clone());
        }
        let out = Tensor::empty(self.shape(), self.dtype(), Device::Cpu)?;
        out.write_from(self)?;
        Ok(out)
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({:?}, {})", &self.shape()[..], self.dtype())
    }
}

/// Raises where elements are read that are not there.
#[cold]
fn unread<T>(text: &str) -> Result<T> {
    let mut e = error::Error::runtime(text);
    e.unread = true;
    Err(e)
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
