//! Supervisor: runs the background tasks, restarts a task that ends or hangs, with exponential backoff, and reports a task that does not
//! recover.
//!
//! `app` creates the supervisor and uses it to run the delivery workers, the e-mail task, the search service and the maintenance jobs;
//! `readiness` reads its state. A task reports progress, success and failure through its [`TaskReporter`]. Every failure and every
//! unexpected end of a task is logged and counted. After a single panic, the task restarts after a pause of 100 ms. The process is unready
//! while a task
//!
//! - has ended [`DEATHS_UNTIL_FAILING`] times in a row, and has not run for [`STABLE_RUN`] since,
//! - reported nothing for so long that the supervisor aborted it, and has not succeeded since, or
//! - runs and keeps failing, for [`FAILING`] and at least [`FAILURES`] times.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::telemetry::metrics::Metrics;

/// The pause before the first restart. The pause doubles with each further restart in a row, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A task that ended this many times in a row is reported as failing.
const DEATHS_UNTIL_FAILING: u32 = 3;

/// Once a task has run for this long without a hang, its earlier ends no longer count.
const STABLE_RUN: Duration = Duration::from_secs(5);

/// The interval at which the supervisor checks whether a task has reported.
const STEP: Duration = Duration::from_secs(1);

/// The work of a task is reported as failing once it has failed for this long and this often in a row.
const FAILING: Duration = Duration::from_secs(60);
const FAILURES: u32 = 3;

/// Supervises the tasks of one process. Clones share the tasks.
#[derive(Clone)]
pub struct Supervisor {
    tasks: Arc<Mutex<Vec<Arc<Task>>>>,
    metrics: Metrics,
}

struct Task {
    name: &'static str,
    /// A task that reports nothing for this long counts as hung.
    silence: Duration,
    state: Mutex<State>,
}

struct State {
    /// When the current run of the task started. `None` between the end of a run and the next start.
    running_since: Option<Instant>,
    reported_at: Instant,
    deaths_in_a_row: u32,
    /// The time of the first failure after the last success, and the number of failures after the last success.
    failing_since: Option<Instant>,
    failures: u32,
    /// Whether the task hung and has not succeeded since.
    hung: bool,
}

/// The handle by which a task reports progress, success and failure. A task must report even while it is idle, or it counts as hung.
#[derive(Clone)]
pub struct TaskReporter(Option<(Arc<Task>, Metrics)>);

impl TaskReporter {
    /// Makes a reporter whose reports have no effect, for a task that no supervisor runs.
    pub fn unheard() -> Self {
        Self(None)
    }

    /// Reports progress: the task is alive.
    pub fn beat(&self) {
        if let Some((task, _)) = &self.0 {
            task.lock().reported_at = Instant::now();
        }
    }

    /// Reports success: the task did all work that was due.
    pub fn succeeded(&self) {
        if let Some((task, _)) = &self.0 {
            let mut state = task.lock();
            state.reported_at = Instant::now();
            (state.failing_since, state.failures, state.hung) = (None, 0, false);
        }
    }

    /// Reports a failure: the task could not do its work and will retry. The caller logs the reason.
    pub fn failed(&self) {
        if let Some((task, metrics)) = &self.0 {
            metrics.task_failed(task.name);
            let now = Instant::now();
            let mut state = task.lock();
            state.reported_at = now;
            state.failing_since.get_or_insert(now);
            state.failures = state.failures.saturating_add(1);
        }
    }
}

impl Supervisor {
    pub fn new(metrics: Metrics) -> Self {
        Self { tasks: Arc::default(), metrics }
    }

