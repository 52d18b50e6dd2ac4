//! How a connection to PostgreSQL is encrypted, by libpq's names: `sslmode`, `sslrootcert`, `sslcert` and `sslkey`, as the
//! other connections of the process take them. `prefer`, where none is named, and `require` encrypt and trust any server that answers;
//! `verify-ca` asks for a certificate of an authority that is trusted, `verify-full` for one with the server's name. Where
//! `sslrootcert` names authorities no others are trusted here, as by libpq; sqlx, which SeaORM's connections are, trusts public ones too.

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use sqlx::postgres::PgSslMode;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use crate::store::{Error, Result};

pub(super) fn mode(mode: PgSslMode) -> SslMode {
    match mode {
        PgSslMode::Disable | PgSslMode::Allow => SslMode::Disable,
        PgSslMode::Prefer => SslMode::Prefer,
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => SslMode::Require,
    }
}

/// `told` has the certificates as query parameters, in sqlx's form.
pub(super) fn connector(mode: PgSslMode, told: &Url) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(ring::default_provider());
    let named = |name: &str| told.query_pairs().find(|(key, _)| key == name).map(|(_, value)| Pem::of(&value));
    let config = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().map_err(unusable)?;
    let verifying = matches!(mode, PgSslMode::VerifyCa | PgSslMode::VerifyFull);
    let mut roots = RootCertStore::empty();
    match named("sslrootcert") {
        Some(pem) if verifying => {
            for root in pem.certificates("sslrootcert")? {
                roots.add(root).map_err(unusable)?;
            }
        }
        _ => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let config = if matches!(mode, PgSslMode::VerifyFull) {
        config.with_root_certificates(roots)
    } else {
        let chain = if verifying {
            Some(WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build().map_err(unusable)?)
        } else {
            None
        };
        config.dangerous().with_custom_certificate_verifier(Arc::new(Lenient { provider, chain }))
    };
    let config = match (named("sslcert"), named("sslkey")) {
        (Some(certificate), Some(key)) => {
            config.with_client_auth_cert(certificate.certificates("sslcert")?, key.key("sslkey")?).map_err(unusable)?
        }
        (None, None) => config.with_no_client_auth(),
        _ => return Err(Error::Unavailable("the database URL names one of `sslcert` and `sslkey`; both are needed".to_owned())),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn unusable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(format!("no TLS: {error}"))
}

/// What is written in PEM, or the file that has it.
enum Pem {
    Text(String),
    File(String),
}

impl Pem {
    fn of(told: &str) -> Self {
        told.strip_prefix("file: ").map_or_else(|| Self::Text(told.to_owned()), |path| Self::File(path.to_owned()))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::File(path) => {
                std::fs::read(path).map_err(|error| Error::Unavailable(format!("`{path}`, which `{name}` names, cannot be read: {error}")))
            }
        }
    }

    fn certificates(&self, name: &str) -> Result<Vec<CertificateDer<'static>>> {
        let found: Vec<_> = CertificateDer::pem_slice_iter(&self.read(name)?).collect::<std::result::Result<_, _>>().map_err(unusable)?;
        if found.is_empty() {
            return Err(Error::Unavailable(format!("what `{name}` names has no certificate in PEM")));
        }
        Ok(found)
    }

    fn key(&self, name: &str) -> Result<PrivateKeyDer<'static>> {
        PrivateKeyDer::from_pem_slice(&self.read(name)?)
            .map_err(|error| Error::Unavailable(format!("what `{name}` names has no private key in PEM: {error}")))
    }
}

/// Asks less of a server than its name.
#[derive(Debug)]
struct Lenient {
    provider: Arc<CryptoProvider>,
    /// Whether the certificate has to come from an authority that is trusted.
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(TlsError::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            told => told,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
