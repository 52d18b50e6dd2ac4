//! Progress bar for long commands, only on a terminal.

use std::{
    io::{IsTerminal, stderr},
    sync::Arc,
};

use indicatif::{ProgressBar, ProgressStyle};

/// Called with the amount done, and the whole amount.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// The bar, which the caller removes, and the function that moves it.
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
