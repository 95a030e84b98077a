//! Reading and writing along one dimension.

use crate::ensure;
use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::geometry::coalesce;
use crate::gpu::launch::bits;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::index::gpu::{most_rows, offsets_or, put, take, Around, Axis};
use crate::ops::index::runs::{self, MODES};
use crate::ops::index::Mode;
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{as_type, check_contiguous, dense, windowed};
use smallvec::SmallVec;

/// Source positions that one dispatch looks at: below software Vulkan's 65,535 loop iterations.
const WINDOW: usize = 32_768;
/// Elements and places to compare from which on sorting is quicker.
const COMPARED: usize = 1 << 26;

params! {
    struct GatherParams {
        n: u32,
        x_offset: u32,
        y_offset: u32,
        i_offset: u32,
        size: u32,
        stride: u32,
        who: u32,
        dispatch: u32,
        dim_size: [u32; 8],
        strides: [[u32; 4]; 8],
    }
}
params! {
    struct ScatterParams {
        n: u32,
        size: u32,
        begin: u32,
        end: u32,
        y_offset: u32,
        v_offset: u32,
        i_offset: u32,
        y_stride: u32,
        v_stride: u32,
        i_stride: u32,
        who: u32,
        dispatch: u32,
        dim_size: [u32; 8],
        strides: [[u32; 4]; 8],
    }
}
shader! { static GATHER: GatherParams = "gather.wgsl", Acc::WORDS }
shader! { static SCATTER: ScatterParams = "scatter.wgsl", Acc::ALL, numbers MODES }

/// `y[i][j][k] = x[i][index[i][j][k]][k]` for `dim` 1, and alike. `y` is contiguous with the shape
/// of `index`. An index out of range is reported at the next read.
pub fn gather(gpu: &Gpu, x: &Tensor, dim: usize, index: &Tensor, y: &Tensor) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("gather", &[y])?;
    if is_line(x, dim) && windowed(gpu, x).is_none() {
        let index = dense(gpu, index)?;
        let axis = [axis(x, dim, &index)];
        let offsets = offsets_or(gpu, &axis, None, false, Kind::Runtime)?;
        return take(gpu, x, Around::of(x.layout(), dim), &offsets, y);
    }
    let (dtype, parts) = bits(x.dtype());
    let k = parts as isize;
    let strides = &x.layout().strides;
    let mut x_strides: SmallVec<[isize; 8]> = strides.iter().map(|s| s * k).collect();
    x_strides[dim] = 0;
    x_strides.push(1);
    let shape: SmallVec<[usize; 8]> = index.shape().iter().copied().chain([parts]).collect();
    let mut i_strides: SmallVec<[isize; 8]> = SmallVec::from_slice(&index.layout().strides);
    i_strides.push(0);
    let dims = coalesce(&shape, [&x_strides, &i_strides], |_| true);
    check_dims("gather", dims.sizes.len())?;
    check_size(Kind::Runtime, x.size(dim))?;
    let fault = gpu.index_fault(Kind::Runtime)?;
    let [who, dispatch] = fault.words;
    let n = y.numel() * parts;
    let p = GatherParams {
        n: n as u32,
        x_offset: (x.offset() * parts) as u32,
        y_offset: (y.offset() * parts) as u32,
        i_offset: index.offset() as u32,
        size: x.size(dim) as u32,
        stride: (strides[dim] * k) as u32,
        who,
        dispatch,
        dim_size: dims.words(),
        strides: dims.stride_vectors(),
    };
    GATHER
        .launch(Acc::I32)
        .set("DIMS", dims.sizes.len() as u32)
        .writes("Y", as_type(y, dtype))
        .writes_words(fault.buffer)
        .reads("X", as_type(x, dtype))
        .reads("I", index)
        .each(gpu, &p, y.offset() * parts, n)
}

