//! Response schemas of field definitions. A store defines its own ticket fields and contact fields (contract, sections 2.4 and 2.7).

use poem_openapi::{Enum, Object, registry::MetaSchema};
use serde::Serialize;

use super::value_types::{Any, ChannelName, EnumValue, Members, OpenObject, StoredJson, TextOrNumber, ValueSet, member};
use crate::domain::{
    custom_fields as domain,
    custom_fields::{CONTACT_DISPLAY_TYPES, Field, SHOW_OPERATORS, TICKET_DISPLAY_TYPES, TicketFieldView},
    time::Timestamp,
};

/// The display types of ticket fields.
#[derive(Debug, Clone)]
pub struct TicketDisplayTypes;

impl ValueSet for TicketDisplayTypes {
    const NAME: &'static str = "TicketFieldDisplayType";
    const DESCRIPTION: &'static str =
        "How a ticket field is edited. Values are `YYYY-MM-DD` for `date`, RFC 3339 for `datetime`, and arrays for `multi_select`.";
    const VALUES: &'static [&'static str] = &display_types::<{ TICKET_DISPLAY_TYPES.len() }>();
}

/// The display types of contact fields.
#[derive(Debug, Clone)]
pub struct ContactDisplayTypes;

impl ValueSet for ContactDisplayTypes {
    const NAME: &'static str = "ContactFieldDisplayType";
    const DESCRIPTION: &'static str =
        "How a contact field is edited. Values are `YYYY-MM-DD` for `date`, RFC 3339 for `datetime`, and arrays for `multi_select`.";
    const VALUES: &'static [&'static str] = &display_types::<CONTACT_DISPLAY_TYPES>();
}

const fn display_types<const N: usize>() -> [&'static str; N] {
    let mut names = [""; N];
    let mut i = 0;
    while i < N {
        names[i] = TICKET_DISPLAY_TYPES[i].0;
        i += 1;
    }
    names
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy, Enum, Serialize)]
#[oai(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    String,
    Number,
    Boolean,
    Date,
}

impl DataType {
    fn of(name: &str) -> Self {
        match name {
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "date" => Self::Date,
            _ => Self::String,
        }
    }
}

/// One option of a select field.
#[derive(Debug, Object)]
pub struct SelectOption {
    /// The value of the field when this option is chosen. The text `"1"` and the number `1` are different values.
    value: TextOrNumber,
    /// Sub-options, to be offered after this option is chosen.
    children: Option<Vec<SelectOption>>,
}

/// A condition under which a field is shown.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub struct ShowCondition {
    /// The field whose value is tested.
    ticket_field_id: String,
    /// How the value of the field in `ticketFieldId` is compared with `value`.
    operator: ShowOperator,
    /// The value to compare with; its type depends on the field.
    value: Any,
}

/// The operators of show conditions.
#[derive(Debug)]
pub struct ShowOperators;

impl ValueSet for ShowOperators {
    const NAME: &'static str = "ShowConditionOperator";
    const DESCRIPTION: &'static str =
        "The operator of a show condition. Show conditions are meant for user interfaces; the API does not apply them to writes.";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &SHOW_OPERATORS;
}

type ShowOperator = EnumValue<ShowOperators>;

/// The definition of a ticket field.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct TicketField {
    /// Identifies the field: the key of its value in `ticketFields`, and `ticketFieldId` of updates and filters.
    pub id: String,
    /// The display name of the field.
    pub name: String,
    /// How a user interface shows and edits the field. The display type limits the possible values of `dataType`.
    pub display_type: EnumValue<TicketDisplayTypes>,
    /// The type of the field's value, or of each item if the field holds several. Depends on `displayType`.
    pub data_type: DataType,
    /// The field's place in the display order.
    pub sort_order: i64,
    /// Whether a user interface should ask for a value; the API accepts tickets without one.
    pub is_required: bool,
    /// Whether values of the field can be written; a write to an inactive field is answered with 400.
    pub active: bool,
    /// When the field was defined.
    pub created_at: Timestamp,
    /// When the definition last changed; new values on tickets do not change this time.
    pub updated_at: Timestamp,
    /// The store's description of the field; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The options of a select field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_options: Option<StoredJson<Vec<SelectOption>>>,
    /// Regular expression that every text value must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// Conditions that must match for the field to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_conditions: Option<StoredJson<Vec<ShowCondition>>>,
    /// The maximum number of values of a multi-valued field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
    /// The accounts that the field is shown for; only with `expand=accounts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounts: Option<Vec<FieldAccount>>,
}

