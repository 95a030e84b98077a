//! The loop driver of pointwise kernels. Operands of any layout and type are brought, block by
//! block, into contiguous buffers of the compute type; where they already are that, the kernel
//! reads and writes them in place.

pub mod chain;
pub mod fusion;
pub mod spread;
mod tile;
mod view;

use super::convert::{loader, storer, Load, Store};
use super::elements::Compute;
use super::pool::{parallel_blocks, parallel_for, Ptr};
use super::truncate;
use crate::dtype::DType;
use crate::layout::Layout;
use crate::machine::machine;
use crate::non_temporal;
use crate::shape::{coalesce, Walk};
use crate::strided::Strided;
use smallvec::SmallVec;
use tile::Tiling;

/// Computes `n` results from `n` elements of each operand. `params` points to the op. The result
/// may take the place of an operand; that of the first costs nothing.
pub type Kernel<T> = unsafe fn(params: *const (), x: *const *const T, y: *mut T, n: usize);

/// Most operands of a kernel.
pub const MAX_INPUTS: usize = 6;
/// The result comes first, then the inputs.
const MAX: usize = MAX_INPUTS + 1;
/// Bytes of a block of one operand: those of a ternary op stay within half of a 32 KB L1.
const BLOCK: usize = 4096;
/// Bytes between the starts of blocks.
const STEP: usize = BLOCK + 192;
/// Most bytes of all operands of a range.
const CACHED: usize = 256 << 10;
/// Rows shorter than this are not worth a call of the kernel.
const SHORT: usize = 64;
/// Elements of cheap kernels below which a second thread costs more than it gains.
pub const GRAIN: usize = 1 << 15;

/// A dimension that all operands step along alike, strides in bytes.
type Dim = Walk<MAX>;

/// What is computed and where operands lie. Everything is indexed with 0 for the result.
struct Plan<T> {
    kernel: Kernel<T>,
    params: *const (),
    inputs: usize,
    /// Outermost first; never empty.
    dims: SmallVec<[Dim; 5]>,
    at: [*mut u8; MAX],
    size: [usize; MAX],
    /// Whether an operand has the compute type.
    same: [bool; MAX],
    load: [Load<T>; MAX],
    store: Store<T>,
    /// Whether the result goes through a buffer: where it takes the place of an input after the
    /// first, which keeps the compiler's loops from their vector code, and where stores are
    /// non-temporal.
    bounce: bool,
    /// Whether the result is written past the caches.
    non_temporal: bool,
    /// Whether the kernel only converts.
    copies: bool,
    /// What converts runs at once, where the kernel only converts.
    direct: Option<truncate::Row>,
}

// SAFETY: plans are plain addresses; the driver hands disjoint ranges to threads.
unsafe impl<T> Send for Plan<T> {}
// SAFETY: a reference to a plan only reads the addresses.
unsafe impl<T> Sync for Plan<T> {}

/// A block for each operand and one more. Their starts differ in the bits that tell addresses of
/// loads from those of stores.
#[repr(align(64))]
struct Buffers<T> {
    bytes: std::mem::MaybeUninit<[u8; (MAX + 1) * STEP]>,
    of: std::marker::PhantomData<T>,
}

impl<T> Buffers<T> {
    const LEN: usize = BLOCK / size_of::<T>();

    #[inline(always)]
    fn new() -> Self {
        Buffers {
            bytes: std::mem::MaybeUninit::uninit(),
            of: std::marker::PhantomData,
        }
    }

    #[inline(always)]
    fn at(&mut self, i: usize) -> *mut T {
        debug_assert!(i <= MAX);
        // SAFETY: `i` is at most MAX.
        unsafe {
            let first = self.bytes.as_mut_ptr().cast::<u8>();
            first.add(i * STEP).cast()
        }
    }
}

/// Bytes of all operands of a range: a part of the second cache.
fn cached() -> usize {
    (machine().l2 / 2).min(CACHED)
}

/// Where inputs that nobody reads point.
static ZEROS: [u64; 2] = [0; 2];

