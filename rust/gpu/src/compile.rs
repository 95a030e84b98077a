//! Pipelines are compiled beside the thread that records them: a first step needs dozens, each of which takes a
//! driver some 50 ms.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};

type Job = Box<dyn FnOnce() + Send>;

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
}

/// Threads that there are while there is something to compile.
pub(super) struct Compilers {
    state: Mutex<State>,
    idle: Condvar,
}

impl Compilers {
    pub const fn new() -> Compilers {
        Compilers {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                threads: 0,
            }),
            idle: Condvar::new(),
        }
    }

    /// Runs a job on one of `most` threads, sooner or later.
    pub fn run(&'static self, most: usize, job: Job) {
        let mut state = self.state.lock();
        state.jobs.push_back(job);
        if state.threads >= most {
            return;
        }
        let thread = std::thread::Builder::new().name("compile".into());
        match thread.spawn(|| self.work()) {
            Ok(_) => state.threads += 1,
            // Where no thread is to be had, the jobs are done here.
            Err(_) if state.threads == 0 => {
                state.threads = 1;
                drop(state);
                self.work();
            }
            Err(_) => {}
        }
    }

    fn work(&self) {
        let mut state = self.state.lock();
        while let Some(job) = state.jobs.pop_front() {
            drop(state);
            // The job's own value tells that it did not end.
            let _ = catch_unwind(AssertUnwindSafe(job));
            state = self.state.lock();
        }
        state.threads -= 1;
        self.idle.notify_all();
    }

    /// Waits until nothing is left to do.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        while state.threads > 0 {
            self.idle.wait(&mut state);
        }
    }
}
