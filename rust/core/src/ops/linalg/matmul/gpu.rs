//! Batched matrix products over any strides.

use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::pointwise::{pointwise, MAX_INPUTS};
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::{copy, params, shader, Acc, Gpu, View};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::transfer::whole;

/// Elements of k that one invocation walks at most: about five loop iterations each, of the 65,535
/// that software Vulkan allows.
const MAX_DEPTH: usize = 8192;
/// Workgroups below which k is split, and the smallest part worth a split.
const ENOUGH: usize = 128;
const MIN_PART: usize = 256;
/// Parts of k are multiples of this, and so are the steps of every tile.
const STEP: usize = 16;

/// What a workgroup makes: rows and columns, squares of 4 x 4 of an invocation along both, and steps
/// of k at once. The choice changes no bit of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tile {
    m: usize,
    n: usize,
    squares: [usize; 2],
    depth: usize,
}

const fn tile(m: usize, n: usize, squares: [usize; 2], depth: usize) -> Tile {
    Tile {
        m,
        n,
        squares,
        depth,
    }
}
const LARGE: Tile = tile(128, 128, [2, 2], 8);
const MIDDLE: Tile = tile(64, 64, [2, 1], 16);
const SMALL: Tile = tile(32, 32, [1, 1], 8);
const FLAT: Tile = tile(8, 128, [1, 1], 16);
const TALL: Tile = tile(128, 8, [1, 1], 16);
#[cfg(test)]
const TILES: [Tile; 5] = [LARGE, MIDDLE, SMALL, FLAT, TALL];

impl Tile {
    fn groups(self, m: usize, n: usize) -> usize {
        m.div_ceil(self.m) * n.div_ceil(self.n)
    }

    /// The largest that gives the GPU enough to do.
    fn of(gpu: &Gpu, acc: Acc, m: usize, n: usize, stacks: usize) -> Tile {
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

    /// Whether the memory of a workgroup has room for two steps.
    fn buffers(self, gpu: &Gpu, acc: Acc) -> u32 {
        let line = (self.m + self.n + 8) * acc.dtype().size();
        let most = gpu.info().limits.max_compute_workgroup_storage_size as usize;
        1 + (2 * self.depth * line <= most) as u32
    }
}

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
    if y.numel() == 0 {
        return Ok(());
    }
    let (batches, m, n, k) = (y.size(0), y.size(1), y.size(2), a.size(2));
    let acc = Acc::of(y.dtype())?;
    // By the shape alone, for the number of parts changes the result.
    let side = if m >= 64 && n >= 64 { 64 } else { 32 };
    let groups = m.div_ceil(side) * n.div_ceil(side) * batches;
    let wanted = ENOUGH.div_ceil(groups).min(k / MIN_PART).max(1);
    let splits = wanted.max(k.div_ceil(MAX_DEPTH)).max(1);
    let part = k.div_ceil(splits).next_multiple_of(STEP).max(STEP);
    let splits = k.div_ceil(part).max(1);
    let tile = Tile::of(gpu, acc, m, n, batches * splits);
    let split = (splits, part);
    if splits == 1 {
        return tiles(gpu, acc, tile, split, a, b, c, alpha, y, sums);
    }
    gpu.require(acc, "matmul")?;
    let shape = [batches, m, n];
    let partial = Tensor::empty(&[splits, batches, m, n], acc.dtype(), y.device())?;
    let first = partial.alias(Layout::contiguous(&shape));
    let more = |_: &Tensor| Tensor::empty(&[splits, m], DType::F32, y.device());
    let parts = sums.map(more).transpose()?;
    tiles(
        gpu,
        acc,
        tile,
        split,
        a,
        b,
        None,
        alpha,
        &first,
        parts.as_ref(),
    )?;
    let sum = |from: &Tensor, to: &Tensor| {
        let (from, to) = (whole(from)?, whole(to)?);
        reduce(gpu, Combine::Sum, Map::Keep, 1.0, from, [0].into(), to)
    };
    if let (Some(from), Some(to)) = (&parts, sums) {
        sum(from, to)?;
    }
    if c.is_none() && y.is_contiguous() {
        return sum(&partial, y);
    }
    if let Some((c, beta)) = c.filter(|_| splits < MAX_INPUTS) {
        // A few parts are added together with what comes to them.
        let part = |s: usize| {
            partial.alias(Layout {
                offset: s * y.numel(),
                ..first.layout().clone()
            })
        };
        let parts: Vec<Tensor> = (0..splits).map(part).chain([c.clone()]).collect();
        let views: Vec<View> = parts.iter().map(whole).collect::<Result<_>>()?;
        let names: Vec<String> = (0..splits).map(|s| format!("a{s}")).collect();
        let body = format!(
            "fn op({}: Acc, c: Acc) -> Acc {{ return {} + scalar(0u) * c; }}\n",
            names.join(": Acc, "),
            names.join(" + ")
        );
        return pointwise(gpu, acc, &body, &views, whole(y)?, &[acc.words(beta)]);
    }
    let total = Tensor::empty(&shape, acc.dtype(), y.device())?;
    sum(&partial, &total)?;
    let (total, to) = (whole(&total)?, whole(y)?);
    match c {
        None => copy::copy(gpu, total, to),
        Some((c, beta)) => {
            let body = "fn op(a: Acc, b: Acc) -> Acc { return a + scalar(0u) * b; }\n";
            pointwise(gpu, acc, body, &[total, whole(c)?], to, &[acc.words(beta)])
        }
    }
}

