//! Shortens runs of zeros. A waypoint is mostly digests, which do not compress, and fields that are not set.

use super::RecordError;

/// The longest run in one pair of bytes.
const LONGEST: usize = 255;

/// Replaces each run of zeros by a zero and its length.
pub(super) fn shorten(bytes: &[u8]) -> Vec<u8> {
    let mut short = Vec::with_capacity(bytes.len());
    for run in bytes.chunk_by(|one, next| *one == 0 && *next == 0) {
        if run[0] != 0 {
            short.extend_from_slice(run);
            continue;
        }
        for part in run.chunks(LONGEST) {
            // At most 255.
            short.extend([0, part.len() as u8]);
        }
    }
    short
}

pub(super) fn restore(short: &[u8]) -> Result<Vec<u8>, RecordError> {
    let mut bytes = Vec::with_capacity(2 * short.len());
    let mut rest = short.iter();
    while let Some(byte) = rest.next() {
        match byte {
            0 => {
                let length = rest.next().ok_or(RecordError::Damaged)?;
                bytes.resize(bytes.len() + usize::from(*length), 0);
            }
            _ => bytes.push(*byte),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_of_any_length_are_short() {
        for (length, expected) in [(0, 0), (1, 2), (255, 2), (256, 4), (1_000, 8)] {
            assert_eq!(shorten(&vec![0; length]).len(), expected);
        }
        assert_eq!(shorten(&[7, 0, 0, 0, 9]), [7, 0, 3, 9]);
        assert_eq!(restore(&[7, 0]), Err(RecordError::Damaged));
    }

    proptest! {
        #[test]
        fn bytes_are_restored(bytes in proptest::collection::vec(0u8..4, 0..600)) {
            prop_assert_eq!(restore(&shorten(&bytes)), Ok(bytes));
        }
    }
}
