//! Progress bar for long commands, only on a terminal.

use std::{
    io::{IsTerminal, stderr},
    sync::Arc,
};

use indicatif::{ProgressBar, ProgressStyle};

/// A callback that receives the amount done and the total amount.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Creates the bar, which the caller removes, and the callback that advances it. Returns neither if standard error is not a terminal.
pub fn bar() -> (Option<ProgressBar>, Option<Progress>) {
    if !stderr().is_terminal() {
        return (None, None);
    }
    let style = ProgressStyle::with_template("{wide_bar} {percent} % {eta}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    let shown = bar.clone();
    let progress: Progress = Arc::new(move |done, total| {
        shown.set_length(total);
        shown.set_position(done);
    });
    (Some(bar), Some(progress))
}
