// One step of SGD on contiguous float32 parameters, in place: weight decay, momentum with
// dampening, Nesterov. A generated tail binds parameters, momenta and gradients.
override HAS_MOMENTUM: bool = false;
override FIRST: bool = false; // the momentum buffer has no value yet
override NESTEROV: bool = false;
override MAXIMIZE: bool = false;
override COUNT: u32 = 1u;
override WG: u32 = WORKGROUP;

struct Params {
    lr: f32,
    weight_decay: f32,
    momentum: f32,
    dampening: f32,
    // Elements; offsets of the gradient, the parameter and its momentum.
    slot: array<array<vec4<u32>, 2>, SLOTS>,
}
@group(0) @binding(0) var<uniform> p: Params;

struct State {
    x: f32,
    m: f32,
}

fn stepped(s: ptr<function, State>, g: f32, k: u32) {
    var d = g;
    if (MAXIMIZE) { d = -d; }
    d += p.weight_decay * (*s).x;
    if (HAS_MOMENTUM) {
        var buffer = d;
        if (!FIRST) { buffer = p.momentum * (*s).m + (1.0 - p.dampening) * d; }
        (*s).m = buffer;
        if (NESTEROV) { d += p.momentum * buffer; } else { d = buffer; }
    }
    (*s).x -= p.lr * d;
}
