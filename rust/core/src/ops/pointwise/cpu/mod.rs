//! The loops over a formula, one for each instruction set.

pub mod complex;
pub mod exp;
pub mod gelu;
pub mod halves;
pub mod incomplete;
pub mod log;
pub mod near;

use super::{Integer, Own, Pointwise, Real};
use crate::cpu::elements::{Bool, Element};
use crate::cpu::pointwise::spread::Numbered;
use crate::cpu::pointwise::Kernel;
use crate::cpu::simd::veiled;
use crate::per_isa;
use near::Guarded;

/// Element `i` of each operand. Written out: `array::from_fn` may stay a call in the loop.
#[inline(always)]
unsafe fn at<R: Copy, const N: usize>(x: &[*const R; N], i: usize) -> [R; N] {
    // SAFETY: every pointer has an element `i`; N is at least one.
    unsafe {
        let mut a = [*x[0].add(i); N];
        let mut j = 1;
        while j < N {
            a[j] = *x[j].add(i);
            j += 1;
        }
        a
    }
}

#[inline(always)]
unsafe fn near_at<R: Guarded, const N: usize>(x: &[*const R; N], i: usize) -> [R::Near; N] {
    // SAFETY: every pointer has an element `i`; N is at least one.
    unsafe {
        let mut a = [(*x[0].add(i)).near(); N];
        let mut j = 1;
        while j < N {
            a[j] = (*x[j].add(i)).near();
            j += 1;
        }
        a
    }
}

/// The vector formula of element `i`. No closure: a large one stays a function, which is compiled
/// without the instruction set.
trait Near<R: Guarded> {
    // SAFETY: there is an element `i`.
    unsafe fn near(&self, i: usize) -> R::Near;
    /// Whether `n` elements from `i` on are where [`Near::close`] may be asked.
    // SAFETY: there are so many elements.
    #[inline(always)]
    unsafe fn are_close(&self, _i: usize, _n: usize) -> bool {
        false
    }
    // SAFETY: there is an element `i`.
    #[inline(always)]
    unsafe fn close(&self, i: usize) -> R::Near {
        // SAFETY: there is an element `i`.
        unsafe { self.near(i) }
    }
}

/// The results of a formula.
struct Values<'a, P, R, const N: usize> {
    op: &'a P,
    x: [*const R; N],
}

impl<P: Pointwise<N>, R: Guarded, const N: usize> Near<R> for Values<'_, P, R, N> {
    #[inline(always)]
    unsafe fn near(&self, i: usize) -> R::Near {
        // SAFETY: the operands have an element `i`.
        self.op.f(unsafe { near_at(&self.x, i) })
    }
    #[inline(always)]
    unsafe fn are_close(&self, i: usize, n: usize) -> bool {
        if P::CLOSE == 0.0 {
            return false;
        }
        let mut beyond = R::Mark::default();
        for j in i..i + n {
            // SAFETY: the operand has an element `j`.
            beyond = beyond | unsafe { (*self.x[0].add(j)).beyond(P::CLOSE) };
        }
        beyond == R::Mark::default()
    }
    #[inline(always)]
    unsafe fn close(&self, i: usize) -> R::Near {
        // SAFETY: the operands have an element `i`.
        self.op.close(unsafe { near_at(&self.x, i) })
    }
}

/// The gradients of its input `I`, by its results and theirs.
struct Slopes<'a, P, R, const N: usize, const I: usize> {
    op: &'a P,
    x: [*const R; N],
    y: *const R,
    g: *const R,
}

impl<P: Pointwise<N>, R: Guarded, const N: usize, const I: usize> Near<R>
    for Slopes<'_, P, R, N, I>
{
    #[inline(always)]
    unsafe fn near(&self, i: usize) -> R::Near {
        // SAFETY: the operands have an element `i`.
        unsafe {
            let (y, g) = (*self.y.add(i), *self.g.add(i));
            self.op.df(near_at(&self.x, i), y.near(), g.near())[I]
        }
    }
}

