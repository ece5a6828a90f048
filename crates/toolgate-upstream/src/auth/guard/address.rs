//! From where an address can be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// From where an address can be reached, the widest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Not a valid location of a server: reserved addresses, and link-local ones, where clouds
    /// serve credentials.
    Reserved,
    /// From this machine.
    Loopback,
    /// From the network it is in.
    Private,
    /// From everywhere.
    Public,
}

impl Reach {
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => embedded(address).map_or_else(|| of_v6(address), of_v4),
        }
    }

    /// The reach of a host, if its name shows it.
    pub(super) fn of_host(host: &Host<String>) -> Option<Self> {
        super::literal(host).map(Self::of)
    }

    /// Whether a server with the reach `own` may name an address with this reach.
    pub(super) fn is_within(self, own: Option<Self>) -> bool {
        match self {
            Self::Public => true,
            Self::Private | Self::Loopback => own == Some(self),
            Self::Reserved => false,
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Reach {
    let [first, second, third, _] = address.octets();
    if address.is_loopback() {
        return Reach::Loopback;
    }
    // 100.64.0.0/10 belongs to carriers.
    if address.is_private() || (first == 100 && (64..128).contains(&second)) {
        return Reach::Private;
    }
    let is_reserved = address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || first == 0
        || first >= 240
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && (second == 18 || second == 19));
    if is_reserved { Reach::Reserved } else { Reach::Public }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    if address.is_loopback() {
        Reach::Loopback
    } else if address.is_unique_local() {
        Reach::Private
    } else if address.is_unspecified()
        || address.is_multicast()
        || address.is_unicast_link_local()
        // Site-local, which is deprecated.
        || address.segments()[0] & 0xffc0 == 0xfec0
    {
        Reach::Reserved
    } else {
        Reach::Public
    }
}

/// The IPv4 address inside an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(from(high, low))
        }
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}
