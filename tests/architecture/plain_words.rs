//! Test that comments and names of functions do not contain certain words that the project does not use.

use super::{lines, none};

/// The refused words. The subject of a sentence is a component and not a person. Instead of "told", a sentence says reported, logged,
/// returned, notified or distinguished.
const REFUSED: [&str; 6] = ["told", "whoever", "nobody", "he", "his", "him"];

/// Beginnings of names that do not say what is tested.
const REFUSED_BEGINNINGS: [&str; 3] = ["what_", "who_", "one_that_"];

/// Returns the name of the function that a line of code declares.
fn declared_function(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let declares = before.split_whitespace().all(|word| word.starts_with("pub") || ["async", "const", "unsafe"].contains(&word));
    declares.then(|| after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

#[test]
fn comments_and_function_names_have_plain_words() {
    let lines = ["src", "tests", "openapi-diff/src", "migrations/src"].into_iter().flat_map(lines);
    let breaches = lines.filter_map(|line| {
        let name = declared_function(&line.code).unwrap_or_default();
        let in_comment = line.comment.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let beginning = REFUSED_BEGINNINGS.into_iter().find(|beginning| name.starts_with(beginning));
        let word = in_comment.chain(name.split('_')).find(|word| REFUSED.contains(&word.to_lowercase().as_str()));
        let found = beginning.or(word)?;
        // This file names the words.
        (!line.path.ends_with("tests/architecture/plain_words.rs"))
            .then(|| format!("{}:{}: `{found}` in {name}{}", line.path.display(), line.number, line.comment.trim()))
    });
    none("a comment or the name of a function has a word that the project does not use", breaches);
}
