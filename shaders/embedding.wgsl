// Rows of a contiguous table of whole words by number, and the sums of rows that its gradient is.
// uses index, fault
override I: u32 = I64;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32, // numbers
    width: u32,
    count: u32, // rows of the table
    padding: u32, // the row that has no gradient, or `count`
    x_offset: u32,
    y_offset: u32,
    i_offset: u32,
    // The op and the dispatch, for the note of an index out of range.
    who: u32,
    dispatch: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> fault: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> x: array<u32>;
@group(0) @binding(4) var<storage, read> index: array<u32>;
var<workgroup> found: array<atomic<u32>, MOST / 32u>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    if (id >= p.n * p.width) { return; }
    let j = id / p.width;
    var row = load_index(p.i_offset + j);
    if (row < 0 || row >= bitcast<i32>(p.count)) {
        complain(p.i_offset + j, p.count);
        row = 0;
    }
    y[p.y_offset + id] = x[p.x_offset + u32(row) * p.width + id % p.width];
}

// A workgroup for each row of the table: it notes which numbers, at most MOST, are its own, and then
// adds their rows in order.
@compute @workgroup_size(WG)
fn sums(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = group.x + group.y * groups.x;
    if (row >= p.count) { return; }
    for (var w = local; w < MOST / 32u; w += WG) { atomicStore(&found[w], 0u); }
    workgroupBarrier();
    for (var j = local; j < p.n; j += WG) {
        if (row != p.padding && load_index(p.i_offset + j) == bitcast<i32>(row)) {
            atomicOr(&found[j / 32u], 1u << (j % 32u));
        }
    }
    workgroupBarrier();
    for (var c = local; c < p.width; c += WG) {
        var sum = 0.0;
        for (var w = 0u; w < (p.n + 31u) / 32u; w++) {
            var bits = atomicLoad(&found[w]);
            while (bits != 0u) {
                let j = w * 32u + firstTrailingBit(bits);
                sum += bitcast<f32>(x[p.x_offset + j * p.width + c]);
                bits &= bits - 1u;
            }
        }
        y[p.y_offset + row * p.width + c] = bitcast<u32>(sum);
    }
}
