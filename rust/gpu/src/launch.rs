//! A dispatch being put together: a shader, its constants, what it binds, and how many invocations.

use super::binding::{Bound, Operand};
use super::command_list::{Told, Tolds};
use super::pipeline::{Kernel, Tail};
use super::shader::{Acc, Shader, Source};
use super::{Gpu, View};
use crate::dtype::{self, DType};
use crate::ensure;
use crate::error::Result;
use smallvec::{smallvec, SmallVec};

pub use super::geometry::WORKGROUP;

pub(super) const NOTHING: Tail = Tail {
    text: "",
    key: [0; 2],
};

/// An operand that a kernel may take as it is made.
#[derive(Clone, Copy)]
pub(super) struct Prologue<'a> {
    /// Of its memory in the kernel's text.
    pub name: &'static str,
    pub view: View<'a>,
    /// How often each element is read, and how many one invocation reads.
    pub times: usize,
    pub reads: usize,
}

/// Bindings follow one convention: 0 is the parameter block, then come the buffers that the kernel
/// writes, then those that it only reads; one may be both.
pub struct Launch<'a, P> {
    shader: &'a Shader<P>,
    /// Behind a pointer, since each method moves it.
    draft: Box<Draft<'a>>,
}

/// What is known of a dispatch so far.
struct Draft<'a> {
    acc: Acc,
    entry: &'static str,
    tail: [Tail<'a>; 2],
    constants: SmallVec<[(&'static str, u32); 12]>,
    buffers: SmallVec<[Bound<'a>; 9]>,
    /// Whether an operand is not on the GPU.
    hosted: bool,
    writes: usize,
    result: Option<View<'a>>,
    taken: SmallVec<[Prologue<'a>; 2]>,
    /// Buffers, as bits, that the kernel does not look at.
    unread: u32,
    told: Tolds,
}

impl<P: bytemuck::NoUninit> Shader<P> {
    /// A dispatch that computes in `acc`.
    pub fn launch(&self, acc: Acc) -> Launch<'_, P> {
        let draft = Box::new(Draft {
            acc,
            entry: "main",
            tail: [NOTHING; 2],
            constants: smallvec![],
            buffers: smallvec![],
            hosted: false,
            writes: 0,
            result: None,
            taken: smallvec![],
            unread: 0,
            told: Tolds::new(),
        });
        Launch {
            shader: self,
            draft,
        }
    }
}

impl<'a, P: bytemuck::NoUninit> Launch<'a, P> {
    /// Another function than `main`.
    pub fn entry(mut self, entry: &'static str) -> Self {
        self.draft.entry = entry;
        self
    }

    /// Generated text behind the file, which calls no function of the math files.
    pub fn followed_by(self, text: impl Into<Tail<'a>>) -> Self {
        self.tail([NOTHING, text.into()])
    }

    /// Generated text behind the file: a body with what it may call, and what calls it.
    pub(super) fn tail(mut self, tail: [Tail<'a>; 2]) -> Self {
        self.draft.tail = tail;
        self
    }

    /// The value of an `override`.
    pub fn set(mut self, name: &'static str, value: impl Into<u32>) -> Self {
        self.draft.constants.push((name, value.into()));
        self
    }

    /// Binds what the kernel writes; the constant `format` tells it the type of the elements.
    pub fn writes(self, format: &'static str, x: impl Into<Operand<'a>>) -> Self {
        let x = x.into();
        self.set(format, x.dtype as u32).writes_words(x)
    }

    /// Binds what the kernel writes, whose type it knows.
    pub fn writes_words(mut self, x: impl Into<Operand<'a>>) -> Self {
        let draft = &mut *self.draft;
        let first = draft.hosted || draft.writes == draft.buffers.len();
        debug_assert!(first, "written buffers come first");
        draft.writes += 1;
        self.bind(x.into())
    }

    /// Binds what the kernel reads; the constant `format` tells it the type of the elements.
    pub fn reads(self, format: &'static str, x: impl Into<Operand<'a>>) -> Self {
        let x = x.into();
        self.set(format, x.dtype as u32).reads_words(x)
    }

    /// Binds what the kernel reads, whose type it knows.
    pub fn reads_words(self, x: impl Into<Operand<'a>>) -> Self {
        self.bind(x.into())
    }

    /// [`Launch::reads`] of what may be absent; what is bound in its place the kernel does not look at.
    pub fn reads_if(mut self, format: &'static str, x: Option<impl Into<Operand<'a>>>) -> Self {
        if let Some(x) = x {
            return self.reads(format, x);
        }
        let draft = &mut *self.draft;
        draft.unread |= 1 << draft.buffers.len();
        let other = draft.buffers.get(draft.writes).copied();
        draft.bind(other);
        self
    }

    fn bind(mut self, x: Operand<'a>) -> Self {
        let bound = x.buffer.map(|buffer| Bound {
            buffer,
            window: x.window.or(buffer.window()),
        });
        self.draft.bind(bound);
        self
    }

    /// Says that `len` words of the parameters, from byte `at` on, are those that the op gives anew in each
    /// call, from number `from` on (see `Replay::args`).
    pub fn told(self, gpu: &Gpu, at: usize, from: usize, len: usize) -> Self {
        match gpu.step() {
            Some(step) => self.told_of(Told {
                step,
                word: at / 4,
                from,
                len,
            }),
            None => self,
        }
    }

    /// [`Launch::told`] of these words.
    pub(super) fn told_of(mut self, told: Told) -> Self {
        self.draft.told.push(told);
        self
    }

    /// The first buffer is written by `store_y` alone, each element of `y` once: pointwise kernels
    /// that follow may take the value there and then.
    pub fn epilogue(mut self, y: impl Into<Option<View<'a>>>) -> Self {
        self.draft.result = y.into();
        self
    }

    /// The buffer of this operand, called `name` in the text, is read by `read_` and that name alone, each element
    /// so many times, and at most so many by one invocation: pointwise kernels that make them, of which nobody else
    /// will read any, may run there and then.
    pub fn prologue(
        mut self,
        name: &'static str,
        view: View<'a>,
        (times, reads): (usize, usize),
    ) -> Self {
        self.draft.taken.push(Prologue {
            name,
            view,
            times,
            reads,
        });
        self
    }

    /// Records `n` invocations, in workgroups of [`WORKGROUP`].
    pub fn threads(self, gpu: &Gpu, params: &P, n: usize) -> Result<()> {
        self.groups(gpu, params, n.div_ceil(WORKGROUP))
    }

    /// Records what a kernel has that stores by `store_each`: an invocation for each word that `n` elements from
    /// `offset` on touch.
    pub fn each(mut self, gpu: &Gpu, params: &P, offset: usize, n: usize) -> Result<()> {
        let format = self
            .draft
            .constants
            .iter()
            .rev()
            .find(|(name, _)| *name == "Y");
        let of = |t: &&DType| format.is_some_and(|(_, value)| *value == **t as u32);
        let size = dtype::ALL.iter().find(of).map_or(4, |t| t.size());
        let lanes = 4 / size.min(4);
        if !offset.is_multiple_of(lanes) {
            // What runs in the place of its stores takes words that begin with the first element.
            self.draft.result = None;
        }
        let words = (offset + n).div_ceil(lanes) - offset / lanes;
        self.set("WORDS", lanes > 1).threads(gpu, params, words)
    }

    /// Records `n` workgroups.
    pub fn groups(self, gpu: &Gpu, params: &P, n: usize) -> Result<()> {
        self.record(gpu, bytemuck::bytes_of(params), n)
    }

    /// Records `n` workgroups with the beginning of a parameter block.
    pub(super) fn record(self, gpu: &Gpu, params: &[u8], n: usize) -> Result<()> {
        self.draft.record(&self.shader.source, gpu, params, n)
    }

    /// [`Launch::record`] behind all that has to come before.
    pub(super) fn record_settled(self, gpu: &Gpu, params: &[u8], n: usize) -> Result<()> {
        let source = &self.shader.source;
        self.draft.record_settled(source, gpu, params, n)
    }
}

impl<'a> Draft<'a> {
    fn bind(&mut self, bound: Option<Bound<'a>>) {
        match bound {
            Some(bound) => self.buffers.push(bound),
            None => self.hosted = true,
        }
    }

    fn record(&self, source: &Source, gpu: &Gpu, params: &[u8], n: usize) -> Result<()> {
        if let Some(y) = self.result.filter(|_| !self.hosted) {
            let operands = (&self.taken[..], self.unread, y);
            let (kernel, told) = (self.kernel(source), &self.told);
            if gpu.wait_as_root(&kernel, &self.buffers, operands, params, n, told)? {
                return Ok(());
            }
        }
        let touched = self.buffers.iter().enumerate();
        gpu.flush_pending(touched.map(|(i, b)| (b.buffer, i < self.writes)))?;
        self.record_settled(source, gpu, params, n)
    }

    fn record_settled(&self, source: &Source, gpu: &Gpu, params: &[u8], n: usize) -> Result<()> {
        ensure!(
            !self.hosted,
            Assertion,
            "wgpu: {}: a kernel got a tensor in host memory",
            source.name
        );
        gpu.require(self.acc, &source.name)?;
        let (kernel, grid) = (self.kernel(source), gpu.grid(n)?);
        gpu.dispatch(&kernel, &self.buffers, params, grid, &self.told)
    }

    fn kernel<'b>(&'b self, source: &'b Source) -> Kernel<'b> {
        Kernel {
            source,
            entry: self.entry,
            acc: self.acc,
            constants: &self.constants,
            tail: self.tail,
            writes: self.writes,
            reads: self.buffers.len() - self.writes,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl<P: bytemuck::NoUninit> Launch<'_, P> {
    /// Validates the text, and translates it for each back end.
    pub fn check(&self) {
        let kernel = self.draft.kernel(&self.shader.source);
        for aliased in [false, true] {
            let rolled = kernel.text(aliased).unwrap();
            let unrolled = super::unroll::unrolled(&rolled);
            assert!(!unrolled.contains(super::unroll::MARK), "{unrolled}");
            for text in [rolled, unrolled] {
                super::checks::valid(&kernel.source.name, kernel.acc, &text);
            }
        }
    }
}

impl Gpu {
    /// An error where this adapter cannot compute in `acc`.
    pub fn require(&self, acc: Acc, what: &str) -> Result<()> {
        let ok = match acc {
            // Without 64-bit integers these are two words (see `super::words`).
            Acc::F32 | Acc::I32 | Acc::I64 | Acc::C64 => true,
            Acc::F64 | Acc::C128 => self.info().int64 && self.info().float64,
        };
        ensure!(
            ok,
            NoKernel,
            "wgpu: {what}: this adapter ({}) has no {}",
            self.info().name,
            acc.dtype()
        );
        Ok(())
    }
}

/// How many invocations share a row of `length` elements, and how many rows a workgroup has.
pub fn lanes_rows(length: usize, most: usize) -> (u32, u32) {
    let lanes = length.next_power_of_two().min(most).max(1);
    (lanes as u32, (WORKGROUP / lanes).max(1) as u32)
}

/// How the elements of rows are shared out.
pub struct Rows {
    /// Whether an invocation has both elements of a word.
    pub pairs: bool,
    /// Steps of an invocation, which keeps their elements; 0 where it reads them anew.
    held: usize,
    /// As [`lanes_rows`] tells.
    lanes: u32,
    rows: u32,
}

/// Steps of an invocation that are aimed at where rows are kept.
const HELD: usize = 8;

impl Rows {
    /// Of `n` elements in rows of `length`. Invocations keep at most `most` steps, where there are enough of them.
    pub fn of(gpu: &Gpu, n: usize, length: usize, pairs: bool, most: usize) -> Rows {
        let length = if pairs { length / 2 } else { length };
        let lanes = length.div_ceil(HELD).next_power_of_two().min(WORKGROUP);
        let held = length.div_ceil(lanes);
        if gpu.is_wide(n) && held <= most {
            let (lanes, rows) = (lanes as u32, (WORKGROUP / lanes) as u32);
            return Rows {
                pairs,
                held,
                lanes,
                rows,
            };
        }
        let (lanes, rows) = lanes_rows(length, WORKGROUP);
        Rows {
            pairs,
            held: 0,
            lanes,
            rows,
        }
    }

    /// How often an invocation reads each of its elements of rows of `length`, if `anew` times where it does not
    /// keep them, and how many it reads so.
    pub fn reads(&self, length: usize, anew: usize) -> (usize, usize) {
        let times = if self.held > 0 { 1 } else { anew };
        (times, times * length.div_ceil(self.lanes as usize))
    }

    /// Tells a kernel.
    pub fn set<'a, P>(&self, launch: Launch<'a, P>) -> Launch<'a, P>
    where
        P: bytemuck::NoUninit,
    {
        launch
            .set("PAIRS", self.pairs)
            .set("HELD", self.held as u32)
            .set("LANES", self.lanes)
            .set("ROWS", self.rows)
            .set("WG", self.lanes * self.rows)
    }

    /// Workgroups for so many rows.
    pub fn groups(&self, rows: usize) -> usize {
        rows.div_ceil(self.rows as usize)
    }

    /// The longest row of which an invocation has no more than `trips` steps.
    pub fn longest(&self, trips: usize) -> usize {
        (self.lanes as usize * trips) << self.pairs as u32
    }
}

/// The integer type whose copies move the bits of `dtype`, and how many of it an element is.
pub fn bits(dtype: DType) -> (DType, usize) {
    match dtype.size() {
        1 => (DType::U8, 1),
        2 => (DType::I16, 1),
        size => (DType::I32, size / 4),
    }
}
