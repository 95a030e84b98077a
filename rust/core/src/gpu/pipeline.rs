//! Kernels and the cache of their pipelines.

use super::shader::{Acc, Source};
use crate::bail;
use crate::error::Result;
use std::collections::hash_map::DefaultHasher;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One specialised compute shader: its text, the type it computes in, its `override` constants and,
/// for pointwise bodies, a generated tail.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Kernel<'a> {
    pub source: &'a Source,
    pub entry: &'static str,
    pub acc: Acc,
    pub constants: &'a [(&'static str, u32)],
    pub tail: [&'a str; 2],
    pub writes: usize,
    pub reads: usize,
}

/// Bind-group and pipeline layout for a number of written and read buffers.
pub(super) struct Layout {
    pub id: u32,
    pub bind_group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

pub(super) struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: Arc<Layout>,
}

#[derive(Default)]
pub(super) struct Pipelines {
    pipelines: HashMap<[u64; 2], Arc<Pipeline>>,
    layouts: HashMap<u32, Arc<Layout>>,
}

impl Pipelines {
    pub fn len(&self) -> usize {
        self.pipelines.len()
    }

    /// The pipeline of a kernel. With `aliased`, a buffer that the kernel reads is also written
    /// by it, so that every binding has to be read_write.
    pub fn get(
        &mut self,
        device: &wgpu::Device,
        kernel: &Kernel,
        aliased: bool,
    ) -> Result<Arc<Pipeline>> {
        let key = [0u8, 1].map(|seed| {
            let mut h = DefaultHasher::new();
            (seed, kernel, aliased).hash(&mut h);
            h.finish()
        });
        if let Some(p) = self.pipelines.get(&key) {
            return Ok(p.clone());
        }
        let layout = self.layout(device, kernel, aliased);
        let (name, trusted) = (&*kernel.source.name, kernel.source.trusted);
        let text = kernel.source.text(kernel.acc, kernel.tail, aliased)?;
        let desc = wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source: wgpu::ShaderSource::Wgsl(text.into()),
        };
        let invalid = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
        let module = match trusted {
            false => device.create_shader_module(desc),
            // SAFETY: every kernel of ours tests its indices itself, bounds its loops and guards
            // integer division, so the checks that wgpu would add are not needed.
            true => unsafe {
                device.create_shader_module_trusted(desc, wgpu::ShaderRuntimeChecks::unchecked())
            },
        };
        let constants: Vec<(&str, f64)> = kernel
            .constants
            .iter()
            .map(|&(name, v)| (name, v as f64))
            .collect();
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&layout.pipeline),
            module: &module,
            entry_point: Some(kernel.entry),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                zero_initialize_workgroup_memory: !trusted,
            },
            cache: None,
        });
        for scope in [internal, invalid] {
            if let Some(e) = pollster::block_on(scope.pop()) {
                bail!(Runtime, "wgpu: {name}: the shader did not compile: {e}");
            }
        }
        let made = Arc::new(Pipeline { pipeline, layout });
        self.pipelines.insert(key, made.clone());
        Ok(made)
    }

    fn layout(&mut self, device: &wgpu::Device, kernel: &Kernel, aliased: bool) -> Arc<Layout> {
        let id = (kernel.writes as u32) << 9 | (kernel.reads as u32) << 1 | aliased as u32;
        self.layouts
            .entry(id)
            .or_insert_with(|| Arc::new(make_layout(device, id, kernel, aliased)))
            .clone()
    }
}

fn make_layout(device: &wgpu::Device, id: u32, kernel: &Kernel, aliased: bool) -> Layout {
    let entry = |binding: usize, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
        binding: binding as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset,
            min_binding_size: None,
        },
        count: None,
    };
    let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform, true)];
    for i in 0..kernel.writes + kernel.reads {
        let read_only = i >= kernel.writes && !aliased;
        entries.push(entry(
            i + 1,
            wgpu::BufferBindingType::Storage { read_only },
            false,
        ));
    }
    let bind_group = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &entries,
    });
    let pipeline = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&bind_group)],
        immediate_size: 0,
    });
    Layout {
        id,
        bind_group,
        pipeline,
    }
}
