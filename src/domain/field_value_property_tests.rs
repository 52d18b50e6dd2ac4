//! Property tests of field values and records. They check that validation returns a value in its stored form, that values of another type
//! are refused, and that an import followed by an export keeps each record unchanged.

use proptest::{collection::vec, option, prelude::*, test_runner::Config};
use serde_json::{Value, json};

use super::{
    custom_fields::{Comparable, Field, FieldKind, ScalarKind, TICKET_DISPLAY_TYPES},
    ndjson_records::{Comment, Contact, Message, Ticket},
    ordered_object::Entries,
    time::Timestamp,
};

const MAX_INTEGER: i64 = 9_007_199_254_740_991;

/// Returns the settings of a property test: few cases, so that the test suite stays quick, and no file of failures next to the sources.
fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}

fn field(display_type: &str, data_type: &str, max_items: Option<i64>, options: Option<Value>) -> Field {
    Field {
        id: "f".into(),
        name: "F".to_owned(),
        display_type: display_type.to_owned(),
        data_type: data_type.to_owned(),
        sort_order: 0,
        active: true,
        description: None,
        select_options: options.map(|options| options.to_string()),
        regex: None,
        max_items,
    }
}

/// Generates a field of any kind, without options.
fn any_field() -> impl Strategy<Value = Field> {
    let kinds: Vec<(&str, &str)> =
        TICKET_DISPLAY_TYPES.iter().flat_map(|(display, data)| data.iter().map(move |data| (*display, *data))).collect();
    (prop::sample::select(kinds), prop::sample::select(vec![None, Some(1), Some(3)]))
        .prop_map(|((display, data), max)| field(display, data, max, None))
}

/// Generates date-times in the form of RFC 3339 with an offset. Some are invalid, such as 31 February.
fn date_time() -> impl Strategy<Value = String> {
    (1..=9999_i32, 1..=12_u32, 1..=31_u32, 0..=24_u32, 0..=60_u32, 0..=60_u32, option::of("[0-9]{1,12}"), -1440..=1440_i32).prop_map(
        |(year, month, day, hour, minute, second, fraction, offset)| {
            let fraction = fraction.map(|digits| format!(".{digits}")).unwrap_or_default();
            let zone = match offset {
                0 => "Z".to_owned(),
                _ => format!("{}{:02}:{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 60, offset.abs() % 60),
            };
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}")
        },
    )
}

/// Generates valid and invalid values of this scalar type, such as numbers above the limit.
fn nearly(scalar: ScalarKind) -> BoxedStrategy<Value> {
    match scalar {
        ScalarKind::Text => any::<String>().prop_map(Value::from).boxed(),
        ScalarKind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        ScalarKind::Number | ScalarKind::Integer => prop_oneof![
            (-5..=5_i64).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (MAX_INTEGER - 2..=MAX_INTEGER + 2, any::<bool>()).prop_map(|(n, minus)| Value::from(if minus { -n } else { n })),
            (-1_000_000..=1_000_000_i64).prop_map(|n| Value::from(n as f64)),
            any::<f64>().prop_map(Value::from),
            (-1e16..1e16).prop_map(Value::from),
            (-10.0..10.0).prop_map(Value::from),
            Just(json!(-0.0)),
        ]
        .boxed(),
        ScalarKind::Date => prop_oneof![
            (0..=9999_u32, 0..=13_u32, 0..=32_u32).prop_map(|(year, month, day)| Value::from(format!("{year:04}-{month:02}-{day:02}"))),
            date_time().prop_map(Value::from),
        ]
        .boxed(),
        ScalarKind::DateTime => date_time().prop_map(Value::from).boxed(),
    }
}

/// Generates any JSON value.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec(("[a-z]", inner), 0..3).prop_map(|pairs| { Value::Object(pairs.into_iter().collect()) })
        ]
    })
}

/// Generates a field with a value that may fit it.
fn field_and_value() -> impl Strategy<Value = (Field, Value)> {
    any_field().prop_flat_map(|field| {
        let kind = field.kind();
        let one = nearly(kind.scalar);
        let value = match kind.multi {
            true => prop_oneof![8 => vec(one, 0..=4).prop_map(Value::from), 1 => json_value()].boxed(),
            false => prop_oneof![8 => one, 1 => json_value()].boxed(),
        };
        (Just(field), value)
    })
}

fn items(kind: FieldKind, value: &Value) -> Vec<Value> {
    if kind.multi { value.as_array().unwrap().clone() } else { vec![value.clone()] }
}

