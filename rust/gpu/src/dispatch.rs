//! A kernel recorded over its buffers.

use super::binding::Bound;
use super::clock::{self, Client};
use super::command_list::Told;
use super::pipeline::Kernel;
use super::{stream, Gpu};
use crate::error::Result;
use crate::{bail, ensure};
use smallvec::smallvec;
use std::cell::Cell;

impl Gpu {
    /// Records `kernel` over a grid of workgroups. `buffers` are the written ones, then the read
    /// ones; a read buffer may be one of the written ones. `params` is the parameter block.
    pub(crate) fn dispatch(
        &self,
        kernel: &Kernel,
        buffers: &[Bound],
        params: &[u8],
        grid: [u32; 3],
        told: &[Told],
    ) -> Result<()> {
        let name = &kernel.source.name;
        ensure!(
            params.len() <= stream::PARAM_WINDOW as usize && params.len().is_multiple_of(4),
            Runtime,
            "wgpu: {name}: {} bytes of parameters do not fit the uniform window",
            params.len()
        );
        if grid.contains(&0) {
            return Ok(());
        }
        let most = self.info.max_binding;
        if let Some(big) = buffers.iter().find(|b| b.is_refused(self)) {
            REFUSED.set(true);
            bail!(
                NoKernel,
                "wgpu: {name}: a tensor of {} bytes is larger than one binding of this adapter, \
                 {most} bytes",
                big.buffer.bytes()
            );
        }
        buffers
            .iter()
            .try_for_each(|b| self.check_alive(b.buffer))?;
        let (written, read) = buffers.split_at(kernel.writes);
        let aliased = read
            .iter()
            .any(|r| written.iter().any(|w| w.buffer.same(r.buffer)));
        let pipeline = self.pipelines.lock().get(&self.device, kernel, aliased)?;
        let work = || {
            let groups = grid.iter().map(|&n| n as u64).product();
            let first = |i: usize| {
                !buffers[..i]
                    .iter()
                    .any(|b| b.buffer.same(buffers[i].buffer))
            };
            let bytes = (0..buffers.len())
                .filter(|&i| first(i))
                .map(|i| buffers[i].size().min(buffers[i].buffer.bytes()));
            let clients = smallvec![Client::here()];
            clock::Work::new(&kernel.full_name(), clients, groups, bytes.sum())
        };
        let kept = self.is_recording().then_some(told);
        self.stream
            .lock()
            .dispatch(&pipeline, buffers, params, grid, kept, work);
        if self.fault.lock().is_some() {
            return self.check();
        }
        Ok(())
    }

    /// Folds a number of workgroups into a grid that the adapter takes. Shaders number their
    /// groups `x + y * num_workgroups.x` and test the number against their own bound.
    pub fn grid(&self, groups: usize) -> Result<[u32; 3]> {
        let max = self.info.max_groups as usize;
        if groups <= max {
            return Ok([groups as u32, 1, 1]);
        }
        let rows = groups.div_ceil(max);
        ensure!(
            rows <= max,
            NoKernel,
            "wgpu: a grid of {groups} workgroups is too large"
        );
        Ok([groups.div_ceil(rows) as u32, rows as u32, 1])
    }
}

thread_local! {
    /// Whether a kernel was refused a tensor for its size.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a kernel of this thread was refused a tensor larger than a binding since the last time.
pub fn was_refused() -> bool {
    REFUSED.take()
}
