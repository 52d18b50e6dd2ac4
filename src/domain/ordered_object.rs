//! JSON objects in their original key order. Deserialisation refuses a repeated key, and a value that is not an object.

use std::{collections::HashSet, marker::PhantomData};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};
use serde_json::Value;

use super::json_number_precision::ExactJson;

/// A JSON object with its keys in their original order. A repeated key is refused.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries(pub Vec<(String, Value)>);

impl Entries {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Sets the value of a key or, with `None`, removes the key. A new key is added at the end. Returns the former value.
    pub fn set(&mut self, key: &str, value: Option<Value>) -> Option<Value> {
        let place = self.0.iter().position(|(name, _)| name == key);
        match (place, value) {
            (Some(place), Some(value)) => Some(std::mem::replace(&mut self.0[place].1, value)),
            (Some(place), None) => Some(self.0.remove(place).1),
            (None, Some(value)) => {
                self.0.push((key.to_owned(), value));
                None
            }
            (None, None) => None,
        }
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        entries_of::<Value, D>(deserializer)
    }
}

/// Deserialises a JSON object whose numbers have exactly the values that were sent. A number whose value would change, such as
/// `0.10000000000000000001`, is an error.
pub fn exact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
    entries_of::<ExactJson, D>(deserializer)
}

/// Deserialises an optional JSON object as [`exact`] does.
pub fn exact_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Entries>, D::Error> {
    #[derive(Deserialize)]
    struct ExactEntries(#[serde(deserialize_with = "exact")] Entries);
    Ok(Option::<ExactEntries>::deserialize(deserializer)?.map(|ExactEntries(entries)| entries))
}

/// Deserialises a JSON object; the value of each of its properties is read as a `V`.
fn entries_of<'de, V: Deserialize<'de> + Into<Value>, D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
    struct Visitor<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de> + Into<Value>> de::Visitor<'de> for Visitor<V> {
        type Value = Entries;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
            let mut entries: Vec<(String, Value)> = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, V>()? {
                entries.push((key, value.into()));
            }
            let mut seen = HashSet::with_capacity(entries.len());
            match entries.iter().find(|(key, _)| !seen.insert(key.as_str())) {
                Some((key, _)) => Err(de::Error::custom(format_args!("names the key `{key}` twice"))),
                None => Ok(Entries(entries)),
            }
        }
    }
    deserializer.deserialize_map(Visitor(PhantomData::<V>))
}

/// Deserialises a struct from a JSON object only: a derived `Deserialize` would also accept an array of the property values.
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Visitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_keep_their_order_and_refuse_a_repeated_key() {
        let text = r#"{"b":1.50,"a":[1,"x"]}"#;
        let entries: Entries = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&entries).unwrap(), r#"{"b":1.5,"a":[1,"x"]}"#);
        assert!(serde_json::from_str::<Entries>(r#"{"a":1,"a":2}"#).is_err());
    }

    #[test]
    fn many_keys_take_linear_time() {
        let members: Vec<String> = (0..100_000).map(|i| format!("\"k{i}\":0")).collect();
        let started = std::time::Instant::now();
        let entries: Entries = serde_json::from_str(&format!("{{{}}}", members.join(","))).unwrap();
        assert_eq!(entries.0.len(), 100_000);
        // A quadratic algorithm would take minutes.
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }
}
