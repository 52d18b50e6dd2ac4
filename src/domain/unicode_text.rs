//! Unicode text: folding for comparisons, texts on one line, lone surrogates, and snippets.
//!
//! Folding applies NFKC, case folding, and NFKC again. Stored texts and search texts are folded in the same way.

use std::borrow::Cow;

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizer;

/// Folds a text: returns it without differences of case and Unicode form.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let normalizer = ComposingNormalizer::new_nfkc();
    let folded = CaseMapper::new().fold_string(&normalizer.normalize(text)).into_owned();
    normalizer.normalize(&folded).into_owned()
}

/// Whether a character belongs to a script that is written without spaces between words.
pub fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x0e01..=0x0e3a | 0x0e40..=0x0e4e                                        // Thai
        | 0x0e81..=0x0ecf | 0x0edc..=0x0edf                                      // Lao
        | 0x1000..=0x103f | 0x104c..=0x109f | 0xa9e0..=0xa9ff | 0xaa60..=0xaa7f  // Burmese
        | 0x1780..=0x17d3 | 0x17d7 | 0x17dc..=0x17dd                             // Khmer
        | 0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3038..=0x303b  // Han
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff
        | 0x3041..=0x309f | 0x30a1..=0x30fa | 0x30fc..=0x30ff | 0x3105..=0x312f  // Kana, Bopomofo
        | 0x31a0..=0x31bf | 0x31f0..=0x31ff | 0x1aff0..=0x1b16f)
}

/// Folds a name. Also removes a space if the characters before and after it belong to scripts without spaces, such as Han or Thai: such a
/// name is written with and without a space, for example 王 小明 and 王小明.
pub fn joined_name(name: &str) -> String {
    let folded = fold(name);
    let mut joined = String::with_capacity(folded.len());
    let mut rest = folded.as_str();
    while let Some(start) = rest.find(char::is_whitespace) {
        let (part, spaced) = rest.split_at(start);
        let next = spaced.trim_start();
        joined.push_str(part);
        if !(joined.ends_with(is_unspaced) && next.starts_with(is_unspaced)) {
            joined.push(' ');
        }
        rest = next;
    }
    joined + rest
}

/// Unfolds a text, as in mail headers: puts it on one line. Replaces control characters, such as a line break, and the white space around
/// them by one space. `None` if the text consists only of control characters and white space.
pub fn unfolded(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for (number, part) in text.split(char::is_control).enumerate() {
        match number {
            0 => out.push_str(part),
            _ => {
                out.truncate(out.trim_end().len());
                let part = part.trim_start();
                // A space is written only between two parts, not at the beginning or the end.
                if !part.is_empty() && !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(part);
            }
        }
    }
    if out.trim().is_empty() { None } else { Some(out) }
}

/// Replaces each lone surrogate in JSON by U+FFFD. A lone surrogate is an escape such as `\ud83d` without its other half; UTF-8 text cannot
/// contain it. Some channels cut a text after a number of UTF-16 units, and so may cut an emoji in half.
pub fn whole_characters(json: &[u8]) -> Cow<'_, [u8]> {
    let unit = |at: usize| -> Option<u16> {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut whole, mut at) = (Cow::Borrowed(json), 0);
    while let Some(next) = json.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        at += next;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.to_mut()[at + 2..at + 6].copy_from_slice(b"fffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    whole
}

/// Returns the first `limit` characters of the text, after white space at both ends is removed and each other run of white space is
/// replaced by one space.
pub fn snippet(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        if chars > 0 {
            if chars == limit {
                break;
            }
            out.push(' ');
            chars += 1;
        }
        for c in word.chars() {
            if chars == limit {
                return out;
            }
            out.push(c);
            chars += 1;
        }
    }
    out
}

/// Whether a text can be a name or an id: it is not blank, and has at most `max` characters and no control characters.
pub fn is_name(text: &str, max: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= max && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpaired_surrogates_in_json_are_replaced() {
        for (json, whole) in [
            (r#""Mali \ud83d""#, r#""Mali \ufffd""#),
            (r#""\ude00 \uD83D\uDE00 \ud83d\ud83d\ude00""#, r#""\ufffd \uD83D\uDE00 \ufffd\ud83d\ude00""#),
            (r#"{"a":"\\ud83d","b":"\n\u0041\"\\"}"#, r#"{"a":"\\ud83d","b":"\n\u0041\"\\"}"#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(whole_characters(json.as_bytes()), whole.as_bytes(), "{json}");
        }
    }

    #[test]
    fn folds_case_and_form() {
        for (text, folded) in [
            ("ABC", "abc"),
            ("Ｆｕｌｌ", "full"),
            ("STRASSE", "strasse"),
            ("Straße", "strasse"),
            ("E\u{301}", "é"),
            ("ŻÓŁĆ", "żółć"),
            ("สวัสดี", "สวัสดี"),
        ] {
            assert_eq!(fold(text), fold(folded), "{text}");
        }
        assert_eq!(fold(&fold("ﬀİΣς")), fold("ﬀİΣς"));
    }

    #[test]
    fn names_of_scripts_without_spaces_are_joined() {
        for (name, joined) in [
            ("王 小明", "王小明"),
            ("สมชาย  ใจดี", "สมชายใจดี"),
            ("ﾔﾏﾀﾞ\u{3000}ﾀﾛｳ", "ヤマダタロウ"),
            ("Mali 王 小明 Jr", "mali 王小明 jr"),
            ("Mali Nok", "mali nok"),
            (" 王 ", " 王 "),
            ("", ""),
        ] {
            assert_eq!(joined_name(name), joined, "{name}");
        }
    }

    #[test]
    fn folded_lines_become_one() {
        for (text, line) in [
            ("Order 7", Some("Order 7")),
            (" Order  7 ", Some(" Order  7 ")),
            ("Your order\r\n of yesterday", Some("Your order of yesterday")),
            ("Your order\r\n\t of yesterday", Some("Your order of yesterday")),
            ("a \n\n b\u{1}c", Some("a b c")),
            ("\r\n a\r\n", Some("a")),
            ("a\r\nBcc: b", Some("a Bcc: b")),
            ("\u{0}", None),
            (" \r\n\t", None),
            ("\u{a0} ", None),
            ("", None),
        ] {
            assert_eq!(unfolded(text).as_deref(), line, "{text:?}");
            assert_eq!(line.and_then(unfolded).as_deref(), line, "{text:?}");
        }
    }

    #[test]
    fn snippets_fold_white_space_and_are_cut_by_characters() {
        assert_eq!(snippet("  a \n\t b  ", 100), "a b");
        assert_eq!(snippet("ไทย中文", 4), "ไทย中");
        assert_eq!(snippet("ab cd", 3), "ab ");
        assert_eq!(snippet(" \n ", 100), "");
    }
}
