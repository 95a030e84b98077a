//! Reading and writing through index tensors. Every form is the same two steps: turn the index
//! tensors into element offsets, then take from or put at them.

use crate::dtype::DType;
use crate::ensure;
use crate::error::{Kind, Result};
use crate::gpu::fault::check_size;
use crate::gpu::geometry::{coalesce, Dims};
use crate::gpu::launch::bits;
use crate::gpu::pointwise::pointwise;
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu, Window};
use crate::layout::{reach, Layout};
use crate::ops::index::{runs, Mode};
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{as_type, check_contiguous, whole, windowed};
use smallvec::SmallVec;

/// Index entries between which duplicates are looked for in one pass: each invocation scans the
/// window, far below the 65,535 loop iterations of software Vulkan.
const WINDOW: usize = 16_384;

params! {
    struct Offset {
        n: u32,
        i_offset: u32,
        size: u32,
        stride: u32,
        skip: u32,
        has_skip: u32,
        wraps: u32,
        who: u32,
        dispatch: u32,
    }
}
params! {
    struct Take {
        n: u32,
        indices: u32,
        inner: u32,
        x_offset: u32,
        y_offset: u32,
        pad0: u32,
        pad1: u32,
        pad2: u32,
        outer_size: [u32; 8],
        outer_stride: [u32; 8],
        inner_size: [u32; 8],
        inner_stride: [u32; 8],
    }
}
params! {
    struct Chain {
        begin: u32,
        end: u32,
    }
}
params! {
    struct Put {
        n: u32,
        indices: u32,
        inner: u32,
        begin: u32,
        end: u32,
        y_offset: u32,
        v_offset: u32,
        pad: u32,
        scale: [u32; 4],
        outer_size: [u32; 8],
        outer_stride: [u32; 8],
        inner_size: [u32; 8],
        inner_stride: [u32; 8],
    }
}
/// The offset of an index that later steps leave out.
const SKIPPED: u32 = u32::MAX;
const NUMBERS: Numbers = &[("SKIPPED", SKIPPED)];
shader! { static OFFSETS: Offset = "index_offsets.wgsl", Acc::WORDS, numbers NUMBERS }
shader! { static TAKE: Take = "take.wgsl", Acc::WORDS, numbers NUMBERS }
shader! { static CHAIN: Chain = "chain.wgsl", Acc::WORDS }
shader! { static PUT: Put = "put.wgsl", Acc::ALL, numbers NUMBERS }

/// One index tensor and the dimension of the indexed tensor that it runs over.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// Contiguous int64 or int32.
    pub index: &'a Tensor,
    pub size: usize,
    pub stride: isize,
}

/// Offsets of the elements that index tensors point at.
pub struct Offsets {
    pub words: Tensor,
    n: usize,
    /// All are less.
    reach: usize,
}

/// The offsets of `axes`, whose index tensors have as many entries each. Entries equal to `skip`
/// (embedding's `padding_idx`) are left out of later steps. Negative entries count from the end
/// where `wraps`.
pub fn offsets(gpu: &Gpu, axes: &[Axis], skip: Option<i64>, wraps: bool) -> Result<Offsets> {
    offsets_or(gpu, axes, skip, wraps, Kind::Index)
}

