// Running statistics: (1 - momentum) * old + momentum * value, of means and of variances, which `unbiased` makes
// those of samples; a value is the mean of what all instances have. All float32.
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    samples: u32, // instances
    momentum: f32,
    unbiased: f32,
    mean_offset: u32,
    var_offset: u32,
    new_mean_offset: u32,
    new_var_offset: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> mean: array<u32>;
@group(0) @binding(2) var<storage, read_write> variance: array<u32>;
@group(0) @binding(3) var<storage, read> new_mean: array<u32>;
@group(0) @binding(4) var<storage, read> new_variance: array<u32>;

fn mixed(old: u32, value: f32) -> u32 {
    return bitcast<u32>((1.0 - p.momentum) * bitcast<f32>(old) + p.momentum * value);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let i = (group.x + group.y * groups.x) * WG + local;
    if (i >= p.n) { return; }
    let m = p.mean_offset + i;
    let v = p.var_offset + i;
    var new_m = 0.0;
    var new_v = 0.0;
    for (var s = 0u; s < p.samples; s++) {
        new_m += bitcast<f32>(new_mean[p.new_mean_offset + s * p.n + i]);
        new_v += bitcast<f32>(new_variance[p.new_var_offset + s * p.n + i]);
    }
    let count = f32(p.samples);
    mean[m] = mixed(mean[m], divide(new_m, count));
    variance[v] = mixed(variance[v], divide(new_v, count) * p.unbiased);
}
