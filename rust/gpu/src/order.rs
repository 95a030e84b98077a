//! Stable sorting of lines: elements become unsigned integers of the same order, which are sorted by
//! digits of four bits, with the places that they came from.

use super::binding::Operand;
use super::scan::{Scan, Step};
use super::shader::Numbers;
use super::{params, shader, Acc, Buffer, Gpu, Scratch, View};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Span;
use crate::{bail, ensure};

params! {
    struct KeyBlock {
        n: u32,
        length: u32,
        inner: u32,
        x_offset: u32,
        most: u32,
    }
}
params! {
    struct ShortBlock {
        n: u32,
        length: u32,
    }
}
params! {
    struct DigitBlock {
        length: u32,
        blocks: u32,
        groups: u32,
        shift: u32,
    }
}
/// Invocations of a workgroup that sorts by a digit, and elements of each.
const THREADS: usize = 128;
const ITEMS: usize = 8;
const NUMBERS: Numbers = &[("THREADS", THREADS as u32), ("ITEMS", ITEMS as u32)];
const RADIX: usize = 16;
/// Lines up to this length are sorted by counting, in one dispatch.
const SHORT: usize = 512;

params! {
    struct SelectBlock {
        lines: u32,
        length: u32,
        k: u32,
    }
}
/// Lines up to this length are partitioned by one invocation each, below the 65,535 iterations after
/// which software Vulkan ends it.
pub const SELECTED: usize = 128;
shader! { static SELECT: SelectBlock = "select_place.wgsl", Acc::WORDS }
shader! { static KEYS: KeyBlock = "sort_keys.wgsl", Acc::WORDS }
shader! { static SHORT_LINES: ShortBlock = "sort_short.wgsl", Acc::WORDS }
shader! { static DIGIT: DigitBlock = "sort_digit.wgsl", Acc::WORDS, numbers NUMBERS }

/// What lines are sorted by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// The elements; NaN is the largest.
    Value { descending: bool },
    /// Words as they are; those above count as this one.
    Words { most: u32 },
}

/// Lines in order, one after another.
pub struct Sorted {
    /// The keys, and where they have two words the higher ones.
    pub keys: Buffer,
    pub high: Option<Buffer>,
    /// Where in its line each element was: int32, of shape [lines, length].
    pub positions: Scratch,
}

/// Bits of a key.
fn key_bits(dtype: DType, by: By) -> Result<u32> {
    if let By::Words { most } = by {
        return Ok(32 - most.leading_zeros());
    }
    Ok(match dtype {
        DType::Bool | DType::U8 | DType::I8 => 8,
        DType::I16 | DType::F16 | DType::BF16 => 16,
        DType::I32 | DType::F32 => 32,
        DType::I64 | DType::F64 => 64,
        _ => bail!(NoKernel, "wgpu: sort: no kernel sorts {dtype}"),
    })
}

/// A set of buffers that elements move between.
struct Room {
    keys: Buffer,
    high: Option<Buffer>,
    positions: Scratch,
}

impl Room {
    fn new(gpu: &Gpu, shape: [usize; 2], long: bool) -> Result<Room> {
        let bytes = 4 * shape[0] * shape[1];
        Ok(Room {
            keys: gpu.alloc(bytes)?,
            high: long.then(|| gpu.alloc(bytes)).transpose()?,
            positions: Scratch::new(gpu, &shape, DType::I32)?,
        })
    }
    fn high<'a>(&'a self, spare: &'a Buffer) -> Operand<'a> {
        self.high.as_ref().unwrap_or(spare).into()
    }
}

/// The keys of a contiguous tensor's elements, in their old order, and how many bits they have.
fn keyed(gpu: &Gpu, x: View, lines: Span, by: By) -> Result<(Room, u32)> {
    ensure!(
        x.is_contiguous() && x.numel() > 0 && x.numel() <= u32::MAX as usize / 2,
        NoKernel,
        "wgpu: sort: {} elements",
        x.numel()
    );
    let bits = key_bits(x.dtype, by)?;
    let room = Room::new(gpu, [lines.lines(), lines.length], bits > 32)?;
    // A binding that may be written must not be a second one of the same memory.
    let spare = gpu.alloc(4)?;
    let most = match by {
        By::Words { most } => most,
        By::Value { .. } => 0,
    };
    let p = KeyBlock {
        n: x.numel() as u32,
        length: lines.length as u32,
        inner: lines.inner as u32,
        x_offset: x.offset as u32,
        most,
    };
    KEYS.launch(Acc::I32)
        .set("BITS", bits.min(32))
        .set("DESCENDING", by == By::Value { descending: true })
        .set("PLAIN", matches!(by, By::Words { .. }))
        .writes_words(&room.keys)
        .writes_words(room.high(&spare))
        .writes_words(room.positions.view())
        .reads("X", x)
        .threads(gpu, &p, x.numel())?;
    Ok((room, bits))
}

