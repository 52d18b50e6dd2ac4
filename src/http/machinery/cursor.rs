//! Seals (encodes and signs) and opens (verifies and decodes) the cursors of keyset pagination. A cursor is opaque and URL-safe. It
//! contains the position of the last row of a page and, if the list is in order of relevance, the rank of this row. An authentication code
//! (HMAC) protects the content, and binds the cursor to a store (tenant) and an operation. A hash in the content binds the cursor to the
//! filters and the `pageSize` (API contract, section 4.4). In a contract revision whose lists return the total number of records, a cursor
//! also contains this number, so that all pages of a list show the same total.
//!
//! In a list whose rows can change their sort position, a cursor also contains the snapshot at which the first page was read (as-of
//! cursor). For [`LIFETIME`] the database keeps the former sort positions, which it needs to show the order of that snapshot; after that
//! time the cursor is refused. Other cursors do not expire.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::domain::{
    ids::StoreId,
    paging::{AsOf, Position, Rank},
    time::Timestamp,
};

/// The version of the binary layout of cursors. Cursors with another version are refused.
const VERSION: u8 = 4;
const CODE_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + 4 * 8;

/// How long an as-of cursor is accepted after the first page was read, in milliseconds: seven days.
pub const LIFETIME: i64 = 7 * 24 * 60 * 60 * 1000;
const NO_TOTAL: u64 = u64::MAX;

/// Seals and opens cursors with one secret key. All server processes on one database have the same key.
#[derive(Clone)]
pub struct Seal(Hmac<Sha256>);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(…)")
    }
}

/// The content of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub position: Position,
    pub total: Option<u64>,
    pub binding: Binding,
    /// When the first page was read, by the clock of the server. A sealed cursor contains this time only if it contains a snapshot
    /// ([`Position::as_of`]).
    pub began: Timestamp,
}

impl Cursor {
    /// Returns whether this is an as-of cursor whose first page was read longer than [`LIFETIME`] ago.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.position.as_of.is_some() && now.millis().saturating_sub(self.began.millis()) > LIFETIME
    }
}

/// The hash of the filters and the page size to which a cursor is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(u64);

impl Binding {
    pub fn of(filters: &str, page_size: u32) -> Self {
        let digest = Sha256::new().chain_update(page_size.to_be_bytes()).chain_update(filters).finalize();
        Self(u64::from_be_bytes(std::array::from_fn(|i| digest[i])))
    }
}

