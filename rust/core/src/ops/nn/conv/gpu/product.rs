//! The kernels of a convolution, and which of them makes it.

use super::{volume, Geometry};
use crate::error::Result;
use crate::gpu::cooperative::{Cooperative, Factors, Ways};
use crate::gpu::launch::Launch;
use crate::gpu::tile::{self, Tile};
use crate::gpu::tune;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::layout::Layout;
use crate::ops::linalg::matmul::cooperative::{error, factors, sample, tops, SAMPLE, WORTH};
use crate::tensor::Tensor;
use crate::transfer::whole;
use smallvec::SmallVec;
use std::hash::Hash;

/// Which of the three factors is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Forward,
    ToInput,
    ToWeight,
}

params! {
    pub struct Params {
        m: u32,
        n: u32,
        k: u32,
        groups: u32,
        splits: u32,
        part: u32,
        tiles_m: u32,
        tiles_n: u32,
        y_split: u32,
        bias: u32,
        classes: u32,
        batch: u32,
        channels: u32,
        a_offset: u32,
        a_group: u32,
        a_row: u32,
        b_offset: u32,
        b_group: u32,
        y_offset: u32,
        y_group: u32,
        y_row: u32,
        pad0: u32,
        pad1: u32,
        pad2: u32,
        source: [u32; 4],
        source_strides: [u32; 4],
        places: [u32; 4],
        place_strides: [u32; 4],
        kernel: [u32; 4],
        kernel_strides: [u32; 4],
        stride: [u32; 4],
        padding: [u32; 4],
        dilation: [u32; 4],
        period: [u32; 4],
        inverse: [u32; 4],
    }
}
shader! { static CONV: Params = "conv.wgsl", Acc::FLOAT }
/// The operands that it reads by four elements at once too.
const FOURS: [&str; 1] = ["a"];
shader! {
    static CONV_COOPERATIVE: Params = "conv_cooperative.wgsl", Acc::FLOAT;
    tail crate::gpu::cooperative::tests::types(&FOURS).as_str()
}

/// Taps at most where numbers are scaled: a column looks at the largest magnitude of each (see `tile`
/// for how long a loop may be).
const MAX_TAPS: usize = 1024;

/// How a product is made.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Tile(Tile),
    Cooperative(Cooperative),
}

/// What one dispatch makes: a convolution, or the `splits` parts of one.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    pub gpu: &'a Gpu,
    pub c: &'a Geometry,
    pub mode: Mode,
    /// But for the tiles.
    pub p: Params,
    /// Groups of channels, of each class.
    pub stacks: usize,
    /// Of a group of b.
    pub channels: usize,
    pub a: &'a Tensor,
    pub b: &'a Tensor,
    pub bias: Option<&'a Tensor>,
    pub into: &'a Tensor,
    pub splits: usize,
}

impl<'a> Product<'a> {
    /// The quickest way that is known.
    pub fn way(&self) -> Result<Way> {
        match self.cooperation()? {
            Some(way) => Ok(Way::Cooperative(way)),
            None => Ok(Way::Tile(self.tile()?)),
        }
    }

    pub fn make(&self, way: Way) -> Result<()> {
        match way {
            Way::Tile(tile) => self.tiles(tile),
            Way::Cooperative(way) => self.cooperative(way),
        }
    }

    /// An element for each invocation.
    pub fn few(&self) -> Result<()> {
        let launch = self.launch()?.entry("direct");
        launch.each(self.gpu, &self.p, self.into.offset(), self.into.numel())
    }

    /// A row and so many columns for each workgroup.
    pub fn shared_out(&self, taps: usize, lanes: usize) -> Result<()> {
        let (p, groups) = self.tiled(1, taps);
        self.launch()?
            .entry("shared_out")
            .set("TAPS", taps as u32)
            .set("LANES", lanes as u32)
            .groups(self.gpu, &p, groups)
    }

    /// The parameters for tiles that are so large, and how many of these there are.
    fn tiled(&self, m_of: usize, n_of: usize) -> (Params, usize) {
        let (m, n) = (self.p.m as usize, self.p.n as usize);
        let (tiles_m, tiles_n) = (m.div_ceil(m_of), n.div_ceil(n_of));
        let p = Params {
            tiles_m: tiles_m as u32,
            tiles_n: tiles_n as u32,
            ..self.p
        };
        (p, tiles_m * tiles_n * self.stacks * self.splits)
    }