    /// Runs a task until `stop` changes or its sender is dropped. `start` creates the task for each run. The task itself must watch `stop`
    /// and end, and must report at intervals shorter than `silence`.
    pub fn run<F>(
        &self,
        name: &'static str,
        silence: Duration,
        mut stop: watch::Receiver<()>,
        start: impl Fn(TaskReporter) -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let state =
            State { running_since: None, reported_at: Instant::now(), deaths_in_a_row: 0, failing_since: None, failures: 0, hung: false };
        let task = Arc::new(Task { name, silence, state: Mutex::new(state) });
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task.clone());
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            loop {
                task.started();
                let mut running = tokio::spawn(start(TaskReporter(Some((task.clone(), metrics.clone())))));
                let ended = tokio::select! {
                    ended = &mut running => ended,
                    silent = task.hangs() => {
                        tracing::error!(task = name, silent_s = silent.as_secs(), "a background task hangs and is ended");
                        running.abort();
                        // A task that never yields its thread cannot be aborted. The supervisor waits for it, since a second instance
                        // that runs at the same time would do the work twice.
                        running.await
                    }
                };
                if !matches!(stop.has_changed(), Ok(false)) {
                    return;
                }
                metrics.task_restarted(name);
                let pause = task.ended();
                let reason = ended.map_or_else(|error| error.to_string(), |()| "it returned".to_owned());
                tracing::error!(task = name, reason, pause_ms = pause.as_millis() as u64, "a background task ended and is started again");
                tokio::select! {
                    _ = stop.changed() => return,
                    () = tokio::time::sleep(pause) => {}
                }
            }
        })
    }

    /// Returns why the process is not ready: one line for each task that keeps ending, hangs, or keeps failing.
    pub fn failing(&self) -> Vec<String> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().filter_map(|task| task.failing()).collect()
    }
}

