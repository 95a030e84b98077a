//! The thread pool: N - 1 workers and the caller.
//!
//! A job is split into as many segments as threads, and these into chunks that anyone claims by an
//! atomic counter. A thread begins with the segment that is its own in every job, because its
//! caches may hold what it read or wrote there before, and then helps the others, so that a worker
//! that was descheduled costs at most its own chunk. Jobs go through segments from the start and from
//! the end [in turn](Job::turns), to begin where the one before has just been. Workers spin for a
//! moment after their last chunk, because operators follow each other closely, and then park. No more
//! threads spin than there are CPUs for them, and none takes a CPU from the caller for long. A forked
//! child finds no pool and makes its own; the locks are those of `std`, which share no state that a
//! fork could leave locked.
//!
//! Before each chunk, and wherever a long kernel [looks](look), the caller asks whether the user has
//! interrupted it; then the workers stop too, and the call ends with that error.

use crate::error;
use crate::host;
use crate::machine;
use crate::os;
pub use crate::ptr::Ptr;
use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a worker looks for the next job before it parks.
const SPIN: Duration = Duration::from_micros(500);
/// After this time it offers its CPU to others at every look.
const ALONE: Duration = Duration::from_micros(4);
/// How long a caller spins at least for workers inside, before it sleeps.
const WAIT: Duration = Duration::from_micros(20);
/// How long at most, however long the job was.
const LONG_WAIT: Duration = Duration::from_millis(1);
/// How long a caller that sleeps goes without asking for an interruption.
const TICK: Duration = Duration::from_millis(50);
/// The CPUs that this process may use are counted again after this many jobs.
const RECOUNT: usize = 128;
/// More chunks than threads, so that a slow thread is helped out.
const CHUNKS_PER_THREAD: usize = 4;
/// Few tasks are long ones: of ten, chunks of two would leave one thread with four.
const FEW: usize = 64;
const CHUNKS_OF_FEW: usize = 16;
/// The longest chunk in grains, so that the caller looks for an interruption every few milliseconds.
const LONGEST: usize = 256;
/// A shorter job finds what it needs in the caches of its cores in whichever direction it goes.
const TURN: Duration = Duration::from_micros(8);
/// A longer job loses little by one chunk that lies in another core's caches.
const HELPED: Duration = Duration::from_micros(200);
/// Segments of a job; with more threads, some begin with the same one.
const MAX_SEGMENTS: usize = 16;
/// More threads than this are never started.
const MAX_THREADS: usize = 1024;

type Body<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// A part of a job, on a cache line of its own: there is no false sharing.
#[repr(align(64))]
struct Segment {
    start: usize,
    /// The first index that nobody has claimed.
    next: AtomicUsize,
    end: usize,
}

/// One `parallel_for`, on the caller's stack.
struct Job<'a> {
    body: &'a Body<'a>,
    chunk: usize,
    segments: [Segment; MAX_SEGMENTS],
    /// How many segments there are.
    parts: usize,
    /// Whether the chunks of a segment are taken from its end.
    backward: bool,
    /// Whether a thread has claimed a chunk of a segment that is not its own.
    helped: AtomicBool,
    /// Workers inside the job; they enter under the pool's lock while the job is listed.
    inside: AtomicUsize,
    helpers: usize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Whether the caller was interrupted, and what is left is not to be run.
    stopped: AtomicBool,
}

/// What a worker unwinds with from a job whose caller was interrupted.
struct Stopped;

impl<'a> Job<'a> {
    fn new(n: usize, threads: usize, chunk: usize, backward: bool, body: &'a Body<'a>) -> Self {
        let chunks = n.div_ceil(chunk);
        let threads = threads.min(chunks);
        let parts = threads.min(MAX_SEGMENTS);
        let mut from = 0;
        let segments = std::array::from_fn(|s| {
            let next = AtomicUsize::new(from);
            if s < parts {
                from = ((s + 1) * chunks / parts * chunk).min(n);
            }
            let start = next.load(Relaxed);
            Segment {
                start,
                next,
                end: from,
            }
        });
        Job {
            body,
            chunk,
            segments,
            parts,
            backward,
            helped: AtomicBool::new(false),
            inside: AtomicUsize::new(0),
            helpers: threads - 1,
            panic: Mutex::new(None),
            stopped: AtomicBool::new(false),
        }
    }

