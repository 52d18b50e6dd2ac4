//! Metrics of the process, under the standard names of Prometheus client libraries. Only Linux has these metrics.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// The collector of the metrics of the process. It reads `/proc/self` each time that the metrics page is requested.
#[derive(Debug)]
pub(super) struct Process;

/// Positions of fields in `/proc/self/stat`. The first field after the program's name has the position 0. See proc(5).
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const THREADS: usize = 17;
const STARTED_TICKS: usize = 19;
const RESIDENT_PAGES: usize = 21;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return Ok(()) };
        // The program's name may itself contain spaces and brackets, so the other fields begin after the last closing bracket.
        let fields: Vec<&str> = stat.rsplit_once(") ").map_or(vec![], |(_, rest)| rest.split_ascii_whitespace().collect());
        let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
        let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        let mut gauge = |name: &str, help: &str, value: f64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        let pages = rustix::param::page_size() as u64;
        gauge("process_resident_memory_bytes", "Resident memory", (field(RESIDENT_PAGES) * pages) as f64)?;
        gauge("process_threads", "Threads", field(THREADS) as f64)?;
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            gauge("process_open_fds", "Open file descriptors", open.count() as f64)?;
        }
        if let Some(booted) = booted() {
            gauge("process_start_time_seconds", "When the process started, in seconds since 1970", booted + seconds(field(STARTED_TICKS)))?;
        }
        let cpu = ConstCounter::new(seconds(field(USER_TICKS) + field(SYSTEM_TICKS)));
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", "Processor time, user and system", None, cpu.metric_type())?)
    }
}

/// Returns when the machine started, in seconds since 1970.
fn booted() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime ")).and_then(|time| time.trim().parse().ok())
}
