//! Random numbers from Philox4x32-10, the same bits as on the CPU. Element `i` takes word `i` of
//! the stream, or where 32 bits are too few words `2 i` and `2 i + 1`.

use super::Distribution;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::order::{order, By};
use crate::gpu::pointwise::{drawn, pointwise};
use crate::gpu::{Acc, Gpu, View};
use crate::layout::Layout;
use crate::rng::Philox;
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{is_short, owned, view, whole};
use crate::{bail, ensure};
use smallvec::SmallVec;

/// Functions for random numbers in pointwise bodies, and those of floats.
pub const PHILOX: &str = include_str!("../../../../../shaders/philox.wgsl");
const FLOATS: &str = include_str!("../../../../../shaders/philox_floats.wgsl");
const IMPLICIT: &str = include_str!("../../../../../shaders/implicit.wgsl");
const REJECT: &str = include_str!("../../../../../shaders/philox_reject.wgsl");

/// What [`accepted`] is asked for.
pub(super) const POISSON: &str = "draw_poisson(a)";
pub(super) const BINOMIAL: &str = "draw_binomial(a, b)";
pub(super) const GAMMA: &str = "scaled_gamma(draw_gamma(a), low)";
pub(super) const LOG_GAMMA: &str = "log_gamma(draw_gamma(a))";

const UNIFORM: &str = "scalar(2u) + (scalar(3u) - scalar(2u)) * philox_uniform()";
const NORMAL: &str = "scalar(2u) + scalar(3u) * philox_normal()";
const LOG_NORMAL: &str = "m_exp(scalar(2u) + scalar(3u) * philox_normal())";
const EXPONENTIAL: &str = "-m_log1p(-philox_uniform()) / scalar(2u)";
const CAUCHY: &str =
    "scalar(2u) + scalar(3u) * m_tan(Acc(3.141592653589793) * (philox_uniform() - Acc(0.5)))";
// The number of trials of which only the last succeeds, from the logarithm of what fails.
const GEOMETRIC: &str = "m_max(Acc(1), m_ceil(m_log1p(-philox_uniform()) / scalar(2u)))";

/// Fills `y` with numbers of a distribution.
pub(super) fn draw(gpu: &Gpu, s: Philox, what: Distribution, y: &Tensor) -> Result<()> {
    use Distribution as D;
    let acc = match y.dtype() {
        DType::F64 => Acc::F64,
        _ => Acc::F32,
    };
    let (text, a, b) = match what {
        D::Uniform(a, b) => (UNIFORM, a, b),
        D::Normal(a, b) => (NORMAL, a, b),
        D::LogNormal(a, b) => (LOG_NORMAL, a, b),
        D::Exponential(rate) => (EXPONENTIAL, rate, 0.0),
        D::Cauchy(a, b) => (CAUCHY, a, b),
        D::Geometric(p) => (GEOMETRIC, (-p).ln_1p(), 0.0),
        D::Bernoulli(p) => return bernoulli(gpu, s, p, y),
        D::Range(base, range) => return integers(gpu, s, base, range, y),
        D::Full => return integers(gpu, s, 0, full(y.dtype())?, y),
        D::Permutation => return permutation(gpu, s, y),
    };
    let op = format!("fn op() -> Acc {{ return {text}; }}");
    fill(gpu, acc, s, &[FLOATS, &op], [a, b].map(|v| acc.words(v)), y)
}

/// What a word lies below with probability `p`, and whether every word does.
pub fn below(p: f64) -> (u32, bool) {
    let bound = (p * 4_294_967_296.0).round() as u64;
    // The largest bound that a word can express takes all but one of 2^32.
    (bound.min(u32::MAX as u64) as u32, bound > u32::MAX as u64)
}

/// 1 with probability `p`, else 0: where a word lies below `p * 2^32`.
pub fn bernoulli(gpu: &Gpu, s: Philox, p: f64, y: &Tensor) -> Result<()> {
    let (word, all) = below(p);
    let op = "fn op() -> Acc {
    let kept = scalar_word(6u) == 1u || philox_word() < scalar_word(4u);
    return select(Acc(0), Acc(1), kept);
}";
    let acc = match y.dtype() {
        DType::F64 => Acc::F64,
        _ => Acc::F32,
    };
    fill(gpu, acc, s, &[op], [[word, 0], [all as u32, 0]], y)
}