/// Computes `y[i] = near(i)` for `i < n`, and `exact(i)` where that is marked. Every element is read
/// before the block that holds it is written, since `y` may be an operand.
// SAFETY: `y` has room for `n`, and `near` and `exact` may be asked for elements below `n`.
#[inline(always)]
unsafe fn marked<R: Guarded>(
    y: *mut R,
    n: usize,
    formula: impl Near<R>,
    exact: impl Fn(usize) -> R,
) {
    const BLOCK: usize = 128;
    let mut block = [R::lit(0.0); BLOCK];
    let mut marks = [R::Mark::default(); BLOCK];
    let mut start = 0;
    while start < n {
        let len = BLOCK.min(n - start);
        // SAFETY: the elements are below `n`, for which `y` has room, and `len` is at most BLOCK.
        unsafe {
            if formula.are_close(start, len) {
                for j in 0..len {
                    block[j] = R::parts(formula.close(start + j)).0;
                }
                std::ptr::copy_nonoverlapping(block.as_ptr(), y.add(start), len);
                start += len;
                continue;
            }
        }
        let mut any = R::Mark::default();
        for j in 0..len {
            // SAFETY: the element is below `n`.
            let (v, mark) = R::parts(unsafe { formula.near(start + j) });
            (block[j], marks[j]) = (v, mark);
            any = any | mark;
        }
        if any != R::Mark::default() {
            for j in 0..len {
                if marks[j] != R::Mark::default() {
                    block[j] = exact(start + j);
                }
            }
        }
        // SAFETY: `start + len` is at most `n`, for which `y` has room, and `len` at most BLOCK.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), y.add(start), len) };
        start += len;
    }
}

/// Elements of runs that no cache holds. Their operands are read and written a line of each in turn:
/// four lines of each, as the compiler would do, take the memory of a Zen 4 a fifth longer (but are
/// quicker from its last cache).
const LONG: usize = 1 << 22;
/// Elements of a line.
const LINE: usize = 16;
/// Elements of rows for which the compiler's loop takes longer to begin than to end.
const FEW: usize = 80;

#[inline(always)]
unsafe fn forward<P: Pointwise<N>, R: Guarded, const N: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
    unsafe {
        // A copy, so that no store through `y` can be a store to a parameter.
        let op = (*params.cast::<P>()).settled(false);
        let x = *x.cast::<[*const R; N]>();
        if const { P::FACTS.guarded } {
            return marked(y, n, Values { op: &op, x }, |i| op.f(at(&x, i)));
        }
        if std::ptr::eq(x[0], y) {
            // In place: through one pointer, so that the compiler sees that elements keep their
            // place.
            let zero = std::hint::black_box(0);
            for i in 0..n {
                let mut a = at(&x, i);
                a[0] = *y.add(i);
                *y.add(i) = veiled(op.f(a), zero);
            }
            return;
        }
        let mut from = 0;
        if N == 2 && n >= LONG {
            while from + LINE <= n {
                let mut line = [*x[0]; LINE];
                for i in 0..LINE {
                    line[i] = op.f(at(&x, from + i));
                }
                std::ptr::copy_nonoverlapping(line.as_ptr(), y.add(from), LINE);
                // Hidden, so that the compiler does not take lines together.
                from = std::hint::black_box(from + LINE);
            }
        }
        for i in from..n {
            *y.add(i) = op.f(at(&x, i));
        }
    }
}

/// As [`forward`] of two inputs, of which input I is a number for each row.
#[inline(always)]
unsafe fn forward_number<P: Pointwise<N>, R: Real, const N: usize, const I: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, that of input I to one; `y`
    // has room for `n`.
    unsafe { numbers::<P, R, N, I>(params, x, y, n, false, |op: &P, from| op.f(from)) }
}

#[inline(always)]
unsafe fn int_number<P: Pointwise<N>, R: Element, const N: usize, const I: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, that of input I to one; `y`
    // has room for `n`.
    unsafe { numbers::<P, R, N, I>(params, x, y, n, true, widened) }
}

#[inline(always)]
unsafe fn narrow_number<P: Pointwise<N>, R: Integer, const N: usize, const I: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, that of input I to one; `y`
    // has room for `n`.
    unsafe { numbers::<P, R, N, I>(params, x, y, n, true, |op: &P, from| op.narrow(from)) }
}

