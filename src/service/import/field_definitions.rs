//! Validation of field definitions, and of field values against them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    ImportError,
    record_validation::{InvalidProperty, id, not_blank, one_of, read},
};
use crate::{
    domain::{
        custom_fields::{
            CONTACT_DISPLAY_TYPES, Comparable, FieldKind, MAX_CONTACT_VALUES, RESOLUTION_STATUS, SHOW_OPERATORS, TICKET_DISPLAY_TYPES,
            options_depth,
        },
        ids::FieldId,
        ndjson_records::{ContactField, Ticket, TicketField},
        ordered_object::{Entries, Object},
        regex_cache,
        tickets::{RESOLUTION_STATUSES, is_revenue},
    },
    store::import::{Batch, Definition},
};

/// The maximum depth of the tree of options of a contact field (API contract, section 8).
const CONTACT_OPTIONS_DEPTH: usize = 4;

/// The value types of a store's fields, from the database and from the input.
#[derive(Default)]
pub struct Definitions {
    ticket: HashMap<String, FieldKind>,
    contact: HashMap<String, FieldKind>,
}

/// The field values of a ticket, by field, in the comparable form that ticket filters read.
pub type Values = Vec<(FieldId, Vec<Comparable>)>;

impl Definitions {
    pub fn stored(ticket: Vec<Definition>, contact: Vec<Definition>) -> Self {
        let kinds = |definitions: Vec<Definition>| {
            definitions.into_iter().map(|(id, display, data, max)| (id.into_string(), FieldKind::of(&display, &data, max))).collect()
        };
        Self { ticket: kinds(ticket), contact: kinds(contact) }
    }

    /// Adds the field definitions of the input. Refuses a ticket field whose `showConditions` refer to an unknown field.
    pub fn add(&mut self, batch: &Batch) -> Result<(), ImportError> {
        for line in &batch.contact_fields {
            let field = &line.record;
            self.contact.insert(field.id.to_string(), FieldKind::of(&field.display_type, &field.data_type, field.max_items));
        }
        for line in &batch.ticket_fields {
            let field = &line.record;
            self.ticket.insert(field.id.to_string(), FieldKind::of(&field.display_type, &field.data_type, field.max_items));
        }
        for line in &batch.ticket_fields {
            let Some(raw) = &line.record.show_conditions else { continue };
            let conditions: Vec<Object<ShowCondition>> = serde_json::from_str(raw.get()).unwrap_or_default();
            for (place, Object(condition)) in conditions.iter().enumerate() {
                let field = &condition.ticket_field_id;
                if self.ticket_kind(field).is_none() {
                    let place = format!("ticketField.showConditions[{place}].ticketFieldId");
                    return Err(ImportError::line(
                        line.number,
                        place,
                        format!("there is no ticket field `{field}`, neither in the file nor in the store"),
                    ));
                }
            }
        }
        Ok(())
    }

    fn ticket_kind(&self, key: &str) -> Option<FieldKind> {
        FieldKind::of_system_key(key).or_else(|| self.ticket.get(key).copied())
    }

    /// Validates the values of a contact's custom fields and converts them to their stored form.
    pub fn contact_values(&self, fields: &mut Entries) -> Result<(), InvalidProperty> {
        let values = fit(fields, "customFields", "contact field", |key| self.contact.get(key).copied())?;
        match values.iter().find(|(_, values)| values.len() as i64 > MAX_CONTACT_VALUES) {
            Some((field, _)) => {
                Err(InvalidProperty::new(format!("customFields.{field}"), format!("holds more than {MAX_CONTACT_VALUES} values")))
            }
            None => Ok(()),
        }
    }

