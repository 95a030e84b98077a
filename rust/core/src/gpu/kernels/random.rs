//! Random numbers from Philox4x32-10, the same bits as on the CPU. Element `i` takes word `i` of
//! the stream.

use super::pointwise::pointwise;
use super::View;
use crate::error::Result;
use crate::gpu::shader::PHILOX;
use crate::gpu::{Acc, Gpu};
use crate::rng::Philox;

/// A stream of random words: the generator's key and the stream's number.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub key: [u32; 2],
    pub stream: u64,
}

impl From<Philox> for Stream {
    fn from(p: Philox) -> Stream {
        Stream {
            key: p.key(),
            stream: p.stream(),
        }
    }
}

impl Stream {
    fn scalars(&self, a: f64, b: f64) -> [[u32; 2]; 4] {
        let s = self.stream;
        [
            self.key,
            [s as u32, (s >> 32) as u32],
            Acc::F32.words(a),
            Acc::F32.words(b),
        ]
    }
}

/// Uniform in [low, high).
pub fn uniform(gpu: &Gpu, s: Stream, low: f64, high: f64, y: View) -> Result<()> {
    let op = "fn op() -> Acc { return scalar(2u) + (scalar(3u) - scalar(2u)) * philox_uniform(); }";
    fill(gpu, op, &s.scalars(low, high), &[], y)
}

/// Normal, from Box and Muller's pairs.
pub fn normal(gpu: &Gpu, s: Stream, mean: f64, std: f64, y: View) -> Result<()> {
    let op = "fn op() -> Acc { return scalar(2u) + scalar(3u) * philox_normal(); }";
    fill(gpu, op, &s.scalars(mean, std), &[], y)
}

/// 1 with probability `p`, else 0: where a word lies below `p * 2^32`.
pub fn bernoulli(gpu: &Gpu, s: Stream, p: f64, y: View) -> Result<()> {
    let bound = (p * 4_294_967_296.0).round() as u64;
    let mut scalars = s.scalars(0.0, 0.0);
    // The largest bound that a word can express takes all but one of 2^32.
    scalars[2] = [bound.min(u32::MAX as u64) as u32, 0];
    scalars[3] = [(bound > u32::MAX as u64) as u32, 0];
    let op = "fn op() -> Acc {
    let kept = scalar_word(6u) == 1u || philox_word() < scalar_word(4u);
    return select(0.0, 1.0, kept);
}";
    fill(gpu, op, &scalars, &[], y)
}

/// `y = x * scale` where an element is kept, with probability `keep`, else 0. [`bernoulli`] with
/// the same stream gives the mask.
pub fn dropout(gpu: &Gpu, s: Stream, keep: f64, scale: f64, x: View, y: View) -> Result<()> {
    let op = "fn op(a: Acc) -> Acc {
    return select(0.0, a * scalar(3u), philox_uniform() < scalar(2u));
}";
    fill(gpu, op, &s.scalars(keep, scale), &[x], y)
}

fn fill(gpu: &Gpu, op: &str, scalars: &[[u32; 2]], x: &[View], y: View) -> Result<()> {
    let body = [PHILOX, op, "\n"].concat();
    pointwise(gpu, Acc::F32, &body, x, y, scalars)
}
