//! Reading and writing through index tensors. Every form is the same two steps: turn the index
//! tensors into element offsets, then take from or put at them.

use super::geometry::{coalesce, Dims};
use super::{bits, format, launch, require, require_contiguous, Params, Scratch, View};
use crate::dtype::DType;
use crate::ensure;
use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::{Acc, Gpu};
use smallvec::SmallVec;

/// Index entries between which duplicates are looked for in one pass: each invocation scans the
/// window, far below the 65,535 loop iterations of software Vulkan.
const WINDOW: usize = 16_384;

/// One index tensor and the dimension of the indexed tensor that it runs over.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// Contiguous int64 or int32.
    pub index: View<'a>,
    pub size: usize,
    pub stride: isize,
}

/// Offsets of the elements that index tensors point at.
pub struct Offsets {
    words: Scratch,
    n: usize,
}

/// The offsets of `axes`, whose index tensors have `n` entries each. Entries equal to `skip`
/// (embedding's `padding_idx`) are left out of later steps. Negative entries count from the end
/// where `wraps`.
pub fn offsets(gpu: &Gpu, axes: &[Axis], skip: Option<i64>, wraps: bool) -> Result<Offsets> {
    let n = axes[0].index.numel();
    let words = Scratch::new(gpu, &[n], DType::I32)?;
    if n == 0 {
        return Ok(Offsets { words, n });
    }
    for (k, axis) in axes.iter().enumerate() {
        require_contiguous("index", &[axis.index])?;
        check_size(Kind::Index, axis.size)?;
        let fault = gpu.index_fault(Kind::Index)?;
        let p = [
            n as u32,
            axis.index.offset as u32,
            axis.size as u32,
            axis.stride as u32,
            skip.unwrap_or(0) as u32,
            skip.is_some() as u32,
            wraps as u32,
            fault.words[0],
            fault.words[1],
        ];
        let constants = [("I", format(axis.index.dtype)), ("FIRST", (k == 0) as u32)];
        let written = [&words.buffer, fault.buffer];
        launch(
            gpu,
            "index_offsets",
            Acc::I32,
            &constants,
            &written,
            &[axis.index.buffer],
            &p,
            n,
        )?;
    }
    Ok(Offsets { words, n })
}

/// The dimensions of the indexed tensor in front of and behind the place where the index's own
/// dimensions stand in the result.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub outer: (&'a [usize], &'a [isize]),
    pub inner: (&'a [usize], &'a [isize]),
}

impl Around<'_> {
    /// Sizes and strides, counted in units of `parts` words, with the words as innermost dimension.
    fn geometry(&self, parts: usize) -> Result<(Dims<1>, Dims<1>)> {
        let scale = |s: &[isize]| -> SmallVec<[isize; 8]> {
            s.iter().map(|&s| s * parts as isize).collect()
        };
        let outer = coalesce(self.outer.0, [&scale(self.outer.1)], |_| true);
        let mut sizes: SmallVec<[usize; 8]> = SmallVec::from_slice(self.inner.0);
        let mut strides = scale(self.inner.1);
        sizes.push(parts);
        strides.push(1);
        let inner = coalesce(&sizes, [&strides], |_| true);
        ensure!(
            outer.sizes.len() <= 8 && inner.sizes.len() <= 8,
            NotImplemented,
            "wgpu: index: {} separate dimensions",
            outer.sizes.len() + inner.sizes.len()
        );
        Ok((outer, inner))
    }
}

fn push_dims(p: &mut Params, dims: &[&Dims<1>]) {
    for d in dims {
        let at = p.len();
        p.resize(at + 16, 0);
        for (k, (&n, &s)) in d.sizes.iter().zip(&d.strides[0]).enumerate() {
            p[at + k] = n as u32;
            p[at + 8 + k] = s as u32;
        }
    }
}

/// `y[a, j, b] = x[a, offsets[j], b]`: `x` gives memory, offset and type; `y` is contiguous of the
/// same type, with outer, index and inner dimensions in this order.
pub fn take(gpu: &Gpu, x: View, around: Around, offsets: &Offsets, y: View) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    require_contiguous("take", &[y])?;
    let (dtype, parts) = bits(x.dtype);
    let (outer, inner) = around.geometry(parts)?;
    // Offsets count elements; an element of several words needs them in words.
    let words = scaled(gpu, offsets, parts)?;
    let n = y.numel() * parts;
    let inner_n: usize = inner.sizes.iter().product();
    let mut p: Params = smallvec::smallvec![
        n as u32,
        offsets.n as u32,
        inner_n as u32,
        (x.offset * parts) as u32,
        (y.offset * parts) as u32,
        0,
        0,
        0
    ];
    push_dims(&mut p, &[&outer, &inner]);
    let constants = [
        ("X", format(dtype)),
        ("Y", format(dtype)),
        ("OUTER", outer.sizes.len() as u32),
        ("INNER", inner.sizes.len() as u32),
    ];
    let words = words.as_ref().unwrap_or(&offsets.words);
    launch(
        gpu,
        "take",
        Acc::I32,
        &constants,
        &[y.buffer],
        &[x.buffer, &words.buffer],
        &p,
        n,
    )
}

