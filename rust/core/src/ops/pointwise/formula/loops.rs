//! The loop that a call takes: of numbers beside tensors, of integers in their own type, or of elements in a chain.

use super::{types, Formula, IntLoops};
use crate::cpu::convert;
use crate::cpu::elements::Compute;
use crate::cpu::pointwise::chain::{erased, Body, Loop};
use crate::cpu::pointwise::spread::{spread, Numbered, Pair};
use crate::cpu::pointwise::{run, run_bits, Kernel, MAX_INPUTS};
use crate::dtype::DType;
use crate::meta::Meta;
use crate::ops::pointwise::Types;
use crate::tensor::Tensor;
use half::{bf16, f16};

/// Computes a tensor and a number where there is a loop for that: `true` where it did.
pub(super) fn with_number(
    op: &dyn Formula,
    t: DType,
    x: &[&Tensor],
    y: &Tensor,
    grain: usize,
) -> bool {
    let &[x, number] = x else { return false };
    if number.ndim() > 0 || x.dtype() != t || x.shape() != y.shape() || t.is_float8() {
        return false;
    }
    let mut v = 0.0f32;
    // SAFETY: the tensor has one element, which lies in host memory.
    unsafe { convert::load::<f32>(number.dtype(), number.bytes_ptr(), 0, 1, &mut v) };
    if v.is_nan() {
        // Which of two NaNs remains is for the loop of two tensors to say, which recorded calls take.
        return false;
    }
    let held = Numbered::one(op.params(), &v);
    if t == DType::F32 {
        let Some([_, kernel]) = op.number_f32() else {
            return false;
        };
        // SAFETY: the loop is the op's, and takes its parameters with a number; `dispatch` checked
        // the tensors.
        unsafe { run::<f32, _>(kernel, (&raw const held).cast(), &[Some(x)], y, grain) };
        return true;
    }
    let Some([_, kernel]) = op.number_bits(t) else {
        return false;
    };
    // SAFETY: the loop is the op's, and takes its parameters with a number; `dispatch` checked the
    // tensors.
    unsafe { run_bits(kernel, (&raw const held).cast(), t, &[x], y, grain) }
}

/// Computes two tensors of which one has a number for each row of the other, where there are loops for
/// that: `true` where it did.
pub(super) fn with_numbers(
    op: &dyn Formula,
    t: DType,
    x: &[&Tensor],
    y: &Tensor,
    grain: usize,
) -> bool {
    let &[a, b] = x else { return false };
    if a.dtype() != t || b.dtype() != t || y.dtype() != t || a.shape() == b.shape() {
        return false;
    }
    let (x, runs) = ([a, b], t.is_half());
    /// Of a loop of two runs, those for a number, and what makes an element a number.
    macro_rules! spread {
        ($both:expr, $number:expr, $of:expr) => {{
            let (Some(both), Some(number)) = ($both, $number) else {
                return false;
            };
            let pair = Pair {
                params: op.params(),
                both,
                number,
                runs,
            };
            // SAFETY: the loops are the op's, each for its type, and take its parameters; `dispatch`
            // checked the tensors.
            unsafe { spread(&pair, $of, x, y, grain) }
        }};
    }
    macro_rules! integers {
        ($t:ident) => {{
            let Some(IntLoops { $t: of, .. }) = op.int_loops() else {
                return false;
            };
            spread!(Some(of.kernel), of.number, |v| v)
        }};
    }
    match t {
        DType::F32 => spread!(Some(op.loop_f32()), op.number_f32(), |v: f32| v),
        DType::F64 => spread!(Some(op.loop_f64()), op.number_f64(), |v: f64| v),
        DType::F16 | DType::BF16 => {
            let wide = |v: u16| match t {
                DType::F16 => f16::from_bits(v).to_f32(),
                _ => bf16::from_bits(v).to_f32(),
            };
            spread!(op.loop_bits(t), op.number_bits(t), wide)
        }
        DType::I64 => integers!(i64),
        DType::I32 => integers!(i32),
        DType::I16 => integers!(i16),
        DType::I8 => integers!(i8),
        DType::U8 => integers!(u8),
        DType::Bool => integers!(bool),
        _ => false,
    }
}

