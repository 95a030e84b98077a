//! Batched matrix products over any strides.

use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::reduce::{reduce, Combine, Map};
use crate::gpu::tile::{self, Tile};
use crate::gpu::tune;
use crate::gpu::{copy, params, shader, Acc, Gpu};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::transfer::whole;

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
    let (splits, part) = tile::parts(m, n, k, batches);
    let split = (splits, part);
    if splits == 1 {
        let tile = chosen(gpu, acc, split, a, b, c, alpha, y, sums)?;
        return tiles(gpu, acc, tile, split, a, b, c, alpha, y, sums);
    }
    gpu.require(acc, "matmul")?;
    let shape = [batches, m, n];
    let partial = Tensor::empty(&[splits, batches, m, n], acc.dtype(), y.device())?;
    let first = partial.alias(Layout::contiguous(&shape));
    let more = |_: &Tensor| Tensor::empty(&[splits, m], DType::F32, y.device());
    let parts = sums.map(more).transpose()?;
    let sums_of = parts.as_ref();
    let tile = chosen(gpu, acc, split, a, b, c, alpha, &first, sums_of)?;
    tiles(gpu, acc, tile, split, a, b, c, alpha, &first, sums_of)?;
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

/// The tile of a product whose parts are made by [`tiles`].
fn chosen(
    gpu: &Gpu,
    acc: Acc,
    (splits, part): (usize, usize),
    a: &Tensor,
    b: &Tensor,
    c: Option<(&Tensor, f64)>,
    alpha: f64,
    y: &Tensor,
    sums: Option<&Tensor>,
) -> Result<Tile> {
    let (batches, m, n) = (y.size(0), y.size(1), y.size(2));
    let rule = Tile::of(gpu, acc, m, n, batches * splits);
    // What is read must be there again for the next one.
    let plus = c;
    let c = plus.map(|c| c.0);
    let again = ![Some(a), Some(b), c]
        .into_iter()
        .flatten()
        .any(|x| x.storage().same(y.storage()));
    if acc != Acc::F32 || !again {
        return Ok(rule);
    }
    let dtypes = [a.dtype(), b.dtype(), y.dtype()];
    let along = along(gpu, a, b);
    let sizes = [m, n, part, batches * splits].map(tune::bucket);
    let kind = ("matmul", dtypes, along, c.is_some(), sums.is_some(), sizes);
    tune::pick(gpu, kind, rule, &tile::TILES, |tile| {
        tiles(gpu, acc, tile, (splits, part), a, b, plus, alpha, y, sums)
    })
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
    let [a_along_k, b_along_k] = along(gpu, a, b);
    let result = match splits {
        1 => Some(whole(y)?),
        _ => None,
    };
    tile.set(gpu, acc, 0, MATMUL.launch(acc))
        .set("HAS_C", c.is_some())
        .set("A_ALONG_K", a_along_k)
        .set("B_ALONG_K", b_along_k)
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
    use crate::gpu::tile::{STEP, TILES};
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
