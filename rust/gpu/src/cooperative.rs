//! Cooperative matrices: which an adapter has, and what a workgroup makes of a product with them.
//!
//! Subgroups multiply squares of 8 x 8 or 16 x 16 float16 elements with sums in float32 (tensor cores,
//! matrix cores, and simdgroup matrices, which also take float32 elements). Whether that is quicker
//! than the tiles of [`super::tile`] is a matter of the driver: a trial says (see [`super::tune`]).

use super::adapter::Info;
use super::launch::Launch;
use super::tune::{self, Choice, Name};
use super::Gpu;
use crate::dtype::DType;
use crate::error::Result;
use crate::{bail, ensure, host};
use std::cell::{OnceCell, RefCell};
use std::hash::Hash;
use wgpu::CooperativeScalarType as Scalar;

/// What `PYTENSORLIB_WGPU_COOPERATIVE` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowed {
    /// `0`.
    Never,
    /// `1`: where a trial wins.
    Trial,
    /// `force`: the first that the adapter takes, wherever a product may, for tests.
    Always,
}

impl Allowed {
    pub(super) fn told() -> Result<Allowed> {
        let name = "PYTENSORLIB_WGPU_COOPERATIVE";
        Ok(match std::env::var(name).as_deref() {
            Err(_) | Ok("" | "1") => Allowed::Trial,
            Ok("0") => Allowed::Never,
            Ok("force") => Allowed::Always,
            Ok(other) => bail!(Value, "{name}: expected 0, 1 or force, but found {other:?}"),
        })
    }
}

/// What operands are multiplied as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Factors {
    /// Of the operands.
    pub dtype: DType,
    /// How many numbers stand for an element.
    pub terms: usize,
}

/// A tile of a workgroup: rows and columns, and how many subgroups share each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Blocks {
    m: usize,
    n: usize,
    subgroups: [usize; 2],
}

const fn blocks(m: usize, n: usize, subgroups: [usize; 2]) -> Blocks {
    Blocks { m, n, subgroups }
}
pub(super) const BLOCKS: [Blocks; 4] = [
    blocks(64, 64, [2, 2]),
    blocks(128, 128, [2, 2]),
    blocks(128, 256, [2, 4]),
    blocks(256, 128, [4, 2]),
];

/// One way to make a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cooperative {
    blocks: Blocks,
    side: usize,
    /// Of the matrices: float16 or float32.
    part: DType,
    factors: Factors,
    /// Invocations that a subgroup is expected to have.
    lanes: usize,
    /// Whether all subgroups have as many.
    alone: bool,
    /// Whether matrices are loaded through pointers to four elements, which Metal does not take.
    by_fours: bool,
}

impl Cooperative {
    /// The ways that an adapter has.
    pub fn ways(info: &Info, factors: Factors) -> Vec<Cooperative> {
        let has = wgpu::Features::SHADER_F16
            | wgpu::Features::SUBGROUP
            | wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
        let mut all = vec![];
        if !info.features.contains(has) {
            return all;
        }
        let mut lanes = info.subgroups.map(|n| n as usize).to_vec();
        lanes.dedup();
        let squares = info
            .cooperative
            .iter()
            .filter(|c| c.m_size == c.n_size && c.m_size == c.k_size && c.cr_type == Scalar::F32);
        for square in squares {
            let part = match square.ab_type {
                Scalar::F16 => DType::F16,
                Scalar::F32 if factors.dtype == DType::F32 => DType::F32,
                _ => continue,
            };
            for (&lanes, blocks) in lanes.iter().flat_map(|l| BLOCKS.map(|b| (l, b))) {
                let side = square.m_size as usize;
                let way = Cooperative {
                    blocks,
                    side,
                    part,
                    factors,
                    lanes,
                    alone: info.subgroups[0] == info.subgroups[1],
                    by_fours: info.backend == "Vulkan",
                };
                if way.fits(info) && !all.contains(&way) {
                    all.push(way);
                }
            }
        }
        all
    }

