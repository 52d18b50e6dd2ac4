//! Regular expressions of field definitions, with an LRU cache of compiled patterns.

use std::sync::{LazyLock, Mutex, PoisonError};

use hashlink::LruCache;
use regex::{Regex, RegexBuilder};

/// The memory limit of a compiled pattern, in bytes. For example, `[\p{L}\p{N}]{1,100}` (up to a hundred letters and digits of any script)
/// is below the limit.
const SIZE_LIMIT: usize = 10 * 1024 * 1024;

/// The capacity of the cache, in patterns.
const KEPT: usize = 64;

static COMPILED: LazyLock<Mutex<LruCache<String, Regex>>> = LazyLock::new(|| Mutex::new(LruCache::new(KEPT)));

/// Returns the compiled pattern if it is in the cache. Does not compile the pattern: a caller on an async thread uses this function, since
/// compilation would keep the thread busy.
pub fn compiled(pattern: &str) -> Option<Regex> {
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner).get(pattern).cloned()
}

/// Compiles a pattern and caches it. A pattern over the memory limit is refused like a malformed one.
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
    fn a_pattern_over_the_memory_limit_is_refused() {
        assert!(compile(r"^[\p{L}\p{N} .'-]{1,100}$").is_ok());
        for refused in [r"(\w{1,100}){1,100}", "("] {
            assert!(compile(refused).is_err(), "{refused}");
        }
    }
}
