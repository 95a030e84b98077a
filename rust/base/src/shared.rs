//! The reference counts of tensors, their memory and their graphs. Every op makes and drops a few of
//! these, and an atomic addition costs as much as all else in a small op. `Arc` needs two for each
//! drop. Here both counts lie in one word, so that a plain read tells the last holder that it is
//! alone, and it needs none.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU64, Ordering};

/// One strong handle, in the lower half of the word; one weak handle, in the upper. All strong
/// handles together count as one weak handle.
const STRONG: u64 = 1;
const WEAK: u64 = 1 << 32;
/// The word of the only handle there is.
const ALONE: u64 = STRONG + WEAK;
/// More handles than this in either half end the program, long before the half overflows.
const MOST: u64 = 1 << 31;

/// A counted value with its counts. Public for the sake of [`Shared::coerced`] only.
#[repr(C)]
pub struct Counted<T: ?Sized> {
    count: AtomicU64,
    value: T,
}

/// A shared handle to an immutable value, as `Arc` is.
pub struct Shared<T: ?Sized>(NonNull<Counted<T>>, PhantomData<Counted<T>>);

/// A handle that does not keep the value.
pub struct Weak<T: ?Sized>(NonNull<Counted<T>>, PhantomData<Counted<T>>);

// SAFETY: handles on several threads share the value, and any of them may drop it.
unsafe impl<T: ?Sized + Send + Sync> Send for Shared<T> {}
// SAFETY: a reference to a handle gives no more than the value's references and new handles.
unsafe impl<T: ?Sized + Send + Sync> Sync for Shared<T> {}
// SAFETY: a weak handle gives strong ones, which may be sent.
unsafe impl<T: ?Sized + Send + Sync> Send for Weak<T> {}
// SAFETY: a reference to a weak handle gives no more than new handles.
unsafe impl<T: ?Sized + Send + Sync> Sync for Weak<T> {}

#[inline(always)]
fn strong(count: u64) -> u64 {
    count & (WEAK - 1)
}

#[inline(always)]
fn check(half: u64) {
    if half >= MOST {
        std::process::abort();
    }
}

impl<T> Shared<T> {
    #[inline(always)]
    pub fn new(value: T) -> Shared<T> {
        Shared::made(|| value)
    }

    /// Inlined, and the memory comes first, so that the value is made where it stays.
    #[inline(always)]
    pub fn made(make: impl FnOnce() -> T) -> Shared<T> {
        let counted = Box::leak(Box::<Counted<T>>::new_uninit());
        let count = AtomicU64::new(ALONE);
        let value = make();
        Shared(counted.write(Counted { count, value }).into(), PhantomData)
    }

    /// The same handle, to a trait object: `coerced::<dyn Trait>(|p| p)`.
    #[inline]
    pub fn coerced<U: ?Sized>(
        self,
        coerce: impl FnOnce(NonNull<Counted<T>>) -> NonNull<Counted<U>>,
    ) -> Shared<U> {
        let this = std::mem::ManuallyDrop::new(self);
        Shared(coerce(this.0), PhantomData)
    }
}

impl<T: ?Sized> Shared<T> {
    #[inline(always)]
    fn count(&self) -> &AtomicU64 {
        // SAFETY: a handle keeps the counts.
        unsafe { &(*self.0.as_ptr()).count }
    }

    /// The value's address.
    #[inline]
    pub fn as_ptr(this: &Self) -> *const T {
        // SAFETY: the handle is on a live value.
        unsafe { &raw const (*this.0.as_ptr()).value }
    }

    /// Whether both are handles on the same value.
    #[inline]
    pub fn same(a: &Self, b: &Self) -> bool {
        std::ptr::addr_eq(a.0.as_ptr(), b.0.as_ptr())
    }

    /// The number of handles, weak ones not counted.
    #[inline]
    pub fn handles(this: &Self) -> usize {
        strong(this.count().load(Ordering::Acquire)) as usize
    }

    /// Whether this is the only handle of either kind.
    #[inline]
    pub fn is_alone(this: &Self) -> bool {
        this.count().load(Ordering::Acquire) == ALONE
    }

    /// The value, where this is the only handle of either kind.
    #[inline]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        // SAFETY: nobody else has a handle, and nobody gets one while this one is borrowed.
        Shared::is_alone(this).then(|| unsafe { &mut (*this.0.as_ptr()).value })
    }

    pub fn downgrade(this: &Self) -> Weak<T> {
        let before = this.count().fetch_add(WEAK, Ordering::Relaxed);
        check(before >> 32);
        Weak(this.0, PhantomData)
    }

    /// Drops the value, and the memory unless weak handles are left.
    // SAFETY: called once, when the last strong handle has gone.
    #[cold]
    #[inline(never)]
    unsafe fn drop_watched(&mut self) {
        // SAFETY: nobody has a strong handle any more; all together they are one weak handle, which
        // still keeps the memory.
        unsafe { (&raw mut (*self.0.as_ptr()).value).drop_in_place() };
        drop(Weak(self.0, PhantomData));
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Self {
        let before = self.count().fetch_add(STRONG, Ordering::Relaxed);
        check(strong(before));
        Shared(self.0, PhantomData)
    }
}

