//! E-mails with sign-in links to the settings page.
//!
//! A person who asks for a link enters an e-mail address. The HTTP handler only adds the address to a queue in memory. The task
//! [`SignInMails`] looks up the users with the address, and sends the links. So neither the content of the HTTP response nor the time until
//! it arrives shows whether a user has the address. If the process ends before the task has handled an address, or if the SMTP server
//! refuses the message, the person has to ask again. A failure to send is logged and counted.

use std::{future::Future, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{
        Mailbox,
        header::{ContentType, HeaderName, HeaderValue},
    },
    transport::smtp::extension::ClientId,
};
use tokio::sync::{Mutex, mpsc};
use url::Url;

use super::worker::OnOutcome;
use crate::{
    domain::{
        api_keys::Secret,
        delivery_outcome::DeliveryOutcome,
        settings_access::{EmailLoginUser, link_url},
    },
    service::Service,
    supervisor::TaskReporter,
};

/// How long the SMTP server may take for one message.
const SMTP_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval at which the idle task reports to the supervisor that it is alive.
const BEAT: Duration = Duration::from_secs(10);

/// Composes the e-mails with sign-in links, and sends them over an SMTP server.
#[derive(Clone, Debug)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    /// The base URL of the server, for the links.
    public_url: String,
}

impl Mailer {
    /// Makes a mailer. `url`: `smtp://` (with `?tls=required` for STARTTLS) or `smtps://`, then `USER:PASSWORD@HOST:PORT`.
    pub fn new(url: &str, from: Mailbox, public_url: String) -> Result<Self, String> {
        check_credentials(&Url::parse(url).map_err(|error| error.to_string())?)?;
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|error| error.to_string())?;
        // The client's name in the SMTP greeting (EHLO). Some servers refuse an IP address there.
        if let Some(host) = Url::parse(&public_url).ok().as_ref().and_then(Url::domain) {
            transport = transport.hello_name(ClientId::Domain(host.to_owned()));
        }
        Ok(Self { transport: transport.timeout(Some(SMTP_TIMEOUT)).build(), from, public_url })
    }

    /// Returns the e-mail to one address, with the sign-in links of the users who have this address. `links` is not empty.
    fn message(&self, id: &str, address: &str, links: &[(EmailLoginUser, Secret)]) -> Result<Message, String> {
        let to = Mailbox::new(None, address.parse().map_err(|error| format!("the address on file is not usable: {error}"))?);
        let subject = match links {
            [(only, _)] => format!("Your link to the settings of {}", one_line(&only.store_name)),
            _ => format!("Your links to the settings of {} stores", links.len()),
        };
        let mut text = "This is a link to the settings of your inbox.\n\
                        It was asked for with your e-mail address, by you or by somebody who let you in.\n"
            .to_owned();
        for (EmailLoginUser { store_name, role, .. }, secret) in links {
            let role = role.as_deref().unwrap_or_default();
            text += &format!("\n{}, as {role}:\n{}\n", one_line(store_name), link_url(&self.public_url, secret));
        }
        text += "\nA link works once, and only within the next 15 minutes.\n\
                 If you do not want it, you need do nothing: only someone who has this message can use it.\n";
        let id = format!("<{id}@{}>", self.from.email.domain());
        let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
        let message = Message::builder().from(self.from.clone()).to(to).subject(subject).message_id(Some(id)).raw_header(automatic);
        message.header(ContentType::TEXT_PLAIN).body(text).map_err(|error| error.to_string())
    }
}

/// Refuses an SMTP URL with a user but no password, and an SMTP URL whose password would be sent unencrypted to another machine.
fn check_credentials(url: &Url) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let is_encrypted = url.scheme() == "smtps" || url.query_pairs().any(|(name, value)| name == "tls" && value == "required");
    match (url.username(), url.password()) {
        ("", None) => Ok(()),
        (_, None) => Err("it has a user and no password; write USER:PASSWORD@HOST".to_owned()),
        (_, Some(_)) if is_local || is_encrypted => Ok(()),
        (_, Some(_)) => Err("the password would be sent unencrypted; write smtps:// or add `?tls=required`".to_owned()),
    }
}

