//! Contacts: section 2.6 of the contract.

use email_address::{EmailAddress, Options};

use super::{ids::ContactId, time::Timestamp};

/// A contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    pub id: ContactId,
    pub full_name: String,
    pub first_name: String,
    pub last_name: Option<String>,
    pub email: Option<String>,
    /// E.164.
    pub phone: Option<String>,
    pub secondary_phones: Option<Vec<String>>,
    pub secondary_emails: Option<Vec<String>>,
    pub addresses: Option<Vec<String>>,
    pub note: Option<String>,
    /// A JSON object keyed by field id, as text.
    pub custom_fields: Option<String>,
    pub custom_fields_updated_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Which contacts are wanted.
#[derive(Clone, Debug, Default)]
pub struct ContactFilter {
    /// Looked for in name, e-mail and phone, folded; never blank.
    pub search: Option<String>,
    /// Inclusive.
    pub updated_after: Option<Timestamp>,
    /// Exclusive.
    pub updated_before: Option<Timestamp>,
}

/// Whether a text is a bare e-mail address: no name before it and no spelling with quotes or an IP address, by which one
/// mailbox would pass for two. It can stand in a header: no control character ends the header before its time.
pub fn is_address(text: &str) -> bool {
    let bare = Options { minimum_sub_domains: 0, allow_domain_literal: false, allow_display_text: false };
    let odd = |c: char| c == '"' || c.is_whitespace() || c.is_control();
    !text.contains(odd) && EmailAddress::parse_with_options(text, bare).is_ok()
}

/// Whether a text is a phone number in E.164: `+` and up to 14 digits (decisions, section 6.8).
pub fn is_e164(phone: &str) -> bool {
    phone.strip_prefix('+').is_some_and(|digits| (1..=14).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_bare() {
        for good in ["mali@example.com", "Mali.S+shop@Example.com", "a@localhost", "o'neill@x.co", "ก@ไทย.th"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "mali",
            "@b.co",
            "a@",
            "a b@c.de",
            "a@b@c.de",
            "a..b@c.de",
            " a@b.co",
            "a@b.co ",
            "a@b.co\r\nBcc: c@d.ef",
            "Mali <mali@example.com>",
            "<mali@example.com>",
            "\"a b\"@x.co",
            "\"ab\"@x.co",
            "a@[127.0.0.1]",
            "a\u{a0}b@x.co",
        ] {
            assert!(!is_address(bad), "{bad:?}");
        }
    }

    #[test]
    fn phones_are_a_plus_and_digits() {
        for (phone, is) in
            [("+66800000001", true), ("+12345678901234", true), ("+123456789012345", false), ("66800000001", false), ("+66 8", false)]
        {
            assert_eq!(is_e164(phone), is, "{phone}");
        }
    }
}
