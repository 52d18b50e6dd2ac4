//! Permitted targets of deliveries (SSRF protection): which IP addresses count as public, and to which addresses a server delivers.
//!
//! Used by `service` when an endpoint is set, and by `delivery` for each connection.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::LazyLock,
};

use ipnet::IpNet;
use url::{Host, Url};

/// Networks whose addresses do not count as public: special-purpose networks (of the IANA registries), multicast networks, and networks
/// whose addresses embed IPv4 addresses.
const FORBIDDEN: [&str; 37] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    // IPv6 networks whose addresses embed an IPv4 address, which may be a private one: IPv4-compatible, IPv4-translated, NAT64, 6to4 and
    // Teredo. Other special-purpose networks follow.
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "2002::/16",
    "2001::/32",
    "2001:3::/32",
    "2001:4:112::/48",
    "100::/64",
    "2001:2::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:db8::/32",
    "2620:4f:8000::/48",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/9",
    "ff00::/8",
];

static NETWORKS: LazyLock<Vec<IpNet>> = LazyLock::new(|| FORBIDDEN.iter().filter_map(|network| network.parse().ok()).collect());

/// Whether an address counts as public: it is in none of the networks of `FORBIDDEN`.
pub fn is_public(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    !NETWORKS.iter().any(|network| network.contains(&address))
}

/// The targets to which the server may deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Public addresses only.
    Public,
    /// Public addresses, and the loopback addresses of this machine: for the demo.
    PublicAndLoopback,
    /// All addresses: for development and tests.
    Any,
    /// Public addresses, and one address that a test treats as public.
    #[cfg(test)]
    PublicAnd(IpAddr),
}

/// The error of a connection to an address that is not permitted.
#[derive(Debug, thiserror::Error)]
#[error("the address is not a public one; nothing is delivered to it")]
pub struct TargetNotPermitted;

impl Targets {
    pub fn allow(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::PublicAndLoopback => address.to_canonical().is_loopback() || is_public(address),
            Self::Any => true,
            #[cfg(test)]
            Self::PublicAnd(one) => address == one || is_public(address),
        }
    }

    /// Refuses a URL without a host, and a URL whose host is a forbidden IP address, in any notation. Host names are accepted here: the
    /// resolver checks their addresses later. It is not called for a host that is an IP address.
    pub fn check(self, url: &Url) -> Result<(), TargetNotPermitted> {
        let address = match url.host() {
            Some(Host::Ipv4(four)) => IpAddr::V4(four),
            Some(Host::Ipv6(six)) => IpAddr::V6(six),
            Some(Host::Domain(_)) => return Ok(()),
            None => return Err(TargetNotPermitted),
        };
        if self.allow(address) { Ok(()) } else { Err(TargetNotPermitted) }
    }

    /// Checks a URL that a user enters, as [`Self::check`] does. Also refuses `localhost`, which is always this machine (RFC 6761, section
    /// 6.3), unless this machine is permitted.
    pub fn check_entered(self, url: &Url) -> Result<(), TargetNotPermitted> {
        match url.host() {
            Some(Host::Domain(name)) if is_localhost(name) && !self.allow(IpAddr::V4(Ipv4Addr::LOCALHOST)) => Err(TargetNotPermitted),
            _ => self.check(url),
        }
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    /// Literal IP addresses in various notations, as the host of a URL may contain them. None of these addresses is public.
    pub(crate) const SPELT_OUT: [&str; 68] = [
        "127.0.0.1",
        "127.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.01",
        "127.255.255.254",
        "0.0.0.0",
        "0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "0xa000001",
        "012.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "192.168.255.255",
        "3232235521",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "192.88.99.1",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[::ffff:10.0.0.1]",
        "[::127.0.0.1]",
        "[::ffff:0:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::]",
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[febf::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[2001:db8::1]",
        "[100::1]",
        "①②⑦.0.0.1",
        "１２７.0.0.1",
        "[2001:3::1]",
        "[2001:4:112::1]",
        "[2620:4f:8000::1]",
    ];

    #[test]
    fn every_forbidden_network_is_parsed() {
        assert_eq!(NETWORKS.len(), FORBIDDEN.len());
    }

    #[test]
    fn non_public_hosts_are_refused_in_every_notation() {
        for host in SPELT_OUT {
            let text = format!("http://{host}/");
            let url = Url::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(Targets::Public.check(&url).is_err(), "{text} is taken for public, as {url}");
            assert!(Targets::Any.check(&url).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_demo_reaches_this_machine_and_no_other_private_one() {
        for (host, allowed) in [
            ("127.0.0.1", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost", true),
            ("1.1.1.1", true),
            ("10.0.0.1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
        ] {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            assert_eq!(Targets::PublicAndLoopback.check_entered(&url).is_ok(), allowed, "{host}");
        }
    }

    #[test]
    fn an_entered_url_with_localhost_is_refused_if_targets_are_public() {
        for host in ["localhost", "LOCALHOST.", "shop.localhost"] {
            let url = Url::parse(&format!("https://{host}/")).unwrap();
            assert!(Targets::Public.check_entered(&url).is_err() && Targets::Any.check_entered(&url).is_ok(), "{host}");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        for text in ["1.1.1.1", "8.8.8.8", "100.63.255.255", "172.15.0.1", "172.32.0.1", "198.17.0.1", "223.255.255.255", "2606:4700::1111"]
        {
            let address: IpAddr = text.parse().unwrap();
            assert!(is_public(address), "{text}");
        }
        assert!(is_public(IpAddr::V6(Ipv4Addr::new(1, 1, 1, 1).to_ipv6_mapped())));
        assert!(!is_public(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    }
}
