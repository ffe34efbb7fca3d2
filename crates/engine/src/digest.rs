use std::fmt;
use std::str::FromStr;

/// The chained hash of a conversation up to a message. Equal digests mean equal conversations so far, so that a decision
/// stored under one can be found by any request that continues it, and by no other.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadDigest;

/// The 64 digits that it is shown as.
impl FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Digest, BadDigest> {
        let mut digest = Digest::default();
        if text.len() != 2 * digest.0.len() || !text.is_ascii() {
            return Err(BadDigest);
        }
        for (byte, digits) in digest.0.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| BadDigest)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| BadDigest)?;
        }
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back() {
        let digest = Digest(std::array::from_fn(|index| index as u8 * 8));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in ["", "00", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert_eq!(bad.parse::<Digest>(), Err(BadDigest), "{bad}");
        }
    }
}
