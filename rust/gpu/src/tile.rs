//! Tiles: the part of a matrix product that a workgroup computes.

use super::launch::Launch;
use super::{Acc, Gpu};

/// Elements of k that one invocation walks at most: about five loop iterations each, of the 65,535
/// that software Vulkan allows.
pub const MAX_DEPTH: usize = 8192;
/// Workgroups below which k is split, also where few rows meet a matrix that is read only once, and the smallest
/// part worth a split.
const ENOUGH: usize = 128;
const ENOUGH_FLAT: usize = 1024;
const MIN_PART: usize = 256;
/// Parts of k are multiples of this, and so are the steps of every tile.
pub const STEP: usize = 16;

/// A tile: rows and columns, squares of 4 x 4 of an invocation along both, and steps of k at once.
/// The choice changes no bit of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    pub m: usize,
    pub n: usize,
    squares: [usize; 2],
    pub depth: usize,
}

const fn tile(m: usize, n: usize, squares: [usize; 2], depth: usize) -> Tile {
    Tile {
        m,
        n,
        squares,
        depth,
    }
}
pub const LARGE: Tile = tile(128, 128, [2, 2], 8);
pub const MIDDLE: Tile = tile(64, 64, [2, 1], 16);
pub const SMALL: Tile = tile(32, 32, [1, 1], 8);
pub const FLAT: Tile = tile(8, 128, [1, 1], 16);
pub const TALL: Tile = tile(128, 8, [1, 1], 16);
pub const TILES: [Tile; 5] = [LARGE, MIDDLE, SMALL, FLAT, TALL];

impl Tile {
    pub fn groups(self, m: usize, n: usize) -> usize {
        m.div_ceil(self.m) * n.div_ceil(self.n)
    }

    pub fn threads(self) -> usize {
        self.m * self.n / (16 * self.squares[0] * self.squares[1])
    }

    /// The largest that gives the GPU enough to do.
    pub fn of(gpu: &Gpu, acc: Acc, m: usize, n: usize, stacks: usize) -> Tile {
        if acc != Acc::F32 || gpu.info().software {
            return SMALL;
        }
        if m <= 8 && n > 8 {
            return FLAT;
        }
        if n <= 8 && m > 8 {
            return TALL;
        }
        let fills = |t: &Tile| m >= t.m && n >= t.n && t.groups(m, n) * stacks >= ENOUGH;
        [LARGE, MIDDLE].into_iter().find(fills).unwrap_or(SMALL)
    }

    /// Tells a shader with these constants of it; `more` are bytes of a workgroup's memory that it
    /// takes for each step besides.
    pub fn set<'a, P: bytemuck::NoUninit>(
        self,
        gpu: &Gpu,
        acc: Acc,
        more: usize,
        launch: Launch<'a, P>,
    ) -> Launch<'a, P> {
        // Two where the memory has room for the next step's tiles.
        let line = (self.m + self.n + 8) * acc.dtype().size() + more;
        let most = gpu.info().limits.max_compute_workgroup_storage_size as usize;
        launch
            .set("BM", self.m as u32)
            .set("BN", self.n as u32)
            .set("RM", self.squares[0] as u32)
            .set("RN", self.squares[1] as u32)
            .set("DEPTH", self.depth as u32)
            .set("BUFFERS", 1 + (2 * self.depth * line <= most) as u32)
            .set("ROLLED", gpu.info().software)
    }
}

/// How many parts k has, and the length of each, for `stacks` products of these sizes. By the shape
/// alone: the number of parts changes the result.
pub fn parts(m: usize, n: usize, k: usize, stacks: usize) -> (usize, usize) {
    let (side, enough) = match m.min(n) {
        ..=32 => (32, ENOUGH_FLAT),
        33..64 => (32, ENOUGH),
        _ => (64, ENOUGH),
    };
    let groups = (m.div_ceil(side) * n.div_ceil(side) * stacks).max(1);
    let wanted = enough.div_ceil(groups).min(k / MIN_PART).max(1);
    in_parts(k, wanted)
}

/// How many parts k has, and the length of each, where so many are wanted.
pub fn in_parts(k: usize, wanted: usize) -> (usize, usize) {
    let splits = wanted.max(k.div_ceil(MAX_DEPTH)).max(1);
    let part = k.div_ceil(splits).next_multiple_of(STEP).max(STEP);
    (k.div_ceil(part).max(1), part)
}
