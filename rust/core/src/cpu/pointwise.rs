//! The loop driver of pointwise kernels. Operands of any layout and type are brought, block by
//! block, into contiguous buffers of the compute type; where they already are that, the kernel
//! reads and writes them in place.

use super::elements::{load, store, Compute};
use super::pool::parallel_for;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Computes `n` results from `n` elements of each operand. `params` points to the op.
pub type Kernel<T> = unsafe fn(params: *const (), x: *const *const T, y: *mut T, n: usize);

/// Elements per block: the buffers of a ternary op in f64 stay within half of a 48 KB L1.
const BLOCK: usize = 512;
/// Most operands of a kernel.
pub const MAX_INPUTS: usize = 6;
/// Elements below which a second thread costs more than it gains.
const GRAIN: usize = 1 << 14;

/// An operand under the output's shape: adjacent dimensions merged, strides in bytes.
pub struct View {
    ptr: *mut u8,
    dtype: DType,
    dims: SmallVec<[(usize, isize); 4]>,
}

// SAFETY: views are plain addresses; the driver hands disjoint ranges to threads.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// `layout` is the operand's, already broadcast; `order` lists dimensions, outermost first.
    pub fn new(t: &Tensor, layout: &Layout, order: &[usize]) -> View {
        let size = t.dtype().size() as isize;
        let mut dims: SmallVec<[(usize, isize); 4]> = SmallVec::new();
        for &d in order {
            let (n, stride) = (layout.shape[d], layout.strides[d] * size);
            if n == 1 {
                continue;
            }
            match dims.last_mut() {
                Some(last) if last.1 == stride * n as isize => *last = (last.0 * n, stride),
                _ => dims.push((n, stride)),
            }
        }
        if dims.is_empty() {
            dims.push((1, size));
        }
        View {
            ptr: t.bytes_ptr(),
            dtype: t.dtype(),
            dims,
        }
    }

    fn is_direct(&self, dtype: DType) -> bool {
        self.dtype == dtype && self.dims.len() == 1 && self.dims[0].1 == dtype.size() as isize
    }

    fn is_constant(&self) -> bool {
        self.dims.len() == 1 && self.dims[0].1 == 0
    }

    /// Calls `f(address, step, count, done)` for the runs that make up elements `start..start+n`.
    // SAFETY: `start + n` is at most the number of elements of the view.
    #[inline(always)]
    unsafe fn runs(&self, start: usize, n: usize, mut f: impl FnMut(*mut u8, isize, usize, usize)) {
        let k = self.dims.len();
        let (inner, step) = self.dims[k - 1];
        let mut at = [0usize; 64];
        let mut rest = start;
        let mut ptr = self.ptr;
        for d in (0..k).rev() {
            at[d] = rest % self.dims[d].0;
            rest /= self.dims[d].0;
            ptr = ptr.offset(at[d] as isize * self.dims[d].1);
        }
        let mut done = 0;
        while done < n {
            let count = (inner - at[k - 1]).min(n - done);
            f(ptr, step, count, done);
            done += count;
            if done == n {
                break;
            }
            // Step to the next row.
            ptr = ptr.offset(-(at[k - 1] as isize) * step);
            at[k - 1] = 0;
            let mut d = k - 1;
            while d > 0 {
                d -= 1;
                let (size, stride) = self.dims[d];
                at[d] += 1;
                ptr = ptr.offset(stride);
                if at[d] < size {
                    break;
                }
                ptr = ptr.offset(-(size as isize) * stride);
                at[d] = 0;
            }
        }
    }

    /// Elements `start..start+n` in row-major order, converted.
    ///
    /// # Safety
    /// The range lies within the view and `dst` has room for `n`.
    pub unsafe fn load<T: Compute>(&self, start: usize, n: usize, dst: *mut T) {
        self.runs(start, n, |p, step, count, done| {
            load(self.dtype, p, step, count, dst.add(done));
        });
    }

    /// Writes elements `start..start+n` in row-major order.
    ///
    /// # Safety
    /// As for [`View::load`]; nobody else touches these elements.
    pub unsafe fn store<T: Compute>(&self, start: usize, n: usize, src: *const T) {
        self.runs(start, n, |p, step, count, done| {
            store(self.dtype, p, step, count, src.add(done));
        });
    }
}