/// Replaces line breaks and other control characters in a name by spaces.
fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The task that sends sign-in links to the requested addresses.
#[derive(Clone)]
pub struct SignInMails {
    pub service: Service,
    pub mailer: Mailer,
    /// The addresses that people entered. The running task holds the lock. So after a restart by the supervisor, the new task receives
    /// addresses only once the former task has ended.
    pub requests: Arc<Mutex<mpsc::Receiver<String>>>,
    pub on_outcome: OnOutcome,
}

impl SignInMails {
    pub async fn run(self, stopped: impl Future<Output = ()>, reporter: TaskReporter) {
        let mut requests = self.requests.lock().await;
        let mut stopped = pin!(stopped);
        loop {
            // The task reports success even if the SMTP server is unavailable: an unavailable SMTP server must not make the process
            // unready.
            reporter.succeeded();
            let address = tokio::select! {
                () = &mut stopped => return,
                () = tokio::time::sleep(BEAT) => continue,
                request = requests.recv() => match request {
                    Some(address) => address,
                    None => return,
                },
            };
            match self.service.links_for_address(&address).await {
                Ok(links) => self.send(links, &reporter).await,
                Err(error) => self.failed(&error.to_string()),
            }
        }
    }

    /// Sends a separate e-mail to each spelling of the address, such as `eva@example.com` and `Eva@example.com`, since some mail systems
    /// treat the spellings as different mailboxes.
    async fn send(&self, mut links: Vec<(EmailLoginUser, Secret)>, reporter: &TaskReporter) {
        while let Some((first, _)) = links.first() {
            let address = first.email.clone();
            let (own, others) = links.into_iter().partition(|(addressee, _)| addressee.email == address);
            links = others;
            reporter.beat();
            match self.deliver(&address, &own).await {
                Ok(()) => {
                    (self.on_outcome)(DeliveryOutcome::Delivered);
                    tracing::info!(links = own.len(), "a message with links to the settings was sent");
                }
                Err(reason) => {
                    self.failed(&reason);
                    for (addressee, secret) in &own {
                        if let Err(error) = self.service.withdraw_link(addressee, secret).await {
                            tracing::error!(%error, store = %addressee.store_id, "a link that was not sent could not be ended");
                        }
                    }
                }
            }
        }
    }

    async fn deliver(&self, address: &str, links: &[(EmailLoginUser, Secret)]) -> Result<(), String> {
        let message = self.mailer.message(&self.service.clocks_and_ids().ids.fresh(), address, links)?;
        // The transport's own time-out covers only the opening of a connection.
        let sent = tokio::time::timeout(SMTP_TIMEOUT, self.mailer.transport.send(message)).await;
        sent.map_err(|_| format!("the SMTP server took longer than {} seconds", SMTP_TIMEOUT.as_secs()))?
            .map_err(|error| error.to_string())?;
        Ok(())
    }

    fn failed(&self, reason: &str) {
        (self.on_outcome)(DeliveryOutcome::GivenUp);
        tracing::error!(reason, "a message with links to the settings could not be sent; the person has to ask again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_sent_unencrypted_to_another_machine() {
        let mailer = |url: &str| Mailer::new(url, "inbox@example.com".parse().unwrap(), "https://inbox.example.com".to_owned()).map(|_| ());
        for usable in [
            "smtp://127.0.0.1:25",
            "smtp://relay.example.com",
            "smtp://u:p@localhost",
            "smtp://u:p@[::1]:587",
            "smtp://u:p@mail.example.com:587?tls=required",
            "smtps://u:p@mail.example.com",
        ] {
            assert_eq!(mailer(usable), Ok(()), "{usable}");
        }
        for unusable in ["smtp://u:p@mail.example.com", "smtps://u@mail.example.com", "http://mail.example.com", "mail.example.com", ""] {
            let error = mailer(unusable).unwrap_err();
            assert!(!error.contains("u:p"), "{error}");
        }
    }
}
