//! The loops of the incomplete gamma functions: many numbers in step, by how many terms they take.

use super::super::Own;
use crate::cpu::math::f32x::incomplete;
use crate::cpu::pointwise::Kernel;
use crate::per_isa;

per_isa! {
    fn kernel[; const LOWER: bool] -> Kernel<f32> = (_p: *const (), x: *const *const f32, y: *mut f32, n: usize) {
        // SAFETY: the caller gives pointers to `n` elements of both inputs, and room for `n`.
        unsafe { incomplete::<LOWER>(*x, *x.add(1), y, n) }
    }
}

pub fn lower(which: Own) -> Option<Kernel<f32>> {
    (which != Own::Gradient).then(kernel::<true>)
}

pub fn upper(which: Own) -> Option<Kernel<f32>> {
    (which != Own::Gradient).then(kernel::<false>)
}
