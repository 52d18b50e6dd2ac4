//! `counterpart webhook`: management of webhook subscriptions.

use clap::{ArgGroup, Args, Subcommand};
use serde_json::Value;

use super::{CliResult, Failed, StoreArg, print};
use crate::{
    app::{open_migrated, service},
    config::{Config, switch},
    domain::{
        ids::{AccountId, StoreId, WebhookId},
        settings_access::{Editor, FormerSecrets},
        time::Bound,
        webhooks::{AttemptLogPage, Replay, SigningSecret, Webhook},
    },
    http::settings::{AttemptView, WebhookView},
    service::{Service, webhooks::WebhookSettings},
};

/// The number of delivery attempts per read of the log.
const LOG_PAGE: i64 = 500;

#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Subscribe an endpoint to events; prints the signing secret, which is not shown again
    Create {
        #[command(flatten)]
        store: StoreArg,
        /// The endpoint: an https:// URL, or an http:// URL if the endpoint has no TLS
        #[arg(long, env = "COUNTERPART_URL")]
        url: String,
        /// Only these kinds of events, separated by commas [default: all kinds]
        #[arg(long, env = "COUNTERPART_EVENTS", value_delimiter = ',', value_name = "KIND,…")]
        events: Option<Vec<String>>,
        /// Only events of this channel account
        #[arg(long, env = "COUNTERPART_ACCOUNT", value_name = "ID")]
        account: Option<String>,
        #[command(flatten)]
        output: WebhookOutput,
    },
    /// List a store's webhooks, one JSON object per line
    List {
        #[command(flatten)]
        store: StoreArg,
    },
    /// Change the URL or the event filters
    #[command(group = ArgGroup::new("changes").args(["url", "events", "all_events", "account", "all_accounts"]).required(true).multiple(true))]
    Edit {
        #[command(flatten)]
        hook: Hook,
        /// The new URL
        #[arg(long, env = "COUNTERPART_URL")]
        url: Option<String>,
        /// Deliver only these kinds of events from now on, separated by commas
        #[arg(long, env = "COUNTERPART_EVENTS", value_delimiter = ',', value_name = "KIND,…")]
        events: Option<Vec<String>>,
        /// Deliver all kinds of events from now on
        #[arg(long, env = "COUNTERPART_ALL_EVENTS", conflicts_with = "events", value_parser = switch())]
        all_events: bool,
        /// Deliver only events of this channel account from now on
        #[arg(long, env = "COUNTERPART_ACCOUNT", value_name = "ID")]
        account: Option<String>,
        /// Deliver events of all accounts from now on
        #[arg(long, env = "COUNTERPART_ALL_ACCOUNTS", conflicts_with = "account", value_parser = switch())]
        all_accounts: bool,
    },
    /// Resume deliveries, for events from now on
    Enable {
        #[command(flatten)]
        hook: Hook,
    },
    /// Stop deliveries and drop the queued ones; `replay --missing` can send them later
    Disable {
        #[command(flatten)]
        hook: Hook,
    },
    /// Rotate the secret of a webhook; prints the new secret. For 24 hours, requests are signed with the former secret in addition
    Rotate {
        #[command(flatten)]
        hook: Hook,
        /// End the former secrets immediately, for example because they have leaked
        #[arg(long, env = "COUNTERPART_END_FORMER", value_parser = switch())]
        end_former: bool,
        #[command(flatten)]
        output: WebhookOutput,
    },
    /// Send a test event of the kind `webhook.test`; prints its id, which `log` shows
    Test {
        #[command(flatten)]
        hook: Hook,
    },
    /// Print every attempt, oldest first, one JSON object per line
    Log {
        #[command(flatten)]
        hook: Hook,
    },
    /// Send events again; prints how many
    Replay {
        #[command(flatten)]
        hook: Hook,
        /// Only the event with this id
        #[arg(long, env = "COUNTERPART_EVENT", value_name = "ID")]
        event: Option<String>,
        /// Only events at or after this instant, such as 2026-01-31T09:00:00Z
        #[arg(long, env = "COUNTERPART_SINCE", value_name = "T", value_parser = instant)]
        since: Option<Bound>,
        /// Only events before this instant
        #[arg(long, env = "COUNTERPART_UNTIL", value_name = "T", value_parser = instant)]
        until: Option<Bound>,
        /// Only events that have no successful delivery and are not queued
        #[arg(long, env = "COUNTERPART_MISSING", value_parser = switch())]
        missing: bool,
        /// All recorded events
        #[arg(long, env = "COUNTERPART_ALL", value_parser = switch())]
        all: bool,
        /// Only print the number of events, and send nothing
        #[arg(long, env = "COUNTERPART_DRY_RUN", value_parser = switch())]
        dry_run: bool,
    },
    /// Delete a webhook and its log immediately and permanently
    Delete {
        #[command(flatten)]
        hook: Hook,
    },
}

