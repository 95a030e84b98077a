//! Rows of elements converted to and from the type that kernels compute in, for each instruction
//! set.

use super::copy::copy;
use super::elements::{Bool, Compute, Element};
use crate::dtype::DType;
use crate::float8::F8;
use crate::per_isa;
use half::{bf16, f16};

/// Reads `n` elements `step` bytes apart.
pub type Load<T> = unsafe fn(src: *const u8, step: isize, n: usize, dst: *mut T);
/// Writes `n` elements `step` bytes apart.
pub type Store<T> = unsafe fn(dst: *mut u8, step: isize, n: usize, src: *const T);

#[inline(always)]
unsafe fn load_row<S: Element, T: Compute>(src: *const u8, step: isize, n: usize, dst: *mut T) {
    // SAFETY: `src` has `n` elements `step` bytes apart, of any alignment, and `dst` has room for
    // `n`.
    unsafe {
        if step == size_of::<S>() as isize {
            let src = src.cast::<S>();
            if S::DTYPE == T::DTYPE {
                return copy(src.cast(), dst.cast(), n * size_of::<S>());
            }
            for i in 0..n {
                *dst.add(i) = T::from_element(src.add(i).read_unaligned());
            }
        } else if step == 0 {
            let v = T::from_element(src.cast::<S>().read_unaligned());
            for i in 0..n {
                *dst.add(i) = v;
            }
        } else {
            for i in 0..n {
                let at = src.offset(i as isize * step).cast::<S>();
                *dst.add(i) = T::from_element(at.read_unaligned());
            }
        }
    }
}

#[inline(always)]
unsafe fn store_row<S: Element, T: Compute>(dst: *mut u8, step: isize, n: usize, src: *const T) {
    // SAFETY: `dst` has room for `n` elements `step` bytes apart, of any alignment, and `src` has
    // `n`.
    unsafe {
        if step == size_of::<S>() as isize {
            let dst = dst.cast::<S>();
            if S::DTYPE == T::DTYPE {
                return copy(src.cast(), dst.cast(), n * size_of::<S>());
            }
            for i in 0..n {
                dst.add(i).write_unaligned((*src.add(i)).to_element());
            }
        } else {
            for i in 0..n {
                let at = dst.offset(i as isize * step).cast::<S>();
                at.write_unaligned((*src.add(i)).to_element());
            }
        }
    }
}

/// As [`load_row`] for types that hardly anything of `S` is computed in: short rather than quick.
unsafe fn load_each<S: Element, T: Compute>(src: *const u8, step: isize, n: usize, dst: *mut T) {
    for i in 0..n {
        // SAFETY: there are `n` elements `step` bytes apart, and room for `n`.
        unsafe {
            let at = src.offset(i as isize * step).cast::<S>();
            *dst.add(i) = T::from_element(at.read_unaligned());
        }
    }
}

/// As [`store_row`] for such types, by way of float32.
unsafe fn store_each<S: Element, T: Compute>(dst: *mut u8, step: isize, n: usize, src: *const T) {
    #[inline(never)]
    fn narrowed<S: Element>(v: f32) -> S {
        S::of_f32(v)
    }
    for i in 0..n {
        // SAFETY: there is room for `n` elements `step` bytes apart, and `src` has `n`.
        unsafe {
            let at = dst.offset(i as isize * step).cast::<S>();
            at.write_unaligned(narrowed((*src.add(i)).to_f32()));
        }
    }
}

per_isa! {
    fn pick_load[S: Element, T: Compute] -> Load<T>
        = (src: *const u8, step: isize, n: usize, dst: *mut T) {
        // SAFETY: who calls a [`Load`] has `n` elements `step` bytes apart at `src` and room for
        // `n` at `dst`.
        unsafe { load_row::<S, T>(src, step, n, dst) }
    }
}
per_isa! {
    fn pick_store[S: Element, T: Compute] -> Store<T>
        = (dst: *mut u8, step: isize, n: usize, src: *const T) {
        // SAFETY: who calls a [`Store`] has room for `n` elements `step` bytes apart at `dst` and
        // `n` at `src`.
        unsafe { store_row::<S, T>(dst, step, n, src) }
    }
}

