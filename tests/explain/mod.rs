//! `tidegate explain`: its output for a saved request, and its exit code.

mod command;

mod answers;
mod dialects;
mod folding;
mod forwarded;
mod views;
