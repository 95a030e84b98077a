//! Heads that take what they read as it is made: by the nodes of a group that comes before, whose values nobody
//! else reads.

use super::super::fuse::{Group, Source, Taken};
use super::super::head::Head;
use super::{record_plan, Plan, Writer, NAME};
use crate::bail;
use crate::error::Result;
use crate::gpu::Gpu;
use smallvec::SmallVec;

/// How a file reads its operand, and what it calls instead.
const READ: &str = "read_x(";
const TAKE: &str = "take_x(";

/// Records a head with these nodes of a group that it has not, which make what it takes.
pub(in crate::gpu) fn record_taken(
    gpu: &Gpu,
    head: &Head,
    group: &Group,
    needed: u64,
    taken: Taken,
) -> Result<()> {
    let plan = Plan::taken(gpu, group, needed, head, taken);
    record_plan(gpu, &plan, group.n)
}

/// A file's text without what it reads an operand by, and without that, where it is taken as it is made.
pub(super) fn without_reads(own: &str) -> Result<String> {
    let mut out = own.to_string();
    for (from, to) in [("@group(0) @binding(2) ", ";\n"), ("fn read_x(", "\n}\n")] {
        let found = out.find(from).and_then(|at| {
            let end = out[at..].find(to)?;
            Some(at..at + end + to.len())
        });
        match found {
            Some(range) => out.replace_range(range, ""),
            None => bail!(Assertion, "{NAME}: a file without {from}"),
        }
    }
    Ok(out.replace(READ, TAKE))
}

impl<'a> Plan<'a> {
    /// What a head takes of a group that it has not.
    fn taken(gpu: &Gpu, group: &'a Group, needed: u64, head: &'a Head, taken: Taken) -> Plan<'a> {
        let whole = Plan::of(gpu, group, needed);
        let mut plan = Plan {
            stores: &[],
            head: Some(head),
            taken: Some(taken),
            buffers: SmallVec::new(),
            writes: 0,
            dims: SmallVec::new(),
            lanes: 1,
            times: 0,
            ..whole
        };
        for (_, load) in &plan.loads {
            if !plan.buffers.iter().any(|b| b.same(&load.from)) {
                plan.buffers.push(&load.from);
            }
        }
        if let Some(shape) = &group.shape {
            plan.dims = plan.walked(shape);
        }
        plan
    }
}

impl Writer<'_, '_> {
    /// What the head calls in the place of its reads.
    pub(super) fn take_x(&mut self, taken: Taken) {
        let (first, zero) = (self.take(), self.take());
        self.line(format_args!(
            "fn {TAKE}e: u32) -> Acc {{\nlet i = e - {first};\nlet zero = {zero};"
        ));
        self.body(None);
        let name = self.value(Source::Node(taken.node));
        let node = self.plan.nodes[self.plan.node(taken.node)].1;
        let high = match node.dtype.size() {
            8 => format!("{name}h"),
            _ => "0u".to_string(),
        };
        self.line(format_args!("return decode(X, {name}, {high}, 0u);\n}}"));
    }
}
