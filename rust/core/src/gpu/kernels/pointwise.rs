//! Elementwise kernels over broadcast strides.

use super::geometry::coalesce;
use super::{format, require, Params, View};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::{Acc, Gpu, Kernel};
use crate::{bail, ensure};

/// Inputs that one kernel takes, and the dimensions left after merging.
pub const MAX_INPUTS: usize = 6;
const MAX_DIMS: usize = 8;
const MAX_SCALARS: usize = 8;
const WG: usize = 256;

const VALUE: [&str; MAX_INPUTS + 1] = [
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
pub fn pointwise(
    gpu: &Gpu,
    acc: Acc,
    body: &str,
    x: &[View],
    y: View,
    scalars: &[[u32; 2]],
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    require(gpu, acc, "pointwise")?;
    ensure!(
        x.len() <= MAX_INPUTS && scalars.len() <= MAX_SCALARS,
        NotImplemented,
        "wgpu: pointwise: {} inputs and {} scalars are more than {MAX_INPUTS} and {MAX_SCALARS}",
        x.len(),
        scalars.len()
    );
    ensure!(
        acc == Acc::F64 || y.dtype != DType::F64 && x.iter().all(|v| v.dtype != DType::F64),
        NotImplemented,
        "wgpu: pointwise: float64 in a kernel that computes in {}",
        acc.dtype()
    );
    ensure!(
        acc.has_functions(body),
        NotImplemented,
        "wgpu: pointwise: a function of this op has no {} kernel",
        acc.dtype()
    );
    ensure!(
        y.numel() <= u32::MAX as usize,
        NotImplemented,
        "wgpu: pointwise: {} elements are more than a shader can count",
        y.numel()
    );
    debug_assert!(x.iter().all(|v| v.shape == y.shape), "{:?} {:?}", x, y);
    let mut strides: [&[isize]; MAX_INPUTS + 1] = [y.strides; MAX_INPUTS + 1];
    for (s, v) in strides[1..].iter_mut().zip(x) {
        *s = v.strides;
    }
    let dims = coalesce(y.shape, strides, |_| true);
    let n = y.numel();
    if dims.sizes.len() > MAX_DIMS {
        bail!(
            NotImplemented,
            "wgpu: pointwise: {} separate dimensions",
            dims.sizes.len()
        );
    }
    let linear = dims.sizes.len() <= 1;
    let y_step = dims.strides[0].first().copied().unwrap_or(1);
    let lanes = 4 / y.dtype.size().min(4);
    let packed = linear && y_step == 1;
    // y may be contiguous although an input is not.
    let packed = packed || y.is_contiguous();
    let scattered = lanes > 1 && !packed;

    let mut p = Params::from_elem(0, 92);
    p[0] = n as u32;
    p[4] = y.offset as u32;
    for (t, v) in x.iter().enumerate() {
        p[5 + t] = v.offset as u32;
    }
    for t in 0..=x.len() {
        p[12 + t] = dims.strides[t].first().copied().unwrap_or(1) as u32;
    }
    for (k, words) in scalars.iter().enumerate() {
        p[20 + 2 * k] = words[0];
        p[21 + 2 * k] = words[1];
    }
    if linear {
        p.truncate(36);
    } else {
        for (d, &size) in dims.sizes.iter().enumerate() {
            p[36 + d] = size as u32;
            for t in 0..=x.len() {
                p[44 + 8 * t + d] = dims.strides[t][d] as u32;
            }
        }
    }

    let mut constants: smallvec::SmallVec<[(&'static str, u32); 9]> = smallvec::smallvec![
        ("DIMS", if linear { 0 } else { dims.sizes.len() as u32 }),
        ("WG", WG as u32),
        ("Y", format(y.dtype)),
    ];
    constants.extend(
        x.iter()
            .enumerate()
            .map(|(t, v)| (SLOTS[t + 1], format(v.dtype))),
    );
    let kernel = Kernel {
        file: "pointwise",
        entry: if scattered { "scattered" } else { "main" },
        acc,
        constants: &constants,
        tail: [body, VALUE[x.len()]],
        writes: 1,
        reads: x.len(),
    };
    let threads = if scattered || lanes == 1 {
        n
    } else {
        (y.offset % lanes + n).div_ceil(lanes)
    };
    let mut buffers: smallvec::SmallVec<[_; 7]> = smallvec::smallvec![y.buffer];
    buffers.extend(x.iter().map(|v| v.buffer));
    gpu.dispatch(&kernel, &buffers, &p, gpu.grid(threads.div_ceil(WG))?)
}
