// One step of Adam or AdamW on contiguous float32 parameters, in place. The host computes the bias
// corrections of each: lr / (1 - beta1^t) and sqrt(1 - beta2^t). A generated tail binds parameters,
// moments and gradients.
override DECOUPLED: bool = false; // AdamW's weight decay
override AMSGRAD: bool = false;
override MAXIMIZE: bool = false;
override COUNT: u32 = 1u;
override WG: u32 = WORKGROUP;

struct Params {
    lr: f32,
    weight_decay: f32,
    one_minus_beta1: f32,
    beta2: f32,
    one_minus_beta2: f32,
    eps: f32,
    pad0: u32,
    pad1: u32,
    // Elements; offsets of the gradient, the parameter, both moments and the largest second one; the
    // bias corrections.
    slot: array<array<vec4<u32>, 2>, SLOTS>,
}
@group(0) @binding(0) var<uniform> p: Params;

struct State {
    x: f32,
    m: f32,
    v: f32,
    top: f32,
}

fn stepped(s: ptr<function, State>, g: f32, k: u32) {
    var w = (*s).x;
    var d = g;
    if (MAXIMIZE) { d = -d; }
    if (DECOUPLED) { w -= p.lr * p.weight_decay * w; } else { d += p.weight_decay * w; }
    (*s).m += p.one_minus_beta1 * (d - (*s).m);
    var second = p.beta2 * (*s).v + p.one_minus_beta2 * d * d;
    (*s).v = second;
    if (AMSGRAD) {
        second = select(second, (*s).top, below(second, (*s).top));
        (*s).top = second;
    }
    let step = bitcast<f32>(p.slot[k][1].z);
    let root = bitcast<f32>(p.slot[k][1].w);
    (*s).x = w - step * (*s).m / (sqrt(second) / root + p.eps);
}
