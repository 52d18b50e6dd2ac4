//! What a text is looked for by: the one analysis that index and queries share. Pure.
//!
//! A text is folded (case, Unicode form, diacritics of Latin, Greek and Cyrillic), then cut into terms:
//!
//! - words of scripts with spaces between them;
//! - in Han, Kana, Thai, Lao, Khmer and Burmese, where only a dictionary could tell words, every two graphemes that follow
//!   each other, and the last one of a run alone;
//! - emoji and other symbols, without colour of skin;
//! - every four digits that follow each other in a number, across the separators of phone numbers;
//! - what short beginnings of words, and single graphemes, are looked up by, since too many words begin so to look at each.
//!
//! Called by `query` and `memory`. Guarantees: a term's place counts graphemes and words, with a gap wherever two
//! neighbours must not count as adjacent; no term is longer than [`TERM_MAX`] bytes, whatever the text.

use icu_normalizer::{ComposingNormalizerBorrowed as Composing, DecomposingNormalizerBorrowed as Decomposing};
use unicode_segmentation::UnicodeSegmentation;

use crate::domain::text::{self, is_unspaced};

/// Raised whenever the same text gives other terms: an index of another version is built anew.
pub const VERSION: u32 = 4;

/// Stands between the two graphemes of a pair, and behind one that is alone: no folded text contains it.
pub const PAIR: char = '\u{1}';
/// Begins a term of four digits.
pub const DIGITS: char = '\u{2}';
/// Begins the term of a short beginning, or of a grapheme wherever it stands. It does not count as a term of the text.
pub const SHORT: char = '\u{4}';
/// Parts the properties of a record. What it parts is never adjacent.
pub const BREAK: char = '\u{1e}';

/// Digits of a number that are one term.
pub const DIGIT_RUN: usize = 4;

/// Beginnings of at most so many characters are terms.
pub const SHORT_CHARS: usize = 2;

const WORD_CHARS: usize = 64;
/// A letter may carry any number of marks; this many code points of a grapheme count.
const GRAPHEME_CHARS: usize = 8;
/// No term is longer, in bytes.
#[cfg(test)]
pub const TERM_MAX: usize = WORD_CHARS * 4;

/// Between what must not be adjacent.
const GAP: u32 = 2;
const NUMBERS_GAP: u32 = DIGIT_RUN as u32;

/// What a stretch of folded text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Word,
    /// Of a script that is written without spaces.
    Run,
    Symbol,
}

/// A stretch of folded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    pub from: usize,
    pub to: usize,
}

/// The text in the form in which it is compared.
pub fn fold(text: &str) -> String {
    let folded = text::fold(text);
    if folded.is_ascii() {
        return folded;
    }
    let bare =
        if folded.chars().any(has_diacritic) { Composing::new_nfc().normalize(&without_diacritics(&folded)).into_owned() } else { folded };
    let mut out = String::with_capacity(bare.len());
    let mut chars = bare.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // Where lines may break, and other things that are not seen.
            '\u{ad}' | '\u{200b}' | '\u{200c}' | '\u{2060}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}' => {}
            '\u{1f3fb}'..='\u{1f3ff}' => {}
            // NFKC takes the vowel am apart, which leaves its first half on the letter before.
            '\u{e4d}' | '\u{ecd}' => {
                let (am, aa) = if c == '\u{e4d}' { ('\u{e33}', '\u{e32}') } else { ('\u{eb3}', '\u{eb2}') };
                let tone = chars.next_if(|next| matches!(next, '\u{e48}'..='\u{e4b}' | '\u{ec8}'..='\u{ecb}'));
                out.extend(tone);
                out.push(if chars.next_if_eq(&aa).is_some() { am } else { c });
            }
            _ => out.push(digit(c).unwrap_or(c)),
        }
    }
    out
}

