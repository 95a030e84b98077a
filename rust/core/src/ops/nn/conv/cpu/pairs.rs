//! Convolutions of bfloat16 where the processor adds two products in each lane: channels in pairs, which
//! the kernels take for half as many channels of float32.

use super::direct::Direct;
use super::{lanes, winograd, Geometry};
use crate::alloc::Scratch;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::per_isa;
use half::bf16;
use std::ops::Range;

/// Computes the convolution, or with `input` its gradient for the input, in float32. Returns false, and
/// nothing else, where another way is quicker or the processor has no such sums.
///
/// # Safety
/// The addresses hold tensors of the geometry's sizes, `bias` one number for each result channel or null;
/// nobody else touches `y`.
pub unsafe fn run(
    g: &Geometry,
    input: bool,
    x: *const bf16,
    w: *const bf16,
    bias: *const f32,
    y: *mut f32,
) -> bool {
    let Some(kernels) = lanes::pairs() else {
        return false;
    };
    if g.is_empty() || winograd::takes(g, input) {
        return false;
    }
    let (planes, taps) = (g.batch * g.groups, g.kernel_len());
    // SAFETY: the sizes are those of the tensors, and of the pairs made of them.
    unsafe {
        let (x, w, direct) = match input {
            false => (
                paired(x, planes, g.inputs, g.input_len()),
                paired(w, g.groups * g.outputs, g.inputs, taps),
                Direct::forward(&Geometry {
                    inputs: g.inputs.div_ceil(2),
                    ..g.clone()
                }),
            ),
            true => (
                paired(x, planes, g.outputs, g.output_len()),
                paired(w, g.groups, g.outputs, g.inputs * taps),
                Direct::input(&Geometry {
                    outputs: g.outputs.div_ceil(2),
                    ..g.clone()
                }),
            ),
        };
        direct.with(kernels).run(x.ptr(), w.ptr(), bias, y)
    }
}

/// The channels of `x`, which has `outer` times so many of `inner` elements, in pairs; an odd one beside
/// zeros.
unsafe fn paired(x: *const bf16, outer: usize, channels: usize, inner: usize) -> Scratch<f32> {
    let rows = outer * channels.div_ceil(2);
    let pairs = Scratch::<f32>::new(rows * inner);
    let (x, to) = (
        Ptr::read(x.cast::<u16>()),
        Ptr::new(pairs.ptr().cast::<u32>()),
    );
    parallel_for(rows, (1 << 15) / inner.max(1) + 1, |range| {
        // SAFETY: rows of different ranges are disjoint, and the caller gives the sizes.
        unsafe { pair_rows(x.get(), channels, inner, range, to.get()) };
    });
    pairs
}

per_isa! {
    unsafe fn pair_rows[](
        x: *const u16, channels: usize, inner: usize, rows: Range<usize>, to: *mut u32
    ) {
        let pairs = channels.div_ceil(2);
        for row in rows {
            let c = row % pairs * 2;
            // SAFETY: row `row` of the pairs belongs to this thread, and is made of one or two of `x`.
            unsafe {
                let x = x.add((row / pairs * channels + c) * inner);
                let to = to.add(row * inner);
                if c + 1 < channels {
                    for i in 0..inner {
                        *to.add(i) = *x.add(i) as u32 | (*x.add(inner + i) as u32) << 16;
                    }
                } else {
                    for i in 0..inner {
                        *to.add(i) = *x.add(i) as u32;
                    }
                }
            }
        }
    }
}
