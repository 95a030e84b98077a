//! Chooses an adapter, with its features and limits.

use super::choice;
use crate::device::gpu_name;
use crate::error::{Error, Kind, Result};
use crate::machine::read;
use crate::{bail, ensure};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// What the adapter is and can do.
#[derive(Clone, Debug)]
pub struct Info {
    /// The adapter's own name, such as `llvmpipe (LLVM 15.0.6, 256 bits)`.
    pub name: String,
    /// `Vulkan`, `Metal` or `Dx12`.
    pub backend: String,
    /// Whether it runs on the CPU (lavapipe, WARP).
    pub software: bool,
    /// The driver, and what it says of itself.
    pub driver: String,
    /// What the device was opened with: those of [`useful`] that the adapter has.
    pub features: wgpu::Features,
    pub limits: wgpu::Limits,
    /// Products of small matrices that subgroups compute together.
    pub cooperative: Vec<wgpu::CooperativeMatrixProperties>,
    /// Invocations of the smallest and of the largest subgroup.
    pub subgroups: [u32; 2],
    /// Whether the marked loops of kernels are written out (see [`super::unroll`]).
    pub unrolls: bool,
    /// How many threads compile pipelines beside the one that asks for them.
    pub compilers: usize,
    /// Words of a tensor from which on an invocation of a pointwise kernel makes several, and rows and squares go
    /// through faster memory; `usize::MAX` where never.
    pub wide: usize,
    /// Whether shaders may use 64-bit integers and 64-bit floats.
    pub int64: bool,
    pub float64: bool,
    /// The largest storage buffer that one binding covers, in bytes.
    pub max_binding: u64,
    /// The largest buffer, in bytes.
    pub max_buffer: u64,
    /// Workgroups in one dimension of a grid.
    pub max_groups: u32,
    /// Bytes of the adapter's own memory, where the driver tells.
    pub memory: Option<u64>,
}

impl Info {
    /// The names of the features.
    pub fn feature_names(&self) -> Vec<String> {
        let names = self.features.iter_names();
        names.map(|(name, _)| name.to_lowercase()).collect()
    }

    /// The limits by their names.
    pub fn limit_values(&self) -> Vec<(&'static str, u64)> {
        let l = &self.limits;
        macro_rules! all {
            ($($name:ident)*) => { vec![$((stringify!($name), l.$name as u64)),*] };
        }
        all! {
            max_bind_groups max_bindings_per_bind_group max_buffer_size
            max_storage_buffer_binding_size max_uniform_buffer_binding_size
            max_storage_buffers_per_shader_stage max_uniform_buffers_per_shader_stage
            max_dynamic_storage_buffers_per_pipeline_layout
            max_dynamic_uniform_buffers_per_pipeline_layout
            min_storage_buffer_offset_alignment min_uniform_buffer_offset_alignment
            max_compute_workgroup_storage_size max_compute_invocations_per_workgroup
            max_compute_workgroup_size_x max_compute_workgroup_size_y
            max_compute_workgroup_size_z max_compute_workgroups_per_dimension
            max_immediate_size
        }
    }
}

/// What kernels, the profiler and the cache of pipelines can use where it is there.
fn useful() -> wgpu::Features {
    wgpu::Features::SHADER_INT64
        | wgpu::Features::SHADER_F64
        | wgpu::Features::SHADER_F16
        | wgpu::Features::SHADER_FLOAT32_ATOMIC
        | wgpu::Features::SUBGROUP
        | wgpu::Features::SUBGROUP_BARRIER
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
        | wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES
        | wgpu::Features::PIPELINE_CACHE
        | wgpu::Features::IMMEDIATES
        | wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX
}

/// Percent of the memory that a driver can give now that is asked for at most.
const BUDGET: u8 = 95;

/// The first error that wgpu reported since someone last looked.
pub type Fault = Arc<Mutex<Option<Error>>>;

pub struct Opened {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: Info,
    pub fault: Fault,
    /// Whether the device is gone.
    pub lost: Arc<AtomicBool>,
}

