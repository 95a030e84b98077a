//! Which way a product takes: by a rule at first, then by the time that each takes, which later runs
//! know.

use super::adapter::Info;
use super::clock;
use super::key::{key, Key, Map};
use super::pipeline_cache;
use super::tile::{Tile, TILES};
use super::Gpu;
use crate::bail;
use crate::error::Result;
use parking_lot::Mutex;
use std::fmt::Write;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Products of a kind until the ways are timed, and times of each, of which the least counts.
const PATIENCE: u32 = 3;
const TIMES: usize = 3;
/// What another way than the rule's has to be quicker by: clocks are no better than that.
const MARGIN: f64 = 0.97;
/// For how long a way whose kernels are new is run before.
const WARM: Duration = Duration::from_millis(20);
/// How many times as long as the best another may take for a second time.
const FAR: f64 = 1.5;

/// What `PYTENSORLIB_TUNE` says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// `0`: what was timed before counts for nothing either.
    Never,
    /// `1`: at the third product of a kind, where the adapter is no software.
    Third,
    /// `full`: at the first, on every adapter.
    First,
}

impl When {
    fn told() -> Result<When> {
        Ok(match std::env::var("PYTENSORLIB_TUNE").as_deref() {
            Err(_) | Ok("" | "1") => When::Third,
            Ok("0") => When::Never,
            Ok("full") => When::First,
            Ok(other) => {
                bail!(
                    Value,
                    "PYTENSORLIB_TUNE: expected 0, 1 or full, but found {other:?}"
                )
            }
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// How many there were.
    Seen(u32),
    Chosen(Name),
}

/// What stands for a choice in a file.
pub type Name = [usize; 2];

/// One of the ways that products of a kind can take.
pub trait Choice: Copy + PartialEq {
    /// Differs from that of every other.
    fn name(&self) -> Name;
}

impl Choice for Tile {
    fn name(&self) -> Name {
        [self.m, self.n]
    }
}

/// What is known of an adapter's products.
pub(super) struct Tuned {
    when: When,
    path: Option<PathBuf>,
    known: Mutex<Map<Key, Known>>,
}

impl Tuned {
    /// With what earlier runs found out of these `ways`, which the text describes.
    pub fn open(info: &Info, ways: &str) -> Result<Tuned> {
        let mut when = When::told()?;
        let timed = info.features.contains(wgpu::Features::TIMESTAMP_QUERY);
        if !timed || (info.software && when != When::First) {
            when = When::Never;
        }
        // Other kernels take other times.
        let ways = format!("{TILES:?} {ways}");
        let [kernels, _] = key(&(env!("CARGO_PKG_VERSION"), ways.as_str()));
        let name = format!("{}-{kernels:016x}.tiles", pipeline_cache::name(info));
        let folder = pipeline_cache::folder().filter(|_| when != When::Never);
        let path = folder.map(|folder| folder.join(name));
        let known = path.as_deref().map_or_else(Map::default, read);
        Ok(Tuned {
            when,
            path,
            known: Mutex::new(known),
        })
    }

    /// Writes what was found out beside what others have written. Nothing is lost but time where
    /// that does not succeed.
    pub fn save(&self) -> std::io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let before = read(path);
        let mut all = before.clone();
        let known = self.known.lock();
        all.extend(known.iter().filter(|k| matches!(k.1, Known::Chosen(_))));
        drop(known);
        if all == before {
            return Ok(());
        }
        let mut text = String::new();
        for (key, known) in &all {
            if let Known::Chosen([m, n]) = known {
                let _ = writeln!(text, "{:016x} {:016x} {m} {n}", key[0], key[1]);
            }
        }
        pipeline_cache::replace(path, text.as_bytes())
    }
}

/// What a file holds; lines that mean nothing are left out.
fn read(path: &Path) -> Map<Key, Known> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut half = || u64::from_str_radix(words.next()?, 16).ok();
        let key = [half()?, half()?];
        let mut size = || words.next()?.parse::<usize>().ok();
        Some((key, Known::Chosen([size()?, size()?])))
    };
    text.lines().filter_map(line).collect()
}

/// Sizes that are alike are of one kind.
pub fn bucket(size: usize) -> u32 {
    usize::BITS - size.leading_zeros()
}

