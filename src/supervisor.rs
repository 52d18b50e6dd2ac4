//! Supervisor: runs the tasks that work on their own, restarts one that ends with exponential backoff, and reports one that does not
//! come back.
//!
//! Built by `app`, which has it run the delivery workers, the search follower and the chores; asked by `readiness`. A task is in order
//! while it runs and reports progress through its [`Pulse`]. Every end is logged and counted. A single panic costs a pause of 100 ms;
//! a task that ends [`DEATHS`] times in a row, or that falls silent, makes the process unready until it works again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::telemetry::Metrics;

/// The pause before the first restart; it doubles with each death in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Deaths in a row from which a task counts as one that does not come back.
const DEATHS: u32 = 3;

/// A task that has run for so long is in order again.
const STEADY: Duration = Duration::from_secs(5);

/// Supervises the tasks of one process. Clones share them.
#[derive(Clone)]
pub struct Supervisor {
    tasks: Arc<Mutex<Vec<Arc<Task>>>>,
    metrics: Metrics,
}

struct Task {
    name: &'static str,
    /// A task that reports nothing for so long hangs.
    silence: Duration,
    state: Mutex<State>,
}

struct State {
    /// `None` between an end and the next start.
    running_since: Option<Instant>,
    reported_at: Instant,
    deaths_in_a_row: u32,
}

/// What a task reports its progress through, however little there is to do.
#[derive(Clone)]
pub struct Pulse(Option<Arc<Task>>);

impl Pulse {
    /// A pulse that nothing listens to, for a task that no supervisor runs.
    pub fn unheard() -> Self {
        Self(None)
    }

    pub fn beat(&self) {
        if let Some(task) = &self.0 {
            task.lock().reported_at = Instant::now();
        }
    }
}

impl Supervisor {
    pub fn new(metrics: Metrics) -> Self {
        Self { tasks: Arc::default(), metrics }
    }

    /// Runs a task until `stop` changes or is dropped. `start` makes it anew for each run; the task itself ends on `stop`. It has to
    /// report progress more often than every `silence`.
    pub fn run<F>(
        &self,
        name: &'static str,
        silence: Duration,
        mut stop: watch::Receiver<()>,
        start: impl Fn(Pulse) -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let state = State { running_since: None, reported_at: Instant::now(), deaths_in_a_row: 0 };
        let task = Arc::new(Task { name, silence, state: Mutex::new(state) });
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task.clone());
        let metrics = self.metrics.clone();
        tokio::spawn(async move {
            loop {
                task.started();
                let ended = tokio::spawn(start(Pulse(Some(task.clone())))).await;
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

    /// What keeps the process from being ready: a line for each task that does not come back or hangs.
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

    /// Notes an end; how long to pause before the next start.
    fn ended(&self) -> Duration {
        let mut state = self.lock();
        if state.running_since.take().is_some_and(|since| since.elapsed() >= STEADY) {
            state.deaths_in_a_row = 0;
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(state.deaths_in_a_row));
        state.deaths_in_a_row = state.deaths_in_a_row.saturating_add(1);
        pause.min(LONGEST_PAUSE)
    }

    fn failing(&self) -> Option<String> {
        let state = self.lock();
        let is_steady = state.running_since.is_some_and(|since| since.elapsed() >= STEADY);
        if state.deaths_in_a_row >= DEATHS && !is_steady {
            return Some(format!("{} ended {} times in a row", self.name, state.deaths_in_a_row));
        }
        let silent = state.reported_at.elapsed();
        (state.running_since.is_some() && silent >= self.silence)
            .then(|| format!("{} has not made progress for {} seconds", self.name, silent.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    const SILENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_and_one_that_keeps_panicking_is_reported() {
        let (stopping, stop) = watch::channel(());
        let supervisor = Supervisor::new(Metrics::default());
        let (starts, panics) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(1)));
        let (started, left) = (starts.clone(), panics.clone());
        let task = supervisor.run("the worker", SILENCE, stop, move |pulse| {
            let (started, left) = (started.clone(), left.clone());
            async move {
                started.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(10)).await;
                if left.load(Ordering::Relaxed) > 0 {
                    left.fetch_sub(1, Ordering::Relaxed);
                    panic!("as the test wants it");
                }
                loop {
                    pulse.beat();
                    sleep(Duration::from_secs(1)).await;
                }
            }
        });
        sleep(Duration::from_secs(1)).await;
        assert_eq!((starts.load(Ordering::Relaxed), supervisor.failing()), (2, vec![]));
        // Many in a row, however often it is started.
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
        sleep(LONGEST_PAUSE + STEADY).await;
        assert!(!supervisor.failing().iter().any(|line| line.starts_with("another worker")), "{:?}", supervisor.failing());
        drop(stopping);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_hangs_is_reported_and_one_that_is_stopped_is_not_started_again() {
        let (stopping, stop) = watch::channel(());
        let supervisor = Supervisor::new(Metrics::default());
        let stopped = stop.clone();
        let starts = Arc::new(AtomicU32::new(0));
        let started = starts.clone();
        let task = supervisor.run("the chores", SILENCE, stop, move |_| {
            let (mut stopped, started) = (stopped.clone(), started.clone());
            async move {
                started.fetch_add(1, Ordering::Relaxed);
                _ = stopped.changed().await;
            }
        });
        sleep(Duration::from_millis(1)).await;
        advance(SILENCE - Duration::from_secs(1)).await;
        assert_eq!(supervisor.failing(), [""; 0]);
        advance(Duration::from_secs(1)).await;
        assert_eq!(supervisor.failing(), ["the chores has not made progress for 60 seconds"]);
        drop(stopping);
        task.await.unwrap();
        assert_eq!(starts.load(Ordering::Relaxed), 1);
    }
}
