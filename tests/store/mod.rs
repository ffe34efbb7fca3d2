//! Real stores: several processes on one Redis, and stores that fail.
//!
//! Every test starts the servers it needs, each on a port of its own.

mod load;
mod turns;

mod branches;
mod canary;
mod embedded;
mod failover;
mod failures;
mod overview;
mod replicas;
mod size;
mod tenants;