/// The ASCII form of a digit of the scripts without spaces.
fn digit(c: char) -> Option<char> {
    let zero = match c {
        '\u{e50}'..='\u{e59}' => 0xe50,
        '\u{ed0}'..='\u{ed9}' => 0xed0,
        '\u{17e0}'..='\u{17e9}' => 0x17e0,
        '\u{1040}'..='\u{1049}' => 0x1040,
        _ => return None,
    };
    char::from_digit(u32::from(c) - zero, 10)
}

fn has_diacritic(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{58f}' | '\u{1c80}'..='\u{1c8f}' | '\u{1e00}'..='\u{1fff}' | '\u{2c60}'..='\u{2c7f}' | '\u{a640}'..='\u{a69f}' | '\u{a720}'..='\u{a7ff}')
}

fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{fe20}'..='\u{fe2f}')
}

fn without_diacritics(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut on_letter = false;
    for c in Decomposing::new_nfd().normalize(text).chars() {
        if is_diacritic(c) {
            if !on_letter {
                out.push(c);
            }
            continue;
        }
        on_letter = c.is_ascii_alphabetic() || has_diacritic(c);
        // Letters with a stroke are letters of their own to Unicode.
        out.push(match c {
            'đ' => 'd',
            'ħ' => 'h',
            'ł' => 'l',
            'ø' => 'o',
            'ŧ' => 't',
            'ı' => 'i',
            _ => c,
        });
    }
    out
}

fn is_symbol(c: char) -> bool {
    matches!(c, '$' | '¢'..='¥' | '©' | '®' | '°' | '\u{e3f}' | '\u{17db}')
        || matches!(u32::from(c), 0x20a0..=0x20cf | 0x2100..=0x2bff | 0x1f000..=0x1fbff)
}

/// Marks that belong to the letter before them and are no letters themselves, the joiner among them.
fn is_mark(c: char) -> bool {
    is_diacritic(c) || c == '\u{200d}' || (u32::from(c) >= 0x0590 && !c.is_alphanumeric() && !is_symbol(c) && in_letters(c))
}

/// Blocks in which whatever is neither letter nor digit is mostly a mark.
fn in_letters(c: char) -> bool {
    matches!(u32::from(c), 0x0591..=0x05bd | 0x05bf..=0x05c7 | 0x0610..=0x061a | 0x064b..=0x065f | 0x0670 | 0x06d6..=0x06ed | 0x0700..=0x0963
        | 0x0966..=0x0df3 | 0x0f18..=0x0fbc | 0x1712..=0x1773 | 0x180b..=0x180f | 0x1920..=0x193b | 0x1a17..=0x1aff | 0x1b00..=0x1bff
        | 0x20d0..=0x20ff | 0x3099..=0x309a | 0xa802..=0xabff | 0x11000..=0x11fff | 0xe0100..=0xe01ef)
}

/// The stretches of a folded text, from left to right.
pub fn pieces(folded: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(folded.len() / 6 + 1);
    let mut open: Option<Kind> = None;
    for (at, c) in folded.char_indices() {
        let to = at + c.len_utf8();
        let kind = if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                Some(Kind::Word)
            } else if c == '$' {
                Some(Kind::Symbol)
            } else {
                None
            }
        } else if is_unspaced(c) {
            Some(Kind::Run)
        } else if is_mark(c) {
            // It goes on with whatever it stands on; on nothing it is nothing.
            open
        } else if is_symbol(c) {
            Some(Kind::Symbol)
        } else if c.is_alphanumeric() {
            Some(Kind::Word)
        } else {
            None
        };
        match (kind, pieces.last_mut()) {
            (Some(kind), Some(last)) if open == Some(kind) => last.to = to,
            (Some(kind), _) => pieces.push(Piece { kind, from: at, to }),
            (None, _) => {}
        }
        open = kind;
    }
    pieces
}

/// The first characters of a word, as many as count.
pub fn word(text: &str) -> &str {
    cut(text, WORD_CHARS)
}