/// 1 with the probability in `p`, of the shape of `y`, else 0.
pub(super) fn bernoulli_each(gpu: &Gpu, s: Philox, p: &Tensor, y: &Tensor) -> Result<()> {
    let acc = match p.dtype().compute() {
        DType::F64 => Acc::F64,
        _ => Acc::F32,
    };
    let op = "fn op(p: Acc) -> Acc { return select(Acc(0), Acc(1), less(philox_uniform(), p)); }";
    let body = [PHILOX, FLOATS, op, "\n"].concat();
    let layout = p.layout().expand_to(y.shape());
    let p = view(p, &layout)?;
    drawn(gpu, acc, &body, &[p], whole(y)?, &keys(s, [[0; 2]; 2]))
}

/// Numbers that are drawn until one is accepted, of the parameters in `x`: by `call`, where `a` and `b`
/// stand for them, and `low` for `least`.
pub(super) fn accepted(
    gpu: &Gpu,
    s: Philox,
    call: &str,
    x: &[&Tensor],
    least: f64,
    y: &Tensor,
) -> Result<()> {
    let acc = floats_of(y);
    let op = format!(
        "{} let low = scalar(2u); return {call}; }}\n",
        head(x.len())
    );
    let body = [PHILOX, FLOATS, REJECT, &op].concat();
    let own = [acc.words(least), [0; 2]];
    let draw = |x: &[View]| drawn(gpu, acc, &body, x, whole(y)?, &keys(s, own));
    seen(x, y, draw)
}

/// How samples move with their parameters, by `call` of the inputs `a`, `b` and `c`.
pub(super) fn slope(gpu: &Gpu, call: &str, x: &[&Tensor], y: &Tensor) -> Result<()> {
    let op = format!("{} return {call}; }}\n", head(x.len()));
    let body = [IMPLICIT, &op].concat();
    seen(x, y, |x| {
        pointwise(gpu, floats_of(y), &body, x, whole(y)?, &[])
    })
}

fn floats_of(y: &Tensor) -> Acc {
    match y.dtype() {
        DType::F64 => Acc::F64,
        _ => Acc::F32,
    }
}

fn head(inputs: usize) -> &'static str {
    match inputs {
        1 => "fn op(a: Acc) -> Acc {",
        2 => "fn op(a: Acc, b: Acc) -> Acc {",
        _ => "fn op(a: Acc, b: Acc, c: Acc) -> Acc {",
    }
}

/// The inputs as they are seen in the shape of the result.
fn seen(x: &[&Tensor], y: &Tensor, run: impl FnOnce(&[View]) -> Result<()>) -> Result<()> {
    let layouts: SmallVec<[Layout; 3]> =
        x.iter().map(|t| t.layout().expand_to(y.shape())).collect();
    let views = x.iter().zip(&layouts).map(|(t, l)| view(t, l));
    let views: SmallVec<[View; 3]> = views.collect::<Result<_>>()?;
    run(&views)
}

/// How many integers from 0 on `random_()` draws from; 0 where it is all of 64 bits.
fn full(dtype: DType) -> Result<u64> {
    Ok(match dtype {
        DType::Bool => 2,
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::I32 => 1 << 31,
        DType::I64 => 1 << 63,
        DType::BF16 => (1 << 8) + 1,
        DType::F16 => (1 << 11) + 1,
        DType::F32 => (1 << 24) + 1,
        DType::F64 => (1 << 53) + 1,
        other => bail!(NoKernel, "wgpu: random numbers: no {other}"),
    })
}

