//! Query parser: turns a search text into conditions, all of which must hold (AND). It does no I/O.
//!
//! There is no query syntax: a search is analysed like any text, and characters that belong to no term are ignored. Called by `searcher`
//! and `record_terms`. Guarantees: The number of conditions is bounded by the length of the text. The same text always gives the same
//! conditions in the same order, since a pagination cursor contains the weights of the conditions in that order.

use super::analysis::{self, DIGIT_RUN, DIGITS, Piece, SHORT_CHARS, TokenKind, pair, short};

/// A condition on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The record contains this term.
    Term(String),
    /// The record contains a term with this prefix. The frequency of the condition is that of the most frequent term with the prefix.
    Beginning(String),
    /// The record contains these terms, each at its offset from the beginning of the phrase. A term covers `covers` positions: a bigram,
    /// for example, covers two. Where terms overlap, some of them are redundant: `ab` and `cd` find `abcd` without `bc`.
    Phrase {
        covers: u32,
        terms: Vec<(u32, String)>,
    },
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// The conditions of a search text. A text without terms has no conditions and finds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    pub conditions: Vec<Condition>,
}

/// A text without spaces that contains this character is treated as an e-mail address, or as part of one.
const AT: char = '@';

impl SearchQuery {
    pub fn of(text: &str) -> Self {
        let folded = analysis::fold(text);
        let pieces = analysis::pieces(&folded);
        let mut conditions: Vec<Condition> = Vec::new();
        let mut add = |condition: Condition| {
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        };
        let numbers = numbers(&folded, &pieces);
        let mut at = 0;
        while let Some(piece) = pieces.get(at) {
            let length = if let Some((length, digits)) =
                numbers.iter().find(|(from, _, _)| *from == at).map(|(_, length, digits)| (*length, digits))
            {
                add(number(&folded, &pieces[at..at + length], digits, at + length == pieces.len()));
                length
            } else if let Some(length) = address(&folded, &pieces[at..]) {
                // The words of an address form a phrase. If the address ends the query, its last word may be incomplete, and is not part
                // of the phrase.
                let (whole, open) = if at + length == pieces.len() { (length - 1, true) } else { (length, false) };
                let words = pieces[at..at + whole].iter().zip(0..).map(|(piece, place)| (place, text_of(&folded, piece)));
                add(Condition::phrase(1, words));
                if open {
                    add(beginning(&folded, &pieces[at + whole]));
                }
                length
            } else {
                let written = &folded[piece.from..piece.to];
                match piece.kind {
                    TokenKind::Word if at + 1 == pieces.len() => add(beginning(&folded, piece)),
                    TokenKind::Word => add(Condition::Term(text_of(&folded, piece))),
                    TokenKind::Run => add(run(written)),
                    TokenKind::Symbol => analysis::symbols(written).for_each(|symbol| add(Condition::Term(symbol.to_owned()))),
                }
                1
            };
            at += length;
        }
        Self { conditions }
    }
}

impl Condition {
    /// Returns the least number of terms and prefixes that must be looked up for the condition.
    pub fn parts(&self) -> usize {
        match self {
            Self::Term(_) | Self::Beginning(_) => 1,
            Self::Phrase { covers, terms } => (terms.len() + *covers as usize - 1).div_ceil(*covers as usize),
            Self::All(parts) | Self::Any(parts) => parts.iter().map(Self::parts).sum(),
        }
    }

    /// Returns the condition of a phrase. A phrase of one term becomes a [`Self::Term`].
    fn phrase(covers: u32, terms: impl Iterator<Item = (u32, String)>) -> Self {
        let mut terms: Vec<_> = terms.collect();
        if terms.len() == 1 { Self::Term(terms.swap_remove(0).1) } else { Self::Phrase { covers, terms } }
    }
}

fn text_of(folded: &str, piece: &Piece) -> String {
    analysis::word(&folded[piece.from..piece.to]).to_owned()
}

/// Returns the condition for a word that may be incomplete: the record contains a word that begins with it.
fn beginning(folded: &str, piece: &Piece) -> Condition {
    let word = text_of(folded, piece);
    if word.chars().count() > SHORT_CHARS {
        return Condition::Beginning(word);
    }
    let mut term = String::new();
    short(&mut term, &word);
    Condition::Term(term)
}

/// Returns the condition of a run (a text without spaces between words): a phrase of all its bigrams. `postings` later selects rare
/// bigrams, since their rarity is known only from the index.
fn run(written: &str) -> Condition {
    let graphemes: Vec<&str> = analysis::graphemes(written).collect();
    let mut term = String::new();
    if let [one] = graphemes[..] {
        short(&mut term, one);
        return Condition::Term(term);
    }
    let pairs = graphemes.windows(2).zip(0..).map(|(graphemes, place)| {
        pair(&mut term, graphemes[0], Some(graphemes[1]));
        (place, term.clone())
    });
    Condition::phrase(2, pairs)
}

