//! Chains of loops over elements of one shape, run tile by tile on all threads: what only the chain
//! reads stays in the caches. Every loop is the one that runs alone, so elements have its bits.

mod parts;

use super::view::View;
use super::{Kernel, MAX_INPUTS};
use crate::convert::{loader, storer, Load, Store};
use crate::dtype::DType;
use crate::elements::Bool;
use crate::layout::Layout;
use crate::machine::machine;
use crate::pool::parallel_for;
use crate::reduce::{Blocks, Fold, WHOLE};
use crate::shape::{Dims, Walk};
use crate::simd::fetch;
use crate::strided::Strided;
use crate::typed;
use smallvec::SmallVec;
use std::collections::HashMap;

pub use parts::{Parts, Worker};

/// Bytes behind a buffer, so that starts differ in the bits that tell loads from stores.
const APART: usize = 192;
/// Bytes of a line of the caches.
const LINE: usize = 64;
/// The fewest elements of a tile: a call of a kernel is paid for.
const LEAST: usize = 512;

/// What computes an element of a result from those of operands at its place.
#[derive(Clone, Copy)]
pub struct Loop {
    /// The type that operands are converted to, and the result from.
    pub compute: DType,
    pub body: Body,
    /// The type that operands without dimensions have first; `None` where it is their own.
    pub numbers: [Option<DType>; MAX_INPUTS],
    /// Elements below which a second thread costs more than it gains.
    pub grain: usize,
}

#[derive(Clone, Copy)]
pub enum Body {
    /// With its parameters.
    Kernel(Kernel<u8>, *const ()),
    /// Elements of the operand of this number, converted.
    Operand(usize),
}

// SAFETY: parameters are read alone, and whoever keeps a loop keeps what they belong to.
unsafe impl Send for Loop {}
// SAFETY: parameters are read alone, and whoever keeps a loop keeps what they belong to.
unsafe impl Sync for Loop {}

/// A kernel whose elements are those of the type that its loop computes in.
pub fn erased<T>(kernel: Kernel<T>) -> Kernel<u8> {
    // SAFETY: addresses alone differ in type.
    unsafe { std::mem::transmute::<Kernel<T>, Kernel<u8>>(kernel) }
}

/// One loop of a chain.
pub struct Step {
    pub each: Loop,
    /// Values: tensors that are read have the first numbers, then each step's result the next.
    pub x: SmallVec<[usize; 4]>,
    /// The type that the result has, and is rounded to.
    pub dtype: DType,
}

/// Where a value is written.
pub struct Write {
    pub value: usize,
    pub layout: Layout,
    /// The tensor that is read in the same memory, element for element.
    pub over: Option<usize>,
}

/// A value that is reduced along rows of `length` elements.
pub struct Total {
    pub value: usize,
    pub fold: Fold,
    pub length: usize,
}

/// An index of the table of addresses that each tile has.
type At = usize;

/// How an address comes about.
#[derive(Clone, Copy)]
enum Place {
    /// In a tensor whose elements follow each other; with the size of one.
    Memory(usize, usize),
    /// A buffer that a tile fills; its number until rooms are shared, then its offset.
    Buffer(usize),
    /// A buffer that a cell fills.
    Cell { offset: usize, size: usize },
    /// A buffer that holds a period over and over.
    Periodic {
        offset: usize,
        size: usize,
        period: usize,
    },
    /// A buffer that holds one value.
    Constant { offset: usize },
}

enum Code {
    /// Elements of a tensor of any layout. Without a conversion, a run is read where it lies.
    Read {
        from: usize,
        load: Load<u8>,
        size: usize,
        same: bool,
        y: At,
    },
    Widen {
        load: Load<u8>,
        size: isize,
        x: At,
        y: At,
    },
    Narrow {
        store: Store<u8>,
        size: isize,
        x: At,
        y: At,
    },
    Run {
        kernel: Kernel<u8>,
        params: *const (),
        x: SmallVec<[At; 4]>,
        y: At,
    },
    /// To a tensor of any layout.
    Scatter {
        store: Store<u8>,
        size: usize,
        x: At,
        to: usize,
    },
}

