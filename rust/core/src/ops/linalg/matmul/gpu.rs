//! Batched matrix products over any strides.

use super::cooperative::{error, factors, sample, tops, SAMPLE, WORTH};
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::cooperative::{Cooperative, Factors, Ways};
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::tile::{self, Tile};
use crate::gpu::tune;
use crate::gpu::{copy, params, shader, Acc, Gpu, View};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::transfer::{self, whole};
use std::hash::Hash;

params! {
    struct Params {
        m: u32,
        n: u32,
        k: u32,
        batches: u32,
        splits: u32,
        part: u32,
        tiles_m: u32,
        tiles_n: u32,
        a: [u32; 4],
        b: [u32; 4],
        c: [u32; 4],
        y: [u32; 4],
        alpha: [u32; 2],
        beta: [u32; 2],
        y_split: u32,
    }
}
shader! { static MATMUL: Params = "matmul.wgsl", Acc::ALL }
/// Multiplications of products whose depth is a constant of a kernel.
const LARGE: usize = 1 << 33;
/// The operands that it reads by four elements at once too.
const FOURS: [&str; 2] = ["a", "b"];
shader! {
    static MATMUL_COOPERATIVE: Params = "matmul_cooperative.wgsl", Acc::FLOAT;
    tail crate::gpu::cooperative::tests::types(&FOURS).as_str()
}

/// `y = alpha * a @ b + beta * c` for `a` [B, M, K], `b` [B, K, N], `c` and `y` [B, M, N], with
/// stride 0 where something broadcasts. Half types accumulate in float32. Deterministic. `sums`
/// gets the sums of the rows of `a`, of one batch, all of them float32.
pub fn matmul(
    gpu: &Gpu,
    a: &Tensor,
    b: &Tensor,
    c: Option<(&Tensor, f64)>,
    alpha: f64,
    y: &Tensor,
    sums: Option<&Tensor>,
) -> Result<()> {
    let sizes = [y.size(0), y.size(1), y.size(2)];
    part_of(gpu, sizes, [a, b], c, alpha, (y, sums))
}

/// [`matmul`] that is part of a product of these batches, rows and columns, which say whether there is enough
/// to do without parts of k.
pub(super) fn part_of(
    gpu: &Gpu,
    [of_batches, of_m, of_n]: [usize; 3],
    [a, b]: [&Tensor; 2],
    c: Option<(&Tensor, f64)>,
    alpha: f64,
    (y, sums): (&Tensor, Option<&Tensor>),
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    let (batches, m, n, k) = (y.size(0), y.size(1), y.size(2), a.size(2));
    let acc = Acc::of(y.dtype())?;
    let (mut splits, mut part) = tile::parts(of_m, of_n, k, of_batches);
    // As many parts as a binding has room for, where that matters.
    let each = (y.numel() * acc.dtype().size()) as u64;
    let room = (gpu.info().max_binding / each) as usize;
    if splits > room.max(1) {
        (splits, part) = tile::in_parts(k, room);
    }
    let product = Product {
        acc,
        splits,
        part,
        a,
        b,
        c,
        alpha,
        y,
        sums,
    };
    if splits == 1 {
        return product.run(gpu);
    }
    gpu.require(acc, "matmul")?;
    let shape = [batches, m, n];
    let partial = Tensor::empty(&[splits, batches, m, n], acc.dtype(), y.device())?;
    let first = partial.alias(Layout::contiguous(&shape));
    let more = |_: &Tensor| Tensor::empty(&[splits, m], DType::F32, y.device());
    let parts = sums.map(more).transpose()?;
    let product = Product {
        y: &first,
        sums: parts.as_ref(),
        ..product
    };
    product.run(gpu)?;
    let sum = |from: &Tensor, to: &Tensor| {
        let (from, to) = (whole(from)?, whole(to)?);
        reduce(gpu, Combine::Sum, Map::Keep, 1.0, from, [0].into(), to)
    };
    if let (Some(from), Some(to)) = (&parts, sums) {
        sum(from, to)?;
    }
    if y.is_contiguous() {
        return sum(&partial, y);
    }
    let total = Tensor::empty(&shape, acc.dtype(), y.device())?;
    sum(&partial, &total)?;
    copy::copy(gpu, whole(&total)?, whole(y)?)
}

