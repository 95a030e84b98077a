//! Convolution as matrix products over patches that are gathered tile by tile.

pub mod direct;
pub mod lanes;
pub mod pairs;
pub mod single;
pub mod weight;
pub mod window;
pub mod winograd;

use crate::alloc;
use crate::cpu::gemm::gemm;
use crate::cpu::number::Number;
use crate::cpu::pool::{parallel_for, Ptr};
use lanes::{Kernels, CHAIN};

/// Elements of a tile of patches: half of a 2 MB L2 in f32.
const TILE: usize = 1 << 18;
/// Products of plain loops below which a second thread costs more than it gains.
const FEW: usize = 1 << 14;

/// The inner loops of convolutions of a type.
pub trait Loops: Number {
    #[doc(hidden)]
    fn kernels() -> &'static Kernels<Self>;
}
macro_rules! loops {
    ($($t:ident by $kernels:ident),*) => { $(
        impl Loops for $t {
            fn kernels() -> &'static Kernels<$t> {
                lanes::$kernels()
            }
        }
    )* };
}
loops!(f32 by float, f64 by double, i64 by whole);

/// Sizes of a convolution over three spatial dimensions; channel counts are per group.
#[derive(Clone, Debug)]
pub struct Geometry {
    pub batch: usize,
    pub groups: usize,
    pub inputs: usize,
    pub outputs: usize,
    pub input: [usize; 3],
    pub kernel: [usize; 3],
    pub output: [usize; 3],
    pub stride: [isize; 3],
    pub padding: [isize; 3],
    pub dilation: [isize; 3],
}

/// Adds what each of `channels` channels of `taps` products adds, a few channels at a time: the sum
/// of one chain of products after another.
fn in_chains<T: Loops>(
    y: &mut [T],
    channels: usize,
    taps: usize,
    mut add: impl FnMut(&mut [T], usize),
) {
    let each = (CHAIN.1 / taps.max(1)).max(1);
    let mut part = Vec::new();
    for first in (0..channels).step_by(each) {
        let chain = first..channels.min(first + each);
        if first == 0 {
            chain.for_each(|c| add(y, c));
            continue;
        }
        part.clear();
        alloc::resize(&mut part, y.len(), T::default());
        chain.for_each(|c| add(&mut part, c));
        for (y, &part) in y.iter_mut().zip(&part) {
            *y = y.plus(part);
        }
    }
}

