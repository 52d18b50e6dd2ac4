//! E-mails with links to the settings page.
//!
//! A person who asks for a link enters an address. [`SignInMails`] looks up whose it is, and sends the links, after the request was
//! answered: so neither the answer nor its time shows whether a user has the address. Requests wait in memory. One that is lost with the
//! process, or whose message the SMTP server refuses, is made again by the person; the failure is logged and counted.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use lettre::{
    AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
};
use tokio::sync::{Mutex, mpsc};

use super::worker::OnOutcome;
use crate::{
    domain::{
        delivery_outcome::DeliveryOutcome,
        keys::Secret,
        settings::{Addressee, link_url},
    },
    service::Service,
    supervisor::Pulse,
};

/// How long the SMTP server may take for one step.
const PATIENCE: Duration = Duration::from_secs(20);

/// The interval at which an idle task reports.
const BEAT: Duration = Duration::from_secs(10);

/// The SMTP server that takes the messages, and what they contain.
#[derive(Clone, Debug)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    /// The base URL of the server, for the links.
    public_url: String,
}

impl Mailer {
    /// `url`: `smtp://` (with `?tls=required` for STARTTLS) or `smtps://`, then `USER:PASSWORD@HOST:PORT`.
    pub fn new(url: &str, from: Mailbox, public_url: String) -> Result<Self, String> {
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|error| error.to_string())?;
        Ok(Self { transport: transport.timeout(Some(PATIENCE)).build(), from, public_url })
    }

    /// The message with the links of one person. All are sent to the same address, which the stores may spell differently.
    fn message(&self, id: &str, links: &[(Addressee, Secret)]) -> Result<Option<Message>, String> {
        let Some((first, _)) = links.first() else { return Ok(None) };
        let to = Mailbox::new(None, first.email.parse().map_err(|error| format!("the address on file is not usable: {error}"))?);
        let subject = match links {
            [(only, _)] => format!("Your link to the settings of {}", only.store_name),
            _ => format!("Your links to the settings of {} stores", links.len()),
        };
        let mut text = "Somebody, probably you, asked for a link to the settings of your inbox.\n".to_owned();
        for (addressee, secret) in links {
            text += &format!("\n{}:\n{}\n", addressee.store_name, link_url(&self.public_url, secret));
        }
        text += "\nA link works once, and only within the next 15 minutes.\n\
                 If you did not ask for it, you need do nothing: only who has this message can use it.\n";
        let id = format!("<{id}@{}>", self.from.email.domain());
        let message = Message::builder().from(self.from.clone()).to(to).subject(subject).message_id(Some(id));
        message.header(ContentType::TEXT_PLAIN).body(text).map(Some).map_err(|error| error.to_string())
    }
}

/// Sends links to the addresses that are asked for.
#[derive(Clone)]
pub struct SignInMails {
    pub service: Service,
    pub mailer: Mailer,
    /// The addresses that people entered. Only one run of the task receives them.
    pub requests: Arc<Mutex<mpsc::Receiver<String>>>,
    pub on_outcome: OnOutcome,
}

impl SignInMails {
    pub async fn run(self, stopped: impl Future<Output = ()>, pulse: Pulse) {
        let mut requests = self.requests.lock().await;
        let mut stopped = pin!(stopped);
        loop {
            pulse.beat();
            let address = tokio::select! {
                () = &mut stopped => return,
                () = tokio::time::sleep(BEAT) => continue,
                request = requests.recv() => match request {
                    Some(address) => address,
                    None => return,
                },
            };
            match self.send(&address).await {
                Ok(0) => {}
                Ok(links) => {
                    (self.on_outcome)(DeliveryOutcome::Delivered);
                    tracing::info!(links, "a message with links to the settings was sent");
                }
                // The task itself works, so this is no failure of the task: an SMTP server that is down must not make the process unready.
                Err(reason) => {
                    (self.on_outcome)(DeliveryOutcome::GivenUp);
                    tracing::error!(reason, "a message with links to the settings could not be sent; the person has to ask again");
                }
            }
        }
    }

    /// Returns the number of links that were sent.
    async fn send(&self, address: &str) -> Result<usize, String> {
        let links = self.service.links_for_address(address).await.map_err(|error| error.to_string())?;
        let Some(message) = self.mailer.message(&self.service.world().ids.fresh(), &links)? else { return Ok(0) };
        self.mailer.transport.send(message).await.map_err(|error| error.to_string())?;
        Ok(links.len())
    }
}
