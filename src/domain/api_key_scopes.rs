//! Scopes: the permissions of API keys (API contract, section 5).

use std::{fmt, str::FromStr};

macro_rules! scopes {
    ($($variant:ident = $name:literal),* $(,)?) => {
        /// A permission of an API key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Scope {
            $($variant,)*
        }

        impl Scope {
            /// Every scope, in the order in which lists of API keys show them.
            pub const ALL: &'static [Scope] = &[$(Scope::$variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Scope::$variant => $name,)*
                }
            }

            /// Whether the scope is read-only.
            pub fn only_reads(self) -> bool {
                self.name().ends_with(":read")
            }
        }
    };
}

scopes! {
    TicketsRead = "tickets:read",
    TicketsWrite = "tickets:write",
    ConversationsRead = "conversations:read",
    ConversationsWrite = "conversations:write",
    ContactsRead = "contacts:read",
    ContactsWrite = "contacts:write",
    MessagesRead = "messages:read",
    MessagesWrite = "messages:write",
    AccountsRead = "accounts:read",
    AccountsWrite = "accounts:write",
    UsersRead = "users:read",
    UsersWrite = "users:write",
    LabelsRead = "labels:read",
    LabelsWrite = "labels:write",
    TeamsRead = "teams:read",
    TeamsWrite = "teams:write",
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a scope; the scopes are {all}", name = .0, all = Scope::ALL.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(", "))]
pub struct ScopeError(String);

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|scope| scope.name() == name).ok_or_else(|| ScopeError(name.to_owned()))
    }
}

/// A set of scopes. A write scope also grants the matching read scope (contract, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ScopeSet(u32);

impl ScopeSet {
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u32) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }

    /// Parses a stored list of scopes, such as `tickets:read labels:read`. Unknown names are ignored.
    pub fn from_stored(text: &str) -> Self {
        text.split(' ').filter_map(|name| name.parse().ok()).collect()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut set = 0;
        for scope in scopes {
            set |= 1 << scope as u32;
            if let Some(noun) = scope.name().strip_suffix(":write")
                && let Some(read) = Scope::ALL.iter().find(|read| read.name().strip_suffix(":read") == Some(noun))
            {
                set |= 1 << *read as u32;
            }
        }
        Self(set)
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, scope) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_scope_grants_its_read_scope_and_nothing_else() {
        for scope in Scope::ALL {
            let set = ScopeSet::from_iter([*scope]);
            let granted: Vec<_> = set.iter().map(Scope::name).collect();
            match scope.name().strip_suffix(":write") {
                Some(noun) => assert_eq!(granted, [format!("{noun}:read"), format!("{noun}:write")]),
                None => assert_eq!(granted, [scope.name()]),
            }
            assert_eq!(ScopeSet::from_stored(&set.to_string()), set);
        }
        assert!(ScopeSet::from_stored("").is_empty());
    }
}
