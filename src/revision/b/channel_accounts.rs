//! Operations on channel accounts: the schemas of accounts and WhatsApp templates, and the handlers that list them (API contract, sections
//! 2.11, 2.12 and 4.1). Only revision B of the API has these operations.

use poem_openapi::{Object, OpenApi, registry::MetaSchema};
use serde::Serialize;

use crate::{
    domain::{
        ids::AccountId,
        stores_and_accounts as domain,
        stores_and_accounts::{Channel, PARAMETER_FORMATS, TEMPLATE_CATEGORIES, TEMPLATE_STATUSES, TemplateFilter},
        time::Timestamp,
    },
    http::{
        machinery::{
            auth::{AccountsRead, Authorised},
            error_responses::{Failure, Listing, Lookup},
            expand_parameter::NoExpand,
            paging::{PageStep, Paged},
            params::{Choice, CursorText, Id, IgnoredParam, OneOf, PageSize, Query, Required},
            success_responses::{All, Reply},
        },
        openapi::openapi_tags::Tag,
        schemas::value_types::{ChannelName, EnumValue, Members, OpenObject, StoredJson, ValueSet, member},
    },
};

/// A channel account.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Identifies the account: the value of `accountId` in requests, and in records that refer to the account.
    pub id: String,
    /// The messaging service that the account belongs to, such as `line` or `gmail`.
    pub channel: ChannelName,
    /// The display name of the account. If the name is an e-mail address, e-mails of this account are sent from that address.
    pub name: String,
    /// The state of the account's connection to the channel. The list leaves out `disconnected` accounts.
    pub status: EnumValue<AccountStatuses>,
    /// When the store last granted access to the account on its channel; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_authorized_at: Option<Timestamp>,
    /// Data about the account that its channel provides, such as the number of followers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<StoredJson<OpenObject<ChannelData>>>,
}

/// Data about an account that its channel provides: an open object, whose members depend on the channel. [`Members::members`] lists those
/// whose type is known.
#[derive(Debug)]
pub struct ChannelData;

impl Members for ChannelData {
    const NAME: &'static str = "AccountMetadata";
    const DESCRIPTION: &'static str =
        "Data about the account that its channel provides. The members depend on the channel: there may be others than those listed.";

    fn members() -> Vec<(&'static str, MetaSchema)> {
        vec![
            member("userName", "string", "The name of the account on the channel."),
            member("country", "string", "The country of the account, as the channel gives it."),
            member("followerCount", "integer", "The number of followers of the account when the channel last gave it."),
        ]
    }
}

/// The states of an account's connection.
#[derive(Debug, Clone)]
pub struct AccountStatuses;

impl ValueSet for AccountStatuses {
    const NAME: &'static str = "AccountStatus";
    const DESCRIPTION: &'static str = "The state of an account's connection to its channel: `healthy` works, `reauthorization_required` works again once the store grants access anew, and `disconnected` means that the account is inactive.";
    const VALUES: &'static [&'static str] = &domain::ACCOUNT_STATUSES;
}

impl From<domain::Account> for Account {
    fn from(account: domain::Account) -> Self {
        Self {
            id: account.id.into_string(),
            channel: account.channel.into(),
            name: account.name,
            status: account.status.into(),
            last_authorized_at: account.last_authorized_at,
            metadata: account.metadata.and_then(StoredJson::new),
        }
    }
}

/// A message template of a WhatsApp account.
#[derive(Debug, Object, Serialize)]
pub struct WhatsappTemplate {
    /// Identifies the template, as `templateId` in the operations that send one.
    pub id: String,
    /// The template's name, by which the list is ordered.
    pub name: String,
    /// How placeholders are written; a `NAMED` template with placeholders cannot be sent over this API.
    pub parameter_format: EnumValue<ParameterFormats>,
    /// The language code of the template.
    pub language: String,
    /// The state of the template at WhatsApp; only `APPROVED`, `REINSTATED` and `FLAGGED` templates can be sent.
    pub status: EnumValue<TemplateStatuses>,
    /// What the template is for; one of the values that the list can be filtered by.
    pub category: EnumValue<TemplateCategories>,
    /// The parts of the template, such as `BODY`. When the template is sent, `variables` fills in the placeholders in the body's text.
    pub components: StoredJson<Vec<TemplateComponent>>,
}