/// What one dispatch makes: a product, or the `splits` parts of one, each of `part` along k, of which
/// `y` is the first.
#[derive(Clone, Copy)]
struct Product<'a> {
    acc: Acc,
    splits: usize,
    part: usize,
    a: &'a Tensor,
    b: &'a Tensor,
    c: Option<(&'a Tensor, f64)>,
    alpha: f64,
    y: &'a Tensor,
    sums: Option<&'a Tensor>,
}

impl Product<'_> {
    fn run(&self, gpu: &Gpu) -> Result<()> {
        match self.cooperation(gpu)? {
            Some(way) => self.cooperative(gpu, way),
            None => self.tiles(gpu, self.tile(gpu)?),
        }
    }

    /// Batches, rows and columns.
    fn sizes(&self) -> [usize; 3] {
        [self.y.size(0), self.y.size(1), self.y.size(2)]
    }

    /// What products of a kind have in common.
    fn kind(&self, gpu: &Gpu) -> impl Hash {
        let [batches, m, n] = self.sizes();
        let dtypes = [self.a.dtype(), self.b.dtype(), self.y.dtype()];
        let sizes = [m, n, self.part, batches * self.splits].map(tune::bucket);
        let (plus, sums) = (self.c.is_some(), self.sums.is_some());
        (dtypes, along(gpu, self.a, self.b), plus, sums, sizes)
    }

    /// Whether all that is read is there again for the next one.
    fn is_repeatable(&self) -> bool {
        let read = [Some(self.a), Some(self.b), self.c.map(|c| c.0)];
        !(read.iter().flatten()).any(|x| x.storage().same(self.y.storage()))
    }

    fn tile(&self, gpu: &Gpu) -> Result<Tile> {
        let [batches, m, n] = self.sizes();
        let rule = Tile::of(gpu, self.acc, m, n, batches * self.splits);
        if self.acc != Acc::F32 || !self.is_repeatable() {
            return Ok(rule);
        }
        let kind = ("matmul", self.kind(gpu));
        tune::pick(gpu, kind, rule, &tile::TILES, |tile| self.tiles(gpu, tile))
    }

    fn factors(&self) -> Option<Factors> {
        // Sums of parts come from the tiles alone.
        let sums = self.sums.is_none() || self.splits == 1;
        factors(self.a, self.b, self.y).filter(|_| sums)
    }

    /// The way by cooperative matrices that is quicker than the tile, if there is one.
    fn cooperation(&self, gpu: &Gpu) -> Result<Option<Cooperative>> {
        let factors = self.factors();
        let ways = match gpu.ways(factors) {
            Ways::One(way) => return Ok(way),
            Ways::Tried(ways) => ways,
        };
        let ([batches, m, n], Some(factors)) = (self.sizes(), factors) else {
            return Ok(None);
        };
        if m.min(n).min(self.part) < WORTH || !self.is_repeatable() {
            return Ok(None);
        }
        let plain = self.tile(gpu)?;
        let run = |way: Option<Cooperative>| match way {
            Some(way) => self.cooperative(gpu, way),
            None => self.tiles(gpu, plain),
        };
        // Rows of the last matrix.
        let rows = (SAMPLE / n).clamp(1, m) as i64;
        let last = self.y.layout().narrow(0, batches as i64 - 1, 1)?;
        let some = self.y.alias(last.narrow(1, m as i64 - rows, rows)?);
        let error = error(factors, self.y.dtype());
        gpu.try_ways((factors, self.kind(gpu)), &ways, error, run, || {
            sample(&some)
        })
    }

    /// How often an element of each operand is read, by each column or row of small tiles, and how many an
    /// invocation reads, whatever tile is taken.
    fn reads(&self) -> [(usize, usize); 2] {
        let [batches, m, n] = self.sizes();
        let again = |t: &Tensor| match t.layout().strides[0] {
            0 => batches,
            _ => 1,
        };
        let times = |t, side: usize| again(t) * side.div_ceil(tile::SMALL.m);
        [(self.a, n), (self.b, m)].map(|(t, side)| (times(t, side), 2 * self.part))
    }

    fn params(&self, (tile_m, tile_n): (usize, usize)) -> Result<(Params, usize)> {
        let [batches, m, n] = self.sizes();
        ensure!(
            self.splits * batches * m * n <= u32::MAX as usize,
            NoKernel,
            "wgpu: matmul: a result of {} elements",
            batches * m * n
        );
        let (tiles_m, tiles_n) = (m.div_ceil(tile_m), n.div_ceil(tile_n));
        let (plus, beta) = self.plus();
        let p = Params {
            m: m as u32,
            n: n as u32,
            k: self.a.size(2) as u32,
            batches: batches as u32,
            splits: self.splits as u32,
            part: self.part as u32,
            tiles_m: tiles_m as u32,
            tiles_n: tiles_n as u32,
            a: places(self.a),
            b: places(self.b),
            c: places(plus),
            y: places(self.y),
            alpha: self.acc.words(self.alpha),
            beta: self.acc.words(beta),
            y_split: (batches * m * n) as u32,
        };
        Ok((p, tiles_m * tiles_n * batches * self.splits))
    }

    /// c is bound in any case; without it any tensor that is only read will do.
    fn plus(&self) -> (&Tensor, f64) {
        self.c.unwrap_or((self.a, 0.0))
    }

    fn tiles(&self, gpu: &Gpu, tile: Tile) -> Result<()> {
        let (p, groups) = self.params((tile.m, tile.n))?;
        let [a_along_k, b_along_k] = along(gpu, self.a, self.b);
        // Parts lie one behind the other.
        let all = [self.splits * self.y.numel()];
        let result = match whole(self.y)? {
            one if self.splits == 1 => one,
            first => View {
                shape: &all,
                strides: &[1],
                ..first
            },
        };
        let [a_reads, b_reads] = self.reads();
        tile.set(gpu, self.acc, 0, MATMUL.launch(self.acc))
            .set("HAS_C", self.c.is_some())
            .set("A_ALONG_K", a_along_k)
            .set("B_ALONG_K", b_along_k)
            .set("SUMS", self.sums.is_some())
            .set("PAIRS", transfer::lies_in_pairs(self.y))
            .writes("Y", self.y)
            .writes_words(self.sums.unwrap_or(self.y))
            .reads("A", self.a)
            .reads("B", self.b)
            .reads_if("C", self.c.map(|c| c.0))
            .epilogue(result)
            .prologue("a", whole(self.a)?, a_reads)
            .prologue("b", whole(self.b)?, b_reads)
            .groups(gpu, &p, groups)
    }

    fn cooperative(&self, gpu: &Gpu, way: Cooperative) -> Result<()> {
        let (p, groups) = self.params(way.extent())?;
        let [a_along_k, b_along_k] = along(gpu, self.a, self.b);
        if let Some(sums) = self.sums {
            let (a, sums) = (whole(self.a)?, whole(sums)?);
            reduce(gpu, Combine::Sum, Map::Keep, 1.0, a, [2].into(), sums)?;
        }
        let (tops_a, tops_b) = match way.is_scaled() {
            true => (
                tops(gpu, self.a, [2].into())?,
                tops(gpu, self.b, [1].into())?,
            ),
            false => (self.a.clone(), self.b.clone()),
        };
        let types = way.types(&FOURS);
        let (m, n) = way.extent();
        let k = self.a.size(2);
        let steps = [k, self.part.min(k)]
            .iter()
            .all(|k| k.is_multiple_of(way.depth()));
        let exact = steps && self.a.size(1).is_multiple_of(m) && self.b.size(2).is_multiple_of(n);
        // A loop of so many steps as the text says is a tenth quicker on an H200: large products have a kernel for theirs.
        let large =
            exact && self.splits == 1 && self.sizes().iter().product::<usize>() * k >= LARGE;
        let result = (self.splits == 1).then(|| whole(self.y)).transpose()?;
        way.set(&types, MATMUL_COOPERATIVE.launch(self.acc))
            .set("HAS_C", self.c.is_some())
            .set("EXACT", exact)
            .set("DEEP", if large { k as u32 } else { 0 })
            .set("A_ALONG_K", a_along_k)
            .set("B_ALONG_K", b_along_k)
            .set(
                "FOURS_A",
                lies_in_fours(self.a, if a_along_k { 2 } else { 1 }),
            )
            .set(
                "FOURS_B",
                lies_in_fours(self.b, if b_along_k { 1 } else { 2 }),
            )
            .set("PAIRS", transfer::lies_in_pairs(self.y))
            .writes("Y", self.y)
            .reads_words(self.a)
            .reads_words(self.b)
            .reads("PLUS", self.plus().0)
            .reads_words(&tops_a)
            .reads_words(&tops_b)
            .reads_words(self.a)
            .reads_words(self.b)
            .epilogue(result)
            .groups(gpu, &p, groups)
    }
}