    /// Whether a workgroup may have as many invocations, and as much memory.
    fn fits(&self, info: &Info) -> bool {
        let limits = &info.limits;
        let most = limits.max_compute_invocations_per_workgroup;
        let most = most.min(limits.max_compute_workgroup_size_x) as usize;
        self.lanes * self.subgroups() <= most
            && self.memory() <= limits.max_compute_workgroup_storage_size as usize
    }

    fn subgroups(&self) -> usize {
        self.blocks.subgroups.iter().product()
    }

    pub fn extent(&self) -> (usize, usize) {
        (self.blocks.m, self.blocks.n)
    }

    /// Whether elements are not those of the matrices, and are scaled.
    pub fn is_scaled(&self) -> bool {
        self.part != self.factors.dtype
    }

    fn terms(&self) -> usize {
        match self.is_scaled() {
            true => self.factors.terms,
            false => 1,
        }
    }

    /// Elements along k of a step.
    pub fn depth(&self) -> usize {
        32 / self.terms() / (self.part.size() / 2)
    }

    /// Bytes of a workgroup's memory, however the tiles lie in it.
    fn memory(&self) -> usize {
        let (m, n) = self.extent();
        let depth = self.depth();
        let tile = |lines: usize| (lines * (depth + 8)).max(depth * (lines + 8));
        let tiles = self.terms() * (tile(m) + tile(n)) * self.part.size();
        // Of a convolution two steps have tables of 20 bytes a line, and each column a place.
        tiles + 4 * (m + 2 * n + 10 * depth + self.subgroups() * self.side * self.side)
    }

    /// The types of the operands and of the matrices; `fours` are the operands that the shader has
    /// as fours too.
    pub fn types(&self, fours: &[&str]) -> String {
        let name = |dtype: DType| if dtype == DType::F16 { "f16" } else { "f32" };
        let (dtype, part) = (self.factors.dtype, name(self.part));
        let (stored, element, four) = match dtype {
            DType::BF16 => ("u32", "f32", "vec2<u32>"),
            _ => (name(dtype), name(dtype), "vec4<Element>"),
        };
        let mut text =
            format!("alias Stored = {stored};\nalias Element = {element};\nalias Four = {four};\n");
        let [load, load_fours] = match dtype {
            DType::BF16 => [
                "bitcast<f32>((X[i / 2u] >> (i % 2u * 16u)) << 16u)",
                "bitcast<vec4<Element>>((fours_of_X[i].xxyy >> vec4(0u, 16u, 0u, 16u)) << vec4(16u))",
            ],
            _ => ["X[i]", "fours_of_X[i]"],
        };
        for x in ["a", "b"] {
            let load = load.replace('X', x);
            text += &format!("fn load_{x}(i: u32) -> Element {{\n    return {load};\n}}\n");
        }
        for x in fours {
            let load = load_fours.replace('X', x);
            text += &format!("fn fours_{x}(i: u32) -> vec4<Element> {{\n    return {load};\n}}\n");
        }
        text += match self.by_fours {
            true => "alias Held = vec4<Part>;\nconst HELD: u32 = 4u;\n",
            false => "alias Held = Part;\nconst HELD: u32 = 1u;\n",
        };
        for x in ["a", "b"] {
            let put = match self.by_fours {
                true => format!("tile_{x}[at / 4u] = v;"),
                false => format!("for (var j = 0u; j < 4u; j++) {{ tile_{x}[at + j] = v[j]; }}"),
            };
            text += &format!("fn hold_{x}(at: u32, v: vec4<Part>) {{\n    {put}\n}}\n");
        }
        let matrix = format!("coop_mat{0}x{0}", self.side);
        text + &format!(
            "alias Part = {part};\nalias PartA = {matrix}<{part}, A>;\n\
             alias PartB = {matrix}<{part}, B>;\nalias Sum = {matrix}<f32, C>;\n"
        )
    }

    /// Tells a shader with these constants of it.
    pub fn set<'a, P: bytemuck::NoUninit>(
        &self,
        types: &'a String,
        launch: Launch<'a, P>,
    ) -> Launch<'a, P> {
        let [rows, columns] = self.blocks.subgroups;
        launch
            .followed_by(types)
            .set("SCALED", self.is_scaled())
            .set("TERMS", self.terms() as u32)
            .set("SIDE", self.side as u32)
            .set("BM", self.blocks.m as u32)
            .set("BN", self.blocks.n as u32)
            .set("WM", rows as u32)
            .set("WN", columns as u32)
            .set("DEPTH", self.depth() as u32)
            .set("LANES", self.lanes as u32)
            .set("ALONE", self.alone)
    }
}

