//! Regular expressions of schemas: checks whether a string matches, and generates strings that match.
//!
//! OpenAPI patterns are ECMAScript regular expressions. Whether a string matches is undecided for a pattern that the `regex` crate does not
//! accept (look-around, back-references).

use std::{cell::RefCell, collections::HashMap};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

use super::instances::SeededRandom;

/// The maximum size of a compiled pattern, in bytes.
const SIZE: usize = 1 << 20;
/// The maximum number of compiled patterns in the cache.
const KEPT: usize = 1_000;

thread_local! {
    static COMPILED: RefCell<HashMap<String, Option<Regex>>> = RefCell::default();
}

/// Whether a string matches a pattern. None if the `regex` crate does not accept the pattern.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> Option<bool> {
    COMPILED.with_borrow_mut(|compiled| {
        if compiled.len() > KEPT {
            compiled.clear();
        }
        let regex = compiled.entry(pattern.to_owned()).or_insert_with(|| RegexBuilder::new(pattern).size_limit(SIZE).build().ok());
        regex.as_ref().map(|regex| regex.is_match(text))
    })
}

/// Generates a string that should match a pattern. None if the attempt fails.
pub(super) fn matching(pattern: &str, dice: &mut SeededRandom) -> Option<String> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    append(&hir, dice, &mut text, 0)?;
    Some(text)
}

fn append(hir: &Hir, dice: &mut SeededRandom, text: &mut String, depth: usize) -> Option<()> {
    if depth > 50 || text.len() > 2_000 {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            let range = ranges.get(dice.roll(ranges.len().max(1)))?;
            let (first, last) = (u32::from(range.start()), u32::from(range.end()));
            let printable = first.max(0x21).min(last);
            let span = usize::try_from(last.min(printable + 90) - printable + 1).ok()?;
            text.push(char::from_u32(printable + u32::try_from(dice.roll(span)).ok()?).or_else(|| char::from_u32(first))?);
        }
        HirKind::Class(Class::Bytes(class)) => text.push(char::from(class.ranges().first()?.start())),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min + 3).min(repetition.min + 8);
            let more = dice.roll(usize::try_from(most - repetition.min).ok()? + 1);
            let count = if dice.roll(4) == 0 { most } else { repetition.min + u32::try_from(more).ok()? };
            for _ in 0..count {
                append(&repetition.sub, dice, text, depth + 1)?;
            }
        }
        HirKind::Capture(capture) => append(&capture.sub, dice, text, depth + 1)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| append(part, dice, text, depth + 1))?,
        HirKind::Alternation(parts) => append(parts.get(dice.roll(parts.len().max(1)))?, dice, text, depth + 1)?,
    }
    Some(())
}