/// Runs the body with `$S` bound to the type of a dtype.
macro_rules! by_dtype {
    ($dtype:expr, $S:ident => $body:expr) => {
        crate::typed!(
            $dtype,
            $S => $body,
            [
                Bool => Bool, U8 => u8, I8 => i8, I16 => i16, I32 => i32, I64 => i64, U16 => u16,
                U32 => u32, U64 => u64, F16 => f16, BF16 => bf16, F32 => f32, F64 => f64
            ],
            _ => unreachable!("complex is refused before kernels run")
        )
    };
}

/// As `by_dtype`, for the floating types of 8 bits.
macro_rules! by_format {
    ($dtype:expr, $S:ident => $body:expr) => {
        crate::typed!(
            $dtype,
            $S => $body,
            [
                F8E4M3FN => F8<0>, F8E5M2 => F8<1>, F8E4M3FNUZ => F8<2>, F8E5M2FNUZ => F8<3>,
                F8E8M0FNU => F8<4>
            ],
            _ => unreachable!("asked for where the type is one of these")
        )
    };
}

/// The loops for float16 and float32 that use the machine's instructions.
fn half_loops() -> Option<(Load<f32>, Store<f32>)> {
    per_isa!(match
        avx512 => Some((halves::load_avx512, halves::store_avx512)),
        avx2 => Some((halves::load_avx2, halves::store_avx2)),
        neon => Some((halves::load_neon, halves::store_neon)),
        portable => None)
}

/// The loop that reads a type for this machine.
pub fn loader<T: Compute>(dtype: DType) -> Load<T> {
    if let (DType::F16, DType::F32, Some((load, _))) = (dtype, T::DTYPE, half_loops()) {
        // SAFETY: T is f32.
        return unsafe { std::mem::transmute::<Load<f32>, Load<T>>(load) };
    }
    if dtype.is_float8() {
        return by_format!(dtype, S => match T::DTYPE {
            // A look at a table, for which no set has better instructions.
            // SAFETY: T is f32.
            DType::F32 => unsafe {
                std::mem::transmute::<Load<f32>, Load<T>>(load_row::<S, f32>)
            },
            _ => load_each::<S, T>,
        });
    }
    by_dtype!(dtype, S => pick_load::<S, T>())
}

/// The loop that writes a type for this machine.
pub fn storer<T: Compute>(dtype: DType) -> Store<T> {
    if let (DType::F16, DType::F32, Some((_, store))) = (dtype, T::DTYPE, half_loops()) {
        // SAFETY: T is f32.
        return unsafe { std::mem::transmute::<Store<f32>, Store<T>>(store) };
    }
    if dtype.is_float8() {
        return by_format!(dtype, S => match T::DTYPE {
            // SAFETY: T is f32.
            DType::F32 => unsafe {
                std::mem::transmute::<Store<f32>, Store<T>>(pick_store::<S, f32>())
            },
            _ => store_each::<S, T>,
        });
    }
    by_dtype!(dtype, S => pick_store::<S, T>())
}

/// Reads `n` elements `step` bytes apart.
///
/// # Safety
/// The source holds such elements, `dst` has room for `n`.
pub unsafe fn load<T: Compute>(dtype: DType, src: *const u8, step: isize, n: usize, dst: *mut T) {
    // SAFETY: the source has `n` elements of this type and `dst` room for them; the machine runs
    // what `loader` picks.
    unsafe { loader::<T>(dtype)(src, step, n, dst) }
}

/// Writes `n` elements `step` bytes apart.
///
/// # Safety
/// The destination holds such elements, `src` has `n`.
pub unsafe fn store<T: Compute>(dtype: DType, dst: *mut u8, step: isize, n: usize, src: *const T) {
    // SAFETY: the destination has room for `n` elements of this type, `src` has them; the machine
    // runs what `storer` picks.
    unsafe { storer::<T>(dtype)(dst, step, n, src) }
}