impl<T: ?Sized> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        if Shared::is_alone(self) {
            // SAFETY: nobody else has a handle or can get one.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
            return;
        }
        let before = self.count().fetch_sub(STRONG, Ordering::Release);
        if strong(before) == STRONG {
            fence(Ordering::Acquire);
            // SAFETY: this was the last strong handle.
            unsafe { self.drop_watched() };
        }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the handle keeps the value.
        unsafe { &(*self.0.as_ptr()).value }
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Shared::new(T::default())
    }
}

impl<T: ?Sized> Weak<T> {
    /// Whether this is a handle on the value of `other`.
    pub fn points_to(&self, other: &Shared<T>) -> bool {
        std::ptr::addr_eq(self.0.as_ptr(), other.0.as_ptr())
    }

    #[inline(always)]
    fn count(&self) -> &AtomicU64 {
        // SAFETY: a handle keeps the counts.
        unsafe { &(*self.0.as_ptr()).count }
    }

    /// A strong handle, if one is left.
    pub fn upgrade(&self) -> Option<Shared<T>> {
        let mut seen = self.count().load(Ordering::Relaxed);
        while strong(seen) > 0 {
            check(strong(seen));
            let (done, failed) = (Ordering::Acquire, Ordering::Relaxed);
            match (self.count()).compare_exchange_weak(seen, seen + STRONG, done, failed) {
                Ok(_) => return Some(Shared(self.0, PhantomData)),
                Err(now) => seen = now,
            }
        }
        None
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Self {
        let before = self.count().fetch_add(WEAK, Ordering::Relaxed);
        check(before >> 32);
        Weak(self.0, PhantomData)
    }
}

impl<T: ?Sized> Drop for Weak<T> {
    fn drop(&mut self) {
        let before = self.count().fetch_sub(WEAK, Ordering::Release);
        if before == WEAK {
            fence(Ordering::Acquire);
            // SAFETY: the last handle of all: the value is gone, its size is still known.
            unsafe {
                let layout = std::alloc::Layout::for_value(self.0.as_ref());
                std::alloc::dealloc(self.0.as_ptr().cast(), layout);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Counts how often it is dropped.
    struct Noted<'a>(&'a AtomicUsize, [u8; 40]);

    impl Drop for Noted<'_> {
        fn drop(&mut self) {
            assert!(self.1.iter().all(|&b| b == 7));
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    trait Sized40 {
        fn bytes(&self) -> usize;
    }
    impl Sized40 for Noted<'_> {
        fn bytes(&self) -> usize {
            self.1.len()
        }
    }

    #[test]
    fn drops_once_with_the_last_handle() {
        let drops = AtomicUsize::new(0);
        let a = Shared::new(Noted(&drops, [7; 40]));
        assert!(Shared::is_alone(&a));
        let b = a.clone();
        assert!(!Shared::is_alone(&a) && Shared::handles(&a) == 2 && Shared::same(&a, &b));
        drop(a);
        assert!(drops.load(Ordering::Relaxed) == 0 && Shared::is_alone(&b));
        drop(b);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn weak_handles_outlive_the_value_but_do_not_keep_it() {
        let drops = AtomicUsize::new(0);
        let a = Shared::new(Noted(&drops, [7; 40]));
        let weak = Shared::downgrade(&a);
        assert!(!Shared::is_alone(&a) && Shared::handles(&a) == 1);
        let b = weak.upgrade().expect("the value lives");
        drop((a, weak.clone()));
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(b);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert!(weak.upgrade().is_none());
    }

    #[test]
    fn trait_objects() {
        let drops = AtomicUsize::new(0);
        let a = Shared::new(Noted(&drops, [7; 40])).coerced::<dyn Sized40 + '_>(|p| p);
        let weak = Shared::downgrade(&a);
        assert_eq!(weak.upgrade().map(|a| a.bytes()), Some(40));
        drop(a);
        drop(weak);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn threads_share_and_the_last_one_drops() {
        for _ in 0..200 {
            let drops = AtomicUsize::new(0);
            let a = Shared::new(Noted(&drops, [7; 40]));
            std::thread::scope(|s| {
                for _ in 0..3 {
                    let (mine, weak) = (a.clone(), Shared::downgrade(&a));
                    s.spawn(move || {
                        for _ in 0..50 {
                            let again = mine.clone();
                            assert!(weak.upgrade().is_some());
                            drop(again);
                        }
                        drop(mine);
                        let _ = weak.upgrade();
                    });
                }
                drop(a);
            });
            assert_eq!(drops.load(Ordering::Relaxed), 1);
        }
    }
}
