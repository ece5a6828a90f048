//! How nodes know each other.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, TlsConnector, rustls::pki_types::ServerName};
use toolgate_fleet::{PeerTls, peer_tls};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Whether a byte arrives from one end at the other.
async fn reaches(client: PeerTls, server: PeerTls) -> bool {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let name = ServerName::try_from("toolgate").unwrap();
    let connecting = async {
        let mut stream = TlsConnector::from(client.client).connect(name, near).await?;
        stream.write_all(b"x").await?;
        stream.flush().await?;
        let mut answer = [0];
        stream.read_exact(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let accepting = async {
        let mut stream = TlsAcceptor::from(server.server).accept(far).await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        stream.write_all(&byte).await?;
        stream.flush().await?;
        std::io::Result::Ok(byte)
    };
    let (connected, accepted) = tokio::join!(connecting, accepting);
    connected.is_ok() && accepted.is_ok()
}

#[tokio::test]
async fn only_who_knows_the_secret_is_a_node() {
    let (own, other) =
        (peer_tls(SECRET).unwrap(), peer_tls("another secret of the same length").unwrap());
    assert!(reaches(own.clone(), peer_tls(SECRET).unwrap()).await);
    assert!(!reaches(other.clone(), own.clone()).await, "a client without it");
    assert!(!reaches(own.clone(), other).await, "a server without it");
    assert!(!format!("{own:?}").contains(SECRET));
}
