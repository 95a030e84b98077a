//! Kernels and the cache of their pipelines.

use super::adapter::{Fault, Info};
use super::compile::Compilers;
use super::key::{key, Key, Map};
use super::pipeline_cache::PipelineCache;
use super::shader::{Acc, Source};
use super::text::Constants;
use super::unroll::unrolled;
use super::{clock, user_wgsl, words};
use crate::bail;
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

pub(super) static COMPILERS: Compilers = Compilers::new();

/// Generated text behind a file, and what tells it from others.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a> {
    pub text: &'a str,
    pub key: Key,
}

impl Hash for Tail<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<'a> From<&'a str> for Tail<'a> {
    fn from(text: &'a str) -> Self {
        Tail {
            text,
            key: key(text),
        }
    }
}

impl<'a> From<&'a String> for Tail<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

/// One specialised compute shader: its text, the type it computes in, the values of its `override`
/// lines and, for pointwise bodies, a generated tail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel<'a> {
    pub source: &'a Source,
    pub entry: &'static str,
    pub acc: Acc,
    pub constants: Constants<'a>,
    pub tail: [Tail<'a>; 2],
    pub writes: usize,
    pub reads: usize,
}

impl Hash for Kernel<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (acc, bound) = (self.acc as u8, [self.writes, self.reads]);
        (self.source, self.entry, acc, self.tail, bound).hash(state);
        for (name, value) in self.constants {
            state.write_u64((name.len() as u64) << 32 | u64::from(*value));
            state.write(name.as_bytes());
        }
    }
}

impl Kernel<'_> {
    /// Its file, with the function where it is not the main one.
    pub fn full_name(&self) -> String {
        let name = &self.source.name;
        match self.entry {
            "main" => name.to_string(),
            entry => format!("{name}:{entry}"),
        }
    }

    pub fn text(&self, aliased: bool) -> Result<String> {
        let tail = self.tail.map(|t| t.text);
        self.source.text(self.acc, self.constants, tail, aliased)
    }
}

/// Bind-group and pipeline layout for a number of written and read buffers.
pub(super) struct Layout {
    pub id: u32,
    pub bind_group: wgpu::BindGroupLayout,
    pipeline: wgpu::PipelineLayout,
}

pub(super) struct Pipeline {
    /// Its number among those of the device. An address would be another's after it is dropped.
    pub id: u64,
    /// Nothing where it did not compile, which the device's fault tells whenever someone asks for it.
    made: OnceLock<Option<wgpu::ComputePipeline>>,
    fault: Fault,
    pub layout: Arc<Layout>,
}

impl Pipeline {
    pub fn is_made(&self) -> bool {
        self.made.get().is_some()
    }

    /// Waits until it is made.
    pub fn made(&self) -> Option<&wgpu::ComputePipeline> {
        let made = self.made.wait().as_ref();
        if made.is_none() {
            let why = || Error::runtime("wgpu: a shader did not compile".to_string());
            self.fault.lock().get_or_insert_with(why);
        }
        made
    }
}

/// Says that a pipeline will not be made, where nobody said more when it is dropped.
struct Promise(Arc<Pipeline>);

impl Drop for Promise {
    fn drop(&mut self) {
        let _ = self.0.made.set(None);
    }
}

/// What a pipeline is made of beside its text.
pub(super) struct Make<'a> {
    pub name: &'a str,
    pub entry: &'a str,
    /// As in [`Source`].
    pub trusted: bool,
    pub bindings: Bindings,
}

/// How buffers are bound: so many, of which these are read_write.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Bindings {
    pub count: usize,
    pub written: [Range<usize>; 2],
}

pub(super) struct Pipelines {
    pub cache: Option<PipelineCache>,
    fault: Fault,
    /// Whether marked loops are written out.
    unrolls: bool,
    /// Whether 64-bit integers are those of the adapter.
    int64: bool,
    /// How many threads compile; none: who asks for a pipeline waits for it.
    compilers: usize,
    /// Those asked for since the last turn, and those that were asked for in the turn before alone.
    recent: Map<Key, Arc<Pipeline>>,
    earlier: Map<Key, Arc<Pipeline>>,
    /// How many a turn has, beside those that somebody held when it began.
    pub turn: usize,
    held: usize,
    layouts: Map<Bindings, Arc<Layout>>,
    /// Made so far, and the bytes of their texts.
    made: u64,
    bytes: u64,
}