    /// Runs chunks, those of segment `first` before others, until none is left.
    fn drain(&self, first: usize) {
        for i in 0..self.parts {
            let at = first + i;
            let segment = &self.segments[if at < self.parts { at } else { at - self.parts }];
            loop {
                // A look does not take the line from the others, who may still use it.
                if self.stopped.load(Relaxed) || segment.next.load(Relaxed) >= segment.end {
                    break;
                }
                let start = segment.next.fetch_add(self.chunk, Relaxed);
                if start >= segment.end {
                    break;
                }
                if i > 0 {
                    self.helped.store(true, Relaxed);
                }
                let start = match self.backward {
                    true => self.mirrored(segment, start),
                    false => start,
                };
                let range = start..(start + self.chunk).min(segment.end);
                let run = || {
                    look();
                    (self.body)(range)
                };
                match catch_unwind(AssertUnwindSafe(run)) {
                    Err(cause) if !cause.is::<Stopped>() => {
                        lock(&self.panic).get_or_insert(cause);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Where the chunk begins that lies as far from the end as that at `start` from the start.
    fn mirrored(&self, segment: &Segment, start: usize) -> usize {
        let last = (segment.end - segment.start - 1) / self.chunk * self.chunk;
        segment.start + last - (start - segment.start)
    }

    /// Whether the next job is to go in the other direction than this one, which took so long.
    ///
    /// Not after a job in which a thread helped another. The owner of that chunk would begin with it,
    /// find it in the other core's caches, come late to its own last chunk for that and be helped
    /// again, for thousands of jobs, each of which takes up to twice its time. In the same direction it
    /// comes to that chunk last, when those caches have let go of it. Nor for a job too short to mind,
    /// which may follow each long one, so that all of these would go in one direction.
    fn turns(&self, time: Duration) -> bool {
        time >= TURN && (time >= HELPED || !self.helped.load(Relaxed))
    }

    fn open(&self) -> bool {
        let left = |s: &Segment| s.next.load(Relaxed) < s.end;
        self.inside.load(Relaxed) < self.helpers && self.segments[..self.parts].iter().any(left)
    }
}

#[derive(Clone, Copy, PartialEq)]
struct Listed(*const Job<'static>);

// SAFETY: a job is shared only while it is listed or a worker is inside; the caller waits for both.
unsafe impl Send for Listed {}

struct Board {
    jobs: Vec<Listed>,
    parked: usize,
    workers: usize,
}

struct Pool {
    board: Mutex<Board>,
    wake: Condvar,
    /// Tells callers that sleep that a worker has left a job.
    left: Condvar,
    /// Counts the jobs that were ever listed, for those who spin.
    posts: AtomicUsize,
    /// Whether the next job takes chunks from the ends of segments.
    backward: AtomicBool,
    /// Workers that spin.
    spinning: AtomicUsize,
    /// Callers that sleep or are about to.
    asleep: AtomicUsize,
}

/// Bodies run outside of the locks, so a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Null until the first job, and again in a forked child. A pool is never freed.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());
/// CPUs that threads may run on, counted now and then.
static CPUS: AtomicUsize = AtomicUsize::new(1);
/// Zero until asked for or set.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static BUSY: Cell<bool> = const { Cell::new(false) };
    /// Where the job that this thread runs chunks of says whether it is stopped.
    static STOP: Cell<*const AtomicBool> = const { Cell::new(ptr::null()) };
    static WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as running chunks of a job, so that loops inside stay on it.
struct Busy(bool, *const AtomicBool);

impl Busy {
    fn enter(job: &Job<'_>) -> Self {
        Busy(BUSY.replace(true), STOP.replace(&job.stopped))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.set(self.0);
        STOP.set(self.1);
    }
}

/// For long kernels, every few milliseconds: unwinds where the user has interrupted the call.
#[inline(never)]
pub fn look() {
    // SAFETY: set while this thread is inside the job, which lives until it has left.
    let stop = unsafe { STOP.get().as_ref() };
    if WORKER.get() {
        if stop.is_some_and(|stop| stop.load(Relaxed)) {
            resume_unwind(Box::new(Stopped));
        }
    } else if let Some(e) = host::interruption() {
        if let Some(stop) = stop {
            stop.store(true, Relaxed);
        }
        error::unwind(e);
    }
}

/// Returns how many threads a loop may use, the caller among them.
///
/// At first `PYTENSORLIB_NUM_THREADS`, else `OMP_NUM_THREADS`, else what the machine offers.
#[inline]
pub fn num_threads() -> usize {
    match THREADS.load(Relaxed) {
        0 => first_num_threads(),
        n => n,
    }
}

#[cold]
fn first_num_threads() -> usize {
    // OpenMP allows one number for each nesting level; the first counts.
    let open_mp = || {
        let text = std::env::var("OMP_NUM_THREADS").ok()?;
        let n = text.split(',').next()?.trim().parse().ok();
        n.filter(|&n: &usize| n > 0)
    };
    let set = machine::threads().ok().flatten().or_else(open_mp);
    let n = set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    set_num_threads(n);
    num_threads()
}

/// Sets how many threads a loop may use, at least one.
pub fn set_num_threads(n: usize) {
    THREADS.store(n.clamp(1, MAX_THREADS), Relaxed);
}

/// Returns whether this thread is inside a `parallel_for`.
pub fn in_parallel() -> bool {
    BUSY.get()
}

/// Calls `f` on ranges that together cover `0..n` once, on several threads if `n > grain`.
///
/// No range but the last is shorter than `grain`. Inside another `parallel_for` everything runs on
/// the calling thread. If `f` panics, the other ranges still run, and then the panic goes on here.
#[inline]
pub fn parallel_for(n: usize, grain: usize, f: impl Fn(Range<usize>) + Sync) {
    let grain = grain.max(1);
    if n <= grain {
        if n > 0 {
            f(0..n);
        }
        return;
    }
    let most = LONGEST.saturating_mul(grain);
    if num_threads() == 1 || BUSY.get() {
        for start in (0..n).step_by(most) {
            look();
            f(start..n.min(start.saturating_add(most)));
        }
        return;
    }
    let threads = num_threads().min(n.div_ceil(grain));
    run(n, threads, grain.max(even(n, threads).min(most)), &f);
}

/// The length of chunks that share `n` things out evenly.
fn even(n: usize, threads: usize) -> usize {
    if n < threads * FEW {
        return (n / (threads * CHUNKS_OF_FEW)).max(1);
    }
    match n.div_ceil(threads * CHUNKS_PER_THREAD) {
        // Long chunks of elements begin on a cache line.
        chunk @ 256.. => chunk.next_multiple_of(64),
        chunk => chunk,
    }
}

/// [`parallel_for`] over the chunks of `size` elements of a slice, the last of which may be shorter:
/// `f` gets the number of a chunk, and that one and some that follow.
pub fn parallel_chunks<T: Send>(
    x: &mut [T],
    size: usize,
    grain: usize,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    let (n, to) = (x.len(), Ptr::new(x.as_mut_ptr()));
    parallel_for(n.div_ceil(size.max(1)), grain, |range| {
        let part = range.start * size..n.min(range.end * size);
        // SAFETY: ranges are disjoint parts of the slice, which is borrowed until all are done.
        f(range.start, unsafe { to.part(part) })
    });
}

/// [`parallel_for`] in ranges of `block` where `n` is many of them, also on one thread: every second
/// call goes through them from the end, and finds in the caches what the one before left there.
#[inline]
pub fn parallel_blocks(n: usize, grain: usize, block: usize, f: impl Fn(Range<usize>) + Sync) {
    if n <= 2 * block || BUSY.get() {
        return parallel_for(n, grain, f);
    }
    let threads = num_threads().min(n.div_ceil(grain.max(1)));
    if threads == 1 {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let backward = CALLS.fetch_add(1, Relaxed) % 2 == 1;
        let chunks = n.div_ceil(block);
        for i in 0..chunks {
            look();
            let start = block * if backward { chunks - 1 - i } else { i };
            f(start..(start + block).min(n));
        }
    } else if n < threads * CHUNKS_PER_THREAD * block {
        parallel_for(n, grain, f);
    } else {
        run(n, threads, block, &f);
    }
}

fn run(n: usize, threads: usize, chunk: usize, body: &Body<'_>) {
    let began = Instant::now();
    let pool = pool();
    let posts = pool.posts.load(Relaxed);
    let mut job = Job::new(n, threads, chunk, pool.backward.load(Relaxed), body);
    if posts.is_multiple_of(RECOUNT) {
        CPUS.store(os::cpus(), Relaxed);
    }
    if CPUS.load(Relaxed) == 1 {
        // A second thread could only take turns with this one.
        job.helpers = 0;
        pool.posts.fetch_add(1, Relaxed);
        let _busy = Busy::enter(&job);
        job.drain(0);
    } else {
        share(pool, &job, began);
    }
    if job.turns(began.elapsed()) {
        pool.backward.store(!job.backward, Relaxed);
    }
    if let Some(cause) = job
        .panic
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        resume_unwind(cause);
    }
}

/// Runs a job together with workers.
fn share(pool: &'static Pool, job: &Job<'_>, began: Instant) {
    let listed = Listed(ptr::from_ref(job).cast());
    let parked = {
        let mut board = lock(&pool.board);
        board.jobs.push(listed);
        while board.workers < job.helpers && start_worker(pool, board.workers) {
            board.workers += 1;
        }
        board.parked
    };
    pool.posts.fetch_add(1, Release);
    for _ in 0..parked.min(job.helpers) {
        pool.wake.notify_one();
    }
    {
        let _busy = Busy::enter(job);
        job.drain(0);
    }
    lock(&pool.board).jobs.retain(|j| *j != listed);
    // Nobody can enter any more; wait for those who are inside.
    if job.inside.load(Acquire) != 0 {
        wait(pool, job, began);
    }
}

/// Waits until no worker is inside.
fn wait(pool: &Pool, job: &Job<'_>, began: Instant) {
    // A worker that takes much longer than it should has lost its CPU. It gets the one of the
    // caller, once that sleeps.
    let drained = Instant::now();
    let patience = ((drained - began) / 4).clamp(WAIT, LONG_WAIT);
    loop {
        for _ in 0..16 {
            if job.inside.load(Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        if drained.elapsed() >= patience {
            break;
        }
    }
    pool.asleep.fetch_add(1, SeqCst);
    let mut board = lock(&pool.board);
    while job.inside.load(SeqCst) != 0 {
        let waited = pool.left.wait_timeout(board, TICK);
        board = waited.unwrap_or_else(PoisonError::into_inner).0;
        if job.stopped.load(Relaxed) || job.inside.load(SeqCst) == 0 {
            continue;
        }
        // Asking takes the host's lock, for which nobody must wait with ours.
        drop(board);
        if let Some(e) = host::interruption() {
            job.stopped.store(true, Relaxed);
            lock(&job.panic).get_or_insert(Box::new(e));
        }
        board = lock(&pool.board);
    }
    drop(board);
    pool.asleep.fetch_sub(1, SeqCst);
}

fn pool() -> &'static Pool {
    let found = POOL.load(Acquire);
    // SAFETY: a pool that was published is never freed.
    unsafe { found.as_ref() }.unwrap_or_else(make_pool)
}

#[cold]
fn make_pool() -> &'static Pool {
    static HANDLER: std::sync::Once = std::sync::Once::new();
    extern "C" fn in_child() {
        // Nothing but an atomic is safe there.
        POOL.store(ptr::null_mut(), Release);
    }
    HANDLER.call_once(|| os::at_fork(in_child));
    let board = Board {
        jobs: Vec::new(),
        parked: 0,
        workers: 0,
    };
    let made = Box::new(Pool {
        board: Mutex::new(board),
        wake: Condvar::new(),
        left: Condvar::new(),
        posts: AtomicUsize::new(0),
        backward: AtomicBool::new(false),
        spinning: AtomicUsize::new(0),
        asleep: AtomicUsize::new(0),
    });
    let made = Box::into_raw(made);
    match POOL.compare_exchange(ptr::null_mut(), made, AcqRel, Acquire) {
        // SAFETY: published just now, never freed.
        Ok(_) => unsafe { &*made },
        Err(first) => {
            // SAFETY: `made` was never shown to anyone; `first` is published and never freed.
            unsafe {
                drop(Box::from_raw(made));
                &*first
            }
        }
    }
}

fn start_worker(pool: &'static Pool, index: usize) -> bool {
    let name = String::from("pytensorlib");
    std::thread::Builder::new()
        .name(name)
        .spawn(move || work(pool, index))
        .is_ok()
}

fn work(pool: &'static Pool, index: usize) {
    BUSY.set(true);
    WORKER.set(true);
    loop {
        let seen = pool.posts.load(Acquire);
        while let Some(job) = enter(pool) {
            STOP.set(&job.stopped);
            // The first segment is the caller's; a job with a helper has more.
            job.drain(1 + index % (job.parts - 1));
            STOP.set(ptr::null());
            // The caller may return, and the job vanish, as soon as this is done.
            job.inside.fetch_sub(1, SeqCst);
            if pool.asleep.load(SeqCst) != 0 {
                // A caller looks and falls asleep under this lock.
                drop(lock(&pool.board));
                pool.left.notify_all();
            }
        }
        // The callers spin too, at least one.
        if pool.spinning.fetch_add(1, Relaxed) + 1 < CPUS.load(Relaxed) {
            spin(pool, seen);
        }
        pool.spinning.fetch_sub(1, Relaxed);
        if pool.posts.load(Acquire) == seen {
            let mut board = lock(&pool.board);
            // Jobs are listed under this lock, so none can slip in between look and sleep.
            while !board.jobs.iter().any(|j| is_open(*j)) {
                board.parked += 1;
                board = pool
                    .wake
                    .wait(board)
                    .unwrap_or_else(PoisonError::into_inner);
                board.parked -= 1;
            }
        }
    }
}

/// Looks for new jobs for a while.
fn spin(pool: &Pool, seen: usize) {
    let started = Instant::now();
    loop {
        for _ in 0..16 {
            if pool.posts.load(Acquire) != seen {
                return;
            }
            std::hint::spin_loop();
        }
        let time = started.elapsed();
        if time >= SPIN {
            return;
        }
        if time >= ALONE {
            // The next caller may be waiting for this very CPU.
            std::thread::yield_now();
        }
    }
}

fn is_open(job: Listed) -> bool {
    // SAFETY: called under the pool's lock on a listed job, which is alive.
    unsafe { &*job.0 }.open()
}

/// Enters the first job that has work and room.
fn enter(pool: &Pool) -> Option<&'static Job<'static>> {
    let board = lock(&pool.board);
    let found = board.jobs.iter().find(|j| is_open(**j))?;
    // SAFETY: the job is listed, and from here on `inside` keeps its caller waiting.
    let job = unsafe { &*found.0 };
    job.inside.fetch_add(1, Relaxed);
    Some(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{caught, Kind};
    use std::sync::atomic::AtomicU8;

    #[test]
    fn errors_of_any_thread_come_back() {
        let many = caught(|| {
            parallel_for(1 << 10, 1, |r| {
                if r.contains(&700) {
                    crate::alloc::room::<u64>(usize::MAX / 16);
                }
            });
            Ok(())
        });
        assert_eq!(many.unwrap_err().kind, Kind::OutOfMemory);
    }

    fn covers_once(n: usize, grain: usize) {
        let hits: Vec<AtomicU8> = (0..n).map(|_| AtomicU8::new(0)).collect();
        parallel_for(n, grain, |r| {
            for i in r {
                hits[i].fetch_add(1, Relaxed);
            }
        });
        assert!(hits.iter().all(|h| h.load(Relaxed) == 1), "{n} {grain}");
    }

    #[test]
    fn every_index_once_from_many_threads() {
        set_num_threads(4);
        std::thread::scope(|s| {
            for t in 0..4 {
                s.spawn(move || {
                    for n in [0, 1, 2, 7, 64, 1000, 4097 + t] {
                        for grain in [0, 1, 3, 64, 5000] {
                            covers_once(n, grain);
                        }
                    }
                });
            }
        });
        let total = AtomicUsize::new(0);
        parallel_for(8, 1, |r| {
            assert!(in_parallel());
            for _ in r {
                parallel_for(10, 1, |r| {
                    total.fetch_add(r.len(), Relaxed);
                });
            }
        });
        assert_eq!(total.into_inner(), 80);
        for (n, grain) in [(10_000, 1), (10_001, 20_000), (9_999, 100)] {
            for _ in 0..2 {
                let total = AtomicUsize::new(0);
                parallel_blocks(n, grain, 64, |r| {
                    total.fetch_add(r.sum::<usize>(), Relaxed);
                });
                assert_eq!(total.into_inner(), n * (n - 1) / 2);
            }
        }
        // More threads than segments.
        set_num_threads(20);
        for n in [17, 80, 4097] {
            covers_once(n, 1);
        }
    }

    #[test]
    fn few_long_tasks_are_shared_evenly() {
        for threads in 1..9 {
            for n in 1..threads * FEW {
                let chunk = even(n, threads);
                let most = n.div_ceil(chunk).div_ceil(threads) * chunk;
                let ideal = n.div_ceil(threads);
                assert!(most <= ideal + ideal / 16, "{n} by {threads}: {most}");
            }
        }
    }

    #[test]
    fn a_job_that_was_helped_is_followed_by_one_in_its_direction() {
        let order = Mutex::new(Vec::new());
        let body = |r: Range<usize>| lock(&order).push(r.start);
        let took = |job: &Job| [TURN / 2, TURN, HELPED].map(|time| job.turns(time));
        let alone = Job::new(50, 1, 10, false, &body);
        alone.drain(0);
        assert_eq!(took(&alone), [false, true, true]);
        // Its own segment, which is the second, and then the other's.
        let helped = Job::new(75, 2, 10, true, &body);
        helped.drain(1);
        assert_eq!(took(&helped), [false, false, true]);
        let want = [0, 10, 20, 30, 40, 70, 60, 50, 40, 30, 20, 10, 0];
        assert_eq!(*lock(&order), want);
    }

    #[test]
    fn a_panic_reaches_the_caller_after_the_rest() {
        set_num_threads(4);
        let done = AtomicUsize::new(0);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            parallel_for(100, 1, |r| {
                assert!(!r.contains(&37), "chunk 37");
                done.fetch_add(r.len(), Relaxed);
            })
        }));
        assert!(caught.is_err());
        assert!(done.load(Relaxed) >= 80);
        assert!(!in_parallel());
        covers_once(100, 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_forked_child_makes_its_own_pool() {
        set_num_threads(4);
        covers_once(1000, 1);
        // SAFETY: the child only runs loops and leaves without unwinding.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let ok = catch_unwind(|| covers_once(1000, 1)).is_ok();
                libc::_exit(if ok { 0 } else { 1 });
            }
            let mut status = 1;
            libc::waitpid(child, &mut status, 0);
            assert_eq!(status, 0);
        }
    }
}