/// Whether the operands are read along k. In software the order of reads matters less than kernels
/// that are compiled once.
fn along(gpu: &Gpu, a: &Tensor, b: &Tensor) -> [bool; 2] {
    if gpu.info().software {
        return [true, false];
    }
    let (sa, sb) = (&a.layout().strides, &b.layout().strides);
    [sa[1] != 1 || sa[2] == 1, sb[2] != 1 && sb[1] == 1]
}

/// Whether lines of a stack of matrices along `dim` can be read by four elements at once.
fn lies_in_fours(t: &Tensor, dim: usize) -> bool {
    let mut strides = t.layout().strides.clone();
    let one = std::mem::replace(&mut strides[dim], 0) == 1;
    let places = strides.iter().copied().chain([t.offset() as _]);
    one && places.into_iter().all(|s| s % 4 == 0)
}

/// Offset and strides of a stack of matrices.
fn places(t: &Tensor) -> [u32; 4] {
    let s = &t.layout().strides;
    [t.offset() as u32, s[0] as u32, s[1] as u32, s[2] as u32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::cooperative;
    use crate::gpu::testing::{close, gpu, noise};
    use crate::gpu::tile::{STEP, TILES};
    use crate::transfer::tests::{fresh, get, put};

    fn product<'a>(a: &'a Tensor, b: &'a Tensor, y: &'a Tensor) -> Product<'a> {
        Product {
            acc: Acc::F32,
            splits: 1,
            part: a.size(2).next_multiple_of(STEP),
            a,
            b,
            c: None,
            alpha: 1.0,
            y,
            sums: None,
        }
    }

    #[test]
    fn texts_of_cooperative_matrices_are_valid() {
        for (info, dtype, terms) in cooperative::tests::cases() {
            let factors = Factors { dtype, terms };
            let all = Cooperative::ways(&info, factors);
            assert!(!all.is_empty());
            for (i, way) in all.iter().enumerate() {
                let types = way.types(&FOURS);
                let launch = way.set(&types, MATMUL_COOPERATIVE.launch(Acc::F32));
                let half = i % 2 == 1;
                launch
                    .set("Y", if half { dtype } else { DType::F32 } as u32)
                    .set("PLUS", dtype as u32)
                    .set("HAS_C", half)
                    .set("A_ALONG_K", i % 4 < 2)
                    .set("B_ALONG_K", i % 8 < 4)
                    .set("FOURS_A", i % 3 == 0)
                    .set("FOURS_B", i % 3 == 0)
                    .set("PAIRS", half && dtype.size() == 2)
                    .set("EXACT", half)
                    .set("DEEP", i as u32 % 5 * 256)
                    .check();
            }
        }
    }

    /// Whatever the size of its subgroups is beside the one that a kernel expects.
    #[test]
    fn cooperative_matrices_match_the_host() {
        let Some((_turn, gpu)) = gpu() else { return };
        let subgroups = gpu.info().subgroups;
        let sizes = [subgroups[0] / 2, subgroups[0], 2 * subgroups[1]];
        let (batches, m, n, k) = (2, 150, 70, 90);
        let (x, w) = (noise(batches * m * k, 8), noise(batches * k * n, 9));
        let mut tried = 0;
        for (dtype, terms, error) in [
            (DType::F16, 1, 1e-6),
            (DType::BF16, 1, 1e-6),
            (DType::F32, 1, 1e-3),
            (DType::F32, 2, 1e-6),
        ] {
            let short = |v: &[f32]| -> Vec<f32> {
                let t = Tensor::from_slice(v, &[v.len()], DType::F32).unwrap();
                let t = t
                    .prepared(dtype)
                    .and_then(|t| t.prepared(DType::F32))
                    .unwrap();
                // SAFETY: a prepared tensor is contiguous, and of this type.
                unsafe { t.slice::<f32>() }.to_vec()
            };
            let (x, w) = (short(&x), short(&w));
            let on = |v: &[f32], shape: [usize; 3]| {
                let t = Tensor::from_slice(v, &shape, DType::F32).unwrap();
                t.prepared(dtype).unwrap().to_device(gpu.device()).unwrap()
            };
            let (a, b) = (on(&x, [batches, m, k]), on(&w, [batches, k, n]));
            let at = |b: usize, i: usize, j: usize| -> f64 {
                let term = |e| x[(b * m + i) * k + e] as f64 * w[(b * k + e) * n + j] as f64;
                (0..k).map(term).sum()
            };
            let rows = (0..batches * m).flat_map(|r| (0..n).map(move |j| (r / m, r % m, j)));
            let want: Vec<f64> = rows.map(|(b, i, j)| at(b, i, j)).collect();
            for size in sizes {
                let mut info = gpu.info().clone();
                info.subgroups = [size; 2];
                for way in Cooperative::ways(&info, Factors { dtype, terms }) {
                    let y = fresh(&[batches, m, n], DType::F32);
                    product(&a, &b, &y).cooperative(gpu, way).unwrap();
                    close(&get(&y), &want, error * (k as f64).sqrt());
                    tried += 1;
                }
            }
        }
        eprintln!("{tried} ways on {}", gpu.info().name);
    }

    #[test]
    fn every_tile_gives_the_same_bits() {
        let Some((_turn, gpu)) = gpu() else { return };
        let (m, n, k) = (130, 70, 90);
        let a = put(&[1, m, k], DType::F32, &noise(m * k, 8));
        let b = put(&[1, k, n], DType::F32, &noise(k * n, 9));
        let found = TILES.map(|tile| {
            let (y, s) = (fresh(&[1, m, n], DType::F32), fresh(&[1, m], DType::F32));
            let product = Product {
                sums: Some(&s),
                ..product(&a, &b, &y)
            };
            product.tiles(gpu, tile).unwrap();
            let bits = |t: &Tensor| -> Vec<u32> { get(t) };
            (bits(&y), bits(&s))
        });
        assert!(found.iter().all(|f| *f == found[0]));
    }

    #[test]
    fn matmul_sizes_and_strides_match_the_host() {
        let Some((_turn, gpu)) = gpu() else { return };
        for (b, m, n, k) in [
            (1, 1, 1, 1),
            (2, 5, 7, 33),
            (1, 70, 65, 40),
            (1, 3, 2, 20_000),
        ] {
            let (x, w) = (noise(b * m * k, 5), noise(b * k * n, 6));
            let tx = put(&[b, m, k], DType::F32, &x);
            let tw = put(&[b, n, k], DType::F32, &w);
            let vw = tw.alias(Layout::contiguous(&[b, n, k]).transpose(1, 2).unwrap());
            let y = fresh(&[b, m, n], DType::F32);
            let c = put(&[n], DType::F32, &noise(n, 7));
            let vc = c.alias(c.layout().expand_to(&[b, m, n]));
            matmul(gpu, &tx, &vw, Some((&vc, 3.0)), 0.5, &y, None).unwrap();
            let c = noise(n, 7);
            let mut want = vec![];
            for i in 0..b {
                for r in 0..m {
                    for q in 0..n {
                        let dot: f64 = (0..k)
                            .map(|e| x[(i * m + r) * k + e] as f64 * w[(i * n + q) * k + e] as f64)
                            .sum();
                        want.push(0.5 * dot + 3.0 * c[q] as f64);
                    }
                }
            }
            close(&get(&y), &want, 2e-5);
        }
    }
}
