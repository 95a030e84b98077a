//! Tiles: the instructions, and what they do in software.

use super::{PAIR, SIDE};
use crate::per_isa;
use crate::{level, Level};
use half::bf16;
use std::arch::asm;

/// Terms of A and of B that are multiplied, in an order in which most products share an operand's
/// with the one before.
pub(super) type Products = &'static [(usize, usize)];

/// The products for each number of terms.
pub(super) const PRODUCTS: [Products; 3] = [
    &[(0, 0)],
    &[(0, 1), (0, 0), (1, 0)],
    &[(2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)],
];
/// All products of two terms.
pub(super) const ALL_OF_TWO: Products = &[(1, 1), (0, 1), (0, 0), (1, 0)];

/// Eight tiles of 16 rows of 64 bytes: two by two of C, two of A and two of B.
///
/// # Safety
/// The machine has the engine's instructions, and `begin` comes before all other methods on the
/// thread. Addresses are those of [`PAIR`] numbers, of SIDE * SIDE in `store`.
pub(super) trait Engine {
    fn new() -> Self;
    /// Makes the thread's tiles ready.
    unsafe fn begin();
    /// Gives the thread's tiles back.
    unsafe fn end();
    /// Sets C to zero.
    unsafe fn zero(&mut self);
    /// Loads 32 rows of 32 elements of depth.
    unsafe fn load_a(&mut self, p: *const u16);
    /// Loads 16 pairs of depth of the first 16 columns, then of the others.
    unsafe fn load_b(&mut self, p: *const u16);
    /// C += A B.
    unsafe fn dot(&mut self);
    /// Stores 32 rows of 32 columns of C.
    unsafe fn store(&self, c: *mut f32);
}

/// The instructions. Compilers never use tile registers of their own accord, so what one block of
/// assembly leaves there is what the next one finds.
pub(super) struct Machine;

/// Palette 1, and for each tile 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Config([u8; 64]);
static CONFIG: Config = {
    let mut c = [0; 64];
    c[0] = 1;
    let mut i = 0;
    while i < 8 {
        c[16 + 2 * i] = 64;
        c[48 + i] = 16;
        i += 1;
    }
    Config(c)
};

impl Engine for Machine {
    fn new() -> Self {
        Machine
    }
    #[inline(always)]
    unsafe fn begin() {
        // SAFETY: tiles that are configured belong to this thread; the machine has the instruction.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &CONFIG, options(nostack, preserves_flags));
        }
    }
    #[inline(always)]
    unsafe fn end() {
        // SAFETY: tiles are the thread's own; the machine has the instruction.
        unsafe {
            asm!("tilerelease", options(nostack, preserves_flags));
        }
    }
    #[inline(always)]
    unsafe fn zero(&mut self) {
        // SAFETY: `begin` configured the tiles.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nostack, preserves_flags)
            );
        }
    }
    #[inline(always)]
    unsafe fn load_a(&mut self, p: *const u16) {
        // SAFETY: `p` has PAIR numbers, two tiles of 16 rows of 64 bytes; `begin` configured the
        // tiles.
        unsafe {
            asm!(
                "tileloadd tmm4, [{p} + {step}*1]",
                "tileloadd tmm5, [{p} + {step}*1 + 1024]",
                p = in(reg) p,
                step = in(reg) 64usize,
                options(nostack, preserves_flags)
            );
        }
    }
    #[inline(always)]
    unsafe fn load_b(&mut self, p: *const u16) {
        // SAFETY: `p` has PAIR numbers, two tiles of 16 rows of 64 bytes; `begin` configured the
        // tiles.
        unsafe {
            asm!(
                "tileloadd tmm6, [{p} + {step}*1]",
                "tileloadd tmm7, [{p} + {step}*1 + 1024]",
                p = in(reg) p,
                step = in(reg) 64usize,
                options(nostack, preserves_flags)
            );
        }
    }
    #[inline(always)]
    unsafe fn dot(&mut self) {
        // SAFETY: `begin` configured the tiles.
        unsafe {
            asm!(
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                options(nostack, preserves_flags)
            );
        }
    }
    #[inline(always)]
    unsafe fn store(&self, c: *mut f32) {
        // SAFETY: `c` has room for SIDE rows of SIDE numbers; `begin` configured the tiles.
        unsafe {
            asm!(
                "tilestored [{c} + {step}*1], tmm0",
                "tilestored [{c} + {step}*1 + 64], tmm1",
                "tilestored [{c} + {step}*1 + 2048], tmm2",
                "tilestored [{c} + {step}*1 + 2112], tmm3",
                c = in(reg) c,
                step = in(reg) 4 * SIDE,
                options(nostack, preserves_flags)
            );
        }
    }
}

/// The same in software, as the instructions are specified, for tests.
#[derive(Default)]
pub(super) struct Model {
    c: [[[f32; 16]; 16]; 4],
    pub(super) a: [[[u16; 32]; 16]; 2],
    pub(super) b: [[[u16; 32]; 16]; 2],
}

/// A denormal number counts as zero.
#[inline(always)]
fn flushed(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE {
        0f32.copysign(x)
    } else {
        x
    }
}

