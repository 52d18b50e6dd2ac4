//! Timestamps in whole milliseconds, UTC: `2026-01-31T09:05:00.123Z` (decisions, section 2).

use std::{borrow::Cow, fmt, str::FromStr};

use chrono::{DateTime, Datelike, Timelike, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Years 0001 to 9999, the range of RFC 3339.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The next stamp: `now`, or a millisecond after this one, so that stamps strictly increase (monotonic clock).
    pub fn next_stamp(self, now: Self) -> Self {
        now.max(self.plus_millis(1))
    }

    /// This instant plus a number of milliseconds, clamped to the permitted years.
    pub fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis).clamp(*RANGE.start(), *RANGE.end()))
    }
}

/// The error for an invalid date-time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be an RFC 3339 date-time with an offset, such as 2026-01-31T09:05:00.123Z")]
pub struct TimestampError;

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time", "examples": ["2026-01-31T09:05:00.123Z"] })
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Any offset is accepted; digits beyond the millisecond are cut off.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = DateTime::parse_from_rfc3339(text).map_err(|_| TimestampError)?.timestamp_millis();
        if RANGE.contains(&at) { Ok(Self(at)) } else { Err(TimestampError) }
    }
}

impl Timestamp {
    /// RFC 3339 in UTC with milliseconds: the only output format.
    fn written(self) -> [u8; 24] {
        let at = DateTime::<Utc>::from_timestamp_millis(self.0.clamp(*RANGE.start(), *RANGE.end())).unwrap_or_default();
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |from: usize, digits: usize, mut value: u32| {
            for place in (from..from + digits).rev() {
                text[place] = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        put(0, 4, at.year().unsigned_abs());
        put(5, 2, at.month());
        put(8, 2, at.day());
        put(11, 2, at.hour());
        put(14, 2, at.minute());
        put(17, 2, at.second());
        put(20, 3, at.timestamp_subsec_millis() % 1000);
        text
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.written()).unwrap_or_default())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.written()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::Config};

    use super::*;

    #[test]
    fn writes_what_chrono_writes() {
        for millis in [0, 1, 999, 1_769_850_300_123, -1, -62_135_596_800_000, 253_402_300_799_999, 951_782_400_000] {
            let expected = DateTime::<Utc>::from_timestamp_millis(millis).unwrap().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
            assert_eq!(Timestamp(millis).to_string(), expected);
            assert_eq!(expected.parse(), Ok(Timestamp(millis)));
        }
    }

    #[test]
    fn reads_offsets_and_refuses_what_has_none() {
        assert_eq!("2026-01-31T16:05:00.1239+07:00".parse(), Ok(Timestamp(1_769_850_300_123)));
        for bad in ["", "2026-01-31", "2026-01-31T09:05:00", "2026-02-30T00:00:00Z", "now"] {
            assert_eq!(bad.parse::<Timestamp>(), Err(TimestampError), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

        #[test]
        fn every_instant_comes_back_from_its_text(millis in prop_oneof![9 => RANGE, 1 => any::<i64>()], moved in any::<i64>()) {
            let at = Timestamp(0).plus_millis(millis);
            prop_assert!(RANGE.contains(&at.0) && (!RANGE.contains(&millis) || at.0 == millis));
            prop_assert!(RANGE.contains(&at.plus_millis(moved).0));
            let text = at.to_string();
            prop_assert_eq!((text.len(), text.parse()), (24, Ok(at)));
            let json = serde_json::to_string(&at).unwrap();
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), at);
        }

        #[test]
        fn an_instant_is_the_same_with_any_offset(millis in RANGE, minutes in -1439..=1439_i32) {
            let offset = chrono::FixedOffset::east_opt(minutes * 60).unwrap();
            let local = DateTime::<Utc>::from_timestamp_millis(millis).unwrap().with_timezone(&offset);
            prop_assume!((0..=9999).contains(&local.year()));
            prop_assert_eq!(local.to_rfc3339().parse(), Ok(Timestamp(millis)));
        }

        #[test]
        fn what_is_read_can_be_written(text in prop_oneof![any::<String>(), "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,12})?(Z|z|[+-][0-9]{2}:[0-9]{2})"]) {
            if let Ok(at) = text.parse::<Timestamp>() {
                prop_assert_eq!(at.to_string().parse(), Ok(at));
            }
        }
    }
}