/// The order in which to visit dimensions: the output's memory order.
fn order(layout: &Layout) -> SmallVec<[usize; 5]> {
    let mut order: SmallVec<[usize; 5]> = (0..layout.ndim()).collect();
    if !layout.is_contiguous() {
        order.sort_by_key(|&d| std::cmp::Reverse(layout.strides[d]));
    }
    order
}

impl<T: Compute> Plan<T> {
    fn new(
        kernel: Kernel<T>,
        params: *const (),
        x: &[Option<&impl Strided>],
        y: &impl Strided,
    ) -> Plan<T> {
        let mut plan = Plan {
            kernel,
            params,
            inputs: x.len(),
            dims: SmallVec::new(),
            at: [y.bytes_ptr(); MAX],
            size: [y.dtype().size(); MAX],
            same: [y.dtype() == T::DTYPE; MAX],
            load: [loader::<T>(T::DTYPE); MAX],
            store: storer::<T>(y.dtype()),
            bounce: false,
            non_temporal: false,
            copies: false,
            direct: None,
        };
        for (i, t) in x.iter().enumerate() {
            let i = i + 1;
            match t {
                Some(t) => {
                    plan.at[i] = t.bytes_ptr();
                    plan.size[i] = t.dtype().size();
                    plan.same[i] = t.dtype() == T::DTYPE;
                    if !plan.same[i] {
                        plan.load[i] = loader::<T>(t.dtype());
                    }
                    plan.bounce |= i > 1 && plan.at[i] == plan.at[0] && plan.same[i];
                }
                None => {
                    plan.at[i] = ZEROS.as_ptr().cast_mut().cast();
                    plan.size[i] = size_of::<T>();
                    plan.same[i] = true;
                }
            }
        }
        let layout = y.layout();
        let (size, dims) = (plan.size, order(layout));
        plan.dims = coalesce(dims.into_iter().map(|d| {
            let mut step = [0isize; MAX];
            step[0] = layout.strides[d] * size[0] as isize;
            for (i, t) in x.iter().enumerate() {
                // Inputs broadcast: dimensions are counted from the last.
                let Some(t) = t else { continue };
                let at = (d + t.ndim()).checked_sub(layout.ndim());
                if let Some(d) = at.filter(|&d| t.size(d) != 1) {
                    step[i + 1] = t.strides()[d] * size[i + 1] as isize;
                }
            }
            let n = layout.shape[d];
            Dim { n, step }
        }));
        if plan.dims.is_empty() {
            let step = plan.size.map(|s| s as isize);
            plan.dims.push(Dim { n: 1, step });
        }
        let aliased = (1..=x.len()).any(|i| plan.at[i] == plan.at[0]);
        // What is transposed goes out in whole lines in any case; what is converted is not ready as
        // soon as the memory is.
        let bytes = y.numel() * plan.size[0];
        plan.non_temporal = !aliased
            && ((plan.same[0] && non_temporal::is_worth(bytes))
                || (non_temporal::is_large(bytes) && Tiling::of(&plan).is_some()));
        plan.bounce |= plan.non_temporal;
        plan
    }

    /// Elements of a range that a thread computes at a time.
    fn block(&self) -> usize {
        let inner = &self.dims[self.dims.len() - 1];
        let bytes = |i: usize| if inner.step[i] == 0 { 0 } else { self.size[i] };
        let bytes = (0..=self.inputs).map(bytes).sum::<usize>().max(1);
        (cached() / bytes).next_multiple_of(1024)
    }
}

