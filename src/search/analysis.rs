//! Text analysis (tokenizer and normalisation), used for the index and for queries. It does no I/O.
//!
//! A text is folded (case, Unicode form, diacritics of Latin, Greek and Cyrillic), then cut into terms:
//!
//! - words, in scripts that put spaces between words;
//! - in Han, Kana, Thai, Lao, Khmer and Burmese, where finding the words would need a dictionary: bigrams of adjacent graphemes, and a term
//!   for the last grapheme of each run (a text without spaces between words);
//! - emoji and other symbols, without skin tone;
//! - 4-grams of the digits of a number, across the separators of phone numbers;
//! - the first character, and the first two characters, of each word;
//! - single graphemes of a run. A search for such a grapheme, or for a prefix of one or two characters, looks up this one term: too many
//!   terms begin with it to look up all of them.
//!
//! Called by `query` and `record_terms`. Guarantees: Each term has a position, except prefixes of words and single graphemes (see
//! [`SHORT`]). Between two terms that must not count as adjacent, the positions have a gap. No term is longer than `TERM_MAX` bytes.

use icu_normalizer::{ComposingNormalizerBorrowed as Composing, DecomposingNormalizerBorrowed as Decomposing};
use unicode_segmentation::UnicodeSegmentation;

use crate::domain::unicode_text::{self, is_unspaced};

/// The version of the analysis. It must be raised with every change after which the analysis yields other terms for some text. An index of
/// another version is rebuilt.
pub const VERSION: u32 = 4;

/// Separates the two graphemes of a bigram. In the term for the last grapheme of a run, it follows the grapheme. No word, grapheme or
/// symbol contains this character.
pub const PAIR: char = '\u{1}';
/// First character of a digit 4-gram.
pub const DIGITS: char = '\u{2}';
/// First character of the term of a short prefix or of a single grapheme. Such terms do not count towards the length of a text.
pub const SHORT: char = '\u{4}';
/// The texts of a record, such as the text and the subject of a message, are analysed as one text, separated by this character. A term
/// before the character and a term after it never count as adjacent.
pub const BREAK: char = '\u{1e}';

/// The length of a digit n-gram.
pub const DIGIT_RUN: usize = 4;

/// The maximum length, in characters, of a prefix that is a term of its own.
pub const SHORT_CHARS: usize = 2;

const WORD_CHARS: usize = 64;
/// The maximum number of code points of a grapheme that are indexed. A grapheme may have any number of combining marks.
const GRAPHEME_CHARS: usize = 8;
/// The maximum length of a term, in bytes.
#[cfg(test)]
pub const TERM_MAX: usize = WORD_CHARS * 4;

/// Gaps between the positions of two terms that must not count as adjacent: `GAP` between words or graphemes, `NUMBERS_GAP` between the
/// digits of two numbers.
const GAP: u32 = 2;
const NUMBERS_GAP: u32 = DIGIT_RUN as u32;

/// The kinds of pieces of a text (see [`Piece`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Word,
    /// Text in a script that is written without spaces between words.
    Run,
    Symbol,
}

/// A range of folded text: a word, a run of a script without spaces, or symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: TokenKind,
    pub from: usize,
    pub to: usize,
}

