//! Timestamps in whole milliseconds, UTC, such as `2026-01-31T09:05:00.123Z`, and the bounds with which filters compare them.

use std::{borrow::Cow, fmt, str::FromStr};

use chrono::{DateTime, Datelike, Timelike, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The permitted range of timestamps, the years 0001 to 9999: RFC 3339 writes a year with four digits.
const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns the timestamp that follows `self` in a strictly increasing series: `now`, or a millisecond after `self` if that is later.
    pub fn next_stamp(self, now: Self) -> Self {
        now.max(self.plus_millis(1))
    }

    /// Returns this instant plus a number of milliseconds, clamped to the permitted years.
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

    /// Parses a date-time. Any offset from UTC is accepted; digits beyond the millisecond are cut off. To compare without this loss, parse
    /// the text as a [`Bound`].
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.parse::<Bound>()?.floor))
    }
}

/// A bound for comparisons with timestamps: an instant as it was sent, which may be between two milliseconds. Each comparison rounds the
/// bound so that the result is the same as with the exact instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bound {
    /// Milliseconds since the Unix epoch, rounded down.
    floor: i64,
    /// The part of the instant after `floor`, in half nanoseconds. An odd value stands for an instant with digits finer than a nanosecond,
    /// which is later than the instant without these digits.
    rest: u32,
}

impl Bound {
    /// Returns the least timestamp for which `timestamp >= bound`.
    pub fn at_or_after(self) -> Timestamp {
        self.ceiling()
    }

    /// Returns the timestamp `t` for which `timestamp < t` is equivalent to `timestamp < bound`.
    pub fn before(self) -> Timestamp {
        self.ceiling()
    }

    /// Returns the timestamp `t` for which `timestamp > t` is equivalent to `timestamp > bound`.
    pub fn after(self) -> Timestamp {
        Timestamp(self.floor)
    }

    /// Returns the greatest timestamp for which `timestamp <= bound`.
    pub fn at_or_before(self) -> Timestamp {
        Timestamp(self.floor)
    }

    /// Returns the bound, rounded up to a millisecond. The result may be the first millisecond of the year 10000, which is later than every
    /// timestamp.
    fn ceiling(self) -> Timestamp {
        Timestamp(self.floor + i64::from(self.rest > 0))
    }
}

/// The number of digits of a second's fraction that chrono reads.
const READ_DIGITS: usize = 9;

/// The second of a UTC day after which a leap second is inserted.
const LAST_SECOND: i64 = 86_399;

