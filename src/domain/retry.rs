//! When what failed is tried again: one rule for messages and events, whose pauses differ.

use super::time::Timestamp;

/// The longest pause that the other side may ask for, in milliseconds.
pub const LONGEST_ASKED: i64 = 24 * 60 * 60 * 1000;

/// When to try again after so many attempts, the last of which ended then; none: there are no pauses left. `pauses` and
/// `asked` in milliseconds; `jitter` in 0..1 spreads a pause by a fifth, so that what failed together does not come back
/// together.
pub fn next_attempt(pauses: &[i64], attempts: i64, ended: Timestamp, asked: Option<i64>, jitter: f64) -> Option<Timestamp> {
    let pause = usize::try_from(attempts).ok().and_then(|attempts| pauses.get(attempts.checked_sub(1)?))?;
    Some(ended.plus_millis(spread(*pause, jitter).max(asked.unwrap_or(0).clamp(0, LONGEST_ASKED))))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a pause has few digits")]
fn spread(pause: i64, jitter: f64) -> i64 {
    (pause as f64 * (0.8 + 0.4 * jitter)).round() as i64
}
