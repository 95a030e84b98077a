//! Kernels in host memory: element conversion, the loop driver, threads, math, GEMM.

pub mod bits;
mod convert;
pub mod elements;
pub mod files;
pub mod fold;
pub mod gemm;
pub mod math;
pub mod nth;
pub mod order;
pub mod pointwise;
pub mod pool;
pub mod radix;
pub mod reduce;
pub mod simd;
pub mod stream;
pub mod top;
pub mod transport;
pub mod transpose;
pub mod truth;

pub use crate::isa::Level;
pub use crate::machine::level;