/// The same, with the kind of error that an index out of range is.
pub fn offsets_or(
    gpu: &Gpu,
    axes: &[Axis],
    skip: Option<i64>,
    wraps: bool,
    kind: Kind,
) -> Result<Offsets> {
    let n = axes[0].index.numel();
    let words = Tensor::empty(&[n], DType::I32, gpu.device())?;
    let last = |a: &Axis| a.size.saturating_sub(1) * a.stride.unsigned_abs();
    let reach = axes.iter().map(last).sum::<usize>() + 1;
    if n == 0 {
        return Ok(Offsets { words, n, reach });
    }
    let room = most_rows(gpu, 0);
    if n > room {
        for start in (0..n).step_by(room) {
            // Parts of what is larger than a binding.
            let part = |of: &Axis| {
                let flat = of.index.reshape_to(&[n])?;
                bindable(
                    gpu,
                    &flat.narrow(0, start as i64, room.min(n - start) as i64)?,
                )
            };
            let parts: SmallVec<[Tensor; 4]> = axes.iter().map(part).collect::<Result<_>>()?;
            let own: SmallVec<[Axis; 4]> = (axes.iter().zip(&parts))
                .map(|(axis, index)| Axis { index, ..*axis })
                .collect();
            let own = offsets_or(gpu, &own, skip, wraps, kind)?;
            let place = words.narrow(0, start as i64, own.n as i64)?;
            place.write_from(&own.words)?;
        }
        return Ok(Offsets { words, n, reach });
    }
    for (k, axis) in axes.iter().enumerate() {
        check_contiguous("index", &[axis.index])?;
        check_size(kind, axis.size)?;
        let fault = gpu.index_fault(kind)?;
        let [who, dispatch] = fault.words;
        let p = Offset {
            n: n as u32,
            i_offset: axis.index.offset() as u32,
            size: axis.size as u32,
            stride: axis.stride as u32,
            skip: skip.unwrap_or(0) as u32,
            has_skip: skip.is_some() as u32,
            wraps: wraps as u32,
            who,
            dispatch,
        };
        OFFSETS
            .launch(Acc::I32)
            .set("FIRST", k == 0)
            .writes_words(&words)
            .writes_words(fault.buffer)
            .reads("I", axis.index)
            .threads(gpu, &p, n)?;
    }
    Ok(Offsets { words, n, reach })
}

impl Offsets {
    /// Those from `start` on, counted from there, below `length`; the others are left out.
    fn between(&self, gpu: &Gpu, start: usize, length: usize) -> Result<Offsets> {
        let words = Tensor::empty(&[self.n], DType::I32, gpu.device())?;
        let body = "fn op(a: Acc) -> Acc {
    let own = bitcast<u32>(a) - bitcast<u32>(scalar(0u));
    return select(-1, bitcast<i32>(own), own < bitcast<u32>(scalar(1u)));
}
";
        let scalars = [[start as u32, 0], [length as u32, 0]];
        let (from, to) = (whole(&self.words)?, whole(&words)?);
        pointwise(gpu, Acc::I32, body, &[from], to, &scalars)?;
        Ok(Offsets {
            words,
            n: self.n,
            reach: length,
        })
    }

    /// The first `n` from `start` on.
    fn some(&self, start: usize, n: usize) -> Result<Offsets> {
        let words = self.words.narrow(0, start as i64, n as i64)?.copy_dense()?;
        Ok(Offsets { words, n, ..*self })
    }
}

/// Windows on an indexed tensor that is larger than a binding: the first offset of each, how many it has,
/// and its elements. `None` where it can be bound whole.
type Windows = Vec<(usize, usize, Tensor)>;

fn windows(gpu: &Gpu, x: &Tensor, around: &Around, offsets: &Offsets) -> Result<Option<Windows>> {
    let most = gpu.info().max_binding;
    if x.storage().buffer().is_none_or(|b| b.capacity() <= most) {
        return Ok(None);
    }
    // Dimensions in front are cut by then.
    let one = around.outer.0.iter().all(|&n| n == 1);
    let (low, span) = reach(0, around.inner.0, around.inner.1);
    let most = (most - Window::ALIGN) as usize / x.dtype().size();
    ensure!(
        one && low == 0 && span < most,
        NoKernel,
        "wgpu: index: lines of {span} elements in a tensor that is larger than a binding"
    );
    let window = |start: usize| {
        let n = (most - span).min(offsets.reach - start);
        let layout = Layout {
            offset: x.offset() + start,
            ..Layout::contiguous(&[n + span - 1])
        };
        (start, n, x.alias(layout))
    };
    let starts = (0..offsets.reach).step_by(most - span);
    Ok(Some(starts.map(window).collect()))
}

/// Elements as a kernel can bind them: where they are, or a copy where that is in two segments.
pub fn bindable(gpu: &Gpu, x: &Tensor) -> Result<Tensor> {
    windowed(gpu, x).map_or_else(|| x.copy_dense(), Ok)
}

/// The dimensions of the indexed tensor in front of and behind the place where the index's own
/// dimensions stand in the result.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    pub outer: (&'a [usize], &'a [isize]),
    pub inner: (&'a [usize], &'a [isize]),
}

