//! The scanner agrees with `serde_json` on which bodies are valid and where their messages are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::{Dialect, Fingerprinter, split, split_and_fingerprint};

#[path = "../../../crates/wire/tests/oracle/mod.rs"]
mod oracle;

fuzz_target!(|body: &[u8]| {
    oracle::check(body, body.len() as u64);

    // The entry point with fingerprints finds the same messages.
    let plain = split(Dialect::Chat, body).map(|outline| outline.messages);
    let seen = split_and_fingerprint(Dialect::Chat, body, &Fingerprinter::new(1), |_| false).map(|outline| outline.messages);
    assert_eq!(plain, seen);
});