/// The least that are kept, and half of the most.
const TURN: usize = 512;
/// How many the driver may keep for later runs. It forgets none of them.
const STORED: u64 = 4096;

impl Pipelines {
    pub fn new(cache: Option<PipelineCache>, info: &Info, fault: Fault) -> Pipelines {
        Pipelines {
            cache,
            fault,
            unrolls: info.unrolls,
            int64: info.int64,
            compilers: info.compilers,
            recent: Map::default(),
            earlier: Map::default(),
            turn: TURN,
            held: 0,
            layouts: Map::default(),
            made: 0,
            bytes: 0,
        }
    }

    /// How many there are now.
    pub fn len(&self) -> usize {
        self.recent.len() + self.earlier.len()
    }

    /// How many were made, and the bytes of the texts that were compiled.
    pub fn made(&self) -> [u64; 2] {
        [self.made, self.bytes]
    }

    /// Keeps one that was asked for. Where a turn is over, those that nobody asked for in it are dropped, but for
    /// what a command list, a command that waits or a compiler holds: there would be two of it. wgpu holds those of
    /// encoded commands until they have run.
    fn keep(&mut self, key: Key, pipeline: Arc<Pipeline>) {
        if self.recent.len() >= self.held + self.turn {
            std::mem::swap(&mut self.recent, &mut self.earlier);
            self.recent.retain(|_, p| Arc::strong_count(p) > 1);
            self.held = self.recent.len();
        }
        self.recent.insert(key, pipeline);
    }

    /// The pipeline of a kernel. With `aliased`, a buffer that the kernel reads is also written
    /// by it, so that every binding has to be read_write.
    pub fn get(
        &mut self,
        device: &wgpu::Device,
        kernel: &Kernel,
        aliased: bool,
    ) -> Result<Arc<Pipeline>> {
        let make = Make {
            name: &kernel.source.name,
            entry: kernel.entry,
            trusted: kernel.source.trusted,
            bindings: Bindings {
                count: kernel.writes + kernel.reads,
                written: match aliased {
                    true => [0..kernel.writes + kernel.reads, 0..0],
                    false => [0..kernel.writes, 0..0],
                },
            },
        };
        let key = key(&(kernel, aliased));
        self.known(device, key, make, || kernel.text(aliased))
    }

    /// The pipeline of this key, made of a text where there is none.
    pub fn known(
        &mut self,
        device: &wgpu::Device,
        key: Key,
        make: Make,
        text: impl FnOnce() -> Result<String>,
    ) -> Result<Arc<Pipeline>> {
        if let Some(p) = self.recent.get(&key) {
            return Ok(p.clone());
        }
        if let Some(p) = self.earlier.remove(&key) {
            self.keep(key, p.clone());
            return Ok(p);
        }
        let layout = self.layout(device, &make.bindings);
        let mut text = text()?;
        match make.trusted {
            true if self.unrolls => text = unrolled(&text),
            true => {}
            false => user_wgsl::check_variables(make.name, &text)?,
        }
        self.made += 1;
        self.bytes += text.len() as u64;
        let job = Job {
            device: device.clone(),
            name: make.name.to_string(),
            entry: make.entry.to_string(),
            trusted: make.trusted,
            layout: layout.pipeline.clone(),
            cache: (self.cache.as_ref().filter(|_| self.made <= STORED)).map(|s| s.cache.clone()),
            in_words: !self.int64 && words::has_long(&text),
            text,
        };
        let pipeline = Arc::new(Pipeline {
            id: self.made,
            made: OnceLock::new(),
            fault: self.fault.clone(),
            layout,
        });
        // What others wrote may not compile, and of ways that are timed one may not: who asks is told.
        if self.compilers == 0 || !make.trusted || clock::watched() {
            let _ = pipeline.made.set(Some(job.run()?));
        } else {
            let promise = Promise(pipeline.clone());
            let work = move || match job.run() {
                Ok(made) => drop(promise.0.made.set(Some(made))),
                Err(e) => drop(promise.0.fault.lock().get_or_insert(e)),
            };
            COMPILERS.run(self.compilers, Box::new(work));
        }
        self.keep(key, pipeline.clone());
        Ok(pipeline)
    }

    fn layout(&mut self, device: &wgpu::Device, bindings: &Bindings) -> Arc<Layout> {
        let id = self.layouts.len() as u32;
        self.layouts
            .entry(bindings.clone())
            .or_insert_with(|| Arc::new(make_layout(device, id, bindings)))
            .clone()
    }
}

