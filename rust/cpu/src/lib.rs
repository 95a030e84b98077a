//! Kernels in host memory: element conversion, the loop driver, threads, math, GEMM.

// Kernels for vectors share helpers that nothing else needs.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, unused_variables)
)]

pub mod any_all;
pub mod bits;
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
pub mod number;
pub mod order;
pub mod pointwise;
pub mod pool;
pub mod radix;
pub mod reduce;
pub mod rows;
pub mod simd;
pub mod strided;
pub mod strided_copy;
pub mod topk;
pub mod transpose;
pub mod truncate;

#[cfg(test)]
use pytensorlib_base::device;
use pytensorlib_base::{
    alloc, compiled, error, float8, host, isa, layout, machine, meta, os, per_isa, ptr, shape,
};
// Macros of this crate name them.
#[doc(hidden)]
pub use pytensorlib_base::{bail, dtype, no_loop};

pub use crate::isa::Level;
pub use crate::machine::level;
