//! The one way in which text is folded before it is compared: NFKC, case folded, NFKC again (decisions, sections 5.6
//! and 5.20). The same fold is applied to what is stored and to what is looked for.

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizer;

/// `text` without differences of case and of Unicode form.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let normalizer = ComposingNormalizer::new_nfkc();
    let folded = CaseMapper::new().fold_string(&normalizer.normalize(text)).into_owned();
    normalizer.normalize(&folded).into_owned()
}

/// `text` with runs of white space as one space, cut after `limit` characters.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn snippets_fold_white_space_and_are_cut_by_characters() {
        assert_eq!(snippet("  a \n\t b  ", 100), "a b");
        assert_eq!(snippet("ไทย中文", 4), "ไทย中");
        assert_eq!(snippet("ab cd", 3), "ab ");
        assert_eq!(snippet(" \n ", 100), "");
    }
}
