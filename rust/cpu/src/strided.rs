//! Strided operands of kernels.

use crate::meta::Meta;
use std::ops::Deref;

/// Elements in host memory, in a layout. Tensors are.
pub trait Strided: Deref<Target = Meta> {
    /// The first element, as bytes.
    fn bytes_ptr(&self) -> *mut u8;

    /// The first element. `T` has the size of the type.
    #[inline]
    fn ptr<T>(&self) -> *mut T {
        debug_assert!(size_of::<T>() == self.dtype().size() || self.numel() == 0);
        self.bytes_ptr().cast()
    }
}

/// Elements of tests.
#[cfg(test)]
pub struct Owned<T>(Meta, std::sync::Arc<[T]>);

#[cfg(test)]
impl<T: Copy> Owned<T> {
    pub fn new(data: &[T], shape: &[usize], dtype: crate::dtype::DType) -> Owned<T> {
        let layout = crate::layout::Layout::contiguous(shape);
        let meta = Meta::new(layout, dtype, crate::device::Device::Cpu);
        Owned(meta, data.into())
    }

    /// The same elements in another layout.
    pub fn alias(&self, layout: crate::layout::Layout) -> Owned<T> {
        Owned(
            Meta::new(layout, self.dtype(), self.device()),
            self.1.clone(),
        )
    }
}

#[cfg(test)]
impl<T> Deref for Owned<T> {
    type Target = Meta;
    fn deref(&self) -> &Meta {
        &self.0
    }
}

#[cfg(test)]
impl<T> Strided for Owned<T> {
    fn bytes_ptr(&self) -> *mut u8 {
        self.1
            .as_ptr()
            .wrapping_add(self.0.layout().offset)
            .cast_mut()
            .cast()
    }
}
