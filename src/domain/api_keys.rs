//! API keys of a store (tenant): their record, their secret with its hash, and their expiry (API contract, sections 3.2 and 5).

use std::fmt;

use chrono::{DateTime, Months, Utc};
use sha2::{Digest, Sha256};

use super::{
    api_key_scopes::ScopeSet,
    ids::{CredentialId, KeyId, StoreId, UserId},
    time::Timestamp,
};

/// The authenticated caller: a valid API key.
#[derive(Clone, Debug)]
pub struct Caller {
    pub store_id: StoreId,
    pub key_id: KeyId,
    pub key_name: String,
    pub scopes: ScopeSet,
    /// The user for whom the key acts. Absent: the key acts for the owner with the oldest seat (membership) in the store.
    pub owner: Option<UserId>,
}

/// An API key without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    pub id: KeyId,
    pub name: String,
    pub scopes: ScopeSet,
    pub active: bool,
    pub owner: Option<UserId>,
    /// The last four characters of the newest secret.
    pub last_four: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The time of the last request with one of the key's secrets.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// Returns the masked secret, for lists.
    pub fn masked(&self) -> String {
        format!("{PREFIX}••••{}", self.last_four)
    }

    /// Returns `active`, `inactive` or `expired`.
    pub fn status(&self, now: Timestamp) -> &'static str {
        match (self.expires_at <= now, self.active) {
            (true, _) => "expired",
            (false, true) => "active",
            (false, false) => "inactive",
        }
    }
}

/// The secret of an API key, or of a credential for the settings API, in plain text. The text is shown once and never stored. The `Debug`
/// form hides the text.
pub struct Secret(String);

/// The prefix of every secret of an API key.
pub const PREFIX: &str = "cp_";
const RANDOM_CHARS: usize = 40;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Secret {
    /// Generates a random secret. `random` fills a buffer with random bytes. Bytes of 248 (four times 62) and above are rejected, so that
    /// each of the 62 characters is equally likely.
    pub fn generate<E>(prefix: &str, mut random: impl FnMut(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let length = prefix.len() + RANDOM_CHARS;
        let mut text = String::with_capacity(length);
        text.push_str(prefix);
        let mut buffer = [0_u8; 64];
        while text.len() < length {
            random(&mut buffer)?;
            let fair = buffer.iter().filter(|byte| **byte < 248).map(|byte| char::from(ALPHABET[usize::from(byte % 62)]));
            text.extend(fair.take(length - text.len()));
        }
        Ok(Self(text))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }

    pub fn last_four(&self) -> &str {
        &self.0[self.0.len() - 4..]
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// SHA-256 of a secret in hexadecimal: the form that is stored and looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SecretHash(String);

impl SecretHash {
    /// Computes the hash of a secret that a client presents.
    pub fn of(secret: &str) -> Self {
        Self(hexadecimal(&Sha256::digest(secret.as_bytes())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id of the credential whose secret has this hash: the id is the hash itself.
    pub fn credential_id(&self) -> CredentialId {
        self.0.as_str().into()
    }
}

/// Returns the bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)])));
    }
    digits
}

/// Returns the expiry of an API key that is created or rotated at `from`: six calendar months later, clamped to the month's end.
pub fn expiry(from: Timestamp) -> Timestamp {
    DateTime::<Utc>::from_timestamp_millis(from.millis())
        .and_then(|at| at.checked_add_months(Months::new(6)))
        .map_or(from, |at| Timestamp::from_millis(at.timestamp_millis()))
}

/// How long the former secret of an API key stays valid after a rotation (the replacement by a new secret), in milliseconds. A former
/// secret that would expire sooner keeps its own expiry.
pub const OVERLAP_MILLIS: i64 = 2 * 60 * 60 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_expires_after_six_calendar_months_clamped_to_the_month_end() {
        for (from, to) in [
            ("2026-01-31T09:05:00.123Z", "2026-07-31T09:05:00.123Z"),
            ("2025-08-31T00:00:00.000Z", "2026-02-28T00:00:00.000Z"),
            ("2027-08-30T23:59:59.999Z", "2028-02-29T23:59:59.999Z"),
        ] {
            assert_eq!(expiry(from.parse().unwrap()).to_string(), to);
        }
    }

    #[test]
    fn a_secret_has_the_prefix_forty_characters_and_a_hash() {
        let mut next = 0_u8;
        let secret = Secret::generate(PREFIX, |buffer: &mut [u8]| {
            buffer.iter_mut().for_each(|byte| {
                *byte = next;
                next = next.wrapping_add(7);
            });
            Ok::<_, ()>(())
        })
        .unwrap();
        assert!(secret.reveal().starts_with(PREFIX) && secret.reveal().len() == 43);
        assert_eq!(SecretHash::of("abc").as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