/// Every adapter, the fastest first: discrete before integrated before software. Where
/// `PYTENSORLIB_ADAPTER` is set, those that it names (parts of their names, any case, with commas
/// between them) in this order, and as often as it names them.
pub fn found() -> Result<Vec<wgpu::Adapter>> {
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = wgpu::Backends::PRIMARY;
    desc.flags = wgpu::InstanceFlags::empty();
    // Of what the driver says it can give now: beyond it would page, or end the program.
    desc.memory_budget_thresholds.for_resource_creation = Some(BUDGET);
    let instance = wgpu::Instance::new(desc);
    let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
    choice::once(&mut adapters);
    adapters.sort_by_key(|a| match a.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    });
    let names = |text: &str| -> Option<Vec<String>> {
        let names = text.split(',').map(|name| name.trim().to_string());
        names.map(|n| (!n.is_empty()).then_some(n)).collect()
    };
    let must = "parts of adapters' names with commas between them";
    if let Some(wanted) = read("PYTENSORLIB_ADAPTER", must, names)? {
        let named = wanted.iter().map(|w| matching(&adapters, w));
        adapters = named.collect::<Result<Vec<_>>>()?.concat();
    }
    choice::working(&mut adapters);
    if gpu_name() == "cuda" {
        adapters = visible(adapters)?;
    }
    ensure!(
        !adapters.is_empty(),
        Runtime,
        "wgpu: no GPU adapter found (Vulkan, Metal or DX12). Install a driver, or Mesa's software \
         Vulkan (Debian: mesa-vulkan-drivers), or use device=\"cpu\"."
    );
    Ok(adapters)
}

/// Of several adapters those that `CUDA_VISIBLE_DEVICES` leaves, where GPUs answer as that: none where it is empty
/// or -1, those of its numbers where there are such. What else it may say is of CUDA alone.
fn visible(adapters: Vec<wgpu::Adapter>) -> Result<Vec<wgpu::Adapter>> {
    const NAME: &str = "CUDA_VISIBLE_DEVICES";
    let Some(text) = std::env::var_os(NAME) else {
        return Ok(adapters);
    };
    let text = text.to_string_lossy();
    ensure!(
        !matches!(text.trim(), "" | "-1"),
        Runtime,
        "wgpu: no GPU adapter may be used: the environment variable {NAME} is '{text}', which hides them from a \
         program for which they answer as 'cuda'. Unset it, or use device=\"cpu\"."
    );
    let chosen = text.split(',').map(|n| {
        let n = n.trim().parse::<usize>().ok()?;
        adapters.get(n).cloned()
    });
    let chosen: Option<Vec<_>> = chosen.collect();
    Ok(chosen.unwrap_or(adapters))
}

/// The adapters whose names contain `wanted`.
fn matching(adapters: &[wgpu::Adapter], wanted: &str) -> Result<Vec<wgpu::Adapter>> {
    let name = |a: &wgpu::Adapter| a.get_info().name.to_lowercase();
    let found = adapters
        .iter()
        .filter(|a| name(a).contains(&wanted.to_lowercase()));
    let found: Vec<_> = found.cloned().collect();
    ensure!(
        !found.is_empty(),
        Runtime,
        "wgpu: no adapter's name contains {wanted:?}; there are: {}",
        names(adapters)
    );
    Ok(found)
}

/// The bytes that no limit is below: what kernels keep for themselves fits.
const LEAST: u64 = 4096;

/// A limit of the adapter, or the smaller one that a variable asks for.
fn limited(name: &str, limit: u64) -> Result<u64> {
    let must = format!("a number of bytes, a multiple of 4 and at least {LEAST}");
    let bytes = |text: &str| -> Option<u64> {
        let n: u64 = text.parse().ok()?;
        (n >= LEAST && n.is_multiple_of(4)).then_some(n)
    };
    Ok(read(name, &must, bytes)?.map_or(limit, |n| n.min(limit)))
}

/// Names of what `PYTENSORLIB_WGPU_WITHOUT` hides, and what that is.
const OPTIONAL: &[(&str, wgpu::Features)] = &[
    ("int64", wgpu::Features::SHADER_INT64),
    ("float64", wgpu::Features::SHADER_F64),
    ("float16", wgpu::Features::SHADER_F16),
    ("atomics", wgpu::Features::SHADER_FLOAT32_ATOMIC),
    ("subgroups", SUBGROUPS),
    ("timestamps", TIMESTAMPS),
    ("cache", wgpu::Features::PIPELINE_CACHE),
    ("immediates", wgpu::Features::IMMEDIATES),
    (
        "cooperative",
        wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX,
    ),
    ("limits", wgpu::Features::empty()),
];
const SUBGROUPS: wgpu::Features = wgpu::Features::SUBGROUP.union(wgpu::Features::SUBGROUP_BARRIER);
const TIMESTAMPS: wgpu::Features = wgpu::Features::TIMESTAMP_QUERY
    .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
    .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES);