/// Offset and strides of a stack of matrices.
fn places(t: &Tensor) -> [u32; 4] {
    let s = &t.layout().strides;
    [t.offset() as u32, s[0] as u32, s[1] as u32, s[2] as u32]
}

fn tiles(
    gpu: &Gpu,
    acc: Acc,
    tile: Tile,
    (splits, part): (usize, usize),
    a: &Tensor,
    b: &Tensor,
    c: Option<(&Tensor, f64)>,
    alpha: f64,
    y: &Tensor,
    sums: Option<&Tensor>,
) -> Result<()> {
    let (batches, m, n, k) = (y.size(0), y.size(1), y.size(2), a.size(2));
    ensure!(
        splits * batches * m * n <= u32::MAX as usize,
        NotImplemented,
        "wgpu: matmul: a result of {} elements",
        batches * m * n
    );
    let (tiles_m, tiles_n) = (m.div_ceil(tile.m), n.div_ceil(tile.n));
    // c is bound in any case; without it any tensor that is only read will do.
    let (plus, beta) = c.unwrap_or((a, 0.0));
    let p = Params {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        batches: batches as u32,
        splits: splits as u32,
        part: part as u32,
        tiles_m: tiles_m as u32,
        tiles_n: tiles_n as u32,
        a: places(a),
        b: places(b),
        c: places(plus),
        y: places(y),
        alpha: acc.words(alpha),
        beta: acc.words(beta),
        y_split: (batches * m * n) as u32,
    };
    let (sa, sb) = (&a.layout().strides, &b.layout().strides);
    let result = match splits {
        1 => Some(whole(y)?),
        _ => None,
    };
    MATMUL
        .launch(acc)
        .set("HAS_C", c.is_some())
        .set("A_ALONG_K", sa[1] != 1 || sa[2] == 1)
        .set("B_ALONG_K", sb[2] != 1 && sb[1] == 1)
        .set("BM", tile.m as u32)
        .set("BN", tile.n as u32)
        .set("RM", tile.squares[0] as u32)
        .set("RN", tile.squares[1] as u32)
        .set("DEPTH", tile.depth as u32)
        .set("BUFFERS", tile.buffers(gpu, acc))
        .set("SUMS", sums.is_some())
        .writes("Y", y)
        .writes_words(sums.unwrap_or(y))
        .reads("A", a)
        .reads("B", b)
        .reads("C", plus)
        .gives(result)
        .groups(gpu, &p, tiles_m * tiles_n * batches * splits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::{close, gpu, noise};
    use crate::transfer::tests::{fresh, get, put};

    #[test]
    fn every_tile_gives_the_same_bits() {
        let Some((_turn, gpu)) = gpu() else { return };
        let (m, n, k) = (130, 70, 90);
        let a = put(&[1, m, k], DType::F32, &noise(m * k, 8));
        let b = put(&[1, k, n], DType::F32, &noise(k * n, 9));
        let found = TILES.map(|tile| {
            let (y, s) = (fresh(&[1, m, n], DType::F32), fresh(&[1, m], DType::F32));
            let (all, sums) = ((1, k.next_multiple_of(STEP)), Some(&s));
            tiles(gpu, Acc::F32, tile, all, &a, &b, None, 1.0, &y, sums).unwrap();
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
