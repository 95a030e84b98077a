//! Kernels in host memory: element conversion, the loop driver, threads, math, GEMM.

pub mod bits;
mod convert;
pub mod elements;
pub mod files;
pub mod fold;
pub mod gemm;
pub mod math;
pub mod order;
pub mod pointwise;
pub mod pool;
pub mod radix;
pub mod reduce;
pub mod stream;
pub mod top;
pub mod transport;
mod transpose;
pub mod truth;

use std::sync::OnceLock;

/// The instruction sets that kernels are compiled for, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Portable,
    Avx2,
    Avx512,
}

/// The best level of this machine; `PYTENSORLIB_CPU=portable|avx2|avx512` forces a lower one.
///
/// Matrix products use AMX besides where nothing is forced (`gemm`), or a model of it in software
/// for tests: `amx-model`.
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

/// Compiles an unsafe function for each instruction set and calls the best one. Type parameters
/// stand in brackets: `fn name[T: Bound](x: *const T) -> T { .. }`.
#[macro_export]
macro_rules! per_level {
    ($(#[$doc:meta])* $v:vis fn $name:ident[$($G:ident: $B:path),*]($($arg:ident: $t:ty),* $(,)?)
        $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $v unsafe fn $name<$($G: $B),*>($($arg: $t),*) $(-> $r)? {
            // SAFETY: as for the function around it.
            #[allow(clippy::too_many_arguments)]
            #[inline(always)]
            unsafe fn plain<$($G: $B),*>($($arg: $t),*) $(-> $r)? $body
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            {
                // SAFETY: as for the function around it, which has asked `level`.
                #[allow(clippy::too_many_arguments)]
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                unsafe fn avx2<$($G: $B),*>($($arg: $t),*) $(-> $r)? { plain::<$($G),*>($($arg),*) }
                // SAFETY: as for the function around it, which has asked `level`.
                #[allow(clippy::too_many_arguments)]
                #[target_feature(
                    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
                )]
                unsafe fn avx512<$($G: $B),*>($($arg: $t),*) $(-> $r)? { plain::<$($G),*>($($arg),*) }
                match $crate::cpu::level() {
                    $crate::cpu::Level::Avx512 => return avx512::<$($G),*>($($arg),*),
                    $crate::cpu::Level::Avx2 => return avx2::<$($G),*>($($arg),*),
                    $crate::cpu::Level::Portable => {}
                }
            }
            plain::<$($G),*>($($arg),*)
        }
    };
}