/// Where the element of place `k` of each line is, of equal ones that which partitioning finds:
/// int32, one for each line. Lines are short.
pub fn at_place(gpu: &Gpu, x: View, lines: Span, k: usize) -> Result<Scratch> {
    ensure!(
        lines.length <= SELECTED,
        NoKernel,
        "wgpu: select: lines of {}",
        lines.length
    );
    let (room, _) = keyed(gpu, x, lines, By::Value { descending: false })?;
    let spare = gpu.alloc(4)?;
    let p = SelectBlock {
        lines: lines.lines() as u32,
        length: lines.length as u32,
        k: k as u32,
    };
    SELECT
        .launch(Acc::I32)
        .set("LONG_KEYS", room.high.is_some())
        .writes_words(&room.keys)
        .writes_words(room.high(&spare))
        .writes_words(room.positions.view())
        .threads(gpu, &p, lines.lines())?;
    Ok(room.positions)
}

/// Sorts the lines of a contiguous tensor.
pub fn order(gpu: &Gpu, x: View, lines: Span, by: By) -> Result<Sorted> {
    let (n, count, length) = (x.numel(), lines.lines(), lines.length);
    let (mut from, bits) = keyed(gpu, x, lines, by)?;
    let long = bits > 32;
    let mut to = Room::new(gpu, [count, length], long)?;
    let (spare, other) = (gpu.alloc(4)?, gpu.alloc(4)?);
    if length <= SHORT {
        let p = ShortBlock {
            n: n as u32,
            length: length as u32,
        };
        SHORT_LINES
            .launch(Acc::I32)
            .set("LONG_KEYS", long)
            .writes_words(&to.keys)
            .writes_words(to.high(&spare))
            .writes_words(to.positions.view())
            .reads_words(&from.keys)
            .reads_words(from.high(&other))
            .threads(gpu, &p, n)?;
        std::mem::swap(&mut from, &mut to);
    } else {
        let blocks = length.div_ceil(THREADS * ITEMS);
        let counts = Scratch::new(gpu, &[count, RADIX * blocks], DType::I32)?;
        let ends = Scratch::new(gpu, &[count, RADIX * blocks], DType::I32)?;
        for shift in (0..bits).step_by(4) {
            let p = DigitBlock {
                length: length as u32,
                blocks: blocks as u32,
                groups: (count * blocks) as u32,
                shift: shift % 32,
            };
            let pass = |entry, keys: &Buffer, high, positions: View| {
                DIGIT
                    .launch(Acc::I32)
                    .entry(entry)
                    .set("LONG_KEYS", long)
                    .set("HIGH", shift >= 32)
                    .writes_words(keys)
                    .writes_words(high)
                    .writes_words(positions)
                    .reads_words(&from.keys)
                    .reads_words(from.high(&other))
                    .reads_words(from.positions.view())
                    .reads_words(ends.view())
                    .groups(gpu, &p, count * blocks)
            };
            pass(
                "count",
                &counts.buffer,
                to.high(&spare),
                to.positions.view(),
            )?;
            Scan {
                step: Step::Sum,
                reverse: false,
                lines: Span {
                    outer: count,
                    length: RADIX * blocks,
                    inner: 1,
                },
                x: counts.view(),
                b: None,
                segments: None,
                blend: "",
            }
            .run(gpu, ends.view(), None)?;
            pass("move_all", &to.keys, to.high(&spare), to.positions.view())?;
            std::mem::swap(&mut from, &mut to);
        }
    }
    Ok(Sorted {
        keys: from.keys,
        high: from.high,
        positions: from.positions,
    })
}