/// What other ways to a GPU lack, each by one name: what WebGPU asks of every adapter, Metal, and DX12 without
/// the DXC compiler.
const PROFILES: &[(&str, &str)] = &[
    (
        "webgpu",
        "int64,float64,float16,atomics,subgroups,timestamps,cache,immediates,cooperative,limits",
    ),
    ("metal", "float64,cache"),
    (
        "dx12",
        "int64,float64,float16,atomics,subgroups,cache,cooperative",
    ),
];

/// What `PYTENSORLIB_WGPU_WITHOUT` hides, so that a program can be tried as on an adapter that lacks it: features,
/// and whether limits are WebGPU's least ones.
fn hidden() -> Result<(wgpu::Features, bool)> {
    let names: Vec<&str> = [
        OPTIONAL.iter().map(|o| o.0).collect(),
        PROFILES.iter().map(|p| p.0).collect::<Vec<_>>(),
    ]
    .concat();
    let must = format!("names with commas between them, of {}", names.join(", "));
    let named = |text: &str| -> Option<(wgpu::Features, bool)> {
        let mut all = (wgpu::Features::empty(), false);
        let of = |name: &str| PROFILES.iter().find(|p| p.0 == name).map(|p| p.1);
        for name in text
            .split(',')
            .flat_map(|n| of(n.trim()).unwrap_or(n).split(','))
        {
            let (name, features) = OPTIONAL.iter().find(|o| o.0 == name.trim())?;
            all = (all.0 | *features, all.1 | (*name == "limits"));
        }
        Some(all)
    };
    Ok(read("PYTENSORLIB_WGPU_WITHOUT", &must, named)?.unwrap_or((wgpu::Features::empty(), false)))
}

/// Opens an adapter.
pub fn open(adapter: &wgpu::Adapter) -> Result<Opened> {
    let (hidden, least) = hidden()?;
    let features = (adapter.features() & useful()) - hidden;
    let limits = match least {
        true => wgpu::Limits::default(),
        false => adapter.limits(),
    };
    // A test of what does not fit makes them small.
    let max_buffer = limited("PYTENSORLIB_WGPU_MAX_BUFFER", limits.max_buffer_size)?;
    let max_binding = limited(
        "PYTENSORLIB_WGPU_MAX_BINDING",
        limits.max_storage_buffer_binding_size,
    )?;
    // Asked again by what keeps kernels waiting.
    read("PYTENSORLIB_WGPU_FUSE", "0 or 1", |text| {
        matches!(text, "0" | "1").then_some(())
    })?;
    let experimental = match features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        // SAFETY: nothing experimental happens unless a shader names it, and those are ours.
        true => unsafe { wgpu::ExperimentalFeatures::enabled() },
        false => wgpu::ExperimentalFeatures::disabled(),
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: None,
        required_features: features,
        required_limits: limits.clone(),
        experimental_features: experimental,
        memory_hints: wgpu::MemoryHints::Performance,
        ..Default::default()
    }))
    .map_err(|e| Error::runtime(format!("wgpu: the adapter gave no device: {e}")))?;
    let fault = Fault::default();
    let slot = fault.clone();
    device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| note(&slot, classify(&e))));
    let lost = Arc::new(AtomicBool::new(false));
    let (slot, gone) = (fault.clone(), lost.clone());
    device.set_device_lost_callback(move |reason, text| {
        if reason != wgpu::DeviceLostReason::Destroyed {
            *slot.lock() = Some(loss(&text));
            gone.store(true, Ordering::Release);
        }
    });
    let about = adapter.get_info();
    let software = about.device_type == wgpu::DeviceType::Cpu;
    let info = Info {
        name: about.name,
        backend: format!("{:?}", about.backend),
        software,
        unrolls: unrolls(software)?,
        compilers: compilers(software)?,
        wide: wide(software)?,
        driver: [about.driver, about.driver_info]
            .join(" ")
            .trim()
            .to_string(),
        features,
        cooperative: match features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
            true => adapter.cooperative_matrix_properties(),
            false => Vec::new(),
        },
        subgroups: [about.subgroup_min_size, about.subgroup_max_size],
        int64: features.contains(wgpu::Features::SHADER_INT64),
        float64: features.contains(wgpu::Features::SHADER_F64),
        max_binding: max_binding.min(max_buffer),
        max_buffer,
        max_groups: limits.max_compute_workgroups_per_dimension.min(65_535),
        limits,
        memory: memory(adapter),
    };
    Ok(Opened {
        device,
        queue,
        info,
        fault,
        lost,
    })
}