impl Code {
    fn reads(&self) -> &[At] {
        match self {
            Code::Read { .. } => &[],
            Code::Run { x, .. } => x,
            Code::Widen { x, .. } | Code::Narrow { x, .. } | Code::Scatter { x, .. } => {
                std::slice::from_ref(x)
            }
        }
    }
    fn writes(&self) -> Option<At> {
        match *self {
            Code::Read { y, .. }
            | Code::Run { y, .. }
            | Code::Widen { y, .. }
            | Code::Narrow { y, .. } => Some(y),
            Code::Scatter { .. } => None,
        }
    }
}

/// What is filled once for all tiles of a thread.
struct Fixed {
    from: usize,
    load: Load<u8>,
    y: At,
    /// Elements before they repeat; 0 for one value.
    period: usize,
}

/// A chain that is ready to run on tensors of the layouts that it was made for.
pub struct Chain {
    count: usize,
    /// Elements of a row, and of the cells that rows are made of.
    row: usize,
    cell: usize,
    tile: usize,
    grain: usize,
    /// Dimensions of each tensor, outermost first, strides in bytes: inputs, then results.
    walks: Vec<SmallVec<[Walk<1>; 5]>>,
    places: Vec<Place>,
    fixed: Vec<Fixed>,
    code: Vec<Code>,
    totals: Vec<(At, Fold)>,
    /// Bytes of a thread's buffers.
    room: usize,
    /// Whether a tile asks for the memory of the next one: there is more than the second cache holds.
    ahead: bool,
}

// SAFETY: the only addresses are those of parameters, which are read alone; whoever made the chain keeps them.
unsafe impl Send for Chain {}
// SAFETY: the only addresses are those of parameters, which are read alone; whoever made the chain
// keeps them.
unsafe impl Sync for Chain {}

/// The type of kernels that move the bits of another.
fn bits(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::U8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

/// Runs the body with `$T` bound to a type of loops, or gives what follows.
macro_rules! of_loops {
    ($dtype:expr, $T:ident => $body:expr, $other:expr) => {
        typed!(
            $dtype,
            $T => $body,
            [
                F32 => f32, F64 => f64, I64 => i64, I32 => i32, I16 => i16, I8 => i8, U8 => u8, Bool => Bool
            ],
            _ => $other
        )
    };
}

/// The loop that reads `from` as `to`; `None` where no kernel computes in that.
#[allow(clippy::useless_transmute)] // of bytes it is one
fn load(to: DType, from: DType) -> Option<Load<u8>> {
    let (to, from) = match to == from {
        true => (bits(to), bits(to)),
        false => (to, from),
    };
    // SAFETY: addresses alone differ in type.
    of_loops!(to, T => Some(unsafe { std::mem::transmute::<Load<T>, Load<u8>>(loader::<T>(from)) }), None)
}

/// The loop that writes `from` as `to`.
#[allow(clippy::useless_transmute)] // of bytes it is one
fn store(from: DType, to: DType) -> Option<Store<u8>> {
    let (from, to) = match to == from {
        true => (bits(to), bits(to)),
        false => (from, to),
    };
    // SAFETY: addresses alone differ in type.
    of_loops!(from, T => Some(unsafe { std::mem::transmute::<Store<T>, Store<u8>>(storer::<T>(to)) }), None)
}

/// The dimensions of a tensor that broadcasts to `shape`.
fn walk(layout: &Layout, dtype: DType, shape: &[usize]) -> SmallVec<[Walk<1>; 5]> {
    let wide = layout.expand_to(shape);
    let dim = |d: usize| Walk {
        n: shape[d],
        step: [wide.strides[d] * dtype.size() as isize],
    };
    (0..shape.len()).map(dim).collect()
}

/// A chain in the making.
struct Maker<'a> {
    inputs: &'a [(Layout, DType)],
    steps: &'a [Step],
    writes: &'a [Write],
    views: &'a [View],
    tile: usize,
    /// The largest element of a buffer.
    widest: usize,
    /// Bytes of all buffers, and those of cells.
    room: usize,
    cells: usize,
    places: Vec<Place>,
    fixed: Vec<Fixed>,
    code: Vec<Code>,
    /// Where a value is in a type.
    known: HashMap<(usize, DType), At>,
}