fn scaled(gpu: &Gpu, offsets: &Offsets, parts: usize) -> Result<Option<Scratch>> {
    if parts == 1 {
        return Ok(None);
    }
    let out = Scratch::new(gpu, &[offsets.n], DType::I32)?;
    let body = "fn op(a: Acc) -> Acc { return select(a * scalar(0u), a, a == Acc(-1)); }\n";
    let factor = [Acc::I32.words(parts as f64)];
    super::pointwise::pointwise(
        gpu,
        Acc::I32,
        body,
        &[offsets.words.view()],
        out.view(),
        &factor,
    )?;
    Ok(Some(out))
}

/// `x[a, offsets[j], b] = v[a, j, b]`, or `+= scale * v` with `scale` given. `x` gives memory,
/// offset and type; `v` is contiguous with outer, index and inner dimensions in this order. Where
/// offsets repeat, the last one wins, and sums are made in order: always the same result.
pub fn put(
    gpu: &Gpu,
    x: View,
    around: Around,
    offsets: &Offsets,
    v: View,
    scale: Option<f64>,
) -> Result<()> {
    if v.numel() == 0 {
        return Ok(());
    }
    require_contiguous("put", &[v])?;
    let (x_type, v_type, acc, parts) = if scale.is_some() {
        (x.dtype, v.dtype, Acc::of(x.dtype)?, 1)
    } else {
        ensure!(
            x.dtype == v.dtype,
            Runtime,
            "wgpu: put: {} into {}",
            v.dtype,
            x.dtype
        );
        let (dtype, parts) = bits(x.dtype);
        (dtype, dtype, Acc::I32, parts)
    };
    require(gpu, acc, "put")?;
    let (outer, inner) = around.geometry(parts)?;
    let outer_n: usize = outer.sizes.iter().product();
    let inner_n: usize = inner.sizes.iter().product();
    let words = scaled(gpu, offsets, parts)?;
    let words = words.as_ref().unwrap_or(&offsets.words);
    let links = Scratch::new(gpu, &[offsets.n], DType::I32)?;
    let [s0, s1] = acc.words(scale.unwrap_or(1.0));
    let constants = [
        ("X", format(x_type)),
        ("V", format(v_type)),
        ("OUTER", outer.sizes.len() as u32),
        ("INNER", inner.sizes.len() as u32),
        ("ACCUMULATE", scale.is_some() as u32),
    ];
    for begin in (0..offsets.n).step_by(WINDOW) {
        let end = (begin + WINDOW).min(offsets.n);
        let bounds = [begin as u32, end as u32];
        let (written, read) = ([&links.buffer], [&words.buffer]);
        launch(
            gpu,
            "chain",
            Acc::I32,
            &[],
            &written,
            &read,
            &bounds,
            end - begin,
        )?;
        let n = outer_n * (end - begin) * inner_n;
        let mut p: Params = smallvec::smallvec![
            n as u32,
            offsets.n as u32,
            inner_n as u32,
            begin as u32,
            end as u32,
            (x.offset * parts) as u32,
            (v.offset * parts) as u32,
            0,
            s0,
            s1,
            0,
            0
        ];
        push_dims(&mut p, &[&outer, &inner]);
        let read = [v.buffer, &words.buffer, &links.buffer];
        launch(gpu, "put", acc, &constants, &[x.buffer], &read, &p, n)?;
    }
    Ok(())
}

/// `index_select` and `embedding`: `y = x` with dimension `dim` read at `index` (1-d or any
/// contiguous shape, which takes the place of `dim` in `y`). `y` is contiguous.
pub fn index_select(gpu: &Gpu, x: View, dim: usize, index: View, y: View) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    let axis = Axis {
        index,
        size: x.shape[dim],
        stride: x.strides[dim],
    };
    let offsets = offsets(gpu, &[axis], None, false)?;
    take(gpu, x, around(&x, dim), &offsets, y)
}

/// `index_add_` and the backward of `index_select` and `embedding`: `x[.., index[j], ..] += scale *
/// v[.., j, ..]`. Entries equal to `skip` are left out.
pub fn index_add(
    gpu: &Gpu,
    x: View,
    dim: usize,
    index: View,
    v: View,
    scale: f64,
    skip: Option<i64>,
) -> Result<()> {
    if v.numel() == 0 {
        return Ok(());
    }
    let axis = Axis {
        index,
        size: x.shape[dim],
        stride: x.strides[dim],
    };
    let offsets = offsets(gpu, &[axis], skip, false)?;
    put(gpu, x, around(&x, dim), &offsets, v, Some(scale))
}

fn around<'a>(x: &View<'a>, dim: usize) -> Around<'a> {
    Around {
        outer: (&x.shape[..dim], &x.strides[..dim]),
        inner: (&x.shape[dim + 1..], &x.strides[dim + 1..]),
    }
}