per_isa! {
    /// What `tdpbf16ps` does to a tile: even and odd depths are summed apart, by fused
    /// multiplications and additions, and then added to C.
    pub(super) fn tdpbf16ps[](c: &mut [[f32; 16]; 16], a: &[[u16; 32]; 16], b: &[[u16; 32]; 16]) {
        let wide = |x: u16| flushed(f32::from_bits((x as u32) << 16));
        for m in 0..16 {
            let mut sums = [[0f32; 16]; 2];
            for q in 0..16 {
                for i in 0..2 {
                    let x = wide(a[m][2 * q + i]);
                    for j in 0..16 {
                        sums[i][j] = flushed(x.mul_add(wide(b[q][2 * j + i]), sums[i][j]));
                    }
                }
            }
            for j in 0..16 {
                c[m][j] = flushed(flushed(c[m][j]) + flushed(sums[0][j] + sums[1][j]));
            }
        }
    }
}

impl Engine for Model {
    fn new() -> Self {
        Model::default()
    }
    unsafe fn begin() {}
    unsafe fn end() {}
    unsafe fn zero(&mut self) {
        self.c = Default::default();
    }
    unsafe fn load_a(&mut self, p: *const u16) {
        // SAFETY: `p` has PAIR numbers, as many as the array.
        unsafe {
            self.a = p.cast::<[[[u16; 32]; 16]; 2]>().read_unaligned();
        }
    }
    unsafe fn load_b(&mut self, p: *const u16) {
        // SAFETY: `p` has PAIR numbers, as many as the array.
        unsafe {
            self.b = p.cast::<[[[u16; 32]; 16]; 2]>().read_unaligned();
        }
    }
    unsafe fn dot(&mut self) {
        for (i, c) in self.c.iter_mut().enumerate() {
            tdpbf16ps(c, &self.a[i / 2], &self.b[i % 2]);
        }
    }
    unsafe fn store(&self, c: *mut f32) {
        // SAFETY: `c` has room for SIDE rows of SIDE numbers, where `at` and its 16 lie.
        unsafe {
            for (i, tile) in self.c.iter().enumerate() {
                for (j, row) in tile.iter().enumerate() {
                    let at = (i / 2 * 16 + j) * SIDE + i % 2 * 16;
                    c.add(at).cast::<[f32; 16]>().write_unaligned(*row);
                }
            }
        }
    }
}

/// C = A B for 32 rows and columns, over `k` packed blocks of depth.
#[inline(always)]
pub(super) unsafe fn sum<G: Engine>(
    tiles: &mut G,
    (terms, products): (usize, Products),
    k: usize,
    a: *const u16,
    b: *const u16,
    c: *mut f32,
) {
    // SAFETY: `a` and `b` hold `k` blocks of `terms` pairs of tiles and `c` has room for one of
    // sums; `begin` came before.
    unsafe {
        tiles.zero();
        for q in 0..k {
            let at = q * terms * PAIR;
            let mut held = (usize::MAX, usize::MAX);
            for &(i, j) in products {
                if i != held.0 {
                    tiles.load_a(a.add(at + i * PAIR));
                }
                if j != held.1 {
                    tiles.load_b(b.add(at + j * PAIR));
                }
                held = (i, j);
                tiles.dot();
            }
        }
        tiles.store(c);
    }
}

/// Whether the processor and the system have tiles of the size that is used here, and they sum as
/// the model does.
pub(super) fn available() -> bool {
    if level() < Level::Avx512 {
        return false;
    }
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // AMX-BF16 and AMX-TILE; the latter's palette 1: 64 bytes of a row, 8 tiles, 16 rows.
    let has = |leaf, sub| (__cpuid(0).eax >= leaf).then(|| __cpuid_count(leaf, sub));
    let (Some(features), Some(palette)) = (has(7, 0), has(0x1d, 1)) else {
        return false;
    };
    if features.edx >> 22 & 0b101 != 0b101
        || (palette.ebx, palette.ecx & 0xffff) != (8 << 16 | 64, 16)
    {
        return false;
    }
    let state: u32;
    // SAFETY: AVX-512 is there, so the register of states that the system keeps can be read.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") state, out("edx") _, options(nomem, nostack)) };
    // SAFETY: the processor has the instructions, and the system keeps their state.
    state >> 17 & 3 == 3 && crate::os::permits_amx() && unsafe { agree::<Machine, Model>() }
}

/// Whether two engines give the same sums of small whole numbers, which are exact in any order.
pub(super) unsafe fn agree<G: Engine, H: Engine>() -> bool {
    // SAFETY: the caller has the engines' instructions; the buffers hold K blocks of three terms,
    // and `c` has room for the sums.
    unsafe {
        const K: usize = 2;
        let mut seed = 1u32;
        let mut numbers = || -> Vec<u16> {
            let next = |_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bf16::from_f32((seed >> 28) as f32 - 8.0).to_bits()
            };
            (0..3 * K * PAIR).map(next).collect()
        };
        let (a, b) = (numbers(), numbers());
        let mut c = [[0f32; PAIR]; 2];
        (1..=3).all(|terms| {
            let of = (terms, PRODUCTS[terms - 1]);
            G::begin();
            let to = c[0].as_mut_ptr();
            sum(&mut G::new(), of, K, a.as_ptr(), b.as_ptr(), to);
            G::end();
            let to = c[1].as_mut_ptr();
            sum(&mut H::new(), of, K, a.as_ptr(), b.as_ptr(), to);
            c[0] == c[1]
        })
    }
}
