//! A bar on the terminal while a long input is replayed.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::PathBuf;
use tidegate_replay::Progress;

pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Over the sizes of the files. It is drawn on the standard error, and only where a person looks at it.
    pub(super) fn over(files: &[PathBuf]) -> Bar {
        let sizes: Option<Vec<u64>> =
            files.iter().map(|file| Some(file.metadata().ok()?.len()).filter(|size| *size > 0)).collect();
        let bar = match sizes {
            Some(sizes) => ProgressBar::new(sizes.iter().sum()),
            // A pipe has no end that anybody knows.
            None => ProgressBar::no_length(),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        let template = "{wide_bar} {percent}% {msg}, {eta} left";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Bar(bar)
    }

    pub(super) fn show(&self, progress: Progress) {
        self.0.set_position(progress.bytes);
        // A text for every one of many small conversations would take longer than they do.
        if progress.conversations.is_multiple_of(16) {
            self.0.set_message(format!("{} conversations", progress.conversations));
        }
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