/// `None` is the tile that the product has without them.
impl Choice for Option<Cooperative> {
    fn name(&self) -> Name {
        self.map_or([0, 0], |c| {
            let part = 2 * c.side + (c.part == DType::F32) as usize;
            let [rows, columns] = c.blocks.subgroups;
            [
                c.blocks.m << 16 | rows << 8 | part,
                c.blocks.n << 16 | columns << 8 | c.lanes,
            ]
        })
    }
}

/// What a product that may be made by cooperative matrices does.
pub enum Ways {
    /// This, or the tiles.
    One(Option<Cooperative>),
    /// Whichever a trial finds to be the quickest.
    Tried(Vec<Cooperative>),
}

impl Gpu {
    /// The ways of a product of these, if they may be multiplied so.
    pub fn ways(&self, factors: Option<Factors>) -> Ways {
        let allowed = self.cooperation;
        let Some(factors) = factors.filter(|_| allowed != Allowed::Never) else {
            return Ways::One(None);
        };
        let all = Cooperative::ways(self.info(), factors);
        match all.is_empty() || allowed == Allowed::Always {
            true => Ways::One(all.first().copied()),
            false => Ways::Tried(all),
        }
    }

    /// Which of these ways is quicker than the tiles, `None`, and gives what they give: `sample` reads
    /// what `run` made, which may differ by `error` of the largest.
    pub fn try_ways(
        &self,
        kind: impl Hash,
        ways: &[Cooperative],
        error: f32,
        run: impl Fn(Option<Cooperative>) -> Result<()>,
        sample: impl Fn() -> Result<Vec<f32>>,
    ) -> Result<Option<Cooperative>> {
        if !host::may_choose() {
            return Ok(None);
        }
        let ways: Vec<_> = ways.iter().copied().map(Some).collect();
        let expected = OnceCell::new();
        let right = RefCell::new(vec![]);
        tune::pick(self, ("cooperative", kind), None, &ways, |way| {
            run(way)?;
            if way.is_none() {
                if expected.get().is_none() {
                    let _ = expected.set(sample()?);
                }
                return Ok(());
            }
            if right.borrow().contains(&way) {
                return Ok(());
            }
            let expected = expected.get().map_or(&[][..], |e| e);
            ensure!(
                are_alike(&sample()?, expected, error),
                Runtime,
                "wgpu: this adapter's cooperative matrices give other results"
            );
            right.borrow_mut().push(way);
            Ok(())
        })
    }
}

/// Whether results differ by no more than `error` of the largest.
fn are_alike(x: &[f32], y: &[f32], error: f32) -> bool {
    let finite = y.iter().filter(|v| v.is_finite());
    let most = finite.fold(0f32, |m, v| m.max(v.abs()));
    let close =
        |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= error * most;
    x.len() == y.len() && x.iter().zip(y).all(close)
}

#[cfg(any(test, feature = "testing"))]
pub mod tests {
    use super::*;

    /// An adapter that never was.
    fn pretend(sides: &[(u32, Scalar, Scalar)], subgroups: [u32; 2]) -> Info {
        let square = |&(side, ab_type, cr_type)| wgpu::CooperativeMatrixProperties {
            m_size: side,
            n_size: side,
            k_size: side,
            ab_type,
            cr_type,
            saturating_accumulation: false,
        };
        Info {
            name: String::new(),
            backend: "Vulkan".to_string(),
            software: false,
            unrolls: true,
            compilers: 0,
            wide: usize::MAX,
            driver: String::new(),
            features: wgpu::Features::all(),
            limits: wgpu::Limits {
                max_compute_workgroup_storage_size: 48 << 10,
                max_compute_invocations_per_workgroup: 1024,
                max_compute_workgroup_size_x: 1024,
                ..wgpu::Limits::default()
            },
            cooperative: sides.iter().map(square).collect(),
            subgroups,
            int64: false,
            float64: false,
            max_binding: 1 << 30,
            max_buffer: 1 << 30,
            max_groups: 65_535,
            memory: None,
        }
    }

