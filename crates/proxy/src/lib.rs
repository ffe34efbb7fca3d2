//! The journey of a request through Tidegate.
//!
//! `journey.rs` lists the steps, each in a file of its own: `receive`, `route`, `identify`, `recall`, `rewrite`, `forward`,
//! `relay` and `remember`. Everything else serves one of them: `framing` judges HTTP/1 below hyper, `upstream` is the
//! pooled client, `reply` is every answer of our own, `server` listens and runs one worker a core.
//!
//! A [`Gate`] holds what all requests share; a [`Proxy`] is a running server in front of it. [`Question`] is the part
//! without I/O: what would happen to a request.
//!
//! This crate never parses a configuration, never writes to a terminal, and never decides what to edit: the engine does.

mod archive;
mod assess;
mod block_sizes;
mod body;
mod course;
mod decode;
mod draft;
mod dress;
mod edits;
mod entry;
mod fold;
mod forward;
mod framing;
mod gate;
mod headers;
mod identify;
mod journey;
mod limit;
mod line;
mod listener;
mod look;
mod material;
mod path;
mod pinned_message;
mod plateau;
mod recall;
mod receive;
mod rehearse;
mod relay;
mod remember;
mod reply;
mod report;
mod request_id;
mod restore;
mod rewrite;
mod route;
mod savings;
mod server;
mod state;
mod summarize;
mod summary_message;
mod timeline;
mod tls;
mod trace;
mod turn;
mod upstream;

pub use assess::{Assessment, Question, model_table};
pub use dress::dressed_then;
pub use gate::{Gate, SetupError};
pub use identify::Secret;
pub use material::summarize_offline;
pub use pinned_message::PinnedMessage;
pub use rehearse::{Forwarded, Line, Outcome, Part, Rehearsal, Splice, What};
pub use route::chat_route;
pub use server::{Proxy, StartError};
pub use summary_message::SummaryMessage;

/// Hooks for the fuzz targets in `tests/fuzz`.
#[cfg(fuzzing)]
pub mod fuzzing {
    use crate::framing::{Guard, Limits, Verdict};
    use tokio::io::{AsyncRead, AsyncWrite};

    /// Wraps a connection as the server does. The function returns whether a request has been refused.
    pub fn guard<S>(stream: S, max_head: usize) -> (impl AsyncRead + AsyncWrite + Unpin, impl Fn() -> bool)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let verdict = Verdict::default();
        let limits = Limits { max_head, head_timeout: std::time::Duration::MAX };
        (Guard::new(stream, limits, verdict.clone()), move || verdict.get().is_some())
    }
}
