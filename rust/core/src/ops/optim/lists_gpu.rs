//! Norms of several tensors in a dispatch, and their products with one number.

use super::gpu::{at_once, MAIN, SLOTS};
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::launch::WORKGROUP;
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Gpu, Operand};
use crate::tensor::Tensor;
use std::fmt::Write;

const SUM: u32 = 0;
const SQUARES: u32 = 1;
const LARGEST: u32 = 2;
const NUMBERS: Numbers = &[
    ("SLOTS", SLOTS as u32),
    ("SUM", SUM),
    ("SQUARES", SQUARES),
    ("LARGEST", LARGEST),
];

params! {
    struct NormBlock {
        first: u32,
        parts: u32,
        pad0: u32,
        pad1: u32,
        slot: [[u32; 4]; SLOTS],
    }
}
params! {
    struct ScaleBlock {
        factor_offset: u32,
        pad0: u32,
        pad1: u32,
        pad2: u32,
        slot: [[u32; 8]; SLOTS],
    }
}
shader! {
    static NORM: NormBlock = "list_norm.wgsl", Acc::FLOAT, numbers NUMBERS; tail &reading(3)
}
shader! {
    static SCALE: ScaleBlock = "list_scale.wgsl", Acc::FLOAT, numbers NUMBERS; tail &scaling(3)
}

/// Elements that a part of a tensor has at least, and the most parts of one.
const PART: usize = 16 * WORKGROUP;
const MOST: usize = 64;

/// Bindings of `n` tensors behind two others, and how element `i` of tensor `s` is read.
fn reading(n: usize) -> String {
    let mut out = String::new();
    for k in 0..n {
        let at = k + 3;
        let _ = writeln!(
            out,
            "@group(0) @binding({at}) var<storage, read> x{k}: array<f32>;"
        );
    }
    out.push_str("fn load(s: u32, i: u32) -> f32 {\n    switch s {\n");
    for k in 0..n {
        let _ = writeln!(out, "case {k}u: {{ return x{k}[i]; }}");
    }
    out.push_str("default: { return 0.0; }\n}\n}\n");
    out
}

/// Bindings of `n` tensors and a number, the product of element `i` of tensor `s`, and `main`.
fn scaling(n: usize) -> String {
    let mut out = String::new();
    for k in 0..n {
        let at = k + 1;
        let _ = writeln!(
            out,
            "@group(0) @binding({at}) var<storage, read_write> x{k}: array<f32>;"
        );
    }
    let at = n + 1;
    let _ = writeln!(
        out,
        "@group(0) @binding({at}) var<storage, read> factor: array<f32>;"
    );
    out.push_str("fn update(s: u32, i: u32) {\nlet f = factor[p.factor_offset];\nswitch s {\n");
    for k in 0..n {
        let _ = writeln!(out, "case {k}u: {{ x{k}[p.slot[{k}][0].y + i] *= f; }}");
    }
    out.push_str("default: {}\n}\n}\n");
    out.push_str(MAIN);
    out
}

/// The norms of float32 tensors, for p of 1, 2 or infinity, into `y`.
pub fn norms(gpu: &Gpu, p: f64, x: &[&Tensor], y: &Tensor) -> Result<()> {
    let kind = match p {
        1.0 => SUM,
        2.0 => SQUARES,
        _ => LARGEST,
    };
    let longest = x.iter().map(|t| t.numel()).max().unwrap_or(0);
    let parts = longest.div_ceil(PART).clamp(1, MOST);
    let partial = Tensor::empty(&[x.len(), parts], DType::F32, gpu.device())?;
    // Two bindings are taken.
    let several = at_once(gpu.device(), 1)?.saturating_sub(2).max(1);
    let run = |entry, tensors: &[&Tensor], block: &NormBlock, groups| {
        let text = reading(tensors.len());
        let mut launch = NORM
            .launch(Acc::F32)
            .entry(entry)
            .followed_by(&text)
            .set("KIND", kind)
            .writes_words(&partial)
            .writes_words(y);
        for &t in tensors {
            launch = launch.reads_words(Operand::from(t));
        }
        launch.groups(gpu, block, groups)
    };
    let mut block = NormBlock {
        first: 0,
        parts: parts as u32,
        pad0: 0,
        pad1: 0,
        slot: [[0; 4]; SLOTS],
    };
    for (i, tensors) in x.chunks(several).enumerate() {
        block.first = (i * several) as u32;
        block.slot = [[0; 4]; SLOTS];
        for (slot, t) in block.slot.iter_mut().zip(tensors) {
            *slot = [t.numel() as u32, t.offset() as u32, 0, 0];
        }
        run("main", tensors, &block, tensors.len() * parts)?;
    }
    block.first = x.len() as u32;
    block.slot[0][1] = y.offset() as u32;
    run("finish", &x[..1], &block, x.len())
}

/// Multiplies float32 tensors, as many as there are bindings beside one, by a number of one element.
pub fn scale(gpu: &Gpu, x: &[&Tensor], factor: &Tensor) -> Result<()> {
    let text = scaling(x.len());
    let mut block = ScaleBlock {
        factor_offset: factor.offset() as u32,
        pad0: 0,
        pad1: 0,
        pad2: 0,
        slot: [[0; 8]; SLOTS],
    };
    let mut launch = SCALE
        .launch(Acc::F32)
        .followed_by(&text)
        .set("COUNT", x.len() as u32);
    let mut groups = 0;
    for (slot, t) in block.slot.iter_mut().zip(x) {
        slot[..2].copy_from_slice(&[t.numel() as u32, t.offset() as u32]);
        groups += t.numel().div_ceil(WORKGROUP);
        launch = launch.writes_words(Operand::from(*t));
    }
    launch.reads_words(factor).groups(gpu, &block, groups)
}