/// An account that a ticket field is shown for.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct FieldAccount {
    /// The display name of the account.
    pub name: String,
    /// The channel account, as in `accountId` of tickets.
    pub account_id: String,
    /// The channel of the account.
    pub channel: ChannelName,
}

impl From<TicketFieldView> for TicketField {
    fn from(view: TicketFieldView) -> Self {
        let domain::TicketField { base, is_required, show_conditions, created_at, updated_at, .. } = view.field;
        Self {
            id: base.id.into_string(),
            name: base.name,
            display_type: base.display_type.into(),
            data_type: DataType::of(&base.data_type),
            sort_order: base.sort_order,
            is_required,
            active: base.active,
            created_at,
            updated_at,
            description: base.description,
            select_options: base.select_options.and_then(StoredJson::new),
            regex: base.regex,
            show_conditions: show_conditions.and_then(StoredJson::new),
            max_items: base.max_items,
            accounts: view.accounts.map(|accounts| {
                accounts
                    .into_iter()
                    .map(|account| FieldAccount { name: account.name, account_id: account.id, channel: account.channel.into() })
                    .collect()
            }),
        }
    }
}

/// The definition of a contact field.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct ContactField {
    /// Identifies the field: the key of its value in `customFields`, and `contactFieldId` of an update.
    pub id: String,
    /// The display name of the field.
    pub name: String,
    /// How a user interface shows and edits the field. The display type limits the possible values of `dataType`.
    pub display_type: EnumValue<ContactDisplayTypes>,
    /// The type of the field's value, or of each item if the field holds several. Depends on `displayType`.
    pub data_type: DataType,
    /// Whether values of the field can be written; a write to an inactive field is answered with 400.
    pub active: bool,
    /// The field's place in the display order.
    pub sort_order: i64,
    /// The store's description of the field; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The options of a select field, at most four levels deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_options: Option<StoredJson<Vec<SelectOption>>>,
    /// Regular expression that every text value must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The maximum number of values of a multi-valued field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<i64>,
}

impl From<Field> for ContactField {
    fn from(field: Field) -> Self {
        Self {
            id: field.id.into_string(),
            name: field.name,
            display_type: field.display_type.into(),
            data_type: DataType::of(&field.data_type),
            active: field.active,
            sort_order: field.sort_order,
            description: field.description,
            select_options: field.select_options.and_then(StoredJson::new),
            regex: field.regex,
            max_items: field.max_items,
        }
    }
}

/// The system keys: those keys of a ticket's `ticketFields` that are not ids of fields, but names that the service defines itself, such as
/// `isConverted`.
#[derive(Debug)]
pub struct SystemKeys;

impl Members for SystemKeys {
    const NAME: &'static str = "TicketFieldValues";
    const DESCRIPTION: &'static str = "The field values of a ticket, keyed by field id, and the values of system keys, which are listed here. The type of a field's value \
                                       depends on the field's definition.";

    fn members() -> Vec<(&'static str, MetaSchema)> {
        vec![
            member("isConverted", "boolean", "Whether the ticket counts as a conversion."),
            member("salesRevenue", "number", "The revenue from the ticket, in the currency of `salesRevenueCurrency`."),
            member("salesRevenueCurrency", "string", "The ISO 4217 code of the currency of `salesRevenue`."),
            member("aiCsat", "string", "The customer's satisfaction, as the AI judges it."),
            member("aiSummary", "string", "The AI's summary of the ticket."),
            member("resolutionStatus", "string", "Who resolved the ticket; the value that the filter `resolutionStatuses` tests."),
        ]
    }
}

/// The field values of a ticket in responses.
pub type TicketFieldValues = StoredJson<OpenObject<SystemKeys>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::custom_fields::SYSTEM_KEYS;

    #[test]
    fn every_system_key_is_listed() {
        let listed: Vec<_> = SystemKeys::members().into_iter().map(|(name, _)| name).collect();
        assert_eq!(listed, SYSTEM_KEYS.map(|(key, _)| key));
    }
}
