//! Kernels in host memory: element conversion, the loop driver, threads, math, GEMM.

pub mod elements;
pub mod fold;
pub mod gemm;
pub mod math;
pub mod order;
pub mod pointwise;
pub mod pool;
pub mod reduce;
pub mod transport;

use std::sync::OnceLock;

/// The instruction sets that kernels are compiled for, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Portable,
    Avx2,
    Avx512,
}

/// The best level of this machine; `PYTENSORLIB_CPU=portable|avx2|avx512` forces a lower one.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let have = detect();
        match std::env::var("PYTENSORLIB_CPU").as_deref() {
            Ok("portable") => Level::Portable,
            Ok("avx2") => have.min(Level::Avx2),
            _ => have,
        }
    })
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    use std::arch::is_x86_feature_detected as has;
    if !(has!("avx2") && has!("fma") && has!("f16c")) {
        Level::Portable
    } else if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
        Level::Avx512
    } else {
        Level::Avx2
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}