#[inline(always)]
unsafe fn numbers<P: Pointwise<N>, R: Copy, const N: usize, const I: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
    integers: bool,
    f: impl Fn(&P, [R; N]) -> R,
) {
    // SAFETY: `params` is a `Numbered` of a `P`; rows of `x` and `y` have `n` elements.
    unsafe {
        let held = &*params.cast::<Numbered<R>>();
        let op = (*held.params.cast::<P>()).settled(integers);
        let (rows, step, numbers) = (held.rows, held.step, held.numbers);
        let zero = std::hint::black_box(0);
        let mut next = (*x, y);
        'rows: for r in 0..rows {
            let mut a = [*numbers.add(r); N];
            let (x, y) = next;
            next = (
                x.wrapping_byte_offset(step[0]),
                y.wrapping_byte_offset(step[1]),
            );
            if n < FEW {
                // A line at a time, which asks for nothing before it begins, nor for more if it is all.
                let mut i = 0;
                while i + LINE <= n {
                    let mut line = [*x; LINE];
                    for j in 0..LINE {
                        a[1 - I] = *x.add(i + j);
                        line[j] = f(&op, a);
                    }
                    std::ptr::copy_nonoverlapping(line.as_ptr(), y.add(i), LINE);
                    i += LINE;
                    if n == LINE {
                        continue 'rows;
                    }
                }
                for i in i..n {
                    a[1 - I] = *x.add(i);
                    *y.add(i) = f(&op, a);
                }
                continue;
            }
            if std::ptr::eq(x, y) {
                for i in 0..n {
                    a[1 - I] = *y.add(i);
                    *y.add(i) = veiled(f(&op, a), zero);
                }
                continue;
            }
            for i in 0..n {
                a[1 - I] = *x.add(i);
                *y.add(i) = f(&op, a);
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::extra_unused_type_parameters)] // `kernels!` names the type for every loop
unsafe fn forward_half<P: Pointwise<N>, R: Guarded, const N: usize>(
    params: *const (),
    x: *const *const f32,
    y: *mut f32,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
    unsafe {
        let op = (*params.cast::<P>()).settled(false);
        let x = *x.cast::<[*const f32; N]>();
        for i in 0..n {
            *y.add(i) = op.half(at(&x, i));
        }
    }
}

#[inline(always)]
fn widened<P: Pointwise<N>, R: Element, const N: usize>(op: &P, from: [R; N]) -> R {
    let mut wide = [0; N];
    let mut j = 0;
    while j < N {
        wide[j] = from[j].to_i64();
        j += 1;
    }
    R::of_i64(op.int(wide))
}

#[inline(always)]
unsafe fn forward_int<P: Pointwise<N>, R: Element, const N: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
    unsafe { integers(params, x, y, n, widened::<P, R, N>) }
}

/// As [`forward_int`] of 64 bits. Integers that float64 holds are divided as such: a division of
/// integers takes as long as a vector's of those.
#[inline(always)]
#[allow(clippy::extra_unused_type_parameters)] // as above
unsafe fn forward_i64<P: Pointwise<N>, R: Element, const N: usize>(
    params: *const (),
    x: *const *const i64,
    y: *mut i64,
    n: usize,
) {
    const BLOCK: usize = 64;
    const BITS: u32 = 51;
    // 1.5 * 2^52: added to an integer of few bits its last bits are the integer's.
    const SHIFT: f64 = 6755399441055744.0;
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
    unsafe {
        if const { !P::FACTS.divides } {
            return forward_int::<P, i64, N>(params, x, y, n);
        }
        let op = (*params.cast::<P>()).settled(true);
        let x = *x.cast::<[*const i64; N]>();
        // A block is written when it is whole, since `y` may be an operand.
        let mut block = [0; BLOCK];
        let mut start = 0;
        while start < n {
            let len = BLOCK.min(n - start);
            let mut bits = 0;
            let mut k = 0;
            while k < N {
                for j in 0..len {
                    let v = *x[k].add(start + j) as u64;
                    bits |= v.wrapping_add(1 << (BITS - 1));
                }
                k += 1;
            }
            if bits >> BITS == 0 {
                for j in 0..len {
                    let mut wide = [0.0; N];
                    let mut k = 0;
                    while k < N {
                        let v = *x[k].add(start + j);
                        wide[k] = f64::from_bits(SHIFT.to_bits().wrapping_add(v as u64)) - SHIFT;
                        k += 1;
                    }
                    let shifted = (op.divided(wide) + SHIFT).to_bits();
                    block[j] = shifted.wrapping_sub(SHIFT.to_bits()) as i64;
                }
            } else {
                for j in 0..len {
                    block[j] = widened(&op, at(&x, start + j));
                }
            }
            std::ptr::copy_nonoverlapping(block.as_ptr(), y.add(start), len);
            start += len;
        }
    }
}

#[inline(always)]
unsafe fn forward_narrow<P: Pointwise<N>, R: Integer, const N: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
    unsafe { integers(params, x, y, n, |op: &P, from| op.narrow(from)) }
}

#[inline(always)]
unsafe fn integers<P: Pointwise<N>, R: Copy, const N: usize>(
    params: *const (),
    x: *const *const R,
    y: *mut R,
    n: usize,
    f: impl Fn(&P, [R; N]) -> R,
) {
    // SAFETY: `params` is a `P`; `x` holds N pointers to `n` elements, and `y` has room for `n`.
    unsafe {
        // A copy, so that no store through `y` can be a store to a parameter.
        let op = (*params.cast::<P>()).settled(true);
        let x = *x.cast::<[*const R; N]>();
        let one = |from| f(&op, from);
        if std::ptr::eq(x[0], y) {
            let zero = std::hint::black_box(0);
            for i in 0..n {
                let mut a = at(&x, i);
                a[0] = *y.add(i);
                *y.add(i) = veiled(one(a), zero);
            }
            return;
        }
        for i in 0..n {
            *y.add(i) = one(at(&x, i));
        }
    }
}