/// Integers from `base` on, by the remainder of a word, or of two where the range has more bits.
fn integers(gpu: &Gpu, s: Philox, base: i64, range: u64, y: &Tensor) -> Result<()> {
    let narrow = range != 0 && range <= 1 << 32;
    let acc = match (Acc::of(y.dtype())?, narrow) {
        (acc, true) => acc,
        // Counted in integers, and rounded once.
        (Acc::F64 | Acc::I64, false) => Acc::I64,
        _ => bail!(
            NoKernel,
            "wgpu: random numbers: a range of {range} in {}",
            y.dtype()
        ),
    };
    if y.dtype() == DType::F64 && !narrow {
        let wide = Tensor::empty(y.shape(), DType::I64, y.device())?;
        integers(gpu, s, base, range, &wide)?;
        return y.write_from(&wide);
    }
    // Through u64: naga's SPIR-V extends the sign of `i64(u32)`.
    let word = match (range == 1 << 32, acc) {
        (true, Acc::I64) => "i64(u64(philox_word()))",
        (false, Acc::I64) => "i64(u64(philox_word() % scalar_word(6u)))",
        (true, _) => "Acc(philox_word())",
        (false, _) => "Acc(philox_word() % scalar_word(6u))",
    };
    let wide = "fn words() -> u64 {
    let w = philox_pair();
    return u64(w.x) | (u64(w.y) << 32u);
}
fn op() -> Acc {
    let range = u64(scalar_word(6u)) | (u64(scalar_word(7u)) << 32u);
    if (range == 0lu) { return scalar(2u) + bitcast<i64>(words()); }
    return scalar(2u) + bitcast<i64>(words() % range);
}";
    let plain = format!("fn op() -> Acc {{ return scalar(2u) + {word}; }}");
    let op = if narrow { &plain[..] } else { wide };
    let range = [range as u32, (range >> 32) as u32];
    fill(gpu, acc, s, &[op], [acc.int_words(base), range], y)
}

/// The integers below the number of elements, in the order of random keys.
fn permutation(gpu: &Gpu, s: Philox, y: &Tensor) -> Result<()> {
    let n = y.numel();
    let keys = Tensor::empty(&[n], DType::I64, y.device())?;
    integers(gpu, s, 0, 0, &keys)?;
    if !is_short(y.device(), n, DType::I64) {
        let (_, at) = keys.sort(0, false)?;
        return y.write_from(&at.reshape_to(y.shape())?);
    }
    let line = Span {
        outer: 1,
        length: n,
        inner: 1,
    };
    let sorted = order(gpu, whole(&keys)?, line, By::Value { descending: false })?;
    y.write_from(&owned(sorted.positions).reshape_to(y.shape())?)
}

/// The scalars of a body: key and stream, and two numbers of its own.
fn keys(s: Philox, [a, b]: [[u32; 2]; 2]) -> [[u32; 2]; 4] {
    let stream = s.stream();
    [s.key(), [stream as u32, (stream >> 32) as u32], a, b]
}

/// Every element by the function `op` that the texts end with.
fn fill(
    gpu: &Gpu,
    acc: Acc,
    s: Philox,
    texts: &[&str],
    own: [[u32; 2]; 2],
    y: &Tensor,
) -> Result<()> {
    ensure!(
        y.numel() <= u32::MAX as usize,
        NoKernel,
        "wgpu: random numbers: {} elements",
        y.numel()
    );
    let body = [PHILOX, &texts.concat(), "\n"].concat();
    drawn(gpu, acc, &body, &[], whole(y)?, &keys(s, own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::testing::valid_body;

    #[test]
    fn bodies_with_random_numbers_are_valid() {
        for acc in [Acc::F32, Acc::F64] {
            for text in [UNIFORM, NORMAL, LOG_NORMAL, EXPONENTIAL, CAUCHY, GEOMETRIC] {
                let body = format!("{PHILOX}{FLOATS}fn op() -> Acc {{ return {text}; }}\n");
                valid_body(acc, &body, 0);
            }
            for (text, inputs) in [(POISSON, 1), (BINOMIAL, 2), (GAMMA, 1), (LOG_GAMMA, 1)] {
                let op = format!("{} let low = scalar(2u); return {text}; }}\n", head(inputs));
                valid_body(acc, &[PHILOX, FLOATS, REJECT, &op].concat(), inputs);
            }
            for (text, inputs) in [("slope_gamma(a, b)", 2), ("slope_dirichlet(a, b, c)", 3)] {
                let op = format!("{} return {text}; }}\n", head(inputs));
                valid_body(acc, &[IMPLICIT, &op].concat(), inputs);
            }
        }
    }
}
