//! Operands that run across the rows of the result: tiles of them are transposed in the cache.

use super::{Buffers, Plan, Row, MAX};
use crate::elements::Compute;
use crate::transpose;

/// Rows of a tile: at least one cache line of an operand that runs across.
const ROWS: usize = 32;
/// Bytes of a row of a tile.
const ROW_BYTES: usize = 512;
/// Operands that are transposed; more are read element by element.
const MOST: usize = 2;

/// Which inputs are transposed, and the dimension along which they run.
pub struct Tiling {
    across: usize,
    inputs: [usize; MOST],
    count: usize,
    cols: usize,
}

#[repr(align(64))]
struct Memory(std::mem::MaybeUninit<[[u8; ROWS * ROW_BYTES]; MOST]>);

impl Tiling {
    /// Looks for inputs whose elements are neighbours along another dimension than the last.
    pub fn of<T: Compute>(plan: &Plan<T>) -> Option<Tiling> {
        let (inner, outer) = plan.dims.split_last()?;
        if inner.n < 8 {
            return None;
        }
        let size = |i: usize| plan.size[i] as isize;
        let strided = |i: usize| inner.step[i] != 0 && inner.step[i] != size(i);
        let along = |i: usize| {
            let found = outer.iter().position(|d| d.step[i] == size(i) && d.n >= 8);
            found.filter(|_| strided(i))
        };
        let across = (1..=plan.inputs).find_map(along)?;
        let mut inputs = [0; MOST];
        let mut count = 0;
        for i in 1..=plan.inputs {
            if count < MOST && along(i) == Some(across) {
                inputs[count] = i;
                count += 1;
            }
        }
        let widest = inputs[..count].iter().map(|&i| plan.size[i]).max()?;
        Some(Tiling {
            across,
            inputs,
            count,
            cols: ROW_BYTES / widest,
        })
    }

    /// The number of tiles.
    pub fn tiles<T: Compute>(&self, plan: &Plan<T>) -> usize {
        plan.dims.iter().enumerate().fold(1, |m, (d, dim)| {
            m * if d == self.across {
                dim.n.div_ceil(ROWS)
            } else if d + 1 == plan.dims.len() {
                dim.n.div_ceil(self.cols)
            } else {
                dim.n
            }
        })
    }

    /// Elements of a full tile.
    pub fn size(&self) -> usize {
        ROWS * self.cols
    }

    /// Computes some tiles.
    ///
    /// # Safety
    /// The tiles lie within the plan, and no other thread writes them.
    pub unsafe fn run<T: Compute>(&self, plan: &Plan<T>, range: std::ops::Range<usize>) {
        // SAFETY: the tiles lie within the plan and are this thread's alone; `memory` has ROWS *
        // ROW_BYTES bytes for each transposed input.
        unsafe {
            let mut memory = Memory(std::mem::MaybeUninit::uninit());
            let memory = memory.0.as_mut_ptr().cast::<u8>();
            let mut buffers = Buffers::new();
            let last = plan.dims.len() - 1;
            let (inner, across) = (&plan.dims[last], &plan.dims[self.across]);
            let mut row = Row::new(inner.step);
            for &i in &self.inputs[..self.count] {
                row.step[i] = plan.size[i] as isize;
            }
            row.prepare(plan, &mut buffers, self.cols);
            let (strips, columns) = (across.n.div_ceil(ROWS), inner.n.div_ceil(self.cols));
            for tile in range {
                let (first, rest) = (tile % strips * ROWS, tile / strips);
                let (start, mut rest) = (rest % columns * self.cols, rest / columns);
                let rows = ROWS.min(across.n - first);
                let cols = self.cols.min(inner.n - start);
                let mut at = plan.at;
                let shift = |at: &mut [*mut u8; MAX], step: &[isize; MAX], by: usize| {
                    for i in 0..=plan.inputs {
                        at[i] = at[i].wrapping_offset(step[i] * by as isize);
                    }
                };
                for (d, dim) in plan.dims.iter().enumerate().rev() {
                    if d != last && d != self.across {
                        shift(&mut at, &dim.step, rest % dim.n);
                        rest /= dim.n;
                    }
                }
                shift(&mut at, &across.step, first);
                shift(&mut at, &inner.step, start);
                let mut step = across.step;
                for (k, &i) in self.inputs[..self.count].iter().enumerate() {
                    debug_assert!(rows <= ROWS && self.cols * plan.size[i] <= ROW_BYTES);
                    let to = memory.add(k * ROWS * ROW_BYTES);
                    let stride = inner.step[i] / plan.size[i] as isize;
                    transpose(plan.size[i], at[i], stride, to, self.cols, cols, rows);
                    at[i] = to;
                    step[i] = (self.cols * plan.size[i]) as isize;
                }
                for r in 0..rows {
                    row.run(plan, &mut buffers, &at, 0, cols);
                    if r + 1 < rows {
                        shift(&mut at, &step, 1);
                    }
                }
            }
        }
    }
}

/// Transposes `rows` rows, `stride` elements apart, of `cols` elements of `size` bytes.
unsafe fn transpose(
    size: usize,
    x: *const u8,
    stride: isize,
    y: *mut u8,
    width: usize,
    rows: usize,
    cols: usize,
) {
    // SAFETY: `x` has these elements of `size` bytes, and `y` room for `cols` rows `width` elements
    // apart.
    unsafe {
        unsafe fn of<T: Copy>(
            x: *const u8,
            stride: isize,
            y: *mut u8,
            width: usize,
            rows: usize,
            cols: usize,
        ) {
            // SAFETY: the tile lies within `x` and `y`, whose elements have the size of `T`; the
            // machine runs what `kernel` picks.
            unsafe {
                let transpose = transpose::kernel::<T>();
                transpose(x.cast(), stride, y.cast(), width as isize, rows, cols)
            }
        }
        match size {
            1 => of::<u8>(x, stride, y, width, rows, cols),
            2 => of::<u16>(x, stride, y, width, rows, cols),
            4 => of::<u32>(x, stride, y, width, rows, cols),
            _ => of::<u64>(x, stride, y, width, rows, cols),
        }
    }
}
