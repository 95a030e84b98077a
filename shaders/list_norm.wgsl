// Norms of several contiguous float32 tensors: `main` adds up parts of each, a workgroup for a part,
// `finish` the parts, a workgroup for a tensor. A generated tail binds the tensors and reads them.
override KIND: u32 = SQUARES;
override WG: u32 = WORKGROUP;

struct Params {
    first: u32, // of these tensors among all
    parts: u32, // of each
    pad0: u32,
    pad1: u32,
    // Elements, and the place of the first.
    slot: array<vec4<u32>, SLOTS>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> partial: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

var<workgroup> found: array<f32, WG>;

fn joined(a: f32, b: f32) -> f32 {
    if (KIND == LARGEST) { return larger(a, b); }
    return a + b;
}
// Over the workgroup, in its first invocation.
fn whole(local: u32, v: f32) -> f32 {
    found[local] = v;
    workgroupBarrier();
    for (var s = WG / 2u; s > 0u; s /= 2u) {
        if (local < s) { found[local] = joined(found[local], found[local + s]); }
        workgroupBarrier();
    }
    return found[0];
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = group.x + group.y * groups.x;
    let s = min(id / p.parts, SLOTS - 1u);
    let part = id % p.parts;
    var sum = 0.0;
    for (var i = part * WG + local; i < p.slot[s].x; i += p.parts * WG) {
        let v = load(s, p.slot[s].y + i);
        sum = joined(sum, select(abs(v), v * v, KIND == SQUARES));
    }
    sum = whole(local, sum);
    if (local == 0u && id / p.parts < SLOTS && p.slot[s].x > 0u) {
        partial[(p.first + s) * p.parts + part] = sum;
    }
}

@compute @workgroup_size(WG)
fn finish(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = group.x + group.y * groups.x;
    var sum = 0.0;
    for (var i = local; i < p.parts && id < p.first; i += WG) {
        sum = joined(sum, partial[id * p.parts + i]);
    }
    sum = whole(local, sum);
    if (local == 0u && id < p.first) { y[p.slot[0].y + id] = select(sum, sqrt(sum), KIND == SQUARES); }
}