/// Bytes of the heaps that are the adapter's own, which Vulkan tells.
#[cfg(not(target_vendor = "apple"))]
fn memory(adapter: &wgpu::Adapter) -> Option<u64> {
    // Bit 0 of a heap's flags: VK_MEMORY_HEAP_DEVICE_LOCAL_BIT.
    const OWN: u32 = 1;
    // SAFETY: the adapter lives, and its handle is only asked.
    let found = unsafe {
        let adapter = adapter.as_hal::<wgpu::hal::api::Vulkan>()?;
        let instance = adapter.shared_instance().raw_instance();
        instance.get_physical_device_memory_properties(adapter.raw_physical_device())
    };
    let heaps = &found.memory_heaps[..found.memory_heap_count as usize];
    let own = heaps.iter().filter(|h| h.flags.as_raw() & OWN != 0);
    Some(own.map(|h| h.size).sum())
}

/// Metal does not tell.
#[cfg(target_vendor = "apple")]
fn memory(_: &wgpu::Adapter) -> Option<u64> {
    None
}

/// `PYTENSORLIB_WGPU_UNROLL`: by default not in software, where such kernels take long to compile.
fn unrolls(software: bool) -> Result<bool> {
    let name = "PYTENSORLIB_WGPU_UNROLL";
    Ok(match std::env::var(name).as_deref() {
        Err(_) | Ok("") => !software,
        Ok("0") => false,
        Ok("1") => true,
        Ok(other) => bail!(Value, "{name}: expected 0 or 1, but found {other:?}"),
    })
}

/// More do not help: what asks for pipelines does other work too.
const COMPILERS: usize = 8;

/// `PYTENSORLIB_WGPU_COMPILERS`: by default none in software, whose compiler runs when a pipeline is first used.
fn compilers(software: bool) -> Result<usize> {
    let name = "PYTENSORLIB_WGPU_COMPILERS";
    let found = read(name, "a number of threads, 0 to 64", |text| {
        text.parse().ok().filter(|n| *n <= 64)
    })?;
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    Ok(found.unwrap_or_else(|| if software { 0 } else { cores().min(COMPILERS) }))
}

/// Words that fill a large card's processors: invocations that make several are then enough of them.
const WIDE: usize = 1 << 19;

/// `PYTENSORLIB_WGPU_WIDE`: by default not in software, which runs one invocation after the other.
fn wide(software: bool) -> Result<usize> {
    let name = "PYTENSORLIB_WGPU_WIDE";
    Ok(match std::env::var(name).as_deref() {
        Err(_) | Ok("" | "1") if software => usize::MAX,
        Err(_) | Ok("" | "1") => WIDE,
        Ok("0") => usize::MAX,
        Ok("force") => 0,
        Ok(other) => bail!(Value, "{name}: expected 0, 1 or force, but found {other:?}"),
    })
}

fn names(adapters: &[wgpu::Adapter]) -> String {
    let all: Vec<_> = adapters.iter().map(|a| a.get_info().name).collect();
    if all.is_empty() {
        "none".to_string()
    } else {
        all.join(", ")
    }
}

/// The error that the loss of a device is.
pub fn loss(text: &str) -> Error {
    Error::new(
        Kind::Accelerator,
        format!(
            "wgpu: the device was lost ({text}). What it held is gone; tensors on the CPU and files are \
             not, and the next tensor opens the device anew"
        ),
    )
}

fn note(slot: &Fault, error: Error) {
    slot.lock().get_or_insert(error);
}

/// Drivers report a failed allocation as a validation or internal error with this text.
fn classify(e: &wgpu::Error) -> Error {
    let text = e.to_string();
    let full = matches!(e, wgpu::Error::OutOfMemory { .. })
        || text.to_lowercase().contains("not enough memory")
        || text.to_lowercase().contains("out of memory");
    Error::new(
        if full {
            Kind::OutOfMemory
        } else {
            Kind::Runtime
        },
        format!("wgpu: {text}"),
    )
}
