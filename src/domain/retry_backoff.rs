//! Retry backoff with jitter: computes the time of the next attempt to deliver a message or an event. Messages and events have different
//! schedules. There is no next attempt after the end of the schedule. Before that, `service::outbox_processing` (messages) and
//! `service::webhooks` (events) decide whether a failed attempt is retried.

use super::time::Timestamp;

/// The longest pause that a receiver can ask for, in milliseconds. A longer pause is cut to this length.
pub const LONGEST_ASKED: i64 = 24 * 60 * 60 * 1000;

/// Returns the time of the next attempt after `attempts` attempts; `None` at the end of the schedule. The last attempt ended at `ended`.
/// `pauses` is the schedule, and `asked` the pause that the receiver asked for, both in milliseconds; the longer of the two pauses is used.
/// `jitter`, between 0 and 1, makes a pause of the schedule up to 20 % shorter or longer, so that attempts that failed at the same time are
/// not all repeated at the same time.
pub fn next_attempt(pauses: &[i64], attempts: i64, ended: Timestamp, asked: Option<i64>, jitter: f64) -> Option<Timestamp> {
    let pause = usize::try_from(attempts).ok().and_then(|attempts| pauses.get(attempts.checked_sub(1)?))?;
    Some(ended.plus_millis(spread(*pause, jitter).max(asked.unwrap_or(0).clamp(0, LONGEST_ASKED))))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a pause has few digits")]
fn spread(pause: i64, jitter: f64) -> i64 {
    (pause as f64 * (0.8 + 0.4 * jitter)).round() as i64
}
