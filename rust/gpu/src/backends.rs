//! What the texts that tests validate become for each back end: SPIR-V for Vulkan, MSL for Metal, HLSL for DX12. A
//! text that one cannot say is found here, on any system. Where `PYTENSORLIB_SHADERS` names a folder, what was made is
//! written there for other compilers to look at.

use super::Acc;
use naga::back::{hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::Module;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Mutex;

/// As `ShaderRuntimeChecks::unchecked` has it, which our own texts run with.
const UNCHECKED: BoundsCheckPolicies = BoundsCheckPolicies {
    index: BoundsCheckPolicy::Unchecked,
    buffer: BoundsCheckPolicy::Unchecked,
    image_load: BoundsCheckPolicy::Unchecked,
    binding_array: BoundsCheckPolicy::Unchecked,
};

/// Fails where a back end cannot say what the module does. Each text is looked at once.
pub fn translate(name: &str, acc: Acc, text: &str, module: &Module, info: &ModuleInfo) {
    static SEEN: Mutex<Option<HashSet<u64>>> = Mutex::new(None);
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    let hash = hash.finish();
    let mut seen = SEEN.lock().unwrap_or_else(|e| e.into_inner());
    if !seen.get_or_insert_default().insert(hash) {
        return;
    }
    drop(seen);
    let folder = std::env::var_os("PYTENSORLIB_SHADERS").map(PathBuf::from);
    let keep = |kind: &str, bytes: &[u8]| {
        if let Some(folder) = &folder {
            let file = format!(
                "{}-{acc:?}-{hash:016x}.{kind}",
                name.replace(['/', ' '], "_")
            );
            std::fs::write(folder.join(file), bytes).unwrap();
        }
    };
    let words = spv::write_vec(module, info, &spv::Options::default(), None)
        .unwrap_or_else(|e| panic!("{name} {acc:?} as SPIR-V: {e}"));
    keep("spv", bytemuck::cast_slice(&words));
    if matches!(acc, Acc::F64 | Acc::C128) {
        // Neither Metal nor DX12 has float64, and naga's writer of MSL panics where it finds any. wgpu validates with
        // what the adapter has, as here, so that such a text is refused before.
        let metal = Capabilities::all() - Capabilities::FLOAT64;
        let refused = Validator::new(ValidationFlags::all(), metal).validate(module);
        assert!(refused.is_err(), "{name} {acc:?} would reach Metal");
        return;
    }
    // 3.0 is that of macOS 13. Atomics of float32 need it.
    let options = msl::Options {
        lang_version: (3, 0),
        fake_missing_bindings: true,
        bounds_check_policies: UNCHECKED,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        ..Default::default()
    };
    let made = msl::write_string(module, info, &options, &msl::PipelineOptions::default());
    let (made, _) = made.unwrap_or_else(|e| panic!("{name} {acc:?} as MSL: {e}"));
    keep("metal", made.as_bytes());
    // DX12 never has the feature, and naga has no words for it.
    if text.lines().any(|l| l == "enable wgpu_cooperative_matrix;") {
        return;
    }
    // With Microsoft's compiler of today, and with the one that all systems have, which knows no 64-bit integers.
    let models = [hlsl::ShaderModel::V6_2, hlsl::ShaderModel::V5_1];
    for (model, kind) in models.into_iter().zip(["6_2.hlsl", "5_1.hlsl"]) {
        let options = hlsl::Options {
            shader_model: model,
            zero_initialize_workgroup_memory: false,
            restrict_indexing: false,
            force_loop_bounding: false,
            ..Default::default()
        };
        let (mut made, pipeline) = (String::new(), hlsl::PipelineOptions::default());
        hlsl::Writer::new(&mut made, &options, &pipeline)
            .write(module, info, None)
            .unwrap_or_else(|e| panic!("{name} {acc:?} as HLSL {kind}: {e}"));
        keep(kind, made.as_bytes());
    }
}
