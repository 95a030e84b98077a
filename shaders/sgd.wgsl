// One step of SGD on a contiguous float32 parameter, in place: weight decay, momentum with
// dampening, Nesterov.
override G: u32 = F32;
override HAS_MOMENTUM: bool = false;
override FIRST: bool = false; // the momentum buffer has no value yet
override NESTEROV: bool = false;
override MAXIMIZE: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    x_offset: u32,
    m_offset: u32,
    g_offset: u32,
    lr: f32,
    weight_decay: f32,
    momentum: f32,
    dampening: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> m: array<u32>;
@group(0) @binding(3) var<storage, read> g: array<u32>;

fn load_g(i: u32) -> Acc {
    let w = word(G, i);
    return decode(G, g[w], g[w + wide(G)], i);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    var v = bitcast<f32>(x[p.x_offset + id]);
    var d = load_g(p.g_offset + id);
    if (MAXIMIZE) { d = -d; }
    d += p.weight_decay * v;
    if (HAS_MOMENTUM) {
        var buffer = d;
        if (!FIRST) {
            buffer = p.momentum * bitcast<f32>(m[p.m_offset + id]) + (1.0 - p.dampening) * d;
        }
        m[p.m_offset + id] = bitcast<u32>(buffer);
        if (NESTEROV) { d += p.momentum * buffer; } else { d = buffer; }
    }
    x[p.x_offset + id] = bitcast<u32>(v - p.lr * d);
}
