//! `tidegate replay` on recorded conversations: its figures, and edits that match the running proxy. Also `tidegate demo`, and what comes after it.

mod command;

mod answers;
mod demo;
mod forwarded;
mod inputs;
mod shipped;
mod stranger;