/// float16 by the machine's instructions, which loops over the software conversion do not become.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod halves {
    use super::{load_row, store_row};
    use crate::compiled;
    use half::f16;
    #[cfg(target_arch = "aarch64")]
    use std::arch::aarch64::*;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::*;

    const SIZE: isize = size_of::<f16>() as isize;

    macro_rules! loops {
        ($set:ident: $load:ident, $store:ident, $lanes:literal,
         |$src:ident, $dst:ident| $widen:expr, |$from:ident, $to:ident| $narrow:expr) => {
            compiled! { $set:
                pub unsafe fn $load(src: *const u8, step: isize, n: usize, dst: *mut f32) {
                    // SAFETY: `src` has `n` elements `step` bytes apart and `dst` room for `n`;
                    // vectors end at `n`, and `loader` asked for the instructions.
                    unsafe {
                        let mut i = 0;
                        if step == SIZE {
                            while i + $lanes <= n {
                                let ($src, $dst) = (src.add(i * 2), dst.add(i));
                                $widen;
                                i += $lanes;
                            }
                        }
                        let rest = src.offset(i as isize * step);
                        load_row::<f16, f32>(rest, step, n - i, dst.add(i));
                    }
                }
                pub unsafe fn $store(dst: *mut u8, step: isize, n: usize, src: *const f32) {
                    // SAFETY: `dst` has room for `n` elements `step` bytes apart and `src` has `n`;
                    // vectors end at `n`, and `storer` asked for the instructions.
                    unsafe {
                        let mut i = 0;
                        if step == SIZE {
                            while i + $lanes <= n {
                                let ($from, $to) = (src.add(i), dst.add(i * 2));
                                $narrow;
                                i += $lanes;
                            }
                        }
                        let rest = dst.offset(i as isize * step);
                        store_row::<f16, f32>(rest, step, n - i, src.add(i));
                    }
                }
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    loops!(
        avx2: load_avx2,
        store_avx2,
        8,
        |s, d| _mm256_storeu_ps(d, _mm256_cvtph_ps(_mm_loadu_si128(s.cast()))),
        |s, d| _mm_storeu_si128(d.cast(), _mm256_cvtps_ph::<0>(_mm256_loadu_ps(s)))
    );
    #[cfg(target_arch = "x86_64")]
    loops!(
        avx512: load_avx512,
        store_avx512,
        16,
        |s, d| _mm512_storeu_ps(d, _mm512_cvtph_ps(_mm256_loadu_si256(s.cast()))),
        |s, d| _mm256_storeu_si256(d.cast(), _mm512_cvtps_ph::<0>(_mm512_loadu_ps(s)))
    );
    #[cfg(target_arch = "aarch64")]
    loops!(
        neon: load_neon,
        store_neon,
        8,
        |s, d| {
            let x = vreinterpretq_f16_u16(vld1q_u16(s.cast()));
            vst1q_f32(d, vcvt_f32_f16(vget_low_f16(x)));
            vst1q_f32(d.add(4), vcvt_high_f32_f16(x));
        },
        |s, d| {
            let low = vcvt_f16_f32(vld1q_f32(s));
            let x = vcvt_high_f16_f32(low, vld1q_f32(s.add(4)));
            vst1q_u16(d.cast(), vreinterpretq_u16_f16(x));
        }
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float8;

    /// What the loops of this machine read and write, in a length that has a tail.
    fn through<S: Element, R: Copy>(dtype: DType, x: &[R], write: impl Fn(&R) -> S) -> Vec<f32> {
        let x: Vec<S> = x.iter().map(write).collect();
        let mut y = vec![0.0f32; x.len()];
        // SAFETY: both have as many elements.
        unsafe {
            load(
                dtype,
                x.as_ptr().cast(),
                size_of::<S>() as isize,
                x.len(),
                y.as_mut_ptr(),
            )
        };
        y
    }

    fn narrowed(dtype: DType, x: &[f32]) -> Vec<u16> {
        let mut y = vec![0u16; x.len()];
        // SAFETY: both have as many elements, of two bytes where they are written.
        unsafe { store(dtype, y.as_mut_ptr().cast(), 2, x.len(), x.as_ptr()) };
        y
    }

    /// The value of a half type with so many bits of exponent and mantissa.
    fn value(bits: u16, exponent: u32, mantissa: u32) -> f64 {
        let bias = (1 << (exponent - 1)) - 1;
        let e = (bits as i32 >> mantissa) & ((1 << exponent) - 1);
        let m = (bits & ((1 << mantissa) - 1)) as f64 * 2f64.powi(-(mantissa as i32));
        let size = match e {
            0 => m * 2f64.powi(1 - bias),
            e if e == (1 << exponent) - 1 => match m {
                0.0 => f64::INFINITY,
                _ => f64::NAN,
            },
            e => (1.0 + m) * 2f64.powi(e - bias),
        };
        match bits >> 15 {
            0 => size,
            _ => -size,
        }
    }

    #[test]
    fn half_types_are_read_exactly_and_written_to_the_nearest() {
        let all: Vec<u16> = (0..=u16::MAX).chain(0..3).collect();
        for (dtype, exponent, mantissa) in [(DType::F16, 5, 10), (DType::BF16, 8, 7)] {
            let read = match dtype {
                DType::F16 => through(dtype, &all, |&b| f16::from_bits(b)),
                _ => through(dtype, &all, |&b| bf16::from_bits(b)),
            };
            for (&bits, &got) in all.iter().zip(&read) {
                let want = value(bits, exponent, mantissa) as f32;
                let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(same, "{dtype:?} {bits:x}: {got}, not {want}");
            }
            let again = narrowed(dtype, &read);
            for (&bits, (&got, x)) in all.iter().zip(again.iter().zip(&read)) {
                let nan = x.is_nan() && value(got, exponent, mantissa).is_nan();
                assert!(got == bits || nan, "{dtype:?} {bits:x} became {got:x}");
            }
            // Half way between neighbours the even one is next, and the nearer one elsewhere.
            let most = (((1 << exponent) - 1) << mantissa) - 1;
            let halves: Vec<f32> = (0..most)
                .map(|b| {
                    let (low, high) = (
                        value(b, exponent, mantissa),
                        value(b + 1, exponent, mantissa),
                    );
                    ((low + high) / 2.0) as f32
                })
                .collect();
            let below: Vec<f32> = halves.iter().map(|x| x.next_down()).collect();
            let above: Vec<f32> = halves.iter().map(|x| -x.next_up()).collect();
            let (even, low, high) = (
                narrowed(dtype, &halves),
                narrowed(dtype, &below),
                narrowed(dtype, &above),
            );
            for b in 0..most {
                let i = b as usize;
                assert_eq!(even[i], b + (b & 1), "{dtype:?} {}", halves[i]);
                assert_eq!(
                    (low[i], high[i]),
                    (b, (b + 1) | 0x8000),
                    "{dtype:?} {}",
                    halves[i]
                );
            }
        }
    }

    #[test]
    fn float8_is_read_and_written_alike_in_rows_and_apart() {
        let all: Vec<u8> = (0..=255).chain(0..7).collect();
        let dtypes = crate::dtype::ALL.into_iter();
        for (dtype, k) in dtypes.filter_map(|d| d.float8().map(|k| (d, k))) {
            let mut y = vec![0.0f32; all.len()];
            let mut z = vec![0.0f64; all.len()];
            // SAFETY: all have as many elements.
            unsafe {
                load(dtype, all.as_ptr(), 1, all.len(), y.as_mut_ptr());
                load(dtype, all.as_ptr(), 1, all.len(), z.as_mut_ptr());
            }
            for ((&code, y), z) in all.iter().zip(&y).zip(&z) {
                let want = float8::decode(k, code);
                assert!(y.to_bits() == want.to_bits() && z.to_bits() == (want as f64).to_bits());
            }
            // Every exponent and sign with mantissas at, between and beside what formats keep.
            let steps = (0..1 << 10).map(|m| m << 13);
            let beside = steps.flat_map(|m: u32| [m, m.wrapping_sub(1), m + 1]);
            let few = beside.filter(|m| m % 7 < 3);
            let mantissas: Vec<u32> = few.map(|m| m & 0x7f_ffff).collect();
            let exponents = (0..512u32).map(|e| e << 23);
            let x: Vec<f32> = exponents
                .flat_map(|e| mantissas.iter().map(move |m| f32::from_bits(e | m)))
                .collect();
            let (mut near, mut apart) = (vec![0u8; x.len()], vec![0u8; 3 * x.len()]);
            let wide: Vec<f64> = x.iter().map(|&v| v as f64).collect();
            let mut of_wide = vec![0u8; x.len()];
            // SAFETY: all have room for as many elements.
            unsafe {
                store(dtype, near.as_mut_ptr(), 1, x.len(), x.as_ptr());
                store(dtype, apart.as_mut_ptr(), 3, x.len(), x.as_ptr());
                store(dtype, of_wide.as_mut_ptr(), 1, x.len(), wide.as_ptr());
            }
            for (i, &v) in x.iter().enumerate() {
                let want = float8::encode(k, v);
                assert_eq!(
                    (near[i], apart[3 * i], of_wide[i]),
                    (want, want, want),
                    "{dtype:?} {v}"
                );
            }
        }
    }
}
