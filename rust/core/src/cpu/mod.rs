//! Kernels in host memory: element conversion, the loop driver, threads, math, GEMM.

pub mod any_all;
pub mod bits;
mod cleared;
pub mod convert;
pub mod copy;
pub mod elements;
pub mod files;
pub mod fold;
pub mod gemm;
pub mod indices;
pub mod math;
pub mod non_temporal;
pub mod nth;
pub mod order;
pub mod pointwise;
pub mod pool;
pub mod radix;
pub mod reduce;
pub mod simd;
pub mod strided_copy;
pub mod topk;
pub mod transpose;
pub mod truncate;

pub use crate::isa::Level;
pub use crate::machine::level;
