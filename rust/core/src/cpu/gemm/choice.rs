//! Which kernels a product takes: by the machine, and by its sizes.

use super::drive::{blocked, direct, steady, vectors, DEPTH};
use super::native::{Gemv, Inner, Native, Set};
use super::pack::{self, Fill};
use super::{amx, gemv, kernel, plain, GemmElem, Problem};
use crate::cpu::{level, Level};
use half::{bf16, f16};

/// Multiplications up to which columns of B that are not contiguous are read where they lie.
const SCATTERED: usize = 100;

static F32_512: Set<f32> = Set {
    lanes: 16,
    rows: kernel::f32x16::ROWS,
    depth: DEPTH,
    packed: &kernel::f32x16::PACKED,
    direct: &kernel::f32x16::DIRECT,
    wide: &kernel::f32x16::WIDE,
};
static F64_512: Set<f64> = Set {
    lanes: 8,
    rows: kernel::f64x8::ROWS,
    depth: DEPTH,
    packed: &kernel::f64x8::PACKED,
    direct: &kernel::f64x8::DIRECT,
    wide: &kernel::f64x8::WIDE,
};
static F32_256: Set<f32> = Set {
    lanes: 8,
    rows: kernel::f32x8::ROWS,
    depth: DEPTH,
    packed: &kernel::f32x8::PACKED,
    direct: &kernel::f32x8::DIRECT,
    wide: &kernel::f32x8::WIDE,
};
static F64_256: Set<f64> = Set {
    lanes: 4,
    rows: kernel::f64x4::ROWS,
    depth: DEPTH,
    packed: &kernel::f64x4::PACKED,
    direct: &kernel::f64x4::DIRECT,
    wide: &kernel::f64x4::WIDE,
};
static PAIRS: Set<f32> = Set {
    lanes: 16,
    rows: 14,
    depth: 512,
    packed: &kernel::pairs::PACKED,
    direct: &[],
    wide: &[],
};

type Kit<T> = (
    &'static Set<<T as GemmElem>::Acc>,
    &'static Gemv<T>,
    Inner<<T as GemmElem>::Acc>,
    Fill<T, <T as GemmElem>::Acc>,
);

fn pick<T: GemmElem>(avx512: Kit<T>, avx2: Kit<T>) -> Option<Native<T>> {
    let (set, gemv, inner, fill) = match level() {
        Level::Avx512 => avx512,
        Level::Avx2 => avx2,
        Level::Portable => return None,
    };
    Some(Native {
        set,
        gemv,
        inner,
        fill,
        each: 1,
        tiled: None,
    })
}

macro_rules! kit {
    ($set:expr, $gemv:ident, $sums:ident) => {
        (&$set, &gemv::$gemv::GEMV, gemv::$sums, pack::$gemv)
    };
}

pub(super) fn native_f32() -> Option<Native<f32>> {
    let x = pick(
        kit!(F32_512, f32_512, inner_f32_512),
        kit!(F32_256, f32_256, inner_f32_256),
    )?;
    Some(Native {
        tiled: amx::multiply(),
        ..x
    })
}
pub(super) fn native_f64() -> Option<Native<f64>> {
    pick(
        kit!(F64_512, f64_512, inner_f64_512),
        kit!(F64_256, f64_256, inner_f64_256),
    )
}
pub(super) fn native_f16() -> Option<Native<f16>> {
    pick(
        kit!(F32_512, f16_512, inner_f32_512),
        kit!(F32_256, f16_256, inner_f32_256),
    )
}
pub(super) fn native_bf16() -> Option<Native<bf16>> {
    let x = pick(
        kit!(F32_512, bf16_512, inner_f32_512),
        kit!(F32_256, bf16_256, inner_f32_256),
    )?;
    if level() == Level::Avx512 && crate::isa::has_bf16() {
        return Some(Native {
            set: &PAIRS,
            fill: pack::pairs_512,
            each: 2,
            tiled: amx::multiply(),
            ..x
        });
    }
    Some(Native {
        tiled: amx::multiply(),
        ..x
    })
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
        if let Some(tiled) = x.tiled {
            if tiled(x, &p) {
                return;
            }
        }
        vectors(x, &p, |way| blocked(way, None, p.k.div_ceil(x.each), &p))
    }
}
