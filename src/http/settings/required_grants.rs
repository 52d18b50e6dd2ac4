//! Grants (permissions of tokens) as types: the signature of each operation of the settings API names the grant that a token needs.
//! `openapi/settings.routes` lists every operation with the grant that it requires, if any.

use crate::domain::token_grants::Grant;

/// A grant as a type. The signature of an operation names the type of the grant that the operation requires of a token.
pub trait RequiredGrant: Send + Sync + 'static {
    /// `None` if any token may call the operation.
    const GRANT: Option<Grant>;
    /// The security requirement of an operation as the generator (poem-openapi) writes it: `Token:<grant>`, or `Token` for any token.
    const REQUIREMENT: &'static str;
}

/// The name of the security scheme of tokens in the OpenAPI document.
pub const TOKEN_SCHEME: &str = "Token";

macro_rules! required_grants {
    ($($name:ident = $grant:literal),* $(,)?) => {
        $(
            #[derive(Debug)]
            pub struct $name;

            impl RequiredGrant for $name {
                const GRANT: Option<Grant> = Some(Grant::$name);
                const REQUIREMENT: &'static str = concat!("Token:", $grant);
            }
        )*

        #[cfg(test)]
        const REQUIREMENTS: &[(Option<Grant>, &str)] = &[$((<$name as RequiredGrant>::GRANT, <$name as RequiredGrant>::REQUIREMENT)),*];
    };
}

required_grants! {
    Events = "events",
    Inbound = "inbound",
    Keys = "keys",
    Webhooks = "webhooks",
    Team = "team",
    Audit = "audit",
    All = "all",
}

/// The requirement of operations that a token with any grant may call, such as those on the caller's own session.
#[derive(Debug)]
pub struct AnyGrant;

impl RequiredGrant for AnyGrant {
    const GRANT: Option<Grant> = None;
    const REQUIREMENT: &'static str = TOKEN_SCHEME;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_requirement_names_its_own_grant() {
        assert_eq!(REQUIREMENTS.len(), Grant::ALL.len());
        for (grant, requirement) in REQUIREMENTS {
            assert_eq!(*requirement, format!("{TOKEN_SCHEME}:{}", grant.unwrap()));
        }
    }
}
