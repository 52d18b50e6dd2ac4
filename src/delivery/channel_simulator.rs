//! Fake connector (channel simulator): accepts every message, unless the text of the message asks for a failure.
//!
//! | Text contains | The channel |
//! |---|---|
//! | `simulate:delay=MILLISECONDS` | answers late |
//! | `simulate:fail=N` | fails `N` times, then accepts the message |
//! | `simulate:down` | fails every time |
//! | `simulate:refuse` | refuses the message permanently |

use std::time::Duration;

use super::channel_connector::{Accepted, Capabilities, Connector, FailureClass, SendFailure, Sending};
use crate::domain::outbound_messages::OutboxEntry;

/// The fake connector.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

/// The directives in a message's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SimulatorDirectives {
    delay: Duration,
    /// How many attempts fail before the message is accepted.
    failures: i64,
    refuse: bool,
}

impl SimulatorDirectives {
    fn of(text: &str) -> Self {
        let mut orders = Self::default();
        for order in text.split_whitespace().filter_map(|word| word.strip_prefix("simulate:")) {
            match order.split_once('=') {
                Some(("delay", millis)) => orders.delay = Duration::from_millis(millis.parse().unwrap_or(0)),
                Some(("fail", times)) => orders.failures = times.parse().unwrap_or(0),
                None if order == "down" => orders.failures = i64::MAX,
                None if order == "refuse" => orders.refuse = true,
                _ => {}
            }
        }
        orders
    }
}

impl Connector for Simulator {
    fn capabilities(&self) -> Capabilities {
        Capabilities { text: true, email: true, templates: true }
    }

    fn send<'a>(&'a self, outbox_entry: &'a OutboxEntry, attempt: i64) -> Sending<'a> {
        let orders = SimulatorDirectives::of(outbox_entry.content.text().unwrap_or_default());
        Box::pin(async move {
            if !orders.delay.is_zero() {
                tokio::time::sleep(orders.delay).await;
            }
            let not_taken = |class, reason: &str| Err(SendFailure { class, reason: reason.to_owned() });
            if orders.refuse {
                return not_taken(FailureClass::Permanent, "the simulated channel refuses this message");
            }
            if attempt <= orders.failures {
                return not_taken(FailureClass::Transient { after: None }, "the simulated channel is down");
            }
            Ok(Accepted { external_id: Some(format!("simulated-{}", outbox_entry.message_id)), reference_id: None })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_parsed_and_other_text_is_ignored() {
        assert_eq!(SimulatorDirectives::of("hello simulate: simulate:maybe simulate:fail=x"), SimulatorDirectives::default());
        let delayed = SimulatorDirectives { delay: Duration::from_millis(30), failures: 2, refuse: false };
        assert_eq!(SimulatorDirectives::of("simulate:fail=2 and simulate:delay=30"), delayed);
        assert_eq!(SimulatorDirectives::of("simulate:down"), SimulatorDirectives { failures: i64::MAX, ..SimulatorDirectives::default() });
        assert!(SimulatorDirectives::of("please simulate:refuse").refuse);
    }
}