impl<'a> Around<'a> {
    /// What is around one dimension.
    pub fn of(layout: &'a Layout, dim: usize) -> Around<'a> {
        let (shape, strides) = (&layout.shape, &layout.strides);
        Around {
            outer: (&shape[..dim], &strides[..dim]),
            inner: (&shape[dim + 1..], &strides[dim + 1..]),
        }
    }

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
            NoKernel,
            "wgpu: index: {} separate dimensions",
            outer.sizes.len() + inner.sizes.len()
        );
        Ok((outer, inner))
    }
}

/// `y[a, j, b] = x[a, offsets[j], b]`: `x` gives memory, offset and type; `y` is contiguous of the
/// same type, with outer, index and inner dimensions in this order.
pub fn take(gpu: &Gpu, x: &Tensor, around: Around, offsets: &Offsets, y: &Tensor) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("take", &[y])?;
    let Some(windows) = windows(gpu, x, &around, offsets)? else {
        return take_from(gpu, x, around, offsets, y, false);
    };
    for (start, n, part) in windows {
        let own = offsets.between(gpu, start, n)?;
        take_from(gpu, &bindable(gpu, &part)?, around, &own, y, start > 0)?;
    }
    Ok(())
}

/// [`take`] of memory that a kernel can bind; what is left out is zero, or stays with `keep`.
fn take_from(
    gpu: &Gpu,
    x: &Tensor,
    around: Around,
    offsets: &Offsets,
    y: &Tensor,
    keep: bool,
) -> Result<()> {
    let (dtype, parts) = bits(x.dtype());
    let (outer, inner) = around.geometry(parts)?;
    // Offsets count elements; an element of several words needs them in words.
    let words = scaled(gpu, offsets, parts)?;
    let n = y.numel() * parts;
    let p = Take {
        n: n as u32,
        indices: offsets.n as u32,
        inner: inner.sizes.iter().product::<usize>() as u32,
        x_offset: (x.offset() * parts) as u32,
        y_offset: (y.offset() * parts) as u32,
        pad0: 0,
        pad1: 0,
        pad2: 0,
        outer_size: outer.words(),
        outer_stride: outer.stride_words(0),
        inner_size: inner.words(),
        inner_stride: inner.stride_words(0),
    };
    TAKE.launch(Acc::I32)
        .set("KEEP", keep)
        .set("OUTER", outer.sizes.len() as u32)
        .set("INNER", inner.sizes.len() as u32)
        .writes("Y", as_type(y, dtype))
        .reads("X", as_type(x, dtype))
        .reads_words(&words)
        .each(gpu, &p, y.offset() * parts, n)
}

fn scaled(gpu: &Gpu, offsets: &Offsets, parts: usize) -> Result<Tensor> {
    if parts == 1 {
        return Ok(offsets.words.clone());
    }
    let out = Tensor::empty(&[offsets.n], DType::I32, gpu.device())?;
    let body = "fn op(a: Acc) -> Acc { return select(a * scalar(0u), a, a == scalar(1u)); }\n";
    let scalars = [[parts as u32, 0], [SKIPPED, 0]];
    let (from, to) = (whole(&offsets.words)?, whole(&out)?);
    pointwise(gpu, Acc::I32, body, &[from], to, &scalars)?;
    Ok(out)
}

/// How many rows of so many bytes can be put at once: sorting takes some words for each.
pub fn most_rows(gpu: &Gpu, bytes: usize) -> usize {
    (gpu.info().max_binding / 5 * 4) as usize / bytes.max(16)
}

