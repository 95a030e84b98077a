//! What is known of the processor: its instruction set, its maker and its caches. What runs
//! depends on nothing else, and environment variables force each of these, so that every path can
//! be tested on one machine:
//!
//! | variable | values |
//! |---|---|
//! | `PYTENSORLIB_CPU` | `portable`, `neon`, `avx2`, `avx512`: the instruction set, without AMX; `amx-model`: the best one, products in AMX's tiles by a model in software |
//! | `PYTENSORLIB_VENDOR` | `amd`, `intel`: whose stores past the caches are worth it without AVX-512 (`cpu::non_temporal`) |
//! | `PYTENSORLIB_L1_KB`, `PYTENSORLIB_L2_KB` | the data caches of a core |
//! | `PYTENSORLIB_LAST_KB` | the last cache; larger results are written past it, all of them with `0` |
//! | `PYTENSORLIB_NUM_THREADS` | threads of a loop |
//! | `PYTENSORLIB_CACHE_MB` | free memory that the allocator keeps |
//! | `PYTENSORLIB_GUARD` | `1`: bytes around each block of memory that nobody may write to |

use crate::error::{Error, Result};
use crate::isa::Level;
use std::sync::OnceLock;

/// What multiplies in AMX's tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amx {
    /// Nothing, whatever the machine has.
    Never,
    /// The machine, where it can.
    Machine,
    /// A model in software.
    Model,
}

/// A processor; sizes in bytes.
#[derive(Clone, Debug)]
pub struct Machine {
    pub level: Level,
    pub amx: Amx,
    pub is_amd: bool,
    pub l1: usize,
    pub l2: usize,
    pub last: usize,
    /// From how many bytes on results are written past the caches.
    pub large: usize,
}

/// This machine, or what the environment makes of it.
#[inline]
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    // What cannot be understood was refused where the library was loaded.
    MACHINE.get_or_init(|| forced(detect()).unwrap_or_else(|_| detect()))
}

/// The best level of this machine, or the one that is forced.
#[inline]
pub fn level() -> Level {
    machine().level
}

/// The number of threads that is asked for, if any.
pub fn threads() -> Result<Option<usize>> {
    number("PYTENSORLIB_NUM_THREADS", 1)
}

/// How many bytes of free memory are kept, if that is said.
pub fn cache_cap() -> Result<Option<usize>> {
    Ok(number("PYTENSORLIB_CACHE_MB", 0)?.map(|mb| mb.saturating_mul(1 << 20)))
}

/// Whether each block of memory has guard bytes around it.
pub fn guards_memory() -> Result<bool> {
    let guard = read("PYTENSORLIB_GUARD", "0 or 1", |t| match t {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    })?;
    Ok(guard.unwrap_or(false))
}

/// Fails where a variable holds what it cannot.
pub fn check() -> Result<()> {
    forced(detect())?;
    threads()?;
    cache_cap()?;
    guards_memory()?;
    Ok(())
}

/// What a variable holds; empty is as good as unset.
pub fn read<T>(name: &str, must: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    let Some(text) = std::env::var_os(name) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    match text.trim() {
        "" => Ok(None),
        text => parse(text).map(Some).ok_or_else(|| {
            Error::value(format!(
                "environment variable {name} must be {must}, got '{text}'"
            ))
        }),
    }
}

fn number(name: &str, least: usize) -> Result<Option<usize>> {
    let must = format!("a whole number, at least {least}");
    read(name, &must, |t| t.parse().ok().filter(|&n| n >= least))
}

/// The machine as the environment wants it.
fn forced(mut m: Machine) -> Result<Machine> {
    let cpu = read(
        "PYTENSORLIB_CPU",
        "portable, neon, avx2, avx512 or amx-model",
        |t| match t {
            "portable" => Some((Level::Portable, Amx::Never)),
            "neon" => Some((Level::Neon, Amx::Never)),
            "avx2" => Some((Level::Avx2, Amx::Never)),
            "avx512" => Some((Level::Avx512, Amx::Never)),
            "amx-model" => Some((m.level, Amx::Model)),
            _ => None,
        },
    )?;
    if let Some((level, amx)) = cpu {
        crate::ensure!(
            m.level.runs(level),
            Value,
            "environment variable PYTENSORLIB_CPU asks for {}, but this machine has {}",
            level.name(),
            m.level.name()
        );
        (m.level, m.amx) = (level, amx);
    }
    let vendor = read("PYTENSORLIB_VENDOR", "amd or intel", |t| match t {
        "amd" => Some(true),
        "intel" => Some(false),
        _ => None,
    })?;
    m.is_amd = vendor.unwrap_or(m.is_amd);
    let bytes = |name, least| Ok(number(name, least)?.map(|kb| kb.saturating_mul(1 << 10)));
    m.l1 = bytes("PYTENSORLIB_L1_KB", 1)?.unwrap_or(m.l1);
    m.l2 = bytes("PYTENSORLIB_L2_KB", 1)?.unwrap_or(m.l2);
    if let Some(last) = bytes("PYTENSORLIB_LAST_KB", 0)? {
        (m.last, m.large) = (last, last);
    }
    Ok(m)
}

