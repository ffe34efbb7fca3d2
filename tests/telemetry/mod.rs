//! Traces and metrics, as a collector and `/metrics` see them.
//!
//! [`scene`] starts the processes; every other module is one promise.

mod scene;

mod cardinality;
mod names;
mod private;
mod propagation;
mod savings;
mod tree;
mod unavailable;