/// Returns the numbers that begin at the beginning of a piece and end at the end of a piece. Each has the index of its first piece, the
/// count of its pieces, and its digits.
fn numbers(folded: &str, pieces: &[Piece]) -> Vec<(usize, usize, String)> {
    let whole = |number: analysis::Number| {
        let from = pieces.iter().position(|piece| piece.from == number.from)?;
        let to = pieces.iter().position(|piece| piece.to == number.to)?;
        Some((from, to + 1 - from, number.digits))
    };
    analysis::numbers(folded).into_iter().filter_map(whole).collect()
}

/// Returns the condition of a number: its words as written, or its digits as part of a longer number.
fn number(folded: &str, pieces: &[Piece], digits: &str, last: bool) -> Condition {
    let words = pieces.iter().enumerate().map(|(at, piece)| match last && at + 1 == pieces.len() {
        true => beginning(folded, piece),
        false => Condition::Term(text_of(folded, piece)),
    });
    let mut ways = vec![Condition::All(words.collect()), in_a_row(digits)];
    // A phone number in national format has a leading zero where a stored phone number has a country code.
    if let Some(abroad) = digits.strip_prefix('0').filter(|rest| rest.len() >= DIGIT_RUN) {
        ways.push(in_a_row(abroad));
    }
    Condition::Any(ways)
}

fn in_a_row(digits: &str) -> Condition {
    let runs = (0..=digits.len() - DIGIT_RUN).zip(0..).map(|(from, place)| (place, format!("{DIGITS}{}", &digits[from..from + DIGIT_RUN])));
    Condition::phrase(DIGIT_RUN as u32, runs)
}

/// Returns the number of leading pieces that form an e-mail address: words without a space between them, with an at sign among them.
fn address(folded: &str, pieces: &[Piece]) -> Option<usize> {
    let together = |pair: &&[Piece]| {
        let between = &folded[pair[0].to..pair[1].from];
        pair[1].kind == TokenKind::Word && !between.contains(char::is_whitespace)
    };
    if pieces.first()?.kind != TokenKind::Word {
        return None;
    }
    let length = 1 + pieces.windows(2).take_while(together).count();
    let (from, to) = (pieces[0].to, pieces[length - 1].from);
    (length > 1 && folded[from..to].contains(AT)).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::{Condition::*, *};
    use crate::search::analysis::{PAIR, SHORT};

    fn conditions(text: &str) -> Vec<Condition> {
        SearchQuery::of(text).conditions
    }

    fn phrase(covers: u32, terms: &[&str]) -> Condition {
        let term = |term: &&str| term.replace('|', &PAIR.to_string()).replace('#', &DIGITS.to_string());
        Phrase { covers, terms: (0..).zip(terms.iter().map(term)).collect() }
    }

    #[test]
    fn the_last_word_may_be_incomplete() {
        assert_eq!(conditions("Refund ORD"), [Term("refund".into()), Beginning("ord".into())]);
        assert_eq!(conditions("refund or"), [Term("refund".into()), Term(format!("{SHORT}or"))]);
        assert_eq!(conditions("ord 你好"), [Term("ord".into()), Term(format!("你{PAIR}好"))]);
    }

    #[test]
    fn text_in_scripts_without_spaces_becomes_phrases_of_bigrams() {
        assert_eq!(conditions("你"), [Term(format!("{SHORT}你"))]);
        assert_eq!(conditions("订单号"), [phrase(2, &["订|单", "单|号"])]);
        assert_eq!(conditions("订单号是"), [phrase(2, &["订|单", "单|号", "号|是"])]);
    }

    #[test]
    fn a_number_matches_as_words_or_as_consecutive_digits() {
        assert_eq!(
            conditions("081 2345"),
            [Any(vec![
                All(vec![Term("081".into()), Beginning("2345".into())]),
                phrase(4, &["#0812", "#8123", "#1234", "#2345"]),
                phrase(4, &["#8123", "#1234", "#2345"]),
            ])]
        );
        assert_eq!(conditions("123"), [Beginning("123".into())]);
        assert_eq!(conditions("x1234"), [Beginning("x1234".into())]);
    }

    #[test]
    fn email_addresses_become_phrases() {
        assert_eq!(conditions("Mali.N@mail.example"), [phrase(1, &["mali", "n", "mail"]), Beginning("example".into())]);
        assert_eq!(conditions("mali@"), [Beginning("mali".into())]);
    }

    #[test]
    fn operators_and_symbols_have_no_meaning_in_a_query() {
        for text in ["", "\"", "*", "\0", "()", "-", "^~:\\", " \t"] {
            assert_eq!(conditions(text), [], "{text:?}");
        }
        assert_eq!(conditions("a OR (b*)"), [Term("a".into()), Term("or".into()), Term(format!("{SHORT}b"))]);
    }
}