fn cut(text: &str, chars: usize) -> &str {
    if text.len() <= chars {
        return text;
    }
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

/// The graphemes of a run, each with as many code points as count.
pub fn graphemes(run: &str) -> impl Iterator<Item = &str> {
    run.graphemes(true).map(|grapheme| cut(grapheme, GRAPHEME_CHARS))
}

/// The symbols of a piece: what a joiner joins counts one by one.
pub fn symbols(piece: &str) -> impl Iterator<Item = &str> {
    piece
        .graphemes(true)
        .flat_map(|grapheme| grapheme.split('\u{200d}'))
        .map(|symbol| cut(symbol, GRAPHEME_CHARS))
        .filter(|symbol| !symbol.is_empty())
}

/// A number as it is written, separators left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    pub digits: String,
    pub from: usize,
    pub to: usize,
}

/// The numbers of a folded text that have at least [`DIGIT_RUN`] digits. Up to two of the separators that phone numbers are
/// written with may stand between two digits.
pub fn numbers(folded: &str) -> Vec<Number> {
    let bytes = folded.as_bytes();
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let mut number = Number { digits: String::new(), from: at, to: at };
        while at < bytes.len() {
            if bytes[at].is_ascii_digit() {
                number.digits.push(char::from(bytes[at]));
                at += 1;
                number.to = at;
                continue;
            }
            let between = bytes[at..].iter().take_while(|byte| b" -.()/".contains(byte)).count();
            if !(1..=2).contains(&between) || !bytes.get(at + between).is_some_and(u8::is_ascii_digit) {
                break;
            }
            at += between;
        }
        if number.digits.len() >= DIGIT_RUN {
            numbers.push(number);
        }
    }
    numbers
}

/// Calls `term` with each term of a text and its place. A term's places increase, those of [`SHORT`] ones aside, which have none.
pub fn analyse(text: &str, mut term: impl FnMut(&str, u32)) {
    let folded = fold(text);
    let mut buffer = String::new();
    let mut place = 0;
    let mut broken = 0;
    for piece in pieces(&folded) {
        let written = &folded[piece.from..piece.to];
        if folded[broken..piece.from].contains(BREAK) {
            place += GAP;
        }
        broken = piece.to;
        match piece.kind {
            Kind::Word => {
                let word = word(written);
                term(word, place);
                place += 1;
                for (at, c) in word.char_indices().take(SHORT_CHARS) {
                    short(&mut buffer, &word[..at + c.len_utf8()]);
                    term(&buffer, 0);
                }
            }
            Kind::Run => {
                let mut graphemes = graphemes(written).peekable();
                while let Some(grapheme) = graphemes.next() {
                    pair(&mut buffer, grapheme, graphemes.peek().copied());
                    term(&buffer, place);
                    place += 1;
                    short(&mut buffer, grapheme);
                    term(&buffer, 0);
                }
                place += GAP;
            }
            Kind::Symbol => {
                for symbol in symbols(written) {
                    term(symbol, place);
                    place += 1;
                }
            }
        }
    }
    // Places of their own: no other term begins like these.
    let mut place = 0;
    for number in numbers(&folded) {
        if number.digits.len() == DIGIT_RUN && number.to - number.from == DIGIT_RUN && stands_alone(&folded, &number) {
            // It is a word already.
            continue;
        }
        for from in 0..=number.digits.len() - DIGIT_RUN {
            buffer.clear();
            buffer.push(DIGITS);
            buffer.push_str(&number.digits[from..from + DIGIT_RUN]);
            term(&buffer, place);
            place += 1;
        }
        // No run of digits may reach from one number into the next.
        place += NUMBERS_GAP;
    }
}

/// Whether a number is a word of its own.
pub fn stands_alone(folded: &str, number: &Number) -> bool {
    let part_of_word = |c: char| !is_unspaced(c) && (c.is_alphanumeric() || is_mark(c));
    !folded[..number.from].chars().next_back().is_some_and(part_of_word) && !folded[number.to..].chars().next().is_some_and(part_of_word)
}

/// Writes the term of a grapheme and the one that follows it.
pub fn pair(buffer: &mut String, first: &str, second: Option<&str>) {
    buffer.clear();
    buffer.push_str(first);
    buffer.push(PAIR);
    buffer.push_str(second.unwrap_or_default());
}