#[inline(always)]
unsafe fn gradient<P: Pointwise<N>, R: Guarded, const N: usize, const I: usize>(
    params: *const (),
    x: *const *const R,
    d: *mut R,
    n: usize,
) {
    // SAFETY: `params` is a `P`; `x` holds N + 2 pointers to `n` elements, and `d` has room for
    // `n`.
    unsafe {
        if I >= N {
            return;
        }
        // A copy, so that no store through `y` can be a store to a parameter.
        let op = (*params.cast::<P>()).settled(false);
        let (g, y) = (*x, *x.add(1));
        let x = *x.add(2).cast::<[*const R; N]>();
        if const { P::FACTS.guarded } {
            let (op, of) = (&op, Slopes::<P, R, N, I> { op: &op, x, y, g });
            return marked(d, n, of, |i| op.df(at(&x, i), *y.add(i), *g.add(i))[I]);
        }
        for i in 0..n {
            *d.add(i) = op.df(at(&x, i), *y.add(i), *g.add(i))[I];
        }
    }
}

/// The loop for the best instruction set.
macro_rules! kernels {
    ($($name:ident: $R:ident, $body:ident $(, const $I:ident)? $([$($most:tt)*])?;)*) => { $(
        per_isa! {
            pub fn $name[P: Pointwise<N>; const N: usize $(, const $I: usize)?]
                -> Kernel<$R> $(, $($most)*)? = (p: *const (), x: *const *const $R, y: *mut $R, n: usize) {
                // SAFETY: the caller gives a `P`, pointers to `n` elements and room for `n`.
            unsafe { $body::<P, $R, N $(, $I)?>(p, x, y, n) }
            }
        }
    )* };
}
kernels! {
    formula32: f32, forward;
    formula64: f64, forward;
    number32: f32, forward_number, const I;
    number64: f64, forward_number, const I;
    formula_half: f32, forward_half;
    gradient32: f32, gradient, const I;
    gradient64: f64, gradient, const I;
    kernel_i64: i64, forward_i64;
    // Narrow integers: wider vectors would gain little beside the memory.
    kernel_i32: i32, forward_narrow [at most avx2];
    kernel_i16: i16, forward_narrow [at most avx2];
    kernel_i8: i8, forward_narrow [at most avx2];
    kernel_u8: u8, forward_narrow [at most avx2];
    kernel_bool: Bool, forward_int [at most avx2];
    number_i64: i64, int_number, const I;
    number_i32: i32, narrow_number, const I [at most avx2];
    number_i16: i16, narrow_number, const I [at most avx2];
    number_i8: i8, narrow_number, const I [at most avx2];
    number_u8: u8, narrow_number, const I [at most avx2];
    number_bool: Bool, int_number, const I [at most avx2];
}

/// The loop over float32.
pub fn kernel32<P: Pointwise<N>, const N: usize>() -> Kernel<f32> {
    P::own(Own::Forward).unwrap_or_else(formula32::<P, N>)
}

/// The loop over float64.
pub fn kernel64<P: Pointwise<N>, const N: usize>() -> Kernel<f64> {
    P::own64(Own::Forward).unwrap_or_else(formula64::<P, N>)
}

/// The loop over float32 that is as exact as float16 and bfloat16 ask for.
pub fn kernel_half<P: Pointwise<N>, const N: usize>() -> Kernel<f32> {
    P::own(Own::Half).unwrap_or_else(formula_half::<P, N>)
}

/// The gradient kernel of input `i`; ops have at most four.
macro_rules! by_input {
    ($name:ident, $R:ident, $of:ident) => {
        pub fn $name<P: Pointwise<N>, const N: usize>(i: usize) -> Kernel<$R> {
            match i {
                0 => $of::<P, N, 0>(),
                1 => $of::<P, N, 1>(),
                2 => $of::<P, N, 2>(),
                _ => $of::<P, N, 3>(),
            }
        }
    };
}
by_input!(formula_grad32, f32, gradient32);
by_input!(grad64, f64, gradient64);

/// The loop over float32 of the gradient of input `i`.
pub fn grad32<P: Pointwise<N>, const N: usize>(i: usize) -> Kernel<f32> {
    P::own(Own::Gradient).unwrap_or_else(|| formula_grad32::<P, N>(i))
}
