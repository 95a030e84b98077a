// Several contiguous float32 tensors times one number, in place. A generated tail binds the tensors and
// the number, and has `main`.
override COUNT: u32 = 1u;
override WG: u32 = WORKGROUP;

struct Params {
    factor_offset: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
    // Elements and the place of the first.
    slot: array<array<vec4<u32>, 2>, SLOTS>,
}
@group(0) @binding(0) var<uniform> p: Params;
