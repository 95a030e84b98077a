//! Sums over paths on the GPU, a workgroup for each sequence, and what follows from them for each class.

use super::Batch;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::gpu::{params, shader, Acc, Gpu};
use crate::tensor::Tensor;
use crate::transfer::dense;

params! {
    struct Block {
        count: u32,
        steps: u32,
        classes: u32,
        places: u32,
        blank: u32,
        most: u32,
        zero: u32,
        x_offset: u32,
        y_offset: u32,
        g_offset: u32,
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
    alpha: Tensor,
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

impl<'a> Job<'a> {
    fn new(gpu: &'a Gpu, batch: &Batch, zero: bool, x: &Tensor) -> Result<Job<'a>> {
        let acc = Acc::of(x.dtype())?;
        let (steps, count, classes) = (x.size(0), x.size(1), x.size(2));
        let longest = batch.labels.iter().map(Vec::len).max().unwrap_or(0);
        let places = 2 * longest + 1;
        let (words, most) = table(batch);
        ensure!(
            steps * (places.div_ceil(LANES) + 1) < MAX_TRIPS
                && places < MAX_TRIPS
                && (steps * count * classes.max(places)).max(words.len()) < 1 << 31,
            NotImplemented,
            "wgpu: ctc_loss: {steps} steps of {longest} labels"
        );
        let x = dense(gpu, x)?;
        let host = Tensor::from_slice(&words, &[words.len()], DType::I32)?;
        let block = Block {
            count: count as u32,
            steps: steps as u32,
            classes: classes as u32,
            places: places as u32,
            blank: batch.blank as u32,
            most: most as u32,
            zero: zero as u32,
            x_offset: x.offset() as u32,
            y_offset: 0,
            g_offset: 0,
            least: acc.words(f64::NEG_INFINITY),
        };
        Ok(Job {
            gpu,
            acc,
            block,
            table: host.to_device(gpu.device())?,
            alpha: Tensor::empty(&[count, steps, places], x.dtype(), gpu.device())?,
            x,
        })
    }

    fn run(
        &self,
        entry: &'static str,
        block: Block,
        [beta, y]: [&Tensor; 2],
        [losses, g]: [&Tensor; 2],
        groups: usize,
    ) -> Result<()> {
        CTC.launch(self.acc)
            .entry(entry)
            .set("WG", LANES as u32)
            .writes_words(&self.alpha)
            .writes_words(beta)
            .writes_words(y)
            .reads_words(&self.x)
            .reads_words(&self.table)
            .reads_words(losses)
            .reads_words(g)
            .groups(self.gpu, &block, groups)
    }

    /// The loss of each sequence.
    fn losses(&self, y: &Tensor) -> Result<()> {
        let block = Block {
            y_offset: y.offset() as u32,
            ..self.block
        };
        // A binding that may be written must not be a second one of the same memory.
        let spare = Tensor::empty(&[1], DType::I32, self.gpu.device())?;
        let none = [&self.x; 2];
        self.run(
            "forward",
            block,
            [&spare, y],
            none,
            self.block.count as usize,
        )
    }
}

pub fn losses(gpu: &Gpu, batch: &Batch, x: &Tensor, y: &Tensor) -> Result<()> {
    Job::new(gpu, batch, false, x)?.losses(y)
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
    job.losses(&losses)?;
    let g = dense(gpu, &g.to_dtype(x.dtype())?)?;
    let beta = Tensor::empty(job.alpha.shape(), x.dtype(), gpu.device())?;
    let block = Block {
        y_offset: y.offset() as u32,
        g_offset: g.offset() as u32,
        ..job.block
    };
    let run = |entry, groups| job.run(entry, block, [&beta, y], [&losses, &g], groups);
    let rows = count * job.block.steps as usize;
    run("backward", count)?;
    run(
        "spread",
        (rows * job.block.classes as usize).div_ceil(LANES),
    )?;
    run("gather", (rows * job.block.most as usize).div_ceil(LANES))
}