/// Applies `kernel` to every element of `y`. Inputs broadcast to `y`'s shape; `None` reads zeros.
/// Threads share the work where there are more than `grain` elements.
///
/// # Safety
/// `params` is what the kernel expects, tensors lie in host memory, `y` may be written.
pub unsafe fn run<T: Compute, S: Strided>(
    kernel: Kernel<T>,
    params: *const (),
    x: &[Option<&S>],
    y: &S,
    grain: usize,
) {
    let n = y.numel();
    if n == 0 {
        return;
    }
    let plain = |t: &S| t.dtype() == T::DTYPE && t.is_contiguous() && t.numel() == n;
    if n <= grain && plain(y) && x.iter().all(|t| t.is_some_and(plain)) {
        // The usual small call: nothing to convert, broadcast or share out.
        let mut ptrs = [std::ptr::null::<T>(); MAX_INPUTS];
        let mut aliased = false;
        for (i, (p, t)) in ptrs.iter_mut().zip(x).enumerate() {
            *p = t.map_or(std::ptr::null(), |t| t.ptr::<T>());
            aliased |= i > 0 && *p == y.ptr::<T>();
        }
        if !aliased || n < SHORT {
            // SAFETY: all tensors have `n` elements of this type next to each other, and `params`
            // is the kernel's.
            unsafe { kernel(params, ptrs.as_ptr(), y.ptr::<T>(), n) };
            return;
        }
    }
    // SAFETY: the plan is that of these tensors, which have `n` elements; `params` is the kernel's.
    unsafe { go(&Plan::new(kernel, params, x, y), n, grain) };
}

/// Applies a kernel over the bits of elements of one type, as [`run`] does; `false`, and nothing
/// done, where an operand has another type or is not laid out as the result is.
///
/// # Safety
/// As for [`run`].
pub unsafe fn run_bits<T, S: Strided>(
    kernel: Kernel<T>,
    params: *const (),
    dtype: DType,
    x: &[&S],
    y: &S,
    grain: usize,
) -> bool {
    let fits = |t: &S| t.dtype() == dtype && t.is_contiguous() && t.shape() == y.shape();
    if x.len() > MAX_INPUTS || !fits(y) || !x.iter().all(|t| fits(t)) {
        return false;
    }
    let block = (cached() / size_of::<T>() / (x.len() + 1)).next_multiple_of(1024);
    let mut from = [Ptr::new(std::ptr::null_mut()); MAX_INPUTS];
    for (from, t) in from.iter_mut().zip(x) {
        *from = Ptr::new(t.ptr::<T>());
    }
    let (params, to) = (Ptr::read(params), Ptr::new(y.ptr::<T>()));
    parallel_blocks(y.numel(), grain, block, |range| {
        let at = from.map(|p| p.get().cast_const().wrapping_add(range.start));
        // SAFETY: ranges of different threads are disjoint.
        unsafe {
            let to = to.at(range.start);
            kernel(params.get(), at.as_ptr(), to, range.len())
        };
    });
    true
}

/// Writes `x`, which broadcasts, converted to the type of `y`, by way of `T`.
///
/// # Safety
/// Both lie in host memory, and `y` may be written.
pub unsafe fn convert<T: Compute>(x: &impl Strided, y: &impl Strided) {
    unsafe fn identity<T: Copy>(_: *const (), x: *const *const T, y: *mut T, n: usize) {
        // SAFETY: operand and result have `n` elements of one type, and the result is a block or a
        // tensor of its own.
        unsafe {
            std::ptr::copy_nonoverlapping(*x, y, n);
        }
    }
    let n = y.numel();
    if n > 0 {
        let mut plan = Plan::new(identity::<T>, std::ptr::null(), &[Some(x)], y);
        plan.copies = true;
        plan.direct = truncate::row(x.dtype(), y.dtype());
        // SAFETY: the plan is that of these tensors, which have `n` elements; the kernel reads no
        // parameters.
        unsafe { go(&plan, n, GRAIN) };
    }
}

// SAFETY: the plan's operands are valid, and `n` is the number of elements.
unsafe fn go<T: Compute>(plan: &Plan<T>, n: usize, grain: usize) {
    if let Some(tiling) = Tiling::of(plan) {
        parallel_for(tiling.tiles(plan), grain / tiling.size() + 1, |range| {
            // SAFETY: tiles of different threads are disjoint.
            unsafe { tiling.run(plan, range) };
            if plan.non_temporal {
                non_temporal::fence();
            }
        });
        return;
    }
    let inner = plan.dims[plan.dims.len() - 1].n;
    let linear = |d: &[Dim]| {
        d.windows(2)
            .all(|w| w[0].step[0] == w[1].step[0] * w[1].n as isize)
    };
    let few = inner < SHORT || (4 * inner <= Buffers::<T>::LEN && linear(&plan.dims));
    let short = plan.dims.len() > 1 && few;
    // What no cache holds gains nothing, and long runs suit the memory.
    let large = non_temporal::is_large(n * plan.size[0]);
    let block = if large { n } else { plan.block() };
    parallel_blocks(n, grain, block, |range| {
        // SAFETY: ranges of different threads are disjoint.
        unsafe {
            if short {
                view::elements(plan, range.start, range.end);
            } else {
                rows(plan, range.start, range.end);
            }
        }
        if plan.non_temporal {
            non_temporal::fence();
        }
    });
}

