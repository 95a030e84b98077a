//! The kernels that a machine has, by instruction set and by element type.

use super::kernel::{self, Direct, Flow, Packed, Strided, Tile};
use super::pack::{Fill, Strips};
use super::{GemmElem, Problem};

/// Depth that stays in registers; short enough that sums are as exact as the best of others'.
pub(super) const DEPTH: usize = 192;
/// The same for pairs of bfloat16, two products of which are one sum.
#[cfg(target_arch = "x86_64")]
pub(super) const PAIRS_DEPTH: usize = 512;

/// The kernels of an instruction set.
pub struct Set<E: 'static> {
    /// Lanes of a vector, and rows of the tallest tile.
    pub(super) lanes: usize,
    pub(super) rows: usize,
    /// Depth that stays in registers before a tile of C is written.
    pub(super) depth: usize,
    pub(super) packed: &'static [[Packed<E>; 2]],
    pub(super) direct: &'static [[Direct<E>; 2]],
    /// Kernels of four vectors, for fewer rows.
    pub(super) wide: &'static [Direct<E>],
}

impl<E> Set<E> {
    /// The columns of a tile of so many rows, where operands are read in place.
    pub(super) fn reach(&self, rows: usize) -> usize {
        self.lanes * if rows <= self.wide.len() { 4 } else { 2 }
    }

    /// Multiplies a tile of at most `reach` columns in place.
    pub(super) unsafe fn tile(&self, rows: usize, k: usize, x: &Strided<E>, t: &Tile<E>)
    where
        E: Copy,
    {
        // SAFETY: the operands have `k` depths, `rows` rows and the tile's columns; parts of a tile
        // lie inside it.
        unsafe {
            let kernel = &self.direct[rows - 1];
            match t.width.div_ceil(self.lanes) {
                4 => self.wide[rows - 1](k, x, t),
                3 => {
                    let two = 2 * self.lanes;
                    kernel[1](k, x, &Tile { width: two, ..*t });
                    let x = Strided {
                        b: x.b.add(two),
                        ..*x
                    };
                    let d = t.d.wrapping_offset(two as isize * t.d_cs);
                    kernel[0](
                        k,
                        &x,
                        &Tile {
                            width: t.width - two,
                            c: t.c.add(two),
                            d,
                            ..*t
                        },
                    );
                }
                used => kernel[used - 1](k, x, t),
            }
        }
    }
}

macro_rules! sets {
    ($($name:ident: $E:ty = $kernels:ident;)*) => { $(
        pub(super) static $name: Set<$E> = Set {
            lanes: kernel::$kernels::LANES,
            rows: kernel::$kernels::PACKED.len(),
            depth: DEPTH,
            packed: &kernel::$kernels::PACKED,
            direct: &kernel::$kernels::DIRECT,
            wide: &kernel::$kernels::WIDE,
        };
    )* };
}
#[cfg(target_arch = "x86_64")]
sets! {
    F32_512: f32 = f32x16;
    F64_512: f64 = f64x8;
    F32_256: f32 = f32x8;
    F64_256: f64 = f64x4;
}
#[cfg(target_arch = "aarch64")]
sets! {
    F32_NEON: f32 = f32x4x2;
    F64_NEON: f64 = f64x2x2;
}
#[cfg(target_arch = "x86_64")]
pub(super) static PAIRS: Set<f32> = Set {
    lanes: 16,
    rows: 14,
    depth: PAIRS_DEPTH,
    packed: &kernel::pairs::PACKED,
    direct: &[],
    wide: &[],
};

/// Sums over the depth for some rows of A and some lanes of B, to `sums[row * lanes + lane]`.
pub(super) type Dots<T, E> =
    unsafe fn(k: usize, a: *const E, a_rs: usize, b: *const T, ls: isize, sums: *mut E);

/// The product of two contiguous vectors.
pub(super) type Inner<E> = unsafe fn(k: usize, x: *const E, y: *const E) -> E;

/// Adds `size.0` rows of B of `size.1` elements times numbers of A to sums at `y`.
pub(super) type Sweep<E> = unsafe fn(
    size: (usize, usize),
    a: (*const E, isize),
    b: (*const E, isize),
    y: *mut E,
    first: bool,
);

/// The kernels of an element type: `[rows - 1]`, for `lanes[rows - 1]` lanes and for one.
pub struct Gemv<T: GemmElem> {
    pub(super) lanes: &'static [usize],
    pub(super) many: &'static [Dots<T, T::Acc>],
    pub(super) one: &'static [Dots<T, T::Acc>],
    /// That of one row and many lanes, and how many.
    pub(super) wide: (usize, Dots<T, T::Acc>),
}

/// The kernels and the packing of panels that stream past rows of A.
pub struct Stream<T: GemmElem> {
    /// Lanes of a vector.
    pub(super) lanes: usize,
    /// Elements of depth in a packed one, and packed ones that stay in registers.
    pub(super) each: usize,
    pub(super) depth: usize,
    /// Kernels that read rows of A in place, and packed ones: `[rows - 1][vectors - 1]`.
    pub(super) rows: &'static [&'static [Flow<T::Acc>]],
    pub(super) packed: &'static [&'static [Flow<T::Acc>]],
    /// Packs rows of A.
    pub(super) turn: Fill<T, T::Acc>,
    /// Packs tiles of rows of A across which lines of memory run.
    pub(super) strips: Strips<T, T::Acc>,
    /// Packs a block of B whose columns are contiguous, and one panel of another.
    pub(super) lay: Fill<T, T::Acc>,
    pub(super) panel: Fill<T, T::Acc>,
}

/// The kernels and the packing of an element type on this machine.
pub struct Native<T: GemmElem> {
    pub(super) set: &'static Set<T::Acc>,
    pub(super) gemv: &'static Gemv<T>,
    /// The product of two vectors of sums' type: of caches nearby, and of a piece of long ones on AMD,
    /// where registers of half a line, and lines asked for, read what lies beyond 7 to 10 % faster
    /// (Zen 4).
    pub(super) inner: [Inner<T::Acc>; 2],
    pub(super) sweep: Sweep<T::Acc>,
    pub(super) fill: Fill<T, T::Acc>,
    pub(super) each: usize,
    /// What multiplies where the first cache is small.
    pub(super) stream: Option<&'static Stream<T>>,
    /// Multiplies in tiles of a matrix unit if `p` is worth it; returns whether.
    pub(super) tiled: Option<unsafe fn(x: &Self, p: &Problem<T>) -> bool>,
}
