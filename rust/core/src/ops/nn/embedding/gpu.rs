//! Rows of float32 tables, and their sums for few numbers, in one kernel each.

use crate::dtype::DType;
use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;

params! {
    struct Params {
        n: u32,
        width: u32,
        count: u32,
        padding: u32,
        x_offset: u32,
        y_offset: u32,
        i_offset: u32,
        who: u32,
        dispatch: u32,
    }
}
/// Numbers whose rows one workgroup adds: more are sorted first.
const MOST: usize = 1024;
const NUMBERS: Numbers = &[("MOST", MOST as u32)];
shader! { static EMBEDDING: Params = "embedding.wgsl", Acc::FLOAT, numbers NUMBERS }

/// Whether the kernel takes a table and contiguous numbers.
pub fn fits(table: &Tensor, at: &Tensor) -> bool {
    table.dtype() == DType::F32
        && table.is_contiguous()
        && table.ndim() > 1
        && matches!(at.dtype(), DType::I64 | DType::I32)
        && at.is_contiguous()
        && (at.numel() * table.size(1)) < u32::MAX as usize
}

/// As [`fits`], for sums of the rows of `g` into the table `y`.
pub fn sums_fit(g: &Tensor, at: &Tensor, y: &Tensor) -> bool {
    fits(y, at) && g.dtype() == DType::F32 && g.is_contiguous() && at.numel() <= MOST
}

fn block(at: &Tensor, table: &Tensor, x: &Tensor, y: &Tensor) -> Params {
    Params {
        n: at.numel() as u32,
        width: table.shape()[1..].iter().product::<usize>() as u32,
        count: table.size(0) as u32,
        padding: table.size(0) as u32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        i_offset: at.offset() as u32,
        who: 0,
        dispatch: 0,
    }
}

/// The rows of `table` that `at` numbers.
pub fn rows(gpu: &Gpu, table: &Tensor, at: &Tensor, y: &Tensor) -> Result<()> {
    check_size(Kind::Index, table.size(0))?;
    let fault = gpu.index_fault(Kind::Index)?;
    let [who, dispatch] = fault.words;
    let p = Params {
        who,
        dispatch,
        ..block(at, table, table, y)
    };
    EMBEDDING
        .launch(Acc::F32)
        .writes_words(y)
        .writes_words(fault.buffer)
        .reads_words(table)
        .reads("I", at)
        .threads(gpu, &p, y.numel())
}

/// The table `y` of the sums of the rows of `g`, each in the row that `at` numbers.
pub fn sums(gpu: &Gpu, g: &Tensor, at: &Tensor, padding: Option<i64>, y: &Tensor) -> Result<()> {
    let fault = gpu.index_fault(Kind::Index)?;
    let mut p = block(at, y, g, y);
    p.padding = padding.map_or(p.count, |row| row as u32);
    EMBEDDING
        .launch(Acc::F32)
        .entry("sums")
        .writes_words(y)
        .writes_words(fault.buffer)
        .reads_words(g)
        .reads("I", at)
        .groups(gpu, &p, y.size(0))
}