/// Returns the value after a round trip through its stored text.
fn stored(value: &Value) -> Value {
    let text = serde_json::to_string(&Entries(vec![("f".to_owned(), value.clone())])).unwrap();
    serde_json::from_str::<Entries>(&text).unwrap().0.remove(0).1
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn an_accepted_value_is_its_own_stored_form((field, value) in field_and_value()) {
        let kind = field.kind();
        if let Ok(Some(accepted)) = field.validate(value.clone()) {
            prop_assert_eq!(&stored(&accepted), &accepted);
            prop_assert_eq!(field.validate(accepted.clone()), Ok(Some(accepted.clone())));
            // The form that filters compare ([`Comparable`]) can always be computed. It is the same for the sent value and for the accepted
            // value.
            let comparables = kind.comparables(&accepted).unwrap();
            prop_assert_eq!(&comparables, &kind.comparables(&value).unwrap());
            let (sent, kept) = (items(kind, &value), items(kind, &accepted));
            prop_assert_eq!(sent.len(), kept.len());
            prop_assert_eq!(comparables.len(), kept.len());
            for (i, (one, comparable)) in kept.iter().zip(&comparables).enumerate() {
                prop_assert!(!kept[..i].contains(one) && !comparables[..i].contains(comparable));
                match (kind.scalar, one) {
                    (ScalarKind::Text | ScalarKind::Boolean | ScalarKind::Date, _) => prop_assert_eq!(one, &sent[i]),
                    (ScalarKind::DateTime, one) => {
                        let at: Timestamp = one.as_str().unwrap().parse().unwrap();
                        prop_assert_eq!(at, sent[i].as_str().unwrap().parse().unwrap());
                        prop_assert_eq!(one, &Value::from(at.to_string()));
                        prop_assert_eq!(comparable, &Comparable::Number(at.millis() as f64));
                    }
                    (ScalarKind::Number | ScalarKind::Integer, one) => {
                        let number = one.as_f64().unwrap();
                        prop_assert_eq!(Some(number), sent[i].as_f64());
                        prop_assert!(number.abs() <= MAX_INTEGER as f64);
                        prop_assert_eq!(one.is_f64(), number.fract() != 0.0);
                        prop_assert!(kind.scalar == ScalarKind::Number || one.is_i64());
                    }
                }
            }
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused(field in any_field(), value in json_value()) {
        let kind = field.kind();
        let fits = |value: &Value| match kind.scalar {
            ScalarKind::Text | ScalarKind::Date | ScalarKind::DateTime => value.is_string(),
            ScalarKind::Number | ScalarKind::Integer => value.is_number(),
            ScalarKind::Boolean => value.is_boolean(),
        };
        let typed = match &value {
            Value::Null => true,
            Value::Array(items) if kind.multi => items.iter().all(fits),
            value => !kind.multi && fits(value),
        };
        prop_assert!(typed || field.validate(value.clone()).is_err());
        prop_assert!(typed || kind.comparables(&value).is_err());
    }

    #[test]
    fn whole_numbers_are_accepted_up_to_the_limit(
        number in prop_oneof![any::<i64>(), -MAX_INTEGER - 3..=-MAX_INTEGER + 3, MAX_INTEGER - 3..=MAX_INTEGER + 3, -9..=9_i64],
    ) {
        let exact = (-MAX_INTEGER..=MAX_INTEGER).contains(&number);
        for (display, data) in [("integer", "number"), ("decimal", "number")] {
            let field = field(display, data, None, None);
            let expected = exact.then(|| Value::from(number));
            prop_assert_eq!(field.validate(Value::from(number)).ok().flatten(), expected.clone(), "{}", display);
            // If the number is sent with a decimal point, the stored value is the same.
            if exact {
                prop_assert_eq!(field.validate(Value::from(number as f64)).ok().flatten(), expected, "{}", display);
            }
        }
    }

    #[test]
    fn several_values_keep_their_order_and_duplicates_are_refused(values in vec(0..6_i64, 1..5), spelled in any::<[bool; 4]>()) {
        let field = field("select", "number", Some(3), None);
        let sent: Vec<Value> =
            values.iter().zip(spelled).map(|(n, point)| if point { json!(*n as f64) } else { json!(n) }).collect();
        let distinct = (1..values.len()).all(|i| !values[..i].contains(&values[i]));
        let expected = (distinct && values.len() <= 3).then(|| json!(values));
        prop_assert_eq!(field.validate(Value::from(sent)).ok().flatten(), expected);
    }

    #[test]
    fn a_select_accepts_only_the_values_of_its_nodes(
        texts in any::<bool>(),
        nodes in vec((-3..3_i64, vec(-3..3_i64, 0..3)), 1..4),
        value in -4..4_i64,
        several in any::<bool>(),
    ) {
        let spell = |n: i64| if texts { json!(n.to_string()) } else { json!(n) };
        let options: Vec<Value> = nodes
            .iter()
            .map(|(n, children)| {
                let children: Vec<Value> = children.iter().map(|n| json!({"value": spell(*n)})).collect();
                json!({"value": spell(*n), "children": children})
            })
            .collect();
        let known = nodes.iter().any(|(n, children)| *n == value || children.contains(&value));
        let (display, max) = if several { ("multi_select", None) } else { ("select", None) };
        let field = field(display, if texts { "string" } else { "number" }, max, Some(Value::from(options)));
        let wrap = |value: Value| if several { json!([value]) } else { value };
        prop_assert_eq!(field.validate(wrap(spell(value))).is_ok(), known);
        let other = if texts { json!(value) } else { json!(value.to_string()) };
        prop_assert!(field.validate(wrap(other)).is_err());
        let spaced = format!("{value} ");
        prop_assert!(field.validate(wrap(json!(spaced))).is_err());
        prop_assert_eq!(field.validate(Value::Null), Ok(None));
    }

    #[test]
    fn objects_come_back_as_they_were_written(pairs in vec((any::<String>(), json_value()), 0..5)) {
        let mut entries = Entries::default();
        for (key, value) in pairs {
            let before = entries.get(&key).cloned();
            prop_assert_eq!(entries.set(&key, Some(value)), before);
        }
        let text = serde_json::to_string(&entries).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Entries>(&text).unwrap(), &entries);
        if let Some((key, value)) = entries.0.first().cloned() {
            let twice = format!("{},{}:{value}}}", text.strip_suffix('}').unwrap(), Value::from(key));
            prop_assert!(serde_json::from_str::<Entries>(&twice).is_err());
        }
    }
}

fn instant() -> impl Strategy<Value = String> {
    (-62_135_596_800_000..=253_402_300_799_999_i64).prop_map(|millis| Timestamp::from_millis(millis).to_string())
}

/// Generates the JSON object of a record: its properties in order. Properties that are not required are left out at random.
fn members(all: Vec<(&'static str, bool, BoxedStrategy<Value>)>) -> impl Strategy<Value = String> {
    let one = |(name, required, value): (&'static str, bool, BoxedStrategy<Value>)| {
        let value = value.prop_map(move |value| format!("{}:{value}", Value::from(name)));
        if required { value.prop_map(Some).boxed() } else { option::of(value).boxed() }
    };
    let all: Vec<_> = all.into_iter().map(one).collect();
    all.prop_map(|members| format!("{{{}}}", members.into_iter().flatten().collect::<Vec<_>>().join(",")))
}

fn text() -> BoxedStrategy<Value> {
    any::<String>().prop_map(Value::from).boxed()
}

fn time() -> BoxedStrategy<Value> {
    instant().prop_map(Value::from).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn texts() -> BoxedStrategy<Value> {
    vec(any::<String>(), 0..3).prop_map(Value::from).boxed()
}

/// Generates an object with at least one field value: an export leaves out an empty object.
fn values() -> BoxedStrategy<Value> {
    vec(("[a-z]{1,3}", json_value()), 1..3).prop_map(|pairs| Value::Object(pairs.into_iter().collect())).boxed()
}

/// Imports a line and exports it again.
fn reserialised<T: serde::de::DeserializeOwned + serde::Serialize>(line: &str) -> String {
    serde_json::to_string(&serde_json::from_str::<T>(line).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn a_ticket_line_is_written_as_it_was_read(line in members(vec![
        ("id", true, text()), ("ticketNumber", false, text()), ("isOpen", true, flag()), ("openedAt", true, time()),
        ("conversationId", true, text()), ("channel", false, text()), ("accountId", false, text()), ("contactId", false, text()),
        ("isSpam", true, flag()), ("isFollowUp", true, flag()), ("closedAt", false, time()), ("reopenedAt", false, time()),
        ("snoozedUntil", false, time()), ("assigneeUserId", false, text()), ("handledBy", false, text()),
        ("ticketFields", false, values()), ("ticketFieldsUpdatedAt", false, time()), ("createdAt", false, time()),
        ("updatedAt", false, time()),
    ])) {
        prop_assert_eq!(reserialised::<Ticket>(&line), line);
    }

    #[test]
    fn a_contact_line_is_written_as_it_was_read(line in members(vec![
        ("id", true, text()), ("fullName", true, text()), ("firstName", true, text()), ("lastName", false, text()),
        ("email", false, text()), ("phone", false, text()), ("secondaryPhones", false, texts()), ("secondaryEmails", false, texts()),
        ("addresses", false, texts()), ("note", false, text()), ("customFields", false, values()),
        ("customFieldsUpdatedAt", false, time()), ("createdAt", true, time()), ("updatedAt", true, time()),
    ])) {
        prop_assert_eq!(reserialised::<Contact>(&line), line);
    }

    #[test]
    fn message_and_comment_lines_are_written_as_they_were_read(message in members(vec![
        ("id", true, text()), ("conversationId", true, text()),
        ("direction", true, prop::sample::select(vec!["inbound", "outbound"]).prop_map(Value::from).boxed()),
        ("sentAt", true, time()), ("text", false, text()), ("images", false, texts()), ("type", false, text()),
        ("authorUserId", false, text()), ("isSentFromApp", false, flag()), ("sender", false, values()), ("payload", false, values()),
        ("externalId", false, text()), ("createdAt", false, time()), ("updatedAt", false, time()),
    ]), comment in members(vec![
        ("id", true, text()), ("conversationId", true, text()), ("text", true, text()), ("createdBy", true, text()),
        ("sentAt", true, time()), ("createdAt", false, time()), ("updatedAt", false, time()),
    ])) {
        prop_assert_eq!(reserialised::<Message>(&message), message);
        prop_assert_eq!(reserialised::<Comment>(&comment), comment);
    }
}