/// Normalises a text for comparison: folds case, Unicode form and diacritics.
pub fn fold(text: &str) -> String {
    let folded = unicode_text::fold(text);
    if folded.is_ascii() {
        return folded;
    }
    let bare =
        if folded.chars().any(has_diacritic) { Composing::new_nfc().normalize(&without_diacritics(&folded)).into_owned() } else { folded };
    let mut out = String::with_capacity(bare.len());
    let mut chars = bare.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // Optional line breaks and other invisible characters are removed.
            '\u{ad}' | '\u{200b}' | '\u{200c}' | '\u{2060}' | '\u{feff}' | '\u{fe0e}' | '\u{fe0f}' => {}
            '\u{1f3fb}'..='\u{1f3ff}' => {}
            // Unicode normalisation (NFKC) splits the Thai and Lao vowel am into two characters. They are joined again here, and a tone
            // mark between them is put before the vowel.
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

/// Returns the ASCII form of a Thai, Lao, Khmer or Burmese digit.
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
        // Unicode does not decompose letters with a stroke, nor the dotless i.
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

/// Whether a character is a combining mark or the zero-width joiner.
fn is_mark(c: char) -> bool {
    is_diacritic(c) || c == '\u{200d}' || (u32::from(c) >= 0x0590 && !c.is_alphanumeric() && !is_symbol(c) && in_letters(c))
}

/// Whether a character is in a range of letters and their combining marks. `is_mark` takes every character of such a range for a mark,
/// unless it is a letter, a digit or a symbol.
fn in_letters(c: char) -> bool {
    matches!(u32::from(c), 0x0591..=0x05bd | 0x05bf..=0x05c7 | 0x0610..=0x061a | 0x064b..=0x065f | 0x0670 | 0x06d6..=0x06ed | 0x0700..=0x0963
        | 0x0966..=0x0df3 | 0x0f18..=0x0fbc | 0x1712..=0x1773 | 0x180b..=0x180f | 0x1920..=0x193b | 0x1a17..=0x1aff | 0x1b00..=0x1bff
        | 0x20d0..=0x20ff | 0x3099..=0x309a | 0xa802..=0xabff | 0x11000..=0x11fff | 0xe0100..=0xe01ef)
}

/// Cuts a folded text into pieces, from left to right.
pub fn pieces(folded: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(folded.len() / 6 + 1);
    let mut open: Option<TokenKind> = None;
    for (at, c) in folded.char_indices() {
        let to = at + c.len_utf8();
        let kind = if c.is_ascii() {
            if c.is_ascii_alphanumeric() {
                Some(TokenKind::Word)
            } else if c == '$' {
                Some(TokenKind::Symbol)
            } else {
                None
            }
        } else if is_unspaced(c) {
            Some(TokenKind::Run)
        } else if is_mark(c) {
            // A combining mark continues the piece before it. Without such a piece it is ignored.
            open
        } else if is_symbol(c) {
            Some(TokenKind::Symbol)
        } else if c.is_alphanumeric() {
            Some(TokenKind::Word)
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

/// Returns a word, cut to the length that is indexed.
pub fn word(text: &str) -> &str {
    cut(text, WORD_CHARS)
}

fn cut(text: &str, chars: usize) -> &str {
    if text.len() <= chars {
        return text;
    }
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

/// Returns the graphemes of a run (a text without spaces between words), each cut to the length that is indexed.
pub fn graphemes(run: &str) -> impl Iterator<Item = &str> {
    run.graphemes(true).map(|grapheme| cut(grapheme, GRAPHEME_CHARS))
}

/// Returns the symbols of a piece. An emoji sequence with zero-width joiners yields each of its emoji.
pub fn symbols(piece: &str) -> impl Iterator<Item = &str> {
    piece
        .graphemes(true)
        .flat_map(|grapheme| grapheme.split('\u{200d}'))
        .map(|symbol| cut(symbol, GRAPHEME_CHARS))
        .filter(|symbol| !symbol.is_empty())
}

/// A number in a text: its digits, without separators, and its range in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    pub digits: String,
    pub from: usize,
    pub to: usize,
}

/// Returns the numbers of a folded text that have at least [`DIGIT_RUN`] digits. Up to two of the usual separators of phone numbers
/// are permitted between two digits.
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

/// Calls `term` with each term of a text and the term's position. Positions ascend, separately for digit terms and for other terms. Terms
/// that begin with [`SHORT`] have no position and get 0.
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
            TokenKind::Word => {
                let word = word(written);
                term(word, place);
                place += 1;
                for (at, c) in word.char_indices().take(SHORT_CHARS) {
                    short(&mut buffer, &word[..at + c.len_utf8()]);
                    term(&buffer, 0);
                }
            }
            TokenKind::Run => {
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
            TokenKind::Symbol => {
                for symbol in symbols(written) {
                    term(symbol, place);
                    place += 1;
                }
            }
        }
    }
    // The positions of digit terms begin at 0 again: no search phrase combines digit terms with other terms.
    let mut place = 0;
    for number in numbers(&folded) {
        if number.digits.len() == DIGIT_RUN && number.to - number.from == DIGIT_RUN && stands_alone(&folded, &number) {
            // The number is already indexed as a word.
            continue;
        }
        for from in 0..=number.digits.len() - DIGIT_RUN {
            buffer.clear();
            buffer.push(DIGITS);
            buffer.push_str(&number.digits[from..from + DIGIT_RUN]);
            term(&buffer, place);
            place += 1;
        }
        // Digits of two numbers must not count as adjacent.
        place += NUMBERS_GAP;
    }
}

/// Returns whether a number is a word of its own: no letter, digit or combining mark of a word adjoins it.
pub fn stands_alone(folded: &str, number: &Number) -> bool {
    let part_of_word = |c: char| !is_unspaced(c) && (c.is_alphanumeric() || is_mark(c));
    !folded[..number.from].chars().next_back().is_some_and(part_of_word) && !folded[number.to..].chars().next().is_some_and(part_of_word)
}

/// Writes the bigram of a grapheme and the next one into the buffer. `second` is `None` for the last grapheme of a run, whose term is the
/// grapheme followed by [`PAIR`].
pub fn pair(buffer: &mut String, first: &str, second: Option<&str>) {
    buffer.clear();
    buffer.push_str(first);
    buffer.push(PAIR);
    buffer.push_str(second.unwrap_or_default());
}

/// Writes the term of a short prefix, or of a single grapheme, into the buffer.
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
    fn words_bigrams_symbols_and_digits_are_terms() {
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
    fn short_prefixes_and_graphemes_are_terms() {
        let mut shorts = Vec::new();
        analyse("Order a 号是 08123", |term, _| shorts.extend(term.strip_prefix(SHORT).map(str::to_owned)));
        assert_eq!(shorts, ["o", "or", "a", "号", "是", "0", "08"]);
    }

    #[test]
    fn terms_of_combining_marks_or_long_words_stay_within_the_length_limit() {
        let marks = format!("ก{}", "\u{e48}".repeat(10_000));
        assert_eq!(words(&marks).len(), 1);
        assert!(words(&marks).iter().all(|term| term.len() <= TERM_MAX));
        assert!(words(&"\u{301}".repeat(10_000)).len() <= 1);
        assert!(words(&"x".repeat(10_000)).iter().all(|term| term.len() <= TERM_MAX));
        assert!(words(&format!("👍{}", "\u{200d}👍".repeat(10_000))).iter().all(|term| term.len() <= TERM_MAX));
    }
}
