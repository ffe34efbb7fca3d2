//! `tidegate replay` on recorded conversations: its figures, and that it edits as the running proxy does. `tidegate demo`.

mod command;

mod answers;
mod demo;
mod forwarded;
mod inputs;
