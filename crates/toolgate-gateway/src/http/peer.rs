//! The process at the other end of a connection.
//!
//! A server of this gateway can connect to it, as every process of this machine can that reaches the
//! address. If it could answer a form, it would approve its own calls. So before a form is shown, the
//! process that made the request is looked up.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
};

use tokio::sync::OnceCell;

use super::new_connections::NewConnection;

/// A connection. Who is at its other end is looked up once, when it matters.
#[derive(Debug)]
pub(crate) struct PeerConnection {
    peer: SocketAddr,
    /// Our end of it.
    own: Option<SocketAddr>,
    kind: OnceCell<PeerKind>,
    /// Whether another node of the fleet is at its other end.
    is_node: bool,
    /// Whether one of its requests was accepted.
    pub(crate) acceptance: NewConnection,
    /// Whether a chunk of a body is larger than a body may be.
    pub(crate) has_large_chunk: Arc<AtomicBool>,
}

/// The sender of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestPeer {
    pub(crate) connection: Arc<PeerConnection>,
    /// Whether a token says who the caller is.
    pub(crate) has_token: bool,
}

/// The sender of a request for a page.
#[derive(Debug, Clone)]
pub struct BrowserPeer(Arc<PeerConnection>);

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeerKind {
    /// Another machine, or a process that no server has started.
    Free,
    /// A process of another user of this machine, such as a proxy.
    OtherUser,
    /// A process of this machine that a server has started, or that is not found.
    ServerOrUnknown,
}

impl PeerConnection {
    pub(crate) fn new(
        peer: SocketAddr,
        own: Option<SocketAddr>,
        acceptance: NewConnection,
    ) -> Arc<Self> {
        let has_large_chunk = Arc::default();
        let (kind, is_node) = (OnceCell::new(), false);
        Arc::new(Self { peer, own, kind, is_node, acceptance, has_large_chunk })
    }

    /// A connection of another node of the fleet.
    pub(crate) fn of_node(
        peer: SocketAddr,
        own: Option<SocketAddr>,
        acceptance: NewConnection,
    ) -> Arc<Self> {
        let has_large_chunk = Arc::default();
        let (kind, is_node) = (OnceCell::new(), true);
        Arc::new(Self { peer, own, kind, is_node, acceptance, has_large_chunk })
    }

    pub(crate) fn is_node(&self) -> bool {
        self.is_node
    }

    /// Takes the word of another node for who is at the other end of its connection.
    pub(crate) fn is_for_client(&self, may_decide: bool) {
        let kind = if may_decide { PeerKind::Free } else { PeerKind::ServerOrUnknown };
        // The first one holds: a node makes a connection for each request.
        let _ = self.kind.set(kind);
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.peer
    }

    async fn kind(&self) -> PeerKind {
        let (peer, own) = (self.peer, self.own);
        let finding = || async move {
            let found = tokio::task::spawn_blocking(move || find(peer, own)).await;
            found.unwrap_or(PeerKind::ServerOrUnknown)
        };
        *self.kind.get_or_init(finding).await
    }
}

impl BrowserPeer {
    pub(crate) fn new(connection: &Arc<PeerConnection>) -> Self {
        Self(Arc::clone(connection))
    }

    /// Whether a person may be at the other end: no server of toolgate has started the process there. A process of
    /// another user may be a proxy, whose cookie says who is behind it.
    pub async fn may_be_person(&self) -> bool {
        self.0.kind().await != PeerKind::ServerOrUnknown
    }

    /// The address of the other end.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Notes that a request of this connection was accepted, so that the connection may stay.
    pub fn accept(&self) {
        self.0.acceptance.accept();
    }
}

impl RequestPeer {
    /// Whether a person may decide something through this client.
    pub(crate) async fn may_decide(&self) -> bool {
        match self.connection.kind().await {
            PeerKind::Free => true,
            PeerKind::OtherUser => self.has_token,
            PeerKind::ServerOrUnknown => false,
        }
    }
}

/// Only Linux knows the servers among the processes.
#[cfg(not(target_os = "linux"))]
fn find(_peer: SocketAddr, _own: Option<SocketAddr>) -> PeerKind {
    PeerKind::Free
}

