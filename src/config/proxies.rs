//! `TRUSTED_PROXIES`: whose word is taken about where a request comes from.

use std::net::{IpAddr, SocketAddr};

/// Machines that stand before ours. This one always belongs to them; from any other, what a request says of the
/// addresses behind it may be made up, so that whoever guesses passwords could come from a new place each time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    ip: IpAddr,
    bits: u8,
}

impl TrustedProxies {
    /// Addresses or networks such as `10.1.0.0/16`, separated by commas. Everybody is no network.
    pub fn parse(text: &str) -> Option<Self> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(Network::parse).collect::<Option<_>>().map(Self)
    }

    /// Where a request comes from that `peer` has passed on: the last address of `X-Forwarded-For` that is not one of a
    /// proxy. Each proxy adds the one before it at the end, so what stands further left is hearsay.
    pub fn origin<'h>(&self, peer: IpAddr, forwarded: impl DoubleEndedIterator<Item = &'h str>) -> IpAddr {
        let mut origin = peer.to_canonical();
        for before in forwarded.flat_map(|header| header.split(',')).rev() {
            let Some(before) = address(before.trim()).filter(|_| self.trusts(origin)) else { break };
            origin = before;
        }
        origin
    }

    fn trusts(&self, ip: IpAddr) -> bool {
        ip.is_loopback() || self.0.iter().any(|network| network.has(ip))
    }
}

/// Some proxies add the port.
fn address(text: &str) -> Option<IpAddr> {
    let ip = text.parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    ip.ok().map(|ip: IpAddr| ip.to_canonical())
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (ip, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let ip: IpAddr = ip.parse().ok()?;
        let all = if ip.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(all), |bits| bits.parse().ok())?;
        (1..=all).contains(&bits).then_some(Self { ip, bits })
    }

    fn has(&self, ip: IpAddr) -> bool {
        match (self.ip, ip) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => (network.to_bits() ^ ip.to_bits()) >> (32 - self.bits) == 0,
            (IpAddr::V6(network), IpAddr::V6(ip)) => (network.to_bits() ^ ip.to_bits()) >> (128 - self.bits) == 0,
            _ => false,
        }
    }
}