impl Maker<'_> {
    fn dtype(&self, value: usize) -> DType {
        match value.checked_sub(self.inputs.len()) {
            None => self.inputs[value].1,
            Some(i) => self.steps[i].dtype,
        }
    }

    fn place(&mut self, place: Place) -> At {
        self.places.push(place);
        self.places.len() - 1
    }

    fn buffer(&mut self, dtype: DType) -> At {
        self.widest = self.widest.max(dtype.size());
        self.place(Place::Buffer(usize::MAX))
    }

    /// Bytes that nothing else uses.
    fn reserve(&mut self, bytes: usize) -> usize {
        let at = self.room;
        self.room += (bytes + APART).next_multiple_of(64);
        at
    }

    fn is_direct(&self, tensor: usize, dtype: DType) -> bool {
        self.views[tensor].step() == Some(dtype.size() as isize)
    }

    /// The elements of a value as `t`.
    fn operand(&mut self, value: usize, t: DType) -> Option<At> {
        if let Some(&at) = self.known.get(&(value, t)) {
            return Some(at);
        }
        let own = self.dtype(value);
        let (load, size) = (load(t, own)?, t.size());
        let at = if value >= self.inputs.len() {
            let x = *self.known.get(&(value, own))?;
            let y = self.buffer(t);
            let size = own.size() as isize;
            self.code.push(Code::Widen { load, size, x, y });
            y
        } else if self.views[value].step() == Some(0) {
            let offset = self.reserve(self.tile * size);
            let y = self.place(Place::Constant { offset });
            self.fixed.push(Fixed {
                from: value,
                load,
                y,
                period: 0,
            });
            y
        } else if own == t && self.is_direct(value, own) {
            self.place(Place::Memory(value, size))
        } else if let Some(period) = self.views[value].period().filter(|&p| p <= self.tile) {
            let offset = self.reserve((self.tile + period) * size);
            let y = self.place(Place::Periodic {
                offset,
                size,
                period,
            });
            self.fixed.push(Fixed {
                from: value,
                load,
                y,
                period,
            });
            y
        } else {
            let y = self.buffer(t);
            self.code.push(Code::Read {
                from: value,
                load,
                size,
                same: own == t,
                y,
            });
            y
        };
        self.known.insert((value, t), at);
        Some(at)
    }

    /// Moves elements as they are.
    fn copy(&mut self, dtype: DType, x: At, y: At) -> Option<()> {
        let size = dtype.size() as isize;
        let load = load(dtype, dtype)?;
        self.code.push(Code::Widen { load, size, x, y });
        Some(())
    }

    /// Computes a step and writes its result to where it is to be. `cell` is the length of a cell of a value
    /// that is reduced.
    fn step(&mut self, i: usize, cell: Option<usize>) -> Option<()> {
        let steps = self.steps;
        let (step, value) = (&steps[i], self.inputs.len() + i);
        let (t, dtype, size) = (step.each.compute, step.dtype, step.dtype.size());
        let writes = self.writes;
        let to: SmallVec<[usize; 1]> = (0..writes.len())
            .filter(|&w| writes[w].value == value)
            .collect();
        let tensor = |w: usize| self.inputs.len() + w;
        let mut x: SmallVec<[At; 4]> = SmallVec::new();
        let (t, read, kernel) = match step.each.body {
            Body::Kernel(kernel, params) => (t, &step.x[..], Some((kernel, params))),
            Body::Operand(i) if self.dtype(step.x[i]) == dtype => (dtype, &step.x[i..=i], None),
            Body::Operand(i) => (t, &step.x[i..=i], None),
        };
        for &v in read {
            x.push(self.operand(v, t)?);
        }
        // The first tensor that takes the result as it comes. Where that is also an operand after the first, the
        // compiler's loops would leave their vector code.
        let direct = to.iter().copied().find(|&w| {
            let over = writes[w].over;
            let reads =
                |at: &At| matches!(self.places[*at], Place::Memory(k, _) if Some(k) == over);
            self.is_direct(tensor(w), dtype) && !x.iter().skip(1).any(reads)
        });
        let converts = t != dtype;
        let fresh = |maker: &mut Self| match (direct, cell) {
            (Some(w), _) => maker.place(Place::Memory(maker.inputs.len() + w, size)),
            (None, Some(cell)) => {
                maker.cells += cell * size;
                let offset = maker.reserve(cell * size);
                maker.place(Place::Cell { offset, size })
            }
            _ => maker.buffer(dtype),
        };
        // A copy stays what it is where its original is written to.
        let changes = |place: &Place| match place {
            Place::Memory(k, _) => writes.iter().any(|w| w.over == Some(*k)),
            Place::Buffer(_) => step
                .x
                .iter()
                .any(|v| writes.iter().any(|w| w.over == Some(*v))),
            _ => false,
        };
        let mut y = x[0];
        if let Some((kernel, params)) = kernel {
            y = match converts {
                true => self.buffer(t),
                false => fresh(self),
            };
            self.code.push(Code::Run {
                kernel,
                params,
                x,
                y,
            });
        }
        if converts {
            let store = store(t, dtype)?;
            let (x, size) = (y, size as isize);
            y = fresh(self);
            self.code.push(Code::Narrow { store, size, x, y });
        } else if kernel.is_none()
            && (direct.is_some() || cell.is_some() || changes(&self.places[y]))
        {
            let x = y;
            y = fresh(self);
            self.copy(dtype, x, y)?;
        }
        self.known.insert((value, dtype), y);
        for w in to.into_iter().filter(|&w| Some(w) != direct) {
            let k = self.inputs.len() + w;
            if self.is_direct(k, dtype) {
                let to = self.place(Place::Memory(k, size));
                self.copy(dtype, y, to)?;
                continue;
            }
            let store = store(dtype, dtype)?;
            self.code.push(Code::Scatter {
                store,
                size,
                x: y,
                to: k,
            });
        }
        Some(())
    }

    /// Gives buffers their memory: one that nobody reads any more is the next one's, never an operand's own.
    fn share(&mut self) {
        let mut last = vec![0; self.places.len()];
        for (i, code) in self.code.iter().enumerate() {
            code.reads().iter().for_each(|&x| last[x] = i);
        }
        let bytes = self.tile * self.widest;
        let mut free: Vec<usize> = Vec::new();
        for i in 0..self.code.len() {
            if let Some(y) = self.code[i].writes() {
                if let Place::Buffer(usize::MAX) = self.places[y] {
                    let at = free.pop().unwrap_or_else(|| self.reserve(bytes));
                    self.places[y] = Place::Buffer(at);
                }
            }
            let mut dead: SmallVec<[At; 4]> = self.code[i].reads().into();
            dead.extend(self.code[i].writes());
            dead.sort_unstable();
            dead.dedup();
            for x in dead {
                match self.places[x] {
                    Place::Buffer(at) if last[x] <= i => free.push(at),
                    _ => {}
                }
            }
        }
    }
}