/// All that a pipeline is made of.
struct Job {
    device: wgpu::Device,
    name: String,
    entry: String,
    trusted: bool,
    layout: wgpu::PipelineLayout,
    cache: Option<wgpu::PipelineCache>,
    /// Whether 64-bit integers become two words each.
    in_words: bool,
    text: String,
}

impl Job {
    fn run(self) -> Result<wgpu::ComputePipeline> {
        let (device, name) = (&self.device, &self.name);
        let source = match self.in_words {
            true => wgpu::ShaderSource::Naga(Cow::Owned(words::module(name, &self.text)?)),
            false => wgpu::ShaderSource::Wgsl(self.text.into()),
        };
        let desc = wgpu::ShaderModuleDescriptor {
            label: Some(name),
            source,
        };
        let invalid = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
        let module = match self.trusted {
            false => device.create_shader_module(desc),
            // SAFETY: every kernel of ours tests its indices itself, bounds its loops and guards
            // integer division, so the checks that wgpu would add are not needed.
            true => unsafe {
                device.create_shader_module_trusted(desc, wgpu::ShaderRuntimeChecks::unchecked())
            },
        };
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&self.layout),
            module: &module,
            entry_point: Some(&self.entry),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[],
                zero_initialize_workgroup_memory: !self.trusted,
            },
            cache: self.cache.as_ref(),
        });
        for scope in [internal, invalid] {
            if let Some(e) = pollster::block_on(scope.pop()) {
                bail!(Runtime, "wgpu: {name}: the shader did not compile: {e}");
            }
        }
        Ok(pipeline)
    }
}

fn make_layout(device: &wgpu::Device, id: u32, bindings: &Bindings) -> Layout {
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
    for i in 0..bindings.count {
        let read_only = !bindings.written.iter().any(|w| w.contains(&i));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::gpu;

    #[test]
    fn those_that_nobody_asks_for_or_holds_are_dropped() {
        let Some((_turn, gpu)) = gpu() else { return };
        let info = Info {
            compilers: 0,
            ..gpu.info().clone()
        };
        let mut all = Pipelines::new(None, &info, Fault::default());
        all.turn = 4;
        let mut ask = |k| {
            let make = Make {
                name: "empty",
                entry: "main",
                trusted: true,
                bindings: Bindings {
                    count: 0,
                    written: [0..0, 0..0],
                },
            };
            let text = || Ok("@compute @workgroup_size(1) fn main() {}".to_string());
            let one = all.known(&gpu.device, [k, 0], make, text).unwrap();
            (one, all.len(), all.made()[0])
        };
        let (held, ..) = ask(0);
        let often = Arc::downgrade(&ask(1).0);
        let others = (2..50).map(|k| {
            ask(1);
            let (one, count, made) = ask(k);
            assert!(count <= 2 * 4 + 1, "{count} after {k}");
            assert_eq!(made, k + 1, "one was made twice");
            Arc::downgrade(&one)
        });
        let others: Vec<_> = others.collect();
        let live = others.iter().filter(|one| one.strong_count() > 0).count();
        assert!((4..=7).contains(&live), "{live}");
        assert_eq!(often.strong_count(), 1);
        assert!(Arc::ptr_eq(&held, &ask(0).0));
        // One that was dropped is made again.
        assert_eq!((ask(2).2, ask(2).2), (51, 51));
    }

    #[test]
    fn what_does_not_compile_is_told_whenever_it_is_asked_for() {
        let Some((_turn, gpu)) = gpu() else { return };
        let broken = |compilers| {
            let info = Info {
                compilers,
                ..gpu.info().clone()
            };
            let fault = Fault::default();
            let make = Make {
                name: "broken",
                entry: "main",
                trusted: true,
                bindings: Bindings {
                    count: 0,
                    written: [0..0, 0..0],
                },
            };
            let text = || Ok("fn main() { nothing(); }".to_string());
            let made =
                Pipelines::new(None, &info, fault.clone()).known(&gpu.device, [0; 2], make, text);
            (made, fault)
        };
        let why = "broken: the shader did not compile";
        assert!(broken(0).0.is_err_and(|e| e.text.contains(why)));
        let (pipeline, fault) = broken(1);
        let pipeline = pipeline.unwrap();
        for why in [why, "a shader did not compile", "a shader did not compile"] {
            assert!(pipeline.made().is_none());
            let told = fault.lock().take();
            assert!(told.is_some_and(|e| e.text.contains(why)));
        }
    }
}
