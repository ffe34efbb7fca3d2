//! Whose conversation it is, and histories that only Tidegate holds.

mod access;
mod answers;
mod chaos;
mod deletion;
mod failing;
mod model;
mod order;
mod reading;
mod reply;
mod rescue;
mod scene;
mod strangers;