/// Elements of a tile, each of which takes so many bytes of operands and buffers: they stay in the first cache,
/// beside the cells.
fn tile(bytes: usize, cells: usize) -> usize {
    let room = (machine().l1 * 3 / 4).saturating_sub(cells);
    (room / bytes.max(1) / 64 * 64).clamp(LEAST, WHOLE)
}

impl Chain {
    /// A chain over elements of `shape`; `None` where a type has no loops or rows differ. Elements are visited
    /// in the order of rows. `forced` is the length of tiles, for tests.
    pub fn new(
        shape: &Dims,
        inputs: &[(Layout, DType)],
        steps: &[Step],
        writes: &[Write],
        totals: &[Total],
        forced: Option<usize>,
    ) -> Option<Chain> {
        let count: usize = shape.iter().product();
        if count < 2 {
            return None;
        }
        let row = totals.first().map_or(count, |t| t.length);
        if row < 2
            || totals
                .iter()
                .any(|t| t.length != row || !t.fold.takes(count / row, row))
        {
            return None;
        }
        let result = |w: &Write| (w.layout.clone(), steps[w.value - inputs.len()].dtype);
        let tensors = inputs.iter().cloned().chain(writes.iter().map(result));
        let walks: Vec<_> = tensors.map(|(l, t)| walk(&l, t, shape)).collect();
        let views: Vec<View> = walks
            .iter()
            .map(|w| View::of(std::ptr::null_mut(), w.iter().copied()))
            .collect();
        let moving = |&(i, size): &(usize, usize)| views[i].step() != Some(0) && size > 0;
        let sizes = inputs.iter().map(|t| t.1.size());
        let bytes: usize = sizes.enumerate().filter(moving).map(|(_, size)| size).sum();
        let make = |tile: usize| {
            let cell = match totals.is_empty() {
                true => tile,
                false => WHOLE,
            };
            let mut maker = Maker {
                inputs,
                steps,
                writes,
                views: &views,
                tile,
                widest: 1,
                room: 0,
                cells: 0,
                places: Vec::new(),
                fixed: Vec::new(),
                code: Vec::new(),
                known: HashMap::new(),
            };
            for i in 0..steps.len() {
                let folded = totals.iter().any(|t| t.value == inputs.len() + i);
                maker.step(i, folded.then_some(cell))?;
            }
            maker.share();
            Some((maker, cell))
        };
        let shortest = forced.unwrap_or(LEAST).clamp(1, WHOLE.min(count));
        let (mut maker, mut cell) = make(shortest)?;
        if forced.is_none() {
            let buffers = (maker.room - maker.cells) / shortest;
            let best = tile(bytes + buffers, maker.cells).min(count);
            if best != shortest {
                (maker, cell) = make(best)?;
            }
        }
        let mut ends = Vec::new();
        for t in totals {
            ends.push((*maker.known.get(&(t.value, t.fold.source))?, t.fold));
        }
        let kept = |(at, _): &(At, Fold)| {
            matches!(maker.places[*at], Place::Memory(..) | Place::Cell { .. })
        };
        if !ends.iter().all(kept) {
            return None;
        }
        let cost: f64 = steps.iter().map(|s| 1.0 / s.each.grain.max(1) as f64).sum();
        Some(Chain {
            count,
            row,
            cell,
            tile: maker.tile,
            grain: (1.0 / cost) as usize,
            walks,
            places: maker.places,
            fixed: maker.fixed,
            code: maker.code,
            totals: ends,
            room: maker.room,
            ahead: count * bytes > machine().l2,
        })
    }

