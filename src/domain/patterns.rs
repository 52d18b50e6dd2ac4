//! Patterns of field definitions, compiled once.

use std::sync::{LazyLock, Mutex, PoisonError};

use hashlink::LruCache;
use regex::{Regex, RegexBuilder};

/// The most memory that a compiled pattern may take, in bytes. A class of letters in all scripts, repeated a hundred times, needs a third.
const SIZE_LIMIT: usize = 10 * 1024 * 1024;

/// Compiled patterns that are kept.
const KEPT: usize = 64;

static COMPILED: LazyLock<Mutex<LruCache<String, Regex>>> = LazyLock::new(|| Mutex::new(LruCache::new(KEPT)));

/// The pattern if it is compiled already: compiling may take a tenth of a second.
pub fn compiled(pattern: &str) -> Option<Regex> {
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner).get(pattern).cloned()
}

/// Compiles a pattern and keeps it. One that would take more memory than allowed is refused like one that is not well formed.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    if let Some(regex) = compiled(pattern) {
        return Ok(regex);
    }
    let regex = RegexBuilder::new(pattern).size_limit(SIZE_LIMIT).build()?;
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner).insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compiled_once() {
        let pattern = r"^once-\d{3}$";
        assert!(compiled(pattern).is_none());
        assert!(compile(pattern).unwrap().is_match("once-123"));
        assert!(compiled(pattern).is_some_and(|regex| !regex.is_match("once-12")));
    }

    #[test]
    fn a_pattern_has_a_largest_size() {
        assert!(compile(r"^[\p{L}\p{N} .'-]{1,100}$").is_ok());
        for refused in [r"(\w{1,100}){1,100}", "("] {
            assert!(compile(refused).is_err(), "{refused}");
        }
    }
}
