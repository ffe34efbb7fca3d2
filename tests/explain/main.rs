//! `tidegate explain`: what it says of a saved request, and with which exit code.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod answers;
mod command;
mod views;
