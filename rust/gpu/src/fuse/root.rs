//! Kernels that wait as the root of a group: pointwise kernels that read what they give, or only have its
//! shape, run where they store it (`store_y`), before it is memory. A root may have those that make an operand in the
//! place of its loads (`read_x`), where nobody else reads that.

use super::Group;
use crate::binding::Bound;
use crate::clock::{self, Client};
use crate::command_list::{Told, Tolds};
use crate::error::Result;
use crate::key::Key;
use crate::launch::{Prologue, NOTHING};
use crate::pipeline::{Kernel, Tail};
use crate::place::Place;
use crate::shader::{Acc, Numbers, Source};
use crate::{Buffer, Gpu, View};
use smallvec::SmallVec;

/// A dispatch in the making that owns what it is made of.
pub(crate) struct FusionRoot {
    source: Source,
    entry: &'static str,
    acc: Acc,
    constants: SmallVec<[(&'static str, u32); 12]>,
    /// The text behind its file, where there is one.
    tail: Option<(String, Key)>,
    /// Those it writes, the one that `store_y` writes first, then those it reads.
    pub buffers: SmallVec<[Buffer; 9]>,
    pub writes: usize,
    /// Those of them, as bits, that are not read where an operand is taken as it is made.
    free: u32,
    pub params: SmallVec<[u32; 64]>,
    pub groups: usize,
    /// Words of the parameters that are others in each call.
    pub told: Tolds,
    /// Where what it gives lies, in the order of logical indices.
    pub place: Place,
    /// The node of the graph that it works for.
    pub client: Client,
}

impl FusionRoot {
    /// The memory that `store_y` writes.
    pub fn y(&self) -> &Buffer {
        &self.buffers[0]
    }

    /// Whether a command that reads or writes this memory has to come behind it, where an operand is `taken` or not.
    pub fn meets(&self, b: &Buffer, writes: bool, taken: bool) -> bool {
        let n = if writes {
            self.buffers.len()
        } else {
            self.writes
        };
        let free = if taken { self.free } else { 0 };
        let own = self.buffers[..n].iter().enumerate();
        own.filter(|(i, _)| free >> i & 1 == 0)
            .any(|(_, own)| own.same(b))
    }

    /// How many buffers it binds, and the words of its parameters.
    pub fn takes(&self) -> (usize, usize) {
        (self.buffers.len(), self.params.len().next_multiple_of(4))
    }

    pub fn kernel(&self) -> Kernel<'_> {
        let tail = self.tail.as_ref();
        let tail = tail.map_or(NOTHING, |(text, key)| Tail { text, key: *key });
        Kernel {
            source: &self.source,
            entry: self.entry,
            acc: self.acc,
            constants: &self.constants,
            tail: [NOTHING, tail],
            writes: self.writes,
            reads: self.buffers.len() - self.writes,
        }
    }

    /// The kernel's name, as times are told with.
    pub fn name(&self) -> String {
        self.kernel().full_name()
    }

    /// Its text, and the numbers that this knows by name.
    pub fn text(&self) -> (&str, &'static [Numbers]) {
        (&self.source.text, self.source.numbers)
    }

    /// What it binds; where an operand is taken, memory that this reads in its place.
    pub fn bound<'a>(&'a self, taken: Option<&'a Buffer>) -> SmallVec<[Bound<'a>; 16]> {
        let bound = |(i, own): (usize, &'a Buffer)| Bound {
            buffer: taken.filter(|_| self.free >> i & 1 == 1).unwrap_or(own),
            window: None,
        };
        self.buffers.iter().enumerate().map(bound).collect()
    }

    /// Records it as what it would have been.
    pub fn record(&self, gpu: &Gpu) -> Result<()> {
        let params = bytemuck::cast_slice(&self.params);
        let grid = gpu.grid(self.groups)?;
        let bound = self.bound(None);
        let record = || gpu.dispatch(&self.kernel(), &bound, params, grid, &self.told);
        self.client.at_work(record)
    }
}

impl Gpu {
    /// Lets a kernel that gives `y`, and may take one of these operands as it is made, wait for those that follow;
    /// false where it has to run alone. It does not look at the bindings that are `unread`.
    pub(crate) fn wait_as_root(
        &self,
        kernel: &Kernel,
        buffers: &[Bound],
        (operands, unread, y): (&[Prologue], u32, View),
        params: &[u8],
        groups: usize,
        told: &[Told],
    ) -> Result<bool> {
        let mut waiting = self.waiting.lock();
        if !waiting.on || clock::apart() || self.is_outside() {
            return Ok(false);
        }
        let (written, read) = buffers.split_at(kernel.writes);
        let plain = |b: &Bound| {
            b.window.is_none()
                && b.buffer.capacity() <= self.info.max_binding
                && self.check_alive(b.buffer).is_ok()
        };
        let n = y.numel();
        let whole = y.is_contiguous() && y.dtype.size() >= 2 && (1..1 << 31).contains(&n);
        if !whole
            || !buffers.iter().all(plain)
            || written.is_empty()
            || read
                .iter()
                .any(|r| written.iter().any(|w| w.buffer.same(r.buffer)))
            || !kernel.tail[0].text.is_empty()
            || !kernel.source.trusted
            || self.require(kernel.acc, "").is_err()
        {
            return Ok(false);
        }
        let touched = || {
            let all = buffers.iter().enumerate();
            all.map(|(i, b)| (i, b.buffer, i < kernel.writes))
        };
        let (mut before, mut free) = (None, 0);
        for x in operands {
            let of = |b: &Buffer| b.same(x.view.buffer);
            let own = touched().filter(|(_, b, _)| of(b));
            free = own.fold(0, |mask, (i, ..)| mask | 1 << i);
            if (free & !unread).count_ones() != 1 || !waiting.meets(x.view.buffer) {
                continue;
            }
            // What reads the same group's results elsewhere comes behind it.
            let others = touched().filter(|(_, b, _)| !of(b));
            waiting.flush_pending(self, others.map(|(_, b, writes)| (b, writes)))?;
            before = waiting.before(self, x, (buffers.len(), params.len() / 4));
            if before.is_some() {
                break;
            }
        }
        waiting.flush_pending(self, touched().map(|(_, b, writes)| (b, writes)))?;
        let mut words = SmallVec::from_elem(0, params.len() / 4);
        bytemuck::cast_slice_mut(&mut words[..]).copy_from_slice(params);
        let [_, tail] = kernel.tail;
        let root = Box::new(FusionRoot {
            source: kernel.source.clone(),
            entry: kernel.entry,
            acc: kernel.acc,
            constants: kernel.constants.into(),
            tail: (!tail.text.is_empty()).then(|| (tail.text.to_string(), tail.key)),
            buffers: buffers.iter().map(|b| b.buffer.lent()).collect(),
            writes: kernel.writes,
            free,
            params: words,
            groups,
            told: told.into(),
            place: Place::of(&y),
            client: Client::here(),
        });
        waiting.add(self, Group::led(root, &y, before))?;
        Ok(true)
    }
}
