//! Which kernels a product takes: by the machine, and by its sizes.

#[cfg(target_arch = "x86_64")]
use super::amx;
use super::drive::{blocked, direct, steady, vectors};
use super::native::{self, Native};
use super::{gemv, pack, plain, stream, GemmElem, Problem};
use crate::machine::{machine, Amx};
use crate::per_isa;
use half::{bf16, f16};

/// Multiplications up to which columns of B that are not contiguous are read where they lie.
const SCATTERED: usize = 100;
/// Multiplications of float32 from which on six products in AMX's tiles are quicker than one in vectors: on
/// Sapphire Rapids 384 cubed takes 1.05 to 1.2 times as long, 512 cubed 0.9.
const TILED: usize = 1 << 26;

macro_rules! kit {
    ($set:ident, $gemv:ident, $near:ident $far:ident, $sweep:ident, $stream:expr) => {
        Some(Native {
            stream: $stream,
            set: &native::$set,
            gemv: &gemv::$gemv::GEMV,
            inner: [gemv::$near, gemv::$far],
            sweep: gemv::$sweep,
            fill: pack::$gemv,
            each: 1,
            tiled: None,
        })
    };
}

pub(super) fn native_f32() -> Option<Native<f32>> {
    let x = per_isa!(match
        avx512 => kit!(F32_512, f32_512, inner_f32_512 far_f32_256, sweep_f32_512, Some(&stream::F32_512)),
        avx2 => kit!(F32_256, f32_256, inner_f32_256 far_f32_256, sweep_f32_256, Some(&stream::F32_256)),
        neon => kit!(F32_NEON, f32_neon, inner_f32_neon inner_f32_neon, sweep_f32_neon, None),
        portable => None);
    #[cfg(target_arch = "x86_64")]
    let x = x.map(|x| Native {
        tiled: amx::multiply(),
        ..x
    });
    x
}
pub(super) fn native_f64() -> Option<Native<f64>> {
    per_isa!(match
        avx512 => kit!(F64_512, f64_512, inner_f64_512 far_f64_256, sweep_f64_512, Some(&stream::F64_512)),
        avx2 => kit!(F64_256, f64_256, inner_f64_256 far_f64_256, sweep_f64_256, Some(&stream::F64_256)),
        neon => kit!(F64_NEON, f64_neon, inner_f64_neon inner_f64_neon, sweep_f64_neon, None),
        portable => None)
}
pub(super) fn native_f16() -> Option<Native<f16>> {
    let x = per_isa!(match
        avx512 => kit!(F32_512, f16_512, inner_f32_512 far_f32_256, sweep_f32_512, Some(&stream::F16_512)),
        avx2 => kit!(F32_256, f16_256, inner_f32_256 far_f32_256, sweep_f32_256, Some(&stream::F16_256)),
        neon => kit!(F32_NEON, f16_neon, inner_f32_neon inner_f32_neon, sweep_f32_neon, None),
        portable => None);
    #[cfg(target_arch = "x86_64")]
    let x = x.map(|x| Native {
        tiled: amx::multiply(),
        ..x
    });
    x
}
pub(super) fn native_bf16() -> Option<Native<bf16>> {
    let x = per_isa!(match
        avx512 => kit!(F32_512, bf16_512, inner_f32_512 far_f32_256, sweep_f32_512, Some(&stream::BF16_512)),
        avx2 => kit!(F32_256, bf16_256, inner_f32_256 far_f32_256, sweep_f32_256, Some(&stream::BF16_256)),
        neon => kit!(F32_NEON, bf16_neon, inner_f32_neon inner_f32_neon, sweep_f32_neon, None),
        portable => None);
    #[cfg(target_arch = "x86_64")]
    let x = x.map(|x| {
        let tiled = amx::multiply();
        if crate::level() == crate::Level::Avx512 && crate::isa::has_bf16() {
            let (set, fill, each) = (&native::PAIRS, pack::pairs_512 as _, 2);
            return Native {
                gemv: &gemv::pairs_512::GEMV,
                set,
                fill,
                each,
                tiled,
                stream: Some(&stream::PAIRS),
                ..x
            };
        }
        Native { tiled, ..x }
    });
    x
}

/// Multiplies with kernels of this machine.
pub(super) unsafe fn multiply<T: GemmElem>(x: &Native<T>, p: &Problem<T>) {
    // SAFETY: `p` and what is made of it name elements that may be read, or written in C; `x` has
    // kernels of this machine.
    unsafe {
        // The side with few rows goes to the rows.
        if p.m.min(p.n) <= gemv::ROWS {
            let p = if p.n < p.m { p.transposed() } else { *p };
            if gemv::multiply(x, &p) {
                return;
            }
            if p.m == 1 {
                return plain::vector(&p.transposed());
            }
        }
        let p = if p.c.cs != 1 && (p.c.rs == 1 || p.m == 1) {
            p.transposed()
        } else {
            *p
        };
        let p = steady(&p);
        let work = p.m.saturating_mul(p.n).saturating_mul(p.k);
        let scattered = p.b.cs != 1 && work <= SCATTERED;
        if scattered || work <= plain::TINY && (p.c.cs != 1 || T::NARROW) {
            return plain::tiny(&p);
        }
        if p.c.cs != 1 {
            return plain::through_rows(&p);
        }
        if !T::NARROW && work <= 1 << 20 {
            return direct(x, &p);
        }
        if !T::NARROW && p.m * p.n <= 4096 && p.k >= 8192 {
            return gemv::deep(x, &p);
        }
        // By the model in software at any size, for tests.
        let worth = T::NARROW || machine().amx != Amx::Machine || work > TILED;
        if let Some(tiled) = x.tiled.filter(|_| worth) {
            if tiled(x, &p) {
                return;
            }
        }
        if stream::multiply(x, &p) {
            return;
        }
        vectors(x, &p, |way| blocked(way, None, p.k.div_ceil(x.each), &p))
    }
}
