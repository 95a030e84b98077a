//! Of the adapters that a system lists, those that are worth a number. Windows lists each card twice, for Vulkan and
//! for DX12, and may list what compiles no shader.

use crate::host;
use parking_lot::Mutex;
use pollster::block_on;
use wgpu::{AdapterInfo, Backend};

/// What any kernel is: it takes a buffer and writes to it.
const FIRST: &str = "\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x < arrayLength(&y) { y[at.x] = at.x; }
}";

/// Drops adapters of DX12 whose cards Vulkan has too. DX12 has no float64, no atomics of floats and no cache of
/// pipelines, and 64-bit integers only where Microsoft's newer compiler is installed.
pub fn once(adapters: &mut Vec<wgpu::Adapter>) {
    let infos: Vec<_> = adapters.iter().map(wgpu::Adapter::get_info).collect();
    let mut kept = infos.iter().map(|info| !is_twice(info, &infos));
    adapters.retain(|_| kept.next() == Some(true));
}

fn is_twice(info: &AdapterInfo, all: &[AdapterInfo]) -> bool {
    let card = |i: &AdapterInfo| (i.vendor, i.device);
    let same = |i: &&AdapterInfo| i.backend == Backend::Vulkan && card(i) == card(info);
    info.backend == Backend::Dx12 && all.iter().any(|i| same(&i))
}

/// What is to be said of adapters that were passed over, once nobody waits for the list.
static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says what was passed over.
pub fn tell() {
    for word in std::mem::take(&mut *WORDS.lock()) {
        host::warn(&word);
    }
}

/// Drops adapters of DX12 for which not even a first kernel compiles. There shaders are compiled by a part of the
/// system, which may be missing; for Vulkan and Metal the driver does it.
pub fn working(adapters: &mut Vec<wgpu::Adapter>) {
    adapters.retain(|adapter| {
        let info = adapter.get_info();
        if info.backend != Backend::Dx12 {
            return true;
        }
        let tried = compile(adapter);
        if let Err(why) = &tried {
            WORDS.lock().push(format!(
                "wgpu: the DX12 adapter {:?} is passed over, for it compiles no kernel: {}",
                info.name,
                why.trim()
            ));
        }
        tried.is_ok()
    });
}

fn compile(adapter: &wgpu::Adapter) -> Result<(), String> {
    let opened = block_on(adapter.request_device(&wgpu::DeviceDescriptor::default()));
    let (device, _) = opened.map_err(|e| e.to_string())?;
    let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::Internal]
        .map(|filter| device.push_error_scope(filter));
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(FIRST.into()),
    });
    let _pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    // Scopes end in the other order.
    let errors = scopes.into_iter().rev().map(|scope| block_on(scope.pop()));
    errors
        .flatten()
        .next()
        .map_or(Ok(()), |e| Err(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(backend: Backend, vendor: u32, device: u32) -> AdapterInfo {
        let mut info = AdapterInfo::new(wgpu::DeviceType::DiscreteGpu, backend);
        (info.vendor, info.device) = (vendor, device);
        info
    }

    #[test]
    fn a_card_that_vulkan_has_is_not_counted_for_dx12() {
        let all = [
            info(Backend::Vulkan, 0x1002, 0x744c),
            info(Backend::Vulkan, 0x1002, 0x744c),
            info(Backend::Dx12, 0x1002, 0x744c),
            info(Backend::Dx12, 0x1002, 0x744c),
            info(Backend::Dx12, 0x8086, 0x56a0),
            info(Backend::Dx12, 0x1414, 0x8c),
        ];
        let twice: Vec<_> = all.iter().map(|i| is_twice(i, &all)).collect();
        assert_eq!(twice, [false, false, true, true, false, false]);
    }

    #[test]
    fn a_first_kernel_compiles_where_there_is_a_gpu() {
        if let Ok(gpu) = super::super::adapter::found() {
            compile(&gpu[0]).unwrap();
        }
    }
}
