//! Pages over QUIC between a quinn client and a quinn server on real sockets, asked for as the traffic kind `quic-web` does.
//!
//! `quic-pages server ADDRESS`: answers requests; each is 300 bytes that begin with the size of the answer as text.
//! `quic-pages client ADDRESS PAGES DOCUMENT OBJECTS OBJECT`: loads pages one after the other, each on a connection of its own:
//! the document, then all objects at once. Prints the time of each page in seconds.
//!
//! Defaults are quinn's but for the initial round-trip time, which no packet here uses. The certificate is Ed25519, and is filled to the size
//! that the scenario assumes with names.

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Bytes of the certificate, at least; as `certificate_chain` of the scenario.
const CHAIN: usize = 2_500;

/// Bytes of a request.
const REQUEST: usize = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[1..] {
        ["server", address] => serve(address.parse()?).await,
        ["client", address, pages, document, objects, object] => {
            let sizes = [document.parse()?, object.parse()?];
            load(address.parse()?, pages.parse()?, objects.parse()?, sizes).await
        }
        _ => Err("quic-pages server ADDRESS | client ADDRESS PAGES DOCUMENT OBJECTS OBJECT".into()),
    }
}

async fn serve(address: SocketAddr) -> Outcome {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
    let mut names = vec!["server.example".to_owned()];
    let certificate = loop {
        let certificate = rcgen::CertificateParams::new(names.clone())?.self_signed(&key)?;
        if certificate.der().len() >= CHAIN {
            break certificate;
        }
        names.push(format!("{:026}.example", names.len()));
    };
    eprintln!("certificate of {} bytes", certificate.der().len());
    let key = PrivateKeyDer::try_from(key.serialize_der())?;
    let mut crypto =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
    crypto.alpn_protocols = vec![b"h3".to_vec()];
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(crypto)?));
    let endpoint = Endpoint::server(config, address)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await?;
            while let Ok((mut out, mut request)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    let text = request.read_to_end(REQUEST).await?;
                    let text = String::from_utf8_lossy(&text);
                    let bytes = text.trim_end_matches(' ').parse()?;
                    out.write_all(&vec![0; bytes]).await?;
                    out.finish()?;
                    Ok::<_, Box<dyn Error + Send + Sync>>(())
                });
            }
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        });
    }
    Ok(())
}

async fn load(address: SocketAddr, pages: u32, objects: u32, [document, object]: [usize; 2]) -> Outcome {
    let mut crypto =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody))
            .with_no_client_auth();
    crypto.alpn_protocols = vec![b"h3".to_vec()];
    // As the scenario: every handshake is a full one.
    crypto.resumption = rustls::client::Resumption::disabled();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto)?));
    for _ in 0..pages {
        let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
        endpoint.set_default_client_config(config.clone());
        let begin = Instant::now();
        let connection = endpoint.connect(address, "server.example")?.await?;
        fetch(&connection, document).await?;
        let fetches: Vec<_> = (0..objects)
            .map(|_| {
                let connection = connection.clone();
                tokio::spawn(async move { fetch(&connection, object).await })
            })
            .collect();
        for fetched in fetches {
            fetched.await??;
        }
        println!("{:.6}", begin.elapsed().as_secs_f64());
        connection.close(0_u32.into(), b"");
        endpoint.wait_idle().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn fetch(connection: &Connection, bytes: usize) -> Outcome {
    let (mut request, mut answer) = connection.open_bi().await?;
    request.write_all(format!("{bytes:<REQUEST$}").as_bytes()).await?;
    request.finish()?;
    let mut got = 0;
    while let Some(chunk) = answer.read_chunk(usize::MAX, true).await? {
        got += chunk.bytes.len();
    }
    if got == bytes {
        Ok(())
    } else {
        Err(format!("{got} bytes instead of {bytes}").into())
    }
}

/// Takes any certificate: who answers is known here.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
