//! Relevance score: BM25 in integers, with statistics that stay the same on all pages of a search. This module does no I/O.
//!
//! Each condition of a search has a weight, which depends on the rarity of its terms. The weights are computed for the first page and
//! stored in the cursor for the later pages. The average length of texts, which BM25 needs, is a constant. A record that does not change
//! therefore has the same score on all pages of a search, whatever else is written. Scores are integers, so rounding errors cannot make
//! equal scores differ.

use std::sync::LazyLock;

use tantivy::fieldnorm::FieldNormReader;

/// BM25 parameters: `K1` for the saturation of term frequency, `B` for the influence of length.
const K1: f64 = 1.2;
const B: f64 = 0.5;
/// The assumed average number of terms of a text.
const USUAL_LENGTH: f64 = 20.0;
/// The highest term frequency that counts: a higher frequency counts as this value.
pub const MAX_TERM_FREQUENCY: u32 = 16;
/// The fixed-point scales: saturations are integers in units of 1 / `FINE`, weights are integers in units of 1 / `COARSE`.
const FINE: f64 = 1000.0;
const COARSE: f64 = 8.0;

static SATURATION: LazyLock<[[u16; 256]; MAX_TERM_FREQUENCY as usize + 1]> = LazyLock::new(|| {
    let mut table = [[0; 256]; MAX_TERM_FREQUENCY as usize + 1];
    for (frequency, row) in table.iter_mut().enumerate() {
        for (id, cell) in (0..=u8::MAX).zip(row) {
            let (frequency, length) = (frequency as f64, f64::from(FieldNormReader::id_to_fieldnorm(id)));
            let worth = frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length / USUAL_LENGTH));
            *cell = (worth * FINE).round() as u16;
        }
    }
    table
});

/// Returns the BM25 saturation, in units of 1 / `FINE`, of a term frequency in a text whose length norm (see [`length`]) is `length`. The
/// saturation is never higher in a longer text, and never lower for a higher frequency.
pub fn saturation(frequency: u32, length: u8) -> u32 {
    SATURATION[frequency.min(MAX_TERM_FREQUENCY) as usize][usize::from(length)].into()
}

/// Returns the length norm of a text: its number of terms, in the lossy form (one byte) that Tantivy stores.
pub fn length(terms: u32) -> u8 {
    FieldNormReader::fieldnorm_to_id(terms)
}

/// Returns the weight (inverse document frequency) of a condition, in units of 1 / `COARSE`. `having` is the number of records that fulfil
/// the condition, and `all` the number of all records.
pub fn weight(having: u64, all: u64) -> u8 {
    let having = having.min(all) as f64;
    let rarity = 1.0 + (all as f64 - having + 0.5) / (having + 0.5);
    (COARSE * rarity.log2()).round().clamp(1.0, 255.0) as u8
}

/// Converts a score to the number that clients get.
pub fn shown(score: u32) -> f64 {
    f64::from(score) / (FINE * COARSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_terms_short_texts_and_repetition_score_higher() {
        assert!(weight(1, 1_000_000) > weight(1000, 1_000_000));
        assert!(weight(1000, 1000) >= 1 && weight(0, 0) >= 1);
        assert!(saturation(1, length(5)) > saturation(1, length(50)));
        assert!(saturation(2, length(5)) > saturation(1, length(5)));
        assert!(saturation(17, length(5)) == saturation(u32::MAX, length(5)));
        assert!((0..=u8::MAX).is_sorted_by_key(|length| std::cmp::Reverse(saturation(3, length))));
        assert_eq!(saturation(0, length(5)), 0);
    }
}
