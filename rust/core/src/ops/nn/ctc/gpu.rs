//! Sums over paths on the GPU, a workgroup for each sequence, and what follows from them for each class.

use super::Batch;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::ops::index::gpu::bindable;
use crate::tensor::Tensor;
use crate::transfer::{bindable_bytes, dense, windowed};

params! {
    struct Block {
        count: u32,
        first: u32,
        steps: u32,
        classes: u32,
        places: u32,
        blank: u32,
        most: u32,
        zero: u32,
        x_offset: u32,
        y_offset: u32,
        g_offset: u32,
        pad: u32,
        least: [u32; 2],
    }
}
const FLOATS: &[Acc] = &[Acc::F32, Acc::F64];
shader! { static CTC: Block = "ctc.wgsl", FLOATS }

/// Invocations that share a sequence.
const LANES: usize = 64;
/// Loop iterations of an invocation: software Vulkan ends it after 65,535.
const MAX_TRIPS: usize = 60_000;

/// A batch where the GPU has it.
struct Job<'a> {
    gpu: &'a Gpu,
    acc: Acc,
    block: Block,
    x: Tensor,
    table: Tensor,
    /// Times that a dispatch takes.
    part: usize,
}

/// Sequences as the shader's table has them, and the most classes of any.
fn table(batch: &Batch) -> (Vec<i32>, usize) {
    let n = batch.times.len();
    let (mut head, mut rest, mut most) = (Vec::with_capacity(5 * n), Vec::new(), 0);
    for (b, labels) in batch.labels.iter().enumerate() {
        let places = 2 * labels.len() + 1;
        let mut by_class: Vec<(usize, usize)> =
            (0..places).map(|s| (batch.label(b, s), s)).collect();
        by_class.sort_unstable();
        let runs: Vec<&[(usize, usize)]> = by_class.chunk_by(|a, b| a.0 == b.0).collect();
        most = most.max(runs.len());
        let at = 5 * n + rest.len();
        let entries = at + labels.len();
        head.extend([batch.times[b], labels.len(), at, runs.len(), entries]);
        rest.extend(labels);
        let mut first = entries + 3 * runs.len();
        for run in &runs {
            rest.extend([run[0].0, run.len(), first]);
            first += run.len();
        }
        rest.extend(by_class.iter().map(|&(_, place)| place));
    }
    head.extend(rest);
    (head.into_iter().map(|v| v as i32).collect(), most)
}

impl Batch {
    /// Places of the longest sequence, with blanks between all labels and around them.
    fn places(&self) -> usize {
        2 * self.labels.iter().map(Vec::len).max().unwrap_or(0) + 1
    }
}

/// How many times of all sequences a dispatch can take; 0 where that is none.
pub fn part(batch: &Batch, x: &Tensor) -> usize {
    let crate::device::Device::Wgpu(index) = x.device() else {
        return 0;
    };
    let (steps, count, classes) = (x.size(0), x.size(1), x.size(2));
    let (places, room) = (batch.places(), bindable_bytes(index));
    // For each label itself, two places, and at most two classes.
    let words: usize = batch.labels.iter().map(|l| 9 * l.len() + 9).sum();
    let row = |n: usize| (room / x.dtype().size()).min((1 << 31) - 1) / (count * n).max(1);
    // One invocation goes through all places of a class, which is at most every second one.
    if places / 2 + 1 >= MAX_TRIPS || 4 * words > room {
        return 0;
    }
    let rows = row(classes).min(row(places).saturating_sub(1));
    let turns = MAX_TRIPS / (places.div_ceil(LANES) + 1);
    steps.min(rows).min(turns.saturating_sub(1))
}

