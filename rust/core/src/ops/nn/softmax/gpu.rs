//! Softmax and log-softmax, forward and backward.

use crate::ensure;
use crate::error::Result;
use crate::gpu::launch::{Launch, Rows};
use crate::gpu::{params, shader, Acc, Gpu};
use crate::shape::Span;
use crate::tensor::Tensor;
use crate::transfer::{check_contiguous, whole};

/// Elements of a row that one invocation may take: three loops over them stay below 65,535 trips.
const MAX_TRIPS: usize = 20_000;

params! {
    struct Forward {
        rows: u32,
        length: u32,
        inner: u32,
        x_offset: u32,
        y_offset: u32,
        pad: u32,
        least: [u32; 2],
    }
}
params! {
    struct Backward {
        rows: u32,
        length: u32,
        inner: u32,
        y_offset: u32,
        s_offset: u32,
        g_offset: u32,
    }
}
const FLOATS: &[Acc] = &[Acc::F32, Acc::F64];
shader! { static SOFTMAX: Forward = "softmax.wgsl", FLOATS }
shader! { static SOFTMAX_BACKWARD: Backward = "softmax_backward.wgsl", FLOATS }

/// Steps whose elements an invocation keeps: of one tensor, or of two.
const KEPT: [usize; 2] = [16, 8];

/// Records a kernel over the rows of `span` that reads `x` and writes `y`.
fn rows<'a, P: bytemuck::NoUninit>(
    gpu: &Gpu,
    launch: Launch<'a, P>,
    log: bool,
    span: Span,
    p: &P,
    x: &[&'a Tensor],
    y: &Tensor,
) -> Result<()> {
    let halves = |t: &Tensor| t.dtype().size() == 2 && t.offset().is_multiple_of(2);
    let side_by_side = span.inner == 1 && span.length.is_multiple_of(2);
    let pairs = side_by_side && halves(y) && x.iter().all(|x| halves(x));
    let rows = Rows::of(gpu, y.numel(), span.length, pairs, KEPT[x.len() - 1]);
    ensure!(
        span.length <= rows.longest(MAX_TRIPS),
        NoKernel,
        "wgpu: softmax: a row of {} elements",
        span.length
    );
    let mut launch = rows.set(launch.set("LOG", log));
    if let [x] = x {
        launch = launch.prologue("x", whole(x)?, rows.reads(span.length, 3));
    }
    launch.groups(gpu, p, rows.groups(span.lines()))
}

/// `y = softmax(x)` or its logarithm over `span`; both contiguous.
pub fn softmax(gpu: &Gpu, log: bool, span: Span, x: &Tensor, y: &Tensor) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("softmax", &[x, y])?;
    let acc = Acc::of(y.dtype())?;
    let p = Forward {
        rows: span.lines() as u32,
        length: span.length as u32,
        inner: span.inner as u32,
        x_offset: x.offset() as u32,
        y_offset: y.offset() as u32,
        pad: 0,
        least: acc.words(f64::NEG_INFINITY),
    };
    let launch = SOFTMAX.launch(acc).writes("Y", y).reads("X", x);
    let launch = launch.epilogue(whole(y)?);
    rows(gpu, launch, log, span, &p, &[x], y)
}

/// The gradient `y` of the input from the result `s` and its gradient `g`; all contiguous.
pub fn softmax_backward(
    gpu: &Gpu,
    log: bool,
    span: Span,
    s: &Tensor,
    g: &Tensor,
    y: &Tensor,
) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    check_contiguous("softmax_backward", &[s, g, y])?;
    let p = Backward {
        rows: span.lines() as u32,
        length: span.length as u32,
        inner: span.inner as u32,
        y_offset: y.offset() as u32,
        s_offset: s.offset() as u32,
        g_offset: g.offset() as u32,
    };
    let launch = SOFTMAX_BACKWARD.launch(Acc::of(s.dtype())?);
    let launch = launch.writes("Y", y).reads("S", s).reads("G", g);
    let launch = launch.epilogue(whole(y)?);
    rows(gpu, launch, log, span, &p, &[s, g], y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::gpu::testing::{close, gpu, noise};
    use crate::transfer::tests::{fresh, get, put};

    #[test]
    fn softmax_rows_and_columns_match_the_host() {
        let Some((_turn, gpu)) = gpu() else { return };
        for (shape, dim) in [([4, 10, 1], 1), ([2, 300, 5], 1), ([3, 1, 2000], 2)] {
            let n: usize = shape.iter().product();
            let x: Vec<f32> = noise(n, 8).iter().map(|v| v * 20.0).collect();
            let t = put(&shape, DType::F32, &x);
            let span = crate::shape::Span::of(&shape, dim);
            let g = noise(n, 9);
            let tg = put(&shape, DType::F32, &g);
            for log in [false, true] {
                let y = fresh(&shape, DType::F32);
                softmax(gpu, log, span, &t, &y).unwrap();
                let d = fresh(&shape, DType::F32);
                softmax_backward(gpu, log, span, &y, &tg, &d).unwrap();
                let (mut want, mut want_d) = (vec![0.0; n], vec![0.0; n]);
                for o in 0..span.outer {
                    for i in 0..span.inner {
                        let at = |c: usize| (o * span.length + c) * span.inner + i;
                        let top = (0..span.length).map(|c| x[at(c)]).fold(f32::MIN, f32::max);
                        let e = |c: usize| (x[at(c)] as f64 - top as f64).exp();
                        let z: f64 = (0..span.length).map(e).sum();
                        let s = |c| e(c) / z;
                        let gs = |c| {
                            if log {
                                g[at(c)] as f64
                            } else {
                                g[at(c)] as f64 * s(c)
                            }
                        };
                        let dot: f64 = (0..span.length).map(gs).sum();
                        for c in 0..span.length {
                            want[at(c)] = if log { s(c).ln() } else { s(c) };
                            let gc = g[at(c)] as f64;
                            want_d[at(c)] = if log {
                                gc - s(c) * dot
                            } else {
                                s(c) * (gc - dot)
                            };
                        }
                    }
                }
                close(&get(&y), &want, 1e-5);
                close(&get(&d), &want_d, 1e-5);
            }
        }
    }
}
