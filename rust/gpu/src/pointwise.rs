//! Elementwise kernels over broadcast strides.

use super::binding::Operand;
use super::command_list::Told;
use super::geometry::coalesce;
use super::geometry::WORKGROUP;
use super::launch::bits;
use super::transpose::transposed;
use super::view::parts;
use super::{params, shader, Acc, Gpu, Scratch, Tail, View};
use crate::dtype::DType;
use crate::error::Result;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Inputs that one kernel takes, and the dimensions left after merging.
pub const MAX_INPUTS: usize = 6;
const MAX_DIMS: usize = 8;
pub(super) const MAX_SCALARS: usize = 8;

params! {
    pub(super) struct Block {
        n: u32,
        first: u32,
        zero: u32,
        pad2: u32,
        offset: [u32; 8],
        step: [u32; 8],
        scalar: [[u32; 2]; MAX_SCALARS],
        size: [u32; MAX_DIMS],
        stride: [[u32; MAX_DIMS]; MAX_INPUTS + 1],
    }
}
shader! {
    pub(super) static POINTWISE: Block = "pointwise.wgsl", Acc::EACH;
    tail "fn value(i: u32) -> Acc { return m_neg(load0(i)) + load1(i); }\n"
}

pub(super) const IDENTITY: &str = "fn op(a: Acc) -> Acc { return a; }\n";
pub(super) const VALUE: [&str; MAX_INPUTS + 1] = [
    "fn value(i: u32) -> Acc { return op(); }\n",
    "fn value(i: u32) -> Acc { return op(load0(i)); }\n",
    "fn value(i: u32) -> Acc { return op(load0(i), load1(i)); }\n",
    "fn value(i: u32) -> Acc { return op(load0(i), load1(i), load2(i)); }\n",
    "fn value(i: u32) -> Acc { return op(load0(i), load1(i), load2(i), load3(i)); }\n",
    "fn value(i: u32) -> Acc { return op(load0(i), load1(i), load2(i), load3(i), load4(i)); }\n",
    "fn value(i: u32) -> Acc {\n    \
     return op(load0(i), load1(i), load2(i), load3(i), load4(i), load5(i));\n}\n",
];
const SLOTS: [&str; MAX_INPUTS + 1] = ["Y", "X0", "X1", "X2", "X3", "X4", "X5"];

/// `y = op(x...)` elementwise, computed in `acc`. `body` defines `fn op(a0: Acc, ...) -> Acc` with
/// one parameter per input. It may call the `m_` functions of the type's math file, `scalar(k)`
/// for the k-th of `scalars` (see [`Acc::words`]), and read `position`, the logical index. Inputs
/// have the output's shape, with stride 0 where they broadcast; an input may be the output.
pub fn pointwise<'a>(
    gpu: &Gpu,
    acc: Acc,
    body: impl Into<Tail<'a>>,
    x: &[View],
    y: View,
    scalars: &[[u32; 2]],
) -> Result<()> {
    asked(gpu, acc, body.into(), x, y, scalars, None)
}

/// The scalars of a kernel that its op gives anew in each call: the first ones.
#[derive(Clone, Copy)]
pub(super) struct Anew {
    pub step: usize,
    pub scalars: usize,
}

impl Anew {
    /// Their words, which begin at `word` of the parameters.
    pub fn at(self, word: usize) -> Told {
        Told {
            step: self.step,
            word,
            from: 0,
            len: 2 * self.scalars,
        }
    }
}

/// [`pointwise`] where the first scalars are numbers of the host.
pub fn numbered<'a>(
    gpu: &Gpu,
    acc: Acc,
    body: impl Into<Tail<'a>>,
    x: &[View],
    y: View,
    scalars: &[[u32; 2]],
    numbers: usize,
) -> Result<()> {
    let step = gpu.step_of_numbers().filter(|_| numbers > 0);
    let anew = step.map(|step| Anew {
        step,
        scalars: numbers,
    });
    asked(gpu, acc, body.into(), x, y, scalars, anew)
}

/// [`pointwise`] where the first two scalars are a random key and the number of its stream, which the op
/// gives anew in each call.
pub fn drawn<'a>(
    gpu: &Gpu,
    acc: Acc,
    body: impl Into<Tail<'a>>,
    x: &[View],
    y: View,
    scalars: &[[u32; 2]],
) -> Result<()> {
    let step = gpu.step();
    let anew = step.map(|step| Anew { step, scalars: 2 });
    asked(gpu, acc, body.into(), x, y, scalars, anew)
}