impl<'a> Job<'a> {
    fn new(gpu: &'a Gpu, batch: &Batch, zero: bool, x: &Tensor) -> Result<Job<'a>> {
        let acc = Acc::of(x.dtype())?;
        let (steps, count, classes) = (x.size(0), x.size(1), x.size(2));
        let (places, part) = (batch.places(), part(batch, x));
        ensure!(
            part > 0,
            NoKernel,
            "wgpu: ctc_loss: {steps} steps of {places} places"
        );
        let (words, most) = table(batch);
        let host = Tensor::from_slice(&words, &[words.len()], DType::I32)?;
        let block = Block {
            count: count as u32,
            first: 0,
            steps: 0,
            classes: classes as u32,
            places: places as u32,
            blank: batch.blank as u32,
            most: most as u32,
            zero: zero as u32,
            x_offset: 0,
            y_offset: 0,
            g_offset: 0,
            pad: 0,
            least: acc.words(f64::NEG_INFINITY),
        };
        Ok(Job {
            gpu,
            acc,
            block,
            x: dense(gpu, x)?,
            table: host.to_device(gpu.device())?,
            part,
        })
    }

    /// The first of the times that each dispatch takes, and how many.
    fn parts(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator {
        let (steps, part) = (self.x.size(0), self.part);
        let starts = (0..steps.div_ceil(part)).map(move |i| i * part);
        starts.map(move |first| (first, part.min(steps - first)))
    }

    /// A row for each of `n` times, and one more.
    fn rows(&self, n: usize) -> Result<Tensor> {
        let shape = [self.x.size(1), n + 1, self.block.places as usize];
        Tensor::empty(&shape, self.x.dtype(), self.gpu.device())
    }

    fn run(
        &self,
        entry: &'static str,
        (first, n): (usize, usize),
        alpha: &Tensor,
        [beta, y]: [&Tensor; 2],
        [losses, g]: [&Tensor; 2],
        groups: usize,
    ) -> Result<()> {
        let x = bindable(self.gpu, &self.x.narrow(0, first as i64, n as i64)?)?;
        let block = Block {
            first: first as u32,
            steps: n as u32,
            x_offset: x.offset() as u32,
            y_offset: y.offset() as u32,
            g_offset: g.offset() as u32,
            ..self.block
        };
        CTC.launch(self.acc)
            .entry(entry)
            .set("WG", LANES as u32)
            .writes_words(alpha)
            .writes_words(beta)
            .writes_words(y)
            .reads_words(&x)
            .reads_words(&self.table)
            .reads_words(losses)
            .reads_words(g)
            .groups(self.gpu, &block, groups)
    }

    /// What reaches these times, from what reached those before, and the losses of sequences that end there.
    fn forward(
        &self,
        part: (usize, usize),
        before: Option<&Tensor>,
        losses: &Tensor,
    ) -> Result<Tensor> {
        let alpha = self.rows(part.1)?;
        if let Some(before) = before {
            alpha.narrow(1, 0, 1)?.write_from(before)?;
        }
        // A binding that may be written must not be a second one of the same memory.
        let spare = Tensor::empty(&[1], DType::I32, self.gpu.device())?;
        let none = [&self.table; 2];
        let count = self.block.count as usize;
        self.run("forward", part, &alpha, [&spare, losses], none, count)?;
        Ok(alpha)
    }

    /// The loss of each sequence; what reaches the last time of each part but the last, and each time of that.
    fn losses(&self, y: &Tensor) -> Result<Vec<Tensor>> {
        let mut made: Vec<Tensor> = Vec::new();
        let last = self.x.size(0).div_ceil(self.part) - 1;
        for (i, part) in self.parts().enumerate() {
            let alpha = self.forward(part, made.last(), y)?;
            made.push(match i == last {
                true => alpha,
                false => alpha.narrow(1, part.1 as i64, 1)?.copy_dense()?,
            });
        }
        Ok(made)
    }
}

pub fn losses(gpu: &Gpu, batch: &Batch, x: &Tensor, y: &Tensor) -> Result<()> {
    Job::new(gpu, batch, false, x)?.losses(y).map(|_| ())
}

/// The gradient `y` of the log-probabilities for gradients `g` of the losses.
pub fn gradient(
    gpu: &Gpu,
    batch: &Batch,
    zero: bool,
    g: &Tensor,
    x: &Tensor,
    y: &Tensor,
) -> Result<()> {
    let job = Job::new(gpu, batch, zero, x)?;
    let count = job.block.count as usize;
    let losses = Tensor::empty(&[count], x.dtype(), gpu.device())?;
    let made = job.losses(&losses)?;
    let g = dense(gpu, &g.to_dtype(x.dtype())?)?;
    let mut behind: Option<Tensor> = None;
    for (i, part) in job.parts().enumerate().rev() {
        let n = part.1;
        let alpha = match i + 1 == made.len() {
            true => made[i].clone(),
            false => job.forward(part, i.checked_sub(1).map(|i| &made[i]), &losses)?,
        };
        let beta = job.rows(n)?;
        if let Some(behind) = &behind {
            beta.narrow(1, n as i64, 1)?.write_from(behind)?;
        }
        let place = y.narrow(0, part.0 as i64, n as i64)?;
        let to = bindable(gpu, &place)?;
        let run = |entry, groups| job.run(entry, part, &alpha, [&beta, &to], [&losses, &g], groups);
        let classes = [job.block.classes, job.block.most].map(|c| count * n * c as usize);
        run("backward", count)?;
        run("spread", classes[0].div_ceil(LANES))?;
        run("gather", classes[1].div_ceil(LANES))?;
        if windowed(gpu, &place).is_none() {
            place.write_from(&to)?;
        }
        behind = Some(beta.narrow(1, 0, 1)?.copy_dense()?);
    }
    Ok(())
}