    /// Elements that are computed, of all loops together.
    pub fn work(&self) -> usize {
        self.count * self.code.len()
    }

    /// Computes what is written to `y`, and what is reduced to `totals`, from `x`.
    ///
    /// # Safety
    /// Tensors are in host memory and of the layouts and types that the chain was made for. Those of `y` may be
    /// written and lie apart from each other and from those of `x`, but for whom they were said to lie over. What the
    /// loops' parameters belong to is alive.
    pub unsafe fn run<S: Strided>(&self, x: &[&S], y: &[&S], totals: &[&S]) {
        // SAFETY: tensors are in host memory and of the layouts and types that the chain was made for.
        let parts = unsafe { self.parts(x, y) };
        let lines = self.row.div_ceil(self.cell);
        let cells = self.count / self.row * lines;
        let rows = self.count / self.row;
        let mut ends: Vec<Box<dyn Blocks>> = (self.totals.iter())
            .map(|(_, fold)| fold.blocks(rows, self.row))
            .collect();
        let length = self.row.min(self.cell);
        parallel_for(cells, self.grain / length + 1, |range| {
            // SAFETY: tensors are in host memory and of the layouts and types that the chain was
            // made for; ranges are disjoint.
            unsafe { parts.begin().cells(&ends, range) }
        });
        for (end, t) in ends.iter_mut().zip(totals) {
            // SAFETY: a contiguous tensor of one element for each row, which may be written.
            unsafe { end.finish(t.bytes_ptr(), t.dtype(), t.numel()) };
        }
    }

