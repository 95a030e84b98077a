//! Batched matrix products over any strides.

use super::pointwise::pointwise;
use super::reduce::{reduce, Combine, Map};
use super::{copy, format, require, Params, Scratch, View};
use crate::ensure;
use crate::error::Result;
use crate::gpu::{Acc, Gpu, Kernel};

/// Elements of k that one invocation walks at most: about 1.6 loop iterations each, of the 65,535
/// that software Vulkan allows.
const MAX_DEPTH: usize = 16_384;
/// Workgroups below which k is split, and the smallest part worth a split.
const ENOUGH: usize = 128;
const MIN_PART: usize = 256;

/// `y = alpha * a @ b + beta * c` for `a` [B, M, K], `b` [B, K, N], `c` and `y` [B, M, N], with
/// stride 0 where something broadcasts. Half types accumulate in float32. Deterministic.
pub fn matmul(
    gpu: &Gpu,
    a: View,
    b: View,
    c: Option<(View, f64)>,
    alpha: f64,
    y: View,
) -> Result<()> {
    let (batches, m, n, k) = (y.shape[0], y.shape[1], y.shape[2], a.shape[2]);
    if y.numel() == 0 {
        return Ok(());
    }
    let acc = Acc::of(y.dtype)?;
    require(gpu, acc, "matmul")?;
    let wg = if m >= 64 && n >= 64 { 16 } else { 8 };
    let tile = 4 * wg;
    let (tiles_m, tiles_n) = (m.div_ceil(tile), n.div_ceil(tile));
    let groups = tiles_m * tiles_n * batches;
    let wanted = ENOUGH.div_ceil(groups).min(k / MIN_PART).max(1);
    let splits = wanted.max(k.div_ceil(MAX_DEPTH)).max(1);
    let part = k.div_ceil(splits).next_multiple_of(16).max(16);
    let splits = k.div_ceil(part).max(1);

    if splits > 1 {
        let partial = Scratch::new(gpu, &[splits, batches, m, n], acc.dtype())?;
        let shape = [batches, m, n];
        let strides = [(m * n) as isize, n as isize, 1];
        let first = View {
            shape: &shape,
            strides: &strides,
            ..partial.view()
        };
        tiles(gpu, acc, wg, (splits, part), a, b, None, alpha, first)?;
        if c.is_none() && y.is_contiguous() {
            return reduce(gpu, Combine::Sum, Map::Keep, 1.0, partial.view(), 1, y);
        }
        let sum = Scratch::new(gpu, &shape, acc.dtype())?;
        reduce(
            gpu,
            Combine::Sum,
            Map::Keep,
            1.0,
            partial.view(),
            1,
            sum.view(),
        )?;
        return match c {
            None => copy::copy(gpu, sum.view(), y),
            Some((c, beta)) => {
                let body = "fn op(a: Acc, b: Acc) -> Acc { return a + scalar(0u) * b; }\n";
                pointwise(gpu, acc, body, &[sum.view(), c], y, &[acc.words(beta)])
            }
        };
    }
    tiles(gpu, acc, wg, (1, part), a, b, c, alpha, y)
}

fn tiles(
    gpu: &Gpu,
    acc: Acc,
    wg: usize,
    (splits, part): (usize, usize),
    a: View,
    b: View,
    c: Option<(View, f64)>,
    alpha: f64,
    y: View,
) -> Result<()> {
    let (batches, m, n, k) = (y.shape[0], y.shape[1], y.shape[2], a.shape[2]);
    let tile = 4 * wg;
    let (tiles_m, tiles_n) = (m.div_ceil(tile), n.div_ceil(tile));
    let mut p: Params = [m, n, k, batches, splits, part, tiles_m, tiles_n]
        .iter()
        .map(|&v| v as u32)
        .collect();
    let (c_view, beta) = c.unwrap_or((y, 0.0));
    for v in [a, b, c_view, y] {
        p.push(v.offset as u32);
        p.extend(v.strides.iter().map(|&s| s as u32));
    }
    p.extend(acc.words(alpha));
    p.extend(acc.words(beta));
    p.extend([(batches * m * n) as u32, 0, 0, 0]);
    ensure!(
        splits * batches * m * n <= u32::MAX as usize,
        NotImplemented,
        "wgpu: matmul: a result of {} elements",
        batches * m * n
    );
    let constants = [
        ("A", format(a.dtype)),
        ("B", format(b.dtype)),
        ("C", format(c_view.dtype)),
        ("Y", format(y.dtype)),
        ("HAS_C", c.is_some() as u32),
        ("A_ALONG_K", (a.strides[1] != 1 || a.strides[2] == 1) as u32),
        ("B_ALONG_K", (b.strides[2] != 1 && b.strides[1] == 1) as u32),
        ("WG", wg as u32),
        ("TILE", tile as u32),
        ("SHARED", 16 * tile as u32),
    ];
    let kernel = Kernel {
        file: "matmul",
        entry: "main",
        acc,
        constants: &constants,
        tail: [""; 2],
        writes: 1,
        reads: 3,
    };
    // c is bound in any case; without it any buffer that is only read will do.
    let c_buffer = c.map_or(a.buffer, |(c, _)| c.buffer);
    let grid = gpu.grid(tiles_m * tiles_n * batches * splits)?;
    gpu.dispatch(&kernel, &[y.buffer, a.buffer, b.buffer, c_buffer], &p, grid)
}