/// The way of a product of a kind: the rule's, until `run`, which may be called any number of times,
/// has been timed for each of `ways`.
pub fn pick<T: Choice>(
    gpu: &Gpu,
    kind: impl Hash,
    rule: T,
    ways: &[T],
    run: impl Fn(T) -> Result<()>,
) -> Result<T> {
    let tuned = &gpu.tuned;
    let patience = match tuned.when {
        When::Never => return Ok(rule),
        When::Third => PATIENCE,
        When::First => 1,
    };
    let key = key(&kind);
    {
        let mut known = tuned.known.lock();
        match known.entry(key).or_insert(Known::Seen(0)) {
            Known::Chosen(name) => {
                let known = ways.iter().find(|way| way.name() == *name);
                return Ok(known.copied().unwrap_or(rule));
            }
            // What someone watches or keeps is what was asked for alone.
            _ if clock::watched() || gpu.is_recording() || gpu.is_outside() => return Ok(rule),
            // Nor while pipelines are compiled: a trial would wait for all of them.
            _ if tuned.when == When::Third && gpu.is_compiling() => return Ok(rule),
            Known::Seen(n) => {
                *n += 1;
                if *n < patience {
                    return Ok(rule);
                }
            }
        }
    }
    let way = fastest(gpu, rule, ways, run)?;
    tuned.known.lock().insert(key, Known::Chosen(way.name()));
    Ok(way)
}

fn fastest<T: Choice>(gpu: &Gpu, rule: T, ways: &[T], run: impl Fn(T) -> Result<()>) -> Result<T> {
    let _apart = clock::Apart::watch();
    let time = |way: T, best: f64| -> Result<f64> {
        // While the host compiles a card slows down to a fraction of its clock.
        if !gpu.info().software {
            let before = gpu.stats().pipelines;
            run(way)?;
            let begin = Instant::now();
            while gpu.stats().pipelines > before && begin.elapsed() < WARM {
                gpu.works()?;
                run(way)?;
            }
        }
        let mut least = f64::INFINITY;
        for _ in 0..TIMES {
            // Before the first time it is infinite.
            if least.is_finite() && least > best {
                break;
            }
            gpu.works()?;
            gpu.forget_works();
            run(way)?;
            let works = gpu.works()?;
            let of = works.iter().filter(|w| !w.kernel.is_empty());
            least = least.min(of.map(|w| w.end - w.begin).sum());
        }
        gpu.forget_works();
        Ok(least)
    };
    let mut best = (time(rule, f64::INFINITY)? * MARGIN, rule);
    for &way in ways.iter().filter(|way| **way != rule) {
        // One that the adapter does not take is none of them.
        let taken = time(way, FAR * best.0).unwrap_or(f64::INFINITY);
        if taken < best.0 {
            best = (taken, way);
        }
    }
    Ok(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::gpu;
    use std::cell::Cell;

    #[test]
    fn a_file_with_damage_gives_what_is_whole() {
        let path = std::env::temp_dir().join(format!("tiles-{}", std::process::id()));
        let text = "00000000000000ff 0000000000000001 64 64\nx\n1 2 64\n1 2 5 -\n1 2 32 32 \n";
        std::fs::write(&path, text).unwrap();
        let found = read(&path);
        std::fs::remove_file(&path).unwrap();
        let tile = |m| Known::Chosen([m, m]);
        let all = [([255, 1], tile(64)), ([1, 2], tile(32))];
        assert_eq!(found, all.into_iter().collect());
        assert_eq!(read(&path), Map::default());
    }

    #[test]
    fn every_tile_is_timed_and_an_error_is_no_winner() {
        let Some((_turn, gpu)) = gpu() else { return };
        let runs = Cell::new(0);
        let tile = fastest(gpu, TILES[2], &TILES, |tile| {
            runs.set(runs.get() + 1);
            match tile == TILES[2] {
                true => Ok(()),
                false => bail!(Runtime, "not here"),
            }
        });
        assert_eq!(tile.unwrap(), TILES[2]);
        // On a card they run before, too.
        if gpu.info().software {
            assert_eq!(runs.get(), TIMES + TILES.len() - 1);
        }
    }
}