/// Writes into `y` in place: `y[i][index[i][j][k]][k] = meet(old, v[i][j][k])` for `dim` 1, and
/// alike. `v` covers the shape of `index` (stride 0 for a number). Elements meet in order of
/// `j`, so the result is always the same; the cost is the length of `y` times that of `index`, and
/// where they are many, that of sorting them.
pub fn scatter(
    gpu: &Gpu,
    meet: Mode,
    y: &Tensor,
    dim: usize,
    index: &Tensor,
    v: &Tensor,
) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let (all, length) = (index.numel() * y.size(dim), index.size(dim));
    let room = most_rows(gpu, y.dtype().size());
    let is_large = length > room || [y, index, v].iter().any(|t| windowed(gpu, t).is_none());
    if is_line(y, dim) && is_large {
        return scatter_line(gpu, meet, y, dim, index, v);
    }
    if length >= runs::MANY || all >= COMPARED {
        return scatter_sorted(gpu, meet, y, dim, index, v);
    }
    let acc = Acc::of(y.dtype())?;
    let strides = [y, v, index].map(|t| &t.layout().strides[..]);
    let dims = coalesce(index.shape(), strides, |d| d != dim);
    check_dims("scatter", dims.sizes.len())?;
    let others: usize = dims.sizes.iter().product();
    let n = others * y.size(dim);
    check_size(Kind::Runtime, y.size(dim))?;
    for begin in (0..length).step_by(WINDOW) {
        let fault = gpu.index_fault(Kind::Runtime)?;
        let [who, dispatch] = fault.words;
        let p = ScatterParams {
            n: n as u32,
            size: y.size(dim) as u32,
            begin: begin as u32,
            end: (begin + WINDOW).min(length) as u32,
            y_offset: y.offset() as u32,
            v_offset: v.offset() as u32,
            i_offset: index.offset() as u32,
            y_stride: strides[0][dim] as u32,
            v_stride: strides[1][dim] as u32,
            i_stride: strides[2][dim] as u32,
            who,
            dispatch,
            dim_size: dims.words(),
            strides: dims.stride_vectors(),
        };
        SCATTER
            .launch(acc)
            .set("OP", meet as u32)
            .set("DIMS", dims.sizes.len() as u32)
            .writes("Y", y)
            .writes_words(fault.buffer)
            .reads("V", v)
            .reads("I", index)
            .threads(gpu, &p, n)?;
    }
    Ok(())
}

/// Whether a tensor is one line along a dimension.
fn is_line(x: &Tensor, dim: usize) -> bool {
    x.numel() == x.size(dim)
}

fn axis<'a>(x: &Tensor, dim: usize, index: &'a Tensor) -> Axis<'a> {
    Axis {
        index,
        size: x.size(dim),
        stride: x.layout().strides[dim],
    }
}

/// [`scatter`] on a line that may be larger than a binding.
fn scatter_line(
    gpu: &Gpu,
    meet: Mode,
    y: &Tensor,
    dim: usize,
    index: &Tensor,
    v: &Tensor,
) -> Result<()> {
    let (index, v) = (dense(gpu, index)?, dense(gpu, v)?);
    let axis = [axis(y, dim, &index)];
    let offsets = offsets_or(gpu, &axis, None, false, Kind::Runtime)?;
    let around = Around::of(y.layout(), dim);
    put(gpu, y, around, &offsets, &v, (meet, 1.0))
}

/// [`scatter`] of many elements.
fn scatter_sorted(
    gpu: &Gpu,
    meet: Mode,
    y: &Tensor,
    dim: usize,
    index: &Tensor,
    v: &Tensor,
) -> Result<()> {
    let index = dense(gpu, index)?;
    let axis = Axis {
        index: &index,
        size: y.size(dim),
        stride: 1,
    };
    let words = offsets_or(gpu, &[axis], None, false, Kind::Runtime)?.words;
    let places = runs::Places {
        words: &words,
        shared: false,
        size: y.size(dim),
        stride: y.layout().strides[dim],
        others: coalesce(index.shape(), [&y.layout().strides[..]], |d| d != dim),
    };
    let one = Acc::of(y.dtype())?.words(1.0);
    runs::put(gpu, meet, &places, y, v, Span::of(index.shape(), dim), one)
}

fn check_dims(what: &str, n: usize) -> Result<()> {
    ensure!(n <= 8, NoKernel, "wgpu: {what}: {n} separate dimensions");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::gpu::testing::gpu;
    use crate::transfer::tests::{fresh, get, put};

    #[test]
    fn gather_and_scatter_int64_match_the_host() {
        let Some((_turn, gpu)) = gpu() else { return };
        let x: Vec<i64> = (0..12).map(|i| i << 33).collect();
        let tx = put(&[3, 4], DType::I64, &x);
        let index: Vec<i64> = vec![0, 3, 3, 1, 2, 2];
        let ti = put(&[3, 2], DType::I64, &index);
        let y = fresh(&[3, 2], DType::I64);
        gather(gpu, &tx, 1, &ti, &y).unwrap();
        let want: Vec<i64> = (0..6).map(|e| x[e / 2 * 4 + index[e] as usize]).collect();
        assert_eq!(get::<i64>(&y), want);
        scatter(gpu, Mode::Add, &tx, 1, &ti, &y).unwrap();
        let mut sums = x.clone();
        for e in 0..6 {
            sums[e / 2 * 4 + index[e] as usize] += want[e];
        }
        assert_eq!(get::<i64>(&tx), sums);
    }
}