impl Seal {
    /// Makes a seal whose key is `secret`, a secret of any length.
    pub fn new(secret: &[u8]) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        Self(Hmac::new_from_slice(secret).expect("any length"))
    }

    fn code(&self, store: &StoreId, operation: &str, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in [store.as_str().as_bytes(), operation.as_bytes()] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.update(content);
        mac
    }

    /// Returns the text of a cursor: its content and the authentication code.
    pub fn sealed(&self, store: &StoreId, operation: &str, cursor: &Cursor) -> String {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + cursor.position.id.len() + CODE_BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&cursor.binding.0.to_be_bytes());
        bytes.extend_from_slice(&cursor.total.unwrap_or(NO_TOTAL).to_be_bytes());
        bytes.extend_from_slice(&cursor.position.at.to_be_bytes());
        // `began` is written as 0 in a cursor without an as-of snapshot, so that equal positions have equal cursors.
        let began = if cursor.position.as_of.is_some() { cursor.began.millis() } else { 0 };
        bytes.extend_from_slice(&began.to_be_bytes());
        let rank = cursor.position.rank.as_ref().map(|rank| [&rank.score.to_be_bytes(), rank.weights.as_slice()].concat());
        push_part(&mut bytes, rank.as_deref());
        push_part(&mut bytes, cursor.position.as_of.as_ref().map(|as_of| as_of.0.as_bytes()));
        bytes.extend_from_slice(cursor.position.id.as_bytes());
        let code = self.code(store, operation, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&code[..CODE_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Returns the content of a cursor that was sealed with this key for the same store and operation; `None` for any other text.
    pub fn open(&self, store: &StoreId, operation: &str, text: &str) -> Option<Cursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (content, code) = bytes.split_at_checked(bytes.len().checked_sub(CODE_BYTES)?)?;
        self.code(store, operation, content).verify_truncated_left(code).ok()?;
        let number = |from: usize| Some(u64::from_be_bytes(content.get(from..from + 8)?.try_into().ok()?));
        if *content.first()? != VERSION {
            return None;
        }
        let (rank, rest) = part(content.get(HEAD_BYTES..)?)?;
        let (as_of, id) = part(rest)?;
        let rank = match rank {
            Some(rank) => {
                let (score, weights) = rank.split_first_chunk()?;
                Some(Rank { score: u32::from_be_bytes(*score), weights: weights.to_vec() })
            }
            None => None,
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let as_of = match as_of {
            Some(as_of) => Some(AsOf(text(as_of)?)),
            None => None,
        };
        Some(Cursor {
            binding: Binding(number(1)?),
            total: Some(number(9)?).filter(|total| *total != NO_TOTAL),
            position: Position { at: number(17)?.cast_signed(), id: text(id)?, rank, as_of },
            began: Timestamp::from_millis(number(25)?.cast_signed()),
        })
    }
}

/// Appends an optional part of a cursor: its length plus one, then its bytes. A part that is absent has the length field 0.
fn push_part(bytes: &mut Vec<u8>, part: Option<&[u8]>) {
    let length = part.map_or(0, |part| u32::try_from(part.len()).unwrap_or(u32::MAX).saturating_add(1));
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(part.unwrap_or_default());
}

/// Splits off an optional part that [`push_part`] wrote, from the beginning of `bytes`. Returns the part (`None` if it is absent), and the
/// bytes after it. Returns `None` instead of both if `bytes` ends within the part.
fn part(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    match u32::from_be_bytes(*length).checked_sub(1) {
        Some(length) => rest.split_at_checked(usize::try_from(length).ok()?).map(|(part, rest)| (Some(part), rest)),
        None => Some((None, rest)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*, test_runner::Config};

    use super::*;

    #[test]
    fn a_cursor_opens_only_for_its_key_store_and_operation() {
        let seal = Seal::new(b"key");
        let cursor = Cursor {
            position: Position { at: -5, id: "ไทย".into(), rank: None, as_of: Some(AsOf("7".into())) },
            total: Some(7),
            binding: Binding::of("{}", 20),
            began: Timestamp::from_millis(1),
        };
        let text = seal.sealed(&"s".into(), "listTickets", &cursor);
        assert_eq!(seal.open(&"s".into(), "listTickets", &text), Some(cursor.clone()));
        assert_eq!(seal.open(&"t".into(), "listTickets", &text), None);
        assert_eq!(seal.open(&"s".into(), "listLabels", &text), None);
        assert_eq!(Seal::new(b"other").open(&"s".into(), "listTickets", &text), None);
        assert_ne!(Binding::of("{}", 20), Binding::of("{}", 21));
    }

    #[test]
    fn a_changed_cursor_does_not_open() {
        let seal = Seal::new(b"key");
        let cursor = Cursor {
            position: Position { at: 5, id: "a".into(), rank: None, as_of: None },
            total: None,
            binding: Binding::of("", 1),
            began: Timestamp::from_millis(0),
        };
        let text = seal.sealed(&"s".into(), "o", &cursor);
        for place in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[place] = if other[place] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(seal.open(&"s".into(), "o", &other), None, "{other}");
            assert_eq!(seal.open(&"s".into(), "o", &text[..place]), None);
        }
    }

    fn cursor() -> impl Strategy<Value = Cursor> {
        let rank = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..256)).prop_map(|(score, weights)| Rank { score, weights });
        let as_of = option::of(any::<String>().prop_map(AsOf));
        // The total is less than `NO_TOTAL`, which stands for "not counted": no list is that long.
        let (position, walk) = ((any::<i64>(), any::<String>(), option::of(rank), as_of), (option::of(0..NO_TOTAL), any::<i64>()));
        (position, walk, any::<String>(), any::<u32>()).prop_map(|((at, id, rank, as_of), (total, began), filters, size)| Cursor {
            began: Timestamp::from_millis(as_of.as_ref().map_or(0, |_| began)),
            position: Position { at, id, rank, as_of },
            total,
            binding: Binding::of(&filters, size),
        })
    }

    proptest! {
        #![proptest_config(Config { cases: 100, failure_persistence: None, ..Config::default() })]

        #[test]
        fn every_sealed_cursor_opens_unchanged(cursor in cursor(), key in any::<Vec<u8>>(), store in any::<String>(), operation in any::<String>()) {
            let (seal, store) = (Seal::new(&key), StoreId::from(store));
            let text = seal.sealed(&store, &operation, &cursor);
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
            prop_assert_eq!(seal.open(&store, &operation, &text), Some(cursor));
            // For example, a cursor of the store `a` and the operation `b` does not open for the store `ab` and an empty operation,
            // although `a` and `b` together are the same text as `ab`.
            let shifted = StoreId::from(format!("{store}{operation}"));
            prop_assert_eq!(seal.open(&shifted, "", &text).is_some(), operation.is_empty());
        }

        #[test]
        fn no_tampered_cursor_opens(cursor in cursor(), place in any::<prop::sample::Index>(), other in any::<char>(), bit in 0..8_u32) {
            let (seal, store) = (Seal::new(b"key"), StoreId::from("s"));
            let text = seal.sealed(&store, "o", &cursor);
            let opens = |text: &str| seal.open(&store, "o", text).is_some();
            let at = place.index(text.len());
            let (before, behind) = text.split_at(at);
            for wrong in [format!("{before}{other}{behind}"), format!("{text}{other}"), before.to_owned(), format!("{before}{}", &behind[1..])] {
                prop_assert!(!opens(&wrong), "{}", wrong);
            }
            let replaced = format!("{before}{other}{}", &behind[1..]);
            prop_assert_eq!(opens(&replaced), replaced == text);
            let mut bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
            let at = place.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(!opens(&URL_SAFE_NO_PAD.encode(bytes)));
        }

        #[test]
        fn arbitrary_text_does_not_open_as_a_cursor(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let seal = Seal::new(b"key");
            prop_assert_eq!(seal.open(&"s".into(), "o", &text), None);
            prop_assert_eq!(seal.open(&"s".into(), "o", &URL_SAFE_NO_PAD.encode(bytes)), None);
        }
    }
}
