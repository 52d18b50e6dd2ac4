//! Content encoding of responses: gzip, where the client accepts it.

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};
use poem::http::{HeaderMap, header::ACCEPT_ENCODING};

/// Returns whether a client accepts gzip (RFC 9110, section 12.5.3).
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut any = false;
    for coding in headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        let refused = weight.is_some_and(|(_, weight)| weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => return !refused,
            "*" => any = !refused,
            _ => {}
        }
    }
    any
}

/// Compresses bytes with gzip at its fastest level. Higher levels take much longer and save little more.
pub fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_where_it_is_accepted() {
        let accepts = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            accepts_gzip(&headers)
        };
        assert!(!accepts_gzip(&HeaderMap::new()));
        for value in ["gzip", "br, GZIP;q=0.5", "deflate, *", "x-gzip", "*;q=0, gzip"] {
            assert!(accepts(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip;Q=0", "gzip ; q = 0", "gzip; q=0.0, *", "*;q=0", "identity"] {
            assert!(!accepts(value), "{value}");
        }
    }
}
