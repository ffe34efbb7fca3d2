use std::fmt;
use std::str::FromStr;

/// Identifies a conversation in the store: a keyed hash of its tenant and name, so that equal names of two tenants never
/// collide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationKey(pub [u8; 16]);

/// The text is not a [`ConversationKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a conversation id must be 32 hexadecimal digits")]
pub struct InvalidKey;

impl fmt::Display for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConversationKey({self})")
    }
}

impl FromStr for ConversationKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<ConversationKey, InvalidKey> {
        let mut key = [0; 16];
        let digits = text.as_bytes();
        if digits.len() != 2 * key.len() {
            return Err(InvalidKey);
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |index: usize| char::from(pair[index]).to_digit(16).ok_or(InvalidKey);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).map_err(|_| InvalidKey)?;
        }
        Ok(ConversationKey(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_parse_as_they_print() {
        let key = ConversationKey(*b"\x00\x01\xfe\xff0123456789ab");
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in ["", "00", &"g".repeat(32), &"0".repeat(31), &"ü".repeat(16)] {
            assert_eq!(bad.parse::<ConversationKey>(), Err(InvalidKey));
        }
    }
}
