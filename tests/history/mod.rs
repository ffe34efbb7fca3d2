//! Whose conversation it is, and histories that only Tidegate holds.

mod deletion;
mod failing;
mod order;
mod scene;