fn detect() -> Machine {
    let is_amd = is_amd();
    // Where nobody says: what is common.
    let [l1, l2, last] = caches(is_amd).unwrap_or([32 << 10, 512 << 10, 32 << 20]);
    Machine {
        level: Level::detect(),
        amx: Amx::Machine,
        is_amd,
        l1,
        l2,
        last,
        // Below 16 MiB non-temporal stores do not pay; beyond 64 MiB other cores use the cache, too.
        large: last.clamp(16 << 20, 64 << 20),
    }
}

#[cfg(target_arch = "x86_64")]
fn is_amd() -> bool {
    std::arch::x86_64::__cpuid(0).ebx == u32::from_le_bytes(*b"Auth")
}

/// The first, the second and the largest data cache.
#[cfg(target_arch = "x86_64")]
fn caches(is_amd: bool) -> Option<[usize; 3]> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let (first, leaf) = if is_amd {
        (0x8000_0000, 0x8000_001d)
    } else {
        (0, 4)
    };
    if __cpuid(first).eax < leaf {
        return None;
    }
    let mut sizes = [0; 4];
    for i in 0..8 {
        let c = __cpuid_count(leaf, i);
        let (kind, level) = (c.eax & 31, (c.eax >> 5 & 7) as usize);
        if kind == 0 {
            break;
        }
        // Kind 2 holds instructions.
        if kind != 2 && level < sizes.len() {
            let ways = (c.ebx >> 22) as usize + 1;
            let parts = (c.ebx >> 12 & 0x3ff) as usize + 1;
            let line = (c.ebx & 0xfff) as usize + 1;
            sizes[level] = ways * parts * line * (c.ecx as usize + 1);
        }
    }
    let last = sizes[1].max(sizes[2]).max(sizes[3]);
    (sizes[1] > 0).then(|| [sizes[1], sizes[2].max(sizes[1]), last])
}

#[cfg(not(target_arch = "x86_64"))]
fn is_amd() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn caches(_: bool) -> Option<[usize; 3]> {
    None
}

/// The exceptions that this thread's arithmetic has raised since the last call, as bits of MXCSR:
/// 2 for a denormal operand, 16 for an underflow.
pub fn float_exceptions() -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        const RAISED: u32 = 0x3f;
        let mut now = 0u32;
        // SAFETY: the register is stored, and loaded with nothing changed but these bits, which
        // compiled code neither reads nor relies on.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &mut now, options(nostack));
            let clear = now & !RAISED;
            std::arch::asm!("ldmxcsr [{}]", in(reg) &clear, options(nostack));
        }
        now & RAISED
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_is_the_best_or_the_forced_one() {
        let asked = std::env::var("PYTENSORLIB_CPU").unwrap_or_default();
        let found = machine();
        match asked.as_str() {
            "" => assert_eq!(found.level, Level::detect()),
            "amx-model" => assert_eq!((found.level, found.amx), (Level::detect(), Amx::Model)),
            name => assert_eq!((found.level.name(), found.amx), (name, Amx::Never)),
        }
    }

    #[test]
    fn no_machine_runs_the_code_of_another_kind() {
        use Level::*;
        let runs = |best: Level| [Portable, Neon, Avx2, Avx512].map(|other| best.runs(other));
        assert_eq!(runs(Portable), [true, false, false, false]);
        assert_eq!(runs(Neon), [true, true, false, false]);
        assert_eq!(runs(Avx2), [true, false, true, false]);
        assert_eq!(runs(Avx512), [true, false, true, true]);
    }
}
