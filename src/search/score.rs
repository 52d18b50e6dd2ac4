//! Relevance: BM25 in whole numbers, with what it knows of the other records fixed. Pure.
//!
//! A hit has every condition of the search, so that how rare each is only weighs them against each other. That weight is
//! taken when a walk begins and carried in its cursor; the length that counts as usual is a constant. A record that nobody
//! touches therefore keeps its score through a walk, whatever else is written, and two hits with one score are alike.

use std::sync::LazyLock;

use tantivy::fieldnorm::FieldNormReader;

/// How fast repetition stops to count, and how much length does.
const K1: f64 = 1.2;
const B: f64 = 0.5;
/// Terms of a text of usual length.
const USUAL_LENGTH: f64 = 20.0;
/// More repetitions than these count as many.
pub const MANY: u32 = 16;
/// Units of a saturation, and of a weight.
const FINE: f64 = 1000.0;
const COARSE: f64 = 8.0;

static SATURATION: LazyLock<[[u16; 256]; MANY as usize + 1]> = LazyLock::new(|| {
    let mut table = [[0; 256]; MANY as usize + 1];
    for (frequency, row) in table.iter_mut().enumerate() {
        for (id, cell) in (0..=u8::MAX).zip(row) {
            let (frequency, length) = (frequency as f64, f64::from(FieldNormReader::id_to_fieldnorm(id)));
            let worth = frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length / USUAL_LENGTH));
            *cell = (worth * FINE).round() as u16;
        }
    }
    table
});

/// What so many occurrences are worth in a text of this length: never more in a longer one, never less than fewer are.
pub fn saturation(frequency: u32, length: u8) -> u32 {
    SATURATION[frequency.min(MANY) as usize][usize::from(length)].into()
}

/// The form in which the index keeps a number of terms.
pub fn length(terms: u32) -> u8 {
    FieldNormReader::fieldnorm_to_id(terms)
}

/// What a condition weighs that `having` of `all` records fulfil.
pub fn weight(having: u64, all: u64) -> u8 {
    let having = having.min(all) as f64;
    let rarity = 1.0 + (all as f64 - having + 0.5) / (having + 0.5);
    (COARSE * rarity.log2()).round().clamp(1.0, 255.0) as u8
}

/// The score as it is shown.
pub fn shown(score: u32) -> f64 {
    f64::from(score) / (FINE * COARSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_short_and_repeated_is_worth_more() {
        assert!(weight(1, 1_000_000) > weight(1000, 1_000_000));
        assert!(weight(1000, 1000) >= 1 && weight(0, 0) >= 1);
        assert!(saturation(1, length(5)) > saturation(1, length(50)));
        assert!(saturation(2, length(5)) > saturation(1, length(5)));
        assert!(saturation(17, length(5)) == saturation(u32::MAX, length(5)));
        assert!((0..=u8::MAX).is_sorted_by_key(|length| std::cmp::Reverse(saturation(3, length))));
        assert_eq!(saturation(0, length(5)), 0);
    }
}