impl Geometry {
    pub fn input_len(&self) -> usize {
        self.input.iter().product()
    }
    pub fn output_len(&self) -> usize {
        self.output.iter().product()
    }
    pub fn kernel_len(&self) -> usize {
        self.kernel.iter().product()
    }
    pub fn is_empty(&self) -> bool {
        let counts = [self.batch, self.groups, self.inputs, self.outputs];
        let sizes = [self.input, self.kernel, self.output];
        counts.contains(&0) || sizes.as_flattened().contains(&0)
    }
    /// Whether patches are the input itself.
    fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.padding == [0; 3]
    }

    /// Calls `f(column, count, source)` for the runs of output positions `from..to` that read the
    /// input through kernel element `k`: `source` is the address relative to the channel and its
    /// step, or `None` where the run lies in the padding.
    #[inline(always)]
    fn runs(
        &self,
        k: [usize; 3],
        from: usize,
        to: usize,
        mut f: impl FnMut(usize, usize, Option<(usize, usize)>),
    ) {
        let [_, oh, ow] = self.output;
        let [id, ih, iw] = self.input.map(|n| n as isize);
        let step = self.stride[2];
        let base = k[2] as isize * self.dilation[2] - self.padding[2];
        // Columns whose source lies inside the row.
        let first = (-base).max(0).div_euclid(step) as usize
            + ((-base).max(0).rem_euclid(step) != 0) as usize;
        let end = if iw - base > 0 {
            ((iw - 1 - base) / step + 1) as usize
        } else {
            0
        };
        let mut at = from;
        while at < to {
            let (row, x) = (at / ow, at % ow);
            let n = (ow - x).min(to - at);
            let z = (row / oh) as isize * self.stride[0] - self.padding[0]
                + k[0] as isize * self.dilation[0];
            let y = (row % oh) as isize * self.stride[1] - self.padding[1]
                + k[1] as isize * self.dilation[1];
            let column = at - from;
            at += n;
            let lo = first.clamp(x, x + n);
            let hi = end.clamp(lo, x + n);
            if z < 0 || z >= id || y < 0 || y >= ih || lo == hi {
                f(column, n, None);
                continue;
            }
            if lo > x {
                f(column, lo - x, None);
            }
            let source = (z * ih + y) * iw + lo as isize * step + base;
            f(
                column + lo - x,
                hi - lo,
                Some((source as usize, step as usize)),
            );
            if hi < x + n {
                f(column + hi - x, x + n - hi, None);
            }
        }
    }

    fn each_tap(&self, mut f: impl FnMut(usize, [usize; 3])) {
        let mut i = 0;
        for z in 0..self.kernel[0] {
            for y in 0..self.kernel[1] {
                for x in 0..self.kernel[2] {
                    f(i, [z, y, x]);
                    i += 1;
                }
            }
        }
    }

    /// Patches of `channels` channels for output positions `from..to`, one row per kernel element.
    unsafe fn gather<T: Loops>(
        &self,
        x: *const T,
        channels: usize,
        from: usize,
        to: usize,
        out: *mut T,
    ) {
        // SAFETY: runs lie inside the planes of `x`, and rows of patches inside `out`.
        unsafe {
            let (len, width, taps) = (self.input_len(), to - from, self.kernel_len());
            for c in 0..channels {
                let x = x.add(c * len);
                self.each_tap(|i, k| {
                    let row = out.add((c * taps + i) * width);
                    self.runs(k, from, to, |column, n, source| {
                        let to = std::slice::from_raw_parts_mut(row.add(column), n);
                        match source {
                            None => to.fill(T::default()),
                            Some((at, 1)) => {
                                to.copy_from_slice(std::slice::from_raw_parts(x.add(at), n))
                            }
                            Some((at, step)) => {
                                let mut from = x.add(at);
                                for v in to {
                                    *v = *from;
                                    from = from.wrapping_add(step);
                                }
                            }
                        }
                    });
                });
            }
        }
    }

    /// The convolution with nothing laid out: slow, for taps that lie far apart.
    ///
    /// # Safety
    /// The addresses hold tensors of these sizes, `bias` may be null; nobody else touches `y`.
    pub unsafe fn forward<T: Loops>(&self, x: *const T, w: *const T, bias: *const T, y: *mut T) {
        // SAFETY: rows are planes of the result, which one thread writes, and taps that `runs`
        // names lie inside the input.
        unsafe {
            let (len, taps) = (self.output_len(), self.kernel_len());
            let (x, w, bias, y) = (Ptr::read(x), Ptr::read(w), Ptr::read(bias), Ptr::new(y));
            let rows = self.batch * self.groups * self.outputs;
            let grain = FEW / (self.inputs * taps * len).max(1) + 1;
            parallel_for(rows, grain, |range| {
                for row in range {
                    let (plane, channel) = (row / self.outputs, row % (self.groups * self.outputs));
                    let y = std::slice::from_raw_parts_mut(y.at(row * len), len);
                    y.fill(if bias.get().is_null() {
                        T::default()
                    } else {
                        *bias.at(channel)
                    });
                    in_chains(y, self.inputs, taps, |y, c| {
                        let x = x.at((plane * self.inputs + c) * self.input_len());
                        self.each_tap(|i, k| {
                            let v = *w.at((channel * self.inputs + c) * taps + i);
                            self.runs(k, 0, len, |column, n, source| {
                                let Some((at, step)) = source else { return };
                                for j in 0..n {
                                    y[column + j] =
                                        y[column + j].plus_product(v, *x.add(at + j * step));
                                }
                            });
                        });
                    });
                }
            });
        }
    }

    /// The gradient for the input, as slow.
    ///
    /// # Safety
    /// As for [`Geometry::forward`].
    pub unsafe fn input<T: Loops>(&self, g: *const T, w: *const T, bias: *const T, x: *mut T) {
        // SAFETY: rows are planes of the gradient, which one thread writes, and taps that `runs`
        // names lie inside it.
        unsafe {
            let (len, taps) = (self.output_len(), self.kernel_len());
            let (g, w, bias, x) = (Ptr::read(g), Ptr::read(w), Ptr::read(bias), Ptr::new(x));
            let rows = self.batch * self.groups * self.inputs;
            let grain = FEW / (self.outputs * taps * len).max(1) + 1;
            parallel_for(rows, grain, |range| {
                for row in range {
                    let (plane, channel) = (row / self.inputs, row % (self.groups * self.inputs));
                    let (group, c) = (channel / self.inputs, channel % self.inputs);
                    let x = x.at(row * self.input_len());
                    let x = std::slice::from_raw_parts_mut(x, self.input_len());
                    x.fill(if bias.get().is_null() {
                        T::default()
                    } else {
                        *bias.at(channel)
                    });
                    in_chains(x, self.outputs, taps, |x, o| {
                        let g = g.at((plane * self.outputs + o) * len);
                        self.each_tap(|i, k| {
                            let o = group * self.outputs + o;
                            let v = *w.at((o * self.inputs + c) * taps + i);
                            self.runs(k, 0, len, |column, n, source| {
                                let Some((at, step)) = source else { return };
                                for j in 0..n {
                                    let x = &mut x[at + j * step];
                                    *x = x.plus_product(v, *g.add(column + j));
                                }
                            });
                        });
                    });
                }
            });
        }
    }

    /// The gradient of the kernel: `w[o, i, k] = sum of g[n, o, l] * x[n, i, l + k]`.
    ///
    /// # Safety
    /// As for [`Geometry::forward`].
    pub unsafe fn weight<T: Loops>(&self, x: *const T, g: *const T, w: *mut T) {
        // SAFETY: samples, channels and tiles lie inside the tensors, `patches` has room for a
        // tile, and tasks have sums of their own.
        unsafe {
            let (len, taps) = (self.output_len(), self.kernel_len());
            let total = self.groups * self.outputs * self.inputs * taps;
            if total == 0 {
                return;
            }
            std::slice::from_raw_parts_mut(w, total).fill(T::default());
            let block = self
                .inputs
                .div_ceil(16)
                .max(64usize.div_ceil(taps))
                .min(self.inputs);
            let blocks = self.inputs.div_ceil(block);
            // Few channels: sum parts of the batch on their own, then the parts in order. How many
            // depends on sizes alone, so that results do not depend on the number of threads.
            let parts = (16 / (self.groups * blocks)).clamp(1, self.batch.max(1));
            let mut partial: Vec<T> = alloc::full(T::default(), (parts - 1) * total);
            let tile = (TILE / (block * taps).max(1)).max(64).min(len).max(1);
            let (x, g, w) = (Ptr::read(x), Ptr::read(g), Ptr::new(w));
            let rest = Ptr::new(partial.as_mut_ptr());
            let direct = self.is_pointwise();
            let work = self.batch * self.outputs * self.inputs * taps * len / (blocks * parts);
            parallel_for(
                self.groups * blocks * parts,
                16 * FEW / work.max(1) + 1,
                |range| {
                    let mut patches: Vec<T> = Vec::new();
                    if !direct {
                        alloc::resize(&mut patches, block * taps * tile, T::default());
                    }
                    for task in range {
                        let part = task / (self.groups * blocks);
                        let (group, first) = (task / blocks % self.groups, task % blocks * block);
                        let channels = block.min(self.inputs - first);
                        let base = if part == 0 {
                            w
                        } else {
                            Ptr::new(rest.at((part - 1) * total))
                        };
                        let w = base.at((group * self.outputs * self.inputs + first) * taps);
                        let samples = self.batch * part / parts..self.batch * (part + 1) / parts;
                        for n in samples {
                            let plane = n * self.groups + group;
                            let x = x.at((plane * self.inputs + first) * self.input_len());
                            let g = g.at(plane * self.outputs * len);
                            for from in (0..len).step_by(tile) {
                                let to = (from + tile).min(len);
                                let width = to - from;
                                let (b, step) = if direct {
                                    (x.add(from) as *const T, len)
                                } else {
                                    self.gather(x, channels, from, to, patches.as_mut_ptr());
                                    (patches.as_ptr(), width)
                                };
                                gemm::<T>(
                                    self.outputs,
                                    channels * taps,
                                    width,
                                    T::ONE,
                                    g.add(from),
                                    len as isize,
                                    1,
                                    b,
                                    1,
                                    step as isize,
                                    T::ONE,
                                    w,
                                    (self.inputs * taps) as isize,
                                    1,
                                );
                            }
                        }
                    }
                },
            );
            let w = std::slice::from_raw_parts_mut(w.get(), total);
            for part in partial.chunks(total) {
                for (a, &b) in w.iter_mut().zip(part) {
                    *a = a.plus(b);
                }
            }
        }
    }
}
