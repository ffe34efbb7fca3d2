//! Compresses the vocabularies. The tokenizer's own are 47 MB of the binary, most of which are search tables.

#![allow(clippy::expect_used, reason = "a build script reports errors by panicking")]

use bpe_openai::Tokenizer;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    // The higher level takes fifteen seconds and saves a quarter more.
    let level = if env::var("PROFILE").is_ok_and(|profile| profile == "release") { 18 } else { 1 };
    thread::scope(|scope| {
        scope.spawn(|| write(bpe_openai::o200k_base(), level, &directory.join("o200k.zst")));
        scope.spawn(|| write(bpe_openai::cl100k_base(), level, &directory.join("cl100k.zst")));
    });
}

fn write(tokenizer: &Tokenizer, level: i32, file: &Path) {
    let tables = rmp_serde::to_vec(&tokenizer.bpe).expect("tables serialize");
    let compressed = zstd::bulk::compress(&tables, level).expect("tables compress");
    fs::write(file, compressed).expect("the directory for output is writable");
}
