// What the card can do: `copy` moves n vectors of four words, `multiply` runs eight chains of fused
// multiplications and additions in each of n invocations, TURNS of each for one of the loop's own.
override WG: u32 = WORKGROUP;
override TURNS: u32 = 1u;

struct Params {
    n: u32,
    trips: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;

@compute @workgroup_size(WG)
fn copy(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id < p.n) { y[id] = x[id]; }
}

@compute @workgroup_size(WG)
fn multiply(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n) { return; }
    // From memory, so that nothing can be computed ahead.
    let a = x[0] + 0.5;
    let b = x[1] + f32(local);
    var r0 = b;
    var r1 = b + 1.0;
    var r2 = b + 2.0;
    var r3 = b + 3.0;
    var r4 = b + 4.0;
    var r5 = b + 5.0;
    var r6 = b + 6.0;
    var r7 = b + 7.0;
    for (var k = 0u; k < p.trips; k++) {
        for (var turn = 0u; turn < TURNS; turn++) { // unroll TURNS
            r0 = fma(r0, a, b);
            r1 = fma(r1, a, b);
            r2 = fma(r2, a, b);
            r3 = fma(r3, a, b);
            r4 = fma(r4, a, b);
            r5 = fma(r5, a, b);
            r6 = fma(r6, a, b);
            r7 = fma(r7, a, b);
        }
    }
    y[id] = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7));
}
