//! Operands element by element in the order of the result: for rows too short to be worth a call
//! of the kernel.

use super::{Buffers, Dim, Plan, MAX};
use crate::convert::{Load, Store};
use crate::elements::Compute;
use crate::non_temporal;
use crate::shape::{coalesce, Walk};
use smallvec::SmallVec;

/// One operand: its dimensions that step alike merged, strides in bytes.
pub struct View {
    pub ptr: *mut u8,
    dims: SmallVec<[Walk<1>; 5]>,
}

impl View {
    fn new<T: Compute>(plan: &Plan<T>, which: usize) -> View {
        let dim = |d: &Dim| Walk {
            n: d.n,
            step: [d.step[which]],
        };
        View::of(plan.at[which], plan.dims.iter().map(dim))
    }

    /// What begins at `ptr` and has these dimensions, outermost first.
    pub fn of(ptr: *mut u8, dims: impl IntoIterator<Item = Walk<1>>) -> View {
        View {
            ptr,
            dims: coalesce(dims),
        }
    }

    /// The step between elements where there is one for all.
    pub fn step(&self) -> Option<isize> {
        match self.dims[..] {
            [d] => Some(d.step[0]),
            _ => None,
        }
    }

    /// After how many elements an operand that is broadcast along leading dimensions repeats.
    pub fn period(&self) -> Option<usize> {
        (self.dims.len() > 1 && self.dims[0].step == [0])
            .then(|| self.dims[1..].iter().map(|d| d.n).product())
    }

    /// Calls `f(address, step, count, done)` for the runs that make up elements `start..start+n`.
    ///
    /// # Safety
    /// The elements lie within the view, which has memory and a dimension.
    #[inline(always)]
    pub unsafe fn runs(
        &self,
        start: usize,
        n: usize,
        mut f: impl FnMut(*mut u8, isize, usize, usize),
    ) {
        // SAFETY: elements `start..start + n` lie within the view, whose dimensions bound `at`.
        unsafe {
            let k = self.dims.len();
            let (inner, step) = (self.dims[k - 1].n, self.dims[k - 1].step[0]);
            let mut at = [0usize; 64];
            let mut rest = start;
            let mut ptr = self.ptr;
            for d in (0..k).rev() {
                at[d] = rest % self.dims[d].n;
                rest /= self.dims[d].n;
                ptr = ptr.offset(at[d] as isize * self.dims[d].step[0]);
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
                    let (size, stride) = (self.dims[d].n, self.dims[d].step[0]);
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
    }

    unsafe fn load<T>(&self, load: Load<T>, start: usize, n: usize, dst: *mut T) {
        // SAFETY: `f` gets runs of elements `start..start + n` of the view, and `dst` has room for
        // `n`.
        unsafe {
            self.runs(start, n, |p, step, count, done| {
                load(p, step, count, dst.add(done));
            });
        }
    }

    unsafe fn store<T>(&self, store: Store<T>, start: usize, n: usize, src: *const T) {
        // SAFETY: `f` gets runs of elements `start..start + n` of the view, which nobody else
        // touches; `src` has `n`.
        unsafe {
            self.runs(start, n, |p, step, count, done| {
                store(p, step, count, src.add(done));
            });
        }
    }
}

/// How an input reaches the kernel.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Direct,
    /// The buffer holds it for good.
    Kept,
    /// The buffer holds whole periods.
    Periodic,
    Load,
}

/// Elements `start..end` in row-major order of the plan's dimensions.
///
/// # Safety
/// The range lies within the plan, and no other thread writes it.
pub unsafe fn elements<T: Compute>(plan: &Plan<T>, start: usize, end: usize) {
    // SAFETY: elements `start..end` lie within the plan and are this thread's alone; a buffer holds
    // LEN elements, and blocks end there.
    unsafe {
        let mut buffers = Buffers::new();
        let views: SmallVec<[View; MAX]> = (0..=plan.inputs).map(|i| View::new(plan, i)).collect();
        let size = size_of::<T>() as isize;
        let direct = |i: usize| plan.same[i] && views[i].step() == Some(size);
        let mut block = Buffers::<T>::LEN.min(end - start);
        let mut period = 0;
        let mut way = [Way::Load; MAX];
        for i in 1..=plan.inputs {
            way[i] = match (views[i].step(), views[i].period()) {
                _ if direct(i) => Way::Direct,
                (Some(0), _) => {
                    (plan.load[i])(views[i].ptr, 0, block, buffers.at(i));
                    Way::Kept
                }
                (_, Some(p)) if period == p || (period == 0 && 2 * p <= block) => {
                    if period == 0 {
                        period = p;
                        block -= block % p;
                    }
                    views[i].load(plan.load[i], 0, block, buffers.at(i));
                    Way::Periodic
                }
                _ => Way::Load,
            };
        }
        let mut x = [std::ptr::null::<T>(); MAX];
        let mut at = start;
        while at < end {
            // A block of whole periods may begin within one.
            let phase = if period > 0 { at % period } else { 0 };
            let n = (block - phase).min(end - at);
            debug_assert!(phase + n <= Buffers::<T>::LEN);
            for i in 1..=plan.inputs {
                x[i - 1] = match way[i] {
                    Way::Direct => views[i].ptr.cast::<T>().add(at),
                    Way::Kept => buffers.at(i),
                    Way::Periodic => buffers.at(i).add(phase),
                    Way::Load => {
                        views[i].load(plan.load[i], at, n, buffers.at(i));
                        buffers.at(i)
                    }
                };
            }
            if direct(0) && !plan.bounce {
                (plan.kernel)(plan.params, x.as_ptr(), views[0].ptr.cast::<T>().add(at), n);
            } else {
                let y = buffers.at(0);
                (plan.kernel)(plan.params, x.as_ptr(), y, n);
                if plan.non_temporal && direct(0) {
                    let to = views[0].ptr.cast::<T>().add(at);
                    non_temporal::copy(y.cast(), to.cast(), n * size_of::<T>());
                } else {
                    views[0].store(plan.store, at, n, y);
                }
            }
            at += n;
        }
    }
}