/// Writes the term of a beginning, or of a grapheme.
pub fn short(buffer: &mut String, beginning: &str) {
    buffer.clear();
    buffer.push(SHORT);
    buffer.push_str(beginning);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<(String, u32)> {
        let mut terms = Vec::new();
        analyse(text, |term, place| {
            if !term.starts_with(SHORT) {
                terms.push((term.replace(PAIR, "|").replace(DIGITS, "#"), place));
            }
        });
        terms
    }

    fn words(text: &str) -> Vec<String> {
        terms(text).into_iter().map(|(term, _)| term).collect()
    }

    #[test]
    fn folds_case_form_and_the_diacritics_of_three_scripts() {
        for (text, folded) in [
            ("Đặt HÀNG", "dat hang"),
            ("Straße", "strasse"),
            ("Ｆｕｌｌ", "full"),
            ("ΆΛΦΑ", "αλφα"),
            ("Ёлка", "елка"),
            ("Łódź", "lodz"),
            ("น้ำ", "น้ำ"),
            ("นํ้า", "น้ำ"),
            ("ຄຳ", "ຄຳ"),
            ("が", "が"),
            ("か\u{3099}", "が"),
            ("ﾊﾟ", "パ"),
            ("한국", "한국"),
            ("ក\u{200b}ខ", "កខ"),
            ("๑๒๓", "123"),
            ("👍🏽", "👍"),
            ("❤\u{fe0f}", "❤"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
            assert_eq!(fold(&fold(text)), folded, "{text}");
        }
        assert_ne!(fold("ก่"), fold("ก"));
        assert_ne!(fold("が"), fold("か"));
    }

    #[test]
    fn words_pairs_symbols_and_digits_are_terms() {
        assert_eq!(terms("Hello, World"), [("hello".to_owned(), 0), ("world".to_owned(), 1)]);
        assert_eq!(terms("你好吗 ok"), [("你|好".to_owned(), 0), ("好|吗".to_owned(), 1), ("吗|".to_owned(), 2), ("ok".to_owned(), 5)]);
        assert_eq!(words("กำลังรอ"), ["กำ|ลั", "ลั|ง", "ง|ร", "ร|อ", "อ|"]);
        assert_eq!(words("ok👍👍🏽!"), ["ok", "👍", "👍"]);
        assert_eq!(words("👩‍👧"), ["👩", "👧"]);
        assert_eq!(words("081-2345"), ["081", "2345", "#0812", "#8123", "#1234", "#2345"]);
        assert_eq!(words("2024"), ["2024"]);
        assert_eq!(words("x2024"), ["x2024", "#2024"]);
        assert_eq!(words("ซื้อ2024"), ["ซื้|อ", "อ|", "2024"]);
        assert_eq!(words("a\u{301}b e\u{301}"), ["ab", "e"]);
        assert_eq!(words("\"*\0()^~:-"), Vec::<String>::new());
    }

    #[test]
    fn short_beginnings_and_graphemes_are_terms() {
        let mut shorts = Vec::new();
        analyse("Order a 号是 08123", |term, _| shorts.extend(term.strip_prefix(SHORT).map(str::to_owned)));
        assert_eq!(shorts, ["o", "or", "a", "号", "是", "0", "08"]);
    }

    #[test]
    fn a_text_of_marks_is_short() {
        let marks = format!("ก{}", "\u{e48}".repeat(10_000));
        assert_eq!(words(&marks).len(), 1);
        assert!(words(&marks).iter().all(|term| term.len() <= TERM_MAX));
        assert!(words(&"\u{301}".repeat(10_000)).len() <= 1);
        assert!(words(&"x".repeat(10_000)).iter().all(|term| term.len() <= TERM_MAX));
        assert!(words(&format!("👍{}", "\u{200d}👍".repeat(10_000))).iter().all(|term| term.len() <= TERM_MAX));
    }
}