/// The loop over elements of an op on real numbers. What looks at numbers before it computes has none.
pub fn each(op: &dyn Formula, x: &[&Meta]) -> Option<Loop> {
    let facts = op.facts();
    let (t, output) = types(op, x).ok()?;
    let truth = facts.types == Types::Bool;
    let wide = |t: &&Meta| t.dtype().is_wide_unsigned();
    if t.is_complex() || x.iter().any(wide) || facts.divides && t.is_integral() {
        return None;
    }
    let of = |compute, kernel, grain| Loop {
        compute,
        body: Body::Kernel(kernel, op.params()),
        numbers: [None; MAX_INPUTS],
        grain,
    };
    let number = |t: &Meta| t.ndim() == 0;
    if t.is_integral() {
        let loops = op.int_loops()?;
        // As `run_int`: a number of another type is taken to be that of a wide one, which may be beyond.
        let own = |x: &&Meta| {
            let wide = number(x) && !truth && x.dtype() == DType::I64 && t != DType::Bool;
            x.dtype() == t || wide
        };
        let kernel = match x.iter().all(own).then_some(t) {
            Some(DType::I32) => erased(loops.i32.kernel),
            Some(DType::I16) => erased(loops.i16.kernel),
            Some(DType::I8) => erased(loops.i8.kernel),
            Some(DType::U8) => erased(loops.u8.kernel),
            Some(DType::Bool) => erased(loops.bool.kernel),
            _ => {
                return Some(of(
                    DType::I64,
                    erased(loops.i64.kernel),
                    op.int_grain(t.size()),
                ))
            }
        };
        return Some(of(t, kernel, op.int_grain(t.size())));
    }
    let grain = op.grain(t == DType::F64);
    let alike = |t: DType| x.iter().all(|x| x.dtype() == t && !number(x)) && output == t;
    if t.is_half() && alike(t) {
        if let Some(kernel) = op.loop_bits(t) {
            return Some(of(t, erased(kernel), grain));
        }
    }
    let mut each = match t.compute() {
        DType::F64 => of(DType::F64, erased(op.loop_f64()), grain),
        _ if t.is_half() => of(DType::F32, erased(op.loop_half()), grain),
        _ => of(DType::F32, erased(op.loop_f32()), grain),
    };
    if t.is_half() || t.is_float8() {
        // As `settled`.
        for (i, x) in x.iter().enumerate() {
            let exact = t.is_half() && facts.keeps(i, x.is_wrapped());
            if number(x) && x.dtype().size() > t.size() && !exact {
                each.numbers[i] = Some(t);
            }
        }
    }
    Some(each)
}

/// Computes integers in their own type where all inputs have it, else in `i64`.
// SAFETY: the loops are the op's, tensors lie in host memory, and `y` may be written.
pub(super) unsafe fn run_int(
    loops: &IntLoops,
    params: *const (),
    t: DType,
    x: &[Option<&Tensor>],
    y: &Tensor,
    grain: usize,
) {
    // SAFETY: `params` is the kernel's, tensors lie in host memory, and `y` may be written.
    unsafe fn as_is<T: Compute>(
        kernel: Kernel<T>,
        params: *const (),
        x: &[Option<&Tensor>],
        y: &Tensor,
        grain: usize,
    ) -> bool {
        // A number beyond the type's range means more than its low bits.
        let fits = |t: &Tensor| {
            let one = t.numel() == 1 && t.dtype() == DType::I64 && T::DTYPE != DType::Bool;
            // SAFETY: one element of this type.
            let kept = |v: *const i64| unsafe { *v == T::of_i64(*v).to_i64() };
            t.dtype() == T::DTYPE || (one && kept(t.ptr()))
        };
        let all = x.iter().flatten().all(|t| fits(t));
        if all {
            // SAFETY: `params` is the kernel's, tensors lie in host memory, and all have the type
            // `T`.
            unsafe { run::<T, _>(kernel, params, x, y, grain) };
        }
        all
    }
    // SAFETY: the loops are the op's, each for its type, and so are the parameters.
    unsafe {
        let done = match t {
            DType::I32 => as_is(loops.i32.kernel, params, x, y, grain),
            DType::I16 => as_is(loops.i16.kernel, params, x, y, grain),
            DType::I8 => as_is(loops.i8.kernel, params, x, y, grain),
            DType::U8 => as_is(loops.u8.kernel, params, x, y, grain),
            DType::Bool => as_is(loops.bool.kernel, params, x, y, grain),
            _ => false,
        };
        if !done {
            run::<i64, _>(loops.i64.kernel, params, x, y, grain);
        }
    }
}