/// How an input reaches the kernel within a row.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Direct,
    /// The buffer holds it for good.
    Kept,
    /// One value for each row.
    Value,
    Load,
}

/// The innermost loop.
struct Row {
    step: [isize; MAX],
    way: [Way; MAX],
    /// Whether the kernel takes whole rows as they are.
    whole: bool,
}

impl Row {
    fn new(step: [isize; MAX]) -> Row {
        Row {
            step,
            way: [Way::Load; MAX],
            whole: false,
        }
    }

    /// Settles how operands are read; `most` is the longest part of a row that will be asked for.
    // SAFETY: the plan's operands are valid.
    unsafe fn prepare<T: Compute>(
        &mut self,
        plan: &Plan<T>,
        buffers: &mut Buffers<T>,
        most: usize,
    ) {
        let size = size_of::<T>() as isize;
        for i in 0..=plan.inputs {
            self.way[i] = if plan.same[i] && self.step[i] == size {
                Way::Direct
            } else if i > 0 && plan.dims.iter().all(|d| d.step[i] == 0) {
                let n = most.min(Buffers::<T>::LEN);
                // SAFETY: the operand has an element there, and a buffer holds LEN of them.
                unsafe { (plan.load[i])(plan.at[i], 0, n, buffers.at(i)) };
                Way::Kept
            } else if i > 0 && self.step[i] == 0 {
                Way::Value
            } else {
                Way::Load
            };
        }
        self.whole = !plan.bounce && self.way[..=plan.inputs].iter().all(|&w| w == Way::Direct);
    }

    /// Elements `from..to` of the row that begins at `at`.
    #[inline(always)]
    unsafe fn run<T: Compute>(
        &self,
        plan: &Plan<T>,
        buffers: &mut Buffers<T>,
        at: &[*mut u8; MAX],
        from: usize,
        to: usize,
    ) {
        // SAFETY: the operands have elements `from..to`; blocks fit the buffers, of which `prepare`
        // filled those that are kept.
        unsafe {
            let address = |i: usize, k: usize| at[i].wrapping_offset(self.step[i] * k as isize);
            let mut x = [std::ptr::null::<T>(); MAX];
            if self.whole {
                for i in 1..=plan.inputs {
                    x[i - 1] = address(i, from).cast();
                }
                let y = address(0, from).cast();
                return (plan.kernel)(plan.params, x.as_ptr(), y, to - from);
            }
            if plan.copies && !plan.non_temporal {
                let (source, target) = (address(1, from), address(0, from));
                let run = |i: usize| self.step[i] == plan.size[i] as isize;
                if let Some(direct) = plan.direct.filter(|_| run(0) && run(1)) {
                    return direct(source, target, to - from);
                }
                if self.way[1] == Way::Direct {
                    return (plan.store)(target, self.step[0], to - from, source.cast());
                }
                if self.way[0] == Way::Direct {
                    return (plan.load[1])(source, self.step[1], to - from, target.cast());
                }
            }
            // What is stored past the caches passes a block in the result's type, which may be the
            // wider one.
            let non_temporal = plan.non_temporal && self.step[0] == plan.size[0] as isize;
            let block = match non_temporal {
                true => Buffers::<T>::LEN.min(BLOCK / plan.size[0]),
                false => Buffers::<T>::LEN,
            };
            for i in 1..=plan.inputs {
                if self.way[i] == Way::Value {
                    (plan.load[i])(at[i], 0, block.min(to - from), buffers.at(i));
                }
            }
            let mut k = from;
            while k < to {
                let n = block.min(to - k);
                for i in 1..=plan.inputs {
                    x[i - 1] = match self.way[i] {
                        Way::Direct => address(i, k).cast::<T>(),
                        Way::Load => {
                            (plan.load[i])(address(i, k), self.step[i], n, buffers.at(i));
                            buffers.at(i)
                        }
                        _ => buffers.at(i),
                    };
                }
                let target = address(0, k);
                if self.way[0] == Way::Direct && !plan.bounce {
                    (plan.kernel)(plan.params, x.as_ptr(), target.cast(), n);
                    k += n;
                    continue;
                }
                (plan.kernel)(plan.params, x.as_ptr(), buffers.at(0), n);
                let (size, result) = (plan.size[0], buffers.at(0));
                if non_temporal {
                    debug_assert!(n * size <= BLOCK);
                    let mut from = result.cast::<u8>();
                    if self.way[0] != Way::Direct {
                        from = buffers.at(MAX).cast();
                        (plan.store)(from, size as isize, n, result);
                    }
                    non_temporal::copy(from, target, n * size);
                } else {
                    (plan.store)(target, self.step[0], n, result);
                }
                k += n;
            }
        }
    }
}

