//! Copies, casts and fills: pointwise kernels with trivial bodies.

use super::pointwise::{copy_bits, pointwise, IDENTITY};
use super::{Acc, Buffer, Gpu, Scratch, View};
use crate::dtype::DType;
use crate::error::Result;
use smallvec::SmallVec;

const FILL: &str = "fn op() -> Acc { return scalar(0u); }\n";

/// `y = x`, converted to the type of `y`. `x` has the shape of `y`, with stride 0 where it
/// broadcasts.
pub fn copy(gpu: &Gpu, x: View, y: View) -> Result<()> {
    if x.dtype == y.dtype {
        return copy_bits(gpu, x, y);
    }
    // Float results go through the wider type; what is left of int64 goes through itself.
    let acc = match (x.dtype, y.dtype) {
        (DType::F64, _) | (_, DType::F64) => Acc::F64,
        _ => Acc::of(x.dtype)?,
    };
    pointwise(gpu, acc, IDENTITY, &[x], y, &[])
}

/// Sets every element to a number, given as [`Acc::words`] of the type that `y` computes in.
pub fn fill(gpu: &Gpu, y: View, words: [u32; 2]) -> Result<()> {
    match y.dtype {
        // Bits as they are, where the adapter lacks the type.
        DType::I64 | DType::F64 => {
            let shape: SmallVec<[usize; 8]> = y.shape.iter().copied().chain([1]).collect();
            for (k, word) in words.into_iter().enumerate() {
                let strides: SmallVec<[isize; 8]> =
                    y.strides.iter().map(|s| 2 * s).chain([1]).collect();
                let offset = 2 * y.offset + k;
                let half = View {
                    offset,
                    shape: &shape,
                    strides: &strides,
                    dtype: DType::I32,
                    ..y
                };
                pointwise(gpu, Acc::I32, FILL, &[], half, &[[word, 0]])?;
            }
            Ok(())
        }
        _ => pointwise(gpu, Acc::of(y.dtype)?, FILL, &[], y, &[words]),
    }
}

/// Copies bytes at any alignment. Ranges within one buffer may overlap.
pub fn bytes(
    gpu: &Gpu,
    src: &Buffer,
    src_offset: usize,
    dst: &Buffer,
    dst_offset: usize,
    n: usize,
) -> Result<()> {
    let words = src_offset.is_multiple_of(4) && dst_offset.is_multiple_of(4) && n.is_multiple_of(4);
    let (dtype, size) = if words {
        (DType::I32, 4)
    } else {
        (DType::U8, 1)
    };
    let shape = [n / size];
    let view = |buffer, offset| View {
        buffer,
        offset,
        shape: &shape,
        strides: &[1],
        dtype,
    };
    let (x, y) = (view(src, src_offset / size), view(dst, dst_offset / size));
    let near = src_offset < dst_offset + n && dst_offset < src_offset + n;
    if src.same(dst) && near {
        let between = Scratch::new(gpu, &shape, dtype)?;
        copy_bits(gpu, x, between.view())?;
        return copy_bits(gpu, between.view(), y);
    }
    copy_bits(gpu, x, y)
}