#[cfg(target_os = "linux")]
use linux::find;

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs,
        mem::MaybeUninit,
        net::{IpAddr, SocketAddr},
    };

    use rustix::{
        fs::{Mode, OFlags, RawDir, open, readlinkat_raw},
        net::{
            AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SOCK_DIAG, recv,
            send, socket_with,
        },
    };
    use toolgate_upstream::{ProcessLineage, lineage_of};

    use super::PeerKind;

    /// A socket of this machine.
    #[derive(Debug, PartialEq, Eq)]
    struct LocalSocket {
        user: u32,
        inode: u64,
    }

    pub(super) fn find(peer: SocketAddr, own: Option<SocketAddr>) -> PeerKind {
        let Some(own) = own.map(canonical) else { return PeerKind::ServerOrUnknown };
        let peer = canonical(peer);
        let listed = || {
            let mut tables = ["/proc/net/tcp", "/proc/net/tcp6"].iter();
            tables
                .find_map(|table| socket(&fs::read_to_string(table).unwrap_or_default(), peer, own))
        };
        let Some(socket) = asked(peer, own).or_else(listed) else {
            let is_here = peer.ip().is_loopback() || peer.ip() == own.ip();
            return if is_here { PeerKind::ServerOrUnknown } else { PeerKind::Free };
        };
        match own_user() {
            None => PeerKind::ServerOrUnknown,
            // Only root sees what processes of other users have open.
            Some(user) if user != 0 && user != socket.user => PeerKind::OtherUser,
            Some(_) => judge(&holders(socket.inode)),
        }
    }

    /// Several processes can have the socket open: none of them may belong to a server.
    fn judge(holders: &[u32]) -> PeerKind {
        let is_free = |process: &u32| lineage_of(*process) == ProcessLineage::Free;
        if !holders.is_empty() && holders.iter().all(is_free) {
            PeerKind::Free
        } else {
            PeerKind::ServerOrUnknown
        }
    }

    /// The other end of the connection, as the system names it when it is asked for this one (`sock_diag(7)`). To read the
    /// table of all sockets takes milliseconds on a large machine, however few there are.
    fn asked(peer: SocketAddr, own: SocketAddr) -> Option<LocalSocket> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let system = socket_with(family, SocketType::DGRAM, flags, Some(SOCK_DIAG)).ok()?;
        send(&system, &question(peer, own)?, SendFlags::empty()).ok()?;
        let mut space = [0; 512];
        let (length, _) = recv(&system, &mut space[..], RecvFlags::DONTWAIT).ok()?;
        read_answer(space.get(..length)?)
    }

    /// `nlmsghdr` and `inet_diag_req_v2`.
    fn question(peer: SocketAddr, own: SocketAddr) -> Option<Vec<u8>> {
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let words = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => [&ip.octets()[..], &[0; 12]].concat(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let [any_interface, no_cookie, all_states] =
            [0_u32, u32::MAX, u32::MAX].map(u32::to_ne_bytes);
        let asked = [
            &[u8::try_from(family.as_raw()).ok()?, TCP, 0, 0][..],
            &all_states,
            // The end that is looked for comes first.
            &peer.port().to_be_bytes(),
            &own.port().to_be_bytes(),
            &words(peer.ip()),
            &words(own.ip()),
            &any_interface,
            &no_cookie,
            &no_cookie,
        ]
        .concat();
        let length = u32::try_from(HEADER_BYTES + asked.len()).ok()?.to_ne_bytes();
        let (kind, is_request) = (SOCK_DIAG_BY_FAMILY.to_ne_bytes(), 1_u16.to_ne_bytes());
        Some([&length[..], &kind, &is_request, &[0; 8], &asked].concat())
    }

    /// The user and the inode at the end of an `inet_diag_msg`. An error is a message of another kind.
    fn read_answer(answer: &[u8]) -> Option<LocalSocket> {
        let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
        let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
        (kind == SOCK_DIAG_BY_FAMILY).then_some(())?;
        Some(LocalSocket {
            user: number(HEADER_BYTES + 64)?,
            inode: number(HEADER_BYTES + 68)?.into(),
        })
    }

    /// The size of `nlmsghdr`.
    const HEADER_BYTES: usize = 16;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const TCP: u8 = 6;

    /// The other end of the connection in a table of sockets.
    fn socket(table: &str, peer: SocketAddr, own: SocketAddr) -> Option<LocalSocket> {
        table.lines().skip(1).find_map(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let is_it = address(columns.next()?)? == peer && address(columns.next()?)? == own;
            let mut columns = columns.skip(4);
            let (user, inode) = (columns.next()?, columns.nth(1)?);
            is_it.then_some(LocalSocket { user: user.parse().ok()?, inode: inode.parse().ok()? })
        })
    }

    /// An address as the system writes it: words of 32 bits in the order of this machine.
    fn address(text: &str) -> Option<SocketAddr> {
        let (ip, port) = text.split_once(':')?;
        let word = |word: &[u8]| {
            let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
            Some(word.to_ne_bytes())
        };
        let bytes = ip.as_bytes().chunks(8).map(word).collect::<Option<Vec<_>>>()?.concat();
        let ip = match bytes.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
            _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        };
        Some(canonical(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
    }

    /// The address without a zone, and of IPv4 if it is one.
    fn canonical(address: SocketAddr) -> SocketAddr {
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    /// The user of this process. The owner of the files in `/proc` is another if memory is hidden.
    fn own_user() -> Option<u32> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        users.split_whitespace().nth(1)?.parse().ok()
    }

    /// The processes that have the socket open.
    fn holders(inode: u64) -> Vec<u32> {
        let link = format!("socket:[{inode}]");
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter(|process| has_open(*process, link.as_bytes())).collect()
    }

    /// Whether a process has a file open whose link is this. The links are read below the open folder, because there are
    /// thousands where many servers run, and to find each by its whole path takes several times as long.
    fn has_open(process: u32, link: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(folder) = open(format!("/proc/{process}/fd"), flags, Mode::empty()) else {
            return false;
        };
        let mut space = [MaybeUninit::uninit(); 4_096];
        let mut files = RawDir::new(&folder, &mut space);
        // Longer links are cut, and are those of no socket.
        let mut target = [MaybeUninit::uninit(); 64];
        while let Some(Ok(file)) = files.next() {
            if let Ok((found, _)) = readlinkat_raw(&folder, file.file_name(), &mut target[..])
                && found == link
            {
                return true;
            }
        }
        false
    }

    #[cfg(test)]
    mod tests {
        use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};

        use super::*;

        #[test]
        fn a_table_of_sockets_is_read() {
            let four = |address: Ipv4Addr| format!("{:08X}", u32::from_ne_bytes(address.octets()));
            let six = |address: Ipv6Addr| {
                let octets = address.octets();
                let words = octets.chunks(4).map(|word| <[u8; 4]>::try_from(word).unwrap());
                words
                    .map(|word| format!("{:08X}", u32::from_ne_bytes(word)))
                    .collect::<Vec<_>>()
                    .concat()
            };
            let local = four(Ipv4Addr::LOCALHOST);
            let mapped = six(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
            let table = format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                 \x20  0: {local}:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0\n\
                 \x20  1: {local}:1F90 {local}:C001 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4\n\
                 \x20  2: {mapped}:C001 {mapped}:1F90 01 00000000:00000000 02:000A7214 00000000  1001        0 13 2 0 20 4\n"
            );
            let end = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let found = socket(&table, end(0xC001), end(0x1F90));
            assert_eq!(found, Some(LocalSocket { user: 1001, inode: 13 }));
            assert_eq!(socket(&table, end(0xC002), end(0x1F90)), None);
            assert_eq!(address("nonsense"), None);
        }

        #[test]
        fn the_other_end_of_a_connection_is_found() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (served, peer) = listener.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
            assert_eq!(find(peer, served.local_addr().ok()), PeerKind::Free);
            // A loopback address without a process, and another machine.
            drop((client, served));
            let own = listener.local_addr().ok();
            assert_eq!(find(([127, 0, 0, 1], 1).into(), own), PeerKind::ServerOrUnknown);
            assert_eq!(find(([192, 0, 2, 1], 1).into(), own), PeerKind::Free);
        }

        #[test]
        fn the_system_names_the_socket_that_its_table_has() {
            for own in ["127.0.0.1:0", "[::1]:0"] {
                // A machine may have no IPv6.
                let Ok(listener) = TcpListener::bind(own) else { continue };
                let own = listener.local_addr().unwrap();
                let client = TcpStream::connect(own).unwrap();
                let peer = client.local_addr().unwrap();
                let table = if own.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
                let listed = socket(&fs::read_to_string(table).unwrap(), peer, own);
                assert!(listed.is_some());
                assert_eq!(asked(peer, own), listed);
                assert_eq!(asked(SocketAddr::new(peer.ip(), 1), own), None);
            }
        }
    }
}
