//! Products and convolutions by cooperative matrices: the code that both share.

use crate::cpu::gemm;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::cooperative::Factors;
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::Gpu;
use crate::shape::DimSet;
use crate::tensor::Tensor;
use crate::transfer::whole;

/// Rows, columns and steps of the smallest product that they are tried on.
pub const WORTH: usize = 32;
/// Elements of a result that a trial compares.
pub const SAMPLE: usize = 1 << 20;

/// How operands are multiplied where they may be: float16 as it is; bfloat16 scaled; float32 as the
/// precision that was asked for allows, not at all in the highest.
pub fn factors(a: &Tensor, b: &Tensor, y: &Tensor) -> Option<Factors> {
    let dtype = a.dtype();
    let terms = match dtype {
        DType::F16 | DType::BF16 => 1,
        DType::F32 => gemm::precision(),
        _ => return None,
    };
    let float = matches!(y.dtype(), DType::F16 | DType::BF16 | DType::F32);
    (terms <= 2 && b.dtype() == dtype && float).then_some(Factors { dtype, terms })
}

/// How far results may be from those of the tiles, of the largest: what that precision explains.
pub fn error(factors: Factors, y: DType) -> f32 {
    match (y, factors) {
        (DType::BF16, _) => 2f32.powi(-7),
        (DType::F16, _) => 2f32.powi(-9),
        (
            _,
            Factors {
                dtype: DType::F32,
                terms: 1,
            },
        ) => 2f32.powi(-9),
        _ => 2f32.powi(-15),
    }
}

/// The elements of a result as float32.
pub fn sample(y: &Tensor) -> Result<Vec<f32>> {
    let host = y.to_host()?.prepared(DType::F32)?;
    // SAFETY: a prepared tensor is contiguous, and of the type that was asked for.
    Ok(unsafe { host.slice::<f32>() }.to_vec())
}

/// The largest magnitudes of `x` along `dims`, in the order of the others, as float32.
pub fn tops(gpu: &Gpu, x: &Tensor, dims: DimSet) -> Result<Tensor> {
    let kept = (0..x.layout().shape.len()).filter(|&d| !dims.has(d));
    let shape: Vec<usize> = kept.map(|d| x.size(d)).collect();
    let tops = Tensor::empty(&shape, DType::F32, x.device())?;
    let (from, to) = (whole(x)?, whole(&tops)?);
    reduce(gpu, Combine::Max, Map::Magnitude, 1.0, from, dims, to)?;
    Ok(tops)
}
