//! `gather` and `scatter` along one dimension.

use super::geometry::coalesce;
use super::{bits, format, launch, require, require_contiguous, Params, View};
use crate::ensure;
use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::{Acc, Gpu};
use smallvec::SmallVec;

/// Source positions that one dispatch looks at: below software Vulkan's 65,535 loop iterations.
const WINDOW: usize = 32_768;

/// What happens to the elements that meet; the number is the shader's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Meet {
    /// The last one wins.
    Set,
    Add,
    Multiply,
    Max,
    Min,
}

/// `y[i][j][k] = x[i][index[i][j][k]][k]` for `dim` 1, and alike. `y` is contiguous with the shape
/// of `index`. An index out of range is reported at the next read.
pub fn gather(gpu: &Gpu, x: View, dim: usize, index: View, y: View) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    require_contiguous("gather", &[y])?;
    let (dtype, parts) = bits(x.dtype);
    let k = parts as isize;
    let mut x_strides: SmallVec<[isize; 8]> = x.strides.iter().map(|s| s * k).collect();
    x_strides[dim] = 0;
    x_strides.push(1);
    let shape: SmallVec<[usize; 8]> = index.shape.iter().copied().chain([parts]).collect();
    let i_strides: SmallVec<[isize; 8]> = index.strides.iter().copied().chain([0]).collect();
    let dims = coalesce(&shape, [&x_strides, &i_strides], |_| true);
    check_dims("gather", dims.sizes.len())?;
    check_size(Kind::Runtime, x.shape[dim])?;
    let fault = gpu.index_fault(Kind::Runtime)?;
    let n = y.numel() * parts;
    let mut p: Params = smallvec::smallvec![
        n as u32,
        (x.offset * parts) as u32,
        (y.offset * parts) as u32,
        index.offset as u32,
        x.shape[dim] as u32,
        (x.strides[dim] * k) as u32,
        fault.words[0],
        fault.words[1]
    ];
    push(&mut p, dims.sizes.iter().map(|&n| n as u32));
    push(&mut p, dims.strides[0].iter().map(|&s| s as u32));
    push(&mut p, dims.strides[1].iter().map(|&s| s as u32));
    let constants = [
        ("X", format(dtype)),
        ("Y", format(dtype)),
        ("I", format(index.dtype)),
        ("DIMS", dims.sizes.len() as u32),
    ];
    let written = [y.buffer, fault.buffer];
    launch(
        gpu,
        "gather",
        Acc::I32,
        &constants,
        &written,
        &[x.buffer, index.buffer],
        &p,
        n,
    )
}

/// Writes into `x` in place: `x[i][index[i][j][k]][k] = meet(old, v[i][j][k])` for `dim` 1, and
/// alike. `v` covers the shape of `index` (stride 0 for a number). Elements meet in order of
/// `j`, so the result is always the same; the cost is the length of `x` times that of `index`.
pub fn scatter(gpu: &Gpu, meet: Meet, x: View, dim: usize, index: View, v: View) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let acc = Acc::of(x.dtype)?;
    require(gpu, acc, "scatter")?;
    let dims = coalesce(index.shape, [x.strides, v.strides, index.strides], |d| {
        d != dim
    });
    check_dims("scatter", dims.sizes.len())?;
    let others: usize = dims.sizes.iter().product();
    let n = others * x.shape[dim];
    let constants = [
        ("X", format(x.dtype)),
        ("V", format(v.dtype)),
        ("I", format(index.dtype)),
        ("OP", meet as u32),
        ("DIMS", dims.sizes.len() as u32),
    ];
    let length = index.shape[dim];
    check_size(Kind::Runtime, x.shape[dim])?;
    for begin in (0..length).step_by(WINDOW) {
        let fault = gpu.index_fault(Kind::Runtime)?;
        let mut p: Params = smallvec::smallvec![
            n as u32,
            x.shape[dim] as u32,
            begin as u32,
            (begin + WINDOW).min(length) as u32,
            x.offset as u32,
            v.offset as u32,
            index.offset as u32,
            x.strides[dim] as u32,
            v.strides[dim] as u32,
            index.strides[dim] as u32,
            fault.words[0],
            fault.words[1]
        ];
        push(&mut p, dims.sizes.iter().map(|&n| n as u32));
        for strides in &dims.strides {
            push(&mut p, strides.iter().map(|&s| s as u32));
        }
        let written = [x.buffer, fault.buffer];
        launch(
            gpu,
            "scatter",
            acc,
            &constants,
            &written,
            &[v.buffer, index.buffer],
            &p,
            n,
        )?;
    }
    Ok(())
}

fn check_dims(what: &str, n: usize) -> Result<()> {
    ensure!(
        n <= 8,
        NotImplemented,
        "wgpu: {what}: {n} separate dimensions"
    );
    Ok(())
}

/// Appends eight words.
fn push(p: &mut Params, words: impl Iterator<Item = u32>) {
    let at = p.len();
    p.extend(words);
    p.resize(at + 8, 0);
}
