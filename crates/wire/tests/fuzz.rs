//! Damages the bodies of the corpus at random for `TIDEGATE_FUZZ_SECONDS` seconds (default: 5) and checks them against the oracle. A
//! failure prints its seed and body; set `TIDEGATE_FUZZ_SEED` to repeat it.

#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

mod oracle;

use oracle::Random;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, panic};
use tidegate_wire::{Dialect, SideReader};

#[test]
fn damaged_bodies_of_the_corpus_satisfy_the_oracle() {
    let corpus = corpus();
    let seconds = number("TIDEGATE_FUZZ_SECONDS").unwrap_or(5);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let mut seed = number("TIDEGATE_FUZZ_SEED").unwrap_or(now) | 1;
    let mut rounds = 0_u64;
    while rounds < 1000 || Instant::now() < deadline {
        let body = damaged(&corpus, seed);
        let outcome = panic::catch_unwind(|| check(&body, seed));
        if outcome.is_err() {
            panic!("TIDEGATE_FUZZ_SEED={seed} failed after {rounds} rounds with {}", body.escape_ascii());
        }
        seed = Random(seed).next() | 1;
        rounds += 1;
    }
    println!("{rounds} rounds");
}

#[test]
fn the_undamaged_corpus_satisfies_the_oracle() {
    let mut valid = 0;
    for body in corpus() {
        check(&body, 1);
        valid += usize::from(oracle::read_all(&body).is_ok());
    }
    assert!(valid >= 8, "only {valid} bodies of the corpus are valid");
}

fn check(body: &[u8], seed: u64) {
    oracle::check(body, seed);
    oracle::check(&renamed(body), seed);
    for dialect in [Dialect::Chat, Dialect::Messages, Dialect::Responses] {
        let _ = dialect.read_answer(body).map(|answer| dialect.answer_message(&answer));
        let mut reader = SideReader::new(dialect);
        body.chunks(1 + (seed % 40) as usize).for_each(|chunk| reader.feed(chunk));
        let mut at_once = SideReader::new(dialect);
        at_once.feed(body);
        assert_eq!(reader.answer(), at_once.answer());
        assert_eq!(reader.missing_end(), at_once.missing_end());
    }
}

/// The same body with its messages where responses have their items.
fn renamed(body: &[u8]) -> Vec<u8> {
    let mut rest = body;
    let mut renamed = Vec::with_capacity(body.len());
    while let Some(at) = memchr::memmem::find(rest, b"\"messages\"") {
        renamed.extend_from_slice(&rest[..at]);
        renamed.extend_from_slice(b"\"input\"");
        rest = &rest[at + b"\"messages\"".len()..];
    }
    renamed.extend_from_slice(rest);
    renamed
}

/// Makes up to six random changes: JSON punctuation, pieces of other bodies, repetitions, truncations.
fn damaged(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut body = corpus[random.below(corpus.len())].clone();
    for _ in 0..random.below(7) {
        let at = random.below(body.len() + 1);
        let end = (at + random.below(40)).min(body.len());
        match random.below(8) {
            0 => body.truncate(at.max(1)),
            1 => drop(body.drain(at..end)),
            2 => body.insert(at, pick(&mut random, b"{}[]\",:\\u0 \n\x00\xff")),
            3 => body.insert(at, random.next() as u8),
            4 => {
                let piece = body[at..end].to_vec();
                body.splice(at..at, piece);
            }
            5 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(80)).min(other.len());
                body.splice(at..end, other[from..to].iter().copied());
            }
            6 if at < body.len() => body[at] = pick(&mut random, b"{}[]\",:\\truefalsn0123456789.eE+- "),
            _ => {
                let word =
                    [&b"\"messages\":[{}],"[..], b"\\ud800", b"1e999", b"\"m\\u0065ssages\":[],", b"null"];
                body.splice(at..at, pick(&mut random, &word).iter().copied());
            }
        }
    }
    body
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len())]
}

fn corpus() -> Vec<Vec<u8>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let bodies: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(bodies.len() >= 15);
    bodies
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|value| value.parse().unwrap())
}
