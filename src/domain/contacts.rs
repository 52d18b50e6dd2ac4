//! The contact record, the filters of the contact list, and the checks of phone numbers and e-mail addresses (API contract, section 2.6).

use std::borrow::Cow;

use email_address::{EmailAddress, Options};

use super::{ids::ContactId, time::Timestamp, unicode_text::joined_name};

/// A contact: a person with whom the store exchanges messages, such as a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    pub id: ContactId,
    pub full_name: String,
    pub first_name: String,
    pub last_name: Option<String>,
    pub email: Option<String>,
    /// In E.164 form, such as `+66800000001`.
    pub phone: Option<String>,
    pub secondary_phones: Option<Vec<String>>,
    pub secondary_emails: Option<Vec<String>>,
    pub addresses: Option<Vec<String>>,
    pub note: Option<String>,
    /// The values of custom fields: the text of a JSON object whose keys are field ids.
    pub custom_fields: Option<String>,
    pub custom_fields_updated_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Filters of the contact list.
#[derive(Clone, Debug, Default)]
pub struct ContactFilter {
    /// A text to search for in names, e-mail addresses, phone numbers and notes; never blank.
    pub search: Option<String>,
    /// Only contacts with `updated_at` at or after this instant.
    pub updated_after: Option<Timestamp>,
    /// Only contacts with `updated_at` before this instant.
    pub updated_before: Option<Timestamp>,
}

impl Contact {
    /// Returns the texts that a search covers, each with the name of its property in the API.
    pub fn searched(&self) -> Vec<(&'static str, Cow<'_, str>)> {
        let mut texts = vec![("fullName", joined_name(&self.full_name).into())];
        texts.extend(self.email.iter().map(|text| ("email", text.as_str().into())));
        texts.extend(self.phone.iter().map(|text| ("phone", text.as_str().into())));
        texts.extend(self.secondary_emails.iter().flatten().map(|text| ("secondaryEmails", text.as_str().into())));
        texts.extend(self.secondary_phones.iter().flatten().map(|text| ("secondaryPhones", text.as_str().into())));
        texts.extend(self.note.iter().map(|text| ("note", text.as_str().into())));
        texts
    }
}

/// The maximum number of digits of a phone number in the API, after the `+`: one fewer than E.164 permits.
const PHONE_DIGITS: usize = 14;

/// Whether a text is a phone number in E.164: `+`, the code of a country or a worldwide service, and more digits. National
/// numbering plans are not checked: they change more often than this program.
pub fn is_e164(phone: &str) -> bool {
    let Some(digits) = phone.strip_prefix('+') else { return false };
    let spelled = digits.len() <= PHONE_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let is_code = |code: &str| code.parse().is_ok_and(|code| !phonelib::countries_by_calling_code(code).is_empty());
    spelled && (1..digits.len().min(4)).any(|length| is_code(&digits[..length]))
}

/// Whether a text is a bare e-mail address: without the display name of a mail header, and without quotes or an IP address,
/// which would give one mailbox several spellings.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    if text.contains(|c: char| c == '"' || c.is_whitespace() || c.is_control()) {
        return false;
    }
    // RFC 6532 permits combining marks of Thai and other scripts in a local part, but the crate email_address refuses them. So the crate
    // gets the local part with an `x` in place of each character that is not ASCII.
    let local: String = local.chars().map(|c| if c.is_ascii() { c } else { 'x' }).collect();
    let options = Options::default().without_display_text().without_domain_literal();
    idna::domain_to_ascii(domain).is_ok_and(|domain| EmailAddress::parse_with_options(&format!("{local}@{domain}"), options).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_e164_phone_numbers_are_valid() {
        for good in ["+66800000001", "+12345678901234", "+661", "+10", "+80012345678", "+883510012345", "+4412345"] {
            assert!(is_e164(good), "{good}");
        }
        for bad in [
            "",
            "+",
            "+66",
            "+7",
            "+123456789012345",
            "66800000001",
            "+66 8",
            "+66-8",
            "++668",
            "+0668000000",
            "+2101234567",
            "+9991234567",
            "+٦٦٨٠٠",
            "tel:+66800000001",
        ] {
            assert!(!is_e164(bad), "{bad}");
        }
    }

    #[test]
    fn only_bare_email_addresses_are_valid() {
        for good in ["a@b.example", "mali+tag@mail.example", "น้ำ@ตัวอย่าง.ไทย", "ü@Bücher.example", "a@localhost", "o'neill@c.example"]
        {
            assert!(is_email(good), "{good}");
        }
        for bad in [
            "",
            "a",
            "@b",
            "a@",
            "a b@c",
            "a@b@c",
            "Mali <a@b.example>",
            "<a@b.example>",
            "\"a b\"@c.example",
            "\"ab\"@c.example",
            "a@[127.0.0.1]",
            "a@b.example\n",
            "a@b.example\r\nBcc: c@d.example",
            "a@b.example ",
            " a@b.example",
            "a..b@c",
            "a\u{a0}b@c",
            "a@b..c",
        ] {
            assert!(!is_email(bad), "{bad:?}");
        }
    }
}