/// The order in which to visit dimensions: the output's memory order.
pub fn order(layout: &Layout) -> SmallVec<[usize; 5]> {
    let mut order: SmallVec<[usize; 5]> = (0..layout.ndim()).collect();
    if !layout.is_contiguous() {
        order.sort_by_key(|&d| std::cmp::Reverse(layout.strides[d]));
    }
    order
}

/// Applies `kernel` to every element of `y`. Inputs broadcast to `y`'s shape; `None` reads zeros.
///
/// # Safety
/// `params` is what the kernel expects, tensors lie in host memory, `y` may be written.
pub unsafe fn run<T: Compute>(
    kernel: Kernel<T>,
    params: *const (),
    x: &[Option<&Tensor>],
    y: &Tensor,
) {
    let n = y.numel();
    if n == 0 {
        return;
    }
    let plain = |t: &Tensor| t.dtype() == T::DTYPE && t.is_contiguous() && t.numel() == n;
    if n <= GRAIN && x.len() <= MAX_INPUTS && plain(y) && x.iter().all(|t| t.is_some_and(plain)) {
        // The usual small call: nothing to convert, broadcast or share out.
        let mut ptrs = [std::ptr::null::<T>(); MAX_INPUTS];
        for (p, t) in ptrs.iter_mut().zip(x) {
            *p = t.map_or(std::ptr::null(), |t| t.ptr::<T>());
        }
        kernel(params, ptrs.as_ptr(), y.ptr::<T>(), n);
        return;
    }
    let order = order(y.layout());
    let out = View::new(y, y.layout(), &order);
    let views: SmallVec<[Option<View>; MAX_INPUTS]> = x
        .iter()
        .map(|t| t.map(|t| View::new(t, &t.layout().expand_to(y.shape()), &order)))
        .collect();
    let params = params as usize;
    parallel_for(n, GRAIN, |range| {
        // SAFETY: the caller's promise; ranges of different threads are disjoint.
        unsafe {
            span(
                kernel,
                params as *const (),
                &views,
                &out,
                range.start,
                range.end,
            )
        }
    });
}

// SAFETY: the views are valid for `start..end`, which no other thread writes; `params` is the
// kernel's own.
unsafe fn span<T: Compute>(
    kernel: Kernel<T>,
    params: *const (),
    views: &[Option<View>],
    out: &View,
    start: usize,
    end: usize,
) {
    let direct = |v: &View| v.is_direct(T::DTYPE);
    let all_direct = direct(out) && views.iter().all(|v| v.as_ref().is_some_and(direct));
    let mut ptrs = [std::ptr::null::<T>(); MAX_INPUTS];
    if all_direct {
        for (p, v) in ptrs.iter_mut().zip(views) {
            *p = v
                .as_ref()
                .map_or(std::ptr::null(), |v| v.ptr.cast::<T>().add(start));
        }
        kernel(
            params,
            ptrs.as_ptr(),
            out.ptr.cast::<T>().add(start),
            end - start,
        );
        return;
    }
    let block = BLOCK.min(end - start);
    let mut buffers: SmallVec<[std::mem::MaybeUninit<T>; 1]> = SmallVec::new();
    buffers.reserve_exact(block * (views.len() + 1));
    let buffer = buffers.as_mut_ptr().cast::<T>();
    // Operands that are one value fill their buffer once.
    for (i, v) in views.iter().enumerate() {
        match v {
            None => {
                for j in 0..block {
                    buffer.add(i * block + j).write(T::default());
                }
            }
            Some(v) if v.is_constant() => load(v.dtype, v.ptr, 0, block, buffer.add(i * block)),
            _ => {}
        }
    }
    let result = buffer.add(views.len() * block);
    let mut at = start;
    while at < end {
        let n = block.min(end - at);
        for (i, v) in views.iter().enumerate() {
            ptrs[i] = match v {
                Some(v) if direct(v) => v.ptr.cast::<T>().add(at),
                Some(v) if !v.is_constant() => {
                    v.load(at, n, buffer.add(i * block));
                    buffer.add(i * block)
                }
                _ => buffer.add(i * block),
            };
        }
        if direct(out) {
            kernel(params, ptrs.as_ptr(), out.ptr.cast::<T>().add(at), n);
        } else {
            kernel(params, ptrs.as_ptr(), result, n);
            out.store(at, n, result);
        }
        at += n;
    }
}