/// `y[a, offsets[j], b] = v[a, j, b]`, or what `meet` makes of that element and `scale * v`. `y` gives
/// memory, offset and type; `v` is contiguous with outer, index and inner dimensions in this order.
/// Where offsets repeat, the last one wins, and others meet in order: always the same result.
pub fn put(
    gpu: &Gpu,
    y: &Tensor,
    around: Around,
    offsets: &Offsets,
    v: &Tensor,
    (meet, scale): (Mode, f64),
) -> Result<()> {
    if v.numel() == 0 {
        return Ok(());
    }
    check_contiguous("put", &[v])?;
    let row = v.numel() / offsets.n * v.dtype().size();
    let rows = most_rows(gpu, row);
    let lines: usize = around.outer.0.iter().product();
    if rows < offsets.n && lines == 1 && rows > 0 {
        let v = v.reshape_to(&[offsets.n, v.numel() / offsets.n])?;
        for start in (0..offsets.n).step_by(rows) {
            let n = rows.min(offsets.n - start);
            let part = bindable(gpu, &v.narrow(0, start as i64, n as i64)?)?;
            let own = offsets.some(start, n)?;
            put(gpu, y, around, &own, &part, (meet, scale))?;
        }
        return Ok(());
    }
    if let Some(windows) = windows(gpu, y, &around, offsets)? {
        for (start, n, place) in windows {
            // A copy has what windows before this one wrote.
            let part = bindable(gpu, &place)?;
            let own = offsets.between(gpu, start, n)?;
            put(gpu, &part, around, &own, v, (meet, scale))?;
            if windowed(gpu, &place).is_none() {
                place.write_from(&part)?;
            }
        }
        return Ok(());
    }
    let moves = matches!(meet, Mode::Set | Mode::Add);
    if !moves || offsets.n >= runs::MANY {
        return put_sorted(gpu, y, around, offsets, v, (meet, scale));
    }
    let adds = meet == Mode::Add;
    let (y_type, v_type, acc, parts) = if adds {
        (y.dtype(), v.dtype(), Acc::of(y.dtype())?, 1)
    } else {
        ensure!(
            y.dtype() == v.dtype(),
            Runtime,
            "wgpu: put: {} into {}",
            v.dtype(),
            y.dtype()
        );
        let (dtype, parts) = bits(y.dtype());
        (dtype, dtype, Acc::I32, parts)
    };
    gpu.require(acc, "put")?;
    let (outer, inner) = around.geometry(parts)?;
    let outer_n: usize = outer.sizes.iter().product();
    let inner_n: usize = inner.sizes.iter().product();
    let words = scaled(gpu, offsets, parts)?;
    let links = Tensor::empty(&[offsets.n], DType::I32, gpu.device())?;
    let [s0, s1] = acc.words(scale);
    for begin in (0..offsets.n).step_by(WINDOW) {
        let end = (begin + WINDOW).min(offsets.n);
        let p = Chain {
            begin: begin as u32,
            end: end as u32,
        };
        CHAIN
            .launch(Acc::I32)
            .writes_words(&links)
            .reads_words(&words)
            .threads(gpu, &p, end - begin)?;
        let n = outer_n * (end - begin) * inner_n;
        let p = Put {
            n: n as u32,
            indices: offsets.n as u32,
            inner: inner_n as u32,
            begin: begin as u32,
            end: end as u32,
            y_offset: (y.offset() * parts) as u32,
            v_offset: (v.offset() * parts) as u32,
            pad: 0,
            scale: [s0, s1, 0, 0],
            outer_size: outer.words(),
            outer_stride: outer.stride_words(0),
            inner_size: inner.words(),
            inner_stride: inner.stride_words(0),
        };
        PUT.launch(acc)
            .set("OUTER", outer.sizes.len() as u32)
            .set("INNER", inner.sizes.len() as u32)
            .set("ACCUMULATE", adds)
            .writes("Y", as_type(y, y_type))
            .reads("V", as_type(v, v_type))
            .reads_words(&words)
            .reads_words(&links)
            .threads(gpu, &p, n)?;
    }
    Ok(())
}

/// [`put`] of many elements.
fn put_sorted(
    gpu: &Gpu,
    y: &Tensor,
    around: Around,
    offsets: &Offsets,
    v: &Tensor,
    (meet, scale): (Mode, f64),
) -> Result<()> {
    let (outer, inner) = (around.outer, around.inner);
    let sizes: SmallVec<[usize; 8]> = outer.0.iter().chain(inner.0).copied().collect();
    let strides: SmallVec<[isize; 8]> = outer.1.iter().chain(inner.1).copied().collect();
    let places = runs::Places {
        words: &offsets.words,
        shared: true,
        size: offsets.reach,
        stride: 1,
        others: coalesce(&sizes, [&strides], |_| true),
    };
    let lines = Span {
        outer: outer.0.iter().product(),
        length: offsets.n,
        inner: inner.0.iter().product(),
    };
    let factor = match meet {
        Mode::Set => [0; 2],
        _ => Acc::of(y.dtype())?.words(scale),
    };
    runs::put(gpu, meet, &places, y, v, lines, factor)
}

