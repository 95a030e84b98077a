//! Maxima of 2-d windows and their gradients. One dimension is a height of one.

use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::nn::resample::gpu::{pair, Pool2d};
use crate::tensor::Tensor;
use crate::transfer::whole;

params! {
    struct Max {
        n: u32,
        x_offset: u32,
        y_offset: u32,
        i_offset: u32,
        in_size: [u32; 2],
        out_size: [u32; 2],
        kernel: [u32; 2],
        stride: [u32; 2],
        padding: [u32; 2],
        dilation: [u32; 2],
    }
}
shader! { static MAX_POOL: Max = "max_pool2d.wgsl", Acc::ALL }
shader! { static MAX_POOL_BACKWARD: Max = "max_pool2d_backward.wgsl", Acc::FLOAT }

impl Pool2d {
    /// The parameters of maxima for results of `n` elements.
    fn max(&self, n: usize, [x, y, index]: [&Tensor; 3]) -> Max {
        Max {
            n: n as u32,
            x_offset: x.offset() as u32,
            y_offset: y.offset() as u32,
            i_offset: index.offset() as u32,
            in_size: pair(self.input),
            out_size: pair(self.output),
            kernel: pair(self.kernel),
            stride: pair(self.stride),
            padding: pair(self.padding),
            dilation: pair(self.dilation),
        }
    }
}

/// The largest element of each window of `x` [planes, input], and its index in the plane (int64); of
/// padding alone the least value and -1.
pub fn max(gpu: &Gpu, g: &Pool2d, x: &Tensor, y: &Tensor, index: &Tensor) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    g.check(&[x, y, index])?;
    let acc = Acc::of(x.dtype())?;
    let least = match acc {
        Acc::F32 | Acc::F64 => acc.words(f64::NEG_INFINITY),
        _ => acc.int_words(x.dtype().limits().0),
    };
    MAX_POOL
        .launch(acc)
        .set("LEAST0", least[0])
        .set("LEAST1", least[1])
        .writes("Y", y)
        .writes("I", index)
        .reads("X", x)
        .each(gpu, &g.max(y.numel(), [x, y, index]), y.offset(), y.numel())
}

/// The gradient `y` of the input for gradient `x` of the largest elements at `index`.
pub fn max_backward(gpu: &Gpu, g: &Pool2d, x: &Tensor, index: &Tensor, y: &Tensor) -> Result<()> {
    if y.numel() == 0 {
        return Ok(());
    }
    g.check(&[x, index, y])?;
    MAX_POOL_BACKWARD
        .launch(Acc::F32)
        .writes("Y", y)
        .reads("X", x)
        .reads("I", index)
        .epilogue(whole(y)?)
        .each(gpu, &g.max(y.numel(), [x, y, index]), y.offset(), y.numel())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::gpu::testing::{gpu, noise};
    use crate::transfer::tests::{fresh, get, put};

    #[test]
    fn max_pool2d_of_padded_planes_matches_the_host() {
        let Some((_turn, gpu)) = gpu() else { return };
        let x = noise(2 * 30, 5);
        let g = Pool2d {
            input: [5, 6],
            output: [3, 3],
            kernel: [3, 3],
            stride: [2, 2],
            padding: [1, 1],
            dilation: [1, 1],
        };
        let tx = put(&[2, 5, 6], DType::F32, &x);
        let y = fresh(&[2, 3, 3], DType::F32);
        let index = fresh(&[2, 3, 3], DType::I64);
        max(gpu, &g, &tx, &y, &index).unwrap();
        let (y, index) = (get::<f32>(&y), get::<i64>(&index));
        for e in 0..18 {
            let (p, i, j) = (e / 9, e / 3 % 3, e % 3);
            let mut best = f32::MIN;
            for (r, s) in (0..9).map(|k| (2 * i + k / 3, 2 * j + k % 3)) {
                if (1..6).contains(&r) && (1..7).contains(&s) {
                    best = best.max(x[p * 30 + (r - 1) * 6 + s - 1]);
                }
            }
            assert_eq!(y[e], best);
            assert_eq!(x[p * 30 + index[e] as usize], best);
        }
    }
}
