//! Converts phone numbers from the spellings of channels and address books to E.164.

use super::contacts::is_e164;

/// The servers of those JIDs (WhatsApp addresses `USER@SERVER`) that contain a person's phone number. JIDs of groups, lists and hidden ids
/// (`lid`) contain none.
const PERSONAL: [&str; 2] = ["s.whatsapp.net", "c.us"];

/// Schemes in front of a number, in URIs and in the addresses of some providers.
const SCHEMES: [&str; 2] = ["tel:", "whatsapp:"];

/// A text of digits without a mark such as `+` is a phone number only if it has at least this many digits.
const BARE_DIGITS: usize = 7;

/// Returns the number in E.164, if the text marks it as international: `+66 81-234-5678`, `0066…`, `tel:+66…`, a JID.
pub fn international(text: &str) -> Option<String> {
    let text = text.trim();
    let number = match text.rsplit_once('@') {
        Some((user, server)) if PERSONAL.iter().any(|personal| server.eq_ignore_ascii_case(personal)) => {
            return bare(user_of(user)?);
        }
        Some(_) => return None,
        None => without_scheme(text),
    };
    let number = compact(number);
    let digits = number.strip_prefix('+').or_else(|| number.strip_prefix("00"))?;
    plus(digits)
}

/// Returns the E.164 number of a WhatsApp id. WhatsApp writes international numbers as bare digits (`wa_id`).
pub fn on_whatsapp(text: &str) -> Option<String> {
    international(text).or_else(|| bare(&compact(without_scheme(text.trim()))))
}

/// Returns the other spellings of this number that a WhatsApp conversation may have as its `reference_id` (the id that the channel gives to
/// the thread). The server creates conversations with the number in E.164; an imported conversation may have one of these spellings.
pub fn former_names(phone: &str) -> Vec<String> {
    let digits = phone.trim_start_matches('+');
    let jids = PERSONAL.iter().map(|server| format!("{digits}@{server}"));
    let schemes = SCHEMES.iter().map(|scheme| format!("{scheme}{phone}"));
    [digits.to_owned(), format!("00{digits}")].into_iter().chain(jids).chain(schemes).collect()
}

fn bare(digits: &str) -> Option<String> {
    if digits.len() < BARE_DIGITS { None } else { plus(digits) }
}

fn plus(digits: &str) -> Option<String> {
    Some(format!("+{digits}")).filter(|phone| is_e164(phone))
}

/// Returns the user part of a JID, without agent and device: `66812345678` of `66812345678.0:12`.
fn user_of(jid: &str) -> Option<&str> {
    let end = jid.find(['.', '_', ':']).unwrap_or(jid.len());
    let (user, parts) = jid.split_at(end);
    let numbered = parts.split(['.', '_', ':']).skip(1).all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    numbered.then(|| user.strip_prefix('+').unwrap_or(user))
}

fn without_scheme(text: &str) -> &str {
    let scheme = |scheme: &&str| text.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    SCHEMES.iter().find(|one| scheme(one)).map_or(text, |scheme| text[scheme.len()..].trim_start())
}

/// Removes the characters between the digits of a number: spaces, hyphens, dots, slashes, brackets, invisible Unicode characters (such as
/// direction marks), and the trunk prefix `(0)`, as in `+66 (0)81`.
fn compact(number: &str) -> String {
    let between = |c: char| {
        c.is_whitespace()
            || matches!(c, '-' | '.' | '/' | '(' | ')' | '\u{2010}'..='\u{2015}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    number.replace("(0)", "").chars().filter(|c| !between(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_international_notation_become_e164() {
        for text in [
            "+66812345678",
            " +66 81 234 5678 ",
            "+66-81-234-5678",
            "+66 (0)81.234.5678",
            "\u{202a}+66\u{a0}81\u{2011}234\u{2011}5678\u{202c}",
            "0066812345678",
            "00 66 812345678",
            "tel:+66812345678",
            "TEL: +66-81-234-5678",
            "tel:0066812345678",
            "whatsapp:+66812345678",
            "66812345678@s.whatsapp.net",
            "66812345678@C.US",
            "66812345678:12@s.whatsapp.net",
            "66812345678.0:12@s.whatsapp.net",
            "66812345678_1:2@c.us",
            "+66812345678@s.whatsapp.net",
        ] {
            assert_eq!(international(text).as_deref(), Some("+66812345678"), "{text:?}");
            assert_eq!(on_whatsapp(text).as_deref(), Some("+66812345678"), "{text:?}");
        }
    }

    #[test]
    fn digits_alone_are_a_number_on_whatsapp_only() {
        for text in ["66812345678", "66 81 234 5678", "tel:66812345678"] {
            assert_eq!((international(text), on_whatsapp(text).as_deref()), (None, Some("+66812345678")), "{text:?}");
        }
    }

    #[test]
    fn text_that_is_no_phone_number_becomes_none() {
        for text in [
            "",
            "+",
            "0812345678",
            "081-234-5678",
            "thread-1",
            "12345",
            "+9991234567",
            "9991234567",
            "123456789012345",
            "66812345678-1423423@g.us",
            "120363041234567890@g.us",
            "12345678901234@lid",
            "status@broadcast",
            "66812345678@example.com",
            "66812345678:@c.us",
            "66812345678:a@c.us",
            ":1@c.us",
            "@c.us",
            "66812345678:12",
            "+66812345678;ext=5",
            "+66812345678 x5",
            "+٦٦٨١٢٣٤٥٦٧٨",
            "tel:",
            "ม+66812345678",
        ] {
            assert_eq!(on_whatsapp(text), None, "{text:?}");
        }
    }

    #[test]
    fn each_former_name_of_a_number_resolves_to_that_number() {
        let names = former_names("+66812345678");
        assert_eq!(names.len(), 6);
        assert!(names.iter().all(|name| on_whatsapp(name).as_deref() == Some("+66812345678")), "{names:?}");
    }
}