fn axis<'a>(x: &Tensor, dim: usize, index: &'a Tensor) -> Axis<'a> {
    Axis {
        index,
        size: x.size(dim),
        stride: x.layout().strides[dim],
    }
}

/// `y = x` with dimension `dim` read at `index` (contiguous, of any shape, which takes the place of
/// `dim` in `y`). `y` is contiguous.
pub fn index_select(gpu: &Gpu, x: &Tensor, dim: usize, index: &Tensor, y: &Tensor) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    let offsets = offsets(gpu, &[axis(x, dim, index)], None, false)?;
    take(gpu, x, Around::of(x.layout(), dim), &offsets, y)
}

/// `y[.., index[j], ..] += scale * v[.., j, ..]`, the backward of [`index_select`]. Entries equal to
/// `skip` are left out.
pub fn index_add(
    gpu: &Gpu,
    y: &Tensor,
    dim: usize,
    index: &Tensor,
    v: &Tensor,
    scale: f64,
    skip: Option<i64>,
) -> Result<()> {
    if v.numel() == 0 {
        return Ok(());
    }
    let offsets = offsets(gpu, &[axis(y, dim, index)], skip, false)?;
    let around = Around::of(y.layout(), dim);
    put(gpu, y, around, &offsets, v, (Mode::Add, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::testing::{close, gpu, noise};
    use crate::transfer::tests::{fresh, get, put};

    /// Rows at 2, 1, 0, 2, 2 along each of the first two dimensions.
    fn selected<T: Copy + PartialEq + std::fmt::Debug>(dtype: DType, of: fn(usize) -> T) {
        let Some((_turn, gpu)) = gpu() else { return };
        let (index, shape) = ([2i64, 1, 0, 2, 2], [3, 4, 5]);
        let ti = put(&[5], DType::I64, &index);
        let data: Vec<T> = (0..60).map(of).collect();
        let x = put(&shape, dtype, &data);
        for dim in 0..2 {
            let mut out = shape;
            out[dim] = 5;
            let y = fresh(&out, dtype);
            index_select(gpu, &x, dim, &ti, &y).unwrap();
            let inner: usize = shape[dim + 1..].iter().product();
            let outer: usize = shape[..dim].iter().product();
            let mut want = vec![];
            for o in 0..outer {
                for &i in &index {
                    let at = (o * shape[dim] + i as usize) * inner;
                    want.extend_from_slice(&data[at..at + inner]);
                }
            }
            assert_eq!(get::<T>(&y), want, "{dtype} {dim}");
        }
    }

    #[test]
    fn index_select_of_any_size_of_element_matches_the_host() {
        selected(DType::I64, |i| i as i64 * 0x1_0000_0007);
        selected(DType::F32, |i| i as f32 * 0.3);
        selected(DType::U8, |i| (i * 7) as u8);
    }

    #[test]
    fn index_add_sums_in_order_and_skips() {
        let Some((_turn, gpu)) = gpu() else { return };
        let index = [2i64, 1, 0, 2, 2];
        let ti = put(&[5], DType::I64, &index);
        let x = put(&[4, 3], DType::F32, &[1f32; 12]);
        let v = put(&[5, 3], DType::F32, &noise(15, 1));
        index_add(gpu, &x, 0, &ti, &v, 2.0, Some(0)).unwrap();
        let v = noise(15, 1);
        let mut want = [1f64; 12];
        for (j, &i) in index.iter().enumerate().filter(|(_, &i)| i != 0) {
            for c in 0..3 {
                want[i.rem_euclid(4) as usize * 3 + c] += 2.0 * v[j * 3 + c] as f64;
            }
        }
        close(&get(&x), &want, 1e-6);
    }

    #[test]
    fn index_out_of_range_raises_at_the_next_read() {
        let Some((_turn, gpu)) = gpu() else { return };
        let x = put(&[4, 3], DType::F32, &[1f32; 12]);
        let index = put(&[1], DType::I64, &[9i64]);
        let y = fresh(&[1, 3], DType::F32);
        index_select(gpu, &x, 0, &index, &y).unwrap();
        let e = gpu.synchronize().unwrap_err();
        assert_eq!(e.kind, crate::error::Kind::Index);
        assert!(
            e.text
                .contains("index 9 is out of bounds for dimension with size 4"),
            "{e}"
        );
        gpu.synchronize().unwrap();
    }
}
