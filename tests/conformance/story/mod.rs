//! Profile `story`. README.md maps the rules of the document to these tests.

mod budget;
mod examples;
mod narrative;
mod reduction;
mod stability;
