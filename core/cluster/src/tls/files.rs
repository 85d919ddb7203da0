//! Certificates and keys from PEM files, as configurations of rustls.

use super::{ClientTls, Identity, ServerTls};
use crate::error::ClusterError;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::Arc,
};

/// HTTP/2, by its name in TLS.
const PROTOCOL: &[u8] = b"h2";
/// The data plane, likewise.
pub(super) const DATA: &[u8] = b"tenon-data";

fn wrong<E: Display>(file: &Path) -> impl Fn(E) -> ClusterError {
    move |error| ClusterError::TlsFile { file: file.to_owned(), reason: error.to_string() }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, ClusterError> {
    let found = CertificateDer::pem_file_iter(file).map_err(wrong(file))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(wrong(file))?;
    if found.is_empty() {
        return Err(wrong(file)("it has no certificate: expected PEM, with BEGIN CERTIFICATE"));
    }
    Ok(found)
}

fn authorities(file: &Path) -> Result<RootCertStore, ClusterError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(file)? {
        store.add(certificate).map_err(wrong(file))?;
    }
    Ok(store)
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn pair(identity: &Identity) -> Result<Pair, ClusterError> {
    let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(wrong(&identity.key))?;
    Ok((certificates(&identity.cert)?, key))
}

/// The configuration of a server.
pub(super) fn server(tls: &ServerTls) -> Result<ServerConfig, ClusterError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(wrong(&tls.identity.cert))?;
    let builder = match &tls.ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let roots = Arc::new(authorities(ca)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            builder.with_client_cert_verifier(verifier.build().map_err(wrong(ca))?)
        }
    };
    let (chain, key) = pair(&tls.identity)?;
    let built = builder.with_single_cert(chain, key);
    let mut config = built.map_err(wrong(&tls.identity.cert))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec(), DATA.to_vec()];
    Ok(config)
}

/// The configuration of a client.
pub(super) fn client(tls: &ClientTls) -> Result<ClientConfig, ClusterError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(wrong(&tls.ca))?
        .with_root_certificates(authorities(&tls.ca)?);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = pair(identity)?;
            builder.with_client_auth_cert(chain, key).map_err(wrong(&identity.cert))?
        }
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

/// The files of a server's TLS.
pub(super) fn of_server(tls: &ServerTls) -> Vec<PathBuf> {
    let own = [tls.identity.cert.clone(), tls.identity.key.clone()];
    own.into_iter().chain(tls.ca.clone()).collect()
}

/// The files of a client's TLS.
pub(super) fn of_client(tls: &ClientTls) -> Vec<PathBuf> {
    let own = tls.identity.iter().flat_map(|it| [it.cert.clone(), it.key.clone()]);
    own.chain([tls.ca.clone()]).collect()
}