fn asked(
    gpu: &Gpu,
    acc: Acc,
    body: Tail,
    x: &[View],
    y: View,
    scalars: &[[u32; 2]],
    anew: Option<Anew>,
) -> Result<()> {
    if y.numel() == 0 || gpu.wait_for_more(acc, body, x, y, scalars, anew)? {
        return Ok(());
    }
    let whole = Part {
        first: 0,
        settled: false,
        anew,
    };
    launch(gpu, acc, body, x, y, scalars, whole)
}

/// Whether a body reads the logical index.
fn names_position(body: &str) -> bool {
    body.contains("position")
}

/// The outermost dimension that has more than one element.
fn first_of(v: View) -> usize {
    v.shape.iter().position(|&n| n > 1).unwrap_or(0)
}

/// What of a tensor a kernel computes.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The logical index of its first element.
    pub first: usize,
    /// Whether all that has to come before is recorded.
    pub settled: bool,
    pub anew: Option<Anew>,
}

/// [`pointwise`] in a kernel of its own.
pub(super) fn launch(
    gpu: &Gpu,
    acc: Acc,
    body: Tail,
    x: &[View],
    y: View,
    scalars: &[[u32; 2]],
    part: Part,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    ensure!(
        x.len() <= MAX_INPUTS && scalars.len() <= MAX_SCALARS,
        NoKernel,
        "wgpu: pointwise: {} inputs and {} scalars are more than {MAX_INPUTS} and {MAX_SCALARS}",
        x.len(),
        scalars.len()
    );
    let known = |d: DType| match d {
        DType::F64 => matches!(acc, Acc::F64 | Acc::C128),
        DType::C128 => acc == Acc::C128,
        _ => true,
    };
    if let Some(v) = [y].iter().chain(x).find(|v| !known(v.dtype)) {
        bail!(
            NoKernel,
            "wgpu: pointwise: {} in a kernel that computes in {}",
            v.dtype,
            acc.dtype()
        );
    }
    ensure!(
        y.numel() <= u32::MAX as usize,
        NoKernel,
        "wgpu: pointwise: {} elements are more than a shader can count",
        y.numel()
    );
    debug_assert!(x.iter().all(|v| v.shape == y.shape), "{:?} {:?}", x, y);
    let mut strides: [&[isize]; MAX_INPUTS + 1] = [y.strides; MAX_INPUTS + 1];
    for (s, v) in strides[1..].iter_mut().zip(x) {
        *s = v.strides;
    }
    let dims = coalesce(y.shape, strides, |_| true);
    let crowded = || {
        y.shape
            .iter()
            .position(|&n| n > 1 && dims.sizes.len() > MAX_DIMS)
            .map(|d| (d, y.shape[d] / 2))
    };
    let wide = [y].iter().chain(x).find_map(|v| v.cut(gpu));
    if let Some((d, before)) = wide.or_else(crowded) {
        // Logical indices go on in the second half where nothing in front is cut.
        let outer = y.shape[..d].iter().all(|&n| n == 1);
        if !outer && names_position(body.text) && y.too_wide(gpu).is_none_or(|d| first_of(y) == d) {
            // Inputs in the order of the result can be cut with it.
            let ordered = |v: &View| -> Result<Scratch> {
                let own = Scratch::new(gpu, v.shape, v.dtype)?;
                copy_bits(gpu, *v, own.view()).map(|()| own)
            };
            let own: SmallVec<[Scratch; MAX_INPUTS]> =
                x.iter().map(ordered).collect::<Result<_>>()?;
            let x: SmallVec<[View; MAX_INPUTS]> = own.iter().map(Scratch::view).collect();
            return launch(gpu, acc, body, &x, y, scalars, part);
        }
        ensure!(
            outer || !names_position(body.text),
            NoKernel,
            "wgpu: pointwise: a result in another order than its memory is larger than one binding"
        );
        let inner: usize = y.shape[d + 1..].iter().product();
        for (from, shape) in parts(y.shape, d, before) {
            let parts: SmallVec<[View; MAX_INPUTS]> =
                x.iter().map(|v| v.part(d, from, &shape)).collect();
            let y = y.part(d, from, &shape);
            let part = Part {
                first: part.first + from * inner,
                ..part
            };
            launch(gpu, acc, body, &parts, y, scalars, part)?;
        }
        return Ok(());
    }
    let n = y.numel();
    let linear = dims.sizes.len() <= 1;
    let y_step = dims.strides[0].first().copied().unwrap_or(1);
    let lanes = 4 / y.dtype.size().min(4);
    let packed = linear && y_step == 1;
    // y may be contiguous although an input is not.
    let packed = packed || y.is_contiguous();
    // Rows of whole words.
    let even = |n: usize| n.is_multiple_of(lanes);
    let outer = dims.strides[0].iter().skip(1);
    let in_rows = !packed
        && dims.strides[0][0] == 1
        && even(dims.sizes[0])
        && outer.into_iter().all(|s| even(s.unsigned_abs()))
        && even(y.offset);
    let scattered = lanes > 1 && !packed && !in_rows;
    let entry = match (scattered, lanes > 1 && in_rows) {
        (true, _) => "scattered",
        (_, true) => "rows",
        _ => "main",
    };

    let mut p: Block = bytemuck::Zeroable::zeroed();
    p.n = n as u32;
    p.first = part.first as u32;
    let bound: SmallVec<[(Operand, u32); MAX_INPUTS + 1]> =
        [y].iter().chain(x).map(|v| v.bound(gpu)).collect();
    for (t, &(_, offset)) in bound.iter().enumerate() {
        p.offset[t] = offset;
        p.step[t] = dims.strides[t].first().copied().unwrap_or(1) as u32;
        for (d, &s) in dims.strides[t].iter().enumerate() {
            p.stride[t][d] = s as u32;
        }
    }
    for (d, &size) in dims.sizes.iter().enumerate() {
        p.size[d] = size as u32;
    }
    p.scalar[..scalars.len()].copy_from_slice(scalars);
    // Most calls are linear and small: the ring need not carry what they do not read.
    let used = match linear {
        true => std::mem::offset_of!(Block, size),
        false => size_of::<Block>(),
    };

    // The number of inputs tells these texts apart.
    let value = Tail {
        text: VALUE[x.len()],
        key: [0; 2],
    };
    let mut launch = POINTWISE
        .launch(acc)
        .entry(entry)
        .tail([body, value])
        .set("DIMS", if linear { 0 } else { dims.sizes.len() as u32 })
        .writes(SLOTS[0], bound[0].0);
    for (&(operand, _), slot) in bound[1..].iter().zip(&SLOTS[1..]) {
        launch = launch.reads(slot, operand);
    }
    if let Some(anew) = part.anew {
        launch = launch.told_of(anew.at(std::mem::offset_of!(Block, scalar) / 4));
    }
    let threads = if scattered || lanes == 1 {
        n
    } else {
        (bound[0].1 as usize % lanes + n).div_ceil(lanes)
    };
    let (params, groups) = (&bytemuck::bytes_of(&p)[..used], threads.div_ceil(WORKGROUP));
    match part.settled {
        false => launch.record(gpu, params, groups),
        true => launch.record_settled(gpu, params, groups),
    }
}

