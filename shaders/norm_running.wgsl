// Running statistics: (1 - momentum) * old + momentum * value, of means and of variances, which
// `unbiased` makes those of samples. All float32.
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
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
    mean[m] = mixed(mean[m], bitcast<f32>(new_mean[p.new_mean_offset + i]));
    let value = bitcast<f32>(new_variance[p.new_var_offset + i]) * p.unbiased;
    variance[v] = mixed(variance[v], value);
}