    /// Validates the values of a ticket's fields and converts them to their stored form. An import line may have the resolution status in
    /// the ticket's property `resolutionStatus`, in `ticketFields.resolutionStatus`, or in both with the same value. It is stored in both.
    pub fn ticket_values(&self, ticket: &mut Ticket) -> Result<Values, InvalidProperty> {
        if let Some(status) = &ticket.resolution_status {
            one_of(RESOLUTION_STATUS, status, &RESOLUTION_STATUSES)?;
            match ticket.ticket_fields.get(RESOLUTION_STATUS) {
                None => ticket.ticket_fields.0.push((RESOLUTION_STATUS.to_owned(), Value::String(status.clone()))),
                Some(Value::String(other)) if other == status => {}
                Some(other) => {
                    let reason = format!("is `{status}` where `ticketFields.{RESOLUTION_STATUS}` is {other}");
                    return Err(InvalidProperty::new(RESOLUTION_STATUS, reason));
                }
            }
        }
        let values = fit(&mut ticket.ticket_fields, "ticketFields", "ticket field", |key| self.ticket_kind(key))?;
        if let Some(Value::String(status)) = ticket.ticket_fields.get(RESOLUTION_STATUS) {
            one_of(&format!("ticketFields.{RESOLUTION_STATUS}"), status, &RESOLUTION_STATUSES)?;
            ticket.resolution_status = Some(status.clone());
        }
        if ticket.ticket_fields.get("salesRevenue").is_some_and(|revenue| !is_revenue(revenue)) {
            let reason = "must be a number from 0 on, with at most 15 digits, of which at most 4 behind the point";
            return Err(InvalidProperty::new("ticketFields.salesRevenue", reason));
        }
        if let Some(Value::String(code)) = ticket.ticket_fields.get("salesRevenueCurrency")
            && iso_currency::Currency::from_code(code).is_none()
        {
            let reason = format!("`{code}` is not a currency code of ISO 4217, such as THB");
            return Err(InvalidProperty::new("ticketFields.salesRevenueCurrency", reason));
        }
        Ok(values)
    }
}

/// Validates the values of fields, converts them in `fields` to their stored form, and returns them in comparable form. An empty array
/// counts as no value and is left out.
fn fit(fields: &mut Entries, place: &str, noun: &str, kind_of: impl Fn(&str) -> Option<FieldKind>) -> Result<Values, InvalidProperty> {
    let mut values = Vec::with_capacity(fields.0.len());
    let mut kept = Vec::with_capacity(fields.0.len());
    for (key, value) in std::mem::take(&mut fields.0) {
        let place = || format!("{place}.{key}");
        let kind = kind_of(&key)
            .ok_or_else(|| InvalidProperty::new(place(), format!("there is no {noun} `{key}`, neither in the file nor in the store")))?;
        if value.is_null() {
            return Err(InvalidProperty::new(place(), "must not be null; leave the property out instead"));
        }
        let value = kind.canonical(without_minus_zero(value)).map_err(|error| InvalidProperty::new(place(), error.to_string()))?;
        let comparables = kind.comparables(&value).map_err(|error| InvalidProperty::new(place(), error.to_string()))?;
        if !comparables.is_empty() {
            values.push((FieldId::from(key.as_str()), comparables));
            kept.push((key, value));
        }
    }
    fields.0 = kept;
    Ok(values)
}