    /// The chain, which reduces nothing, at work on tensors: parts of its elements are computed by who asks for them.
    ///
    /// # Safety
    /// As for [`Chain::run`], as long as there are parts.
    pub unsafe fn parts<S: Strided>(&self, x: &[&S], y: &[&S]) -> Parts<'_> {
        let views = (x.iter().chain(y).zip(&self.walks))
            .map(|(t, w)| View::of(t.bytes_ptr(), w.iter().copied()))
            .collect();
        Parts { chain: self, views }
    }

    /// Asks for the lines of the next `n` elements. Processors look ahead in what is read now, and stop while a
    /// tile computes, at the end of a page, and where lines are written alone.
    fn ask(&self, at: &[*mut u8], n: usize) {
        for (place, at) in self.places.iter().zip(at) {
            let Place::Memory(_, size) = *place else {
                continue;
            };
            let bytes = n * size;
            for line in (bytes..2 * bytes).step_by(LINE) {
                fetch(at.wrapping_add(line));
            }
        }
    }

    /// Elements `start..start + n`, the first of which is number `within` of its cell.
    // SAFETY: as for `run`; `n` is at most a tile, and nobody else computes these elements.
    #[inline(always)]
    unsafe fn step(
        &self,
        views: &[View],
        base: &[*mut u8],
        at: &mut [*mut u8],
        start: usize,
        within: usize,
        n: usize,
    ) {
        for ((place, base), at) in self.places.iter().zip(base).zip(&mut *at) {
            match *place {
                Place::Memory(_, size) => *at = base.wrapping_add(start * size),
                Place::Cell { size, .. } => *at = base.wrapping_add(within * size),
                Place::Periodic { size, period, .. } => {
                    *at = base.wrapping_add(start % period * size);
                }
                Place::Buffer(_) | Place::Constant { .. } => {}
            }
        }
        if self.ahead {
            self.ask(at, n);
        }
        for code in &self.code {
            // SAFETY: buffers hold a tile, and elements of a tile lie in the tensors.
            unsafe {
                match code {
                    Code::Run {
                        kernel,
                        params,
                        x,
                        y,
                    } => {
                        let mut from = [std::ptr::null::<u8>(); MAX_INPUTS];
                        for (from, &x) in from.iter_mut().zip(x) {
                            *from = at[x];
                        }
                        kernel(*params, from.as_ptr(), at[*y], n);
                    }
                    &Code::Widen { load, size, x, y } => load(at[x], size, n, at[y]),
                    &Code::Narrow { store, size, x, y } => store(at[y], size, n, at[x]),
                    &Code::Read {
                        from,
                        load,
                        size,
                        same,
                        y,
                    } => {
                        let mut whole = None;
                        let to = base[y];
                        views[from].runs(start, n, |p, step, count, done| {
                            if count == n && same && step == size as isize {
                                whole = Some(p);
                            } else {
                                load(p, step, count, to.add(done * size));
                            }
                        });
                        at[y] = whole.unwrap_or(to);
                    }
                    &Code::Scatter { store, size, x, to } => {
                        views[to].runs(start, n, |p, step, count, done| {
                            store(p, step, count, at[x].add(done * size));
                        });
                    }
                }
            }
        }
    }
}