    const SQUARES: [(u32, Scalar, Scalar); 4] = [
        (8, Scalar::F16, Scalar::F16),
        (8, Scalar::F16, Scalar::F32),
        (8, Scalar::F32, Scalar::F32),
        (16, Scalar::F16, Scalar::F32),
    ];

    /// Adapters, and operands with their terms.
    pub fn cases() -> Vec<(Info, DType, usize)> {
        let operands = [
            (DType::F16, 1),
            (DType::BF16, 1),
            (DType::F32, 1),
            (DType::F32, 2),
        ];
        // Half of them with matrices that are loaded by elements.
        let adapter = |i: usize| Info {
            backend: ["Vulkan", "Metal"][i % 2].to_string(),
            ..pretend(&SQUARES, [32, 64])
        };
        let each = operands.iter().enumerate();
        each.map(|(i, &(dtype, terms))| (adapter(i), dtype, terms))
            .collect()
    }

    /// Of one of the ways.
    pub fn types(fours: &[&str]) -> String {
        let (info, dtype, terms) = cases().remove(0);
        Cooperative::ways(&info, Factors { dtype, terms })[0].types(fours)
    }

    #[test]
    fn results_that_differ_by_more_than_is_explained_are_found() {
        let nan = f32::NAN;
        assert!(are_alike(&[1.0, 4.0, nan], &[1.125, 4.0, nan], 0.03125));
        assert!(!are_alike(&[1.0, 4.0, nan], &[1.25, 4.0, nan], 0.03125));
        assert!(!are_alike(&[1.0, nan], &[1.0, 1.0], 0.5));
        assert!(!are_alike(&[1.0, f32::INFINITY], &[1.0, 1.0], 0.5));
        assert!(!are_alike(&[1.0], &[], 0.5));
    }

    #[test]
    fn ways_are_those_of_the_adapter_with_sums_in_float32() {
        let f32 = |terms| Factors {
            dtype: DType::F32,
            terms,
        };
        let f16 = Factors {
            dtype: DType::F16,
            terms: 1,
        };
        let blocks = BLOCKS.len();
        assert!(Cooperative::ways(&pretend(&[], [32; 2]), f16).is_empty());
        assert!(Cooperative::ways(&pretend(&SQUARES[..1], [32; 2]), f16).is_empty());
        let all = Cooperative::ways(&pretend(&SQUARES, [32; 2]), f16);
        assert_eq!(all.len(), 2 * blocks);
        assert!(all
            .iter()
            .all(|way| way.part == DType::F16 && !way.is_scaled()));
        // Float32 elements need no scale and no second term.
        let all = Cooperative::ways(&pretend(&SQUARES, [32; 2]), f32(2));
        let own: Vec<_> = all.iter().filter(|way| !way.is_scaled()).collect();
        assert!(own
            .iter()
            .all(|way| way.part == DType::F32 && way.terms() == 1));
        assert!(!own.is_empty() && own.len() < all.len());
        // Of two sizes of subgroups each is tried.
        let all = Cooperative::ways(&pretend(&SQUARES[3..], [32, 64]), f16);
        assert_eq!(all.iter().filter(|way| way.lanes == 64).count(), blocks);
        let mut small = pretend(&SQUARES, [32; 2]);
        small.limits.max_compute_workgroup_storage_size = 16 << 10;
        let all = Cooperative::ways(&small, f32(1));
        assert!(!all.is_empty() && all.iter().all(|way| way.extent() == (64, 64)));
        small.features.remove(wgpu::Features::SHADER_F16);
        assert!(Cooperative::ways(&small, f32(1)).is_empty());
    }

    #[test]
    fn names_of_ways_differ() {
        for (info, dtype, terms) in cases() {
            let all = Cooperative::ways(&info, Factors { dtype, terms });
            let names: std::collections::HashSet<Name> =
                all.iter().map(|&way| Some(way).name()).collect();
            assert_eq!(names.len(), all.len());
            assert!(!names.contains(&None.name()));
        }
    }
}
