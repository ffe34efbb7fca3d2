//! Profile `story`.

mod budget;
mod examples;
mod reduction;
mod stability;
mod tale;
