//! Grants: the permissions of a bearer token for the settings API, the API that manages a store (tenant).

use std::{fmt, str::FromStr};

/// A permission of a token. Each operation of the settings API requires one grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    Events,
    Inbound,
    Keys,
    Webhooks,
    Team,
    Audit,
    /// Includes every other grant, and permits the operations that no other grant permits.
    All,
}

impl Grant {
    /// Every grant, in the order in which lists show them.
    pub const ALL: [Self; 7] = [Self::Events, Self::Inbound, Self::Keys, Self::Webhooks, Self::Team, Self::Audit, Self::All];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Inbound => "inbound",
            Self::Keys => "keys",
            Self::Webhooks => "webhooks",
            Self::Team => "team",
            Self::Audit => "audit",
            Self::All => "all",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn known() -> String {
    Grant::ALL.map(Grant::name).join(", ")
}

/// The error for a text that is not a list of grants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("`{0}` is not a grant; the grants are {known}", known = known())]
    Unknown(String),
    #[error("the list names no grant; the grants are {known}, separated by commas", known = known())]
    Empty,
}

impl FromStr for Grant {
    type Err = GrantError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|grant| grant.name() == name).ok_or_else(|| GrantError::Unknown(name.to_owned()))
    }
}

/// A set of grants: what a credential (such as a token) permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantSet(u8);

impl GrantSet {
    /// The set that permits everything.
    pub const EVERYTHING: Self = Self(1 << Grant::All as u8);

    pub fn permits(self, required: Grant) -> bool {
        self.is_all() || self.0 & required.bit() != 0
    }

    pub fn is_all(self) -> bool {
        self.0 & Grant::All.bit() != 0
    }

    /// Returns the names of the grants. For a set that contains `all`, returns only `all`.
    pub fn names(self) -> Vec<&'static str> {
        if self.is_all() {
            return vec![Grant::All.name()];
        }
        Grant::ALL.into_iter().filter(|grant| self.0 & grant.bit() != 0).map(Grant::name).collect()
    }

    /// Parses a stored list of grants, such as `events,inbound`. Ignores unknown names, which a newer version of the server may have
    /// stored.
    pub fn from_stored(text: &str) -> Self {
        text.split(',').filter_map(|name| name.parse().ok()).collect()
    }
}

impl FromIterator<Grant> for GrantSet {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Self {
        let set = Self(grants.into_iter().fold(0, |set, grant| set | grant.bit()));
        if set.is_all() { Self::EVERYTHING } else { set }
    }
}

impl FromStr for GrantSet {
    type Err = GrantError;

    /// Parses a list such as `events,inbound`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Err(GrantError::Empty);
        }
        text.split(',').map(|name| name.trim().parse::<Grant>()).collect()
    }
}

impl fmt::Display for GrantSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_permits_its_grants_and_all_permits_everything() {
        for text in ["events", "events,inbound", "keys,webhooks,team,audit", "all"] {
            let set: GrantSet = text.parse().unwrap();
            assert_eq!((set.to_string(), GrantSet::from_stored(text)), (text.to_owned(), set));
            for grant in Grant::ALL {
                assert_eq!(set.permits(grant), text == "all" || text.split(',').any(|name| name == grant.name()), "{text}: {grant}");
            }
        }
        assert_eq!(" inbound , events,inbound".parse::<GrantSet>().unwrap().to_string(), "events,inbound");
        assert_eq!("events,all".parse(), Ok(GrantSet::EVERYTHING));
    }

    #[test]
    fn a_list_with_a_mistake_is_refused_and_the_grants_are_named() {
        for text in ["", " ", "event", "events,", "events;inbound", "ALL", ",", "events,\0"] {
            let error = text.parse::<GrantSet>().unwrap_err().to_string();
            assert!(
                error.ends_with("the grants are events, inbound, keys, webhooks, team, audit, all") || text.trim().is_empty(),
                "{error}"
            );
        }
        // A newer version of the server may have stored a grant that this version does not know.
        let stored = GrantSet::from_stored("audit,later");
        assert_eq!(stored.names(), ["audit"]);
        assert!(GrantSet::from_stored("later").names().is_empty() && !GrantSet::from_stored("").permits(Grant::Events));
    }
}
