//! Random numbers from Philox4x32-10, the same bits as on the CPU. Element `i` takes word `i` of
//! the stream.

use crate::error::Result;
use crate::gpu::pointwise::pointwise;
use crate::gpu::{Acc, Gpu};
use crate::rng::Philox;
use crate::tensor::Tensor;
use crate::transfer::whole;

/// Functions for random numbers in pointwise bodies.
const PHILOX: &str = include_str!("../../../../../shaders/philox.wgsl");

/// Uniform in [low, high).
pub fn uniform(gpu: &Gpu, s: Philox, low: f64, high: f64, y: &Tensor) -> Result<()> {
    let op = "fn op() -> Acc { return scalar(2u) + (scalar(3u) - scalar(2u)) * philox_uniform(); }";
    fill(gpu, s, op, [low, high].map(|v| Acc::F32.words(v)), y)
}

/// Normal, from Box and Muller's pairs.
pub fn normal(gpu: &Gpu, s: Philox, mean: f64, std: f64, y: &Tensor) -> Result<()> {
    let op = "fn op() -> Acc { return scalar(2u) + scalar(3u) * philox_normal(); }";
    fill(gpu, s, op, [mean, std].map(|v| Acc::F32.words(v)), y)
}

/// 1 with probability `p`, else 0: where a word lies below `p * 2^32`.
pub fn bernoulli(gpu: &Gpu, s: Philox, p: f64, y: &Tensor) -> Result<()> {
    let bound = (p * 4_294_967_296.0).round() as u64;
    // The largest bound that a word can express takes all but one of 2^32.
    let (word, all) = (bound.min(u32::MAX as u64), bound > u32::MAX as u64);
    let op = "fn op() -> Acc {
    let kept = scalar_word(6u) == 1u || philox_word() < scalar_word(4u);
    return select(0.0, 1.0, kept);
}";
    fill(gpu, s, op, [[word as u32, 0], [all as u32, 0]], y)
}

/// Every element by `op`, whose scalars are key and stream of `s`, and two numbers of its own.
fn fill(gpu: &Gpu, s: Philox, op: &str, [a, b]: [[u32; 2]; 2], y: &Tensor) -> Result<()> {
    let stream = s.stream();
    let scalars = [s.key(), [stream as u32, (stream >> 32) as u32], a, b];
    let body = [PHILOX, op, "\n"].concat();
    pointwise(gpu, Acc::F32, &body, &[], whole(y)?, &scalars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tests::valid_body;

    #[test]
    fn bodies_with_random_numbers_are_valid() {
        for kind in ["philox_uniform()", "philox_normal()", "Acc(philox_word())"] {
            let body = format!("{PHILOX}fn op() -> Acc {{ return {kind}; }}\n");
            valid_body(Acc::F32, &body, 0);
        }
    }
}
