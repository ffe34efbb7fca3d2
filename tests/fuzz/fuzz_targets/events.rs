//! However a stream of events is cut into chunks, the side reader reports the same, and its stream can be ended properly.
//!
//! The first four bytes are chunk lengths, the rest is the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_wire::{Dialect, SideReader};

fuzz_target!(|input: &[u8]| {
    let Some((lengths, stream)) = input.split_first_chunk::<4>() else { return };
    let mut at_once = SideReader::new(Dialect::Chat);
    at_once.feed(stream);
    let mut chunked = SideReader::new(Dialect::Chat);
    let mut follower = SideReader::follower();
    for chunk in chunks(stream, lengths) {
        chunked.feed(chunk);
        follower.feed(chunk);
    }
    assert_eq!(chunked.answer(), at_once.answer());
    assert_eq!(chunked.is_done(), at_once.is_done());
    assert_eq!(chunked.missing_end(), at_once.missing_end());
    assert_eq!(follower.missing_end(), at_once.missing_end());

    // After the missing end, an event of our own is read as an event.
    let mut ended = chunked;
    ended.feed(at_once.missing_end().as_bytes());
    assert_eq!(ended.missing_end(), "");
    ended.feed(b"data: {\"error\":{\"message\":\"the upstream stopped\"}}\n\n");
    assert!(ended.answer().failed);

    let _ = Dialect::Chat.read_answer(stream);
});

fn chunks<'a>(mut stream: &'a [u8], lengths: &[u8; 4]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for length in lengths.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (chunk, rest) = stream.split_at(stream.len().min(usize::from(*length).max(1)));
        chunks.push(chunk);
        stream = rest;
    }
    chunks
}
