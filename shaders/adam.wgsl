// One step of Adam or AdamW on a contiguous float32 parameter, in place. The host computes the bias
// corrections: step = lr / (1 - beta1^t), root = sqrt(1 - beta2^t).
override G: u32 = F32;
override DECOUPLED: bool = false; // AdamW's weight decay
override AMSGRAD: bool = false;
override MAXIMIZE: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    x_offset: u32,
    m_offset: u32,
    v_offset: u32,
    top_offset: u32,
    g_offset: u32,
    lr: f32,
    weight_decay: f32,
    one_minus_beta1: f32,
    beta2: f32,
    one_minus_beta2: f32,
    eps: f32,
    step: f32,
    root: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> m: array<u32>;
@group(0) @binding(3) var<storage, read_write> v: array<u32>;
@group(0) @binding(4) var<storage, read_write> top: array<u32>;
@group(0) @binding(5) var<storage, read> g: array<u32>;

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
    var w = bitcast<f32>(x[p.x_offset + id]);
    var d = load_g(p.g_offset + id);
    if (MAXIMIZE) { d = -d; }
    if (DECOUPLED) { w -= p.lr * p.weight_decay * w; } else { d += p.weight_decay * w; }
    var first = bitcast<f32>(m[p.m_offset + id]);
    first += p.one_minus_beta1 * (d - first);
    m[p.m_offset + id] = bitcast<u32>(first);
    var second = p.beta2 * bitcast<f32>(v[p.v_offset + id]) + p.one_minus_beta2 * d * d;
    v[p.v_offset + id] = bitcast<u32>(second);
    if (AMSGRAD) {
        let before = bitcast<f32>(top[p.top_offset + id]);
        second = select(second, before, before > second);
        top[p.top_offset + id] = bitcast<u32>(second);
    }
    x[p.x_offset + id] = bitcast<u32>(w - p.step * first / (sqrt(second) / p.root + p.eps));
}