#[derive(Args, Debug)]
pub struct Hook {
    #[command(flatten)]
    store: StoreArg,
    /// The webhook's id, as `webhook list` shows it
    #[arg(long, env = "COUNTERPART_ID", value_name = "HOOK")]
    id: String,
}

#[derive(Args, Debug)]
pub struct WebhookOutput {
    /// Print the webhook with its secret as one JSON object
    #[arg(long, env = "COUNTERPART_JSON", value_parser = switch())]
    json: bool,
}

impl WebhookCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = open_migrated(config).await?;
        self.execute(&service(db.clone(), clocks_and_ids).bounded_by(config.bounds()).delivering_to(config.targets())).await?;
        Ok(db.close().await?)
    }

    async fn execute(self, service: &Service) -> CliResult {
        match self {
            Self::Create { store, url, events, account, output } => {
                let account_id = Some(account.map(AccountId::from));
                let settings = WebhookSettings { url: Some(url), kinds: events.map(trimmed).map(Some), account_id };
                let (webhook, secret) = service.create_webhook(&Editor::command_line(store.store.into()), settings).await?;
                output.print(webhook, &secret)
            }
            Self::List { store } => {
                service.webhooks(&StoreId::from(store.store)).await?.into_iter().try_for_each(|webhook| print(&shown(webhook)?.to_string()))
            }
            Self::Edit { hook, url, events, all_events, account, all_accounts } => {
                let kinds = if all_events { Some(None) } else { events.map(trimmed).map(Some) };
                let account_id = if all_accounts { Some(None) } else { account.map(|id| Some(AccountId::from(id))) };
                service.edit_webhook(&hook.editor(), &hook.id(), WebhookSettings { url, kinds, account_id }).await?;
                Ok(())
            }
            Self::Enable { hook } => {
                service.enable_webhook(&hook.editor(), &hook.id(), true).await?;
                Ok(())
            }
            Self::Disable { hook } => {
                service.enable_webhook(&hook.editor(), &hook.id(), false).await?;
                Ok(())
            }
            Self::Rotate { hook, end_former, output } => {
                let (webhook, secret) = service.rotate_webhook(&hook.editor(), &hook.id(), FormerSecrets::of(end_former)).await?;
                output.print(webhook, &secret)
            }
            Self::Test { hook } => print(&service.test_webhook(&hook.editor(), &hook.id()).await?),
            Self::Log { hook } => {
                let mut after = 0;
                loop {
                    let page = service.attempts(&hook.store(), &hook.id(), AttemptLogPage::After(after), LOG_PAGE).await?;
                    let Some(last) = page.last() else { return Ok(()) };
                    after = last.position;
                    page.into_iter().try_for_each(|attempt| print(&serde_json::to_string(&AttemptView::from(attempt))?))?;
                }
            }
            Self::Replay { hook, event, since, until, missing, all, dry_run } => {
                let is_range = event.is_some() || since.is_some() || until.is_some() || missing;
                if is_range == all {
                    let right = "`--event`, `--since`, `--until` or `--missing`, or `--all` alone";
                    return Err(Failed(format!("choose the events to send again with {right}")));
                }
                let replay = Replay { event, since: since.map(Bound::at_or_after), until: until.map(Bound::before), missing };
                print(&service.replay(&hook.editor(), &hook.id(), replay, dry_run).await?.to_string())
            }
            Self::Delete { hook } => Ok(service.delete_webhook(&hook.editor(), &hook.id()).await?),
        }
    }
}

/// Removes the spaces around the items of a comma-separated list. If all items are blank, the list becomes empty.
fn trimmed(kinds: Vec<String>) -> Vec<String> {
    let kinds: Vec<String> = kinds.into_iter().map(|kind| kind.trim().to_owned()).collect();
    if kinds.iter().all(String::is_empty) { Vec::new() } else { kinds }
}

fn instant(text: &str) -> Result<Bound, String> {
    text.parse().map_err(|_| "must be an instant such as 2026-01-31T09:00:00Z".to_owned())
}

impl Hook {
    fn store(&self) -> StoreId {
        StoreId::from(self.store.store.as_str())
    }

    fn editor(&self) -> Editor {
        Editor::command_line(self.store())
    }

    fn id(&self) -> WebhookId {
        WebhookId::from(self.id.as_str())
    }
}

impl WebhookOutput {
    fn print(&self, webhook: Webhook, secret: &SigningSecret) -> CliResult {
        if !self.json {
            return print(&secret.reveal());
        }
        let mut line = shown(webhook)?;
        line["secret"] = secret.reveal().into();
        print(&line.to_string())
    }
}

/// Returns a webhook as JSON, without its secret.
fn shown(webhook: Webhook) -> serde_json::Result<Value> {
    serde_json::to_value(WebhookView::from(webhook))
}
