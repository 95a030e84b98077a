//! The shortest way for small calls of the plainest kind: dense float32 in host memory, together
//! with numbers and rows that broadcast.

use crate::cpu::pointwise::{Kernel, MAX_INPUTS};
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// Most elements of a result: beyond, a second thread or the host's lock may matter.
const SMALL: usize = 1 << 13;
/// Elements of the buffers on the stack that constants fill.
const BLOCK: usize = 256;
/// The same of buffers that hold a row several times, so that the kernel is called less often.
const REPEATED: usize = 1024;

/// How an operand is read.
#[derive(Clone, Copy)]
enum Read {
    /// Element by element.
    Dense(*const f32),
    /// The same row again and again.
    Row(*const f32),
    Constant(f32),
}

/// What a call reads, block by block.
pub struct Call<'a> {
    /// The operand that has the result's shape.
    leader: &'a Tensor,
    reads: [Read; MAX_INPUTS],
    count: usize,
    /// The length of rows; 0 where every operand is dense or a constant.
    row: usize,
    constants: bool,
}

#[inline(always)]
fn is_plain(t: &Tensor) -> bool {
    t.dtype() == DType::F32 && t.device() == Device::Cpu && !t.is_sparse() && t.is_contiguous()
}

/// The value of a number, or of a tensor of one element, that float32 operands do not widen for.
#[inline(always)]
fn constant(t: &Tensor, leader: &Tensor) -> Option<f32> {
    if t.device() != Device::Cpu || t.numel() != 1 || t.ndim() > leader.ndim() || t.is_sparse() {
        return None;
    }
    // SAFETY: one element of the type, in host memory.
    unsafe {
        match t.dtype() {
            DType::F32 => Some(*t.ptr::<f32>()),
            DType::F64 if t.is_wrapped() => Some(*t.ptr::<f64>() as f32),
            DType::I64 if t.is_wrapped() => Some(*t.ptr::<i64>() as f32),
            _ => None,
        }
    }
}

