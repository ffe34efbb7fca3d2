//! Folding: old messages leave a request only if a summary in it replaces them.
//!
//! [`scene`] starts the processes and [`forwarded`] reads what reached the upstream; every other module is one behaviour.

mod forwarded;
mod scene;

mod background;
mod breakpoints;
mod canary;
mod complete;
mod crash;
mod deleted;
mod forged;
mod hostile;
mod inline;
mod keys;
mod limits;
mod marker;
mod never_drop;
mod property;
mod recall;
mod replicas;
mod restart;
mod window;