/// Where operands lie in a row.
struct Cursor<const N: usize> {
    index: SmallVec<[usize; 6]>,
    at: [*mut u8; N],
}

impl<const N: usize> Cursor<N> {
    /// At row `row` of operands that begin at `at`; `outer` are the dimensions that rows lie along.
    fn new(outer: &[Walk<N>], at: [*mut u8; N], mut row: usize) -> Self {
        let index = SmallVec::from_elem(0, outer.len());
        let mut new = Cursor { index, at };
        for (i, d) in outer.iter().enumerate().rev() {
            new.index[i] = row % d.n;
            row /= d.n;
            for (p, step) in new.at.iter_mut().zip(&d.step) {
                *p = p.wrapping_offset(new.index[i] as isize * step);
            }
        }
        new
    }

    /// Rows from this on along the last dimension.
    fn left(&self, outer: &[Walk<N>]) -> usize {
        match (self.index.last(), outer.last()) {
            (Some(i), Some(d)) => d.n - i,
            _ => 1,
        }
    }

    /// Goes on by as many rows, at most those that are left along the last dimension.
    #[inline(always)]
    fn advance(&mut self, outer: &[Walk<N>], mut by: usize) {
        for (i, d) in outer.iter().enumerate().rev() {
            self.index[i] += by;
            let done = self.index[i] == d.n;
            // Past the end this dimension starts again.
            let back = if done { d.n as isize } else { 0 };
            for (p, step) in self.at.iter_mut().zip(&d.step) {
                *p = p.wrapping_offset((by as isize - back) * step);
            }
            if !done {
                break;
            }
            self.index[i] = 0;
            by = 1;
        }
    }
}

/// Elements `start..end`, row by row.
// SAFETY: the range lies within the plan, and no other thread writes it.
unsafe fn rows<T: Compute>(plan: &Plan<T>, start: usize, end: usize) {
    let mut buffers = Buffers::new();
    let last = plan.dims.len() - 1;
    let inner = &plan.dims[last];
    let mut row = Row::new(inner.step);
    // SAFETY: the plan's operands have all elements of their rows.
    unsafe { row.prepare(plan, &mut buffers, inner.n.min(end - start)) };
    let outer = &plan.dims[..last];
    let mut cursor = Cursor::new(outer, plan.at, start / inner.n);
    let mut col = start % inner.n;
    let mut left = end - start;
    loop {
        let n = left.min(inner.n - col);
        // SAFETY: columns `col..col + n` lie in this row, and the range is this thread's alone.
        unsafe { row.run(plan, &mut buffers, &cursor.at, col, col + n) };
        left -= n;
        if left == 0 {
            return;
        }
        col = 0;
        cursor.advance(outer, 1);
    }
}
