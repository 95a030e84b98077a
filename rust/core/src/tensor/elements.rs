//! The elements: where they lie, whether they are there, and numbers read from them.

use crate::autograd::mode;
use crate::device::Device;
use crate::dtype::{DType, Scalar};
use crate::ensure;
use crate::error::{self, Result};
use crate::float8;
use crate::tensor::Tensor;

impl Tensor {
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

    /// The value of a one-element CPU tensor.
    pub fn item(&self) -> Result<Scalar> {
        if self.stands() {
            if let Some(number) = super::asked_number("_local_scalar_dense", &[self]) {
                return number;
            }
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

/// Raises where elements are read that are not there.
#[cold]
fn unread<T>(text: &str) -> Result<T> {
    let mut e = error::Error::runtime(text);
    e.unread = true;
    Err(e)
}