    /// What all kernels know.
    fn set<'b>(&self, launch: Launch<'b, Params>) -> Launch<'b, Params> {
        launch
            .set("TO_WEIGHT", self.mode == Mode::ToWeight)
            .set("CLASSES", self.mode == Mode::ToInput)
            .set("HAS_BIAS", self.bias.is_some())
            .set("DIMS", self.dims())
    }

    fn dims(&self) -> u32 {
        match (self.c.input, self.c.kernel) {
            ([1, 1, _], [1, 1, _]) => 1,
            ([1, ..], [1, ..]) => 2,
            _ => 3,
        }
    }

    fn launch(&self) -> Result<Launch<'a, Params>> {
        let launch = self
            .set(CONV.launch(Acc::F32))
            .writes("Y", self.into)
            .reads("A", self.a)
            .reads("B", self.b)
            .reads("C", self.bias.unwrap_or(self.a));
        // Of one part it is the result.
        Ok(launch.epilogue((self.splits == 1).then(|| whole(self.into)).transpose()?))
    }

    fn tiles(&self, tile: Tile) -> Result<()> {
        let loads = match self.mode {
            Mode::ToWeight => (tile.depth * tile.n / 4).div_ceil(tile.threads()),
            _ => 1,
        };
        let (p, groups) = self.tiled(tile.m, tile.n);
        // A line of the table of rows is 20 bytes, and there are two.
        tile.set(self.gpu, Acc::F32, 20, self.launch()?)
            .set("NEAR", 4 * loads as u32)
            .set("PAIRS", self.lies_in_pairs())
            .groups(self.gpu, &p, groups)
    }

    /// What convolutions of a kind have in common.
    fn kind(&self) -> impl Hash {
        let dtypes = [self.a.dtype(), self.b.dtype(), self.into.dtype()];
        let Params { m, n, part, .. } = self.p;
        let stacks = self.stacks * self.splits;
        let taps = volume(self.c.kernel);
        let sizes = [m as usize, n as usize, part as usize, stacks, taps].map(tune::bucket);
        let steps = (self.c.stride, self.c.dilation);
        (self.mode, self.dims(), dtypes, steps, sizes)
    }

    fn tile(&self) -> Result<Tile> {
        // Along taps a tile is read by columns of its own, of which that one has too many.
        let takes = |tile: &Tile| self.mode != Mode::ToWeight || *tile != tile::FLAT;
        let tiles: SmallVec<[Tile; 5]> = tile::TILES.into_iter().filter(takes).collect();
        let (m, n) = (self.p.m as usize, self.p.n as usize);
        let rule = Tile::of(self.gpu, Acc::F32, m, n, self.stacks * self.splits);
        let rule = if takes(&rule) { rule } else { tile::SMALL };
        let run = |tile| self.tiles(tile);
        tune::pick(self.gpu, ("conv", self.kind()), rule, &tiles, run)
    }

    fn factors(&self) -> Option<Factors> {
        let fits = volume(self.c.kernel) <= MAX_TAPS && self.a.numel() * self.b.numel() > 0;
        factors(self.a, self.b, self.into).filter(|_| fits)
    }

    /// The way by cooperative matrices that is quicker than the tile, if there is one.
    fn cooperation(&self) -> Result<Option<Cooperative>> {
        let factors = self.factors();
        let (ways, factors) = match (self.gpu.ways(factors), factors) {
            (Ways::One(way), _) => return Ok(way),
            (Ways::Tried(_), None) => return Ok(None),
            (Ways::Tried(ways), Some(factors)) => (ways, factors),
        };
        let Params { m, n, part, .. } = self.p;
        if (m.min(n).min(part) as usize) < WORTH {
            return Ok(None);
        }
        let plain = self.tile()?;
        let run = |way: Option<Cooperative>| match way {
            Some(way) => self.cooperative(way),
            None => self.tiles(plain),
        };
        // The last elements of all.
        let (n, offset) = (self.into.numel(), self.into.offset());
        let some = self.into.alias(Layout {
            offset: offset + n - n.min(SAMPLE),
            ..Layout::contiguous(&[n.min(SAMPLE)])
        });
        let error = error(factors, self.into.dtype());
        let kind = ("conv", factors, self.kind());
        self.gpu.try_ways(kind, &ways, error, run, || sample(&some))
    }

    fn cooperative(&self, way: Cooperative) -> Result<()> {
        let (m, n) = way.extent();
        let (p, groups) = self.tiled(m, n);
        let (tops_a, tops_b) = match way.is_scaled() {
            true => self.tops()?,
            false => (self.a.clone(), self.b.clone()),
        };
        let types = way.types(&FOURS);
        let result = (self.splits == 1).then(|| whole(self.into)).transpose()?;
        self.set(way.set(&types, CONV_COOPERATIVE.launch(Acc::F32)))
            .set("FOURS_A", self.lies_in_fours())
            .set("PAIRS", self.lies_in_pairs())
            .writes("Y", self.into)
            .reads_words(self.a)
            .reads_words(self.b)
            .reads("BIAS", self.bias.unwrap_or(self.a))
            .reads_words(&tops_a)
            .reads_words(&tops_b)
            .reads_words(self.a)
            .epilogue(result)
            .groups(self.gpu, &p, groups)
    }

    /// Whether rows of a can be read by four elements at once.
    fn lies_in_fours(&self) -> bool {
        let run = match self.mode {
            Mode::Forward => self.p.k as usize,
            Mode::ToWeight => volume(self.c.output),
            // Taps of a class lie apart.
            Mode::ToInput => return false,
        };
        run.is_multiple_of(4) && self.a.offset().is_multiple_of(4)
    }

    /// Whether columns of the result lie side by side, two in a word.
    fn lies_in_pairs(&self) -> bool {
        let run = match self.mode {
            Mode::Forward => volume(self.c.output),
            Mode::ToInput if self.c.stride[..] == [1; 3] => volume(self.c.input),
            Mode::ToInput => return false,
            Mode::ToWeight => self.p.n as usize,
        };
        let pairs = self.into.dtype().size() == 2 && self.into.offset().is_multiple_of(2);
        pairs && run.is_multiple_of(2)
    }

    /// The largest magnitudes of the rows of a, and of b those in which its columns find theirs: of
    /// each place over the channels of a group, or in the gradient of the weight of each channel.
    fn tops(&self) -> Result<(Tensor, Tensor)> {
        let c = self.c;
        let (own, out) = (c.in_channels / c.groups, c.out_channels / c.groups);
        let (taps, places) = (volume(c.kernel), volume(c.output));
        let of = |t: &Tensor, shape: [usize; 4]| {
            t.alias(Layout {
                offset: t.offset(),
                ..Layout::contiguous(&shape)
            })
        };
        let weight = of(self.a, [c.groups, out, own, taps]);
        let size = self.b.numel() / (c.batch * c.groups * self.channels);
        let image = of(self.b, [c.batch, c.groups, self.channels, size]);
        let of_a = match self.mode {
            Mode::Forward => tops(self.gpu, &weight, [2, 3].into())?,
            Mode::ToInput => tops(self.gpu, &weight, [1, 3].into())?,
            Mode::ToWeight => {
                let g = of(self.a, [c.batch, c.groups, out, places]);
                tops(self.gpu, &g, [0, 3].into())?
            }
        };
        let of_b = match self.mode {
            Mode::ToWeight => tops(self.gpu, &image, [0, 3].into())?,
            _ => tops(self.gpu, &image, [2].into())?,
        };
        Ok((of_a, of_b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::gpu::cooperative;

    #[test]
    fn texts_of_cooperative_matrices_are_valid() {
        for (info, dtype, terms) in cooperative::tests::cases() {
            let factors = Factors { dtype, terms };
            for (i, way) in Cooperative::ways(&info, factors).iter().enumerate() {
                let types = way.types(&FOURS);
                let half = i % 2 == 1;
                way.set(&types, CONV_COOPERATIVE.launch(Acc::F32))
                    .set("Y", if half { dtype } else { DType::F32 } as u32)
                    .set("BIAS", dtype as u32)
                    .set("HAS_BIAS", half)
                    .set("TO_WEIGHT", i % 3 == 0)
                    .set("CLASSES", i % 3 == 1)
                    .set("FOURS_A", i % 4 < 2)
                    .set("PAIRS", half && dtype.size() == 2)
                    .set("DIMS", 1 + i as u32 % 3)
                    .check();
            }
        }
    }
}