/// `y = x` of the same type: moves bits as integers, so that every pattern survives and no adapter lacks the
/// type. An element of several words is one more dimension of words.
pub(super) fn copy_bits(gpu: &Gpu, x: View, y: View) -> Result<()> {
    if transposed(gpu, x, y)? {
        return Ok(());
    }
    let (dtype, parts) = bits(x.dtype);
    if parts == 1 {
        return pointwise(
            gpu,
            Acc::I32,
            IDENTITY,
            &[View { dtype, ..x }],
            View { dtype, ..y },
            &[],
        );
    }
    let shape: SmallVec<[usize; 8]> = y.shape.iter().copied().chain([parts]).collect();
    let words = |v: View| -> SmallVec<[isize; 8]> {
        v.strides
            .iter()
            .map(|s| s * parts as isize)
            .chain([1])
            .collect()
    };
    let (xs, ys) = (words(x), words(y));
    let (x_offset, y_offset) = (x.offset * parts, y.offset * parts);
    let x = View {
        offset: x_offset,
        shape: &shape,
        strides: &xs,
        dtype,
        ..x
    };
    let y = View {
        offset: y_offset,
        shape: &shape,
        strides: &ys,
        dtype,
        ..y
    };
    pointwise(gpu, Acc::I32, IDENTITY, &[x], y, &[])
}