impl FromStr for Bound {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let at = DateTime::parse_from_rfc3339(text).map_err(|_| TimestampError)?;
        let (floor, nanos) = (at.timestamp_millis(), at.timestamp_subsec_nanos());
        // chrono accepts the second 60 in any minute; here it is accepted only at the end of a UTC day.
        let misplaced = nanos >= 1_000_000_000 && at.timestamp().rem_euclid(LAST_SECOND + 1) != LAST_SECOND;
        if misplaced || !RANGE.contains(&floor) {
            return Err(TimestampError);
        }
        let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction).bytes().take_while(u8::is_ascii_digit);
        let finer = fraction.skip(READ_DIGITS).any(|digit| digit != b'0');
        Ok(Self { floor, rest: nanos % 1_000_000 * 2 + u32::from(finer) })
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Timestamp {
    /// Writes the timestamp as RFC 3339 in UTC with milliseconds, the only output format.
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
    fn timestamps_are_formatted_as_chrono_formats_them() {
        for millis in [0, 1, 999, 1_769_850_300_123, -1, -62_135_596_800_000, 253_402_300_799_999, 951_782_400_000] {
            let expected = DateTime::<Utc>::from_timestamp_millis(millis).unwrap().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
            assert_eq!(Timestamp(millis).to_string(), expected);
            assert_eq!(expected.parse(), Ok(Timestamp(millis)));
        }
    }

    #[test]
    fn timestamps_with_an_offset_are_parsed_and_others_refused() {
        assert_eq!("2026-01-31T16:05:00.1239+07:00".parse(), Ok(Timestamp(1_769_850_300_123)));
        for bad in ["", "2026-01-31", "2026-01-31T09:05:00", "2026-02-30T00:00:00Z", "now"] {
            assert_eq!(bad.parse::<Timestamp>(), Err(TimestampError), "{bad}");
        }
    }

    #[test]
    fn a_leap_second_is_accepted_only_at_the_end_of_a_utc_day() {
        for (text, read) in [
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.500Z"),
            ("2017-01-01T06:59:60+07:00", "2017-01-01T00:00:00.000Z"),
            ("2016-12-31T14:29:60-09:30", "2017-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(text.parse::<Timestamp>().map(|at| at.to_string()).as_deref(), Ok(read));
        }
        for text in
            ["2026-01-31T10:00:60Z", "2026-01-31T23:58:60Z", "2026-01-31T23:59:60+07:00", "2026-01-31T23:59:61Z", "9999-12-31T23:59:60Z"]
        {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError), "{text}");
            assert_eq!(text.parse::<Bound>(), Err(TimestampError), "{text}");
        }
    }

    #[test]
    fn bounds_between_two_milliseconds_are_rounded_by_their_comparison() {
        let bound = |fraction: &str| format!("1970-01-01T00:00:01.{fraction}Z").parse::<Bound>().unwrap();
        for (fraction, floor, ceiling) in [
            ("5", 1500, 1500),
            ("500000000000", 1500, 1500),
            ("5004", 1500, 1501),
            ("5009999", 1500, 1501),
            ("000000001", 1000, 1001),
            ("0000000000001", 1000, 1001),
            ("999999999999", 1999, 2000),
        ] {
            let bound = bound(fraction);
            assert_eq!([bound.after(), bound.at_or_before()], [Timestamp(floor); 2], "{fraction}");
            assert_eq!([bound.before(), bound.at_or_after()], [Timestamp(ceiling); 2], "{fraction}");
        }
        let before_the_epoch: Bound = "1969-12-31T23:59:59.9995Z".parse().unwrap();
        assert_eq!((before_the_epoch.after(), before_the_epoch.before()), (Timestamp(-1), Timestamp(0)));
        let last: Bound = "9999-12-31T23:59:59.9999Z".parse().unwrap();
        assert!(last.before() > Timestamp(*RANGE.end()));
        let ascending = ["5", "500000000000", "5000000000001", "500000001", "5001", "501"].map(bound);
        assert!(ascending.is_sorted() && ascending[0] == ascending[1] && ascending[1] < ascending[2]);
    }

    proptest! {
        #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

        #[test]
        fn every_timestamp_is_parsed_back_from_its_text(millis in prop_oneof![9 => RANGE, 1 => any::<i64>()], moved in any::<i64>()) {
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

        /// Checks the bounds against a comparison of nanoseconds.
        #[test]
        fn a_bound_compares_with_milliseconds_as_its_exact_instant_does(row in 0..5_i64, nanos in 0..5_000_000_i64) {
            let at = DateTime::<Utc>::from_timestamp_nanos(nanos).format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string();
            let (bound, row, timestamp) = (at.parse::<Bound>().unwrap(), row * 1_000_000, Timestamp(row));
            prop_assert_eq!(timestamp >= bound.at_or_after(), row >= nanos);
            prop_assert_eq!(timestamp < bound.before(), row < nanos);
            prop_assert_eq!(timestamp > bound.after(), row > nanos);
            prop_assert_eq!(timestamp <= bound.at_or_before(), row <= nanos);
        }

        #[test]
        fn every_parsed_timestamp_can_be_formatted_and_parsed_again(text in prop_oneof![any::<String>(), "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,12})?(Z|z|[+-][0-9]{2}:[0-9]{2})"]) {
            if let Ok(at) = text.parse::<Timestamp>() {
                prop_assert_eq!(at.to_string().parse(), Ok(at));
            }
        }
    }
}
