//! Pattern matching of field values before the write transaction begins: a regular expression may take long on a long text,
//! and a write transaction makes other writers wait.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::{Error, Result, Service};
use crate::{
    domain::{
        custom_fields::{Field, ValueError},
        ids::{FieldId, StoreId},
        regex_cache,
        text_byte_limit::bytes_of_texts,
    },
    store::field_definitions::FieldOwner,
};

/// Values with up to this many bytes of text are matched on the async thread if the pattern is compiled already: even the largest pattern
/// takes only milliseconds for them.
const SHORT: usize = 1024;

/// All other values are matched on a thread for blocking work, one at a time, so that other processors stay free for requests.
static LONG: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(1));

type PatternResult = std::result::Result<Option<Value>, ValueError>;

/// Validation results by field, each with the definition that it is based on.
#[derive(Default)]
pub(super) struct PatternResults(HashMap<FieldId, (Field, PatternResult)>);

impl PatternResults {
    /// Returns the value of a field in its stored form. Validates it now if the field has no pattern, or if the field's definition has
    /// changed since the earlier validation. `most` is the same as in [`Service::validate_patterns`].
    pub fn value(&mut self, field: &Field, most: i64, value: Value) -> PatternResult {
        match self.0.remove(&field.id) {
            Some((judged, outcome)) if judged == *field => outcome,
            _ => field.validate_up_to(most, value),
        }
    }
}

impl Service {
    /// Validates the values of fields with a pattern. `most`: the maximum number of values of a field whose definition sets no maximum.
    pub(super) async fn validate_patterns(
        &self,
        store: &StoreId,
        noun: FieldOwner,
        most: i64,
        values: &[(FieldId, &Value)],
    ) -> Result<PatternResults> {
        let texts: HashMap<&FieldId, &Value> =
            values.iter().filter(|(_, value)| bytes_of_texts(value) > 0).map(|(id, value)| (id, *value)).collect();
        let mut judged = PatternResults::default();
        if texts.is_empty() {
            return Ok(judged);
        }
        for field in self.db().fields_with_pattern(store, noun, texts.keys().copied().collect()).await? {
            let Some(value) = texts.get(&field.id).copied() else { continue };
            let at_hand = field.regex.as_deref().is_none_or(|pattern| regex_cache::compiled(pattern).is_some());
            if at_hand && bytes_of_texts(value) <= SHORT {
                let outcome = field.validate_up_to(most, value.clone());
                judged.0.insert(field.id.clone(), (field, outcome));
                continue;
            }
            let _turn = LONG.acquire().await.map_err(|error| Error::Internal(error.to_string()))?;
            let (value, of) = (value.clone(), field.clone());
            let outcome = tokio::task::spawn_blocking(move || of.validate_up_to(most, value)).await;
            judged.0.insert(field.id.clone(), (field, outcome.map_err(|error| Error::Internal(error.to_string()))?));
        }
        Ok(judged)
    }
}
