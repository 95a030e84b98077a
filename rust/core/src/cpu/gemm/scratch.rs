//! Memory of a product.

/// Memory for panels, aligned to 64 bytes.
pub(super) struct Scratch<E> {
    at: std::ptr::NonNull<u8>,
    bytes: usize,
    of: std::marker::PhantomData<E>,
}

impl<E> Scratch<E> {
    pub fn new(n: usize) -> Self {
        let bytes = n
            .checked_mul(size_of::<E>())
            .expect("sizes were checked with the operands");
        let at = crate::alloc::alloc(bytes).unwrap_or_else(|e| crate::error::unwind(e));
        Scratch {
            at,
            bytes,
            of: std::marker::PhantomData,
        }
    }
    pub fn ptr(&self) -> *mut E {
        self.at.as_ptr().cast()
    }
}

impl<E: Copy> Scratch<E> {
    /// `n` times the same value. A list of the system's may be new pages in every call.
    pub fn full(value: E, n: usize) -> Self {
        let out = Scratch::<E>::new(n);
        for i in 0..n {
            // SAFETY: there is room for `n` elements, whose owner this is.
            unsafe { out.ptr().add(i).write(value) };
        }
        out
    }
    pub fn slice(&mut self) -> &mut [E] {
        // SAFETY: made by `full`, which wrote all elements; they are lent with their owner.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.bytes / size_of::<E>()) }
    }
}

impl<E> Drop for Scratch<E> {
    fn drop(&mut self) {
        // SAFETY: allocated with these bytes, and the owner goes.
        unsafe { crate::alloc::free(self.at, self.bytes) }
    }
}