/// Replaces `-0` by 0. JSON permits `-0`, but not every parser reads it as zero.
fn without_minus_zero(value: Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64().is_some_and(|number| number == 0.0 && number.is_sign_negative()) => Value::from(0),
        Value::Array(values) => Value::Array(values.into_iter().map(without_minus_zero).collect()),
        value => value,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShowCondition {
    ticket_field_id: String,
    operator: String,
    #[serde(rename = "value")]
    _value: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectOption {
    value: Value,
    #[serde(default)]
    children: Vec<Object<SelectOption>>,
}

pub fn check_ticket_field(field: &TicketField) -> Result<(), InvalidProperty> {
    let shape = CommonDefinition {
        id: field.id.as_str(),
        name: &field.name,
        display: &field.display_type,
        data: &field.data_type,
        regex: field.regex.as_deref(),
    };
    shape.check(&TICKET_DISPLAY_TYPES, field.select_options.as_deref(), field.max_items)?;
    if FieldKind::of_system_key(field.id.as_str()).is_some() {
        return Err(InvalidProperty::new("id", "is the name of a system key"));
    }
    for account in field.account_ids.iter().flatten() {
        id("accountIds", account.as_str())?;
    }
    let Some(raw) = &field.show_conditions else { return Ok(()) };
    for (place, Object(condition)) in read::<Vec<Object<ShowCondition>>>("showConditions", raw)?.iter().enumerate() {
        one_of(&format!("showConditions[{place}].operator"), &condition.operator, &SHOW_OPERATORS)?;
    }
    Ok(())
}

pub fn check_contact_field(field: &ContactField) -> Result<(), InvalidProperty> {
    let shape = CommonDefinition {
        id: field.id.as_str(),
        name: &field.name,
        display: &field.display_type,
        data: &field.data_type,
        regex: field.regex.as_deref(),
    };
    shape.check(&TICKET_DISPLAY_TYPES[..CONTACT_DISPLAY_TYPES], field.select_options.as_deref(), field.max_items)?;
    if field.max_items.is_some_and(|max| max > MAX_CONTACT_VALUES) {
        return Err(InvalidProperty::new("maxItems", format!("must be at most {MAX_CONTACT_VALUES} on a contact field")));
    }
    let Some(options) = &field.select_options else { return Ok(()) };
    if options_depth(&read("selectOptions", options)?) > CONTACT_OPTIONS_DEPTH {
        return Err(InvalidProperty::new(
            "selectOptions",
            format!("must be at most {CONTACT_OPTIONS_DEPTH} levels deep on a contact field"),
        ));
    }
    Ok(())
}

/// The properties that definitions of ticket fields and of contact fields have in common.
struct CommonDefinition<'a> {
    id: &'a str,
    name: &'a str,
    display: &'a str,
    data: &'a str,
    regex: Option<&'a str>,
}

impl CommonDefinition<'_> {
    fn check(&self, types: &[(&str, &[&str])], options: Option<&RawValue>, max_items: Option<i64>) -> Result<(), InvalidProperty> {
        id("id", self.id)?;
        not_blank("name", self.name)?;
        let Some((_, data)) = types.iter().find(|(display, _)| *display == self.display) else {
            let names: Vec<_> = types.iter().map(|(display, _)| *display).collect();
            return one_of("displayType", self.display, &names);
        };
        if !data.contains(&self.data) {
            let reason = format!("`{}` does not go with displayType `{}`, which takes {}", self.data, self.display, data.join(" or "));
            return Err(InvalidProperty::new("dataType", reason));
        }
        if let Some(Err(error)) = self.regex.map(regex_cache::compile) {
            return Err(InvalidProperty::new("regex", format!("does not compile: {error}")));
        }
        if max_items.is_some_and(|max| max < 1) {
            return Err(InvalidProperty::new("maxItems", "must be at least 1"));
        }
        options.map_or(Ok(()), |raw| self.options(&read::<Vec<Object<SelectOption>>>("selectOptions", raw)?))
    }

    fn options(&self, options: &[Object<SelectOption>]) -> Result<(), InvalidProperty> {
        for Object(option) in options {
            let fits = match &option.value {
                Value::String(_) => self.data == "string",
                Value::Number(_) => self.data == "number",
                _ => false,
            };
            if !fits {
                return Err(InvalidProperty::new(
                    "selectOptions",
                    format!("the value {} is not a {}, the field's dataType", option.value, self.data),
                ));
            }
            self.options(&option.children)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(change: Value) -> Result<(), String> {
        let mut record = json!({"id": "f", "name": "F", "displayType": "select", "dataType": "string", "sortOrder": 1, "active": true});
        record.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let field: ContactField = serde_json::from_value::<ContactField>(record).unwrap();
        check_contact_field(&field).map_err(|wrong| wrong.place)
    }

    #[test]
    fn inconsistent_field_definitions_are_refused() {
        assert_eq!(field(json!({"displayType": "select", "maxItems": 10})), Ok(()));
        for (change, place) in [
            (json!({"displayType": "decimal", "dataType": "number"}), "displayType"),
            (json!({"dataType": "boolean"}), "dataType"),
            (json!({"regex": "("}), "regex"),
            (json!({"maxItems": 11}), "maxItems"),
            (json!({"displayType": "multi_select", "maxItems": 11}), "maxItems"),
            (json!({"name": " "}), "name"),
        ] {
            assert_eq!(field(change), Err(place.to_owned()));
        }
    }

    #[test]
    fn a_contact_holds_ten_values_of_a_field() {
        let mut definitions = Definitions::default();
        definitions.contact.insert("f".to_owned(), FieldKind::of("multi_select", "number", None));
        let values = |count: u32| {
            let mut fields = Entries(vec![("f".to_owned(), Value::from_iter(0..count))]);
            definitions.contact_values(&mut fields).map_err(|wrong| wrong.place)
        };
        assert_eq!((values(10), values(11)), (Ok(()), Err("customFields.f".to_owned())));
    }

    #[test]
    fn select_options_need_values_of_the_data_type_and_at_most_four_levels() {
        let tree = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            let mut field: ContactField = serde_json::from_value(
                json!({"id": "f", "name": "F", "displayType": "select", "dataType": "string", "sortOrder": 1, "active": true}),
            )
            .unwrap();
            field.select_options = Some(raw);
            check_contact_field(&field).is_ok()
        };
        assert!(tree(r#"[{"value":"a","children":[{"value":"b"}]}]"#));
        assert!(!tree(r#"[{"value":1}]"#));
        assert!(!tree(r#"[{"value":"a","childs":[]}]"#));
        assert!(!tree(r#"[["a",[]]]"#) && !tree(r#"[{"value":"a","children":[["b",[]]]}]"#) && !tree(r#"{"value":"a"}"#));
        let deep = |levels: usize| {
            (1..levels).fold(r#"[{"value":"a"}]"#.to_owned(), |inner, _| format!(r#"[{{"value":"a","children":{inner}}}]"#))
        };
        assert!(tree(&deep(4)) && !tree(&deep(5)));
    }

    #[test]
    fn show_conditions_must_be_lists_of_objects() {
        let conditions = |text: &str| {
            let mut field: TicketField = serde_json::from_value(json!({
                "id": "f", "name": "F", "displayType": "text", "dataType": "string", "sortOrder": 1, "isRequired": false, "active": true,
                "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
            }))
            .unwrap();
            field.show_conditions = Some(RawValue::from_string(text.to_owned()).unwrap());
            check_ticket_field(&field).map_err(|wrong| wrong.place)
        };
        assert_eq!(conditions(r#"[{"ticketFieldId":"g","operator":"equals","value":null}]"#), Ok(()));
        assert_eq!(conditions(r#"[["g","equals",null]]"#), Err("showConditions[0]".to_owned()));
        assert_eq!(conditions(r#"{"ticketFieldId":"g","operator":"equals","value":1}"#), Err("showConditions".to_owned()));
    }

    #[test]
    fn system_keys_accept_only_values_that_closing_a_ticket_would_store() {
        let fields = |text: &str| {
            let record =
                format!(r#"{{"id":"t","conversationId":"c","isOpen":false,"openedAt":"2026-01-01T00:00:00Z","ticketFields":{text}}}"#);
            let mut ticket: Ticket = serde_json::from_str(&record).unwrap();
            Definitions::default().ticket_values(&mut ticket).map_err(|wrong| wrong.place)?;
            Ok::<_, String>(serde_json::to_string(&ticket.ticket_fields).unwrap())
        };
        let revenue = |number: &str| fields(&format!(r#"{{"salesRevenue":{number}}}"#));
        for (number, stored) in
            [("12.50", "12.5"), ("-0", "0"), ("-0.0", "0"), ("0.1234", "0.1234"), ("999999999999999", "999999999999999")]
        {
            assert_eq!(revenue(number), Ok(format!(r#"{{"salesRevenue":{stored}}}"#)));
        }
        for bad in ["-1", "0.12345", "1e300", "1e-7", "1000000000000000", "12345678901234.56"] {
            assert_eq!(revenue(bad), Err("ticketFields.salesRevenue".to_owned()), "{bad}");
        }
        assert!(fields(r#"{"salesRevenueCurrency":"THB"}"#).is_ok());
        assert_eq!(fields(r#"{"salesRevenueCurrency":"thb"}"#), Err("ticketFields.salesRevenueCurrency".to_owned()));
    }

    #[test]
    fn a_resolution_status_in_either_property_is_stored_and_a_conflict_refused() {
        let ticket = |status: Option<&str>, fields: Value| {
            let mut record =
                json!({"id": "t", "conversationId": "c", "isOpen": false, "openedAt": "2026-01-01T00:00:00Z", "ticketFields": fields});
            if let Some(status) = status {
                record["resolutionStatus"] = json!(status);
            }
            let mut ticket: Ticket = serde_json::from_value(record).unwrap();
            let values = Definitions::default().ticket_values(&mut ticket).map_err(|wrong| wrong.place)?;
            Ok::<_, String>((ticket.resolution_status, values.len()))
        };
        assert_eq!(ticket(Some("human"), json!({})), Ok((Some("human".to_owned()), 1)));
        assert_eq!(ticket(None, json!({"resolutionStatus": "human"})), Ok((Some("human".to_owned()), 1)));
        assert_eq!(ticket(Some("human"), json!({"resolutionStatus": "automation"})), Err("resolutionStatus".to_owned()));
        assert_eq!(ticket(None, json!({"resolutionStatus": "none"})), Err("ticketFields.resolutionStatus".to_owned()));
        assert_eq!(ticket(None, json!({"aiCsat": null})), Err("ticketFields.aiCsat".to_owned()));
        assert_eq!(ticket(None, json!({"nowhere": 1})), Err("ticketFields.nowhere".to_owned()));
    }
}