impl Task {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self) {
        let now = Instant::now();
        let mut state = self.lock();
        (state.running_since, state.reported_at) = (Some(now), now);
    }

    /// Resolves when the task has reported nothing for `silence`, and returns how long it was silent. The time is counted in steps of
    /// [`STEP`] and not read from a clock: while the whole process is suspended, the task cannot report, so the time of the suspension must
    /// not count.
    async fn hangs(&self) -> Duration {
        let (mut reported_at, mut silent) = (self.lock().reported_at, Duration::ZERO);
        loop {
            tokio::time::sleep(STEP).await;
            let mut state = self.lock();
            silent = if state.reported_at == reported_at { silent + STEP } else { Duration::ZERO };
            reported_at = state.reported_at;
            if silent >= self.silence {
                state.hung = true;
                return silent;
            }
        }
    }

    /// Records that the task ended; returns the pause before the next start.
    fn ended(&self) -> Duration {
        let mut state = self.lock();
        if state.running_since.take().is_some_and(|since| since.elapsed() >= STABLE_RUN) && !state.hung {
            state.deaths_in_a_row = 0;
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(state.deaths_in_a_row));
        state.deaths_in_a_row = state.deaths_in_a_row.saturating_add(1);
        pause.min(LONGEST_PAUSE)
    }

    fn failing(&self) -> Option<String> {
        let state = self.lock();
        let is_steady = state.running_since.is_some_and(|since| since.elapsed() >= STABLE_RUN);
        if state.deaths_in_a_row >= DEATHS_UNTIL_FAILING && !is_steady {
            return Some(format!("{} ended {} times in a row", self.name, state.deaths_in_a_row));
        }
        if state.hung {
            return Some(format!("{} made no progress for {} seconds", self.name, self.silence.as_secs()));
        }
        let failing = state.failing_since.map(|since| since.elapsed()).filter(|time| *time >= FAILING && state.failures >= FAILURES)?;
        Some(format!("{} has been failing for {} seconds", self.name, failing.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::sleep;

    use super::*;

    const SILENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_and_one_that_keeps_panicking_is_reported() {
        let (stopping, stop) = watch::channel(());
        let supervisor = Supervisor::new(Metrics::default());
        let (starts, panics) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(1)));
        let (started, left) = (starts.clone(), panics.clone());
        let task = supervisor.run("the worker", SILENCE, stop, move |reporter| {
            let (started, left) = (started.clone(), left.clone());
            async move {
                started.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(10)).await;
                if left.load(Ordering::Relaxed) > 0 {
                    left.fetch_sub(1, Ordering::Relaxed);
                    panic!("as the test wants it");
                }
                loop {
                    reporter.succeeded();
                    sleep(Duration::from_secs(1)).await;
                }
            }
        });
        sleep(Duration::from_secs(1)).await;
        assert_eq!((starts.load(Ordering::Relaxed), supervisor.failing()), (2, vec![]));
        // From here on, every run of a task panics.
        panics.store(u32::MAX, Ordering::Relaxed);
        task.abort();
        let (_stopping, stop) = watch::channel(());
        let (started, left) = (starts.clone(), panics.clone());
        supervisor.run("another worker", SILENCE, stop, move |_| {
            let (started, left) = (started.clone(), left.clone());
            async move {
                started.fetch_add(1, Ordering::Relaxed);
                assert_eq!(left.load(Ordering::Relaxed), 0, "as the test wants it");
                sleep(Duration::from_secs(50)).await;
            }
        });
        sleep(Duration::from_secs(40)).await;
        assert!(starts.load(Ordering::Relaxed) >= 8);
        assert!(supervisor.failing().iter().any(|line| line.starts_with("another worker ended")), "{:?}", supervisor.failing());
        panics.store(0, Ordering::Relaxed);
        sleep(LONGEST_PAUSE + STABLE_RUN).await;
        assert!(!supervisor.failing().iter().any(|line| line.starts_with("another worker")), "{:?}", supervisor.failing());
        drop(stopping);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_hangs_is_started_again_and_reported_until_it_succeeds() {
        let (stopping, stop) = watch::channel(());
        let supervisor = Supervisor::new(Metrics::default());
        let stopped = stop.clone();
        let (starts, works) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (started, working) = (starts.clone(), works.clone());
        let task = supervisor.run("the maintenance jobs", SILENCE, stop, move |reporter| {
            let (mut stopped, started, working) = (stopped.clone(), started.clone(), working.clone());
            async move {
                started.fetch_add(1, Ordering::Relaxed);
                if working.load(Ordering::Relaxed) > 0 {
                    reporter.succeeded();
                }
                _ = stopped.changed().await;
            }
        });
        sleep(SILENCE - Duration::from_secs(1)).await;
        assert_eq!((starts.load(Ordering::Relaxed), supervisor.failing()), (1, vec![]));
        works.store(0, Ordering::Relaxed);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(starts.load(Ordering::Relaxed), 2);
        assert_eq!(supervisor.failing(), ["the maintenance jobs made no progress for 60 seconds"]);
        works.store(1, Ordering::Relaxed);
        sleep(SILENCE + Duration::from_secs(1)).await;
        assert_eq!((starts.load(Ordering::Relaxed), supervisor.failing()), (3, vec![]));
        drop(stopping);
        task.await.unwrap();
        assert_eq!(starts.load(Ordering::Relaxed), 3, "one that is stopped is not started again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_runs_and_keeps_failing_is_reported_until_it_succeeds() {
        let (_stopping, stop) = watch::channel(());
        let supervisor = Supervisor::new(Metrics::default());
        let failing = Arc::new(AtomicU32::new(1));
        let fails = failing.clone();
        supervisor.run("the worker", SILENCE, stop, move |reporter| {
            let fails = fails.clone();
            async move {
                loop {
                    reporter.beat();
                    if fails.load(Ordering::Relaxed) > 0 {
                        reporter.failed()
                    } else {
                        reporter.succeeded()
                    }
                    sleep(Duration::from_secs(5)).await;
                }
            }
        });
        sleep(FAILING - Duration::from_secs(1)).await;
        assert_eq!(supervisor.failing(), [""; 0], "it may pass");
        sleep(Duration::from_secs(7)).await;
        assert_eq!(supervisor.failing(), ["the worker has been failing for 66 seconds"]);
        failing.store(0, Ordering::Relaxed);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(supervisor.failing(), [""; 0]);
    }
}
