//! Sorting by keys: elements of every type become unsigned integers of the same order, so that one
//! radix sort serves all.

use super::elements::Element;
use crate::alloc;
use crate::dtype::DType;
use half::{bf16, f16};

/// An element's place in the order, and its index in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Keyed {
    pub key: u64,
    pub index: u32,
}

/// The order of floats as integers: NaN of any sign is largest, both zeros are one.
fn of_float(v: f64) -> u64 {
    if v.is_nan() {
        return u64::MAX;
    }
    let bits = (v + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// The same for values that fit 32 bits; short keys need fewer passes.
fn of_single(v: f32) -> u64 {
    if v.is_nan() {
        return u32::MAX as u64;
    }
    let bits = (v + 0.0).to_bits();
    (if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }) as u64
}

/// Fills `line` with the keys of `n` elements that lie `step` apart, and counts NaN. With
/// `descending` the order is reversed; equal elements keep theirs by their index.
///
/// # Safety
/// `src` points to such elements.
pub unsafe fn keys(
    dtype: DType,
    src: *const u8,
    step: usize,
    n: usize,
    descending: bool,
    line: &mut Vec<Keyed>,
) -> usize {
    unsafe fn typed<S: Element>(
        src: *const u8,
        step: usize,
        n: usize,
        flip: u64,
        line: &mut Vec<Keyed>,
        key: impl Fn(S) -> u64,
    ) {
        // SAFETY: `src` has `n` elements of `S`, `step` of them apart.
        unsafe {
            let src = src.cast::<S>();
            for i in 0..n {
                line.push(Keyed {
                    key: key(*src.add(i * step)) ^ flip,
                    index: i as u32,
                });
            }
        }
    }
    line.clear();
    alloc::reserve(line, n);
    let width = match dtype {
        DType::I64 | DType::U64 | DType::F64 => u64::MAX,
        _ => u32::MAX as u64,
    };
    let flip = if descending { width } else { 0 };
    // SAFETY: `src` has `n` elements of this type, `step` of them apart.
    unsafe {
        match dtype {
            DType::F64 => typed::<f64>(src, step, n, flip, line, of_float),
            DType::F32 => typed::<f32>(src, step, n, flip, line, of_single),
            DType::F16 => typed::<f16>(src, step, n, flip, line, |v| of_single(v.to_f32())),
            DType::BF16 => typed::<bf16>(src, step, n, flip, line, |v| of_single(v.to_f32())),
            DType::I64 => typed::<i64>(src, step, n, flip, line, |v| v as u64 ^ 1 << 63),
            DType::I32 => typed::<i32>(src, step, n, flip, line, |v| (v as u32 ^ 1 << 31) as u64),
            DType::I16 => typed::<i16>(src, step, n, flip, line, |v| (v as u16 ^ 1 << 15) as u64),
            DType::I8 => typed::<i8>(src, step, n, flip, line, |v| (v as u8 ^ 1 << 7) as u64),
            DType::Bool => typed::<u8>(src, step, n, flip, line, |v| (v != 0) as u64),
            DType::U8 => typed::<u8>(src, step, n, flip, line, |v| v as u64),
            DType::U16 => typed::<u16>(src, step, n, flip, line, |v| v as u64),
            DType::U32 => typed::<u32>(src, step, n, flip, line, |v| v as u64),
            DType::U64 => typed::<u64>(src, step, n, flip, line, |v| v),
            // Complex numbers have no order, and float8 is not sorted.
            _ => unreachable!("refused before kernels run"),
        }
    }
    if !dtype.is_float() {
        return 0;
    }
    line.iter().filter(|k| k.key == width ^ flip).count()
}

/// Sorts by key; the input's order of indices decides between equal keys.
pub fn sort_keys(line: &mut [Keyed]) {
    if line.len() < 512 {
        line.sort_unstable();
        return;
    }
    let ascending = line.windows(2).all(|w| w[0].index < w[1].index);
    if !ascending {
        line.sort_unstable();
        return;
    }
    radix(line);
}

/// From the lowest byte to the highest, skipping bytes in which all keys agree.
fn radix(line: &mut [Keyed]) {
    let mut counts = [[0usize; 256]; 8];
    for k in line.iter() {
        for (byte, c) in counts.iter_mut().enumerate() {
            c[(k.key >> (8 * byte)) as usize & 255] += 1;
        }
    }
    let mut other = alloc::gathered(line.iter().copied());
    let mut flipped = false;
    for (byte, c) in counts.iter_mut().enumerate() {
        if c.contains(&line.len()) {
            continue;
        }
        let mut at = 0;
        for n in c.iter_mut() {
            at += std::mem::replace(n, at);
        }
        let (from, to): (&[Keyed], &mut [Keyed]) = if flipped {
            (&other, &mut *line)
        } else {
            (&*line, &mut other)
        };
        for &k in from {
            let slot = &mut c[(k.key >> (8 * byte)) as usize & 255];
            to[*slot] = k;
            *slot += 1;
        }
        flipped = !flipped;
    }
    if flipped {
        line.copy_from_slice(&other);
    }
}

/// Brings the `k` first in order to the front, in any order.
pub fn select(line: &mut [Keyed], k: usize) {
    if k > 0 && k < line.len() {
        line.select_nth_unstable(k - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radix_sorts_as_a_stable_sort_does() {
        let mut seed = 1u64;
        let mut line: Vec<Keyed> = (0..5000)
            .map(|index| {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                Keyed {
                    key: (seed >> 40) % 1000 * 0x1_0001_0001,
                    index,
                }
            })
            .collect();
        let mut want = line.clone();
        want.sort();
        sort_keys(&mut line);
        assert_eq!(line, want);
    }

    #[test]
    fn keys_keep_the_order_of_floats() {
        let v = [
            f64::NEG_INFINITY,
            -1.0,
            -1e-300,
            -0.0,
            1e-300,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ];
        for w in v.windows(2) {
            assert!(of_float(w[0]) < of_float(w[1]), "{w:?}");
            assert!(of_single(w[0] as f32) <= of_single(w[1] as f32), "{w:?}");
        }
        assert_eq!(of_float(0.0), of_float(-0.0));
        assert_eq!(of_float(-f64::NAN), of_float(f64::NAN));
    }
}