impl<'a> Call<'a> {
    /// A call that has not looked at its operands; see [`Call::fits`].
    #[inline(always)]
    pub fn new(x: &[&'a Tensor]) -> Call<'a> {
        Call {
            leader: x[0],
            reads: [Read::Constant(0.0); MAX_INPUTS],
            count: x.len(),
            row: 0,
            constants: false,
        }
    }

    /// Settles how these operands are read; `false` where it takes the usual way.
    // In place: a call that is handed over is copied in wide words, and loads of what narrower
    // stores wrote are store-forwarding stalls.
    pub fn fits(&mut self, x: &[&'a Tensor]) -> bool {
        let mut leader = x[0];
        for &t in &x[1..] {
            let larger = t.numel() > leader.numel()
                || (t.numel() == leader.numel() && t.ndim() > leader.ndim());
            if larger || leader.is_wrapped() {
                leader = t;
            }
        }
        let n = leader.numel();
        if n > SMALL || x.len() > MAX_INPUTS || leader.is_wrapped() || !is_plain(leader) {
            return false;
        }
        self.leader = leader;
        for (read, &t) in self.reads.iter_mut().zip(x) {
            *read = if is_plain(t) && !t.is_wrapped() && t.shape() == leader.shape() {
                Read::Dense(t.ptr())
            } else if let Some(value) = constant(t, leader) {
                self.constants = true;
                Read::Constant(value)
            } else if is_plain(t) && t.ndim() <= leader.ndim() {
                let ones = t.shape().iter().take_while(|&&d| d == 1).count();
                let tail = &t.shape()[ones..];
                let len = t.numel();
                if !leader.shape().ends_with(tail) || (self.row != 0 && self.row != len) {
                    return false;
                }
                self.row = len;
                Read::Row(t.ptr())
            } else {
                return false;
            };
        }
        true
    }

    /// Whether writing to `out`, element after element, leaves what is still to be read alone.
    pub fn may_write(&self, x: &[&Tensor], out: &Tensor) -> bool {
        is_plain(out)
            && out.shape() == self.leader.shape()
            && x.iter().zip(&self.reads).all(|(t, read)| {
                !t.shares_storage(out)
                    || (matches!(read, Read::Dense(_)) && t.offset() == out.offset())
            })
    }

    /// A new tensor for the result.
    #[inline]
    pub fn result(&self, dtype: DType) -> Result<Tensor> {
        Tensor::empty(self.leader.shape(), dtype, Device::Cpu)
    }

    /// Applies the kernel; a result of type bool takes which values are not zero.
    ///
    /// # Safety
    /// `params` is the kernel's own, and it takes as many operands as there are; `y` is from
    /// [`Call::result`] or passed [`Call::may_write`].
    #[inline]
    pub unsafe fn run(&self, kernel: Kernel<f32>, params: *const (), y: &Tensor) {
        // SAFETY: operands and result have `n` elements, or a row, as `reads` says; buffers hold
        // BLOCK, and no step is longer.
        unsafe {
            let n = self.leader.numel();
            let narrow = y.dtype() == DType::Bool;
            let mut at = [std::ptr::null::<f32>(); MAX_INPUTS];
            if self.row == 0 && !self.constants && !narrow {
                for (at, read) in at.iter_mut().zip(&self.reads[..self.count]) {
                    if let Read::Dense(p) = read {
                        *at = *p;
                    }
                }
                return kernel(params, at.as_ptr(), y.ptr::<f32>(), n);
            }
            if self.row != 0 && 2 * self.row <= REPEATED.min(n) {
                return self.repeated(kernel, params, y, n);
            }
            let step = match (self.row, self.constants || narrow) {
                (0, _) => BLOCK,
                (row, false) => row,
                (row, true) => row.min(BLOCK),
            };
            let mut constants =
                [[const { std::mem::MaybeUninit::<f32>::uninit() }; BLOCK]; MAX_INPUTS];
            for (buffer, read) in constants.iter_mut().zip(&self.reads[..self.count]) {
                if let Read::Constant(value) = read {
                    buffer[..step.min(n)].fill(std::mem::MaybeUninit::new(*value));
                }
            }
            let mut wide = [const { std::mem::MaybeUninit::<f32>::uninit() }; BLOCK];
            let (mut start, mut column) = (0, 0);
            while start < n {
                let mut len = step.min(n - start);
                if self.row != 0 {
                    len = len.min(self.row - column);
                }
                for (i, read) in self.reads[..self.count].iter().enumerate() {
                    at[i] = match *read {
                        Read::Dense(p) => p.add(start),
                        Read::Row(p) => p.add(column),
                        Read::Constant(_) => constants[i].as_ptr().cast(),
                    };
                }
                if narrow {
                    let wide = wide.as_mut_ptr().cast::<f32>();
                    kernel(params, at.as_ptr(), wide, len);
                    let to = y.ptr::<bool>().add(start);
                    for i in 0..len {
                        *to.add(i) = *wide.add(i) != 0.0;
                    }
                } else {
                    kernel(params, at.as_ptr(), y.ptr::<f32>().add(start), len);
                }
                start += len;
                column += len;
                if column == self.row {
                    column = 0;
                }
            }
        }
    }
    /// [`Call::run`] with several rows at a time.
    #[inline(never)]
    unsafe fn repeated(&self, kernel: Kernel<f32>, params: *const (), y: &Tensor, n: usize) {
        // SAFETY: operands and result have `n` elements, or a row; buffers hold REPEATED, and no
        // step is longer.
        unsafe {
            // Whole cache lines where that is possible, or every second step would straddle them.
            let unit = self.row << (4 - self.row.trailing_zeros().min(4));
            let unit = if unit <= REPEATED { unit } else { self.row };
            let step = (REPEATED / unit * unit).min(n);
            let empty = const { std::mem::MaybeUninit::<f32>::uninit() };
            let mut buffers = [[empty; REPEATED]; MAX_INPUTS];
            let mut wide = [empty; REPEATED];
            let mut at = [std::ptr::null::<f32>(); MAX_INPUTS];
            for (i, read) in self.reads[..self.count].iter().enumerate() {
                let buffer = buffers[i].as_mut_ptr().cast::<f32>();
                at[i] = buffer;
                match *read {
                    Read::Dense(p) => at[i] = p,
                    Read::Constant(value) => {
                        std::slice::from_raw_parts_mut(buffer, step).fill(value)
                    }
                    Read::Row(p) => {
                        std::ptr::copy_nonoverlapping(p, buffer, self.row);
                        let mut filled = self.row;
                        while filled < step {
                            let more = filled.min(step - filled);
                            std::ptr::copy_nonoverlapping(buffer, buffer.add(filled), more);
                            filled += more;
                        }
                    }
                }
            }
            let narrow = y.dtype() == DType::Bool;
            let mut start = 0;
            while start < n {
                let len = step.min(n - start);
                let target = match narrow {
                    true => wide.as_mut_ptr().cast::<f32>(),
                    false => y.ptr::<f32>().add(start),
                };
                kernel(params, at.as_ptr(), target, len);
                if narrow {
                    let to = y.ptr::<bool>().add(start);
                    for i in 0..len {
                        *to.add(i) = *target.add(i) != 0.0;
                    }
                }
                start += len;
                for (at, read) in at.iter_mut().zip(&self.reads[..self.count]) {
                    if let Read::Dense(_) = read {
                        *at = at.wrapping_add(len);
                    }
                }
            }
        }
    }
}