/// One part of a template. Besides `type` and `text` it may have other members, which depend on the type.
#[derive(Debug, Object)]
pub struct TemplateComponent {
    /// The type of the part, such as `BODY`.
    r#type: String,
    /// The text of the part; in a `BODY` it may contain the placeholders `{{1}}`, `{{2}}` and so on.
    text: Option<String>,
}

macro_rules! open_sets {
    ($($(#[$doc:meta])* $set:ident $name:literal $description:literal = $values:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $set;

        impl ValueSet for $set {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = $description;
            const VALUES: &'static [&'static str] = &$values;
        }

        impl Choice for $set {
            const VALUES: &'static [&'static str] = &$values;
        }
    )*};
}

open_sets! {
    /// How a template's placeholders are written.
    ParameterFormats "TemplateParameterFormat"
        "How placeholders are written: `POSITIONAL` ones are numbered, as `{{1}}`; `NAMED` ones have names, and cannot be filled in when sending." = PARAMETER_FORMATS;
    /// The states of a template at WhatsApp.
    TemplateStatuses "TemplateStatus"
        "The state of a template at WhatsApp; only `APPROVED`, `REINSTATED` and `FLAGGED` templates can be sent." = TEMPLATE_STATUSES;
    /// What a template is for.
    TemplateCategories "TemplateCategory"
        "What a template is for, in the terms of WhatsApp: marketing, service messages or authentication." = TEMPLATE_CATEGORIES;
}

/// The values of the query parameter `channel`.
#[derive(Debug)]
pub struct Channels;

impl Choice for Channels {
    const VALUES: &'static [&'static str] = super::CHANNELS;
}

impl From<domain::Template> for WhatsappTemplate {
    fn from(template: domain::Template) -> Self {
        Self {
            id: template.id.into_string(),
            name: template.name,
            parameter_format: template.parameter_format.into(),
            language: template.language,
            status: template.status.into(),
            category: template.category.into(),
            components: StoredJson::or_empty_list(template.components),
        }
    }
}

/// Read operations on channel accounts.
#[derive(Debug)]
pub struct AccountReads;

#[OpenApi(tag = "Tag::Accounts")]
impl AccountReads {
    /// List accounts
    ///
    /// Lists the store's channel accounts, the oldest first. Accounts whose `status` is `disconnected` are left out.
    #[oai(path = "/accounts", method = "get", operation_id = "listAccounts")]
    async fn list_accounts(
        &self,
        request: Authorised<AccountsRead>,
        /// Only accounts of this channel.
        channel: Query<Option<OneOf<Channels>>>,
        /// Accounts per page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        _expand: NoExpand,
    ) -> Result<Reply<Paged<Account>>, Failure<Listing>> {
        let channel = channel.0.map(|channel| Channel(channel.0));
        let walk = PageStep::step(
            &request,
            "listAccounts",
            page_size.0.0,
            &cursor.0,
            &IgnoredParam,
            channel.as_ref().map_or("", Channel::as_str),
        )?;
        let accounts = request.reads_many().await?.accounts(request.store(), channel.as_ref(), walk.request()).await?;
        Ok(walk.reply(&request, accounts))
    }

    /// List WhatsApp templates
    ///
    /// Lists message templates of a WhatsApp account, ordered by name: at most 100, without pagination.
    #[oai(path = "/accounts/whatsapp-templates", method = "get", operation_id = "listWhatsappTemplates")]
    #[expect(clippy::too_many_arguments, reason = "one argument a documented parameter")]
    async fn list_whatsapp_templates(
        &self,
        request: Authorised<AccountsRead>,
        /// The account; its channel must be `whatsapp`.
        #[oai(name = "accountId")]
        account_id: Query<Required<Id<AccountId>>>,
        /// A part of the template's name or body, in upper or lower case. A blank text does not filter.
        search: Query<Option<String>>,
        /// Only templates in this language.
        language: Query<Option<String>>,
        /// Only templates with this status.
        status: Query<Option<OneOf<TemplateStatuses>>>,
        /// Only templates of this category.
        category: Query<Option<OneOf<TemplateCategories>>>,
        _expand: NoExpand,
    ) -> Result<Reply<All<WhatsappTemplate>>, Failure<Lookup>> {
        let filter = TemplateFilter {
            search: search.0.filter(|search| !search.trim().is_empty()),
            language: language.0.filter(|language| !language.is_empty()),
            status: status.0.map(|status| status.0),
            category: category.0.map(|category| category.0),
        };
        let templates = request.reads_many().await?.templates(request.store(), &account_id.0.0.0, filter).await?;
        Ok(Reply::all(&request, templates))
    }
}
