//! A progress bar for long inputs.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::PathBuf;
use tidegate_replay::Progress;

pub(super) struct ProgressDisplay(ProgressBar);

impl ProgressDisplay {
    /// Measures progress by file size. Drawn on standard error, and only on a terminal.
    pub(super) fn new(files: &[PathBuf]) -> ProgressDisplay {
        let sizes: Option<Vec<u64>> =
            files.iter().map(|file| Some(file.metadata().ok()?.len()).filter(|size| *size > 0)).collect();
        let bar = match sizes {
            Some(sizes) => ProgressBar::new(sizes.iter().sum()),
            // The length of a pipe is unknown.
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        let template = "{wide_bar} {percent}% {msg}, {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        ProgressDisplay(bar)
    }

    pub(super) fn show(&self, progress: Progress) {
        self.0.set_position(progress.bytes);
        // Formatting the message for every small conversation would take longer than replaying it.
        if progress.conversations.is_multiple_of(16) {
            self.0.set_message(format!("{} conversations", progress.conversations));
        }
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
