use super::*;
use proptest::prelude::*;
use tidegate_engine::{Excerpt, Passage};

const KEY: ConversationKey = ConversationKey([3; 16]);
const ALL: Room<'static> = &|_| true;

fn message(json: &'static str) -> RawMessage {
    let json = Bytes::from_static(json.as_bytes());
    RawMessage {
        id: MessageId([1; 32]),
        parent: MessageId([2; 32]),
        position: 7,
        at: 1_700_000,
        json,
        standing: Standing::Abandoned,
    }
}

fn excerpts() -> impl Strategy<Value = Vec<Excerpt>> {
    let passage = any::<(u32, u32, u32)>().prop_map(|(message, start, end)| Passage { message, start, end });
    let excerpt = (any::<u32>(), proptest::collection::vec(passage, 0..9))
        .prop_map(|(message, passages)| Excerpt { message, passages: passages.into() });
    proptest::collection::vec(excerpt, 0..5)
}

proptest! {
    #[test]
    fn waypoints_decode_as_they_were_encoded(
        end: [u8; 32], frontier: Option<[u8; 32]>, fold: Option<[u8; 32]>, tallies in (0.0..1e12f64, 0.0..1e12f64), at: u64,
        gap: Option<(Option<[u8; 32]>, [u8; 32])>, short: [u64; 21], cache: (u64, u64), debt in 0.0..1e12f64,
        length: u32, cut_at in proptest::option::of(1u32..), excerpts in excerpts(),
        trim: Option<[u8; 32]>, skipped in proptest::collection::vec(any::<u64>(), 0..40), trim_debt in 0.0..1e12f64,
        is_left_alone: bool,
    ) {
        let skipped = Skipped::of(skipped).unwrap();
        let (frontier, fold) = (frontier.map(Digest), fold.map(Digest));
        let gap = gap.map(|(behind, last)| Gap { behind: behind.map(Digest), last: Digest(last) });
        let (tally, fold_tally, trail) = (tallies.0, tallies.1, Trail(short));
        let cache = CacheKey { model: cache.0, head: cache.1 };
        let waypoint = Waypoint {
            end: Digest(end), trail, cache, frontier, tally, debt, horizon: Horizon { length, cut_at },
            at: Timestamp(at), fold, fold_tally, gap, excerpts: excerpts.into(), trim: trim.map(Digest), skipped, trim_debt,
            is_left_alone,
        };
        let record = encode_waypoint(&waypoint);
        prop_assert_eq!(decode_waypoint(&record), Ok(waypoint.clone()));
        // As earlier versions wrote it: without a model, and with costs in dollars.
        let plain = zeros::restore(&record[1..]).unwrap().split_off(size_of::<u64>());
        let short = [&[COMPRESSED_FORMAT], &zeros::shorten(&plain)[..]].concat();
        let cache = CacheKey { model: 0, ..cache };
        let earlier = Waypoint { cache, tally: 0.0, debt: 0.0, fold_tally: 0.0, trim_debt: 0.0, ..waypoint };
        for record in [[&[FORMAT], &plain[..]].concat(), short] {
            prop_assert_eq!(decode_waypoint(&record), Ok(earlier.clone()));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(record: Vec<u8>) {
        let keyring = "11".repeat(32).parse::<Keyring>().unwrap();
        let _ = decode_waypoint(&record);
        let record = record.into();
        let _ = decode_message(KEY, MessageId([1; 32]), &record, Some(&keyring), ALL);
        let _ = decode_fold(KEY, &record, Some(&keyring));
    }
}

#[test]
fn long_texts_are_compressed_before_they_are_encrypted() {
    let text = format!(r#"{{"role":"tool","content":"{}"}}"#, "the tide is in; ".repeat(100));
    let long = RawMessage { json: text.into(), ..message("") };
    let keyring = "11".repeat(32).parse::<Keyring>().unwrap();
    for keyring in [None, Some(&keyring)] {
        let record = encode_message(KEY, &long, keyring);
        assert!(record.len() < long.json.len() / 4, "{}", record.len());
        assert_eq!(decode_message(KEY, long.id, &record, keyring, ALL), Ok(long.clone()));
        let cut = record.slice(..record.len() - 20);
        assert_eq!(decode_message(KEY, long.id, &cut, keyring, ALL), Err(RecordError::Damaged));
    }
    // A version that cannot decompress takes it for a newer record.
    assert_eq!(decode_fold(KEY, &encode_message(KEY, &long, None), None), Err(RecordError::Newer(2)));
}

#[test]
fn newer_and_damaged_records_are_distinguished() {
    assert_eq!(decode_waypoint(&[4, 0, 0]), Err(RecordError::Newer(4)));
    assert_eq!(decode_waypoint(b"garbage"), Err(RecordError::Damaged));
    assert_eq!(decode_waypoint(b""), Err(RecordError::Damaged));
    assert_eq!(decode_waypoint(&[1; 40]), Err(RecordError::Damaged));
}

#[test]
fn messages_decode_as_they_were_encoded_and_only_in_their_place() {
    let secret = message(r#"{"role":"user","content":"the canary"}"#);
    let plain = encode_message(KEY, &secret, None);
    assert_eq!(decode_message(KEY, secret.id, &plain, None, ALL), Ok(secret.clone()));

    let keyring = "11".repeat(32).parse::<Keyring>().unwrap();
    let sealed = encode_message(KEY, &secret, Some(&keyring));
    assert!(!sealed.windows(6).any(|window| window == b"canary"));
    assert_eq!(decode_message(KEY, secret.id, &sealed, Some(&keyring), ALL), Ok(secret.clone()));
    assert_eq!(decode_message(KEY, secret.id, &sealed, None, ALL), Err(RecordError::NoKey));
    // It does not open in another conversation, under another id or at another position.
    let other = ConversationKey([4; 16]);
    assert_eq!(decode_message(other, secret.id, &sealed, Some(&keyring), ALL), Err(RecordError::Damaged));
    let other = MessageId([9; 32]);
    assert_eq!(decode_message(KEY, other, &sealed, Some(&keyring), ALL), Err(RecordError::Damaged));
    let mut moved = sealed.to_vec();
    moved[2] ^= 1;
    assert_eq!(decode_message(KEY, secret.id, &moved.into(), Some(&keyring), ALL), Err(RecordError::Damaged));
}
