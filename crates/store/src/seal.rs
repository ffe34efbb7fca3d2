//! Encryption of conversation content, if the operator provides a key.

use crate::record::RecordError;
use base64::Engine;
use chacha20poly1305::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Encryption keys. The first one encrypts, all of them decrypt. To rotate, put the new key in front and remove the old one
/// when everything encrypted with it has expired.
#[derive(Clone)]
pub struct Keyring(Vec<(KeyId, XChaCha20Poly1305)>);

/// Identifies the key of a record. A hash of the key, so that keys need no names.
type KeyId = [u8; 4];

/// The text is not a [`Keyring`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "must be one or more keys of 32 bytes, as 64 hexadecimal digits or base64, separated by commas \
     (generate one with `openssl rand -hex 32`)"
)]
pub struct InvalidKeyring;

/// The layout of an encrypted text: key id, nonce, ciphertext, tag.
pub(crate) struct Sealed;

impl Sealed {
    const NONCE: usize = 24;
    const TAG: usize = 16;
    pub(crate) const OVERHEAD: usize = size_of::<KeyId>() + Self::NONCE + Self::TAG;
}

impl FromStr for Keyring {
    type Err = InvalidKeyring;

    fn from_str(text: &str) -> Result<Keyring, InvalidKeyring> {
        let keys = text.split(',').map(|key| {
            let key: [u8; 32] =
                decode_key(key.trim()).and_then(|key| key.try_into().ok()).ok_or(InvalidKeyring)?;
            let mut id = KeyId::default();
            id.copy_from_slice(&blake3::derive_key("tidegate key id 1", &key)[..size_of::<KeyId>()]);
            Ok((id, XChaCha20Poly1305::new(&key.into())))
        });
        keys.collect::<Result<Vec<_>, InvalidKeyring>>().map(Keyring)
    }
}

fn decode_key(key: &str) -> Option<Vec<u8>> {
    if key.len() == 64 {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let pair = |pair: &[u8]| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok();
        return key.as_bytes().chunks_exact(2).map(pair).collect();
    }
    base64::engine::general_purpose::STANDARD.decode(key).ok()
}

impl Keyring {
    /// Encrypts `text`. Opening it requires the same `context`.
    pub(crate) fn seal(&self, text: &[u8], context: &[u8]) -> Vec<u8> {
        // Parsing guarantees at least one key.
        let (id, cipher) = &self.0[0];
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        // Fails only for texts of 256 GiB, which no request can contain.
        let sealed = cipher.encrypt(&nonce, Payload { msg: text, aad: context }).unwrap_or_default();
        [&id[..], &nonce, &sealed].concat()
    }

    pub(crate) fn open(&self, sealed: &[u8], context: &[u8]) -> Result<Vec<u8>, RecordError> {
        let (id, rest) = sealed.split_first_chunk::<4>().ok_or(RecordError::Damaged)?;
        let (nonce, text) = rest.split_first_chunk::<{ Sealed::NONCE }>().ok_or(RecordError::Damaged)?;
        let mut keys = self.0.iter().filter(|(known, _)| known == id).peekable();
        keys.peek().ok_or(RecordError::NoKey)?;
        let payload = || Payload { msg: text, aad: context };
        keys.find_map(|(_, cipher)| cipher.decrypt(XNonce::from_slice(nonce), payload()).ok())
            .ok_or(RecordError::Damaged)
    }
}

/// Keeps the keys out of logs.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} keys)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "0101010101010101010101010101010101010101010101010101010101010101";
    const NEW: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

    fn keyring(text: &str) -> Keyring {
        text.parse().unwrap()
    }

    #[test]
    fn rotating_a_key_keeps_old_records_readable() {
        let before = keyring(OLD).seal(b"old text", b"");
        let rotated = keyring(&format!("{NEW}, {OLD}"));
        assert_eq!(rotated.open(&before, b"").unwrap(), b"old text");
        let after = rotated.seal(b"new text", b"");
        assert_eq!(keyring(NEW).open(&after, b"").unwrap(), b"new text");
        assert_eq!(keyring(NEW).open(&before, b""), Err(RecordError::NoKey));
        assert_eq!(keyring(OLD).open(&after, b""), Err(RecordError::NoKey));
    }

    #[test]
    fn sealing_the_same_text_twice_gives_different_bytes() {
        let keyring = keyring(OLD);
        assert_ne!(keyring.seal(b"x", b""), keyring.seal(b"x", b""));
    }

    #[test]
    fn invalid_keys_are_rejected_and_valid_ones_are_not_printed() {
        for bad in ["", "short", &OLD[1..], &format!("{OLD},"), &"zz".repeat(32)] {
            assert_eq!(bad.parse::<Keyring>().unwrap_err(), InvalidKeyring, "{bad}");
        }
        assert_eq!(format!("{:?}", keyring(OLD)), "Keyring(1 keys)");
    }
}
